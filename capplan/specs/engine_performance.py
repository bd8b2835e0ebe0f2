"""What an engine of one version family takes beside the kernels: fitted figures, with their rows.

One YAML file of ``capplan/engines/performance/`` is one family. Families are wider than those of
the memory profiles: a new scheduler loop or backend makes one, a release does not.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict

from capplan import units
from capplan.specs.documents import read_yaml
from capplan.specs.engine import Version, version_key
from capplan.specs.fields import Count, CountOrZero, Flag, Month, Sources, Spec, Text, validate

FOLDER = Path(__file__).resolve().parent.parent / "engines" / "performance"


def _duration(value: Any) -> Any:
    return 0.0 if value == 0 else units.parse_duration(value, positive=True)


Duration = Annotated[float, BeforeValidator(_duration)]  # `0` needs no unit
Factor = Annotated[float, Strict(), Field(gt=0, le=20, allow_inf_nan=False)]


class ChatTemplates(Spec):
    """Versions that parse a chat's template for each request; ``request`` is what that takes."""

    first: Version
    last: Version
    request: Duration


class KernelShares(Spec):
    """What this code's kernels reach of the accelerator's figures, where that is something else.

    Of the versions before ``before`` (of all, without it), on accelerators of ``vendor`` (of all).
    Factors as in `performance.overheads.EngineKernels`. ``chunked_prefill`` is ``prefill`` of
    prompts that are read in chunks.
    """

    vendor: Text | None = None
    before: Version | None = None
    compute: Factor = 1.0
    bandwidth: Factor = 1.0
    decode: Factor = 1.0
    prefill: Factor = 1.0
    chunked_prefill: Factor = 1.0
    latency: Factor = 1.0
    link: Factor = 1.0
    decode_groups: tuple[CountOrZero, ...] | None = None
    source: Text


class EnginePerformance(Spec):
    """See `performance.overheads.EngineOverheads` for the terms."""

    name: Text
    engine: Text
    variant: Text | None = None  # another code base under the same name and version
    since: Month
    first: Version | None = None  # None: from the beginning
    asynchronous: Flag | None = None  # scheduling that its times are of; None: there is one kind
    step: Duration
    sequence: Duration
    launch_per_layer: Duration
    eager_per_layer: Duration | None = None  # of decodes without CUDA graphs
    fixed_factor: Factor = 1.0
    front_end: Duration
    prompt_token: Duration
    intake: Duration = 0.0
    chat_templates: ChatTemplates | None = None
    cuda_graph_max_bs: CountOrZero | None = None
    mixed_tile_rows: dict[Text, Count] = {}
    expert_backends: dict[Text, tuple[Text, ...]] = {}
    kernels: tuple[KernelShares, ...] = ()  # the first that matches
    quantizes_dispatch: Flag = False
    rows: CountOrZero = 0
    sources: Sources
    note: Text | None = None

    def template_s(self, version: tuple[int, ...] | None) -> float:
        """What the template of a chat takes for each request in this version."""
        parsed = self.chat_templates
        if parsed is None or version is None:
            return 0.0
        first, last = version_key(parsed.first), version_key(parsed.last)
        return parsed.request if first <= version <= last else 0.0


@cache
def load_engine_performance() -> tuple[EnginePerformance, ...]:
    """All families, by engine and version."""
    found = [validate(EnginePerformance, read_yaml(path)) for path in sorted(FOLDER.glob("*.yaml"))]
    return tuple(sorted(found, key=lambda spec: (spec.engine, _first(spec))))


def engine_performance(
    engine: str,
    version: tuple[int, ...] | None = None,
    month: str | None = None,
    variant: str | None = None,
    asynchronous: bool | None = None,
) -> EnginePerformance:
    """The family of a version, else that of a month (YYYY-MM), else the newest.

    A version that schedules in step, told to schedule asynchronously, has the figures of the next
    family that does. An engine without a file has the figures of the newest vLLM.
    """
    families = [spec for spec in load_engine_performance() if spec.engine == engine]
    families = families or [s for s in load_engine_performance() if s.engine == "vllm"]
    own = [spec for spec in families if spec.variant == variant]
    families = own or [spec for spec in families if spec.variant is None] or families
    if version is not None:
        past = [spec for spec in families if _first(spec) <= version]
    elif month is not None:
        past = [spec for spec in families if spec.since <= month]
    else:
        past = families
    found = past[-1] if past else families[0]
    if asynchronous and found.asynchronous is False:
        later = families[families.index(found) + 1 :]
        return next((spec for spec in later if spec.asynchronous), found)
    return found


def _first(spec: EnginePerformance) -> tuple[int, ...]:
    return version_key(spec.first) if spec.first else (0,)
