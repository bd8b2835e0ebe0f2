"""The closed-form view of a deployment as its engine runs it: what bounds the simulation."""

from __future__ import annotations

from capplan.formulas import queueing
from capplan.performance.kv_pool import KvPool
from capplan.performance.step import StepModel
from capplan.planner.question import Question
from capplan.planner.replica import MeanStep, Replica
from capplan.planner.serving import Serving


class ServedReplica(Replica):
    """The bounds' steady state with the engine's own pool, seats, budget and overheads.

    ``slo_e2e_s`` None: no limit on the whole answer.
    """

    def __init__(self, question: Question, serving: Serving, slo_e2e_s: float | None) -> None:
        self.question = question
        self.tp = serving.deployment.tp
        self.serving = serving
        self.slo_e2e_s = slo_e2e_s
        self.steps: StepModel = serving.steps

    @property
    def pool_bytes_per_gpu(self) -> float:
        return self.serving.deployment.budget.pool_bytes

    @property
    def pool(self) -> KvPool:
        return self.serving.pool

    @property
    def max_sequences(self) -> int:
        """Seats or requests that fit at full length, whichever are fewer."""
        fit = self.serving.deployment.num_sequences(self.question.workload.context_tokens)
        return min(fit, self.serving.config.slots)

    def ttft_s(self, num_decodes: float) -> float:
        """With what the engine's front end takes."""
        front_end_s = self.serving.overheads.ttft_s(self.question.workload.prompt_tokens)
        return super().ttft_s(num_decodes) + front_end_s

    def used_fractions(self, step: MeanStep) -> dict[str, float]:
        used = super().used_fractions(step)
        if self.slo_e2e_s is not None:
            used["e2e"] = self.e2e_s(step) / self.slo_e2e_s
        return used

    def e2e_s(self, step: MeanStep) -> float:
        return queueing.e2e_s(step.ttft_s, step.step_time_s, self.question.workload.output_tokens)

    def in_flight(self, requests_per_s: float) -> float:
        """Requests in the replica at a rate, on average; all seats where the rate is too high."""
        step = self.mean_step_at_rate(requests_per_s)
        if step is None:
            return float(self.max_sequences)
        return step.decode_batch + requests_per_s * step.ttft_s
