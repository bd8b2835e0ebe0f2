"""The KV pool in blocks equals what vLLM computes and prints.

`data/kv_golden.json`: 44 results of vLLM 0.33.0's own sizing functions, recorded by us on a CPU.
`REPLAYS`: figures that people's start-up logs state, with the place where each was pasted.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.cli.environment import Environment
from capplan.cli.run import run
from capplan.formulas import kv_blocks
from capplan.formulas.kv_blocks import Flight, blocks_of, decode_blocks, request_blocks
from capplan.formulas.kv_groups import (
    KvLayer,
    bytes_per_block,
    group_layers,
    padding_layers,
    pipeline_stages,
)
from capplan.performance.kv_layout import KvSettings, kv_layout
from capplan.performance.kv_pool import KvPool
from capplan.performance.kv_sizing import kv_sizing
from capplan.specs.catalogue import load_all, load_model
from capplan.specs.model import ModelSpec

GIB = 2**30
CASES = json.loads((Path(__file__).parent / "data" / "kv_golden.json").read_text("utf-8"))["cases"]
ELEMENT_BYTES = {"bf16": 2, "fp8": 1}
KINDS = {"full": "full", "mla": "full", "sliding": "sliding", "chunked_local": "chunked"}


def layer_of(spec: dict[str, Any], inputs: dict[str, Any]) -> KvLayer:
    """One layer of a recorded case."""
    block_size = inputs["block_size"]
    if spec["kind"] == "mamba":
        own = spec.get("block_size", inputs["max_model_len"])
        return KvLayer("state", spec["page_size_padded"], own)
    element = ELEMENT_BYTES[spec["dtype"]]
    if spec["kind"] == "mla":
        token = spec.get("state_content_bytes", spec["head_size"] * element)
    else:
        token = 2 * spec["num_kv_heads"] * spec["head_size"] * element
    reach = spec.get("window") or spec.get("chunk")
    return KvLayer(KINDS[spec["kind"]], block_size * token, block_size, reach)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_equal_to_the_engine(case: dict[str, Any]) -> None:
    inputs, expected = case["inputs"], case["outputs"]
    kinds = {letter: layer_of(spec, inputs) for letter, spec in inputs["specs"].items()}
    pages = {letter: layer.page_bytes for letter, layer in kinds.items()}
    assert pages == expected["page_size_bytes_per_layer"]
    flight = Flight(
        inputs["max_num_batched_tokens"],
        inputs["async_scheduling"],
        inputs["mamba_cache_mode"] == "align",
    )
    assert flight.tokens == inputs["max_in_flight_tokens"]
    groups = group_layers(
        [kinds[letter] for letter in inputs["layers"]],
        hybrid_manager=not inputs["disable_hybrid_kv_cache_manager"],
    )
    longest, available = inputs["max_model_len"], inputs["available_kv_memory_bytes"]
    assert [
        (g.num_layers, g.layer.block_size, g.layer.page_bytes,
         request_blocks(g.layer, longest, flight))
        for g in groups
    ] == [
        (g["num_layers"], g["block_size"], g["page_size_bytes"],
         g["blocks_per_request_at_max_model_len"])
        for g in expected["groups"]
    ]  # fmt: skip
    block = bytes_per_block(groups)
    assert block == expected["bytes_per_block_all_layers"]
    request = blocks_of(request_blocks, groups, longest, flight)
    assert request * block == expected["bytes_needed_for_one_max_len_request"]
    assert kv_blocks.starts(request, block, available) == expected["fits"]

    def fits(tokens: int) -> bool:
        return kv_blocks.starts(blocks_of(request_blocks, groups, tokens, flight), block, available)

    def fits_layer_by_layer(tokens: int) -> bool:
        layers = [layer for group in groups for layer in group.layers]
        return kv_blocks.layers_bytes(layers, tokens, flight) <= available

    estimate = kv_blocks.longest(fits, longest)
    assert estimate == expected["estimate_max_model_len_from_groups_after_null_block"]
    estimate = kv_blocks.longest(fits_layer_by_layer, longest)
    assert estimate == expected["estimate_max_model_len_per_layer"]
    if not expected["fits"]:
        return
    blocks = kv_blocks.num_blocks(available, block)
    assert blocks == expected["num_blocks"] == expected["usable_blocks"] + 1
    concurrency = kv_blocks.max_concurrency(blocks, request)
    assert concurrency == expected["max_concurrency"]
    assert kv_blocks.printed_tokens(concurrency, longest) == expected["kv_cache_size_tokens"]


class SameAs(NamedTuple):
    """A recorded case whose model is in our catalogue."""

    case: str
    model: str
    kv_dtype: str = "bf16"
    tp: int = 1


@pytest.mark.parametrize(
    "same",
    [
        SameAs("llama-3.1-8b bf16 odd memory", "llama-3.1-8b"),
        SameAs("llama-3.1-8b fp8 kv", "llama-3.1-8b", "fp8"),
        SameAs("llama-3.1-8b bs64", "llama-3.1-8b"),
        SameAs("llama-3.1-8b exactly one request without null block", "llama-3.1-8b"),
        SameAs("llama-3.1-70b tp4", "llama-3.1-70b", tp=4),
        SameAs("qwen3-30b-a3b tp8 replicated kv", "qwen3-30b-a3b", tp=8),
        SameAs("deepseek-v3 mla bf16 bs64", "deepseek-v3", tp=8),
        SameAs("deepseek-v3.2-like mla fp8_ds_mla", "deepseek-v3", "fp8_ds_mla", tp=8),
        SameAs("gemma-3-27b 12GiB len131072 b8192", "gemma-3-27b"),
        SameAs("gemma-3-27b tp2", "gemma-3-27b", tp=2),
        SameAs("gemma-3-27b hybrid manager disabled", "gemma-3-27b"),
        SameAs("gemma-3-27b 40GiB async scheduling", "gemma-3-27b"),
        SameAs("gpt-oss-120b tp8", "gpt-oss-120b", tp=8),
        SameAs("gpt-oss-120b 60GiB async scheduling", "gpt-oss-120b"),
        SameAs("gpt-oss-20b", "gpt-oss-20b"),
        SameAs("llama-4-scout tp4", "llama-4-scout", tp=4),
        SameAs("llama-4-scout tp4 b16384", "llama-4-scout", tp=4),
    ],
    ids=lambda same: same.case,
)
def test_our_models_equal_the_engine(same: SameAs) -> None:
    case = next(case for case in CASES if case["name"] == same.case)
    inputs, expected = case["inputs"], case["outputs"]
    settings = KvSettings(
        block_size=inputs["block_size"],
        max_model_len=inputs["max_model_len"],
        max_num_batched_tokens=inputs["max_num_batched_tokens"],
        enable_prefix_caching=inputs["enable_prefix_caching"],
        async_scheduling=inputs["async_scheduling"],
        hybrid_manager=not inputs["disable_hybrid_kv_cache_manager"],
    )
    room = inputs["available_kv_memory_bytes"]
    pool = KvPool(load_model(same.model).spec, same.kv_dtype, same.tp, settings, room)
    assert [g.num_layers for g in pool.layout.groups] == [
        g["num_layers"] for g in expected["groups"]
    ]
    sizing = kv_sizing(pool, pool.max_model_len)
    assert sizing.bytes_per_block_per_gpu == expected["bytes_per_block_all_layers"]
    assert sizing.starts == expected["fits"]
    estimate = expected["estimate_max_model_len_from_groups_after_null_block"]
    assert sizing.estimated_max_model_len == estimate
    if expected["fits"]:
        assert sizing.num_blocks == expected["num_blocks"]
        assert sizing.max_concurrency == expected["max_concurrency"]
        assert sizing.printed_tokens == expected["kv_cache_size_tokens"]


class Replay(NamedTuple):
    """A start-up log: its pool in GiB (rounded to 0.01 there), and what it printed."""

    source: str
    model: str
    kv_dtype: str
    tp: int
    pool_gib: float
    settings: KvSettings
    printed_tokens: int
    concurrency: float | None = None
    exact: bool = True  # else: exact for some pool that rounds to the printed one


EARLY = KvSettings(printed_by_groups=True)
REPLAYS = [
    Replay("Gemma 3 on one GPU, requests up to 4,096", "gemma-3-27b", "bf16", 1, 109.86,
           KvSettings(max_model_len=4096, printed_by_groups=True), 205_696, 50.05),
    Replay("vllm#36973, Qwen3.5-35B-A3B int4, FP8 KV, 0.17.1", "qwen3.5-35b-a3b", "fp8", 1, 5.18,
           EARLY, 134_144),
    Replay("vllm#36973, the same later", "qwen3.5-35b-a3b", "fp8", 1, 1.76, EARLY, 44_016,
           exact=False),
    Replay("Qwen3.5-35B-A3B, FP8 KV, 0.17 or 0.18", "qwen3.5-35b-a3b", "fp8", 1, 5.69,
           KvSettings(max_model_len=32_768, printed_by_groups=True), 148_816, 12.91),
    Replay("club-3090#612, NVFP4, 0.24.0", "qwen3.5-35b-a3b", "fp8", 1, 5.98,
           KvSettings(max_model_len=131_072), 567_978, 4.33),
    Replay("club-3090#652, NVFP4, 0.24.0", "qwen3.5-35b-a3b", "fp8", 1, 6.01,
           KvSettings(max_model_len=131_072), 569_878, 4.35),
    Replay("Qwen3.5-27B class, blocks of 1,568 logged, 0.20", "qwen3.5-27b", "fp8", 1, 6.67,
           KvSettings(max_model_len=32_768, printed_by_groups=True), 53_312, 5.15),
    Replay("talos-argocd-proxmox#1995, FP8 KV, TP 2", "qwen3.5-27b", "fp8", 2, 4.99,
           KvSettings(max_model_len=131_072), 302_921, 2.31),
    Replay("Qwen3.8-27B 4-bit on an L40S, prefix caching off", "qwen3.5-27b", "bf16", 1, 8.82,
           KvSettings(max_model_len=131_072, enable_prefix_caching=False), 141_036, 1.08),
    Replay("gpt-oss-120b, 0.10", "gpt-oss-120b", "bf16", 1, 8.99, EARLY, 130_960, exact=False),
    Replay("DeepSeek-V3 class, TP 8, 0.11", "deepseek-v3", "bf16", 8, 41.6,
           KvSettings(block_size=64, max_model_len=8192), 635_648, 77.59, exact=False),
    Replay("recipe of Kimi K2, TP 8 and DCP 8, 0.11", "kimi-k2", "bf16", 8, 46.8,
           KvSettings(block_size=64, dcp=8), 5_721_088, exact=False),
    Replay("vllm#25350, Qwen3-30B-A3B, FP8 KV, 0.10.2", "qwen3-30b-a3b", "fp8", 1, 10.55,
           KvSettings(max_model_len=100_000), 230_528, 2.31, exact=False),
    Replay("Qwen2.5-7B class, vllm#25970", "qwen2.5-7b", "bf16", 1, 17.33,
           KvSettings(max_model_len=32_768), 324_496, 9.9, exact=False),
    Replay("Llama-3.3-70B in 8 bits, FP8 KV", "llama-3.1-70b", "fp8", 1, 5.11,
           KvSettings(max_model_len=32_000), 33_504, 1.05, exact=False),
]  # fmt: skip


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.source)
def test_logs_replay(replay: Replay) -> None:
    model = load_model(replay.model).spec

    def pool(gib: float) -> KvPool:
        return KvPool(model, replay.kv_dtype, replay.tp, replay.settings, gib * GIB)

    least, most = pool(replay.pool_gib - 0.005), pool(replay.pool_gib + 0.005)
    assert least.printed_tokens <= replay.printed_tokens <= most.printed_tokens
    if replay.exact:
        assert pool(replay.pool_gib).printed_tokens == replay.printed_tokens
    if replay.concurrency is not None:
        length = least.max_model_len
        bounds = least.max_concurrency(length), most.max_concurrency(length)
        assert round(bounds[0], 2) <= replay.concurrency <= round(bounds[1], 2)


@pytest.mark.parametrize(
    ("model", "kv_dtype", "tp", "block_size"),
    [
        # "Setting attention block size to N tokens" in start-up logs.
        ("qwen3.5-35b-a3b", "bf16", 1, 1056),
        ("qwen3.5-35b-a3b", "fp8", 1, 2096),
        ("qwen3.5-27b", "bf16", 1, 784),
        ("qwen3.5-27b", "fp8", 1, 1568),
        ("qwen3.5-27b", "fp8", 2, 1568),
    ],
)
def test_a_block_holds_a_state(model: str, kv_dtype: str, tp: int, block_size: int) -> None:
    pool = KvPool(load_model(model).spec, kv_dtype, tp, KvSettings(), 10 * GIB)
    assert pool.block_size == block_size
    assert len({group.layer.page_bytes for group in pool.layout.groups}) == 1


def test_a_refusal_names_the_length_that_fits() -> None:
    """0.8 to 0.11 checked layer by layer, without a block put aside (vllm#25350, one more log)."""
    model = load_model("qwen3-30b-a3b").spec
    for kv_dtype, gib, most, estimate in (
        ("fp8", 5.59, 221_000, 122_080),
        ("bf16", 8.04, 262_144, 87_840),
    ):
        layers = kv_layout(model, kv_dtype, 1, KvSettings()).groups[0].layers
        least, greatest = (longest_request(layers, gib + slip, most) for slip in (-0.005, 0.005))
        assert least <= estimate <= greatest


def longest_request(layers: tuple[KvLayer, ...], gib: float, most: int) -> int:
    flight = Flight(8192)
    return kv_blocks.longest(
        lambda tokens: kv_blocks.layers_bytes(layers, tokens, flight) <= gib * GIB, most
    )


def test_stages_of_a_pipeline() -> None:
    """The rule of vLLM's `get_pp_indices`, as its docstring has it."""
    sizes = {
        (61, 4): [15, 15, 16, 15],
        (61, 2): [31, 30],
        (62, 4): [15, 16, 16, 15],
        (63, 4): [16, 16, 16, 15],
        (48, 3): [16, 16, 16],
        (5, 1): [5],
        (3, 4): [1, 1, 1, 0],
    }
    for (num_layers, pp), expected in sizes.items():
        stages = pipeline_stages(num_layers, pp)
        assert [len(stage) for stage in stages] == expected
        assert [layer for stage in stages for layer in stage] == list(range(num_layers))


def test_the_fullest_stage_decides() -> None:
    model = load_model("deepseek-v3").spec
    one = kv_layout(model, "bf16", 1, KvSettings())
    four = kv_layout(model, "bf16", 1, KvSettings(pp=4))
    page = one.groups[0].layer.page_bytes
    assert four.stage_bytes_per_block == (15 * page, 15 * page, 16 * page, 15 * page)
    equal = KvPool(model, "bf16", 1, KvSettings(pp=4), 16 * page * 100)
    assert equal.num_blocks == 100
    # More room there, and another stage decides.
    rooms = [15 * page * 90, 15 * page * 95, 16 * page * 100, 15 * page * 99]
    assert KvPool(model, "bf16", 1, KvSettings(pp=4), rooms).num_blocks == 90


def test_a_pipeline_deals_every_kind_to_every_stage() -> None:
    layout = kv_layout(load_model("gemma-3-27b").spec, "bf16", 1, KvSettings(pp=2))
    page = layout.groups[0].layer.page_bytes
    # 31 layers a stage: 5 full ones in each; of the six sliding groups none has more.
    assert layout.stage_bytes_per_block == (5 * page, 5 * page)


def test_context_parallel_shares_the_latent() -> None:
    model = load_model("kimi-k2").spec
    alone = KvPool(model, "bf16", 8, KvSettings(block_size=64), 40 * GIB)
    shared = KvPool(model, "bf16", 8, KvSettings(block_size=64, dcp=8), 40 * GIB)
    assert shared.num_blocks == alone.num_blocks
    assert shared.request_blocks(64 * 8 * 10) == alone.request_blocks(64 * 10) == 10


def test_pages_that_differ() -> None:
    half = KvLayer("sliding", 1024, 16, 512)
    groups = group_layers([KvLayer("full", 2048, 16), half, half])
    assert [(g.layer.page_bytes, g.layer.block_size) for g in groups] == [(2048, 16)] + [
        (2048, 32)
    ] * 2
    # One kind of layer with several pages is one group; its block is the sum of them.
    latents = [KvLayer("full", 656 * 64, 64), KvLayer("full", 132 * 64, 64)] * 61
    assert bytes_per_block(group_layers(latents)) == 61 * 64 * (656 + 132)


MODELS = [found.spec for found in load_all(ModelSpec, "models")]
models = st.sampled_from(MODELS)
settings_ = st.builds(
    KvSettings,
    block_size=st.sampled_from([1, 8, 16, 32, 64, 128]),
    max_num_batched_tokens=st.integers(1, 32_768),
    enable_prefix_caching=st.booleans(),
    async_scheduling=st.booleans(),
    hybrid_manager=st.booleans(),
)
kinds_ = st.one_of(
    st.builds(KvLayer, st.just("full"), st.just(4096), st.just(16)),
    st.builds(
        KvLayer, st.sampled_from(["sliding", "chunked"]), st.just(4096), st.just(16),
        st.integers(1, 4096),
    ),
    st.builds(KvLayer, st.just("state"), st.just(4096), st.just(16)),
)  # fmt: skip


@given(st.lists(kinds_, min_size=1, max_size=80), st.booleans())
def test_groups_keep_every_layer_once(layers: list[KvLayer], hybrid: bool) -> None:
    groups = group_layers(layers, hybrid_manager=hybrid)
    places = sorted(position for group in groups for position in group.positions)
    assert places == list(range(len(layers)))
    if hybrid:
        for group in groups:
            assert all(layers[position] == group.layer for position in group.positions)
    size = max(group.num_layers for group in groups)
    counts: dict[KvLayer, list[int]] = {}
    for group in groups:
        counts.setdefault(group.layer, []).append(group.num_layers)
    for held in counts.values():
        # Less than a group is padded, and no group of a kind has two layers more than another.
        assert 0 <= padding_layers(sum(held), size) == len(held) * size - sum(held) < size
        assert max(held) - min(held) <= 1


@given(models, settings_, st.sampled_from(["bf16", "fp8"]), st.floats(0.01, 200),
       st.integers(1, 200_000), st.integers(0, 50_000))  # fmt: skip
def test_longer_requests_take_no_fewer_blocks(
    model: ModelSpec, settings: KvSettings, kv_dtype: str, gib: float, tokens: int, more: int
) -> None:
    pool = KvPool(model, kv_dtype, 1, settings, gib * GIB)
    assert pool.request_blocks(tokens) <= pool.request_blocks(tokens + more)
    assert pool.decode_blocks(tokens) <= pool.decode_blocks(tokens + more)
    assert pool.decode_blocks(tokens) <= pool.request_blocks(tokens)
    assert pool.num_sequences(tokens) >= pool.num_sequences(tokens + more)


@given(models, settings_, st.floats(0.0, 200), st.integers(1, 200_000))
def test_requests_fit_the_pool(
    model: ModelSpec, settings: KvSettings, gib: float, tokens: int
) -> None:
    pool = KvPool(model, "bf16", 1, settings, gib * GIB)
    request = pool.request_blocks(tokens)
    assert int(pool.max_concurrency(tokens)) * request <= pool.num_blocks
    num = pool.num_sequences(tokens)
    if num:
        held = request + (num - 1) * pool.decode_blocks(tokens)
        assert held <= pool.usable_blocks < held + pool.decode_blocks(tokens)
    assert pool.num_blocks * pool.bytes_per_block <= gib * GIB


@given(models, settings_, st.floats(0.0, 200))
def test_the_estimate_starts_and_one_token_more_does_not(
    model: ModelSpec, settings: KvSettings, gib: float
) -> None:
    pool = KvPool(model, "bf16", 1, settings, gib * GIB)
    estimate = pool.longest(pool.max_model_len)
    assert estimate == 0 or pool.starts(estimate)
    assert estimate == pool.max_model_len or not pool.starts(estimate + 1)
    assert (pool.num_sequences(estimate) >= 1) if estimate else not pool.starts(1)


@given(kinds_, st.integers(1, 5000), st.integers(1, 4096), st.booleans())
def test_what_a_decoding_request_touches_is_held(
    layer: KvLayer, tokens: int, budget: int, twice: bool
) -> None:
    """The blocks between the first position in reach and the newest, wherever they lie."""
    flight = Flight(budget, twice)
    if layer.kind != "sliding":
        return
    assert layer.reach_tokens is not None
    newest = tokens - 1
    first = max(0, newest - (layer.reach_tokens - 1) - (flight.batches - 1))
    touched = newest // layer.block_size - first // layer.block_size + 1
    assert touched <= decode_blocks(layer, tokens, flight)


def capplan(line: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = run(line.split(), Environment(out, err, 80, is_terminal=True, colour=False))
    return code, " ".join(out.getvalue().split()), err.getvalue()


def test_a_length_that_does_not_fit_is_refused_with_the_one_that_does() -> None:
    code, shown, _ = capplan("kv --model llama-3.1-8b --hardware l4 --max-model-len 131072")
    assert code == 1
    advised = re.search(r"The nearest way out: --max-model-len (\d+)\.", shown)
    assert advised
    line = f"kv --model llama-3.1-8b --hardware l4 --max-model-len {advised[1]}"
    assert capplan(line)[0] == 0
    line = f"kv --model llama-3.1-8b --hardware l4 --max-model-len {int(advised[1]) + 1}"
    assert capplan(line)[0] == 1


def test_the_models_own_length_is_no_refusal() -> None:
    code, shown, _ = capplan("kv --model llama-3.1-8b --hardware l4")
    assert code == 0
    assert "vLLM does not start for requests of up to 131,072" in shown


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("kv --max-model-len 1M", "--max-model-len 1,000,000 exceeds the 131,072 tokens"),
        ("kv --max-model-len 4k --context 8k", "--max-model-len 4,000 is below --context 8,000"),
        ("kv --kv-dtype fp8_ds_mla", "packs the latents of MLA"),
        ("gpus --kv-dtype fp8_ds_mla", "packs the latents of MLA"),
    ],
)
def test_questions_that_cannot_be(line: str, message: str) -> None:
    code, _, error = capplan(line)
    assert code == 2
    assert message in error


def test_flags_change_what_a_hybrid_takes() -> None:
    def blocks(line: str) -> list[int]:
        code, shown, _ = capplan(f"kv --hardware h200-sxm-141gb --json {line}")
        assert code == 0
        groups = json.loads(shown)["result"]["sizing"]["groups"]
        return [group["blocks_in_prefill"] for group in groups]

    gemma = "--model gemma-3-27b --context 100k --max-num-batched-tokens 2048"
    assert blocks(gemma) == [6 * 321, 6250]
    assert blocks(f"{gemma} --no-async-scheduling") == [6 * 193, 6250]
    assert blocks("--model qwen3.5-27b --context 8Ki") == [6, 11]
    assert blocks("--model qwen3.5-27b --context 8Ki --no-enable-prefix-caching") == [3, 11]
