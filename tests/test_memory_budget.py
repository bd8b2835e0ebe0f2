"""Memory against what engines print: our own table of logged figures, and properties.

Each figure's source is the public issue or report that it was read from; sizes in GiB.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import CapplanError
from capplan.performance.loaded_weights import loaded_weights, stage_layers, stage_model
from capplan.performance.memory import MemoryRequest, memory_budget
from capplan.specs.catalogue import load_model
from capplan.specs.documents import read_yaml
from capplan.specs.editions import WeightEdition, load_edition, weight_edition, without_ending
from capplan.specs.engine import EngineSpec
from capplan.specs.engine_catalogue import FOLDER, engine_at, load_engine, load_engines
from capplan.specs.fields import validate
from capplan.specs.tensors import weight_bytes

GIB = 2**30
PLANNER = "llm-d-planner, accuracy report of vLLM 0.19.0"

# Printed load of one GPU: (name as in the log, quantisation, tp, pp, GiB, tolerance, source).
# Plain and block-wise models to the printed digits; kernels that repack to 1 %.
EXACT, PRINTED, PACKED = 0.0001, 0.004, 0.01
LOADED = [
    ("meta-llama/Meta-Llama-3.1-70B-Instruct", "", 8, 1, 16.4605, EXACT, "vllm#10702"),
    ("Qwen/Qwen2.5-7B-Instruct", "", 1, 1, 14.2487, EXACT, "vllm#10116"),
    ("meta-llama/Llama-3.1-8B-Instruct", "", 1, 1, 14.9888, EXACT, "vllm#10517"),
    ("meta-llama/Meta-Llama-3-8B-Instruct", "", 2, 1, 7.4829, EXACT, "vllm#5828"),
    ("meta-llama/Meta-Llama-3-8B", "", 1, 1, 14.9595, EXACT, "vllm#12330"),
    ("Qwen/Qwen2-7B-Instruct", "", 2, 1, 7.1217, EXACT, "vllm#17395"),
    ("Qwen/Qwen2-7B-Instruct", "", 1, 1, 14.2487, EXACT, "vllm#5696"),
    ("bigcode/starcoder2-15b", "", 2, 1, 14.8672, EXACT, "vllm#4432"),
    ("Qwen/Qwen2.5-7B-Instruct", "", 4, 1, 3.5546, EXACT, "vllm#13535"),
    ("mistralai/Mistral-7B-Instruct-v0.2", "", 1, 1, 13.4966, EXACT, "start-up log"),
    ("neuralmagic/Meta-Llama-3-8B-Instruct-FP8", "fp8", 1, 1, 8.4596, EXACT, "vllm#8009"),
    ("Qwen/Qwen3-30B-A3B", "", 4, 1, 14.2474, PRINTED, "vllm#17327"),
    ("Qwen/Qwen3-30B-A3B", "", 1, 1, 56.88, PRINTED, "start-up log on GB10"),
    ("Qwen/Qwen3-30B-A3B-FP8", "fp8", 1, 1, 29.09, PRINTED, "vllm#25350"),
    ("Qwen/Qwen2-Audio-7B-Instruct", "", 1, 1, 15.6454, PRINTED, "vllm#12168"),
    ("Qwen/Qwen2.5-VL-72B-Instruct", "", 4, 1, 34.434, PRINTED, "vllm#16570"),
    ("Qwen/Qwen2.5-1.5B-Instruct", "", 1, 1, 2.8875, PRINTED, "vllm#11173"),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", "", 2, 1, 13.9476, PRINTED, "vllm#13061"),
    ("deepseek-ai/DeepSeek-V3", "fp8", 16, 1, 40.3172, PRINTED, "vllm#15453"),
    ("deepseek-ai/DeepSeek-R1", "fp8", 16, 1, 40.3174, PRINTED, "vllm#16692"),
    ("meta-llama/Llama-3.1-8B-Instruct", "", 2, 1, 7.51, PRINTED, PLANNER),
    ("meta-llama/Llama-3.1-8B-Instruct", "", 4, 1, 3.77, PRINTED, PLANNER),
    ("meta-llama/Llama-3.1-8B-Instruct", "", 1, 2, 7.51, PRINTED, PLANNER),
    ("meta-llama/Llama-3.1-8B-Instruct", "", 1, 4, 4.26, PRINTED, PLANNER),
    ("meta-llama/Llama-3.1-8B-Instruct", "fp8 (online)", 1, 1, 8.49, PRINTED, PLANNER),
    ("Qwen/Qwen2.5-7B-Instruct", "", 2, 1, 7.12, PRINTED, PLANNER),
    ("Qwen/Qwen3-8B", "", 1, 1, 15.27, PRINTED, PLANNER),
    ("Qwen/Qwen3-8B", "", 1, 3, 5.48, PRINTED, PLANNER),
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "fp8", 2, 1, 33.88, PRINTED, "llm-d-planner"),
    ("openai/gpt-oss-120b", "mxfp4 (Marlin)", 1, 1, 65.9651, PRINTED, "vllm#23278"),
    ("openai/gpt-oss-120b", "mxfp4 (Triton)", 1, 1, 64.38, PRINTED, "vllm#33155"),
    ("openai/gpt-oss-20b", "mxfp4 (Triton)", 1, 1, 13.47, PRINTED, "llm-d-planner"),
    ("neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "w8a8 int8", 1, 1, 67.7229,
     PRINTED, "vllm#12569"),
    ("Qwen/Qwen2.5-0.5B-Instruct-AWQ", "awq_marlin", 1, 1, 0.4315, PACKED, "vllm#16141"),
    ("Qwen/Qwen2-VL-7B-Instruct-AWQ", "awq_marlin", 1, 1, 6.4651, PACKED, "vllm#11899"),
    ("TheBloke/CodeLlama-34B-Instruct-AWQ", "awq", 1, 1, 17.056, PACKED, "vllm#6509"),
    ("hugging-quants/Meta-Llama-3.1-405B-Instruct-AWQ-INT4", "awq_marlin", 4, 1, 51.1453, PACKED,
     "vllm#16259"),
    ("jakiAJK/DeepSeek-R1-Distill-Qwen-7B_GPTQ-int4", "gptq_marlin", 1, 1, 5.2045, PACKED,
     "vllm#12323"),
    ("Qwen/Qwen3.5-35B-A3B-GPTQ-Int4", "gptq_marlin", 1, 1, 21.05, PACKED, "vllm#36973"),
    ("Qwen/Qwen3.8-27B-FP8", "fp8", 2, 1, 14.28, PACKED, "vllm recipes, Qwen3.8-27B"),
]  # fmt: skip

# Printed pool: (engine, version, name, quantisation, visible GiB, share, tp, max_model_len, GiB,
# largest error, source). SGLang's visible is what it prints as free before loading.
POOLS = [
    ("vllm", "0.19.0", "meta-llama/Llama-3.1-8B-Instruct", "", 79.19, 0.95, 1, 8192, 58.11, 0.005,
     PLANNER),
    ("vllm", "0.19.0", "Qwen/Qwen2.5-7B-Instruct", "", 79.19, 0.95, 1, 8192, 58.53, 0.005, PLANNER),
    ("vllm", "0.19.0", "meta-llama/Llama-3.1-8B-Instruct", "fp8 (online)", 79.19, 0.95, 1, 8192,
     64.61, 0.005, PLANNER),
    ("vllm", "0.11.0", "meta-llama/Llama-3.1-8B-Instruct", "", 79.18, 0.9, 1, 16000, 51.38, 0.005,
     "llm-d-planner"),
    ("vllm", "0.11.0", "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "fp8", 79.18, 0.9, 2, 16000,
     32.0, 0.005, "llm-d-planner"),
    ("vllm", "0.11.0", "openai/gpt-oss-20b", "mxfp4 (Triton)", 79.18, 0.9, 1, 16000, 50.28, 0.005,
     "llm-d-planner"),
    ("vllm", "0.7", "Qwen/Qwen2.5-7B-Instruct", "", 21.99, 0.9, 1, 6600, 4.05, 0.04, "vllm#15360"),
    ("vllm", "0.6.3", "meta-llama/Llama-3.1-8B-Instruct", "", 23.58, 0.9, 1, 20000, 3.81, 0.04,
     "vllm#10517"),
    ("vllm", "0.6.3", "meta-llama/Llama-3.1-8B-Instruct", "", 23.58, 0.9, 1, 29000, 2.89, 0.05,
     "vllm#10517"),
    ("vllm", "0.17.1", "Qwen/Qwen3.5-35B-A3B-GPTQ-Int4", "gptq", 31.36, 0.9, 1, 32768, 5.18, 0.04,
     "vllm#36973"),
    ("sglang", "0.4.6", "meta-llama/Meta-Llama-3-8B-Instruct", "", 139.2, 0.8718, 1, 8192, 106.36,
     0.002, "sglang#6753"),
    ("sglang", "0.4.3", "Qwen/Qwen2.5-7B-Instruct", "", 38.97, 0.88, 1, 32768, 19.92, 0.002,
     "sglang#4094"),
    ("sglang", "0.4.3", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "", 78.49, 0.5, 2, 8192, 8.46,
     0.03, "sglang#3765"),
]  # fmt: skip


def request(**changes: object) -> MemoryRequest:
    base = MemoryRequest(
        model=load_model("llama-3.1-8b").spec,
        engine=load_engine("vllm", "0.19"),
        visible_bytes=79.19 * GIB,
        max_model_len=8192,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "quantisation", "tp", "pp", "logged", "tolerance", "source"), LOADED
)
def test_loaded_weights_are_the_logged_ones(
    name: str, quantisation: str, tp: int, pp: int, logged: float, tolerance: float, source: str
) -> None:
    found, ending = load_edition(name)
    edition = weight_edition(found.spec, f"{quantisation} {ending}".strip())
    weights = loaded_weights(found.spec, tp, pp, edition)
    assert weights.total_bytes / GIB == pytest.approx(logged, rel=tolerance), source


@pytest.mark.parametrize(
    ("engine", "version", "name", "quant", "visible", "share", "tp", "length", "logged", "error",
     "source"),
    POOLS,
)  # fmt: skip
def test_pool_is_near_the_logged_one_and_the_range_holds_it(
    engine: str, version: str, name: str, quant: str, visible: float, share: float, tp: int,
    length: int, logged: float, error: float, source: str,
) -> None:  # fmt: skip
    found, ending = load_edition(name)
    edition = weight_edition(found.spec, f"{quant} {ending}".strip())
    free = visible * GIB if engine == "sglang" else None
    budget = memory_budget(
        MemoryRequest(
            found.spec, load_engine(engine, version), visible * GIB, tp=tp, edition=edition,
            memory_share=share, max_model_len=length, free_before_bytes=free,
        )
    )  # fmt: skip
    assert budget.pool_bytes / GIB == pytest.approx(logged, rel=error), source
    assert budget.pool_low_bytes / GIB - 0.01 <= logged <= budget.pool_high_bytes / GIB + 0.01


def test_the_tables_hold_forty_figures_over_all_kinds() -> None:
    assert len(LOADED) + len(POOLS) >= 40
    kinds = {
        kind
        for name, *_ in LOADED
        for spec in [load_edition(name)[0].spec]
        for kind in [m.kind for m in spec.mixers.values()] + [f.kind for f in spec.ffns.values()]
    }
    assert kinds >= {"attention", "mla", "gated-deltanet", "dense", "moe"}


def test_peak_of_the_logits_carries_over_to_other_vocabularies_and_rows() -> None:
    # 38 bytes a logit comes from 256 rows of Qwen (V0, 1.42 GiB); it gives the peaks of 1,024 rows
    # that 0.11 prints: Llama 4.76, gpt-oss 7.38.
    for name, peak in (("llama-3.1-8b", 4.76), ("gpt-oss-20b", 7.38)):
        budget = memory_budget(
            request(model=load_model(name).spec, engine=load_engine("vllm", "0.11"))
        )
        term = budget.term("activation peak")
        assert term is not None
        assert term.likely_bytes / GIB == pytest.approx(peak, rel=0.01)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([s.name for s in load_engines()]),
    st.floats(20, 190),
    st.floats(0.3, 0.97),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "qwen3.5-27b"]),
)
def test_terms_and_pool_sum_to_the_whole(
    engine: str, visible: float, share: float, tp: int, model: str
) -> None:
    spec = next(s for s in load_engines() if s.name == engine)
    # Set, as engines raise their defaults with the GPU's memory: 70 GiB may leave less than 69.
    base = request(
        engine=spec, visible_bytes=visible * GIB, memory_share=share, tp=tp,
        model=load_model(model).spec, max_num_seqs=256, max_num_batched_tokens=2048,
    )  # fmt: skip
    budget = memory_budget(base)
    total = sum(term.likely_bytes for term in budget.terms) + budget.pool_bytes
    assert total == pytest.approx(budget.visible_bytes, rel=1e-9)
    assert budget.pool_low_bytes <= budget.pool_bytes <= budget.pool_high_bytes
    more = memory_budget(replace(base, visible_bytes=(visible + 1) * GIB))
    assert more.pool_bytes > budget.pool_bytes
    if spec.budget_rule != "share-of-free-after-load" or budget.pool_bytes > 0:
        fuller = memory_budget(replace(base, memory_share=share + 0.02))
        assert fuller.pool_bytes > budget.pool_bytes
    smaller = memory_budget(replace(base, edition=WeightEdition("fp32")))
    assert smaller.pool_bytes < budget.pool_bytes


@given(st.integers(1, 120), st.integers(1, 16))
def test_stages_hold_all_layers(num_layers: int, pp: int) -> None:
    layers = stage_layers(num_layers, pp)
    assert sum(layers) == num_layers
    assert len(layers) == pp
    assert max(layers) - min(layers) <= 1


def test_stages_and_shards_sum_to_the_model() -> None:
    model = load_model("deepseek-v3").spec
    layers = [stage_model(model, 4, stage).num_layers for stage in range(4)]
    assert layers == [15, 15, 16, 15]
    parts = [loaded_weights(model, 1, 4, None, stage).total_bytes for stage in range(4)]
    rotary = loaded_weights(model).rotary_bytes
    # Rounding and a final norm on every stage are all that is more.
    assert sum(parts) - 4 * rotary == pytest.approx(weight_bytes(model), rel=1e-3)


def test_a_stage_names_no_format_of_another_stages_parts() -> None:
    model = load_model("llama-3.1-405b-fbgemm-fp8").spec  # its first and last FFN stay BF16
    formats = [stage_model(model, 4, stage).weights.quantization for stage in range(4)]
    assert [bool(each and each.others) for each in formats] == [True, False, False, True]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_profile_loads_and_is_named_for_its_first_version(path: Path) -> None:
    spec = validate(EngineSpec, read_yaml(path))
    assert path.stem == f"{spec.engine}-{spec.versions.first}"
    assert not [text for text in spec.sources if "://" in text]


def test_versions_follow_one_another() -> None:
    for name in ("vllm", "sglang", "tensorrt-llm"):
        families = [spec for spec in load_engines() if spec.engine == name]
        assert [spec.since for spec in families] == sorted(spec.since for spec in families)
    for minor in range(1, 34):
        assert load_engine("vllm", f"0.{minor}").engine == "vllm"
    assert load_engine("vllm", "0.12.3").versions.first == "0.8.5"
    assert load_engine().versions.last == "0.33"
    assert load_engine("vllm", "0.33").memory_share(1) == 0.92
    assert engine_at("vllm", "2024-11").core == "v0"
    assert engine_at("vllm", "2025-10").versions.first == "0.8.5"


def test_defaults_by_gpu_class() -> None:
    newest = load_engine()
    assert newest.gpu_class(79 * GIB, "NVIDIA H100 80GB HBM3").max_num_batched_tokens == 8192
    assert newest.gpu_class(79 * GIB, "NVIDIA A100-SXM4-80GB").max_num_seqs == 256
    assert newest.gpu_class(178 * GIB, "NVIDIA B200").max_num_batched_tokens == 16384
    assert newest.gpu_class(23 * GIB, "RTX 4090").max_num_batched_tokens == 2048
    assert load_engine("sglang", "0.4.6").memory_share(4) == 0.85


# By the rules of server_args.py with the driver's total in MiB: (version, MiB, GPUs, copies of the
# attention, tokens a step, share).
SHARES = [
    ("0.4.6", 81_559, 4, 1, None, 0.85),
    ("0.5.2", 81_559, 1, 1, None, 0.874),  # 9.5 GiB and 0.5 a GPU
    ("0.5.2", 143_771, 8, 1, None, 0.886),
    ("0.5.2", 183_359, 1, 1, None, 0.821),
    ("0.5.5", 81_559, 1, 1, None, 0.835),  # 512 + 8192 x 1.5 + 256 x 2 + 128 MiB
    ("0.5.5", 81_559, 1, 1, 4096, 0.874),  # never less than 10 GiB
    ("0.5.5", 143_771, 8, 1, None, 0.897),
    ("0.5.5", 143_771, 8, 8, None, 0.833),  # chunks of 1,024; 512 x 8 x 4.5 MiB of padding
    ("0.5.5", 183_359, 1, 1, None, 0.857),
    ("0.5.5", 24_564, 1, 1, None, 0.847),
]


@pytest.mark.parametrize(("version", "mib", "gpus", "copies", "tokens", "share"), SHARES)
def test_sglang_reckons_its_share_from_what_it_reserves(
    version: str, mib: int, gpus: int, copies: int, tokens: int | None, share: float
) -> None:
    spec = load_engine("sglang", version)
    found = spec.share_of(mib * 2**20, "", gpus, copies, tokens)
    assert found == pytest.approx(share, abs=0.0015)


@pytest.mark.parametrize(
    ("name", "version", "says"),
    [("vlm", None, "vllm"), ("vllm", "0.40", "0.33"), ("vllm", "new", "0.33")],
)
def test_unknown_engines_and_versions(name: str, version: str | None, says: str) -> None:
    with pytest.raises(CapplanError) as caught:
        load_engine(name, version)
    assert says in str(caught.value.hint)


def test_a_profile_with_a_fault_says_where(tmp_path: Path) -> None:
    text = (FOLDER / "vllm-0.21.yaml").read_text(encoding="utf-8")
    path = tmp_path / "vllm.yaml"
    path.write_text(text.replace("block_size:", "blok_size:"), encoding="utf-8")
    with pytest.raises(CapplanError) as caught:
        validate(EngineSpec, read_yaml(path))
    assert "blok_size" in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", "Qwen/Qwen3-30B-A3B"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8", "Qwen/Qwen3-Coder-30B-A3B-Instruct"),
        ("jakiAJK/DeepSeek-R1-Distill-Qwen-7B_GPTQ-int4", "jakiAJK/DeepSeek-R1-Distill-Qwen-7B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
    ],
)
def test_endings_of_quantised_editions(name: str, base: str) -> None:
    assert without_ending(name) == base
