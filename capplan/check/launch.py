"""Where a command line starts an inference server, through shells, wrappers and `docker run`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from capplan.check.shell import commands
from capplan.check.values import HOLE, Scope, Value, fill_braces, value_of

MODULES = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "vllm.entrypoints.grpc_server": "vllm",
    "vllm.entrypoints.openai.rpc.server": "vllm",
    "vllm.scripts": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
    "vllm_tgis_adapter": "vllm",
    "vllm_ascend.entrypoints.openai.api_server": "vllm",
    "fastchat.serve.vllm_worker": "vllm",
    "huggingfaceserver": "vllm",
    "dynamo.vllm": "vllm",
    "dynamo.sglang": "sglang",
    "dynamo.trtllm": "tensorrt-llm",
    "sglang.launch_server": "sglang",
    "sglang.srt.server": "sglang",
    "sglang.srt.entrypoints.http_server": "sglang",
    "tensorrt_llm.commands.serve": "tensorrt-llm",
}
_PROGRAMS = {
    "trtllm-serve": "tensorrt-llm",
    "text-generation-launcher": "tgi",
    "text-generation-server": "tgi",
    "lmcache_vllm": "vllm",
}
_SHELLS = {"sh", "bash", "zsh", "dash", "ash", "ksh", "busybox"}
_SHELL_OPTION = re.compile(r"-[a-z]*c[a-z]*")
_SERVER_TEXT = re.compile(
    r"\b(?:vllm\s+serve|vllm\.entrypoints|sglang\.launch_server|sglang\s+serve|trtllm-serve"
    r"|text-generation-launcher|dynamo\.(?:vllm|sglang|trtllm)|huggingfaceserver)\b"
)
_IMAGES: tuple[tuple[str, str], ...] = (
    (r"router|smg|gateway|proxy|scheduler|sidecar|epp\b|metrics|curl|benchmark|exporter|webui", ""),
    (r"nvcr\.io/nim/|/nim/", "nim"),
    (r"text-generation-inference|/tgi\b|tgi-gaudi", "tgi"),
    (r"tensorrt-?llm|trtllm|trt-llm", "tensorrt-llm"),
    (r"sglang", "sglang"),
    (r"vllm|/llm-d(-[a-z]+)?(:|@|$)|rhaiis|huggingfaceserver", "vllm"),
)
# Images whose tag counts something other than the engine's versions.
_OTHER_TAGS = re.compile(
    r"-runtime|lmcache/|/llm-d(-[a-z]+)?(:|@|$)|huggingfaceserver|rhaiis|nvcr\.io/nvidia/(vllm|sglang)|ray-llm"
)
_VERSION = re.compile(r"(?<![\d.])v?(\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)(?![\d])")
MAX_NESTING = 5


@dataclass(frozen=True, slots=True)
class Launch:
    """A server that a command line starts: its options are in ``words``."""

    engine: str
    words: tuple[Value, ...]
    before: tuple[Value, ...]
    scope: Scope
    place: Value
    in_branch: bool = False
    image: Value | None = None


def engine_of_image(image: str) -> str | None:
    """The engine that an image holds, by its name.

    >>> engine_of_image("lmsysorg/sglang:v0.5.6"), engine_of_image("lmsysorg/sglang-router:v0.2.4")
    ('sglang', None)
    """
    lowered = image.lower()
    for pattern, engine in _IMAGES:
        if re.search(pattern, lowered):
            return engine or None
    return None


def version_of_image(image: str) -> str | None:
    """The engine's version where the tag is one.

    >>> version_of_image("vllm/vllm-openai:v0.8.5")
    '0.8.5'
    >>> version_of_image("x/vllm-tensorizer:8552fbc-v0.10.0")
    '0.10.0'
    >>> version_of_image("vllm/vllm-openai:latest"), version_of_image("ghcr.io/llm-d/llm-d:v0.2.0")
    (None, None)
    """
    _, colon, tag = image.partition("@")[0].rpartition(":")
    engine = engine_of_image(image)
    if not colon or "/" in tag or engine is None or _OTHER_TAGS.search(image.lower()):
        return None
    found = _VERSION.search(tag)
    if not found or engine == "nim":
        return None
    version = found[1]
    # vLLM and SGLang are below 1.0: another number is a vendor's.
    if engine in ("vllm", "sglang") and not version.startswith("0."):
        return None
    return version


def version_of(image: Value | None) -> str | None:
    """The same of an image as a file states it; None where part of its name is not known."""
    return version_of_image(image.chars) if image is not None and image.known else None


def version_by_pip(text: str, engine: str) -> str | None:
    """`pip install vllm==0.6.3` in the same script, where it says one version.

    >>> version_by_pip('uv pip install "vllm[audio]==0.6.3"', "vllm")
    '0.6.3'
    """
    package = {"tensorrt-llm": "tensorrt[-_]llm"}.get(engine, re.escape(engine))
    pattern = rf"pip3? install[^\n]*?\b{package}(?:\[[\w,-]*\])?==(\d+(?:\.\d+)+)"
    found = set(re.findall(pattern, text))
    return found.pop() if len(found) == 1 else None


def find_launches(
    argv: Sequence[Value], scope: Scope, *, in_branch: bool = False, depth: int = 0
) -> list[Launch]:
    """The servers that a command starts, also inside the scripts that it is given."""
    if not argv or depth > MAX_NESTING:
        return []
    script = _shell_script(argv)
    if script is not None:
        text, positional = script
        return script_launches(text, scope, positional, in_branch=in_branch, depth=depth + 1)
    for i, word in enumerate(argv):
        engine, taken = _server(argv, i)
        if engine:
            words = argv[i + taken :] if depth else [outside(w, scope) for w in argv[i + taken :]]
            at = _image_at(argv[:i])
            image = argv[at] if at is not None else None
            return [Launch(engine, tuple(words), tuple(argv[:i]), scope, word, in_branch, image)]
    found = _container_run(argv, scope, in_branch, depth)
    if found:
        return found
    for word in argv:
        if " " in word.chars and _SERVER_TEXT.search(word.chars):
            # `tmux new -d "vllm serve ..."`, `ssh host '...'`, `su -c "..."`.
            return script_launches(word, scope, (), in_branch=in_branch, depth=depth + 1)
    return []


def outside(word: Value, scope: Scope) -> Value:
    """`${VAR}` that no shell will see: something fills it in before the file is used."""
    if "${" not in word.chars and "{{" not in word.chars:
        return word
    outer = Scope(scope.source, overrides=scope.overrides, marks=scope.marks)
    filled = value_of(fill_braces(word.text, outer, escaped=False), outer)
    return Value(
        word.raw, filled.text, (*word.notes, *filled.notes), (*word.reasons, *filled.reasons)
    )


def script_launches(
    script: Value,
    scope: Scope,
    positional: tuple[Value, ...] = (),
    *,
    in_branch: bool = False,
    depth: int = 0,
) -> list[Launch]:
    found: list[Launch] = []
    for command in commands(script.text, scope.child(), positional):
        branch = in_branch or command.in_branch
        found += find_launches(command.words, command.scope, in_branch=branch, depth=depth)
    return found


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _shell_script(argv: Sequence[Value]) -> tuple[Value, tuple[Value, ...]] | None:
    """The script of `bash -lc -- "..." arg0 arg1`, and what it is given."""
    for i, word in enumerate(argv[:6]):
        if _base(word.chars) not in _SHELLS:
            continue
        at, has_script = i + 1, False
        while at < len(argv) and argv[at].chars.startswith(("-", "+")):
            has_script = has_script or bool(_SHELL_OPTION.fullmatch(argv[at].chars))
            at += 1
            if argv[at - 1].chars == "-o":
                at += 1
        if has_script and at < len(argv):
            return argv[at], tuple(argv[at + 1 :])
    return None


def _server(argv: Sequence[Value], i: int) -> tuple[str | None, int]:
    """The engine started at word ``i``, and how many words name it."""
    chars = argv[i].chars
    following = argv[i + 1].chars if i + 1 < len(argv) else ""
    base = _base(chars)
    if base in ("vllm", "sglang") and following == "serve":
        return base, 2
    if chars == "-m" and following in MODULES:
        serve = i + 2 < len(argv) and argv[i + 2].chars == "serve"
        return MODULES[following], 3 if serve else 2
    if chars.startswith("-m") and chars[2:] in MODULES:
        return MODULES[chars[2:]], 1
    if base in _PROGRAMS:
        return _PROGRAMS[base], 2 if following == "serve" else 1
    if chars.endswith(("vllm/entrypoints/openai/api_server.py", "sglang/launch_server.py")):
        return "sglang" if "sglang" in chars else "vllm", 1
    if base.endswith(".py") and any(w.chars.startswith("--triton_model_repo_dir") for w in argv):
        return "tensorrt-llm", 1
    return None, 0


def _image_at(argv: Sequence[Value]) -> int | None:
    """Where `docker run ... IMAGE args` names the image of a server."""
    words = [_base(word.chars) for word in argv[:4]]
    if not any(word in ("docker", "podman", "nerdctl", "sudo") for word in words):
        return None
    if "run" not in [word.chars for word in argv[:8]]:
        return None
    for i, word in enumerate(argv):
        if i and argv[i - 1].chars in ("--name", "-v", "--volume", "-e", "--env", "--network"):
            continue
        if word.chars.startswith("-") or ("/" not in word.chars and ":" not in word.chars):
            continue
        if engine_of_image(word.chars) and "=" not in word.chars:
            return i
    return None


def _container_run(
    argv: Sequence[Value], scope: Scope, in_branch: bool, depth: int
) -> list[Launch]:
    """What `docker run` starts: a command after the image, or the image's own server."""
    at = _image_at(argv)
    if at is None:
        return []
    image, before = argv[at], tuple(argv[:at])
    engine = engine_of_image(image.chars)
    assert engine is not None
    entry = _option(before, "--entrypoint")
    inner = [*([entry] if entry else []), *argv[at + 1 :]]
    found = find_launches(inner, scope, in_branch=in_branch, depth=depth + 1)
    if found:
        return [
            Launch(f.engine, f.words, before, f.scope, f.place, f.in_branch, image) for f in found
        ]
    if not inner or inner[0].chars.startswith(("-", HOLE)) or engine != "sglang":
        return [Launch(engine, tuple(inner), before, scope, argv[0], in_branch, image)]
    return []


def _option(argv: Sequence[Value], name: str) -> Value | None:
    for i, word in enumerate(argv):
        if word.chars == name and i + 1 < len(argv):
            return argv[i + 1]
        if word.chars.startswith(name + "="):
            return word.part(len(name) + 1)
    return None
