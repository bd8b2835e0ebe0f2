"""What people write into the names of result files and folders, for want of a better place."""

from __future__ import annotations

import re
from pathlib import Path

from capplan.accuracy.bench_files.row import Cell

# `vllm bench sweep serve` names its folders SERVE--flag=value-flag=value-BENCH--flag=value.
_SWEEP = re.compile(r"SERVE--(?P<serve>.*?)-BENCH--(?P<bench>[^/]*)")
_FLAG = re.compile(r"([a-z][a-z_]*)=([^=]*?)(?=-[a-z][a-z_]*=|$|__)")
_COLUMN_OF_FLAG = {
    "tensor_parallel_size": "tp",
    "pipeline_parallel_size": "pp",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "max_model_len": "max_model_len",
    "gpu_memory_utilization": "gpu_memory_fraction",
    "kv_cache_dtype": "kv_dtype",
    "enable_prefix_caching": "prefix_caching",
    "enable_chunked_prefill": "chunked_prefill",
    "max_concurrency": "concurrency",
    "num_prompts": "num_prompts",
    "random_input_len": "isl",
    "random_output_len": "osl",
}
_HINTS: tuple[tuple[str, str], ...] = (
    ("tp", r"(?:^|[_\-])tp[_\-=]?(\d{1,3})(?=[_\-.]|$)"),
    ("concurrency", r"(?:^|[_\-])conc(?:urrency)?[_\-=]?(\d{1,6})(?=[_\-.]|$)"),
    ("isl", r"(?:^|[_\-])(?:isl|ip|in)[_\-=]?(\d{1,7})(?=[_\-.]|$)"),
    ("osl", r"(?:^|[_\-])(?:osl|op|out)[_\-=]?(\d{1,7})(?=[_\-.]|$)"),
    ("num_prompts", r"(?:^|[_\-])np[_\-=]?(\d{1,7})(?=[_\-.]|$)"),
)
_DATASETS = re.compile(r"(?:^|[_\-])(sharegpt|random|sonnet|burstgpt)(?=[_\-.]|$)", re.IGNORECASE)
_GPUS = re.compile(r"(?:^|[_\-])(\d{1,3})x(?:NVIDIA|AMD|[A-Z]+\d)")


def cells_from_name(path: Path) -> dict[str, Cell]:
    """Columns that the name of a file and its folder state.

    >>> cells_from_name(Path("SERVE--max_num_seqs=4-BENCH--max_concurrency=2/run=0.json"))
    {'max_num_seqs': 4, 'concurrency': 2}
    >>> cells_from_name(Path("glm5_vllm_tp8_isl1024_osl128_conc16.json"))
    {'tp': 8, 'concurrency': 16, 'isl': 1024, 'osl': 128}
    """
    cells: dict[str, Cell] = {}
    for text in (path.parent.name, path.stem):
        sweep = _SWEEP.search(text)
        if sweep:
            for part in (sweep["serve"], sweep["bench"]):
                for flag, value in _FLAG.findall(part):
                    column = _COLUMN_OF_FLAG.get(flag.replace("-", "_"))
                    if column:
                        cells[column] = int(value) if value.isdigit() else value
    for column, pattern in _HINTS:
        found = re.search(pattern, path.stem, re.IGNORECASE)
        if found and column not in cells:
            cells[column] = int(found[1])
    dataset = _DATASETS.search(path.stem)
    if dataset:
        cells["dataset"] = dataset[1].lower()
    gpus = _GPUS.search(path.stem)
    if gpus:
        cells["num_gpus"] = int(gpus[1])
    return cells
