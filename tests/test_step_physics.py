"""Hard floors of the step model: nothing beats peak, bandwidth or link, on any accelerator."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import UnsupportedError
from capplan.performance.batch import Batch, Chunk
from capplan.performance.engine_families import engine_overheads
from capplan.performance.kernel_rates import MOST_FRACTION, KernelRates
from capplan.performance.products import expert_families
from capplan.performance.rates import beyond_measured, derated_rates
from capplan.performance.step import StepModel
from capplan.simulator.model_step_time import ModelStepTime
from capplan.specs.architecture import FOLDER, Serving, architecture_of, load_architecture
from capplan.specs.catalogue import load_all, load_hardware, load_model
from capplan.specs.engine_performance import engine_performance, load_engine_performance
from capplan.specs.hardware import HardwareSpec

HARDWARE = {found.id: found.spec for found in load_all(HardwareSpec, "hardware")}
MODELS = {
    name: load_model(name).spec
    for name in ("llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite", "gemma-3-27b", "qwen3.5-27b",
                 "gpt-oss-120b", "llama-3.1-8b-int4")
}  # fmt: skip
H100 = HARDWARE["h100-sxm-80gb"]
LINKED = sorted(
    name for name, spec in HARDWARE.items() if spec.scale_up or spec.measured.all_reduce
)
every_architecture = pytest.mark.parametrize("stem", sorted(p.stem for p in FOLDER.glob("*.yaml")))


def step_model(model: str, hardware: HardwareSpec, tp: int = 1, ep: int = 1) -> StepModel:
    engine = engine_overheads(engine_performance("vllm"))
    rates = derated_rates(hardware, tp, fixed_factor=engine.fixed_factor)
    spec = MODELS[model]
    return StepModel(spec, hardware, rates, tp=tp, ep=ep, kv_dtype="bf16", engine=engine)


def floor_s(step: StepModel, batch: Batch, hardware: HardwareSpec) -> float:
    """The longer of the work at the dense peaks and the traffic at the full bandwidth."""
    work = step.work(batch)
    compute = sum(f / hardware.compute.peak[n] for n, f in work.flop_by_format.items())  # type: ignore[index]
    # Activations of neighbouring kernels may stay in a cache: weights and KV may not.
    return max(compute, (work.weight_bytes + work.kv_bytes) / hardware.memory.bandwidth)


@settings(deadline=None)
@given(
    st.sampled_from(sorted(MODELS)),
    st.sampled_from(sorted(HARDWARE)),
    st.integers(1, 1024),
    st.integers(1, 32_768),
    st.integers(0, 16_384),
)
def test_no_step_beats_a_roof(
    model: str, accelerator: str, num: int, context: int, chunk: int
) -> None:
    hardware = HARDWARE[accelerator]
    try:
        step = step_model(model, hardware)
    except UnsupportedError:
        return
    chunks = [Chunk(chunk, context)] if chunk else []
    batch = step.batch(num, step.uniform_reads(num, context), chunks)
    time = step.time(batch)
    assert time.total_s >= floor_s(step, batch, hardware)
    assert min(getattr(time, part) for part in type(time).__slots__) >= 0


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("tp", [2, 4, 8])
def test_no_collective_beats_the_link(name: str, tp: int) -> None:
    hardware = HARDWARE[name]
    if hardware.scale_up is None or tp > hardware.scale_up.domain:
        return
    rate = derated_rates(hardware, tp).all_reduce
    assert rate is not None
    assert rate.bus_bandwidth_bytes_per_s <= hardware.scale_up.bandwidth
    assert rate.latency_s > 0


def test_a_group_waits_for_its_slowest() -> None:
    """The largest of 8 standard normal draws is 1.42360 on average (Tippett 1925, table)."""
    architecture = load_architecture("hopper")
    spread = architecture.serving.spread
    alone, group = KernelRates(H100, architecture), KernelRates(H100, architecture, ranks=8)
    assert spread > 0
    for of in (lambda k: k.product("bf16", "bf16"), lambda k: k.experts((), "bf16", "bf16")):
        assert of(alone).bytes_per_s / of(group).bytes_per_s == pytest.approx(1 + 1.42360 * spread)
        assert of(alone).fixed_s == of(group).fixed_s


@every_architecture
def test_corrected_shares_stay_below_the_whole(stem: str) -> None:
    architecture = load_architecture(stem)
    kernels = KernelRates(H100, architecture)
    peak, bandwidth = H100.compute.peak["bf16"], H100.memory.bandwidth
    rates = [kernels.product(name, "bf16") for name in ("bf16", "fp8", "int4", "nvfp4", "mxfp4")]
    rates += [
        kernels.experts((family,), name, "bf16")
        for family in architecture.experts
        for name in ("bf16", "fp8-block128", "mxfp4", "nvfp4")
    ]
    for rate in rates:
        assert 0.02 * peak < rate.flops_per_s <= MOST_FRACTION * peak
        assert 0.1 * bandwidth < rate.bytes_per_s <= MOST_FRACTION * bandwidth
        assert 0 <= rate.fixed_s < 1e-3
    attention = kernels.attention("bf16")
    assert attention.prefill_flops_per_s <= MOST_FRACTION * peak
    assert attention.decode_bytes_per_s <= MOST_FRACTION * bandwidth


# aiconfigurator@095f58a, a100_sxm/moe, routing balanced, one rank: (family, format, hidden, width,
# chosen, experts, tokens, ms).
MEASURED_EXPERTS = [
    ("marlin", "int4", 4096, 14336, 2, 8, 1, 0.160),
    ("marlin", "int4", 4096, 14336, 2, 8, 1024, 4.66),
    ("marlin", "int4", 4096, 14336, 2, 8, 16384, 76.2),
    ("marlin", "int4", 7168, 2048, 8, 256, 4096, 19.4),
    ("marlin", "int4", 4096, 1536, 8, 128, 16384, 35.2),
    ("triton", "bf16", 4096, 14336, 2, 8, 1, 0.454),
]


@pytest.mark.parametrize(
    ("family", "fmt", "hidden", "width", "chosen", "num", "tokens", "ms"), MEASURED_EXPERTS
)
def test_kernels_of_experts_take_what_was_measured(
    family: str, fmt: str, hidden: int, width: int, chosen: int, num: int, tokens: int, ms: float
) -> None:
    ampere = load_architecture("ampere").model_copy(update={"serving": Serving()})
    rate = KernelRates(HARDWARE["a100-sxm-80gb"], ampere).experts((family,), fmt, "bf16")
    touched = num * (1 - (1 - chosen / num) ** tokens)
    rows = tokens * chosen + rate.tile_rows * touched
    element = {"int4": 0.53125, "bf16": 2.0}[fmt]
    moved = touched * 3 * hidden * width * element + tokens * chosen * (2 * hidden + 3 * width) * 2
    assert rate.time_s(rows * 6 * hidden * width, moved) * 1e3 == pytest.approx(ms, rel=0.25)


def test_every_accelerator_has_an_architecture() -> None:
    names = {key: architecture_of(spec.architecture).name for key, spec in HARDWARE.items()}
    assert names["h100-sxm-80gb"] == "Hopper"
    assert names["b200-sxm-180gb"] != names["rtx-pro-6000-server"]
    assert names["tpu-v5e"] == load_architecture("generic").name


def test_experts_over_ranks_hold_what_slices_hold() -> None:
    """TP cuts each expert, EP deals them whole: the weights a rank reads are the same share."""
    cut, dealt = step_model("mixtral-8x7b", H100, tp=4), step_model("mixtral-8x7b", H100, 4, ep=4)
    ratio = dealt.by_tokens(4096, has_decodes=1, has_prefill=0).experts_s
    ratio /= cut.by_tokens(4096, has_decodes=1, has_prefill=0).experts_s
    assert 0.9 < ratio < 1.2


def test_two_copies_of_the_attention_share_a_batch() -> None:
    rates = derated_rates(H100, 1, dp=2)
    model = MODELS["deepseek-v2-lite"]
    both = StepModel(model, H100, rates, dp=2, ep=2, kv_dtype="bf16")
    one = StepModel(model, H100, rates, kv_dtype="bf16")  # no faster than one of two
    reads = one.uniform_reads(64, 2000)
    pair = both.uniform_reads(128, 2000)
    assert both.attention.decode_s(128, pair) == pytest.approx(one.attention.decode_s(64, reads))
    assert both.decode(128, pair).collective_s > 0


def test_stages_take_parts_of_the_batch() -> None:
    """Each of four stages works on a quarter of the batch; all quarters pass all layers."""
    rates = derated_rates(H100, 1, pp=4)
    staged = StepModel(MODELS["llama-3.1-8b"], H100, rates, pp=4, kv_dtype="bf16")
    plain = StepModel(MODELS["llama-3.1-8b"], H100, rates, kv_dtype="bf16")
    whole = staged.decode(256, staged.uniform_reads(256, 1000))
    part = plain.decode(64, plain.uniform_reads(64, 1000))
    assert whole.gemm_s == pytest.approx(part.gemm_s)
    assert whole.attention_s == pytest.approx(part.attention_s)


def test_one_kernel_for_prompts_and_decodes_fills_a_tile_a_head() -> None:
    """FlashAttention 2 of paged caches: 64 queries a tile, of one head, with one of them used."""
    num, context, chunk = 57, 4100, Chunk(1991)
    found = {}
    for name in ("a100-sxm-80gb", "h100-sxm-80gb"):
        step = step_model("llama-3.1-8b", HARDWARE[name])
        reads = step.uniform_reads(num, context)
        both, prompt = step.mixed(num, reads, [chunk]), step.mixed(0, {}, [chunk])
        fixed_s = step.attention.decode_fixed_s
        found[name] = both.attention_s - prompt.attention_s - fixed_s
        alone_s = step.decode(num, reads).attention_s - fixed_s
        quick = ModelStepTime(step).mixed(num, num * context, [(1991, 0)])
        assert quick == pytest.approx(both.total_s)
        if name == "h100-sxm-80gb":
            assert found[name] == pytest.approx(alone_s)
        else:
            assert found[name] > 1.5 * alone_s
    rates = derated_rates(HARDWARE["a100-sxm-80gb"], 1).kernels
    assert rates is not None
    flop = 64 * 4 * 32 * 128 * num * context * 32  # tile, heads x width, positions, layers
    tiles_s = flop / rates.attention("bf16").prefill_flops_per_s
    assert found["a100-sxm-80gb"] == pytest.approx(tiles_s, rel=0.01)


def test_weight_only_formats_shrink_bytes_and_no_arithmetic() -> None:
    plain, packed = step_model("llama-3.1-8b", H100), step_model("llama-3.1-8b-int4", H100)
    one = [s.decode(1, s.uniform_reads(1, 100)).gemm_s for s in (plain, packed)]
    many = [s.mixed(0, {}, [Chunk(16_384)]).gemm_s for s in (plain, packed)]
    assert one[1] < 0.5 * one[0]
    assert many[1] > 0.95 * many[0]


def test_decodes_beyond_the_graphs_are_launched_layer_by_layer() -> None:
    step = step_model("llama-3.1-8b", H100)
    most = step.engine.cuda_graph_max_bs
    assert most is not None
    inside = step.by_tokens(most, has_decodes=1, has_prefill=0)
    beyond = step.by_tokens(most + 1, has_decodes=1, has_prefill=0)
    assert inside.host_s == 0
    assert beyond.host_s > 0


@pytest.mark.parametrize("spec", load_engine_performance(), ids=lambda spec: spec.name)
def test_engine_overheads_are_those_of_a_host(spec: object) -> None:
    engine = engine_overheads(spec)  # type: ignore[arg-type]
    assert 0 <= engine.step_s < 0.02
    assert 0 <= engine.sequence_s < 0.5e-3
    assert 0 <= engine.launch_s_per_layer < 2e-3
    assert 0 < engine.ttft_s(1000) < 0.2


def test_versions_find_their_family() -> None:
    assert engine_performance("vllm", (0, 6, 3)).name.startswith("vLLM 0.1")
    assert engine_performance("vllm", (0, 11)).name.startswith("vLLM 0.8")
    assert engine_performance("vllm", (0, 99)).name.startswith("vLLM 0.12")
    assert engine_performance("tensorrt-llm", None, "2024-08").first is None
    assert engine_performance("tensorrt-llm", (0, 17), variant="triton").variant == "triton"
    assert engine_performance("new-engine") == engine_performance("vllm")


def test_asynchronous_scheduling_has_the_times_of_a_family_that_does_it() -> None:
    """InferenceX's recipes of 2025 set `async-scheduling: true` on vLLM 0.11."""
    told = engine_performance("vllm", (0, 11), asynchronous=True)
    assert told == engine_performance("vllm", (0, 12))
    assert engine_performance("vllm", None, "2025-10", asynchronous=True) == told
    assert engine_performance("vllm", (0, 11), asynchronous=False).name.startswith("vLLM 0.8")
    assert engine_performance("vllm", (0, 6), asynchronous=True).name.startswith("vLLM 0.1")
    assert engine_performance("sglang", asynchronous=True).engine == "sglang"


@pytest.mark.parametrize("sizes", [(), (1, 2, 4)])
def test_steps_are_timed_by_the_array(sizes: tuple[int, ...]) -> None:
    """The fit of constants times thousands of steps at once."""
    numpy = pytest.importorskip("numpy")
    step = step_model("mixtral-8x7b", H100, tp=4, ep=4)
    step.engine = replace(step.engine, cuda_graph_max_bs=512, cuda_graph_sizes=sizes)
    decodes = [1.0, 3.0, 64.0, 600.0]
    at_once = step.by_tokens(numpy.array(decodes), has_decodes=1, has_prefill=0).total_s
    one_by_one = [step.by_tokens(d, has_decodes=1, has_prefill=0).total_s for d in decodes]
    assert at_once.tolist() == pytest.approx(one_by_one)


def test_experts_run_on_the_kernels_of_their_format() -> None:
    """vLLM has FlashInfer's kernels for MXFP4 on Blackwell, and Marlin's for INT4 everywhere."""
    blackwell = KernelRates(HARDWARE["b200-sxm-180gb"], load_architecture("blackwell"))
    backends = engine_performance("vllm").expert_backends
    found = {
        name: blackwell.expert_curve(expert_families(backends, name), name)[0]
        for name in ("mxfp4", "int4-group32", "nvfp4")
    }
    assert found == {"mxfp4": "trtllm-gen", "int4-group32": "marlin", "nvfp4": "trtllm-gen"}


def test_beyond_what_was_measured_is_said() -> None:
    rates = derated_rates(H100, 1)
    assert beyond_measured(rates, 8192) is None
    assert "32,768" in (beyond_measured(rates, 65_536) or "")
    assert any("as Hopper" in note for note in derated_rates(HARDWARE["h20-96gb"], 1, "bf16").notes)


def test_a_slower_link_is_a_slower_step() -> None:
    slow = load_hardware("l40s").spec
    step = step_model("llama-3.1-8b", slow, tp=2)
    free = StepModel(
        step.model, slow, replace(step.rates, all_reduce=None), tp=2, kv_dtype="bf16",
        engine=step.engine,
    )  # fmt: skip
    reads = step.uniform_reads(8, 1000)
    gap = step.decode(8, reads).total_s - free.decode(8, reads).total_s
    assert gap == pytest.approx(step.decode(8, reads).collective_s)
