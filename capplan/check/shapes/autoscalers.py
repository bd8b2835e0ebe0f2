"""Autoscalers that stand beside what they scale: HPA, KEDA, AIBrix; and sections of values."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.check.deployment import Autoscaler
from capplan.check.documents import File
from capplan.check.nodes import Node
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.values import Scope, Value, literal

_KINDS = ("HorizontalPodAutoscaler", "ScaledObject", "PodAutoscaler", "MultidimPodAutoscaler")
_SECTIONS = ("autoscalingConfig", "autoscaling", "hpa", "keda")
# Fields of values files that name a metric by setting its target.
_TARGETS = {
    "targetCPUUtilizationPercentage": "cpu",
    "targetMemoryUtilizationPercentage": "memory",
    "targetCPU": "cpu",
    "targetMemory": "memory",
    "requestsRunningThreshold": "requests running",
    "requestsWaitingThreshold": "requests waiting",
}


def by_target(file: File) -> dict[str, Autoscaler]:
    """The autoscalers of a file by the name of what they scale."""
    found: dict[str, Autoscaler] = {}
    for root in file.documents:
        if root.word("kind") not in _KINDS:
            continue
        scope = Scope(file.source, overrides=file.overrides)
        target = root.word("spec", "scaleTargetRef", "name")
        spec, key = root.get("spec"), root.key("spec")
        if target is None or spec is None or key is None:
            continue
        metrics = tuple(_metrics(spec, scope))
        place = metrics[0] if metrics else literal(key.source, key.value, key.offset)
        found[target] = Autoscaler(
            place,
            root.word("kind") or "",
            metrics,
            stated(spec.get("minReplicas") or spec.get("minReplicaCount"), scope),
            stated(spec.get("maxReplicas") or spec.get("maxReplicaCount"), scope),
        )
    return found


def _metrics(spec: Node, scope: Scope) -> Iterator[Value]:
    cpu = spec.key("targetCPUUtilizationPercentage")
    if cpu is not None:  # autoscaling/v1
        yield literal(cpu.source, "cpu", cpu.offset)
    for metric in (spec.get("metrics") or spec).items or ():
        for kind in ("resource", "containerResource", "pods", "object", "external"):
            node = metric.get(kind)
            name = None if node is None else node.get("metric", "name") or node.get("name")
            value = plain_value(name, scope)
            if value is not None:
                yield value
    for trigger in (spec.get("triggers") or spec).items or ():
        metadata = trigger.get("metadata")
        named = None
        if metadata is not None:
            named = metadata.get("query") or metadata.get("metricName")
        value = plain_value(named or trigger.get("type"), scope)
        if value is not None:
            yield value
    for source in (spec.get("metricsSources") or spec).items or ():
        value = plain_value(source.get("targetMetric"), scope)
        if value is not None:
            yield value


def section(holder: Node, scope: Scope) -> Autoscaler | None:
    """The section of a values file, where it is switched on."""
    for name in _SECTIONS:
        node, key = holder.get(name), holder.key(name)
        if node is None or key is None or node.kind != "mapping" or node.word("enabled") == "false":
            continue
        found: list[Value] = list(_metrics(node, scope))
        for holder_of in (node, node.get("triggers"), node.get("metric")):
            for field, (at, child) in (
                holder_of.entries() if holder_of is not None else {}
            ).items():
                if field in _TARGETS and not child.is_null:
                    found.append(literal(at.source, _TARGETS[field], at.offset))
        low = node.get("minReplicas") or node.get("minReplicaCount")
        high = node.get("maxReplicas") or node.get("maxReplicaCount")
        if low is None and high is None and not found:
            continue
        place = literal(key.source, key.value, key.offset)
        return Autoscaler(place, name, tuple(found), stated(low, scope), stated(high, scope))
    return None
