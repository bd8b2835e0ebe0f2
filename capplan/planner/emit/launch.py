"""A plan, its model and its accelerator become a launch: the same for every manifest.

Assumptions that no plan states are constants here, and every one is among the launch's notes.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import ModuleType
from typing import Any

from capplan import units
from capplan.errors import CapplanError, UnsupportedError
from capplan.performance.kv_engine import Deployment, KvEngine
from capplan.planner.emit import sglang, trtllm, vllm
from capplan.planner.emit.names import Names, dns_label, is_path, repository_of
from capplan.planner.emit.nodes import node_labels
from capplan.planner.emit.options import Wanted
from capplan.planner.parallelism import check_tp
from capplan.results.launch import ENGINE_NAMES, Launch, StartUp
from capplan.specs.engine import EngineSpec
from capplan.specs.engine_catalogue import load_engine
from capplan.specs.hardware import HardwareSpec
from capplan.specs.model import ModelSpec
from capplan.specs.plan import Plan
from capplan.specs.tensors import weight_bytes

ENGINES: dict[str, ModuleType] = {"vllm": vllm, "sglang": sglang, "tensorrt-llm": trtllm}
# A first download over a fast line or a shared volume; a warm local disk is ten times faster.
READ_BYTES_PER_S = 0.2 * units.GB
# Compilation, profiling, CUDA graphs; TensorRT-LLM tunes its kernels besides.
ENGINE_START_S = {"vllm": 180.0, "sglang": 120.0, "tensorrt-llm": 420.0}
_PATIENCE = 2.0  # of the reckoned time
_PERIOD_S = 10
# Ranks and NCCL talk through /dev/shm; engines need a core each for the API server and the
# scheduler, and one a GPU (vLLM's documentation: 2 + N).
_SHM_BYTES_PER_RANK = 2 * units.GIB
_HOST_BYTES, _HOST_BYTES_PER_GPU = 8 * units.GIB, 4 * units.GIB
_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}


def launch_of(
    plan: Plan,
    model: ModelSpec,
    hardware: HardwareSpec,
    names: Names,
    *,
    engine: str | None = None,
    read_bytes_per_s: float = READ_BYTES_PER_S,
) -> Launch:
    """How the plan's servers are started, by its own engine or by the newest ``engine``.

    Raises CapplanError where the engine's version has no words for the plan, UnsupportedError for
    accelerators whose containers we do not know and for replicas that span nodes.
    """
    same = engine in (None, plan.engine.name)
    profile = load_engine(engine or plan.engine.name, plan.engine.version if same else None)
    version = plan.engine.version if same and plan.engine.version else profile.versions.last
    version = re.sub(r"^v", "", version)
    vendor = _vendor(hardware)
    wanted, notes = _wanted(plan, model, hardware, names, profile, same)
    speaker = ENGINES[profile.engine]
    words = speaker.options(wanted, version)
    config: dict[str, Any] = speaker.config(wanted) if profile.engine == "tensorrt-llm" else {}
    spares = plan.deployment.spares or 0
    shm = _SHM_BYTES_PER_RANK * wanted.gpus
    start_up = _start_up(model, profile.engine, read_bytes_per_s)
    if words.left:
        notes.append(f"Left to {ENGINE_NAMES[profile.engine]} {version}: {', '.join(words.left)}.")
    return Launch(
        name=dns_label(names.model_id),
        title=_title(plan, model, names, wanted),
        engine=profile.engine,
        version=version,
        image=speaker.image(version, vendor),
        model=wanted.model,
        model_is_path=is_path(wanted.model),
        command=speaker.command(wanted, version),
        options=tuple(words.options),
        config=config,
        config_option=trtllm.CONFIG_OPTION if config else None,
        port=speaker.PORT,
        health_path="/health",
        num_replicas=plan.deployment.replicas + spares,
        num_spares=spares,
        gpus_per_replica=wanted.gpus,
        gpus_per_node=hardware.node.gpus,
        nodes_per_replica=_nodes(wanted, hardware, profile.engine),
        vendor=vendor,
        gpu_resource=_RESOURCES[vendor],
        num_cpus=2 + wanted.gpus,
        memory_bytes=_HOST_BYTES + _HOST_BYTES_PER_GPU * wanted.gpus + shm,
        shm_bytes=shm,
        start_up=start_up,
        nodes=node_labels(hardware, names.hardware_id, wanted.gpus),
        notes=(*notes, *words.notes, _start_note(start_up)),
        settings=_settings(wanted),
    )


def _vendor(hardware: HardwareSpec) -> str:
    vendor = hardware.vendor.lower()
    if vendor not in _RESOURCES:
        raise UnsupportedError(
            f"containers for {hardware.name} are not written",
            hint="emit knows NVIDIA and AMD; `--emit plan` works for all",
        )
    return vendor


def _wanted(
    plan: Plan,
    model: ModelSpec,
    hardware: HardwareSpec,
    names: Names,
    profile: EngineSpec,
    same: bool,
) -> tuple[Wanted, list[str]]:
    degrees, flags, notes = plan.deployment, plan.engine.settings, list[str]()
    check_tp(model, hardware, degrees.tp)
    if not same:
        # What a share means, and which blocks there are, differs by engine.
        left = [
            name
            for name in ("gpu_memory_utilization", "block_size", "num_gpu_blocks")
            if getattr(flags, name) is not None
        ]
        flags = replace(flags, gpu_memory_utilization=None, block_size=None, num_gpu_blocks=None)
        text = (
            f"The plan is for {ENGINE_NAMES[plan.engine.name]}; its settings are put in "
            f"{ENGINE_NAMES[profile.engine]}'s words"
        )
        notes.append(text + (f", without {', '.join(left)}." if left else "."))
    repository, note = repository_of(model, names)
    if note:
        notes.append(note)
    wanted = Wanted(
        model=repository,
        tp=degrees.tp,
        pp=degrees.pp,
        dp=degrees.dp,
        ep=degrees.ep,
        dcp=degrees.dcp,
        flags=flags,
        stored_format=model.stored_format,
        activation_dtype=model.activation_dtype,
        max_context_tokens=model.max_context_tokens,
    )
    if flags.max_model_len is None and profile.engine == "vllm":
        wanted, length_notes = _with_length(wanted, model, hardware, profile)
        notes += length_notes
    return wanted, notes


def _nodes(wanted: Wanted, hardware: HardwareSpec, engine: str) -> int:
    """How many nodes a replica takes, all of them whole where it takes several."""
    node = hardware.node.gpus
    nodes = -(-wanted.gpus // node)
    copies = wanted.dp > 1 and engine == "vllm"
    if nodes > 1 and (wanted.gpus % node or engine == "tensorrt-llm" or copies):
        what = f"{wanted.gpus} GPUs spans nodes of {node}"
        raise UnsupportedError(
            f"how {ENGINE_NAMES[engine]} starts a replica of {what} is not written",
            hint="written are vLLM (TP, PP) and SGLang, over whole nodes; or emit the plan",
        )
    return nodes


def _with_length(
    wanted: Wanted, model: ModelSpec, hardware: HardwareSpec, profile: EngineSpec
) -> tuple[Wanted, list[str]]:
    """vLLM does not start where its pool cannot hold one request of the model's context."""
    flags = wanted.flags
    engine = KvEngine(
        profile=profile,
        dtype=flags.quantization if wanted.quantization else None,
        kv_dtype=wanted.kv_format,
        pp=wanted.pp,
        dp=wanted.dp,
        dcp=wanted.dcp,
        memory_share=flags.gpu_memory_utilization,
        max_num_seqs=flags.max_num_seqs,
        max_num_batched_tokens=flags.max_num_batched_tokens,
        block_size=flags.block_size,
    )
    deployment = Deployment(model, hardware, engine, wanted.tp)
    least = deployment.least_pool
    if deployment.checked(least).starts(model.max_context_tokens):
        return wanted, []
    longest = deployment.checked(least).longest(model.max_context_tokens)
    length = longest // 1024 * 1024 or longest
    if length < 1:
        raise CapplanError(
            f"{model.name} leaves no room for KV on {wanted.tp} x {hardware.name}",
            hint="plan with a larger tp, or smaller weights",
        )
    shorter = replace(wanted, flags=replace(flags, max_model_len=length))
    return shorter, [
        f"max_model_len: one request of the model's {model.max_context_tokens:,} tokens may not "
        f"fit the KV pool, and the engine would not start; {length:,} do at the low end of its "
        "range."
    ]


def _start_up(model: ModelSpec, engine: str, read_bytes_per_s: float) -> StartUp:
    size = float(weight_bytes(model))  # as stored: that is what is read
    load_s, engine_s = size / read_bytes_per_s, ENGINE_START_S[engine]
    threshold = math.ceil(_PATIENCE * (load_s + engine_s) / _PERIOD_S)
    return StartUp(
        weight_bytes=size,
        read_bytes_per_s=read_bytes_per_s,
        load_s=load_s,
        engine_s=engine_s,
        patience_s=float(threshold * _PERIOD_S),
        period_s=_PERIOD_S,
        failure_threshold=threshold,
    )


def _start_note(start: StartUp) -> str:
    return (
        f"Start-up: {units.format_bytes(start.weight_bytes, binary=False, digits=3)} of weights at "
        f"{units.format_bytes_per_s(start.read_bytes_per_s, digits=3)} (--read-rate) take "
        f"{units.format_duration(start.load_s, digits=2)}, the engine "
        f"{units.format_duration(start.engine_s, digits=2)}; the probe waits twice that, "
        f"{units.format_duration(start.patience_s, digits=3)}."
    )


def _settings(wanted: Wanted) -> dict[str, Any]:
    flags = wanted.flags
    return {
        "tp": wanted.tp,
        "dtype": wanted.dtype,
        "max_model_len": flags.max_model_len,
        "max_num_seqs": flags.max_num_seqs,
        "gpu_memory_utilization": flags.gpu_memory_utilization,
        "enable_prefix_caching": flags.enable_prefix_caching,
        "enable_chunked_prefill": flags.enable_chunked_prefill,
    }


def _title(plan: Plan, model: ModelSpec, names: Names, wanted: Wanted) -> str:
    degrees = [("TP", wanted.tp), ("PP", wanted.pp), ("DP", wanted.dp), ("EP", wanted.ep)]
    shape = " x ".join(f"{name} {size}" for name, size in degrees if size > 1 or name == "TP")
    replicas = plan.deployment.replicas
    spares = plan.deployment.spares or 0
    count = "1 replica" if replicas == 1 else f"{replicas} replicas"
    text = f"{model.name} on {names.hardware_id}: {count} x {shape}"
    return text + (f", and {spares} spare" if spares else "")
