"""The model files: each loads, and counts to what is published of it, to the last unit."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from capplan.specs.catalogue import load_model
from capplan.specs.hf.read import read_config
from capplan.specs.kv_cache import kv_bytes_per_token
from capplan.specs.model import Layers, ModelSpec
from capplan.specs.tensors import num_params_active, num_params_total, weight_bytes

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "models").glob("*.yaml"))
CONFIGS = ROOT.parent / "shared" / "data" / "model_configs"
every_file = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])

HUB = "Hugging Face safetensors total"
# Checkpoints whose published total and size count the MTP layer; we name it beside ours.
WITH_MTP = {"qwen3.5-27b", "qwen3.5-35b-a3b"}
# stem: parameters, extra_parameters included, and who says so
TOTAL_PARAMS = {
    "baichuan2-7b": (7_505_973_248, "num_parameters of the checkpoint"),
    "chatglm3-6b": (6_243_584_000, "num_parameters of the checkpoint, without its buffers"),
    "codellama-34b": (33_743_970_304, HUB),
    "deepseek-r1-distill-qwen-14b": (14_770_033_664, HUB),
    "deepseek-r1-distill-qwen-32b": (32_763_876_352, HUB),
    "deepseek-r1-distill-qwen-7b": (7_615_616_512, f"{HUB} of Qwen2.5-7B, the same sizes"),
    "deepseek-v2": (235_741_434_880, HUB),
    "deepseek-v2-lite": (15_706_484_224, HUB),
    "deepseek-v3": (671_026_419_200, f"{HUB} of microsoft/MAI-DS-R1, without MTP layer"),
    "gemma-3-27b": (27_432_406_640, HUB),
    "gpt-oss-120b": (116_829_156_672, HUB),
    "gpt-oss-20b": (20_914_757_184, HUB),
    "kimi-k2": (1_026_408_232_448, "all safetensors headers, without scales and buffers"),
    "llama-2-13b": (13_015_864_320, "num_parameters of the checkpoint, without its buffers"),
    "llama-2-70b": (68_976_648_192, HUB),
    "llama-2-7b": (6_738_415_616, "num_parameters; the Hub's 6,738,417,664 less 32 x 64 buffers"),
    "llama-3-70b": (70_553_706_496, HUB),
    "llama-3-8b": (8_030_261_248, HUB),
    "llama-3.1-405b": (405_853_388_800, HUB),
    "llama-3.1-70b": (70_553_706_496, HUB),
    "llama-3.1-8b": (8_030_261_248, HUB),
    "llama-3.2-1b": (1_235_814_400, HUB),
    "llama-3.2-3b": (3_212_749_824, HUB),
    "mistral-7b-v0.1": (7_241_732_096, HUB),
    "mistral-7b-v0.2": (7_241_732_096, HUB),
    "mistral-7b-v0.3": (7_248_023_552, HUB),
    "mistral-nemo-12b": (12_247_782_400, HUB),
    "mistral-small-24b": (23_572_403_200, HUB),
    "mixtral-8x22b": (140_620_634_112, HUB),
    "mixtral-8x7b": (46_702_792_704, "total_size of the checkpoint index, halved"),
    "qwen1.5-14b": (14_167_290_880, HUB),
    "qwen1.5-7b": (7_721_324_544, HUB),
    "qwen2-72b": (72_706_203_648, HUB),
    "qwen2-7b": (7_615_616_512, HUB),
    "qwen2-audio-7b": (8_397_094_912, HUB),
    "qwen2-vl-7b": (8_291_375_616, HUB),
    "qwen2.5-0.5b": (494_032_768, HUB),
    "qwen2.5-1.5b": (1_543_714_304, HUB),
    "qwen2.5-14b": (14_770_033_664, HUB),
    "qwen2.5-32b": (32_763_876_352, HUB),
    "qwen2.5-3b": (3_085_938_688, HUB),
    "qwen2.5-72b": (72_706_203_648, HUB),
    "qwen2.5-7b": (7_615_616_512, HUB),
    "qwen2.5-7b-base": (7_615_616_512, HUB),
    "qwen2.5-vl-72b": (73_410_777_344, HUB),
    "qwen3-0.6b": (596_049_920, "num_parameters; the Hub's 751,632,384 less the tied head"),
    "qwen3-1.7b": (1_720_574_976, "num_parameters; the Hub's 2,031,739,904 less the tied head"),
    "qwen3-14b": (14_768_307_200, HUB),
    "qwen3-235b-a22b": (235_093_634_560, HUB),
    "qwen3-30b-a3b": (30_532_122_624, HUB),
    "qwen3-30b-a3b-2507": (30_532_122_624, HUB),
    "qwen3-32b": (32_762_123_264, HUB),
    "qwen3-4b": (4_022_468_096, HUB),
    "qwen3-8b": (8_190_735_360, HUB),
    "qwen3-coder-480b-a35b": (480_154_875_392, HUB),
    "qwen3-vl-30b-a3b": (31_070_754_032, HUB),
    "qwen3.5-27b": (27_781_427_952, HUB),
    "qwen3.5-35b-a3b": (35_951_822_704, HUB),
    "qwq-32b": (32_763_876_352, HUB),
    "starcoder2-15b": (15_957_889_024, HUB),
    "yi-34b": (34_388_917_248, HUB),
}

# At bf16, over all layers with windows not yet full.
KV_BYTES_PER_TOKEN = {
    "deepseek-v2-lite": 31_104,
    "deepseek-v3": 70_272,
    "gemma-3-27b": 507_904,
    "gpt-oss-120b": 73_728,
    "gpt-oss-20b": 49_152,
    "kimi-k2": 70_272,
    "llama-2-7b": 524_288,
    "llama-3.1-405b": 516_096,
    "llama-3.1-70b": 327_680,
    "llama-3.1-8b": 131_072,
    "llama-3.2-1b": 32_768,
    "mistral-7b-v0.1": 131_072,
    "mistral-nemo-12b": 163_840,
    "mixtral-8x22b": 229_376,
    "qwen2.5-7b": 57_344,
    "qwen3-0.6b": 114_688,
    "qwen3-30b-a3b": 98_304,
    "qwen3-32b": 262_144,
    "qwen3.5-27b": 65_536,
    "qwen3.5-35b-a3b": 20_480,
}

# Billions, as on the model's card or in its report.
ACTIVE_PARAMS = {
    "deepseek-v2": "21",
    "deepseek-v2-lite": "2.4",
    "deepseek-v3": "37",
    "gpt-oss-120b": "5.1",
    "gpt-oss-20b": "3.6",
    "kimi-k2": "32",
    "mixtral-8x22b": "39",
    "mixtral-8x7b": "12.9",
    "qwen3-235b-a22b": "22",
    "qwen3-30b-a3b": "3.3",
    "qwen3-30b-a3b-2507": "3.3",
    "qwen3-coder-480b-a35b": "35",
    "qwen3-vl-30b-a3b": "3.3",
    "qwen3.5-35b-a3b": "3",
}

NAMES = {
    "DeepSeek-R1": "deepseek-v3",
    "Llama 3.3 70B": "llama-3.1-70b",
    "Qwen/Qwen2.5-7B-Instruct": "qwen2.5-7b",
    "deepseek-ai/DeepSeek-R1-0528": "deepseek-v3",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B": "llama-3.1-8b",
    "meta-llama/Llama-3.3-70B-Instruct": "llama-3.1-70b",
    "meta-llama/Meta-Llama-3-8B-Instruct": "llama-3-8b",
    "openai/gpt-oss-120b": "gpt-oss-120b",
}


def load(stem: str) -> ModelSpec:
    return load_model(str(ROOT / "models" / f"{stem}.yaml")).spec


def normalised(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip()).lower()


def owners() -> list[tuple[str, str]]:
    """Every name of the catalogue, normalised, with the file it stands for."""
    return [
        (normalised(name), path.stem)
        for path in FILES
        for name in (path.stem, *load(path.stem).aliases)
    ]


def restacked(model: ModelSpec, *layers: Layers) -> ModelSpec:
    """The same model with other layers."""
    data = model.model_dump()
    data["layers"] = [part.model_dump() for part in layers]
    data["mixers"] = {part.mixer: data["mixers"][part.mixer] for part in layers}
    data["ffns"] = {part.ffn: data["ffns"][part.ffn] for part in layers}
    data["extra_parameters"] = {}
    return ModelSpec.model_validate(data)


@every_file
def test_loads_and_is_named_in_kebab_case(path: Path) -> None:
    spec = load(path.stem)
    assert re.fullmatch(r"[a-z0-9.]+(-[a-z0-9.]+)*", path.stem)
    assert spec.name
    assert max(len(line) for line in path.read_text(encoding="utf-8").splitlines()) <= 100


def test_every_name_belongs_to_one_file() -> None:
    names = [name for name, _ in owners()]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize(("name", "owner"), NAMES.items(), ids=list(NAMES))
def test_what_people_paste_is_known(name: str, owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAPPLAN_PATH", raising=False)
    assert load_model(name).id == owner


@every_file
def test_one_stack_names_its_parts_attention_and_ffn(path: Path) -> None:
    spec = load(path.stem)
    if len(spec.layer_runs) == 1:
        assert [*spec.mixers, *spec.ffns] == ["attention", "ffn"]


@every_file
def test_sources_name_the_config_and_no_private_path(path: Path) -> None:
    sources = load(path.stem).sources
    assert sources[0].endswith(" config.json")
    assert not [text for text in sources if "://" in text or text.startswith(("/", "~", "."))]


@every_file
def test_stated_total_is_the_counted_one(path: Path) -> None:
    spec = load(path.stem)
    counted = num_params_total(spec) + (spec.mtp_parameters if path.stem in WITH_MTP else 0)
    assert any(f"{counted:,}" in text for text in spec.sources)


@pytest.mark.parametrize("stem", TOTAL_PARAMS)
def test_total_params(stem: str) -> None:
    total, source = TOTAL_PARAMS[stem]
    spec = load(stem)
    mtp = spec.mtp_parameters if stem in WITH_MTP else 0
    assert num_params_total(spec) + mtp == total, source


@pytest.mark.parametrize("stem", KV_BYTES_PER_TOKEN)
def test_kv_bytes_per_token(stem: str) -> None:
    assert kv_bytes_per_token(load(stem), "bf16") == KV_BYTES_PER_TOKEN[stem]


@pytest.mark.parametrize("stem", ACTIVE_PARAMS)
def test_active_params(stem: str) -> None:
    # We count what one decoded token passes: everything but idle experts and the input embedding,
    # LM head included (`num_params_active`). Cards follow no single rule: gpt-oss, DeepSeek and
    # Kimi leave the input embedding out, Mixtral and Qwen3 count it; some cut, some round. One of
    # the two counts agrees with the card within a unit of its last digit.
    spec = load(stem)
    ours = num_params_active(spec)
    card = ACTIVE_PARAMS[stem]
    unit = 1e8 if "." in card else 1e9
    with_embedding = ours + spec.vocab_size * spec.hidden_size
    assert min(abs(float(card) * 1e9 - n) for n in (ours, with_embedding)) < unit


def test_every_moe_model_has_its_active_params_checked() -> None:
    moe = {
        path.stem
        for path in FILES
        if any(ffn.kind == "moe" for ffn in load(path.stem).ffns.values())
    }
    assert moe == set(ACTIVE_PARAMS)


@every_file
def test_weight_bytes_of_16_bit_models(path: Path) -> None:
    spec = load(path.stem)
    if spec.weights.quantization is None:
        assert weight_bytes(spec) == 2 * num_params_total(spec)


@pytest.mark.parametrize(
    ("stem", "total_size"),
    [
        ("gpt-oss-120b", 65_248_815_744),
        ("gpt-oss-20b", 13_761_264_768),
        ("llama-3.1-70b", 141_107_412_992),
        ("llama-3.1-8b", 16_060_522_496),
        ("mixtral-8x7b", 93_405_585_408),
        ("qwen2.5-7b", 15_231_233_024),
        ("qwen3-30b-a3b", 61_064_245_248),
        ("qwen3-32b", 65_524_246_528),
        ("qwen3.5-27b", 55_562_855_904),
        ("qwen3.5-35b-a3b", 71_903_645_408),
    ],
)
def test_weight_bytes_are_those_of_the_checkpoint_index(stem: str, total_size: int) -> None:
    spec = load(stem)
    mtp = spec.mtp_parameters if stem in WITH_MTP else 0
    assert weight_bytes(spec) + 2 * mtp == total_size


def test_deepseek_v3_with_its_mtp_layer_is_the_checkpoint() -> None:
    # Elements by type that the Hub reports for deepseek-ai/DeepSeek-V3 (total 684,531,386,000):
    # F8_E4M3, BF16, and F32 (scales and router biases).
    fp8, bf16, fp32 = 680_571_043_840, 3_918_786_560, 41_555_600
    spec = load("deepseek-v3")
    spec = restacked(
        spec,
        Layers(repeat=3, mixer="mla", ffn="dense"),
        Layers(repeat=59, mixer="mla", ffn="moe"),  # the MTP layer is one more
    )
    hidden, vocab = spec.hidden_size, spec.vocab_size
    # Embedding and head of its own, the projection that joins both inputs, three norms.
    beside = 2 * vocab * hidden + 2 * hidden * hidden + 3 * hidden
    router_biases = 59 * 256
    assert num_params_total(spec) + beside == 684_489_845_504
    assert num_params_total(spec) + beside == fp8 + bf16 + router_biases
    # We count the router biases at 16 bits; the checkpoint has them at 32.
    assert weight_bytes(spec) + 2 * beside + 2 * router_biases == fp8 + 2 * bf16 + 4 * fp32


def test_kimi_k2_is_the_checkpoint() -> None:
    # Bytes of all tensors by the 61 file headers of Kimi-K2-Instruct. Beside the weights there are
    # 56 buffer entries a layer; router biases are at 32 bits there and at 16 bits here.
    beside = 2 * 61 * 56 + 2 * 60 * 384
    assert weight_bytes(load("kimi-k2")) + beside == 1_029_173_256_720


@pytest.mark.parametrize("stem", ["qwen3.5-27b", "qwen3.5-35b-a3b"])
def test_qwen35_mtp_layer_is_one_attention_layer(stem: str) -> None:
    spec = load(stem)
    hidden = spec.hidden_size
    layer = restacked(spec, Layers(mixer="attention", ffn="ffn"))
    # The final norm is in `layer`; embedding and head are the model's own.
    own = num_params_total(layer) - 2 * spec.vocab_size * hidden
    assert spec.mtp_parameters == own + 2 * hidden * hidden + 2 * hidden


def transformer_blocks(count: int, hidden: int, intermediate: int) -> int:
    """Parameters of pre-norm ViT blocks with biases: four projections, two layers, two norms."""
    attention = 4 * (hidden * hidden + hidden)
    mlp = 2 * hidden * intermediate + intermediate + hidden
    return count * (attention + mlp + 4 * hidden)


def test_gemma_vision_tower_by_tensor() -> None:
    hidden = 1152
    patches = 3 * 14 * 14 * hidden + hidden
    positions = (896 // 14) ** 2 * hidden
    tower = patches + positions + transformer_blocks(27, hidden, 4304) + 2 * hidden
    projector = hidden * 5376 + hidden
    extra = load("gemma-3-27b").extra_parameters
    assert list(extra.values()) == [tower, projector]


def test_qwen2_vl_vision_tower_by_tensor() -> None:
    hidden, merged = 1280, 4 * 1280
    patches = 3 * 2 * 14 * 14 * hidden
    merger = 2 * hidden + (merged + 1) * merged + (merged + 1) * 3584
    tower = patches + transformer_blocks(32, hidden, 5120) + merger
    assert list(load("qwen2-vl-7b").extra_parameters.values()) == [tower]


def test_qwen3_vl_vision_tower_by_tensor() -> None:
    hidden, merged = 1152, 4 * 1152
    patches = 3 * 2 * 16 * 16 * hidden + hidden
    positions = 2304 * hidden
    mergers = 4 * ((merged + 1) * merged + (merged + 1) * 2048) + 2 * hidden + 3 * 2 * merged
    tower = patches + positions + transformer_blocks(27, hidden, 4304) + mergers
    assert list(load("qwen3-vl-30b-a3b").extra_parameters.values()) == [tower]


@pytest.mark.parametrize("stem", ["qwen3.5-27b", "qwen3.5-35b-a3b"])
def test_qwen35_vision_tower_by_tensor(stem: str) -> None:
    spec = load(stem)
    hidden, merged = 1152, 4 * 1152
    patches = 3 * 2 * 16 * 16 * hidden + hidden
    positions = 2304 * hidden
    merger = 2 * hidden + (merged + 1) * merged + (merged + 1) * spec.hidden_size
    tower = patches + positions + transformer_blocks(27, hidden, 4304) + merger
    assert spec.extra_parameters["vision tower"] == tower


def published_configs() -> list[tuple[str, str]]:
    """(stem, config file) of the catalogue's models whose config lies here."""
    if not CONFIGS.is_dir():
        return []
    known = dict(owners())
    with (CONFIGS / "index.csv").open(encoding="utf-8", newline="") as index:
        rows = [(row["model"], row["file"]) for row in csv.DictReader(index)]
    return [(known[normalised(model)], file) for model, file in rows if normalised(model) in known]


@pytest.mark.skipif(not CONFIGS.is_dir(), reason="no folder of published config.json files")
@pytest.mark.parametrize(("stem", "file"), published_configs())
def test_equals_the_published_config(stem: str, file: str) -> None:
    ours_only = {"name", "aliases", "sources", "released", "note"}
    published = read_config(CONFIGS / file).model_dump(exclude=ours_only)
    assert load(stem).model_dump(exclude=ours_only) == published
