"""Hugging Face configs: published totals by family, quantisation, import, and hostile ones."""

from __future__ import annotations

import copy
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT, run_command
from hf_configs import PUBLISHED, RECALLED, Published, sizes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capplan.errors import CapplanError
from capplan.formulas.number_formats import FORMATS
from capplan.performance.batch import Chunk
from capplan.performance.rates import derated_rates
from capplan.performance.step import StepModel
from capplan.planner.parallelism import tp_fault
from capplan.specs.catalogue import load_hardware, load_model
from capplan.specs.ffns import MoEFFN
from capplan.specs.hf.architectures import READERS, REFUSED
from capplan.specs.hf.read import read_config
from capplan.specs.hf.stack import runs_of
from capplan.specs.kv_cache import kv_bytes_per_token, kv_layers
from capplan.specs.model import Layers, ModelSpec
from capplan.specs.model_file import yaml_text
from capplan.specs.tensors import (
    num_params_total,
    tensor_format,
    tensors_of,
    weight_bytes,
    weight_bytes_per_gpu,
)

CONFIGS = ROOT.parent / "shared" / "data" / "model_configs"
shared = pytest.mark.skipif(not CONFIGS.is_dir(), reason="no folder of published config.json files")
every_published = pytest.mark.parametrize("name", PUBLISHED)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("configs")


def read(folder: Path, config: dict[str, Any]) -> ModelSpec:
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return read_config(path)


def config_of(published: Published) -> dict[str, Any]:
    return {"architectures": [published.architecture], **copy.deepcopy(published.fields)}


def fault(folder: Path, name: str, **changes: Any) -> str:
    with pytest.raises(CapplanError) as caught:
        read(folder, {**config_of(PUBLISHED[name]), **changes})
    assert caught.value.location is not None
    return caught.value.message


@every_published
def test_published_total(name: str, tmp_path: Path) -> None:
    published = PUBLISHED[name]
    model = read(tmp_path, config_of(published))
    mtp = model.mtp_parameters if published.with_mtp else 0
    assert num_params_total(model) + mtp + published.beside == published.total


@every_published
def test_yaml_loads_back_to_an_equal_model(name: str, tmp_path: Path) -> None:
    model = read(tmp_path, config_of(PUBLISHED[name]))
    path = tmp_path / "model.yaml"
    path.write_text(yaml_text(model), encoding="utf-8")
    assert load_model(str(path)).spec == model
    assert max(map(len, path.read_text().splitlines())) <= 100 or len(str(tmp_path)) > 60


@every_published
def test_shards_and_steps_hold_for_every_family(name: str, tmp_path: Path) -> None:
    model = read(tmp_path, config_of(PUBLISHED[name]))
    hardware = load_hardware("h200-sxm-141gb" if _has("h200-sxm-141gb") else "h100-sxm-80gb").spec
    step = StepModel(model, hardware, derated_rates(hardware, 1), kv_dtype="bf16")
    short = step.mixed(8, step.uniform_reads(8, 1024), [Chunk(256)]).total_s
    long = step.mixed(8, step.uniform_reads(8, 4096), [Chunk(256, 1024)]).total_s
    assert 0 < short <= long
    assert sum(t.num_params for t in tensors_of(model)) == num_params_total(model)
    if tp_fault(model, 2) is None:
        assert weight_bytes(model) / 2 <= weight_bytes_per_gpu(model, 2) < weight_bytes(model)


def _has(hardware: str) -> bool:
    return (ROOT / "hardware" / f"{hardware}.yaml").is_file()


def test_recalled_totals_are_totals_of_the_table() -> None:
    assert set(PUBLISHED) > RECALLED


def test_minitron_is_its_card(tmp_path: Path) -> None:
    fields = sizes(
        3072, 32, 24, 8, 9216, 256000, head_dim=128, attention_bias=False, mlp_bias=False,
        tie_word_embeddings=False,
    )  # fmt: skip
    model = read(tmp_path, {"architectures": ["NemotronForCausalLM"], **fields})
    assert f"{num_params_total(model) / 1e9:.2f}" == "4.19"


def test_the_classes_that_are_refused_say_what_is_missing(tmp_path: Path) -> None:
    for name, why in REFUSED.items():
        assert name not in READERS
        with pytest.raises(CapplanError) as caught:
            read(tmp_path, {"architectures": [name]})
        assert why in caught.value.message


def test_readers_are_only_loaded_for_a_config() -> None:
    program = "import sys, capplan.cli.catalogue; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "capplan.specs.catalogue" in done.stdout
    assert "capplan.specs.hf" not in done.stdout


def test_absurdly_many_layers_are_no_hang(tmp_path: Path) -> None:
    config = {**config_of(PUBLISHED["llama-2-13b"]), "num_hidden_layers": 10_000}
    ignore = [f"model.layers.{i}.mlp.up_proj" for i in range(0, 10_000, 3)]
    settings = {"quant_method": "fp8", "modules_to_not_convert": ignore}
    model = read(tmp_path, {**config, "quantization_config": settings})
    assert model.ffn_counts == {"ffn": 6_666, "ffn-16-bit-fp8": 3_334}


# Layers and KV


def test_layers_are_written_as_people_write_them() -> None:
    dense, moe = ("mla", "dense"), ("mla", "moe")
    assert runs_of([dense] * 3 + [moe] * 58) == [
        {"repeat": 3, "mixer": "mla", "ffn": "dense"},
        {"repeat": 58, "mixer": "mla", "ffn": "moe"},
    ]
    sliding, full = ("sliding", "ffn"), ("full", "ffn")
    assert runs_of(([sliding] * 5 + [full]) * 10 + [sliding] * 2) == [
        {"repeat": 10, "pattern": [
            {"repeat": 5, "mixer": "sliding", "ffn": "ffn"}, {"mixer": "full", "ffn": "ffn"},
        ]},
        {"repeat": 2, "mixer": "sliding", "ffn": "ffn"},
    ]  # fmt: skip


@given(st.lists(st.sampled_from([("a", "f"), ("b", "f"), (None, "f"), ("a", None)]), min_size=1))
def test_runs_stand_for_the_layers(layers: list[tuple[str | None, str | None]]) -> None:
    runs = [run for part in runs_of(layers) for run in Layers.model_validate(part).runs()]
    assert [(mixer, ffn) for num, mixer, ffn in runs for _ in range(num)] == layers


DSA = {
    **config_of(PUBLISHED["moonlight"]), "architectures": ["DeepseekV32ForCausalLM"],
    "q_lora_rank": 1536, "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048,
}  # fmt: skip


def test_sparse_attention_keeps_all_and_reads_some(tmp_path: Path) -> None:
    model = read(tmp_path, DSA)
    latent, index = kv_layers(model, "bf16")
    assert (latent.window, latent.attends, latent.bytes_per_token) == (None, 2048, 1152)
    assert (index.window, index.attends, index.bytes_per_token) == (None, None, 132)
    assert kv_bytes_per_token(model, "bf16") == 27 * (1152 + 132)
    assert [layer.bytes_per_token for layer in kv_layers(model, "bf16", tp=2)] == [1152, 132]


def test_layers_share_the_last_indexer(tmp_path: Path) -> None:
    kinds = ["full", "shared", "shared"] * 9
    glm = {**DSA, "architectures": ["GlmMoeDsaForCausalLM"]}
    model = read(tmp_path, {**glm, "indexer_types": kinds})
    assert model.mixer_counts == {"mla": 9, "mla-shared-indexer": 18}
    indexer = 64 * 128 * 1536 + 128 * 2048 + 2 * 128 + 64 * 2048
    missing = num_params_total(read(tmp_path, glm)) - num_params_total(model)
    assert missing == 18 * indexer
    for kinds in (["shared"] * 27, ["full"] * 26, ["full"] * 26 + ["half"]):
        with pytest.raises(CapplanError):
            read(tmp_path, {**glm, "indexer_types": kinds})


def test_compressed_attention_keeps_a_window_and_entries(tmp_path: Path) -> None:
    # By DeepSeek-V4's report, KV at a million tokens is a few percent of V3.2's.
    model = read(tmp_path, config_of(PUBLISHED["deepseek-v4-flash"]))
    window, sparse_window, entries, index, _, heavy = kv_layers(model, "bf16")
    assert (window.bytes_per_token, window.window, window.attends) == (1024, 128, 128)
    assert (sparse_window.window, entries.window, index.window) == (128, None, None)
    assert (entries.bytes_per_token, entries.attends) == (1024 / 4, 512 * 4)
    assert (index.bytes_per_token, index.attends) == (132 / 4, None)
    assert (heavy.bytes_per_token, heavy.attends) == (1024 / 128, None)


# Quantisation


def quantised(folder: Path, name: str, **settings: Any) -> ModelSpec:
    return read(folder, {**config_of(PUBLISHED[name]), "quantization_config": settings})


def formats(model: ModelSpec) -> dict[str, str]:
    """Format by kind and tensor of all matrices."""
    return {
        f"{t.part or t.group}.{t.name}": tensor_format(t, model)
        for t in tensors_of(model)
        if t.is_matrix
    }


GROUP = {"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group", "symmetric": True}


@pytest.mark.parametrize(
    ("settings", "fmt"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block128"),
        ({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head"]}, "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, "int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "int4-group32"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "int8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "bnb_4bit_use_double_quant": True,
            },
            "nf4-double",
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "exclude_modules": ["lm_head"]}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, "nvfp4"),
        (
            {
                "quant_method": "compressed-tensors",
                "ignore": ["lm_head"],
                "config_groups": {"group_0": {"targets": ["Linear"], "weights": GROUP}},
            },
            "int4-symmetric-group32",
        ),
    ],
    ids=str,
)
def test_dialects(settings: dict[str, Any], fmt: str, tmp_path: Path) -> None:
    model = quantised(tmp_path, "llama-2-13b", **settings)
    assert model.weights.quantization is not None
    assert model.weights.quantization.model_dump() == {
        "format": fmt, "groups": ("attention", "dense_ffn"), "others": {},
    }  # fmt: skip
    hidden, width, vocab = 5120, 13824, 32000
    quantised_bytes = 40 * (
        4 * FORMATS[fmt].weight_bytes(hidden, hidden)
        + 2 * FORMATS[fmt].weight_bytes(width, hidden)
        + FORMATS[fmt].weight_bytes(hidden, width)
    )
    assert weight_bytes(model) == quantised_bytes + 2 * (2 * vocab * hidden + 81 * hidden)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quant_method": "aqlm"}, "`aqlm`"),
        ({}, "an empty value"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "weight_block_size"),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "3"),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "-1"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"x": 1}}, "dynamic"),
        ({"quant_method": "bitsandbytes"}, "load_in_4bit"),
        ({"quant_method": "modelopt", "quant_algo": "W2A2"}, "`W2A2`"),
        ({"quant_method": "compressed-tensors"}, "config_groups"),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {}}}, "no weights"),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "list of module names"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["re:(a+)+$"]}, "too involved"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["re:["]}, "not a pattern"),
    ],
    ids=str,
)
def test_what_no_dialect_knows_is_refused(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(CapplanError) as caught:
        quantised(tmp_path, "llama-2-13b", **settings)
    assert message in caught.value.message
    assert caught.value.location is not None


def test_an_ignore_list_that_names_layers_splits_the_kind(tmp_path: Path) -> None:
    ignore = ["lm_head", "model.layers.0.mlp*", "model.layers.1.mlp*"]
    model = quantised(
        tmp_path, "llama-2-13b", quant_method="modelopt", quant_algo="NVFP4", ignore=ignore
    )
    assert model.ffn_counts == {"ffn-16-bit": 2, "ffn": 38}
    assert formats(model)["ffn-16-bit.dense_ffn.up_proj"] == "bf16"
    assert formats(model)["ffn.dense_ffn.up_proj"] == "nvfp4"
    assert num_params_total(model) == 13_015_866_880 - 40 * 64


def test_experts_only(tmp_path: Path) -> None:
    # The ignore list of Kimi K2.5, as patterns.
    ignore = [
        "lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
        r"re:.*mlp\.(gate|up|gate_up|down)_proj.*",
    ]  # fmt: skip
    model = quantised(
        tmp_path, "moonlight", quant_method="compressed-tensors", ignore=ignore,
        config_groups={"group_0": {"targets": ["Linear"], "weights": GROUP}},
    )  # fmt: skip
    quantization = model.weights.quantization
    assert quantization is not None
    assert (quantization.groups, quantization.others) == (("experts",), {})


def test_formats_by_module(tmp_path: Path) -> None:
    layers = {
        f"model.layers.{i}.{module}": {"quant_algo": algorithm}
        for i in range(40)
        for module, algorithm in (
            ("self_attn.q_proj", "FP8"), ("self_attn.k_proj", "FP8"),
            ("self_attn.v_proj", "FP8"), ("mlp", "W4A16_NVFP4"),
        )
    }  # fmt: skip
    model = quantised(
        tmp_path, "llama-2-13b", quant_method="modelopt", quant_algo="MIXED_PRECISION",
        quantized_layers={**layers, "lm_head": {"quant_algo": "FP8"}},
    )  # fmt: skip
    found = formats(model)
    assert found["attention.q_proj"] == found["lm_head.lm_head"] == "fp8"
    assert found["attention.o_proj"] == "bf16"
    assert found["ffn.dense_ffn.down_proj"] == "nvfp4-weight-only"


@pytest.mark.parametrize("name", ["atention", "ffn.up_proj", "fnf.dense_ffn.up_proj", "ffn."])
def test_a_format_of_nothing_is_refused(name: str, tmp_path: Path) -> None:
    model = quantised(tmp_path, "llama-2-13b", quant_method="fp8")
    path = tmp_path / "model.yaml"
    others = f"others: {{{json.dumps(name)}: bf16}}"
    text = yaml_text(model).replace("attention, dense_ffn]", f"attention, dense_ffn], {others}")
    path.write_text(text)
    assert others in text
    with pytest.raises(CapplanError) as caught:
        load_model(str(path))
    assert name in caught.value.message


def test_what_modelopt_writes_beside_the_config(tmp_path: Path) -> None:
    beside = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside))
    assert read(tmp_path, config_of(PUBLISHED["llama-2-13b"])).stored_format == "fp8"


# `capplan models import` and `show`


def test_import_writes_a_file_that_loads(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(config_of(PUBLISHED["glm-4.5-air"])))
    code, text = run_command(f"models import {config} --name GLM")
    assert code == 0
    head = "name: GLM\nsources:\n  - GLM config.json\n\nmax_context_tokens: 131072\n"
    assert text.startswith(head)
    path = tmp_path / "glm.yaml"
    path.write_text(text)
    ours = load_model(str(path)).spec
    assert ours.layer_runs == read_config(config).layer_runs
    code, shown = run_command(f"models show {path}", width=100)
    assert code == 0
    assert "MTP layers, not loaded" in shown


def test_models_show_names_what_is_not_counted(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(config_of(PUBLISHED["qwen3-next-coder"])))
    _, shown = run_command(f"models show {config}", width=100)
    assert "not counted" in shown
    assert "multi-token-prediction layers" in shown


# Hostile configs


def test_contradictions_are_refused(folder: Path) -> None:
    assert "`layer_types`" in fault(folder, "gpt-oss-20b", num_hidden_layers=23)
    assert "`layer_types`" in fault(folder, "gpt-oss-20b", layer_types=["full_attention"] * 23)
    assert "`layer_types`" in fault(folder, "gpt-oss-20b", layer_types=["other"] * 24)
    assert "above `num_experts` 60" in fault(folder, "qwen1.5-moe", num_experts_per_tok=61)
    assert "mlp_only_layers" in fault(folder, "qwen1.5-moe", mlp_only_layers=[24])
    assert "num_hidden_layers" in fault(folder, "nemotron-nano-9b-v2", num_hidden_layers=55)
    assert "hybrid_override_pattern" in fault(
        folder, "nemotron-nano-9b-v2", hybrid_override_pattern="MXM"
    )
    assert "does not divide" in fault(folder, "falcon-40b", num_kv_heads=7)
    assert "num_attention_heads" in fault(folder, "moonlight", num_key_value_heads=8)
    assert "qk_head_dim" in fault(folder, "moonlight", qk_head_dim=100)
    assert "first_k_dense_replace" in fault(
        folder, "moonlight", mlp_layer_types=["dense"] * 2 + ["sparse"] * 25
    )
    assert "mamba_n_heads" in fault(folder, "granite-4.0-h-small", mamba_n_heads=127)
    assert "differs from the outer one" in fault(folder, "qwen3-vl-2b", tie_word_embeddings=False)
    assert "word_embed_proj_dim" in fault(folder, "opt-6.7b", word_embed_proj_dim=512)


BAD = [0, -1, -7, 1.5, 10**13, 10**40, "8", "", "x" * 300, True, False, [], [1], {}, {"a": 1},
       float("nan"), [None] * 24, ["full_attention"] * 3]  # fmt: skip
ABSENT = object()
# What these say is one of a few words or a number; any other value must not pass for one.
FREE = {"torch_dtype"}


def places(config: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The fields of a config and of those nested in it."""
    found = []
    for key, value in config.items():
        if key != "architectures":
            found.append((*path, key))
        if isinstance(value, dict):
            found += places(value, (*path, key))
    return found


def changed(config: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    config = copy.deepcopy(config)
    inner = config
    for step in path[:-1]:
        inner = inner[step]
    inner.pop(path[-1], None)
    if value is not ABSENT:
        inner[path[-1]] = value
    return config


@st.composite
def mutations(draw: st.DrawFn) -> tuple[str, tuple[str, ...], Any]:
    name = draw(st.sampled_from(sorted(PUBLISHED)))
    path = draw(st.sampled_from(places(config_of(PUBLISHED[name]))))
    return name, path, draw(st.sampled_from([*BAD, ABSENT, None]))


def sense(value: Any, given: Any) -> bool:
    """Whether a changed value is one that the field may have."""
    if value is ABSENT or value is None:
        return True
    if given is None:
        return type(value) is int
    if isinstance(given, list) and isinstance(value, list):
        return not value or type(value[0]) is type(given[0])
    return type(value) is type(given) and (isinstance(given, bool) or type(given) is int)


@settings(max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutations())
def test_a_mutation_is_refused_or_read_rightly(
    folder: Path, mutation: tuple[str, tuple[str, ...], Any]
) -> None:
    """A value of the wrong kind is refused, or it stands where nothing is sized by it."""
    name, path, value = mutation
    original = config_of(PUBLISHED[name])
    given_value: Any = original
    for step in path:
        given_value = given_value[step]
    try:
        model = read(folder, changed(original, path, value))
    except CapplanError as refusal:
        located = bool(refusal.message) and refusal.location is not None
        if not located:
            raise
        return
    assert num_params_total(model) > 0
    weight_bytes(model)
    kv_bytes_per_token(model, "bf16")
    if not sense(value, given_value):
        assert model == read(folder, original), (name, path, value)


@every_published
def test_one_more_word_is_one_more_row(name: str, folder: Path) -> None:
    config = config_of(PUBLISHED[name])
    text = config.get("text_config", config)
    field = "padded_vocab_size" if "padded_vocab_size" in text else "vocab_size"
    text[field] = text.get(field, 262_208)
    before = read(folder, config)
    text[field] += 1
    after = read(folder, config)
    tables = 1 if before.tied_embeddings else 2
    row = tables * before.hidden_size + (1 if before.head_bias else 0)
    hashed = before.ffns.get("hash")
    if isinstance(hashed, MoEFFN):
        row += before.ffn_counts["hash"] * hashed.experts_per_token
    assert num_params_total(after) - num_params_total(before) == row


@every_published
def test_widths_count_linearly(name: str, folder: Path) -> None:
    config = config_of(PUBLISHED[name])
    text = config.get("text_config", config)
    field = next(
        (f for f in ("moe_intermediate_size", "intermediate_size", "ffn_dim") if text.get(f)), None
    )
    if field is None:
        pytest.skip("no width is given")
    totals = []
    for step in range(3):
        totals.append(num_params_total(read(folder, config)))
        text[field] += 256
        assert step < 3
    assert totals[2] - totals[1] == totals[1] - totals[0] > 0


# The published files themselves


def published_files() -> list[str]:
    return sorted(path.name for path in CONFIGS.glob("*.json")) if CONFIGS.is_dir() else []


@shared
@pytest.mark.parametrize("file", published_files())
def test_every_published_file_is_read_or_refused_by_name(file: str, tmp_path: Path) -> None:
    path = CONFIGS / file
    architecture = json.loads(path.read_text(encoding="utf-8"))["architectures"][0]
    if architecture in REFUSED:
        with pytest.raises(CapplanError):
            read_config(path)
        return
    model = read_config(path)
    copied = tmp_path / "model.yaml"
    copied.write_text(yaml_text(model), encoding="utf-8")
    assert load_model(str(copied)).spec == model


@shared
def test_the_table_of_counts_is_current() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "parameter_counts.py"), str(CONFIGS)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[:500] + done.stderr
    assert done.stdout == (ROOT / "docs" / "parameter-counts.md").read_text(encoding="utf-8")


@shared
def test_totals_of_the_index_that_are_equal() -> None:
    with (CONFIGS / "index.csv").open(encoding="utf-8", newline="") as index:
        rows = [row for row in csv.DictReader(index) if row["index_total_size_bytes"]]
    assert rows
    for row in rows:
        model = read_config(CONFIGS / row["file"])
        assert weight_bytes(model) == int(row["index_total_size_bytes"])
