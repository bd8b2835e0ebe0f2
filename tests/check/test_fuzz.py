"""Mutated manifests: a few hundred here; `python tests/fuzz_check.py` runs 20,000."""

from __future__ import annotations

import fuzz_check


def test_mutated_manifests_are_checked_whole() -> None:
    found = 0
    for _, name, text in fuzz_check.cases([fuzz_check.MANIFESTS], 300, seed=20):
        deployments, _ = fuzz_check.check_one(name, text)
        found += deployments
    assert found > 50  # some of them still deploy something
