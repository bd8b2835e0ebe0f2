"""What surrounds the server: shared and host memory, probes, autoscaler, image."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capplan.check.cases import Case
from capplan.check.rules.rule import Remark, rule
from capplan.check.rules.sizes import gib, seconds
from capplan.specs.tensors import weight_bytes
from capplan.units import GB, GIB, MIB

_DEFAULT_SHM_BYTES = 64 * MIB
_ENOUGH_SHM_BYTES = 1 * GIB
_LOAD_BYTES_PER_S = 2 * GB  # local NVMe or a good network volume
_START_S = 45.0  # imports, profiling, CUDA graphs
_CPU_METRIC = re.compile(
    r"^(cpu|memory|ram)$|resource|gpu.?util|duty.?cycle|dcgm_fi_dev_gpu_util|dcgm_fi_prof|cpu_usage"
    r"|gpu_cache_usage|kv_cache_usage|node_gpu",
    re.IGNORECASE,
)
_RUNNING = re.compile(r"running", re.IGNORECASE)
_QUEUE = re.compile(
    r"waiting|queue|pending|ongoing|concurrency|inflight|in_flight|latency|ttft|time_to_first|rps|request",
    re.IGNORECASE,
)
_FLOATING = re.compile(
    r"(?:^|[-_.])(?:latest|nightly|main|dev|edge|head)(?:$|[-_.])", re.IGNORECASE
)


@rule("CP024", "shared-memory-small", "warning", "/dev/shm is too small for several GPUs")
def shared_memory_small(case: Case) -> Iterator[Remark]:
    """The ranks of one pod talk through /dev/shm: NCCL's buffers, and the engine's own broadcast of
    each step. Containers get 64 MiB of it by default; the server then dies with a bus error, often
    only under load."""
    tp, held = case.tp, case.deployment.gpus_per_pod
    local = min(tp or 1, held.count) if held is not None and held.count else (tp or 1)
    if local < 2 or case.deployment.partial:
        return
    shm = case.deployment.shm
    if shm is None:
        compose = case.deployment.shape in ("compose", "docker run")
        if not (case.deployment.kubernetes or compose):
            return
        yield Remark(
            f"{local} ranks share {gib(_DEFAULT_SHM_BYTES)} of /dev/shm, the default",
            case.deployment.flag("tp") or case.deployment.place,
            (f"TP {tp}; no volume at /dev/shm",),
            "set `ipc: host` or `shm_size: 8gb`"
            if compose
            else "mount an emptyDir with `medium: Memory` at /dev/shm",
        )
    elif shm.bytes is not None and shm.bytes < _ENOUGH_SHM_BYTES:
        yield Remark(
            f"{local} ranks share {gib(shm.bytes)} of /dev/shm",
            shm.value,
            (f"{gib(shm.bytes)} < {gib(_ENOUGH_SHM_BYTES)}",),
            "give it 8Gi or more",
        )


@rule("CP025", "host-memory-short", "error", "swap and offload exceed the memory limit")
def host_memory_short(case: Case) -> Iterator[Remark]:
    """vLLM's old core pins its whole swap space when it starts, and CPU offload and KV offload
    take what they are told to. A container that allocates more than its memory limit is killed."""
    limit = case.deployment.memory_limit
    ranks = (
        min(case.tp or 1, case.deployment.gpus_per_pod.count or 1)
        if case.deployment.gpus_per_pod
        else case.tp
    )
    if limit is None or limit.number is None or not ranks:
        return
    parts: list[tuple[str, float]] = []
    swap = case.deployment.number("swap_space")
    if case.engine == "vllm" and case.is_v0 and swap:
        parts.append((f"swap space {swap:g} GiB x {ranks}", swap * GIB * ranks))
    offload = case.deployment.number("cpu_offload")
    if offload:
        parts.append((f"CPU offload {offload:g} GiB x {ranks}", offload * GIB * ranks))
    kv = case.deployment.number("kv_offload")
    if kv:
        parts.append((f"KV offload {kv:g} GiB", kv * GIB))
    transfer = case.deployment.flag("kv_transfer")
    stated = (
        re.search(r'"cpu_bytes_to_use"\s*:\s*(\d{1,15})', transfer.value.chars)
        if transfer and transfer.value
        else None
    )
    if stated:
        parts.append((f"KV offload {gib(float(stated[1]))}", float(stated[1])))
    total = sum(size for _, size in parts)
    if not parts or total <= limit.number:
        return
    at = case.deployment.flag("swap_space") if swap and case.is_v0 else None
    yield Remark(
        f"the options take {gib(total)} of host memory, and the limit is {gib(limit.number)}",
        at
        or case.deployment.flag("cpu_offload")
        or case.deployment.flag("kv_offload")
        or limit.value,
        (
            *(f"{name} = {gib(size)}" for name, size in parts),
            f"limit {limit.value.raw} = {gib(limit.number)}",
        ),
        f"raise the memory limit above {gib(total)}, or set the options lower",
    )


@rule("CP026", "probe-kills-loading", "warning", "the probe gives up before the model is loaded")
def probe_kills_loading(case: Case) -> Iterator[Remark]:
    """Kubernetes restarts a container whose liveness probe (or startup probe, which goes first)
    fails for `initialDelaySeconds + periodSeconds x failureThreshold`. A server that is still
    loading its weights fails it: the pod restarts for ever and never serves."""
    probes = case.deployment.probes
    probe = probes.get("startup") or probes.get("liveness")
    if probe is None or case.deployment.partial:
        return
    needed, steps = _START_S, [f"start-up: about {seconds(_START_S)}"]
    if case.model is not None and case.edition is not None:
        size = weight_bytes(case.model.spec, case.edition.format)
        loading = size / _LOAD_BYTES_PER_S
        needed += loading
        steps.append(f"{gib(size)} of weights at 2 GB/s: {seconds(loading)}")
    if probe.patience_s >= needed:
        return
    steps.append(
        f"{probe.initial_delay_s:g} s + {probe.period_s:g} s x {probe.failure_threshold:g} = "
        f"{seconds(probe.patience_s) if probe.patience_s else '0 s'} of patience"
    )
    threshold = int(3 * needed / max(probe.period_s, 1.0)) + 1
    yield Remark(
        f"the {probe.kind} probe gives up after {probe.patience_s:g} s, and loading takes about "
        f"{needed:.0f} s from a local disk",
        probe.value,
        tuple(steps),
        f"add a startupProbe: failureThreshold {threshold}, period {max(probe.period_s, 1):g} s",
        ("weights lie on a local disk or a volume; a download takes longer",),
    )


@rule("CP027", "autoscaler-blind", "warning", "the autoscaler cannot see that requests wait")
def autoscaler_blind(case: Case) -> Iterator[Remark]:
    """CPU, memory and GPU utilisation say nothing of a queue: a server that runs one request keeps
    its GPU as busy as one with a hundred waiting, and the number of running requests stops at
    `max_num_seqs`. Waiting requests, or the time to first token, are what grows."""
    scaler = case.deployment.autoscaler
    if scaler is None or not scaler.metrics:
        return
    most = scaler.max_replicas
    if (
        most is not None
        and scaler.min_replicas is not None
        and most.number == scaler.min_replicas.number
    ):
        return
    names = [metric.chars for metric in scaler.metrics]
    if any(_QUEUE.search(name) and not _RUNNING.search(name) for name in names):
        return
    blind = [m for m in scaler.metrics if _CPU_METRIC.search(m.chars) or _RUNNING.search(m.chars)]
    if len(blind) < len(scaler.metrics):
        return
    shown = ", ".join(dict.fromkeys(m.chars[:60] for m in blind))
    yield Remark(
        f"replicas follow {shown}, which does not rise when requests wait",
        blind[0],
        (),
        "scale on vllm:num_requests_waiting (or sglang:num_queue_reqs), or on the P95 of TTFT",
    )


@rule("CP028", "no-admission-limit", "info", "nothing limits how many requests wait")
def no_admission_limit(case: Case) -> Iterator[Remark]:
    """vLLM queues without a limit: past its capacity every request waits longer than the one
    before, and all miss their limit. A gateway (or the engine) that refuses some keeps the
    others fast. Said only where an SLO is configured."""
    if case.section.slos is None or case.engine not in ("vllm", "sglang"):
        return
    if case.deployment.flag("admission") is not None or case.deployment.shape == "Ray Serve LLM":
        return
    if case.section.admission is not None:
        return
    own = ", or with --max-queued-requests" if case.engine == "sglang" else ""
    yield Remark(
        "an SLO is set, and nothing refuses requests beyond what it allows",
        case.deployment.place,
        (),
        f"limit requests in flight at the gateway{own}",
    )


@rule("CP033", "version-floating", "info", "the image has no fixed version")
def version_floating(case: Case) -> Iterator[Remark]:
    """Defaults of memory, batch and chunking change between engine versions. An image without a
    version is another server after the next pull, and what is sized here may no longer hold."""
    image = case.deployment.image
    if image is None or not image.known or "@sha256:" in image.chars:
        return
    _, colon, tag = image.chars.rpartition(":")
    untagged = not colon or "/" in tag
    if not untagged and not _FLOATING.search(tag):
        return
    shown = "no tag" if untagged else f"the tag `{tag}`"
    newest = case.profile.name if case.profile is not None else "the newest engine"
    yield Remark(
        f"the image has {shown}: judged as {newest}",
        image,
        (),
        "pin a released version" + (", such as v0.11.0" if case.engine == "vllm" else ""),
    )


RULES = (
    shared_memory_small,
    host_memory_short,
    probe_kills_loading,
    autoscaler_blind,
    no_admission_limit,
    version_floating,
)
