"""The model files: each loads, and counts to what is published of it, to the last unit."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path

import pytest

from capplan.errors import CapplanError
from capplan.specs.catalogue import load_hardware, load_model
from capplan.specs.hf.read import read_config
from capplan.specs.kv_cache import kv_bytes_per_token
from capplan.specs.model import Layers, ModelSpec
from capplan.specs.tensors import num_params_active, num_params_total, weight_bytes

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "models").glob("*.yaml"))
CONFIGS = ROOT.parent / "shared" / "data" / "model_configs"
every_file = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])

HUB = "Hugging Face safetensors total"
COUNTED = "counted; no published total was found"
# Totals that are remembered and that no source was found for: the count equals what is remembered.
RECALLED = {
    "bloom-176b", "bloom-7b1", "command-r", "granite-3.1-8b", "opt-13b", "opt-6.7b",
    "phi-3.5-moe",
}  # fmt: skip
# Checkpoints whose published total and size count the MTP layer; we name it beside ours.
WITH_MTP = {
    "deepseek-v3.2", "deepseek-v4-flash", "deepseek-v4-pro", "glm-4.5", "glm-4.5-air",
    "glm-4.7-flash", "glm-5", "glm-5.2", "mimo-7b", "nemotron-3-super-120b-a12b", "qwen3.5-0.8b",
    "qwen3.5-122b-a10b", "qwen3.5-27b", "qwen3.5-2b", "qwen3.5-35b-a3b", "qwen3.5-397b-a17b",
    "qwen3.5-4b", "qwen3.5-9b",
}  # fmt: skip
# stem: parameters, extra_parameters included, and who says so. Quantised editions are held
# against the file that they are an edition of.
TOTAL_PARAMS = {
    "aquila-7b": (7_295_537_152, COUNTED),
    "baichuan2-13b": (13_896_668_160, COUNTED),
    "baichuan2-7b": (7_505_973_248, "num_parameters of the checkpoint"),
    "bloom-176b": (176_247_271_424, COUNTED),
    "bloom-7b1": (7_069_016_064, COUNTED),
    "chatglm3-6b": (6_243_584_000, "num_parameters of the checkpoint, without its buffers"),
    "codellama-13b": (13_016_028_160, f"{HUB} of meta-llama/CodeLlama-13b-Instruct-hf"),
    "codellama-34b": (33_743_970_304, HUB),
    "codellama-70b": (68_976_910_336, COUNTED),
    "codellama-7b": (6_738_546_688, HUB),
    "codestral-22b": (22_247_282_688, COUNTED),
    "command-a": (111_057_580_032, HUB),
    "command-r": (34_980_831_232, COUNTED),
    "command-r-08-2024": (32_296_476_672, f"{HUB} of CohereLabs/aya-expanse-32b"),
    "command-r-plus": (103_810_674_688, f"{HUB} of CohereForAI/c4ai-command-r-plus-08-2024"),
    "command-r-plus-08-2024": (103_810_674_688, HUB),
    "decilm-7b": (7_107_514_368, COUNTED),
    "deepseek-coder-33b": (33_342_991_360, COUNTED),
    "deepseek-coder-6.7b": (6_740_512_768, HUB),
    "deepseek-r1-0528-qwen3-8b": (8_190_735_360, f"{HUB} of Qwen/Qwen3-8B"),
    "deepseek-r1-distill-qwen-1.5b": (1_777_088_000, HUB),
    "deepseek-r1-distill-qwen-14b": (14_770_033_664, HUB),
    "deepseek-r1-distill-qwen-32b": (32_763_876_352, HUB),
    "deepseek-r1-distill-qwen-7b": (7_615_616_512, f"{HUB} of Qwen2.5-7B, the same sizes"),
    "deepseek-v2": (235_741_434_880, HUB),
    "deepseek-v2-lite": (15_706_484_224, HUB),
    "deepseek-v3": (671_026_419_200, f"{HUB} of microsoft/MAI-DS-R1, without MTP layer"),
    "deepseek-v3.2": (685_355_329_792, HUB),
    "deepseek-v4-flash": (290_944_616_402, HUB),
    "deepseek-v4-pro": (1_598_839_674_782, HUB),
    "devstral-small-24b": (23_572_403_200, HUB),
    "falcon-180b": (178_557_088_768, "the Hub's 179,522,565,120 less the tied head"),
    "falcon-40b": (41_303_293_952, "the Hub's 41,835,970,560 less the tied head"),
    "falcon-7b": (6_921_720_704, "the Hub's 7,217,189,760 less the tied head"),
    "gemma-2-27b": (27_227_128_320, HUB),
    "gemma-2-2b": (2_614_341_888, HUB),
    "gemma-2-9b": (9_241_705_984, HUB),
    "gemma-2b": (2_506_172_416, HUB),
    "gemma-3-12b": (12_187_325_040, HUB),
    "gemma-3-1b": (999_885_952, HUB),
    "gemma-3-27b": (27_432_406_640, HUB),
    "gemma-3-4b": (4_300_079_472, HUB),
    "gemma-4-26b-a4b": (25_805_936_206, HUB),
    "gemma-4-31b": (31_273_088_876, HUB),
    "gemma-7b": (8_537_680_896, f"{HUB} of google/gemma-1.1-7b-it"),
    "glm-4-32b-0414": (32_566_081_536, COUNTED),
    "glm-4-9b": (9_399_951_360, HUB),
    "glm-4-9b-0414": (9_400_279_040, HUB),
    "glm-4.5": (358_337_791_296, HUB),
    "glm-4.5-air": (110_468_824_832, HUB),
    "glm-4.6": (352_797_829_024, "the Hub's 356,785,898,816 less the MTP layer"),
    "glm-4.7-flash": (31_221_488_576, HUB),
    "glm-5": (753_864_139_008, HUB),
    "glm-5.2": (753_329_940_480, HUB),
    "gpt-j-6b": (6_050_882_784, "as printed in training logs"),
    "gpt-neox-20b": (20_554_567_680, "table of the model's card"),
    "gpt-oss-120b": (116_829_156_672, HUB),
    "gpt-oss-20b": (20_914_757_184, HUB),
    "granite-3.1-8b": (8_170_848_256, COUNTED),
    "granite-3.3-2b": (2_533_539_840, HUB),
    "granite-3.3-8b": (8_170_864_640, HUB),
    "granite-4.0-h-micro": (3_191_396_096, HUB),
    "granite-4.0-h-small": (32_207_337_984, HUB),
    "granite-4.0-h-tiny": (6_939_037_248, HUB),
    "granite-4.0-micro": (3_402_836_480, HUB),
    "internlm2-20b": (19_861_149_696, HUB),
    "internlm2-7b": (7_737_708_544, f"{HUB} of internlm/internlm2_5-7b-chat"),
    "jamba-1.5-mini": (51_570_323_328, f"{HUB} of ai21labs/AI21-Jamba-Mini-1.5"),
    "kimi-k2": (1_026_408_232_448, "all safetensors headers, without scales and buffers"),
    "kimi-k2-0905": (1_026_408_232_448, "the Hub's 1,026,470,735,448 less scales and buffers"),
    "kimi-k2.5": (1_026_879_376_368, "the Hub's 1,058,589,420,528 less scales and shapes"),
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
    "llama-3.3-nemotron-super-49b": (49_867_145_216, HUB),
    "llama-4-maverick": (401_583_781_376, HUB),
    "llama-4-scout": (108_641_793_536, HUB),
    "mimo-7b": (7_833_409_536, HUB),
    "minimax-m2": (228_689_764_864, HUB),
    "minimax-m2.7": (228_689_764_864, HUB),
    "ministral-3-14b": (13_945_031_680, "the Hub's total of the FP8 edition less its scales"),
    "ministral-3-3b": (3_849_090_048, HUB),
    "ministral-3-8b": (8_918_026_240, "the Hub's total of the FP8 edition less its scales"),
    "ministral-8b": (8_019_808_256, HUB),
    "mistral-7b-v0.1": (7_241_732_096, HUB),
    "mistral-7b-v0.2": (7_241_732_096, HUB),
    "mistral-7b-v0.3": (7_248_023_552, HUB),
    "mistral-large-2-123b": (122_610_069_504, HUB),
    "mistral-nemo-12b": (12_247_782_400, HUB),
    "mistral-small-24b": (23_572_403_200, HUB),
    "mistral-small-3.2-24b": (24_011_361_280, HUB),
    "mixtral-8x22b": (140_620_634_112, HUB),
    "mixtral-8x22b-instruct": (140_630_071_296, HUB),
    "mixtral-8x7b": (46_702_792_704, "total_size of the checkpoint index, halved"),
    "mpt-30b": (29_957_200_896, COUNTED),
    "mpt-7b": (6_649_286_656, COUNTED),
    "nemotron-3-nano-30b-a3b": (31_577_940_288, "the Hub's total and 23 x 128 router biases"),
    "nemotron-3-super-120b-a12b": (123_611_033_088, "the Hub's total and 41 x 512 router biases"),
    "nemotron-3-ultra-550b-a55b": (549_308_993_536, COUNTED),
    "nemotron-h-47b": (46_791_554_816, COUNTED),
    "nemotron-h-56b": (56_324_350_464, COUNTED),
    "nemotron-h-8b": (8_100_852_736, HUB),
    "nemotron-nano-12b-v2": (12_310_001_152, COUNTED),
    "nemotron-nano-9b-v2": (8_888_227_328, HUB),
    "olmo-2-13b": (13_716_198_400, HUB),
    "olmo-2-32b": (32_234_279_936, "derived from the paper and the config"),
    "olmo-2-7b": (7_298_617_344, HUB),
    "opt-1.3b": (1_315_758_080, COUNTED),
    "opt-125m": (125_239_296, COUNTED),
    "opt-13b": (12_853_473_280, COUNTED),
    "opt-2.7b": (2_651_596_800, COUNTED),
    "opt-30b": (29_974_540_288, COUNTED),
    "opt-6.7b": (6_658_473_984, COUNTED),
    "opt-66b": (65_719_701_504, COUNTED),
    "phi-2": (2_779_683_840, HUB),
    "phi-3-medium-128k": (13_960_238_080, f"{HUB} of Phi-3-medium-4k-instruct"),
    "phi-3-medium-4k": (13_960_238_080, HUB),
    "phi-3-mini-4k": (3_821_079_552, HUB),
    "phi-3.5-mini": (3_821_079_552, HUB),
    "phi-3.5-moe": (41_873_153_344, COUNTED),
    "phi-4": (14_659_507_200, HUB),
    "phi-4-mini": (3_836_021_760, HUB),
    "phi-mini-moe": (7_647_632_704, HUB),
    "powermoe-3b": (3_298_788_864, COUNTED),
    "qwen1.5-14b": (14_167_290_880, HUB),
    "qwen1.5-32b": (32_512_218_112, HUB),
    "qwen1.5-72b": (72_287_920_128, COUNTED),
    "qwen1.5-7b": (7_721_324_544, HUB),
    "qwen1.5-moe-a2.7b": (14_315_784_192, HUB),
    "qwen2-57b-a14b": (57_408_658_944, HUB),
    "qwen2-72b": (72_706_203_648, HUB),
    "qwen2-72b-base": (72_706_203_648, HUB),
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
    "qwen2.5-7b-1m": (7_615_616_512, HUB),
    "qwen2.5-7b-base": (7_615_616_512, HUB),
    "qwen2.5-vl-32b": (33_452_718_336, HUB),
    "qwen2.5-vl-3b": (3_754_622_976, HUB),
    "qwen2.5-vl-72b": (73_410_777_344, HUB),
    "qwen2.5-vl-7b": (8_292_166_656, HUB),
    "qwen3-0.6b": (596_049_920, "num_parameters; the Hub's 751,632,384 less the tied head"),
    "qwen3-1.7b": (1_720_574_976, "num_parameters; the Hub's 2,031,739,904 less the tied head"),
    "qwen3-14b": (14_768_307_200, HUB),
    "qwen3-235b-a22b": (235_093_634_560, HUB),
    "qwen3-235b-a22b-2507": (235_093_634_560, HUB),
    "qwen3-30b-a3b": (30_532_122_624, HUB),
    "qwen3-30b-a3b-2507": (30_532_122_624, HUB),
    "qwen3-32b": (32_762_123_264, HUB),
    "qwen3-4b": (4_022_468_096, HUB),
    "qwen3-4b-2507": (4_022_468_096, HUB),
    "qwen3-8b": (8_190_735_360, HUB),
    "qwen3-coder-480b-a35b": (480_154_875_392, HUB),
    "qwen3-next-80b-a3b": (79_674_391_296, f"{HUB} of Qwen3-Coder-Next"),
    "qwen3-vl-235b-a22b": (235_670_022_896, HUB),
    "qwen3-vl-2b": (2_127_532_032, HUB),
    "qwen3-vl-30b-a3b": (31_070_754_032, HUB),
    "qwen3-vl-32b": (33_357_390_064, HUB),
    "qwen3-vl-4b": (4_437_815_808, HUB),
    "qwen3-vl-8b": (8_767_123_696, HUB),
    "qwen3.5-0.8b": (873_438_784, HUB),
    "qwen3.5-122b-a10b": (125_086_497_008, HUB),
    "qwen3.5-27b": (27_781_427_952, HUB),
    "qwen3.5-2b": (2_274_069_824, HUB),
    "qwen3.5-35b-a3b": (35_951_822_704, HUB),
    "qwen3.5-397b-a17b": (403_397_928_944, HUB),
    "qwen3.5-4b": (4_659_865_088, HUB),
    "qwen3.5-9b": (9_653_104_368, HUB),
    "qwq-32b": (32_763_876_352, HUB),
    "smollm2-1.7b": (1_711_376_384, HUB),
    "smollm2-135m": (134_515_008, HUB),
    "smollm2-360m": (361_821_120, f"{HUB} of HuggingFaceTB/SmolLM2-360M"),
    "smollm3-3b": (3_075_098_624, HUB),
    "stablelm-2-1.6b": (1_644_515_328, f"{HUB} of stabilityai/stablelm-2-1_6b-chat"),
    "stablelm-3b-4e1t": (2_795_443_200, HUB),
    "starcoder-15b": (15_517_456_384, "the Hub's 15,819,446,272 less the tied head"),
    "starcoder2-15b": (15_957_889_024, HUB),
    "starcoder2-3b": (3_030_371_328, HUB),
    "starcoder2-7b": (7_173_923_840, HUB),
    "tinyllama-1.1b": (1_100_048_384, HUB),
    "yi-34b": (34_388_917_248, HUB),
    "yi-6b": (6_061_035_520, HUB),
    "yi-9b": (8_829_407_232, f"{HUB} of 01-ai/Yi-1.5-9B"),
}

# At bf16, over all layers with windows not yet full.
KV_BYTES_PER_TOKEN = {
    "bloom-7b1": 491_520,
    "codellama-70b": 327_680,
    "command-a": 262_144,
    "command-r": 1_310_720,
    "deepseek-v2-lite": 31_104,
    "deepseek-v3": 70_272,
    "deepseek-v3.2": 78_324,
    "falcon-180b": 163_840,
    "falcon-7b": 8_192,
    "gemma-2-9b": 344_064,
    "gemma-3-27b": 507_904,
    "gpt-j-6b": 458_752,
    "gpt-oss-120b": 73_728,
    "gpt-oss-20b": 49_152,
    "granite-4.0-h-small": 16_384,
    "jamba-1.5-mini": 16_384,
    "kimi-k2": 70_272,
    "llama-2-7b": 524_288,
    "llama-3.1-405b": 516_096,
    "llama-3.1-70b": 327_680,
    "llama-3.1-8b": 131_072,
    "llama-3.2-1b": 32_768,
    "llama-3.3-nemotron-super-49b": 200_704,
    "llama-4-scout": 196_608,
    "minimax-m2": 253_952,
    "mistral-7b-v0.1": 131_072,
    "mistral-nemo-12b": 163_840,
    "mixtral-8x22b": 229_376,
    "nemotron-3-nano-30b-a3b": 6_144,
    "nemotron-h-8b": 16_384,
    "olmo-2-7b": 524_288,
    "opt-6.7b": 524_288,
    "phi-3.5-mini": 393_216,
    "qwen2.5-7b": 57_344,
    "qwen3-0.6b": 114_688,
    "qwen3-30b-a3b": 98_304,
    "qwen3-32b": 262_144,
    "qwen3-next-80b-a3b": 24_576,
    "qwen3.5-27b": 65_536,
    "qwen3.5-35b-a3b": 20_480,
    "starcoder-15b": 20_480,
}

# Billions, as on the model's card, in its report or in its name.
ACTIVE_PARAMS = {
    "deepseek-v2": "21",
    "deepseek-v2-lite": "2.4",
    "deepseek-v3": "37",
    "deepseek-v3.2": "37",
    "deepseek-v4-flash": "13",
    "deepseek-v4-pro": "49",
    "gemma-4-26b-a4b": "3.8",
    "glm-4.5": "32",
    "glm-4.5-air": "12",
    "glm-4.6": "32",
    "glm-4.7-flash": "3",
    "glm-5": "40",
    "glm-5.2": "40",
    "gpt-oss-120b": "5.1",
    "gpt-oss-20b": "3.6",
    "granite-4.0-h-small": "9",
    "granite-4.0-h-tiny": "1",
    "jamba-1.5-mini": "12",
    "kimi-k2": "32",
    "kimi-k2-0905": "32",
    "kimi-k2.5": "32",
    "llama-4-maverick": "17",
    "llama-4-scout": "17",
    "minimax-m2": "10",
    "minimax-m2.7": "10",
    "mixtral-8x22b": "39",
    "mixtral-8x22b-instruct": "39",
    "mixtral-8x7b": "12.9",
    "nemotron-3-nano-30b-a3b": "3.2",
    "nemotron-3-super-120b-a12b": "12",
    "nemotron-3-ultra-550b-a55b": "55",
    "phi-3.5-moe": "6.6",
    "phi-mini-moe": "2.4",
    "powermoe-3b": "0.8",
    "qwen1.5-moe-a2.7b": "2.7",
    "qwen2-57b-a14b": "14",
    "qwen3-235b-a22b": "22",
    "qwen3-235b-a22b-2507": "22",
    "qwen3-30b-a3b": "3.3",
    "qwen3-30b-a3b-2507": "3.3",
    "qwen3-coder-480b-a35b": "35",
    "qwen3-next-80b-a3b": "3",
    "qwen3-vl-235b-a22b": "22",
    "qwen3-vl-30b-a3b": "3.3",
    "qwen3.5-122b-a10b": "10",
    "qwen3.5-35b-a3b": "3",
    "qwen3.5-397b-a17b": "17",
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


@cache
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


def edition_of(stem: str) -> str | None:
    """The file whose sizes an edition has, as its sources name it."""
    found = re.search(r"the sizes of ([a-z0-9.-]+)", " ".join(load(stem).sources))
    return found[1] if found else None


EDITIONS = {path.stem: base for path in FILES if (base := edition_of(path.stem))}
# What the end of a name says, and the formats that are stored under it.
STATED = [
    (r"bnb|gguf|q\d_k|w4a16|gptq-int8|w8a16", ()),
    (r"w8a8|int8", ("int8",)),
    (r"nvfp4|fp4", ("nvfp4", "nvfp4-weight-only")),
    (r"fp8", ("fp8", "fp8-block128")),
    (r"awq|gptq|int4|4bit", ("int4", "int4-group64")),
    (r"bf16", (None,)),
]
EDITION_PARAMS = {"qwen2.5-72b-int4": 72_957_861_888}  # padded; its published total


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


@pytest.mark.parametrize("stem", EDITIONS)
def test_an_edition_differs_from_its_model_in_the_format_only(stem: str) -> None:
    ours, base = load(stem), load(EDITIONS[stem])
    assert EDITIONS[stem] not in EDITIONS
    assert ours.weights.quantization != base.weights.quantization
    assert ours.max_context_tokens == base.max_context_tokens
    assert ours.num_layers == base.num_layers
    assert kv_bytes_per_token(ours, "bf16") == kv_bytes_per_token(base, "bf16")
    total = EDITION_PARAMS.get(stem, num_params_total(base))
    assert num_params_total(ours) == total
    if stem not in EDITION_PARAMS:
        assert num_params_active(ours) == num_params_active(base)


@every_file
def test_no_name_of_a_quantised_edition_stands_for_other_bytes(path: Path) -> None:
    spec = load(path.stem)
    quantization = spec.weights.quantization
    for name in (path.stem, *spec.aliases):
        short = name.rpartition("/")[2].lower()
        stated = next((formats for ending, formats in STATED if re.search(ending, short)), None)
        if stated is not None:
            assert (quantization.format if quantization else None) in stated, name


@pytest.mark.parametrize(
    "name",
    ["unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "nvidia/GLM-5-NVFP4", "Qwen3-8B-GGUF",
     "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8"],
)  # fmt: skip
def test_an_edition_that_is_not_here_is_unknown(name: str) -> None:
    with pytest.raises(CapplanError):
        load_model(name)


def test_every_total_has_its_golden_figure() -> None:
    assert {path.stem for path in FILES} == set(TOTAL_PARAMS) | set(EDITIONS)
    assert not set(TOTAL_PARAMS) & set(EDITIONS)


@pytest.mark.parametrize("stem", sorted(RECALLED))
def test_a_remembered_total_is_no_source(stem: str) -> None:
    assert TOTAL_PARAMS[stem][1] == COUNTED
    assert COUNTED in load(stem).sources[1]


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
        if path.stem not in EDITIONS
        and any(ffn.kind == "moe" for ffn in load(path.stem).ffns.values())
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


def scales_of_blocks(stem: str) -> int:
    """How many 32-bit scales of 128 x 128 tiles a checkpoint in FP8 has."""
    spec = load(stem)
    data = spec.model_dump()
    data["weights"]["quantization"]["format"] = "fp8"
    return (weight_bytes(spec) - weight_bytes(ModelSpec.model_validate(data))) // 4


@pytest.mark.parametrize(
    ("stem", "published"),
    [("qwen3-235b-a22b-fp8", 235_107_904_512), ("minimax-m2", 228_703_644_928),
     ("kimi-k2-0905", 1_026_470_735_448 - 61 * 128)],
)  # fmt: skip
def test_total_with_its_scales_is_the_published_one(stem: str, published: int) -> None:
    # Kimi K2 0905 holds 128 buffer entries a layer besides.
    assert num_params_total(load(stem)) + scales_of_blocks(stem) == published


def test_llama_4_maverick_in_fp8_is_the_checkpoint() -> None:
    # A scale for each output channel of the routed experts: gate, up and down.
    spec = load("llama-4-maverick-fp8")
    experts = 24 * 128 * (2 * 8192 + 5120)
    assert num_params_total(spec) + experts == 401_649_841_664


def test_llama_31_405b_in_fbgemm_fp8_is_the_checkpoint() -> None:
    # A scale for each row of the FFNs of all layers but two.
    rows = 124 * (2 * 53248 + 16384)
    assert num_params_total(load("llama-3.1-405b-fbgemm-fp8")) + rows == 405_868_625_920
    spec = load("llama-3.1-405b-fbgemm-fp8")
    ffns = 124 * 3 * 16384 * 53248
    assert weight_bytes(spec) == 2 * num_params_total(spec) - ffns


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
    published = read_config(CONFIGS / file)
    ours_only = {"name", "aliases", "sources", "released", "note"}
    if published.not_counted:
        ours_only |= {"not_counted", "extra_parameters", "mtp_parameters"}
    if published.note:  # quantised, and this config does not say how
        ours_only |= {"weights"}
    assert load(stem).model_dump(exclude=ours_only) == published.model_dump(exclude=ours_only)


MEASURED = ROOT.parent / "shared" / "data" / "measured" / "measured_calib.csv"
LOGS = ROOT.parent / "shared" / "data" / "memory_logs" / "log_facts_dev.csv"
# Named there and not in the catalogue, with the reason.
NOT_MEASURED: dict[str, str] = {}
NOT_LOGGED = {
    "Alibaba-NLP/gte-Qwen2-7B-instruct": "an embedding model",
    "BAAI/bge-m3": "an encoder",
    "Qwen/Qwen-14B-Chat-Int4": "QWenLMHeadModel of the first generation is not read",
    "Qwen/Qwen2-72B-Instruct-GPTQ-Int4": "whether its FFNs are padded is not known",
    "Qwen/Qwen2-7B-Instruct-GPTQ-Int8": "8-bit groups with scales are no format of the schema",
    "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8": "8-bit groups with scales are no format of the schema",
    "Qwen/Qwen2.5-Omni-7B": "talker and audio tower are not known exactly",
    "Qwen/Qwen3-VL-30B-A3B": "no such id: -Instruct and -Thinking are known",
    "WizardLM/WizardCoder-15B-V1.0": "config not at hand",
    "meta-llama/Llama-3.2-11B-Vision-Instruct": "cross-attention layers are not in the schema",
    "openai/whisper-large-v3": "an encoder and a decoder",
    "openai/whisper-large-v3-turbo": "an encoder and a decoder",
    "openbmb/MiniCPM-o-2_6": "several towers that are not known exactly",
    "unsloth/Qwen3.8-27B-NVFP4": "a mixture of formats that is not known",
    "xverse/XVERSE-MoE-A4.2B-Chat": "config not at hand",
}


def without_remark(text: str) -> str:
    return re.sub(r"\s*\(.*", "", text).strip()


def unresolved(names: set[str]) -> set[str]:
    """Those that nothing knows; the whole catalogue is read for each that no file names."""
    known = {name for name, _ in owners()}
    missing = set()
    for name in names:
        if normalised(name) in known:
            continue
        try:
            load_model(name)
        except CapplanError:
            missing.add(name)
    return missing


def column(path: Path, name: str, **where: str) -> set[str]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if all(r[k] == v for k, v in where.items())]
    return {without_remark(row[name]) for row in rows} - {""}


@pytest.mark.skipif(not MEASURED.is_file(), reason="no folder of public measurements")
def test_what_was_measured_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAPPLAN_PATH", raising=False)
    assert unresolved(column(MEASURED, "model", core="1")) == set(NOT_MEASURED)
    for gpu in column(MEASURED, "gpu", core="1"):
        load_hardware(gpu)


@pytest.mark.skipif(not LOGS.is_file(), reason="no folder of engine logs")
def test_what_logs_name_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAPPLAN_PATH", raising=False)
    named = column(LOGS, "model", model_inferred="0")
    checkpoints = {name for name in named if re.fullmatch(r"[A-Za-z][\w.-]+/[A-Za-z][\w.-]+", name)}
    assert unresolved(checkpoints) == set(NOT_LOGGED) & checkpoints
