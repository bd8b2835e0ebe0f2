"""What an installation is made of, and whether it answers as it should."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Component:
    """A package that we stand on; `version` is None where it is not installed."""

    name: str
    extra: str | None  # that installs it; None: always needed
    version: str | None


@dataclass(frozen=True, slots=True)
class CataloguePlace:
    """A folder that is searched for `hardware` or `models`; the first that has a name wins."""

    kind: str
    path: str
    num_files: int


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold."""

    what: str
    expected: str
    found: str
    holds: bool
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class DoctorResult:
    healthy: bool
    python_version: str
    python_path: str
    version: str | None  # None: run from a checkout that is not installed
    path: str
    cache_path: str | None  # None: nothing has been kept yet
    components: tuple[Component, ...]
    catalogue: tuple[CataloguePlace, ...]
    checks: tuple[Check, ...]
