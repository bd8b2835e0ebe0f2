"""The question as a table: what was asked for, and what was taken because nobody said."""

from __future__ import annotations

from capplan.render import shows
from capplan.render.screen import Column, Table
from capplan.results.bands import statistic_name
from capplan.results.report import Report


def question_table(report: Report) -> Table:
    asked = report.question
    options = {word.strip() for one in report.assumptions for word in one.option.split(",")}
    lengths = (
        f"{_length(asked.prompt_lengths, asked.prompt_tokens)} in, "
        f"{_length(asked.output_lengths, asked.output_tokens)} out"
    )
    rows = [
        ("model", f"{asked.model_name} ({asked.model})", "--model"),
        ("accelerators", ", ".join(asked.hardware), "--hardware"),
        ("traffic, at its peak", _traffic(report), "--plan" if asked.plan else "--qps"),
        ("tokens a request", lengths, "--prompt-tokens"),
        *_limits(report),
        ("least", asked.objective, "--objective"),
        ("weights, KV", f"{asked.dtype}, {asked.kv_dtype}", "--dtype"),
        _spares(report),
    ]
    columns = (
        Column("what", "what", right=False),
        Column("value", "value", right=False, prose=True),
        Column("option", "option", right=False),
        Column("said", "said by", right=False),
    )
    given = [(*row, "assumed" if row[2] in options else "given") for row in rows]
    return Table("The question", columns, [_objective(row) for row in given], in_tsv=False)


def _objective(row: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    """Its default is no assumption of the answer, and was not said either."""
    if row[2] != "--objective":
        return row
    words = {"cost": "the bill", "gpus": "GPUs", "watts": "power", "latency": "P99 end to end"}
    return (row[0], words.get(row[1], row[1]), row[2], "")


def _spares(report: Report) -> tuple[str, str, str]:
    sizing = report.answer.sizing
    availability = sizing.availability if sizing is not None else None
    if availability is None or availability.target_fraction is None:
        return ("spare replicas", f"{report.question.num_spare_replicas:,}", "--spares")
    share = f"{100 * availability.target_fraction:.7g} %"
    return ("spare replicas", f"as many as keep the limits {share} of the time", "--availability")


def _length(given: str, mean_tokens: int) -> str:
    """`1,024`, or `lognormal:1024,0.8 (mean 1,024)`."""
    text = f"{mean_tokens:,}"
    return text if given == str(mean_tokens) else f"{given} (mean {text})"


def _traffic(report: Report) -> str:
    asked = report.question
    text = f"{shows.rate(asked.arrival_rate_per_s)}, arrivals {asked.arrivals}"
    for what, file in (("plan", asked.plan), ("trace", asked.trace)):
        text += f", by the {what} {file}" if file is not None else ""
    return text


def _limits(report: Report) -> list[tuple[str, str, str]]:
    asked = report.question
    found = []
    for key, limit_s in (
        ("ttft", asked.slo_ttft_s),
        ("tpot", asked.slo_tpot_s),
        ("itl", asked.slo_itl_s),
        ("e2e", asked.slo_e2e_s),
    ):
        if limit_s is not None:
            percentile = asked.slo_percentiles.get(key)
            text = f"{shows.duration(limit_s)} at {statistic_name(percentile)}"
            found.append((f"limit on {key.upper()}", text, f"--slo-{key}"))
    return found
