"""Speed and memory of the simulator, beside the naive scheduler of the tests and a peer.

    python benchmarks/simulator.py [TRACE.csv] [--million] [--peer PYTHON]

TRACE.csv has the columns arrival (s), prompt tokens, output tokens; without it, equivalent
traffic is generated (Poisson 4 requests/s, 1,024 in, 256 out). PYTHON is an interpreter with
`ai-dynamo`; it stays out of the project's own environment. Every row is a process of its own;
CPU seconds and peak memory are that process's.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import resource
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUDGET = 512
PROGRESS_EVERY = 10_000


def peers_traffic(path: str | None) -> list[tuple[float, int, int]]:
    if path:
        with Path(path).open(encoding="utf-8", newline="") as file:
            return [(float(a), int(p), int(d)) for a, p, d in list(csv.reader(file))[1:]]
    rng, clock, rows = random.Random(1), 0.0, []
    for _ in range(10_000):
        clock += rng.expovariate(4.0)
        rows.append((clock, 1024, 256))
    return rows


# Requests/s near saturation, by step time.
HEAVY_RATES = {"affine": 24.0, "model": 18.0}


def heavy_traffic(number: int, rate: float, shared: bool) -> Iterator[Any]:
    """Requests of about 1,024 in and 256 out."""
    from capplan.simulator.requests import Request

    rng, clock = random.Random(3), 0.0
    for index in range(number):
        clock += rng.expovariate(rate)
        prompt = min(4096, max(16, round(rng.gauss(1024, 256))))
        output = min(1024, max(8, round(rng.gauss(256, 64))))
        prefix: tuple[tuple[str, int], ...] = ()
        if shared:  # one of twenty system prompts in front
            prefix, prompt = ((f"system {index % 20}", 2048),), 2048 + prompt // 2
        yield Request(f"r{index}", clock, prompt, output, prefix=prefix)


def model_step_time() -> Any:
    """The performance model of the day: Llama-3.1-8B on an H100."""
    from capplan.performance.rates import derated_rates
    from capplan.performance.step import StepModel
    from capplan.simulator.model_step_time import ModelStepTime
    from capplan.specs.catalogue import load_hardware, load_model

    hardware = load_hardware("h100-sxm-80gb").spec
    model = load_model("llama-3.1-8b").spec
    rates = derated_rates(hardware, 1)
    return ModelStepTime(StepModel(model, hardware, rates, tp=1, kv_dtype="bf16"))


def affine_step_time() -> Any:
    from capplan.simulator.step_time import AffineStepTime

    return AffineStepTime(2.0**-7, 2.0**-16, 2.0**-24)


def ours(case: str, trace: str | None) -> dict[str, Any]:
    """One simulation in this process. `case` is traffic/step time/mode/caching."""
    from capplan.simulator.config import SchedulerConfig
    from capplan.simulator.requests import Request
    from capplan.simulator.simulate import simulate

    traffic, timer, mode, caching = case.split("/")
    options: dict[str, Any] = {"num_gpu_blocks": 30_000, "max_model_len": 8192}
    options["async_scheduling"] = mode == "async"
    options["enable_prefix_caching"] = caching != "uncached"
    if traffic == "peers":
        rows = peers_traffic(trace)
        requests: Any = [Request(f"r{i}", *row) for i, row in enumerate(rows)]
        number = len(rows)
        options |= {"max_num_batched_tokens": BUDGET, "max_num_seqs": 256}
    else:
        number = 1_000_000 if traffic == "million" else 100_000
        requests = heavy_traffic(number, HEAVY_RATES[timer], caching == "shared")
        if traffic == "heavy":
            requests = list(requests)
        options |= {"max_num_batched_tokens": 8192, "max_num_seqs": 512}
    step_time = model_step_time() if timer == "model" else affine_step_time()
    begin = time.process_time()
    arrived, first, finished = array("d"), array("d"), array("d")

    def keep(record: Any) -> None:
        arrived.append(record.arrival_s)
        first.append(record.first_token_s)
        finished.append(record.finish_s)
        if traffic == "million" and len(finished) % PROGRESS_EVERY == 0:
            progress(len(finished), number)

    outcome = simulate(requests, SchedulerConfig(**options), step_time, on_finish=keep)
    cpu_s = time.process_time() - begin
    return {
        "requests": number, "cpu_s": cpu_s, "steps": outcome.num_steps,
        "preemptions": outcome.num_preemptions, "max_running": outcome.max_running,
    }  # fmt: skip


def progress(done: int, number: int) -> None:
    if sys.stderr.isatty():
        bar = "#" * (30 * done // number)
        print(f"\r[{bar:<30}] {done:,} requests", end="", file=sys.stderr, flush=True)


def naive(trace: str | None, number: int) -> dict[str, Any]:
    """The reference of the tests: the same rules, request by request."""
    sys.path.insert(0, str(ROOT / "tests"))
    from reference_scheduler import Engine

    rows = peers_traffic(trace)[:number]
    entries = [
        {"id": f"r{i}", "arrival_s": a, "prompt_len": p, "output_len": d}
        for i, (a, p, d) in enumerate(rows)
    ]
    config = {
        "block_size": 16, "num_gpu_blocks": 30_000, "max_num_seqs": 256,
        "max_num_batched_tokens": BUDGET, "max_model_len": 8192, "enable_chunked_prefill": True,
        "long_prefill_token_threshold": 0, "long_prefill_token_threshold_adaptive": False,
        "enable_prefix_caching": False, "policy": "fcfs", "watermark": 0.0,
        "scheduler_reserve_full_isl": True, "max_num_active_seqs": None,
        "prefill_schedule_interval": 1,
    }  # fmt: skip
    cost = {"a": 2.0**-7, "b": 2.0**-16, "c": 2.0**-24}
    begin = time.process_time()
    result = Engine({"config": config, "step_time": cost, "requests": entries}).run()
    cpu_s = time.process_time() - begin
    return {"requests": len(rows), "cpu_s": cpu_s, "steps": result["summary"]["num_steps"]}


PEER = """
import json, resource, sys, time
from dynamo.replay import run_trace_replay
engine = dict(num_gpu_blocks=30000, block_size=16, max_num_seqs=256, max_num_batched_tokens=512,
              max_model_len=8192, enable_chunked_prefill=True,
              enable_prefix_caching=sys.argv[2] == "cached")
begin = time.process_time()
run_trace_replay(sys.argv[1], extra_engine_args={"engine": engine}, num_workers=1,
                 trace_block_size=512)
now = time.process_time()
kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("RESULT", json.dumps({"cpu_s": now - begin, "process_s": now, "peak_mb": kib / 1024}))
"""


def peer(python: str, trace: str | None, caching: str) -> dict[str, Any]:
    """NVIDIA's DynoSim (`dynamo.replay`) with its own default timing model."""
    import tempfile

    rows, hashes = peers_traffic(trace), 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for arrival, prompt, output in rows:
                blocks = -(-prompt // 512)
                entry = {"timestamp": arrival * 1000, "input_length": prompt}
                entry |= {"output_length": output}
                ids = list(range(hashes, hashes + blocks))
                hashes += blocks
                file.write(json.dumps(entry | {"hash_ids": ids}) + "\n")
        command = [python, "-c", PEER, str(path), caching]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    line = next(line for line in text.splitlines() if line.startswith("RESULT"))
    return {"requests": len(rows), **json.loads(line.removeprefix("RESULT"))}


def in_a_process(arguments: list[str]) -> dict[str, Any]:
    command = [sys.executable, __file__, *arguments]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    result: dict[str, Any] = json.loads(text.splitlines()[-1])
    return result


def show(name: str, row: dict[str, Any], against: float | None = None) -> None:
    text = f"{name:<44}{row['cpu_s']:>9.3f} s{row['requests'] / row['cpu_s']:>12,.0f} req/s"
    text += f"{row['process_s']:>9.2f} s{row['peak_mb']:>8.0f} MB"
    if against:
        text += f"{row['cpu_s'] / against:>8.2f}"
    print(text, flush=True)


def best(runs: int, arguments: list[str]) -> dict[str, Any]:
    return min((in_a_process(arguments) for _ in range(runs)), key=lambda row: row["cpu_s"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?")
    parser.add_argument("--million", action="store_true", help="one million requests as well")
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with ai-dynamo")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    trace = [options.trace] if options.trace else []
    if options.case:
        if options.case == "naive":
            row = naive(options.trace, 10_000)
        else:
            row = ours(options.case, options.trace)
        row["process_s"] = time.process_time()
        row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(row))
        return
    print(f"{'':<44}{'CPU, simulation':>11}{'':>12}{'process':>11}{'peak':>11}{'ratio':>8}")
    against: dict[str, float | None] = {"uncached": None, "cached": None}
    if options.peer:
        for caching in against:
            row = min(
                (peer(options.peer, options.trace, caching) for _ in range(3)),
                key=lambda r: r["cpu_s"],
            )
            against[caching] = row["cpu_s"]
            show(f"DynoSim  peers/{caching}", row)
    show("naive  peers/affine/sync/uncached", in_a_process(["--case", "naive", *trace]))
    for caching in ("uncached", "cached"):
        for mode in ("sync", "async"):
            for timer in ("affine", "model"):
                case = f"peers/{timer}/{mode}/{caching}"
                show(f"ours  {case}", best(3, ["--case", case, *trace]), against[caching])
    for caching in ("uncached", "cached", "shared"):
        for mode in ("sync", "async"):
            case = f"heavy/affine/{mode}/{caching}"
            show(f"ours  {case}", best(1, ["--case", case]))
    show("ours  heavy/model/async/uncached", best(1, ["--case", "heavy/model/async/uncached"]))
    if options.million:
        for timer in ("affine", "model"):
            case = f"million/{timer}/async/uncached"
            show(f"ours  {case}", best(1, ["--case", case]))


if __name__ == "__main__":
    main()
