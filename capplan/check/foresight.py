"""The prediction of a deployment, made once, and only where traffic and limits are stated."""

from __future__ import annotations

from capplan.check.cases import Case
from capplan.check.predictions import Prediction


def predicted(case: Case) -> Prediction | None:
    """None where traffic, limits, memory or the number of replicas is not known."""
    if case.section.traffic is None or case.section.slos is None:
        return None
    # The simulator: most repositories state no traffic, and need not wait for its import.
    from capplan.check.plan_simulation import prediction

    if "prediction" not in case.memo:
        case.memo["prediction"] = prediction(case)
    found = case.memo["prediction"]
    assert found is None or isinstance(found, Prediction)
    return found
