"""Whether an installation is whole: packages, catalogue, and answers that are known."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from capplan.errors import CapplanError
from capplan.results.doctor import CataloguePlace, Check, Component, DoctorResult
from capplan.simulator.config import SchedulerConfig
from capplan.simulator.requests import Request
from capplan.simulator.simulate import simulate
from capplan.simulator.step_time import AffineStepTime
from capplan.specs.catalogue import load_hardware, load_model, names, places
from capplan.specs.kv_cache import kv_bytes_per_token
from capplan.specs.tensors import num_params_total

# By extra, as pyproject.toml declares them.
PACKAGES: dict[str | None, tuple[str, ...]] = {
    None: ("plotext", "pydantic", "pyyaml", "rich", "typer"),
    "fit": ("numpy", "scipy"),
    "plot": ("matplotlib",),
    "report": ("jinja2", "matplotlib"),
}
KINDS = ("hardware", "models")


def examine(cache_path: str | None = None) -> DoctorResult:
    """Look at everything; what is wrong is a check that does not hold, never an error.

    ``cache_path`` is where earlier runs have kept something.
    """
    # Of a package that two extras bring, the first is named.
    extras = {name: extra for extra, many in reversed(PACKAGES.items()) for name in many}
    components = tuple(
        Component(name, extras[name], _version(name))
        for name in dict.fromkeys(name for many in PACKAGES.values() for name in many)
    )
    checks = (_needed(components), *map(_loads, KINDS), *_sizes(), _run())
    return DoctorResult(
        healthy=all(check.holds for check in checks),
        python_version=platform.python_version(),
        python_path=sys.executable,
        version=_version("capplan"),
        path=str(Path(__file__).resolve().parent.parent),
        cache_path=cache_path,
        components=components,
        catalogue=tuple(
            CataloguePlace(kind, place, len(list(Path(place).glob("*.yaml"))))
            for kind in KINDS
            for place in places(kind)
        ),
        checks=checks,
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _needed(components: tuple[Component, ...]) -> Check:
    missing = [c.name for c in components if c.extra is None and c.version is None]
    hint = "install capplan anew" if missing else None
    found = f"without {', '.join(missing)}" if missing else "all"
    return Check("packages needed", "all", found, not missing, hint)


def _loads(kind: str) -> Check:
    """Every file of the catalogue is read, so that a broken one of the user's own is named."""
    known, first = names(kind), None
    broken = 0
    for name in known:
        try:
            load_hardware(name) if kind == "hardware" else load_model(name)
        except CapplanError as error:
            broken += 1
            first = first or f"{error.location or name}: {error.message}"
    hint = first or (None if known else "is capplan installed whole? see the paths below")
    found = f"{len(known) - broken} of {len(known)}"
    return Check(f"{kind} files read", "all", found, bool(known) and not broken, hint)


def _sizes() -> tuple[Check, ...]:
    """Llama 3.1 8B of the bundled catalogue, whatever the user's own folders hold."""
    what = "Llama 3.1 8B, parameters", "Llama 3.1 8B, KV B a token"
    expected = 8_030_261_248, 2 * 32 * 8 * 128 * 2  # as published; K, V: layers, heads, size, bf16
    try:
        model = load_model(str(Path(places("models")[-1]) / "llama-3.1-8b.yaml")).spec
    except CapplanError as error:
        return (Check(what[0], f"{expected[0]:,}", "no answer", False, error.message),)
    found = num_params_total(model), kv_bytes_per_token(model, "bf16")
    return tuple(map(_equal, what, expected, found))


def _run() -> Check:
    """A prompt of 1,000 tokens in steps of 256 takes 4, and 9 more tokens a step each.

    Every step takes 10 ms: the first token is there after 40 ms, the last after 130.
    """
    config = SchedulerConfig(100, max_num_batched_tokens=256, async_scheduling=False)
    outcome = simulate([Request("self-test", 0.0, 1000, 10)], config, AffineStepTime(0.01, 0, 0))
    first_s = outcome.records[0].ttft_s if outcome.records else 0.0
    found = f"{first_s * 1e3:.1f} ms, {outcome.end_s * 1e3:.1f} ms"
    expected = "40.0 ms, 130.0 ms"
    return Check("simulation, TTFT and end", expected, found, found == expected)


def _equal(what: str, expected: float, found: float) -> Check:
    return Check(what, f"{expected:,}", f"{found:,.0f}", found == expected)
