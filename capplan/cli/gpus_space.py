"""Options of `capplan gpus` that take several values, and what follows in time."""

from __future__ import annotations

from dataclasses import replace

from capplan.cli.gpus_asked import Asked
from capplan.cli.inputs import MOST_STAGES, Inputs
from capplan.errors import CapplanError, QuantityError
from capplan.planner.sizing.robustness import Growth
from capplan.planner.sizing.space import SearchSpace
from capplan.specs.growth import DEFAULT_HORIZON, parse_growth, parse_months

MAX_VALUES = 16
MAX_KINDS = 256  # of one accelerator


def space_of(asked: Asked) -> SearchSpace:
    """Every value that was given; raises CapplanError for what is none."""
    options = asked.options
    model, silent = asked.questions[0].model, Inputs()  # the first values have been told
    tps = _values("--tp", options.tp)
    dtypes = tuple(silent.dtype(t, model) for t in _values("--dtype", options.dtype) or (None,))
    space = SearchSpace(
        tps=None
        if not tps or tps == ("auto",)
        else tuple(silent.count("--tp", text, 1, None) for text in tps),
        pps=tuple(silent.count("--pp", text, 1, None) for text in _values("--pp", options.pp))
        or (1,),
        eps=_experts(options.expert_parallel),
        dps=_copies(options.dp_attention),
        dtypes=dtypes,
        kv_dtypes=tuple(
            dict.fromkeys(
                silent.kv_dtype(text, model, dtypes[0])
                for text in _values("--kv-dtype", options.kv_dtype)
            )
        ),
        max_num_seqs=tuple(
            silent.count("--max-num-seqs", text, 1, None)
            for text in _values("--max-num-seqs", options.max_num_seqs)
        )
        or (None,),
        max_num_batched_tokens=tuple(
            silent.tokens("--max-num-batched-tokens", text, 0, "")
            for text in _values("--max-num-batched-tokens", options.max_num_batched_tokens)
        )
        or (None,),
    )
    shares = asked.demand is not None and asked.demand.own_prompt_tokens is not None
    if shares and options.enable_prefix_caching is None:
        space = replace(space, prefix_caching=(True, False))
    if max(space.pps) > MOST_STAGES:
        raise CapplanError(f"--pp: {max(space.pps):,} stages are more than {MOST_STAGES}")
    kinds = (
        len(space.dps or (1,))
        * len(space.pps)
        * len(space.eps)
        * len(space.dtypes)
        * max(1, len(space.kv_dtypes))
    )
    kinds *= len(space.max_num_seqs) * len(space.max_num_batched_tokens) * len(space.tps or (1,))
    if kinds > MAX_KINDS:
        raise CapplanError(
            f"{kinds:,} kinds of replica of each accelerator are more than {MAX_KINDS}",
            hint="give fewer values",
        )
    return space


def _values(option: str, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if len(parts) > MAX_VALUES:
        raise CapplanError(f"{option}: {len(parts):,} values are more than {MAX_VALUES}")
    if "" in parts:
        raise CapplanError(
            f"{option}: `{text[:40]}` has an empty value", hint="values stand between single commas"
        )
    return parts


def _copies(text: str | None) -> tuple[int, ...] | None:
    """None leaves it to the search."""
    if text in (None, "auto"):
        return None
    values = _values("--dp-attention", text)
    return tuple(Inputs().count("--dp-attention", value, 1, None) for value in values)


def _experts(text: str | None) -> tuple[bool, ...]:
    known = {None: (False,), "off": (False,), "on": (True,), "auto": (False, True)}
    if text not in known:
        raise CapplanError(
            f"--expert-parallel: `{text[:40]}` is none of on, off, auto"  # type: ignore[index]
        )
    return known[text]


def growth_of(growth: str | None, horizon: str | None) -> Growth | None:
    """`20%/month` or `100%/year` over `6mo` or `2y`."""
    if growth is None:
        if horizon is not None:
            raise CapplanError(
                "--horizon says nothing without --growth", hint="as in --growth 20%/month"
            )
        return None
    try:
        per_month = parse_growth(growth)
    except QuantityError as error:
        raise CapplanError(f"--growth: {error.message}", hint=error.hint) from None
    try:
        return Growth(per_month, parse_months(horizon or DEFAULT_HORIZON))
    except QuantityError as error:
        raise CapplanError(f"--horizon: {error.message}", hint=error.hint) from None
