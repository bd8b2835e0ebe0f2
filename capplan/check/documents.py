"""A file as documents: YAML (also where Helm templates stand in it), JSON, or plain text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from capplan.check.nodes import Node, UnreadableError, parse, walk
from capplan.check.source import Source, Text
from capplan.check.values import MASK
from capplan.errors import CapplanError
from capplan.specs.documents import read_text

MAX_FILE_BYTES = 2 * 1024 * 1024
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|<%.*?%>", re.DOTALL)
_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_YAML_NAMES = (".yaml", ".yml", ".json", ".tpl", ".tmpl", ".gotmpl", ".j2", ".template", ".example")
# A file without any of these words deploys nothing that we know.
_WORDS = re.compile(
    r"vllm|sglang|trt-?_?llm|tensorrt|text-generation|huggingface|kubeai|kaito|nvcr\.io/nim"
    r"|llm_configs|engine_kwargs|InferenceService|ServingRuntime|dynamo|modelArtifacts"
    r"|^hardware:|servingEngineSpec|tensor-?_?parallel|max-?_?model-?_?len|LLM_MODEL_ID|llm-d",
    re.IGNORECASE | re.MULTILINE,
)

# Beyond a word in a dashboard or a schema: an image, a command, a kind.
_SERVES = re.compile(
    r"vllm serve|vllm\.entrypoints|sglang\.launch_server|trtllm-serve|text-generation-launcher"
    r"|image:.*(?:vllm|sglang|text-generation|tensorrt|huggingfaceserver)|dynamo\.(?:vllm|sglang)"
    r"|engine_kwargs|servingEngineSpec|kind: *(?:LLM)?InferenceService|kind: *Dynamo"
)


@dataclass(frozen=True)
class File:
    """What was read. ``fault``: why parts of it could not be; ``templated``: holds a template."""

    source: Source
    documents: tuple[Node, ...]
    templated: bool = False
    fault: UnreadableError | None = None
    is_script: bool = False
    overrides: dict[str, str] = field(default_factory=dict)

    @cached_property
    def config_maps(self) -> dict[str, Node]:
        """The data of the ConfigMaps in it, by name."""
        found: dict[str, Node] = {}
        for root in self.documents:
            if root.word("kind") in ("ConfigMap", "Secret"):
                name = root.word("metadata", "name")
                data = root.get("data") or root.get("stringData")
                if name and data is not None:
                    found[name] = data
        return found


def may_deploy(text: str) -> bool:
    """Whether a file is worth a closer look."""
    return _WORDS.search(text) is not None


def read_source(path: Path, shown: str) -> Source:
    """Raises CapplanError where the file is missing, too large, or a device."""
    text = read_text(path, what="a deployment", most=MAX_FILE_BYTES, strict=False)
    return Source(shown, text)


def read_file(source: Source, overrides: dict[str, str] | None = None) -> File:
    """All documents of a file; what is no YAML is left to the readers of scripts."""
    name = source.file.lower()
    given = overrides or {}
    if not name.endswith(_YAML_NAMES) and not _looks_like_yaml(source):
        return File(source, (), is_script=True, overrides=given)
    text = Text(source, _SURROGATE.sub("\\\\uFFFD", source.text), range(len(source.text)))
    plain = source.text == text.chars
    try:
        documents = parse(source, None if plain else text)
        if not _has_template_keys(documents):
            return _of_objects(File(source, tuple(documents), overrides=given))
        fault = None
    except UnreadableError as error:
        documents, fault = [], error
    if _TEMPLATE.search(source.text) or fault is not None:
        return _of_objects(_masked(source, text, fault, given))
    return _of_objects(File(source, tuple(documents), overrides=given))


def _of_objects(file: File) -> File:
    """Lists and OpenShift templates as the objects in them, so that these find each other."""
    documents: list[Node] = []
    parameters: dict[str, str] = {}
    for root in file.documents:
        kind = root.word("kind") or ""
        held = root.get("objects") if kind == "Template" else root.get("items")
        if not kind.endswith(("List", "Template")) or held is None or held.kind != "list":
            documents.append(root)
            continue
        documents += [item for item in held.items or () if item.kind == "mapping"]
        for parameter in (root.get("parameters") or root).items or ():
            name, value = parameter.word("name"), parameter.word("value")
            if name and value:
                parameters.setdefault(name, value)
    return replace(file, documents=tuple(documents), overrides=parameters | file.overrides)


def _looks_like_yaml(source: Source) -> bool:
    """A file of another name that is a manifest all the same."""
    if source.text.startswith("#!") or source.file.lower().endswith((".sh", ".bash", ".py", ".md")):
        return False
    return (
        re.search(r"^(?:apiVersion|kind|services|servingEngineSpec):", source.text, re.M)
        is not None
    )


def _has_template_keys(documents: list[Node]) -> bool:
    """`replicas: {{ .Values.x }}` is a mapping whose key is a mapping, to YAML."""
    for root in documents:
        for _, node in walk(root):
            for key, _ in node.pairs or ():
                if key.kind != "scalar":
                    return True
    return False


def mask_templates(text: str) -> str:
    """The text with templates masked, as long as before: whole lines of them are blanked."""
    masked = list(text)
    for match in _TEMPLATE.finditer(text):
        start, end = match.span()
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", end)
        line_end = line_end if line_end >= 0 else len(text)
        rest = _TEMPLATE.sub("", text[line_start:start] + text[end:line_end])
        # `{{- if .. }}` on a line of its own leaves nothing; in a value, it is the value.
        filler = " " if not rest.strip(" \t-\r") else MASK
        for i in range(start, end):
            if masked[i] != "\n":
                masked[i] = filler
    return "".join(masked)


def _masked(
    source: Source, text: Text, fault: UnreadableError | None, given: dict[str, str]
) -> File:
    chars = mask_templates(text.chars)
    documents: list[Node] = []
    left: UnreadableError | None = None
    try:
        documents = parse(source, Text(source, chars, text.offsets))
    except UnreadableError:
        # One document that cannot be read must not hide the others.
        for start, end in _parts(chars):
            try:
                alone = chars[start:end]
                documents += parse(source, Text(source, alone, range(start, end)))
            except UnreadableError as error:
                left = left or UnreadableError(error.reason, start + error.offset)
    templated = _TEMPLATE.search(source.text) is not None
    if not documents and left is None:
        left = fault
    return File(source, tuple(documents), templated, left, overrides=given)


def _parts(chars: str) -> list[tuple[int, int]]:
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(chars))]
    return list(zip(starts, [*starts[1:], len(chars)], strict=True))


def inner_documents(node: Node) -> list[Node]:
    """The documents in a text block (`config.yaml: |`), or none where it is not YAML."""
    text = node.text()
    if len(text) < 8 or ":" not in text.chars:
        return []
    try:
        roots = parse(node.source, text)
    except UnreadableError:
        masked = Text(node.source, mask_templates(text.chars), text.offsets)
        try:
            roots = parse(node.source, masked)
        except UnreadableError:
            return []
    return [root for root in roots if root.kind != "scalar"]


def unreadable(file: File) -> CapplanError | None:
    """The fault of a file that seems to deploy something, as an error with its place.

    A template that is no YAML before it is filled in has no fault.
    """
    if file.fault is None or file.templated or not _SERVES.search(file.source.text):
        return None
    location = file.source.location(min(file.fault.offset, max(0, len(file.source.text) - 1)))
    return CapplanError(
        f"this is not valid YAML: {file.fault.reason}",
        location=location,
        hint="mend it, or name it under `exclude` in .capplan.yaml",
    )
