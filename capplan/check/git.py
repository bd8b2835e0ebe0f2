"""A repository's files at another revision, through git, read-only and offline."""

from __future__ import annotations

import subprocess
from pathlib import Path

from capplan.check.documents import MAX_FILE_BYTES
from capplan.errors import CapplanError

_TIMEOUT_S = 60


class Repository:
    """The repository that a path lies in, and one revision of it."""

    def __init__(self, place: Path, revision: str) -> None:
        folder = place if place.is_dir() else place.parent
        self.root = Path(_git(folder, "rev-parse", "--show-toplevel").strip())
        self.revision = revision
        if revision.startswith("-"):
            raise CapplanError(
                f"--diff: `{revision[:40]}` is not a revision",
                hint="a branch, a tag or a commit: origin/main, v1.2, HEAD~1",
            )
        try:
            commit = f"{revision}^{{commit}}"
            named = _git(self.root, "rev-parse", "--verify", "--quiet", commit).strip()
        except CapplanError:
            raise CapplanError(
                f"--diff: git knows no revision `{revision[:60]}`",
                hint="in CI, fetch it first: fetch-depth: 0, or `git fetch origin main`",
            ) from None
        self.commit = self._fork(named)

    def _fork(self, named: str) -> str:
        """Where this branch left the revision's: what happened there since is no change of ours."""
        try:
            return _git(self.root, "merge-base", named, "HEAD").strip() or named
        except CapplanError:  # a shallow clone, or no common past
            return named

    def changed(self) -> list[str]:
        """Files that differ from the revision, and those that git does not track yet."""
        text = _git(self.root, "diff", "--name-only", "--no-renames", "-z", self.commit, "--")
        new = _git(self.root, "ls-files", "--others", "--exclude-standard", "-z")
        return sorted({name for name in (*text.split("\0"), *new.split("\0")) if name})

    def text_at(self, name: str) -> str | None:
        """A file's text at the revision; None where it was not there, or was no text."""
        try:
            size = _git(self.root, "cat-file", "-s", f"{self.commit}:{name}").strip()
        except CapplanError:
            return None
        if not size.isdigit() or int(size) > MAX_FILE_BYTES:
            return None
        return _git(self.root, "show", f"{self.commit}:{name}").removeprefix("\ufeff")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True, timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CapplanError("git cannot be run", hint="--diff needs git") from error
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise CapplanError(f"git: {reason[:200] or 'it failed'}", hint="is this a git repository?")
    return done.stdout.decode("utf-8", "replace").replace("\r\n", "\n")
