"""Text Generation Inference, `text-generation-launcher`: options and their environment names."""

from capplan.check.flag_tables.table import FlagTable

_VALUES = """
model-id revision validation-workers num-shard sharded quantize speculate dtype kv-cache-dtype
max-concurrent-requests max-best-of max-stop-sequences max-top-n-tokens max-input-tokens
max-input-length max-total-tokens waiting-served-ratio max-batch-prefill-tokens
max-batch-total-tokens max-waiting-tokens max-batch-size cuda-graphs hostname port
prometheus-port shard-uds-path master-addr master-port huggingface-hub-cache
weights-cache-override cuda-memory-fraction rope-scaling rope-factor otlp-endpoint
otlp-service-name cors-allow-origin api-key watermark-gamma watermark-delta
tokenizer-config-path lora-adapters usage-stats payload-limit max-client-batch-size
"""
_SWITCHES = """
trust-remote-code disable-custom-kernels json-output ngrok env disable-grammar-support
enable-prefill-logprobs disable-prefix-caching
"""

TGI = FlagTable(
    engine="tgi",
    values=frozenset(_VALUES.split()),
    switches=frozenset(_SWITCHES.split()),
    meanings={
        "model-id": "model",
        "num-shard": "tp",
        "quantize": "quantization",
        "dtype": "dtype",
        "kv-cache-dtype": "kv_dtype",
        "max-total-tokens": "max_model_len",
        "max-batch-size": "max_num_seqs",
        "max-batch-prefill-tokens": "max_num_batched_tokens",
        "cuda-memory-fraction": "memory_share",
        "max-concurrent-requests": "admission",
        "max-input-tokens": "max_input",
        "max-input-length": "max_input",
    },
    short={"-p": "port", "-e": "env"},
    abbreviates=False,
)
# Every option can be set by its name in capitals.
ENVIRONMENT = {name.replace("-", "_").upper(): name for name in TGI.values} | {
    "LLM_MODEL_ID": "model-id",
}
