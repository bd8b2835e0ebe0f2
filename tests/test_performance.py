"""The step model: metamorphic properties, physical floors, and figures from outside."""

from __future__ import annotations

import math
import random
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.formulas.attention import context_reads
from capplan.formulas.moe import distinct_experts, fullest_rank
from capplan.formulas.number_formats import FORMATS
from capplan.performance.batch import Batch, Chunk
from capplan.performance.rates import derated_rates, ideal_rates
from capplan.performance.step import StepModel
from capplan.specs.catalogue import load_hardware, load_model
from capplan.specs.hardware import HardwareSpec
from capplan.specs.kv_cache import kv_bytes_per_sequence, kv_bytes_per_token
from capplan.specs.model import Layers, ModelSpec
from capplan.specs.tensors import (
    num_params_active,
    tensors_of,
    weight_bytes,
    weight_bytes_per_gpu,
)

A100 = load_hardware("a100-sxm-80gb").spec
H100 = load_hardware("h100-sxm-80gb").spec
LLAMA = load_model("llama-3.1-8b").spec
MODELS = ["llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite", "gemma-3-27b", "qwen3.5-27b"]

models = st.sampled_from([load_model(name).spec for name in MODELS])
batches = st.integers(1, 512)
contexts = st.integers(1, 8192)
tps = st.sampled_from([1, 2, 4])


def step_model(model: ModelSpec, tp: int = 1, hardware: HardwareSpec = H100) -> StepModel:
    return StepModel(model, hardware, derated_rates(hardware, tp), tp=tp, kv_dtype="bf16")


def ideal(model: ModelSpec, hardware: HardwareSpec = A100) -> StepModel:
    return StepModel(model, hardware, ideal_rates(hardware), kv_dtype="bf16")


def decode_batch(step: StepModel, num: float, context: int) -> Batch:
    return Batch(num, step.uniform_reads(num, context))


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 300))
def test_context_reads_is_the_sum_it_stands_for(new: int, before: int, window: int) -> None:
    assert context_reads(new, before) == sum(before + i + 1 for i in range(new))
    assert context_reads(new, before, window) == sum(
        min(before + i + 1, window) for i in range(new)
    )


def test_decode_of_one_token_is_two_flop_a_parameter() -> None:
    step = ideal(LLAMA)
    work = step.work(decode_batch(step, 1, 1))
    matrices = sum(t.num_active_params for t in tensors_of(LLAMA) if t.is_matrix)
    attention = 32 * 4 * 32 * 128  # layers x 4 x heads x head_dim for one position
    assert work.flop == pytest.approx(2 * matrices + attention, rel=1e-12)
    assert matrices == num_params_active(LLAMA) - (2 * 32 + 1) * 4096  # all but the norms


def test_decode_reads_weights_but_not_the_embedding_table() -> None:
    step = ideal(LLAMA)
    work = step.work(decode_batch(step, 1, 2048))
    assert work.weight_bytes == weight_bytes(LLAMA) - 2 * 128256 * 4096
    # 2,048 positions read and one written.
    assert work.kv_bytes == 2049 * kv_bytes_per_token(LLAMA, "bf16")


@given(models, batches, contexts)
def test_parts_sum_to_the_total_and_beat_no_roof(model: ModelSpec, num: int, context: int) -> None:
    step = step_model(model)
    time = step.decode(num, step.uniform_reads(num, context))
    assert time.total_s == pytest.approx(sum(getattr(time, part.name) for part in fields(time)))
    work = step.work(decode_batch(step, num, context))
    assert time.total_s >= work.hbm_bytes / H100.memory.bandwidth
    assert time.total_s >= sum(
        flop / H100.compute.peak[name]  # type: ignore[index]
        for name, flop in work.flop_by_format.items()
    )


@given(models, batches, contexts, tps)
def test_time_grows_with_batch_and_context(
    model: ModelSpec, num: int, context: int, tp: int
) -> None:
    step = step_model(model, tp)

    def time(n: int, c: int) -> float:
        return step.decode(n, step.uniform_reads(n, c)).total_s

    slack = 1 - 1e-12
    assert time(num + 1, context) >= time(num, context) * slack
    assert time(num, context + 1) >= time(num, context) * slack
    # Sharing a step is never dearer than two steps.
    assert time(2 * num, context) <= 2 * time(num, context) / slack


@given(models, st.integers(1, 4096), st.integers(0, 4096))
def test_chunks_cost_what_the_prompt_costs(model: ModelSpec, first: int, rest: int) -> None:
    step = step_model(model)
    whole = step.work(step.batch(0, {}, [Chunk(first + rest)]))
    parts = [Chunk(first)] + ([Chunk(rest, first)] if rest else [])
    head = sum(t.num_active_params for t in tensors_of(model) if t.group == "lm_head")
    head += sum(t.num_active_params for t in tensors_of(model) if t.group == "embedding")
    works = [step.work(step.batch(0, {}, [part])) for part in parts]
    # Every chunk is taken to sample a row: the head works once more for two chunks.
    extra = 2 * head * (len(parts) - 1)
    assert sum(work.flop for work in works) == pytest.approx(whole.flop + extra, rel=1e-9)


def test_twice_the_layers_twice_the_work() -> None:
    doubled = LLAMA.model_copy(
        update={"layers": (Layers(repeat=64, mixer="attention", ffn="ffn"),)}
    )
    doubled.__dict__.pop("layer_runs", None)
    doubled = ModelSpec.model_validate(doubled.model_dump())
    one, two = ideal(LLAMA), ideal(doubled)
    head = 2.0 * 128256 * 4096
    once = one.work(decode_batch(one, 1, 1000)).flop - head
    twice = two.work(decode_batch(two, 1, 1000)).flop - head
    assert twice == pytest.approx(2 * once, rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("tp", [2, 4])
def test_shards_hold_at_least_the_whole(name: str, tp: int) -> None:
    model = load_model(name).spec
    assert tp * weight_bytes_per_gpu(model, tp) >= weight_bytes(model)
    whole = kv_bytes_per_sequence(model, 4096, "bf16")
    shards = tp * kv_bytes_per_sequence(model, 4096, "bf16", tp)
    assert shards >= whole * (1 - 1e-12)


def test_dense_shards_sum_to_the_whole_exactly() -> None:
    norms = 2 * (2 * 32 + 1) * 4096
    assert 8 * (weight_bytes_per_gpu(LLAMA, 8) - norms) == weight_bytes(LLAMA) - norms
    assert kv_bytes_per_token(LLAMA, "bf16", 8) == kv_bytes_per_token(LLAMA, "bf16") / 8
    # Below one KV head a rank, heads are replicated.
    assert kv_bytes_per_token(LLAMA, "bf16", 16) == kv_bytes_per_token(LLAMA, "bf16", 8)


def test_mla_latent_is_on_every_rank() -> None:
    model = load_model("deepseek-v3").spec
    assert kv_bytes_per_token(model, "bf16", 8) == 70_272


def test_sliding_window_stops_growing() -> None:
    model = load_model("gemma-3-27b").spec
    full = 10 * 2 * 16 * 128 * 2  # 10 of 62 layers see everything
    grown = kv_bytes_per_sequence(model, 8001, "bf16") - kv_bytes_per_sequence(model, 8000, "bf16")
    assert grown == full


@given(models, st.integers(1, 100_000))
def test_kv_bytes_linear_where_every_layer_is_full(model: ModelSpec, context: int) -> None:
    if any(getattr(mixer, "window", None) for mixer in model.mixers.values()):
        return
    state = kv_bytes_per_sequence(model, 0, "bf16")
    grown = kv_bytes_per_sequence(model, context, "bf16") - state
    assert grown == pytest.approx(context * kv_bytes_per_token(model, "bf16"))


def test_number_formats_are_those_of_the_schema() -> None:
    schema = ModelSpec.model_json_schema()
    names = schema["$defs"]["Quantization"]["properties"]["format"]["enum"]
    assert set(names) == set(FORMATS)


def test_cards_without_peer_to_peer_go_through_the_host() -> None:
    """Four L40S that could not reach each other: 5.2 GB/s and 26 us (aiconfigurator)."""
    through_host = derated_rates(load_hardware("rtx-4090").spec, 4).all_reduce
    direct = derated_rates(load_hardware("rtx-6000-ada").spec, 4).all_reduce
    assert through_host is not None
    assert direct is not None
    assert through_host.latency_s > max(direct.latency_s, 26e-6)
    # A server adds to what the kernels take, and takes nothing away.
    assert 0.7 * 5.2e9 < through_host.bus_bandwidth_bytes_per_s < 5.2e9
    assert through_host.through_host
    assert not direct.through_host


def test_corrections_of_a_generation_are_not_of_its_hosts() -> None:
    """RTX 4090 and RTX 5090 through the same kind of host: only the link's width tells."""
    ada = derated_rates(load_hardware("rtx-4090").spec, 2).all_reduce
    blackwell = derated_rates(load_hardware("rtx-5090").spec, 2).all_reduce
    assert ada is not None
    assert blackwell is not None
    assert ada.latency_s == blackwell.latency_s
    assert blackwell.bus_bandwidth_bytes_per_s == pytest.approx(2 * ada.bus_bandwidth_bytes_per_s)


@given(st.integers(2, 512), st.integers(1, 16), st.floats(1, 20_000))
def test_experts_touched(num_experts: int, chosen: int, tokens: float) -> None:
    """One token reads its own; no batch reads more than all, or than its tokens chose."""
    chosen = min(chosen, num_experts)
    assert distinct_experts(num_experts, chosen, 1) == pytest.approx(chosen)
    touched = distinct_experts(num_experts, chosen, tokens)
    assert chosen * 0.999 <= touched <= min(num_experts, chosen * tokens) * 1.001
    assert distinct_experts(num_experts, chosen, 2 * tokens) >= touched * 0.999
    # Uneven routing never reads more than even routing.
    assert touched <= num_experts * (1 - (1 - chosen / num_experts) ** tokens) * 1.001


@given(
    st.sampled_from([32, 64, 128, 256]),
    st.integers(1, 8),
    st.floats(1, 20_000),
    st.sampled_from([2, 4, 8]),
)
def test_the_fullest_rank_has_more_than_the_mean_and_not_all(
    num_experts: int, chosen: int, tokens: float, ranks: int
) -> None:
    touched, rows = fullest_rank(num_experts, chosen, tokens, ranks)
    mean = distinct_experts(num_experts, chosen, tokens) / ranks
    assert mean * 0.999 <= touched <= num_experts / ranks * 1.001
    assert chosen * tokens / ranks < rows


@pytest.mark.parametrize("tokens", [4, 16, 256])
def test_the_fullest_rank_is_that_of_drawn_routings(tokens: int) -> None:
    """128 experts on 8 ranks, four for each token by popularities with an exponential's spread."""
    rng = random.Random(f"routing {tokens}")
    found = []
    for _ in range(300):
        popularity = [rng.expovariate(1.0) for _ in range(128)]
        hits = [0] * 128
        for _ in range(tokens):
            # The four largest of u^(1/p): drawn by popularity without replacement.
            keys = sorted(range(128), key=lambda i: math.log(rng.random()) / popularity[i])
            for expert in keys[-4:]:
                hits[expert] += 1
        by_rank = [hits[at : at + 16] for at in range(0, 128, 16)]
        found.append(
            (max(sum(map(bool, rank)) for rank in by_rank), max(sum(rank) for rank in by_rank))
        )
    touched, rows = fullest_rank(128, 4, tokens, 8)
    assert touched == pytest.approx(sum(t for t, _ in found) / 300, rel=0.1)
    assert rows == pytest.approx(sum(r for _, r in found) / 300, rel=0.1)
