"""Bad input for the property tests: option values, command lines, and broken files."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import typer.main
from hypothesis import strategies as st

from capplan.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = {kind: sorted((ROOT / kind).glob("*.yaml")) for kind in ("hardware", "models")}

NASTY = [
    "", " ", "0", "-0", "-1", "+1", "++1", "nan", "NaN", "inf", "-inf", "∞", "1e999", "1e-400",
    "1e30", "1e31", "-1e-9", "1e", "e5", ".", "..", ".5.", "1.2.3", "1,2,3", "1,", ",", ",,,",
    "0x10", "010", "1_000", "1__0", "1_", "400", "80Gb", "80G", "80GB", "5M/day", "1/0", "0/0",
    "GB", "ms", "%", "101%", "-5%", "$", "$-1", "½", "٣", "１２", "²", "😀", "é" * 70, "\0", "a\0b",
    "\n", "1\n2", "\t1", "\x1b[31m1", "\u202e1", "\ud800", "\ufeff1", "x" * 10_000, "9" * 5_000,
    "1," * 64 + "1", "--", "-", "--json", "--help", "auto", "true", "null", "None", "{}", "[]",
    "%s",
    "{0}", "$HOME", "~", ".", "/", "./", "/tmp", "/dev/null", "/dev/zero", "/no/such",
    "/no/such.yaml", "no-such.json", "x" * 300 + "/", "y" * 300 + ".yaml", "a/" * 2_000,
    "../../etc/passwd",
    "lognormal:", "lognormal:1,0", "lognormal:1e9,10", "lognormal:5,1e-300", "lognormal:1,nan",
    "normal:1", "normal:0,0", "normal:1,1e30", "uniform:9-1", "uniform:1-1e30", "fixed:", ":",
    "a:b", "fp8", "fp4", "nvfp4", "bf16", "llama-3.1-8", "h100", "gaudi3",
    "a100-sxm-80gb,h100-sxm-80gb", "@", "@:", "@/dev/zero", "@/no/such.csv:x", "@/tmp:x", "0.99",
]  # fmt: skip

_GOOD = {
    "--qps": ["1", "100", "5M/day"],
    "--slo-ttft": ["400ms", "2s"],
    "--slo-tpot": ["25ms", "1s"],
    "--prompt-tokens": ["1", "1024", "8k"],
    "--output-tokens": ["1", "256"],
    "--model": ["llama-3.1-8b", "qwen3-0.6b", "deepseek-v3", "gpt-oss-20b", "mixtral-8x7b"],
    "--hardware": ["h100-sxm-80gb", "t4", "l4", "mi300x", "gb10-dgx-spark", "tpu-v5e"],
    "--dtype": ["bf16", "fp8", "int4", "auto"],
    "--kv-dtype": ["bf16", "fp8", "auto"],
    "--tp": ["1", "2", "4"],
    "--gpu-memory-utilization": ["0.9", "50%"],
    "--reserve": ["0B", "3GB"],
    "--gpu-memory": ["80GB", "20GiB"],
    "--block-size": ["16", "128"],
    "--max-num-batched-tokens": ["512", "8192"],
    "--price": ["2", "$0.5"],
    "--batch": ["1", "1,8,64"],
    "--context": ["1", "2048"],
    "--lengths": ["35,12,67", "uniform:64-2048", "normal:1024,200"],
    "--static-length": ["4096", "100000"],
    "--engine": ["vllm", "sglang", "tensorrt-llm"],
    "--engine-version": ["0.9", "0.11"],
    "--pp": ["1", "2"],
    "--max-num-seqs": ["16", "256"],
    "--max-model-len": ["8192", "32k"],
}
_EXTREME = {
    "--qps": ["1e-30", "1e-9", "1/day", "1e9"],
    "--slo-ttft": ["1ns", "1us", "7d"],
    "--slo-tpot": ["1ns", "1us", "7d"],
    "--prompt-tokens": ["1", "2", "131071", "100M"],
    "--output-tokens": ["1", "2", "131071", "10M", "100M"],
    "--peak-factor": ["1", "1000"],
    "--model": ["qwen3-0.6b", "llama-3.1-405b", "deepseek-v3", "kimi-k2", "qwen3.5-27b"],
    "--hardware": ["t4", "h100-sxm-80gb", "gb300-nvl72", "tpu-v7x", "mi210", "gaudi2", "rtx-3090"],
    "--dtype": ["fp32", "fp8", "int4", "mxfp4"],
    "--kv-dtype": ["fp32", "fp8", "int4", "nvfp4"],
    "--tp": ["1", "3", "8", "64", "100000"],
    "--gpu-memory": ["1B", "1MB", "1PB"],
    "--gpu-memory-utilization": ["1e-30", "1e-9", "1"],
    "--reserve": ["0B", "1B", "1PB"],
    "--block-size": ["1", "7", "100M"],
    "--max-num-batched-tokens": ["1", "2", "100M"],
    "--replica-tokens-per-s": ["0.001", "1e9"],
    "--spares": ["0", "100000"],
    "--gpus-per-node": ["1", "3", "100000"],
    "--price": ["1e-30", "1000000"],
    "--batch": ["1", "1,100M", "100M"],
    "--context": ["1", "131072", "100M"],
    "--lengths": ["1", "1e9", "lognormal:1e8,10", "uniform:1-1e9", "fixed:1", "normal:1,1e9"],
    "--static-length": ["1", "100M"],
    "--engine": ["vllm", "sglang", "tensorrt-llm"],
    "--engine-version": ["0.1", "0.9", "0.33", "99.9"],
    "--pp": ["1", "3", "61", "64", "100000"],
    "--dcp": ["1", "3", "8", "100000"],
    "--dp-attention": ["1", "7", "64", "100000"],
    "--max-num-seqs": ["1", "100000"],
}  # fmt: skip


# Built once: the program builds it anew in each run, which would be a third of these tests.
COMMAND: Any = typer.main.get_command(app)


# What is asked of these sets what they cost, or what lies in the folder that is checked, or they
# read the whole catalogue (doctor); `test_simulate` and `tests/check` have bad input of their own.
COSTLY = {"simulate", "pareto", "check", "doctor"}


def _options() -> dict[str, list[str]]:
    """Every option that takes a value, by planning command, as the program declares them."""
    commands: dict[str, Any] = COMMAND.commands
    found = {}
    for name in commands:
        if name in COSTLY:
            continue
        parameters = getattr(commands[name], "params", [])
        taking = [p.opts[0] for p in parameters if p.opts[0].startswith("--") and not p.is_flag]
        if taking:
            found[name] = sorted(taking)
    return found


OPTIONS = _options()

nasty_values = st.one_of(st.sampled_from(NASTY), st.text(max_size=20)).filter(
    lambda text: not text.endswith((".svg", ".png"))  # nothing is to be drawn
)
ways_to_show = st.sampled_from([[], ["--json"], ["--format", "table"], ["--format", "tsv"]])


@st.composite
def bad_options(draw: st.DrawFn) -> list[str]:
    """A planning command: one to three nasty values among good ones."""
    command = draw(st.sampled_from(sorted(OPTIONS)))
    names = draw(st.permutations(OPTIONS[command]))
    num_bad, num_good = draw(st.sampled_from([1, 1, 1, 2, 3])), draw(st.integers(0, 3))
    given = [(name, draw(nasty_values)) for name in names[:num_bad]]
    for name in names[num_bad : num_bad + num_good]:
        if name in _GOOD:
            given.append((name, draw(st.sampled_from(_GOOD[name]))))
    return [command, *(word for pair in given for word in pair), *draw(ways_to_show)]


@st.composite
def extreme_options(draw: st.DrawFn) -> list[str]:
    """A planning command whose every value is allowed, or nearly, and far out."""
    commands = [name for name, options in sorted(OPTIONS.items()) if _EXTREME.keys() & set(options)]
    command = draw(st.sampled_from(commands))
    names = [name for name in OPTIONS[command] if name in _EXTREME]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=5, unique=True))
    given = [word for name in chosen for word in (name, draw(st.sampled_from(_EXTREME[name])))]
    return [command, *given, *draw(ways_to_show)]


_WORDS = [
    "gpus", "kv", "roofline", "hardware", "models", "list", "show", "h100-sxm-80gb", "kv-cache",
    "llama-3.1-8b", "--json", "--help", "--version", "--tp", "--qps", "--format", "table", "-1",
]  # fmt: skip
command_lines = st.lists(st.one_of(st.sampled_from(_WORDS), nasty_values), max_size=5)

_BAD_SCALARS = [
    "", "~", "null", "0", "-1", "1", "1.5", "0.0", "-0.0", "1e999", ".inf", ".nan", "9" * 5_000,
    "1__0", "1_", "010", "0o7", "true", "yes", "x", '""', "''", '"\\e[31m"', '"\\0"', "'", '"',
    "[]", "{}", "[1, 2]", "{a: 1}", "[[[]]]", "*a", "*nope", "&a x", "&a [*a]", "!!int 5", "!x y",
    "|", ">", "80", "80 Gb", "80 GB", "-80 GB", "0 GB", "1 B", "3 TB/s", "3 B/s", "1 FLOP/s",
    "1e30 FLOP/s", "1 W", "5", "1e-30 s", "2026-02-30", "20260230", "@", "`", "%", "a: b", "#",
    "x" * 600, "😀",
]  # fmt: skip


def _replace_scalar(draw: st.DrawFn, lines: list[str], i: int) -> list[str]:
    key, colon, _ = lines[i].partition(":")
    bad = draw(st.sampled_from(_BAD_SCALARS))
    return [*lines[:i], f"{key}{colon or ':'} {bad}", *lines[i + 1 :]]


def _replace_in_flow(draw: st.DrawFn, lines: list[str], i: int) -> list[str]:
    head, colon, tail = lines[i].rpartition(": ")
    rest = tail[len(tail.rstrip("}],")) :] if colon else ""
    bad = draw(st.sampled_from(_BAD_SCALARS))
    closing = tail[len(tail.rstrip("}], ")) :]
    return [*lines[:i], f"{head}{colon}{bad}{rest and closing}", *lines[i + 1 :]]


def _misspell(draw: st.DrawFn, lines: list[str], i: int) -> list[str]:
    line = lines[i]
    at = draw(st.integers(0, max(0, line.find(":") - 1)))
    return [*lines[:i], line[:at] + line[at + 1 :], *lines[i + 1 :]]


def _insert(draw: st.DrawFn, lines: list[str], i: int) -> list[str]:
    at = draw(st.integers(0, len(lines[i])))
    extra = draw(st.one_of(st.sampled_from(_BAD_SCALARS), st.text(max_size=4)))
    return [*lines[:i], lines[i][:at] + extra + lines[i][at:], *lines[i + 1 :]]


_EDITS = [
    lambda _, lines, i: lines[:i] + lines[i + 1 :],
    lambda _, lines, i: lines[: i + 1] + lines[i:],
    lambda _, lines, i: lines[:i],
    lambda _, lines, i: [*lines[:i], "  " + lines[i], *lines[i + 1 :]],
    lambda _, lines, i: [*lines[:i], lines[i].strip(), *lines[i + 1 :]],
    lambda _, lines, i: [*lines[:i], "\t" + lines[i], *lines[i + 1 :]],
    lambda _, lines, i: [*lines[:i], "<<: {a: 1}", *lines[i:]],
    lambda _, lines, i: [*lines[:i], "---", *lines[i:]],
    lambda _, lines, i: [*lines[:i], lines[i] + "]", *lines[i + 1 :]],
    _replace_scalar, _replace_scalar, _replace_scalar,
    _replace_in_flow, _replace_in_flow, _replace_in_flow,
    _misspell, _misspell, _insert,
]  # fmt: skip


@st.composite
def broken_yaml(draw: st.DrawFn) -> tuple[str, bytes]:
    """`hardware` or `models`, and a file of theirs with one to three wounds."""
    kind = draw(st.sampled_from(sorted(CATALOGUE)))
    lines = draw(st.sampled_from(CATALOGUE[kind])).read_text(encoding="utf-8").splitlines()
    for _ in range(draw(st.integers(1, 3))):
        if lines:
            edit = draw(st.sampled_from(_EDITS))
            lines = edit(draw, lines, draw(st.integers(0, len(lines) - 1)))
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    return kind, draw(st.sampled_from(_BYTE_EDITS))(draw, data)


def _flip(draw: st.DrawFn, data: bytes) -> bytes:
    if not data:
        return data
    at = draw(st.integers(0, len(data) - 1))
    return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]


_BYTE_EDITS = [
    *[lambda _, data: data] * 12,
    _flip, _flip,
    lambda draw, data: data[: draw(st.integers(0, len(data)))],
    lambda _, data: b"\xef\xbb\xbf" + data,
    lambda _, data: data.replace(b"\n", b"\r\n"),
    lambda _, data: data.replace(b"\n", b"\r"),
    lambda _, data: data.decode("utf-8", "replace").encode("utf-16"),
    lambda draw, _: draw(st.binary(max_size=40)),
]  # fmt: skip

# Dimensions of published models: facts, in the words of their configs.
CONFIGS: dict[str, dict[str, Any]] = {
    "LlamaForCausalLM": {
        "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32,
        "num_key_value_heads": 8, "num_hidden_layers": 16, "vocab_size": 128256, "head_dim": 64,
        "max_position_embeddings": 131072, "tie_word_embeddings": True, "attention_bias": False,
        "mlp_bias": False, "torch_dtype": "bfloat16",
    },
    "MistralForCausalLM": {
        "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 32000,
        "max_position_embeddings": 32768, "tie_word_embeddings": False, "sliding_window": 4096,
        "torch_dtype": "bfloat16",
    },
    "MixtralForCausalLM": {
        "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 32000,
        "max_position_embeddings": 32768, "tie_word_embeddings": False, "sliding_window": None,
        "num_local_experts": 8, "num_experts_per_tok": 2, "torch_dtype": "bfloat16",
    },
    "Qwen2ForCausalLM": {
        "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
        "num_key_value_heads": 4, "num_hidden_layers": 28, "vocab_size": 152064,
        "max_position_embeddings": 32768, "tie_word_embeddings": False,
        "use_sliding_window": False, "sliding_window": 131072, "torch_dtype": "bfloat16",
    },
    "Qwen3ForCausalLM": {
        "hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16,
        "num_key_value_heads": 8, "num_hidden_layers": 28, "vocab_size": 151936, "head_dim": 128,
        "max_position_embeddings": 40960, "tie_word_embeddings": True, "attention_bias": False,
        "use_sliding_window": False, "torch_dtype": "bfloat16",
    },
    "Qwen3MoeForCausalLM": {
        "hidden_size": 2048, "moe_intermediate_size": 768, "num_attention_heads": 32,
        "num_key_value_heads": 4, "num_hidden_layers": 48, "vocab_size": 151936, "head_dim": 128,
        "max_position_embeddings": 40960, "tie_word_embeddings": False, "attention_bias": False,
        "num_experts": 128, "num_experts_per_tok": 8, "mlp_only_layers": [],
        "decoder_sparse_step": 1, "torch_dtype": "bfloat16",
    },
}  # fmt: skip
ABSENT = object()
_BAD_FIELDS = [
    ABSENT, ABSENT, None, None, 0, 1, 2, 3, 7, -1, 10**9, 10**12, 10**40, 1.0, 1.5, -0.0, "",
    "8", "x" * 3_000, True, False, [], [1], {}, {"a": 1}, float("nan"), float("inf"), "float32",
]  # fmt: skip


@st.composite
def broken_configs(draw: st.DrawFn) -> dict[str, Any]:
    """A config with one or two fields absent or nasty."""
    architecture = draw(st.sampled_from(sorted(CONFIGS)))
    config = {"architectures": [architecture], **copy.deepcopy(CONFIGS[architecture])}
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from([*CONFIGS[architecture], "quantization_config", "dtype"]))
        value = draw(st.sampled_from(_BAD_FIELDS))
        config.pop(name, None)
        if value is not ABSENT:
            config[name] = value
    return config


@st.composite
def broken_json(draw: st.DrawFn) -> bytes:
    """The text of a config, wounded."""
    architecture = draw(st.sampled_from(sorted(CONFIGS)))
    given = draw(
        st.sampled_from([[architecture], architecture, [architecture[1:]], ["T5Model"], [1], []])
    )
    config = {"architectures": given, **CONFIGS[architecture]}
    text = json.dumps(config, indent=draw(st.sampled_from([None, 2, "\t"])))
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(text)))
        extra = draw(
            st.sampled_from(
                ['"', "{", "[", "}", "]", ",", ":", "\\", "NaN", "-Infinity", "1e999", "'", "//x",
                 "\0", "9" * 5_000, '"hidden_size": 1,', '{"a":' * 60, "[" * 5_000, "true", "é"]
            )
        )  # fmt: skip
        cut = draw(st.integers(0, 3))
        text = text[:at] + extra + text[at + cut :]
    return draw(st.sampled_from(_BYTE_EDITS))(draw, text.encode())
