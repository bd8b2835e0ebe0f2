"""docker compose: the replicas of one node, each with GPUs and a port of its own."""

from __future__ import annotations

from typing import Any

from capplan.render.emit import pod
from capplan.render.emit.yaml_text import Noted, document
from capplan.results.launch import Launch


def text(launch: Launch) -> str:
    """As many replicas as fit one node; a note says how many nodes there are."""
    per_node = max(1, launch.gpus_per_node // launch.gpus_per_replica)
    here = min(per_node, launch.num_replicas)
    nodes = -(-launch.num_replicas // per_node)
    notes = [f"{launch.title}."]
    if nodes > 1:
        notes.append(
            f"{launch.num_replicas} replicas take {nodes} nodes of {launch.gpus_per_node} GPUs: "
            f"this is one of them with {here}; the last may need fewer."
        )
    services = {_name(launch, i, here): _service(launch, i) for i in range(here)}
    content: dict[str, Any] = {"name": launch.name, "services": services}
    if launch.config:
        content["configs"] = {"engine": {"content": document(launch.config)}}
    content["volumes"] = {"models": {}}
    return document(content, [*notes, *launch.notes])


def _name(launch: Launch, index: int, here: int) -> str:
    return launch.name if here == 1 else f"{launch.name}-{index}"


def _service(launch: Launch, index: int) -> dict[str, Any]:
    start = launch.start_up
    first = index * launch.gpus_per_replica
    gpus = [str(first + i) for i in range(launch.gpus_per_replica)]
    words = [*launch.command, *(option.word for option in launch.options)]
    if launch.config:
        words.append(f"{launch.config_option}={pod.CONFIG_FOLDER}/options.yaml")
    url = f"http://localhost:{launch.port}{launch.health_path}"
    environment = {"HF_TOKEN": "${HF_TOKEN:-}", "HF_HOME": pod.CACHE}
    found: dict[str, Any] = {
        "image": launch.image,
        "entrypoint": words[:1],
        "command": words[1:],
        "environment": environment,
        "ports": [f"{launch.port + index}:{launch.port}"],
        "volumes": [f"models:{pod.CACHE}"],
        "shm_size": f"{pod.quantity(launch.shm_bytes)[:-2]}gb",
        "restart": "unless-stopped",
        "healthcheck": {
            "test": ["CMD", "curl", "-fsS", url],
            "interval": "10s",
            "timeout": "5s",
            "retries": 6,
            "start_period": Noted(f"{start.patience_s:g}s", "for the model to load"),
        },
    }
    if launch.config:
        found["configs"] = [{"source": "engine", "target": f"{pod.CONFIG_FOLDER}/options.yaml"}]
    return found | _devices(launch, gpus, environment)


def _devices(launch: Launch, gpus: list[str], environment: dict[str, str]) -> dict[str, Any]:
    if launch.vendor == "nvidia":
        device = {"driver": "nvidia", "device_ids": gpus, "capabilities": ["gpu"]}
        return {"deploy": {"resources": {"reservations": {"devices": [device]}}}}
    return {
        "environment": {**environment, "HIP_VISIBLE_DEVICES": ",".join(gpus)},
        "devices": ["/dev/kfd:/dev/kfd", "/dev/dri:/dev/dri"],
        "group_add": ["video"],
        "security_opt": ["seccomp:unconfined"],
    }
