"""Passes in which blocks or the token budget run out, so that the order of requests matters."""

from __future__ import annotations

from dataclasses import dataclass, field

from capplan.simulator.sequence import NO_STEP, Sequence, by_admission
from capplan.simulator.state import ReplicaState
from capplan.simulator.step_time import ChunkSums


@dataclass(slots=True)
class ScarcePass:
    """What the running requests got."""

    budget: int  # tokens left
    decodes: int = 0
    context: int = 0  # of these decodes, at the end of the step
    prompts: list[Sequence] = field(default_factory=list)
    sums: list[ChunkSums] = field(default_factory=list)  # theirs
    preempted: list[Sequence] = field(default_factory=list)
    starved: set[Sequence] = field(default_factory=set)  # decodes that got nothing

    def add(self, seq: Sequence, tokens: int) -> None:
        """So many of the computed tokens of a prompt are of this pass."""
        self.prompts.append(seq)
        self.sums.append((tokens, seq.computed - tokens))


def scarce_pass(
    replica: ReplicaState, cut: int, *, held: bool, budget_suffices: bool
) -> ScarcePass:
    """The first half of a pass: running requests."""
    if budget_suffices and replica.config.policy == "fcfs":
        return _out_of_blocks(replica, cut, held=held)
    return _in_order(replica, cut, held=held)


def _out_of_blocks(replica: ReplicaState, cut: int, *, held: bool) -> ScarcePass:
    """Everybody's tokens fit the budget, and victims leave from the end of the list.

    Then only those that need a block have to be looked at, and no victim was served before.
    """
    size, running = replica.block_size, replica.running
    phase = replica.step % size
    result = ScarcePass(replica.config.max_num_batched_tokens - replica.num_decodes)
    needy = [s for s in running if s.phase == phase]
    if replica.in_prompt:
        needy = sorted([*needy, *replica.in_prompt], key=by_admission)
    for seq in needy:
        if seq not in running:
            break
        want, need = 1, 1
        if seq.last_step == NO_STEP:
            want = min(seq.target - seq.computed, cut, result.budget)
            if held or not want:
                continue
            need = -(-(seq.computed + want) // size) + (-seq.computed // size)
        while need > replica.free and seq in running:
            victim = next(reversed(running))
            replica.preempt(victim, served=False)
            result.preempted.append(victim)
        if seq not in running:
            break
        replica.free -= need
        if seq.last_step == NO_STEP:
            seq.computed += want
            result.budget -= want
            result.add(seq, want)
    result.decodes = replica.num_decodes
    result.context = replica.computed + replica.num_decodes
    if replica.cache is not None:
        replica.register_pass(result.prompts)
    # Victims were counted in the budget; now that it has done its work, it says what is left.
    result.budget = replica.config.max_num_batched_tokens - result.decodes
    result.budget -= sum([tokens for tokens, _ in result.sums])
    return result


def _in_order(replica: ReplicaState, cut: int, *, held: bool) -> ScarcePass:
    """One by one in the order of the running list."""
    size, step = replica.block_size, replica.step
    order = list(replica.running)
    result = ScarcePass(replica.config.max_num_batched_tokens)
    served: dict[Sequence, int] = {}
    at = 0
    while at < len(order) and result.budget > 0:
        seq = order[at]
        decode = seq.last_step != NO_STEP
        if decode:
            want, need = 1, int(seq.phase == step % size)
        else:
            want = min(seq.target - seq.computed, cut, result.budget)
            need = -(-(seq.computed + want) // size) + (-seq.computed // size)
        if (decode and seq.landing and not seq.stops) or (held and not decode):
            at += 1
            continue
        preempted_itself = False
        while need > replica.free and not preempted_itself:
            victim = order[-1]
            if replica.config.policy == "priority":
                victim = max(order, key=lambda s: (s.priority, s.arrival_s))
            tokens = served.pop(victim, 0)
            if tokens:  # taken out of the step again
                result.budget += tokens
                at -= 1
            order.remove(victim)
            replica.preempt(victim, served=tokens > 0)
            result.preempted.append(victim)
            preempted_itself = victim is seq
        if preempted_itself:
            if replica.config.policy == "fcfs":
                break
            continue
        replica.free -= need
        if not decode:
            seq.computed += want
        if replica.cache is not None:
            if not decode:
                replica.cache.register(seq, seq.computed)
            elif seq in replica.continued:
                replica.cache.register(seq, replica.registered(seq, served=True))
        served[seq] = want
        result.budget -= want
        at += 1
    for seq in order:
        if seq.last_step == NO_STEP:
            if seq in served:
                result.add(seq, served[seq])
        elif seq in served:
            result.decodes += 1
            result.context += step + seq.offset + 1
        elif served and not (seq.landing and not seq.stops):
            result.starved.add(seq)
    if replica.windows and result.starved:
        decodes = [s for s in order if s.last_step != NO_STEP and s in served]
        replica.windows.serve_only([step + s.offset + 1 for s in decodes])
    for seq in order:
        if seq in result.starved:
            _starve(replica, seq)
    return result


def _starve(replica: ReplicaState, seq: Sequence) -> None:
    """The step passes a decode by: everything about it is due one step later."""
    replica.opening[seq.phase] -= 1
    if replica.windows:
        replica.windows.pass_by(replica.step + seq.offset)
    seq.offset -= 1
    seq.phase = (seq.phase + 1) % replica.block_size
    replica.opening[seq.phase] += 1
    seq.starved_at = replica.step
    if not seq.landing:  # a landing one has sampled its last token already
        replica.ending[seq.last_step].remove(seq)
        replica.ends_in(seq.last_step + 1, seq)
