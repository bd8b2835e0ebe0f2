"""Finding `.capplan.yaml` upward from a file, and what it says of a deployment."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from capplan.check.calibrations import OwnServers
from capplan.specs.check import CheckSpec, DeploymentSection
from capplan.specs.documents import read_yaml
from capplan.specs.fields import validate

NAME = ".capplan.yaml"
MAX_UPWARD = 40


@dataclass(frozen=True)
class Config:
    """A configuration and the folder that its paths are relative to.

    ``own``: servers that the command line gives, for every deployment on their accelerator.
    """

    spec: CheckSpec = field(default_factory=CheckSpec)
    file: str | None = None
    folder: Path = Path()
    own: OwnServers | None = None

    def overrides(self, given: dict[str, str]) -> dict[str, str]:
        """Variables and Helm values: what the command line gives wins."""
        stated = {name: _text(value) for name, value in self.spec.values.items()}
        return stated | given

    def section(self, file: str, deployment: str) -> DeploymentSection:
        """What is said of a deployment; the first name that fits, exact names before patterns."""
        sections = self.spec.deployments
        relative = self.relative(file)
        for name in (deployment, relative):
            if name in sections:
                return sections[name]
        for pattern, section in sections.items():
            if fnmatchcase(deployment, pattern) or fnmatchcase(relative, pattern):
                return section
        return _NOTHING

    def relative(self, file: str) -> str:
        """A file's path as the configuration writes it."""
        return _relative(file, self.folder, Path.cwd())

    def excludes(self, file: str) -> bool:
        relative = self.relative(file)
        return any(
            fnmatchcase(relative, pattern) or fnmatchcase(relative, f"{pattern.rstrip('/')}/*")
            for pattern in self.spec.exclude
        )


@lru_cache(maxsize=4096)
def _relative(file: str, folder: Path, here: Path) -> str:
    try:
        return (here / file).resolve().relative_to((here / folder).resolve()).as_posix()
    except (ValueError, OSError):
        return Path(file).as_posix()


_NOTHING = DeploymentSection()


def _text(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_config(path: Path) -> Config:
    """Raises CapplanError for a file that is missing, no YAML, or has unknown fields."""
    return Config(validate(CheckSpec, read_yaml(path)), str(path), path.parent)


class Configs:
    """The nearest configuration of each file, each read once."""

    def __init__(self, fixed: Config | None = None, own: OwnServers | None = None) -> None:
        self.fixed = replace(fixed, own=own) if fixed is not None else None
        self.own = own
        self._by_folder: dict[Path, Config] = {}

    def of(self, file: Path) -> Config:
        if self.fixed is not None:
            return self.fixed
        return self._of_folder(file.absolute().parent)

    def _of_folder(self, folder: Path) -> Config:
        seen: list[Path] = []
        found = Config(own=self.own)
        for _ in range(MAX_UPWARD):
            known = self._by_folder.get(folder)
            if known is not None:
                found = known
                break
            seen.append(folder)
            path = folder / NAME
            if path.is_file():
                found = replace(read_config(path), own=self.own)
                break
            # A repository's root ends the search: what lies above is somebody else's.
            if (folder / ".git").exists() or folder == folder.parent:
                break
            folder = folder.parent
        for place in seen:
            self._by_folder[place] = found
        return found
