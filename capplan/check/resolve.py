"""From a deployment to a case: names of models, accelerators and engine versions looked up."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

from capplan.check.calibrations import CaseCalibration, calibration_by, stated_servers
from capplan.check.cases import Case
from capplan.check.catalogue import KnownModel, known_model, model_at
from capplan.check.config import Config
from capplan.check.deployment import Deployment
from capplan.check.gpu_names import Accelerators, accelerators, first_of, slice_bytes
from capplan.check.shapes.plan import SHAPE
from capplan.errors import CapplanError
from capplan.specs.check import DeploymentSection
from capplan.specs.documents import parse_yaml
from capplan.specs.engine import EngineSpec
from capplan.specs.engine_catalogue import load_engine
from capplan.specs.fields import validate
from capplan.specs.plan import Plan

_PROFILED = ("vllm", "sglang", "tensorrt-llm")
_LAST_V0 = "0.7.3"


def make_case(deployment: Deployment, config: Config, siblings: int = 1) -> Case:
    section = config.section(deployment.source.file, deployment.name)
    if deployment.shape == SHAPE:
        section = _with_plan(deployment, section)
    model, note, open_model = _model(deployment, config, section)
    gpus, open_gpu = _gpus(deployment, config, section)
    profile, version_known = _profile(deployment, section)
    unresolved = tuple(filter(None, (open_model, open_gpu, *_open_flags(deployment))))
    return Case(
        deployment, config, section, model, note, gpus, profile, version_known, unresolved,
        _calibration(deployment, config, section, model, gpus), siblings,
    )  # fmt: skip


def _calibration(
    deployment: Deployment,
    config: Config,
    section: DeploymentSection,
    model: KnownModel | None,
    gpus: Accelerators | None,
) -> CaseCalibration:
    """That of the command line, where it is of this accelerator; else the section's own."""
    if model is None or gpus is None or not gpus.names:
        return CaseCalibration()
    own, hardware_id = config.own, gpus.names[0]
    if own is None or own.spec.hardware != hardware_id:
        if section.calibration is None:
            return CaseCalibration()
        own = stated_servers(section.calibration, config.folder, hardware_id)
    return calibration_by(own, model.id, deployment.engine)


def _with_plan(deployment: Deployment, section: DeploymentSection) -> DeploymentSection:
    """A plan says its own traffic, limits and price; raises CapplanError where it is faulty."""
    source = deployment.source
    plan = validate(Plan, parse_yaml(source.text, source.file))
    found = {
        "traffic": section.traffic or plan.traffic,
        "slos": section.slos or plan.slos,
        "clients": section.clients or plan.clients,
        "admission": section.admission or plan.admission,
        "router": section.router or plan.router,
        "usd_per_gpu_hour": section.usd_per_gpu_hour or plan.deployment.price,
    }
    return section.model_copy(update=found)


def _model(
    deployment: Deployment, config: Config, section: DeploymentSection
) -> tuple[KnownModel | None, str | None, str | None]:
    """The model, a note on how it was found, and else why it is unknown."""
    if section.model is not None:
        return model_at(section.model, config.folder), "model from .capplan.yaml", None
    names = [
        value.word for value in (deployment.model, deployment.served_name) if value and value.word
    ]
    for name in [*names, deployment.name]:
        for pattern, wanted in config.spec.models.items():
            if name == pattern or fnmatchcase(name, pattern):
                return (
                    model_at(wanted, config.folder),
                    f"`{name}` is {wanted} by .capplan.yaml",
                    None,
                )
    if deployment.model is None:
        return None, None, "model: none is named"
    word = deployment.model.word
    if word is None:
        why = deployment.model.reasons[0] if deployment.model.reasons else "set outside this file"
        return None, None, f"model: {why}"
    return _by_name(deployment, word)


def _by_name(deployment: Deployment, word: str) -> tuple[KnownModel | None, str | None, str | None]:
    local = word.startswith(("/", ".", "~")) or "://" in word.removeprefix("hf://")
    if not local:
        found = known_model(word)
        if found is not None:
            return found, None, None
    for hint in deployment.model_hints:
        named = hint.word
        found = known_model(
            named if named and "://" not in named else (named or "").rstrip("/").rpartition("/")[2]
        )
        if found is not None:
            return found, f"model from `{hint.raw}` (line {hint.location.line})", None
    last = word.rstrip("/").rpartition("/")[2].rpartition(":")[2]
    found = known_model(last) if local else None
    if found is not None:
        return found, f"model from the last part of `{word}`", None
    return None, None, f"model: `{word}` is not in the catalogue"


def _gpus(
    deployment: Deployment, config: Config, section: DeploymentSection
) -> tuple[Accelerators | None, str | None]:
    if section.hardware is not None:
        return accelerators(section.hardware) or Accelerators((section.hardware,)), None
    hints = [value.word for value in deployment.gpu_hints if value.word]
    mapped: list[str] = []
    for hint in hints:
        for pattern, name in config.spec.hardware.items():
            if hint == pattern or fnmatchcase(hint, pattern):
                mapped.append(name)
    default = config.spec.hardware.get("default")
    found = first_of([*mapped, *hints, *([default] if default else [])])
    size = slice_bytes(deployment.resource or "")
    if size is not None:
        names = found.names if found is not None else ("a100-sxm-80gb",)
        return Accelerators(names, None, size), None
    if found is not None:
        return found, None
    telling = [hint for hint in hints if hint.lower() not in _SAYS_NOTHING]
    if telling:
        return None, f"GPU type: `{telling[0]}` is not known"
    if "cpu" in hints:
        return None, None
    return None, "GPU type: no node label, instance type or profile names it"


# Labels that only say that there is one, and the profile of those that have none.
_SAYS_NOTHING = {"true", "false", "yes", "present", "on", "gpu", "cpu", "nvidia", "amd"}


@lru_cache(maxsize=64)
def _engine(name: str, version: str | None) -> EngineSpec | None:
    try:
        return load_engine(name, version)
    except CapplanError:
        return None


def _profile(deployment: Deployment, section: DeploymentSection) -> tuple[EngineSpec | None, bool]:
    """The engine's profile and whether its version is known; the newest where it is not."""
    if deployment.engine not in _PROFILED:
        return None, False
    version = section.engine_version or deployment.version
    asked = deployment.environment.get("VLLM_USE_V1")
    if deployment.engine == "vllm" and asked is not None and asked.text == "0" and version:
        return _engine("vllm", _LAST_V0), True
    found = _engine(deployment.engine, version) if version else None
    if found is not None:
        return found, True
    return _engine(deployment.engine, None), False


def _open_flags(deployment: Deployment) -> list[str]:
    """Options that decide the size and are set to what is not known."""
    found = []
    for meaning in (
        "tp",
        "pp",
        "dp",
        "max_model_len",
        "max_num_seqs",
        "memory_share",
        "quantization",
        "kv_dtype",
    ):
        flag = deployment.flag(meaning)
        if flag is not None and not flag.certain:
            reasons = flag.value.reasons if flag.value is not None else ()
            why = reasons[0] if reasons else "it stands in a branch of the script"
            found.append(f"{flag.name}: {why}")
    for stated, what in ((deployment.gpus_per_pod, "GPUs"), (deployment.pods, "pods of a replica")):
        if stated is not None and stated.number is None:
            why = (
                stated.value.reasons[0]
                if stated.value.reasons
                else f"`{stated.value.raw}` is no number"
            )
            found.append(f"{what}: {why}")
    if deployment.hidden:
        found.append(f"options: `{deployment.hidden[0].raw}` may hold more")
    return found
