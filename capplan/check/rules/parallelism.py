"""Degrees of parallelism against GPUs, heads, experts, nodes and links."""

from __future__ import annotations

from collections.abc import Iterator

from capplan import units
from capplan.check.cases import Case
from capplan.check.deployment import parse_number
from capplan.check.flags import Flag
from capplan.check.rules.rule import Remark, rule
from capplan.check.values import Value
from capplan.planner.kv_split import group_fault
from capplan.planner.parallelism import tp_fault
from capplan.specs.ffns import MoEFFN
from capplan.specs.mixers import Attention
from capplan.specs.model import ModelSpec


def _needed(case: Case) -> tuple[int, str] | None:
    """GPUs that a replica's degrees ask for, and the product as text."""
    tp, pp, dp = case.tp, case.pp, case.dp
    if tp is None or pp is None or dp is None:
        return None
    if case.engine == "tgi" and case.deployment.flag("tp") is None:
        return None  # TGI shards over all GPUs that it sees
    attention = case.deployment.flag("dp_attention")
    if case.engine == "sglang" and attention is not None and attention.switch:
        return tp * pp, f"TP {tp} x PP {pp}"
    return tp * pp * dp, f"TP {tp} x PP {pp} x DP {dp}" if dp > 1 else f"TP {tp} x PP {pp}"


def _offered(case: Case) -> tuple[int, str] | None:
    """GPUs of a replica's pods, and how they add up."""
    deployment = case.deployment
    total = case.gpus_per_replica
    held = deployment.gpus_per_pod
    if total is None:
        return None
    per_pod = case.gpus_per_pod
    pods = deployment.pods.count if deployment.pods is not None else None
    nnodes = deployment.count("nnodes")
    if pods is None and nnodes is not None and nnodes > 1 and per_pod is not None:
        return per_pod * nnodes, f"{per_pod} GPUs x {nnodes} nodes"
    text = f"{per_pod} GPU{'' if per_pod == 1 else 's'} a pod"
    if held is None and case.gpus is not None:
        text = f"{per_pod} GPU{'' if per_pod == 1 else 's'} of the machine type"
    if pods is not None and pods > 1:
        text += f" x {pods} pods"
    if deployment.other_gpus is not None and deployment.other_gpus.count:
        text += f" + {deployment.other_gpus.count} of the other pods"
    return total, text


def _elsewhere(case: Case) -> bool:
    """Whether GPUs may come from what the file does not show: a Ray cluster, external ranks."""
    deployment = case.deployment
    if deployment.ray and deployment.other_gpus is None and deployment.pods is None:
        return True
    if deployment.shape == "Ray Serve LLM":
        return True
    return any(
        deployment.named(name) is not None
        for name in ("data-parallel-rank", "data-parallel-address")
    )


@rule("CP005", "gpus-missing", "error", "the parallel degrees need more GPUs than are asked for")
def gpus_missing(case: Case) -> Iterator[Remark]:
    """Tensor, pipeline and data parallelism each take whole GPUs. A server that is told to use
    more of them than its pods were given does not start, or waits for ever for a worker that is
    not scheduled."""
    local = _local(case)
    if local is not None:
        yield local
        return
    needed, offered = _needed(case), _offered(case)
    if needed is None or offered is None or needed[0] <= offered[0] or _elsewhere(case):
        return
    if offered[0] == 0:
        return  # a server on CPUs
    yield Remark(
        f"{needed[1]} needs {needed[0]} GPUs, and a replica has {offered[0]}",
        _largest(case),
        (f"{needed[1]} = {needed[0]}", f"{offered[1]} = {offered[0]}"),
        f"ask for {needed[0]} GPUs, or set tensor-parallel-size to {_fitting(case, offered[0])}",
        (case.model_note,) if case.model_note else (),
    )


def _local(case: Case) -> Remark | None:
    """Data-parallel ranks of one pod (`--data-parallel-size-local`) against its GPUs."""
    ranks, tp, pp = case.deployment.count("dp_local"), case.tp, case.pp
    held = case.deployment.gpus_per_pod
    if ranks is None or tp is None or pp != 1 or held is None or held.count is None:
        return None
    if tp * ranks <= held.count:
        return None
    return Remark(
        f"TP {tp} x {ranks} local DP ranks need {tp * ranks} GPUs, and a pod has {held.count}",
        case.deployment.flag("dp_local"),
        (f"{tp} x {ranks} = {tp * ranks}", f"{held.count} GPUs a pod"),
        f"ask for {tp * ranks} GPUs a pod",
    )


def _largest(case: Case) -> Flag | Value:
    flags = [case.deployment.flag(name) for name in ("tp", "pp", "dp")]
    set_flags = [flag for flag in flags if flag is not None]
    known = [flag for flag in set_flags if parse_number(flag.text) is not None]
    if not known:
        return case.deployment.place
    return max(known, key=lambda flag: parse_number(flag.text) or 0.0)


def _fitting(case: Case, offered: int) -> int:
    """The largest TP that the GPUs hold and the model's heads allow."""
    model = case.model.spec if case.model is not None else None
    rest = (case.pp or 1) * (case.dp or 1)
    for tp in (64, 32, 16, 8, 4, 2):
        if tp * rest <= offered and (model is None or tp_fault(model, tp) is None):
            return tp
    return 1


@rule("CP006", "gpus-idle", "warning", "GPUs are asked for that the server does not use")
def gpus_idle(case: Case) -> Iterator[Remark]:
    """The default degrees are 1: a pod with eight GPUs and no `tensor-parallel-size` serves on one
    of them, and the others are paid for."""
    needed, offered = _needed(case), _offered(case)
    if needed is None or offered is None or offered[0] <= needed[0] or _elsewhere(case):
        return
    if case.siblings > 1 or case.deployment.flag("dp_local") is not None:
        return
    idle = offered[0] - needed[0]
    yield Remark(
        f"{needed[1]} uses {needed[0]} of {offered[0]} GPUs: {idle} are idle",
        case.deployment.flag("tp")
        or (case.deployment.gpus_per_pod.value if case.deployment.gpus_per_pod else None),
        (f"{needed[1]} = {needed[0]}", f"{offered[1]} = {offered[0]}"),
        f"set tensor-parallel-size to {_fitting(case, offered[0])}, or ask for {needed[0]}",
    )


@rule("CP007", "tp-does-not-divide", "error", "tensor parallelism does not divide the model")
def tp_does_not_divide(case: Case) -> Iterator[Remark]:
    """Each rank holds whole attention heads, and whole groups of elements that share a
    quantisation scale. A degree that does not divide them is refused when the model is loaded."""
    tp = case.tp
    if case.model is None or tp is None or tp < 2:
        return
    model = case.model.spec
    attention = case.deployment.flag("dp_attention")
    heads_tp = tp // case.dp if attention is not None and case.dp and tp % case.dp == 0 else tp
    fault = tp_fault(model, heads_tp)
    if fault is None and case.edition is not None:
        parallel = case.deployment.flag("expert_parallel")
        whole = parallel is not None and parallel.switch is not False
        fault = group_fault(model, tp, case.edition, whole_experts=whole)
    if fault is None:
        return
    works = ", ".join(str(n) for n in (1, 2, 4, 8, 16, 32) if _divides(case, model, n))
    yield Remark(
        f"{model.name} cannot be split {tp} ways: {fault}",
        case.deployment.flag("tp"),
        (fault,),
        f"use a degree that divides: {works}",
        (case.model_note,) if case.model_note else (),
    )


def _divides(case: Case, model: ModelSpec, tp: int) -> bool:
    if tp_fault(model, tp) is not None:
        return False
    return case.edition is None or group_fault(model, tp, case.edition) is None


@rule("CP008", "kv-heads-copied", "info", "more ranks than KV heads: each holds copies")
def kv_heads_copied(case: Case) -> Iterator[Remark]:
    """With more tensor-parallel ranks than KV heads, heads are copied. The KV cache a GPU then
    stops shrinking with the degree: twice the GPUs hold the same number of tokens."""
    tp = case.tp
    if case.model is None or tp is None or case.deployment.flag("tp") is None:
        return
    heads = [m.num_kv_heads for m in case.model.spec.mixers.values() if isinstance(m, Attention)]
    most = max(heads, default=0)
    if not most or tp <= most:
        return
    yield Remark(
        f"{case.model.spec.name} has {most} KV heads: at TP {tp} each is held {tp // most} times",
        case.deployment.flag("tp"),
        (f"KV a GPU at TP {tp} = KV a GPU at TP {most}",),
        f"use TP {most} and more replicas, or decode-context-parallel-size {tp // most}",
    )


@rule("CP009", "tp-across-nodes", "warning", "tensor parallelism spans pods, over the network")
def tp_across_nodes(case: Case) -> Iterator[Remark]:
    """Tensor parallelism exchanges activations twice a layer. Within a node that is an NVLink
    away; between pods it crosses the network, ten times slower or more. Pipeline stages send one
    activation a stage instead."""
    pods = case.deployment.pods
    tp, per_pod = case.tp, case.gpus_per_pod
    several = (pods is not None and (pods.count or 0) > 1) or case.deployment.other_gpus is not None
    if tp is None or per_pod is None or per_pod < 1 or tp <= per_pod or not several:
        return
    link = case.hardware.scale_up if case.hardware is not None else None
    node = case.hardware.node.gpus if case.hardware is not None else 0
    if link is not None and link.domain >= tp and (link.domain > node or per_pod >= node):
        return  # a rack or a slice is one fast domain
    layers = (
        f" ({2 * case.model.spec.num_layers} exchanges a token)" if case.model is not None else ""
    )
    stages = -(-tp // per_pod)
    each = f"{per_pod} GPU{'' if per_pod == 1 else 's'}"
    yield Remark(
        f"TP {tp} over pods of {each} crosses the network{layers}",
        case.deployment.flag("tp"),
        (f"TP {tp} / {per_pod} GPUs a pod = {stages} pods",),
        f"use tensor-parallel-size {per_pod} and pipeline-parallel-size {stages}",
    )


@rule("CP010", "tp-off-fast-link", "warning", "tensor parallelism over PCIe")
def tp_off_fast_link(case: Case) -> Iterator[Remark]:
    """GPUs without NVLink or Infinity Fabric exchange activations over PCIe, at a tenth of the
    bandwidth. From four ranks on, the exchanges take longer than what they save."""
    tp = case.tp
    if tp is None or tp < 4 or not case.candidates:
        return
    limits = [spec.scale_up.domain if spec.scale_up is not None else 1 for spec in case.candidates]
    if max(limits) >= tp or (
        case.deployment.pods is not None and (case.deployment.pods.count or 1) > 1
    ):
        return
    spec = case.candidates[0]
    link = "PCIe"
    if spec.pcie is not None:
        link = f"PCIe at {units.format_bytes_per_s(spec.pcie.bandwidth, digits=3)}"
    yield Remark(
        f"TP {tp} on {spec.name}: {max(limits) if max(limits) > 1 else 'none'} of its GPUs share a "
        f"fast link, the rest is {link}",
        case.deployment.flag("tp"),
        (f"fast link: {max(limits)} GPU{'' if max(limits) == 1 else 's'}; TP {tp}",),
        f"use pipeline-parallel-size {tp // 2} with tensor-parallel-size 2, or GPUs with NVLink",
    )


@rule("CP034", "experts-do-not-divide", "error", "the experts do not divide over the ranks")
def experts_do_not_divide(case: Case) -> Iterator[Remark]:
    """SGLang and TensorRT-LLM place an equal number of whole experts on each expert-parallel rank.
    (vLLM lets ranks differ by one.)"""
    flag = case.deployment.flag("expert_parallel")
    ranks = case.deployment.count("expert_parallel")
    if (
        case.engine not in ("sglang", "tensorrt-llm")
        or case.model is None
        or not ranks
        or ranks < 2
    ):
        return
    redundant = case.deployment.named("ep-num-redundant-experts")
    experts = [f.num_experts for f in case.model.spec.ffns.values() if isinstance(f, MoEFFN)]
    for num in experts:
        if num % ranks and redundant is None:
            yield Remark(
                f"{num} experts cannot be dealt evenly over {ranks} ranks",
                flag,
                (f"{num} / {ranks} = {num / ranks:.4g}",),
                "use a degree that divides",
            )
            return


RULES = (
    gpus_missing,
    gpus_idle,
    tp_does_not_divide,
    kv_heads_copied,
    tp_across_nodes,
    tp_off_fast_link,
    experts_do_not_divide,
)
