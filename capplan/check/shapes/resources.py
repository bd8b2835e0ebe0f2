"""What a container asks for and is given: GPUs, memory, shared memory, probes, nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from capplan.check.deployment import Probe, Shm, Stated
from capplan.check.documents import File
from capplan.check.nodes import Node
from capplan.check.quantities import number_of, size_of
from capplan.check.shapes.fields import plain_value, stated
from capplan.check.values import Scope, Value, Variable, literal

GPU_RESOURCE = re.compile(
    r"^(?:nvidia\.com/(?:gpu(?:\.shared)?|mig-[\w.]+|[A-Z][\w-]*|pgpu)|amd\.com/gpu|habana\.ai/gaudi"
    r"|google\.com/tpu|gpu\.intel\.com/\w+|huawei\.com/Ascend\w*|aws\.amazon\.com/neuron\w*"
    r"|volcano\.sh/vgpu-number|aliyun\.com/gpu-count|gpu)$"
)

# Node labels that say nothing of the accelerator.
_OTHER_LABELS = re.compile(
    r"^(?:(?:beta\.)?kubernetes\.io/(?:os|arch)|topology\.[\w.-]+/.*|failure-domain\..*"
    r"|node-role\..*|karpenter\.sh/.*)$"
)

_PROBE_FIELDS = ("initialDelaySeconds", "periodSeconds", "failureThreshold", "timeoutSeconds")
_PROBE_DEFAULTS = (0.0, 10.0, 3.0, 1.0)  # those of Kubernetes


def gpus_of(
    container: Node, pod: Node | None, file: File, scope: Scope
) -> tuple[Stated | None, str | None]:
    """GPUs asked for and under which name; limits before requests, then claims."""
    for kind in ("limits", "requests"):
        held = container.get("resources", kind)
        for name, (_, node) in (held.entries() if held is not None else {}).items():
            if GPU_RESOURCE.match(name):
                return stated(node, scope), name
    return _claimed(container, pod, file, scope), None


def _claimed(container: Node, pod: Node | None, file: File, scope: Scope) -> Stated | None:
    """Devices of a ResourceClaimTemplate in the same file (dynamic resource allocation)."""
    claims = container.get("resources", "claims")
    if claims is None or pod is None:
        return None
    wanted = {claim.word("name") for claim in claims.items or ()}
    for entry in (pod.get("resourceClaims") or pod).items or ():
        template = entry.word("resourceClaimTemplateName")
        if entry.word("name") not in wanted or template is None:
            continue
        for root in file.documents:
            if (
                root.word("kind") == "ResourceClaimTemplate"
                and root.word("metadata", "name") == template
            ):
                request = root.get("spec", "spec", "devices", "requests", 0)
                if request is not None:
                    held = request.get("exactly") or request
                    return stated(held.get("count"), scope)
    return None


def gpu_hints(pod: Node | None, scope: Scope) -> tuple[Value, ...]:
    """Whatever node labels say: selectors and required affinity."""
    found: list[Value] = []
    selector = pod.get("nodeSelector") if pod is not None else None
    if selector is not None:
        found += label_values(selector, scope)
    if pod is None:
        return tuple(found)
    required = pod.get("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for term in (required.get("nodeSelectorTerms") or required).items or () if required else ():
        found += selector_values(term, scope)
    for term in (pod.get("nodeSelectorTerms") or pod).items or ():
        found += selector_values(term, scope)
    return tuple(found)


def label_values(selector: Node, scope: Scope) -> Iterator[Value]:
    for label, (_, node) in selector.entries().items():
        value = plain_value(node, scope) if not _OTHER_LABELS.match(label) else None
        if value is not None:
            yield value


def selector_values(term: Node, scope: Scope) -> Iterator[Value]:
    for expression in (term.get("matchExpressions") or term).items or ():
        other = _OTHER_LABELS.match(expression.word("key") or "")
        if expression.word("operator") in (None, "In") and not other:
            for node in (expression.get("values") or expression).items or ():
                value = plain_value(node, scope)
                if value is not None:
                    yield value


def shm_of(container: Node, pod: Node | None, scope: Scope) -> Shm | None:
    """The volume at /dev/shm; None where there is none (64 MiB by default)."""
    if pod is not None and pod.word("hostIPC") == "true":
        return Shm(None, plain_value(pod.get("hostIPC"), scope))
    volumes = (pod.get("volumes") if pod is not None else None) or container.get("volumes")
    for mount in (container.get("volumeMounts") or container).items or ():
        if (mount.word("mountPath") or "").rstrip("/") != "/dev/shm":
            continue
        for volume in volumes.items or () if volumes is not None else ():
            if volume.word("name") == mount.word("name"):
                limit = plain_value(volume.get("emptyDir", "sizeLimit"), scope)
                return Shm(
                    size_of(limit.word) if limit else None,
                    limit or plain_value(mount.get("mountPath"), scope),
                )
        return Shm(None, plain_value(mount.get("mountPath"), scope))
    return None


def listed_devices(listed: Variable | None, place: Value) -> Stated | None:
    """As many as `CUDA_VISIBLE_DEVICES=0,1` lists; None where it lists no numbers."""
    devices = listed.text.split(",") if listed is not None else []
    if listed is None or not all(device.strip().isdigit() for device in devices):
        return None
    return Stated(literal(place.text.source, listed.text, place.offset), float(len(devices)))


def memory_limit_of(container: Node, scope: Scope) -> Stated | None:
    value = plain_value(container.get("resources", "limits", "memory"), scope)
    return None if value is None else Stated(value, size_of(value.word))


def probes_of(container: Node) -> Iterator[tuple[str, Probe]]:
    for kind in ("liveness", "readiness", "startup"):
        node = container.get(f"{kind}Probe")
        if node is None or node.kind != "mapping" or not node.entries():
            continue
        key = container.key(f"{kind}Probe")
        assert key is not None
        probe = read_probe(kind, key, node, _PROBE_FIELDS)
        if probe is not None:
            yield kind, probe


def read_probe(kind: str, key: Node, node: Node, fields: Sequence[str]) -> Probe | None:
    """``fields`` name delay, period, failures and timeout; None where one is no number."""
    figures = [
        number_of(node.word(field), default)
        for field, default in zip(fields, _PROBE_DEFAULTS, strict=True)
    ]
    if None in figures:
        return None
    delay, period, failures, timeout = (figure or 0.0 for figure in figures)
    place = literal(key.source, key.value, key.offset)
    return Probe(kind, place, delay, period, failures, timeout)
