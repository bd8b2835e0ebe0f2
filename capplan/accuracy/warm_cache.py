"""Runs on a server that an earlier run with the same prompts has left warm.

A sweep over rates that keeps its server and its seed sends the same prompts at each rate. With
prefix caching all runs but the first find them in the KV cache, as far as that holds them: a
prompt then costs one block instead of its length.
"""

from __future__ import annotations

import re

from capplan.accuracy.measured import MeasuredRun

_SWEEP = re.compile(r"QPS run in the order ([\d.,]+\d) on one server")

# Its long prompts push each other out of any cache.
_SENT_AGAIN = ("sharegpt_standard_v1", "sharegpt_edge_v1")
_ONLINE = ("poisson", "closed")


def finds_its_prompts(run: MeasuredRun) -> bool:
    """Whether an earlier run on this server sent the same prompts: by the row's notes or data set.

    AccelMark sends the same prompts at each rate and several times over, on one engine
    (loadgen.py: `num_runs`, `zip(prompts, arrival_times)`).
    """
    if run.prefix_caching and run.dataset in _SENT_AGAIN and run.workload in _ONLINE:
        return True
    found = _SWEEP.search(run.columns.get("settings_notes", ""))
    if found is None or not run.prefix_caching or run.request_rate_qps is None:
        return False
    return run.request_rate_qps != float(found[1].split(",")[0])
