"""TensorRT-LLM, `trtllm-serve`: options of the command and of its YAML file."""

from capplan.check.flag_tables.table import FlagTable

_VALUES = """
model tokenizer host port backend max-beam-width max-batch-size max-num-tokens max-seq-len tp-size
pp-size ep-size cp-size cluster-size gpus-per-node moe-expert-parallel-size
kv-cache-free-gpu-memory-fraction free-gpu-memory-fraction num-postprocess-workers revision
extra-llm-api-options extra-llm-config-options config reasoning-parser tool-parser
metadata-server-config-file server-role custom-tokenizer custom-module-dirs chat-template
log-level kv-cache-dtype post-processor-hook otlp-traces-endpoint disagg-cluster-uri
media-io-kwargs served-model-name tensor-parallel-size pipeline-parallel-size
moe-tensor-parallel-size max-input-len kv-cache-config cuda-graph-config model-path
speculative-config quant-config extra-engine-args override-engine-args disaggregation-mode
modality build-config plugin-config quantization-type
"""
_SWITCHES = """
trust-remote-code fail-fast-on-attention-window-too-large enable-chunked-prefill
enable-chunked-context enable-block-reuse disable-overlap-scheduler enable-attention-dp
return-perf-metrics enable-iter-perf-stats enable-autotuner autotuner-enabled
publish-events-and-metrics
"""

TRTLLM = FlagTable(
    engine="tensorrt-llm",
    values=frozenset(_VALUES.split()),
    switches=frozenset(_SWITCHES.split()),
    aliases={"tp": "tp-size", "pp": "pp-size", "ep": "ep-size"},
    meanings={
        "model": "model",
        "model-path": "model",
        "served-model-name": "served_name",
        "tp-size": "tp",
        "tensor-parallel-size": "tp",
        "pp-size": "pp",
        "pipeline-parallel-size": "pp",
        "ep-size": "expert_parallel",
        "max-seq-len": "max_model_len",
        "max-batch-size": "max_num_seqs",
        "max-num-tokens": "max_num_batched_tokens",
        "kv-cache-free-gpu-memory-fraction": "memory_share",
        "free-gpu-memory-fraction": "memory_share",
        "kv-cache-dtype": "kv_dtype",
        "enable-chunked-prefill": "chunked_prefill",
        "enable-chunked-context": "chunked_prefill",
        "enable-block-reuse": "prefix_caching",
        "speculative-config": "speculative",
        "extra-llm-api-options": "config",
        "extra-llm-config-options": "config",
        "config": "config",
        "gpus-per-node": "gpus_per_node",
        "extra-engine-args": "config",
    },
    abbreviates=False,
    positional_model=True,
)
