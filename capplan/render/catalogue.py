"""Lists and cards of accelerators and models."""

from __future__ import annotations

from collections.abc import Sequence

from capplan import units
from capplan.render import shows
from capplan.render.screen import Column, Screen, Table
from capplan.results.catalogue import ExampleFacts, HardwareFacts, ModelFacts


def hardware_list(facts: Sequence[HardwareFacts]) -> Screen:
    columns = (
        Column("id", "name", right=False),
        Column("marketed_memory_bytes", "memory\nGB", lambda v: f"{v / units.GB:,.0f}"),
        Column("bandwidth_bytes_per_s", "GB/s", lambda v: f"{v / units.GB:,.0f}"),
        Column("bf16_flops_per_s", "bf16\nTFLOP/s", _tera),
        Column("fp8_flops_per_s", "fp8\nTFLOP/s", _tera),
        Column("ridge_flop_per_byte", "ridge\nFLOP/B", shows.number),
        Column("gpus_per_node", "a node", shows.count),
        Column("usd_per_gpu_hour", "$/hour", lambda v: f"{v:.2f}"),
    )
    rows = [
        (
            fact.id, fact.marketed_memory_bytes, fact.bandwidth_bytes_per_s,
            fact.peak_flops_per_s.get("bf16"), fact.peak_flops_per_s.get("fp8"),
            fact.ridge_flop_per_byte, fact.gpus_per_node, fact.usd_per_gpu_hour,
        )
        for fact in facts
    ]  # fmt: skip
    table = Table("Dense peaks, decimal units; prices are dated in `show`", columns, rows)
    return Screen(
        headline=shows.plural(len(facts), "accelerator"),
        tables=[table],
        next_commands=["capplan hardware show NAME"],
    )


def _tera(flop_per_s: float) -> str:
    return f"{flop_per_s / units.TERA:,.0f}"


def hardware(fact: HardwareFacts) -> Screen:
    estimate = " (estimate)" if fact.visible_memory_is_estimate else ""
    rows: list[tuple[str, str | None]] = [
        ("memory, marketed", f"{shows.decimal_bytes(fact.marketed_memory_bytes)} "
         f"{fact.memory_type}"),
        ("memory, driver", _optional_bytes(fact.driver_memory_bytes)),
        ("memory, a process sees", shows.binary_bytes(fact.visible_memory_bytes) + estimate),
        ("bandwidth", shows.bandwidth(fact.bandwidth_bytes_per_s)),
        ("L2", _optional_bytes(fact.l2_bytes)),
        ("scale-up link", _link(fact)),
        ("PCIe, a direction", _optional_bandwidth(fact.pcie_bytes_per_s)),
        ("power limit", f"{fact.tdp_w:,.0f} W" if fact.tdp_w else None),
        ("accelerators a node", str(fact.gpus_per_node)),
        ("network, each", _optional_bandwidth(fact.network_bytes_per_s)),
        ("streams weights at", _optional_share(fact.bandwidth_fraction)),
        ("instances", ", ".join(fact.instances) or None),
        ("also called", ", ".join(fact.aliases) or None),
    ]  # fmt: skip
    two = (Column("what", "", right=False), Column("value", "", right=False, prose=True))
    peaks = (
        Column("format", "format", right=False),
        Column("peak_flops_per_s", "dense peak", shows.flops),
        Column("ridge_flop_per_byte", "ridge\nFLOP/B", shows.number),
        Column("gemm_fraction", "reached by large\nproducts", shows.share),
    )
    peak_rows = [
        (name, peak, peak / fact.bandwidth_bytes_per_s, fact.gemm_fraction.get(name))
        for name, peak in fact.peak_flops_per_s.items()
    ]
    prices = (
        Column("provider", "provider", right=False),
        Column("instance", "instance", right=False),
        Column("tier", "tier", right=False),
        Column("usd_per_gpu_hour", "$/hour each", lambda v: f"{v:.2f}"),
        Column("as_of", "as of", right=False),
    )
    price_rows = [(p.provider, p.instance, p.tier, p.usd_per_gpu_hour, p.as_of)
                  for p in fact.prices]  # fmt: skip
    sources = [(group, "; ".join(texts)) for group, texts in fact.sources.items()]
    tables = [Table("Facts", two, rows), Table("Compute", peaks, peak_rows)]
    if price_rows:
        tables.append(Table("Prices", prices, price_rows))
    tables.append(Table("Sources", two, sources))
    return Screen(
        headline=f"{fact.id}: {fact.vendor} {fact.name}, {fact.architecture}, {fact.year}",
        tables=tables,
        notes=fact.notes,
        next_commands=[f"capplan roofline --hardware {fact.id}"],
    )


def _link(fact: HardwareFacts) -> str | None:
    if fact.scale_up is None or fact.scale_up_bytes_per_s is None:
        return None
    speed = shows.bandwidth(fact.scale_up_bytes_per_s)
    return f"{fact.scale_up}, {speed} a direction, {fact.scale_up_domain_gpus} linked"


def _optional_bytes(size: int | None) -> str | None:
    return None if size is None else shows.binary_bytes(size)


def _optional_bandwidth(speed: float | None) -> str | None:
    return None if speed is None else shows.bandwidth(speed)


def _optional_share(share: float | None) -> str | None:
    return None if share is None else f"{shows.share(share)} of bandwidth"


def models_list(facts: Sequence[ModelFacts]) -> Screen:
    columns = (
        Column("id", "name", right=False),
        Column("num_params_total", "params", _billions),
        Column("num_params_active", "active", _billions),
        Column("weight_bytes", "weights", shows.binary_bytes),
        Column("kv_bytes_per_token", "KV B\na token", lambda v: f"{v:,.0f}"),
        Column("max_context_tokens", "context\ntokens", shows.tokens),
    )
    rows = [[getattr(fact, column.key) for column in columns] for fact in facts]
    return Screen(
        headline=shows.plural(len(facts), "model"),
        tables=[Table("KV in 16 bits over all layers", columns, rows)],
        next_commands=["capplan models show NAME"],
    )


def _billions(num: int) -> str:
    return f"{shows.number(num / units.GB)}B"


def model(fact: ModelFacts) -> Screen:
    layers = (
        Column("num_layers", "layers", shows.count),
        Column("mixer", "mixer", right=False, prose=True),
        Column("ffn", "FFN", right=False, prose=True),
    )
    groups = (
        Column("group", "tensors", right=False),
        Column("num_params", "parameters", shows.count),
        Column("num_params_active", "active a token", shows.count),
        Column("weight_bytes", "bytes", shows.binary_bytes),
        Column("weight_format", "stored as", right=False),
    )
    group_rows = [[getattr(group, column.key) for column in groups] for group in fact.groups]
    group_rows.append(
        ["total", fact.num_params_total, fact.num_params_active, fact.weight_bytes, ""]
    )
    two = (Column("what", "", right=False), Column("value", "", right=False, prose=True))
    facts = [
        ("hidden size", shows.count(fact.hidden_size)),
        ("vocabulary", shows.count(fact.vocab_size)),
        ("context", f"{shows.tokens(fact.max_context_tokens)} tokens"),
        ("KV a token", f"{fact.kv_bytes_per_token:,.0f} B in {fact.kv_dtype}"),
        ("MTP layers, not loaded", f"{fact.num_params_mtp:,} parameters"),
        ("not counted", "; ".join(fact.not_counted)),
        ("also called", ", ".join(fact.aliases) or None),
        ("sources", "; ".join(fact.sources)),
    ]
    absent = {
        "MTP layers, not loaded": not fact.num_params_mtp,
        "not counted": not fact.not_counted,
    }
    facts = [row for row in facts if not absent.get(row[0])]
    return Screen(
        headline=f"{fact.id}: {fact.name}, {shows.plural(fact.num_layers, 'layer')}",
        tables=[
            Table("Facts", two, facts),
            Table("Layers", layers, [(x.num_layers, x.mixer, x.ffn) for x in fact.layers]),
            Table("Parameters", groups, group_rows),
        ],
        notes=[fact.note] if fact.note else [],
        next_commands=[f"capplan kv --model {fact.id}"],
    )


def examples_list(facts: Sequence[ExampleFacts]) -> Screen:
    columns = (
        Column("id", "name", right=False),
        Column("title", "what happens", right=False, prose=True),
        Column("variants", "variants", right=False, prose=True),
    )
    rows = [(fact.id, fact.title, ", ".join(fact.variants)) for fact in facts]
    return Screen(
        headline=shows.plural(len(facts), "example"),
        tables=[Table("Plans", columns, rows)],
        next_commands=["capplan examples copy NAME", "capplan simulate --plan NAME.yaml"],
    )
