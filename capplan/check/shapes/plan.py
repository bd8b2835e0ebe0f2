"""Our own plan.yaml: a deployment with its traffic and limits in one file."""

from __future__ import annotations

from dataclasses import replace

from capplan.check.deployment import PLAN, Deployment, Shm, Stated, parse_number
from capplan.check.documents import File
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flags import Flag, mapping_flags, renamed_settings
from capplan.check.nodes import Node
from capplan.check.shapes.containers import Surroundings
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.shapes.synthetic import from_parts
from capplan.check.values import Scope, literal
from capplan.specs.plan import Plan

SHAPE = PLAN
_SECTIONS = ("deployment", "engine", "traffic", "slos", "simulation", "clients")
_DEGREES = {
    "tp": "tensor-parallel-size",
    "pp": "pipeline-parallel-size",
    "dp": "data-parallel-size",
}


def read(file: File, root: Node) -> list[Deployment]:
    """A model, an accelerator, and at least one of the sections that only a plan has."""
    model, hardware = root.get("model"), root.get("hardware")
    if model is None or hardware is None or model.kind != "scalar" or hardware.kind != "scalar":
        return []
    keys = set(root.entries())
    if not keys & set(_SECTIONS):
        return []
    if not keys <= set(Plan.model_fields) and "plan" not in file.source.file.rpartition("/")[2]:
        return []  # somebody else's file with a model and hardware
    scope = Scope(file.source, overrides=file.overrides)
    engine = root.word("engine", "name") or "vllm"
    table = TABLES.get(engine)
    if table is None:
        return []
    options = list(renamed_settings(root.get("deployment"), _DEGREES, table, scope))
    settings = root.get("engine")
    if settings is not None and settings.kind == "mapping":
        skipped = ("name", "version")
        options += [f for f in mapping_flags(settings, table, scope) if f.written not in skipped]
    hint = plain_value(hardware, scope)
    around = Surroundings(
        shape=SHAPE,
        name=root.word("title") or file.source.file.rpartition("/")[2],
        model=plain_value(model, scope),
        gpus=_gpus(root, options),
        replicas=stated(root.get("deployment", "replicas"), scope),
        hints=(hint,) if hint is not None else (),
        kubernetes=False,
    )
    version = (root.word("engine", "version") or "").removeprefix("v") or None
    found = from_parts(file, root, around, engine=engine, options=options, version=version)
    return [replace(found, shm=Shm(None, around.model))]


def _gpus(root: Node, options: list[Flag]) -> Stated:
    """A plan asks for what its degrees need."""
    total = 1.0
    for flag in options:
        if flag.meaning in ("tp", "pp", "dp"):
            total *= parse_number(flag.text) or 1.0
    return Stated(literal(root.source, f"{total:g}", root.offset), total)
