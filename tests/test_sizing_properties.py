"""What must hold of whole answers: replicas that the proof adds, and which accelerator wins."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sizing import HARDWARE, MODEL, promise, search_of

from capplan.performance.kv_engine import KvEngine
from capplan.planner.question import EngineSettings, FleetSettings, Limits, Question, Workload
from capplan.planner.sizing import proof
from capplan.planner.sizing.answer import Sought, sized_fleet
from capplan.planner.sizing.dominance import beaten_by
from capplan.planner.sizing.grid import place_from, rate_at
from capplan.planner.sizing.limits import Promise
from capplan.planner.sizing.objectives import Objective
from capplan.planner.sizing.search import Sized, best_first
from capplan.planner.sizing.space import SearchSpace
from capplan.planner.sizing.store import PointFiles
from capplan.results.gpus import GpusResult
from capplan.specs.engine_catalogue import load_engine
from capplan.specs.hardware import HardwareSpec


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> PointFiles:
    return PointFiles(tmp_path_factory.mktemp("points"), "test")


@pytest.fixture(autouse=True)
def nobody_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failure does is not looked at here."""
    monkeypatch.setattr(proof, "_lost", lambda *_: None)


def asked(name: str, hardware: HardwareSpec, rate: float, aims: Promise) -> Question:
    ttft, tpot = (each.limit.limit_s for each in aims.limits)
    return Question(
        MODEL.spec, name, hardware, Workload(rate, 1024, 256), Limits(ttft, tpot),
        EngineSettings(None, "bf16", None), FleetSettings(),
    )  # fmt: skip


def answered(
    specs: dict[str, HardwareSpec],
    rate: float,
    points: PointFiles,
    aims: Promise,
    objective: Objective = "cost",
) -> GpusResult:
    engine = KvEngine(load_engine("vllm", None), None, "bf16")
    search = replace(search_of(aims, rate, points), objective=objective)
    questions = [asked(name, spec, rate, aims) for name, spec in specs.items()]
    sought = Sought(MODEL.id, engine, SearchSpace(tps=(1,)))
    return sized_fleet(questions, sought, search).result


# More traffic, tighter limits


def gpus(rate: float, points: PointFiles, ttft: float = 0.4, tpot: float = 0.025) -> float:
    result = answered({HARDWARE.id: HARDWARE.spec}, rate, points, promise(ttft, tpot))
    return result.num_gpus if result.num_gpus is not None else math.inf


def test_more_traffic_never_needs_fewer_gpus(points: PointFiles) -> None:
    """At these rates the proof used to add a replica at one and not at the next."""
    found = [gpus(rate, points) for rate in (48.0, 49.5, 50.82, 52.35, 53.9, 55.5)]
    assert all(less <= more for less, more in pairwise(found))


def test_tighter_limits_never_need_fewer_gpus(points: PointFiles) -> None:
    for rate in (17.5, 50.82):
        by_tpot = [gpus(rate, points, tpot=tpot) for tpot in (0.03, 0.025, 0.02)]
        by_ttft = [gpus(rate, points, ttft=ttft) for ttft in (0.8, 0.4, 0.2)]
        for found in (by_tpot, by_ttft):
            assert all(looser <= tighter for looser, tighter in pairwise(found))


@dataclass
class Chance:
    """A fleet whose runs hold or not as chance has it."""

    demand_per_s: float
    holds: dict[tuple[int, int], bool]
    tops: dict[int, int]  # places that so many replicas sustain

    def least(self) -> int:
        return next(
            num for num, top in sorted(self.tops.items())
            if rate_at(top) * num >= self.demand_per_s
        )  # fmt: skip

    def places(self, num: int) -> range:
        first = place_from(self.demand_per_s / num)
        return range(first, max(first, self.tops[num]) + 1)

    def enough(self, monkeypatch: pytest.MonkeyPatch) -> float:
        def run(fleet: Chance, num: int, place: int | None = None) -> Any:
            place = fleet.places(num)[0] if place is None else place
            return SimpleNamespace(holds=fleet.holds.get((num, place), True))

        monkeypatch.setattr(proof, "_proven", run)
        first = run(self, self.least())
        if first.holds:
            return self.least()
        num, found = proof._enough_at_a_rate(cast("Any", self), self.least(), first)
        return num if found.holds else math.inf


@settings(max_examples=300, deadline=None)
@given(
    st.sets(st.tuples(st.integers(1, 12), st.integers(1024, 1040))),
    st.lists(st.integers(1024, 1036), min_size=24, max_size=24),
    st.floats(1.0, 4.0),
    st.floats(1.0, 1.5),
)
def test_chance_in_proofs_never_makes_more_traffic_need_fewer(
    missed: set[tuple[int, int]], tops: list[int], rate: float, more: float
) -> None:
    holds = dict.fromkeys(missed, False)
    by_num = dict(enumerate(tops, 1))
    with pytest.MonkeyPatch.context() as patched:
        low = Chance(rate, holds, by_num).enough(patched)
        high = Chance(rate * more, holds, by_num).enough(patched)
    assert low <= high or math.isinf(low)


def test_places_of_rates_cover_them() -> None:
    for rate in (0.01, 0.999, 1.0, 1.5, 333.0):
        place = place_from(rate)
        assert rate_at(place - 1) < rate <= rate_at(place) * (1 + 1e-7)


# A dominated accelerator


def worse(speed: float = 1.0, memory: float = 1.0, price: float = 1.0) -> HardwareSpec:
    """The catalogue's entry, slower and smaller and dearer by factors."""
    spec = HARDWARE.spec
    sizes = ("marketed", "driver", "visible")
    smaller = {name: round(getattr(spec.memory, name) * memory) for name in sizes}
    smaller["bandwidth"] = spec.memory.bandwidth * speed
    peaks = {name: peak * speed for name, peak in spec.compute.peak.items()}
    prices = tuple(
        each.model_copy(update={"usd_per_gpu_hour": each.usd_per_gpu_hour * price})
        for each in spec.prices
    )
    return spec.model_copy(
        update={
            "compute": spec.compute.model_copy(update={"peak": peaks}),
            "memory": spec.memory.model_copy(update=smaller),
            "prices": prices,
        }
    )


WORSE = {
    "a little slower": worse(speed=0.995),
    "slower": worse(speed=0.9, memory=0.95),
    "smaller": worse(memory=0.6),
    "dearer": worse(price=1.01),
}


@pytest.mark.parametrize("name", WORSE)
@pytest.mark.parametrize(("rate", "objective"), [(30.0, "cost"), (50.82, "gpus"), (52.35, "cost")])
def test_a_dominated_gpu_never_wins(
    points: PointFiles, name: str, rate: float, objective: Objective
) -> None:
    # Its name comes first, and it stands first.
    specs = {"a": WORSE[name], HARDWARE.id: HARDWARE.spec}
    result = answered(specs, rate, points, promise(), objective)
    assert result.hardware == HARDWARE.id
    better, other = result.candidates
    assert better.num_gpus is not None
    assert other.num_gpus is None or other.num_gpus_rounded is not None


def test_what_beats_what() -> None:
    aims = promise()
    specs = {**WORSE, "best": HARDWARE.spec, "twin": HARDWARE.spec}
    found = beaten_by([asked(name, spec, 1.0, aims) for name, spec in specs.items()])
    assert found["best"] == found["twin"] == ()
    assert set(found["dearer"]) == {"best", "twin"}
    assert set(found["slower"]) == {"a little slower", "best", "twin"}
    assert set(found["smaller"]) == {"best", "twin"}  # but not slower


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=6, max_size=6), st.permutations(range(6)))
def test_chance_never_puts_a_dominated_gpu_first(ranks: list[int], order: list[int]) -> None:
    specs = {**WORSE, "best": HARDWARE.spec, "twin": HARDWARE.spec}
    questions = [asked(name, spec, 1.0, promise()) for name, spec in specs.items()]
    sized = [
        cast(
            "Sized",
            SimpleNamespace(
                candidate=SimpleNamespace(question=question),
                kind=SimpleNamespace(hardware=question.hardware_id),
                rank=(float(number),),
            ),
        )
        for question, number in zip(questions, ranks, strict=True)
    ]
    found = [one.kind.hardware for one in best_first(sized[i] for i in order)]
    for name, better in beaten_by(questions).items():
        assert all(found.index(other) < found.index(name) for other in better)
