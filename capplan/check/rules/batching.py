"""Context, batch and token budget: what the scheduler is allowed to do."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.check.cases import Case
from capplan.check.rules.rule import Remark, rule
from capplan.check.rules.sizes import first_room, seconds
from capplan.check.rules.steps import chunk_s, decode_s, mean_context

_SHORT_REQUEST_TOKENS = 1024
_STALL_S = 1.0
_SHORT_PAUSE_S = 0.05  # a prompt this short is no pause that anybody sees
_KNEE_GAIN = 0.05
_MANY_SPECULATING = 64
_LONG_CONTEXT_FREE = ("rope-scaling", "hf-overrides", "json-model-override-args", "rope-parameters")


@rule("CP011", "context-above-model", "error", "a longer context than the model has")
def context_above_model(case: Case) -> Iterator[Remark]:
    """The engine compares `max_model_len` with the context in the model's config and refuses to
    start above it, because positions beyond it were never trained. (vLLM and SGLang have a
    variable that allows it, and options that scale the positions; with those nothing is said.)"""
    length = case.deployment.count("max_model_len")
    if case.engine not in ("vllm", "sglang") or case.model is None or length is None:
        return
    most = case.model.spec.max_context_tokens
    variables = case.deployment.environment
    allowed = any(
        name in variables and variables[name].text not in ("0", "false", "")
        for name in ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
    )
    if length <= most or allowed or any(case.deployment.named(n) for n in _LONG_CONTEXT_FREE):
        return
    yield Remark(
        f"{length:,} tokens are more than the {most:,} of {case.model.spec.name}",
        case.deployment.flag("max_model_len"),
        (f"{length:,} - {most:,} = {length - most:,} tokens too many",),
        f"set it to {most} or less",
        (case.model_note,) if case.model_note else (),
    )


@rule("CP014", "seqs-beyond-pool", "warning", "more running requests are allowed than KV holds")
def seqs_beyond_pool(case: Case) -> Iterator[Remark]:
    """`max_num_seqs` lets the scheduler start requests that the KV pool cannot carry to their end.
    It then preempts: a running request loses its KV and is computed again, which is work that
    delays all others and makes more of it."""
    seqs = case.deployment.count("max_num_seqs")
    room = first_room(case)
    if case.engine not in ("vllm", "sglang") or seqs is None or room is None:
        return
    traffic = mean_context(case)
    tokens = traffic or min(case.max_model_len or _SHORT_REQUEST_TOKENS, _SHORT_REQUEST_TOKENS)
    pool = room.pool("likely")
    if pool.keeps_nothing or pool.available_bytes <= 0:
        return
    held = room.setup.engine.dp * pool.num_sequences(tokens)
    if held >= seqs or held < 1:
        return
    what = "of this traffic" if traffic else f"of only {tokens:,} tokens"
    yield Remark(
        f"{seqs:,} requests may run at a time, and the pool holds {held:,} {what}",
        case.deployment.flag("max_num_seqs"),
        (*room.steps(), f"{held:,} requests of {tokens:,} tokens fit; {seqs:,} are allowed"),
        f"set max_num_seqs to {held} or below, or use an 8-bit KV cache or more GPUs",
        ()
        if traffic
        else (f"requests of {tokens:,} tokens; `traffic:` in .capplan.yaml says yours",),
    )


@rule("CP015", "seqs-beyond-knee", "warning", "more running requests no longer raise throughput")
def seqs_beyond_knee(case: Case) -> Iterator[Remark]:
    """Throughput grows with the batch until reads of KV or arithmetic fill the step. Beyond that
    knee every further request makes all of them slower and the server no faster; queued, it would
    cost nobody anything."""
    seqs = case.deployment.count("max_num_seqs")
    room = first_room(case)
    if seqs is None or seqs < 64 or room is None or case.role_without_decodes:
        return
    model = case.steps
    tokens = mean_context(case) or _SHORT_REQUEST_TOKENS
    if model is None or room.setup.engine.dp * room.pool("likely").num_sequences(tokens) < seqs:
        return
    full, half = decode_s(model, seqs, tokens), decode_s(model, seqs // 2, tokens)
    gain = (seqs / full) / (seqs // 2 / half) - 1
    if gain >= _KNEE_GAIN:
        return
    yield Remark(
        f"from {seqs // 2} to {seqs} running requests, throughput grows by {gain:.0%} and each "
        f"token takes {full / half - 1:.0%} longer",
        case.deployment.flag("max_num_seqs"),
        (
            f"{seqs // 2} at a time: {seconds(half)} a step, {seqs // 2 / half:,.0f} tokens/s",
            f"{seqs} at a time: {seconds(full)} a step, {seqs / full:,.0f} tokens/s",
        ),
        f"set max_num_seqs to {seqs // 2} and let the rest queue",
        (f"contexts of {tokens:,} tokens",),
    )


@rule("CP016", "token-budget-too-small", "error", "the token budget is below what the engine needs")
def token_budget_too_small(case: Case) -> Iterator[Remark]:
    """vLLM refuses a `max_num_batched_tokens` below `max_num_seqs` (each running request needs one
    token a step), and, without chunked prefill, below `max_model_len` (a prompt must fit into one
    step)."""
    budget = case.deployment.count("max_num_batched_tokens")
    if case.engine != "vllm" or budget is None:
        return
    seqs, length = case.deployment.count("max_num_seqs"), case.max_model_len
    flag = case.deployment.flag("max_num_batched_tokens")
    if seqs is not None and budget < seqs:
        yield Remark(
            f"{budget:,} tokens a step are fewer than the {seqs:,} requests that may run",
            flag,
            (f"{budget:,} < max_num_seqs {seqs:,}",),
            f"set it to {max(2048, seqs)} or more",
        )
    elif length is not None and budget < length and _unchunked(case):
        yield Remark(
            f"without chunked prefill {length:,} tokens must fit into one step of {budget:,}",
            flag,
            (f"{budget:,} < max_model_len {length:,}",),
            f"set it to {length}, or leave chunked prefill on",
        )


def _unchunked(case: Case) -> bool:
    flag = case.deployment.flag("chunked_prefill")
    if flag is not None:
        return flag.certain and flag.switch is False
    if case.deployment.open("chunked_prefill") or not case.version_known or case.profile is None:
        return False
    return not case.profile.defaults.chunks_prefill(case.max_model_len or 0)


@rule("CP017", "token-budget-stalls", "warning", "one full step of prefill holds up every request")
def token_budget_stalls(case: Case) -> Iterator[Remark]:
    """A step takes as long as its tokens. With a large `max_num_batched_tokens` one prompt fills a
    step, and all requests that are being answered wait for it: a gap in their stream of tokens."""
    budget = case.deployment.count("max_num_batched_tokens")
    flag = case.deployment.flag("max_num_batched_tokens")
    if budget is None or case.role_without_decodes or _unchunked(case):
        return
    model = case.steps
    if model is None:
        return
    tokens = min(budget, case.max_model_len or budget)
    taken = chunk_s(model, tokens)
    slos = case.section.slos
    tpot = slos.tpot.limit if slos is not None and slos.tpot is not None else 0.0
    limit = max(_STALL_S, 10 * tpot)
    if taken <= limit:
        return
    best = 1 << max(9, (int(tokens * limit / taken)).bit_length() - 1)
    yield Remark(
        f"a step of {tokens:,} prompt tokens takes {seconds(taken)}, and every running request "
        "waits for it",
        flag,
        (f"{tokens:,} tokens: {seconds(taken)}; {best:,} tokens: {seconds(chunk_s(model, best))}",),
        f"set max_num_batched_tokens to {best}",
    )


@rule("CP018", "chunked-prefill-off", "warning", "long prompts block the answers of others")
def chunked_prefill_off(case: Case) -> Iterator[Remark]:
    """Without chunked prefill a prompt is computed in one piece. Requests that are being answered
    get no token until it is done, so one long prompt is a pause for everybody."""
    flag = case.deployment.flag("chunked_prefill")
    off = flag is not None and flag.certain and flag.switch is False
    if case.engine == "sglang":
        flag = case.deployment.flag("max_num_batched_tokens")
        off = flag is not None and case.deployment.number("max_num_batched_tokens") == -1
    if not off or case.role_without_decodes:
        return
    steps: tuple[str, ...] = ()
    model, length = case.steps, case.max_model_len
    pause = ""
    if model is not None and length is not None:
        taken = chunk_s(model, length)
        if taken < _SHORT_PAUSE_S:
            return
        pause = f": up to {seconds(taken)}"
        steps = (f"a prompt of {length:,} tokens takes {seconds(taken)} in one piece",)
    yield Remark(
        f"chunked prefill is off: a long prompt stops all running requests{pause}",
        flag,
        steps,
        "leave it on (the default from vLLM 0.8)",
    )


@rule("CP019", "prefix-caching-off", "warning", "shared prompts are computed again each time")
def prefix_caching_off(case: Case) -> Iterator[Remark]:
    """With prefix caching, the KV of a system prompt or of a conversation so far is kept and only
    the new tokens are computed. Said only where the configured `traffic:` has such prompts."""
    traffic = case.section.traffic
    if traffic is None:
        return
    shared = [part.system_prompts for part in traffic.parts if part.system_prompts is not None]
    chats = [part.chat for part in traffic.parts if part.chat is not None]
    flag = case.deployment.flag("prefix_caching")
    if flag is not None:
        off = flag.certain and flag.switch is False
    else:
        off = (
            case.version_known
            and case.profile is not None
            and not case.profile.defaults.prefix_caching
        )
    if not off or not (shared or chats):
        return
    what = "conversations" if chats and not shared else "system prompts"
    yield Remark(
        f"prefix caching is off, and this traffic has {what} in common",
        flag,
        (),
        "set enable-prefix-caching",
    )


@rule("CP023", "speculation-at-high-batch", "warning", "speculative decoding in large batches")
def speculation_at_high_batch(case: Case) -> Iterator[Remark]:
    """Speculation spends arithmetic that a small batch leaves idle. In a large batch nothing is
    idle: rejected tokens then cost what accepted ones save, and throughput falls."""
    flag = case.deployment.flag("speculative")
    if flag is None or case.deployment.named("speculative-disable-by-batch-size") is not None:
        return
    if flag.value is not None and "disable_by_batch_size" in flag.value.chars:
        return
    seqs = case.deployment.count("max_num_seqs")
    stated = seqs is not None
    if seqs is None:
        setup = case.setup
        if case.deployment.flag("max_num_seqs") is not None or setup is None:
            return
        seqs = setup.budget.max_num_seqs
    if seqs < _MANY_SPECULATING:
        return
    default = "" if stated else " (the default)"
    yield Remark(
        f"speculative decoding with up to {seqs:,} running requests{default}: beyond some tens, "
        "rejected tokens cost more than accepted ones save",
        flag,
        (f"max_num_seqs {seqs:,} against about {_MANY_SPECULATING // 2}",),
        "set max_num_seqs to 32 or below, or `disable_by_batch_size` in the speculative config",
    )


RULES = (
    context_above_model,
    seqs_beyond_pool,
    seqs_beyond_knee,
    token_budget_too_small,
    token_budget_stalls,
    chunked_prefill_off,
    prefix_caching_off,
    speculation_at_high_batch,
)
