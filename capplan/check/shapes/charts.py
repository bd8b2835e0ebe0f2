"""Charts of one's own: an image, a model and a list of arguments near each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capplan.check.deployment import Deployment, parse_number
from capplan.check.documents import File
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flag_tables.tgi import ENVIRONMENT
from capplan.check.flags import (
    Flag,
    dashed,
    mapping_flags,
    one_setting,
    read_flags,
    value_of_meaning,
)
from capplan.check.launch import engine_of_image, find_launches
from capplan.check.nodes import Node
from capplan.check.shapes.autoscalers import section
from capplan.check.shapes.containers import (
    Surroundings,
    argv_of,
    distinct,
    image_of,
    server_deployments,
)
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.synthetic import from_parts, option_words
from capplan.check.values import Scope, Value

_ARGUMENTS = (
    "extraArgs",
    "extraCmdArgs",
    "args",
    "extra_args",
    "vllmArgs",
    "serverArgs",
    "modelArgs",
)
_MODELS = (
    "model",
    "modelName",
    "model_name",
    "modelId",
    "modelURL",
    "LLM_MODEL_ID",
    "modelRepo",
    "hfModel",
    "repoId",
)


def read(file: File, root: Node) -> list[Deployment]:
    """Charts of one's own: an image, a model and a list of arguments near each other."""
    if root.get("apiVersion") is not None or root.get("services") is not None:
        return []
    found: list[Deployment] = []
    for name, holder in _holders(root):
        found += _chart(file, root, name, holder)
    return distinct(found)


def _holders(root: Node) -> Iterator[tuple[str, Node]]:
    yield "values", root
    for name, (_, child) in root.entries().items():
        if child.kind == "mapping":
            yield name, child
            for inner, (_, grandchild) in child.entries().items():
                if grandchild.kind == "mapping":
                    yield f"{name}.{inner}", grandchild
        for i, item in enumerate(child.items or ()):
            if item.kind == "mapping":
                yield item.word("name") or f"{name}[{i}]", item


def _chart(file: File, root: Node, name: str, holder: Node) -> Iterator[Deployment]:
    if holder.word("enabled") == "false":
        return
    scope = Scope(file.source, overrides=file.overrides)
    image = image_of(holder, scope)
    engine = engine_of_image(image.chars) if image is not None else None
    options = next((key for key in _ARGUMENTS if holder.get(key) is not None), "")
    runtime = holder.get("servingRuntime")
    model_node = next((holder.get(key) for key in _MODELS if holder.get(key) is not None), None)
    model = plain_value(model_node, scope)
    if model is None and model_node is not None and model_node.kind == "mapping":
        # `model:` as a section, with its own arguments.
        model = plain_value(
            model_node.get("uri") or model_node.get("name") or model_node.get("id"), scope
        )
        if not options and model_node.get("args") is not None:
            options = "model/args" if holder.get("model") is model_node else ""
    if engine is not None and (own := _own_command(file, holder, name, image, scope)):
        yield own
        return
    if engine is None or not (options or model or holder.get("vllmConfig")):
        return
    command = holder.get("command") or (runtime.get("command") if runtime is not None else None)
    if command is not None and command.kind == "list" and runtime is None:
        yield from server_deployments(file, holder, _around(holder, name, model, image, scope))
        return
    flags: list[Flag] = []
    if engine == "tgi":
        for key_name, (key, child) in holder.entries().items():
            if key_name in ENVIRONMENT and child.kind == "scalar":
                flags.append(one_setting(ENVIRONMENT[key_name], key, child, TABLES["tgi"], scope))
    config = holder.get("vllmConfig")
    if config is not None and engine in TABLES:
        flags += [f for f in mapping_flags(config, TABLES[engine], scope) if f.name]
    if runtime is not None and runtime.get("args") is not None:
        flags += read_flags(option_words(runtime, "args", scope), TABLES[engine]).flags
    flags += _degrees(holder, engine, scope)
    around = _around(holder, name, model, image, scope)
    found = from_parts(
        file, holder, around, engine=engine, options=flags, extra=options, probes=(root, holder)
    )
    yield replace(found, autoscaler=section(holder, scope))


def _own_command(
    file: File, holder: Node, name: str, image: Value | None, scope: Scope
) -> Deployment | None:
    """`image: {command: [vllm, serve, ...]}`: the command stands with the image that it runs."""
    section = holder.get("image", "command") and holder.get("image")
    if section is None:
        return None
    for launch in find_launches(argv_of(section, scope, ("command", "args")), scope):
        if launch.engine not in TABLES:
            continue
        read = read_flags(launch.words, TABLES[launch.engine])
        model = value_of_meaning(read.flags, "model") or read.model(
            TABLES[launch.engine], launch.words
        )
        around = _around(holder, name, model, image, scope)
        return from_parts(
            file, holder, around, engine=launch.engine, options=read.flags, extra="",
            probes=(holder,),
        )  # fmt: skip
    return None


def _degrees(holder: Node, engine: str, scope: Scope) -> Iterator[Flag]:
    """`tensorParallelSize:` beside the image, or in a section for several nodes."""
    if engine not in TABLES:
        return
    sections = [holder]
    multi = holder.get("multiNode")
    if multi is not None and holder.word("servingTopology") in ("multiNode", None):
        sections.append(multi)
    for part in sections:
        for name, (key, child) in part.entries().items():
            option = TABLES[engine].find(dashed(name))[0]
            if (
                child.kind == "scalar"
                and option
                and TABLES[engine].meanings.get(option)
                in ("tp", "pp", "max_model_len", "memory_share", "max_num_seqs")
            ):
                yield one_setting(option, key, child, TABLES[engine], scope)


def _around(
    holder: Node,
    name: str,
    model: Value | None,
    image: Value | None,
    scope: Scope,
) -> Surroundings:
    replicas = (
        holder.get("replicaCount")
        or holder.get("replicas")
        or holder.get("workload", "deployment", "replicaCount")
        or holder.get("scaling", "minReplicas")
    )
    gpus = stated(holder.get("gpuCount") or holder.get("numGpus") or holder.get("gpus"), scope)
    if gpus is not None and gpus.number is None and parse_number(gpus.value.word) is None:
        gpus = None
    return Surroundings(
        shape="Helm values",
        name=name,
        pod=holder,
        model=model,
        image=image,
        partial=True,
        replicas=stated(replicas, scope),
        gpus=gpus,
    )
