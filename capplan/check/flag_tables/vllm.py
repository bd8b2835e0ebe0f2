"""vLLM, `vllm serve` and the older entry points, versions 0.4 to 0.29.

Names from the engine's documentation of its arguments (docs.vllm.ai, releases 0.5.3 to 0.19) and
its own help texts. What a version removed stays here: `check/flag_history.py` says since when.
"""

from capplan.check.flag_tables.table import FlagTable

_VALUES = """
model tokenizer task runner convert hf-config-path revision code-revision tokenizer-revision
tokenizer-mode allowed-local-media-path allowed-media-domains load-format download-dir
model-loader-extra-config config-format dtype max-model-len guided-decoding-backend
guided-decoding-backend-kwargs structured-outputs-config reasoning-parser reasoning-parser-plugin
reasoning-config logits-processor-pattern model-impl distributed-executor-backend
pipeline-parallel-size tensor-parallel-size data-parallel-size data-parallel-size-local
data-parallel-rank data-parallel-start-rank data-parallel-address data-parallel-rpc-port
data-parallel-backend prefill-context-parallel-size decode-context-parallel-size
dcp-kv-cache-interleave-size cp-kv-cache-interleave-size dcp-comm-backend
max-parallel-loading-workers expert-placement-strategy all2all-backend moe-backend
expert-parallel-size num-redundant-experts eplb-config eplb-window-size eplb-step-interval
dbo-decode-token-threshold dbo-prefill-token-threshold ubatch-size worker-cls
worker-extension-cls master-addr master-port nnodes node-rank numa-bind-nodes numa-bind-cpus
block-size prefix-caching-hash-algo num-lookahead-slots seed swap-space cpu-offload-gb
cpu-offload-params offload-backend offload-group-size offload-num-in-group offload-prefetch-step
gpu-memory-utilization kv-cache-memory-bytes kv-cache-memory num-gpu-blocks-override
max-num-batched-tokens max-num-partial-prefills max-long-partial-prefills
long-prefill-token-threshold max-num-seqs max-num-scheduled-tokens max-waiting-requests
max-logprobs logprobs-mode quantization quantization-param-path quantization-config
rope-scaling rope-theta rope-parameters hf-token hf-overrides max-seq-len-to-capture
max-context-len-to-capture tokenizer-pool-size tokenizer-pool-type tokenizer-pool-extra-config
limit-mm-per-prompt media-io-kwargs mm-processor-kwargs mm-processor-cache-gb
mm-processor-cache-type mm-shm-cache-max-object-size-mb mm-encoder-tp-mode
mm-encoder-attn-backend mm-encoder-attn-dtype interleave-mm-strings video-pruning-rate
limit-mm-data-per-prompt max-loras max-lora-rank lora-extra-vocab-size lora-dtype
long-lora-scaling-factors max-cpu-loras default-mm-loras max-prompt-adapters
max-prompt-adapter-token device num-scheduler-steps scheduler-delay-factor
multi-step-stream-outputs speculative-model speculative-model-quantization
num-speculative-tokens speculative-disable-mqa-scorer speculative-draft-tensor-parallel-size
speculative-max-model-len speculative-disable-by-batch-size ngram-prompt-lookup-max
ngram-prompt-lookup-min spec-decoding-acceptance-method
typical-acceptance-sampler-posterior-threshold typical-acceptance-sampler-posterior-alpha
disable-logprobs-during-spec-decoding speculative-config qlora-adapter-name-or-path
preemption-mode served-model-name otlp-traces-endpoint collect-detailed-traces
show-hidden-metrics-for-version scheduling-policy scheduler-cls scheduler-reserve-full-isl
override-neuron-config override-pooler-config pooler-config override-generation-config
generation-config compilation-config cuda-graph-sizes cudagraph-capture-sizes
max-cudagraph-capture-size optimization-level kv-transfer-config kv-events-config
ec-transfer-config kv-offloading-size kv-offloading-backend kv-sharing-fast-prefill
additional-config kernel-config attention-config attention-backend profiler-config
weight-transfer-config mamba-cache-dtype mamba-ssm-cache-dtype mamba-block-size
mamba-cache-mode mamba-backend kv-cache-dtype kv-cache-dtype-skip-layers calculate-kv-scales
kv-cache-metrics-sample stream-interval io-processor-plugin renderer-num-workers
performance-mode host port uds uvicorn-log-level api-key allowed-origins allowed-methods
allowed-headers chat-template chat-template-content-format default-chat-template-kwargs
response-role ssl-keyfile ssl-certfile ssl-ca-certs ssl-cert-reqs ssl-ciphers root-path
tool-call-parser tool-parser-plugin tool-server log-config-file max-log-len
h11-max-incomplete-event-size h11-max-header-count api-server-count api-server-rank config
disable-access-log-for-endpoints shutdown-timeout gdn-prefill-backend language-model-only-x
model-name model-id model-dir model-class backend return-probabilities max-length
predictor-protocol http-port grpc-port workers max-threads log-level
prefill-translation-strategy connector migration-limit is-prefill-worker-x
dyn-tool-call-parser dyn-reasoning-parser custom-jinja-template endpoint-types
disaggregation-mode dist-init-addr logits-processors
"""
_BOOLEANS = """
skip-tokenizer-init trust-remote-code enforce-eager enable-prefix-caching enable-chunked-prefill
disable-sliding-window disable-cascade-attn use-v2-block-manager disable-custom-all-reduce
disable-mm-preprocessor-cache enable-lora enable-lora-bias fully-sharded-loras
enable-prompt-adapter use-tqdm-on-load enable-reasoning enable-auto-tool-choice
disable-log-stats disable-log-requests enable-log-requests enable-log-outputs enable-log-deltas
disable-async-output-proc disable-hybrid-kv-cache-manager async-scheduling
enable-expert-parallel enable-eplb enable-dbo enable-sleep-mode enable-cumem-allocator
enable-multimodal-encoder-data-parallel skip-mm-profiling enable-mm-embeds
ray-workers-use-nsight worker-use-ray engine-use-ray disable-frontend-multiprocessing
allow-credentials return-tokens-as-token-ids enable-request-id-headers
disable-uvicorn-access-log disable-fastapi-docs enable-prompt-tokens-details
enable-server-load-tracking enable-force-include-usage enable-ssl-refresh
enable-tokenizer-info-endpoint exclude-tools-when-tool-choice-none log-error-stack
enable-prompt-embeds disable-chunked-mm-input multi-step-stream-outputs
guided-decoding-disable-fallback guided-decoding-disable-any-whitespace
guided-decoding-disable-additional-properties data-parallel-hybrid-lb
data-parallel-external-lb headless trust-request-chat-template cudagraph-metrics
enable-mfu-metrics kv-cache-metrics enable-layerwise-nvtx-tracing enable-ep-weight-filter
enable-logging-iteration-details enable-offline-docs enable-per-request-metrics
disable-nccl-for-dp-synchronization numa-bind fail-on-environ-validation calculate-kv-scales
return-token-ids-x enable-return-routed-experts language-model-only enable-elastic-ep
disable-log-requests-x use-v2-model-runner is-decode-worker is-prefill-worker
is-multimodal-worker multimodal-processor omni enable-elastic-nvtx-x
"""
_SEVERAL = """
served-model-name lora-modules prompt-adapters middleware allowed-origins cuda-graph-sizes
cudagraph-capture-sizes logits-processors kv-cache-dtype-skip-layers kt-x collect-detailed-traces
allowed-media-domains long-lora-scaling-factors
"""


def _names(text: str) -> frozenset[str]:
    # A name that ends in `-x` is no option: it keeps an abbreviation from being taken for one.
    return frozenset(name for name in text.split() if not name.endswith("-x"))


VLLM = FlagTable(
    engine="vllm",
    values=_names(_VALUES) - _names(_SEVERAL),
    booleans=_names(_BOOLEANS),
    several=_names(_SEVERAL),
    aliases={"max-num-batched-token": "max-num-batched-tokens"},
    short={
        "-tp": "tensor-parallel-size",
        "-pp": "pipeline-parallel-size",
        "-q": "quantization",
        "-dp": "data-parallel-size",
        "-dpl": "data-parallel-size-local",
        "-asc": "api-server-count",
        "-dcp": "decode-context-parallel-size",
        "-pcp": "prefill-context-parallel-size",
        "-dpn": "data-parallel-rank",
        "-dpr": "data-parallel-start-rank",
        "-dpa": "data-parallel-address",
        "-dpp": "data-parallel-rpc-port",
        "-dph": "data-parallel-hybrid-lb",
        "-dpe": "data-parallel-external-lb",
        "-dpb": "data-parallel-backend",
        "-sc": "speculative-config",
        "-cc": "compilation-config",
        "-O": "optimization-level",
        "-n": "nnodes",
        "-r": "node-rank",
        "-ep": "enable-expert-parallel",
        "-ac": "attention-config",
    },
    meanings={
        "model": "model",
        "model-id": "model",
        "model-dir": "model",
        "served-model-name": "served_name",
        "tensor-parallel-size": "tp",
        "pipeline-parallel-size": "pp",
        "data-parallel-size": "dp",
        "data-parallel-size-local": "dp_local",
        "decode-context-parallel-size": "dcp",
        "enable-expert-parallel": "expert_parallel",
        "max-model-len": "max_model_len",
        "max-num-seqs": "max_num_seqs",
        "max-num-batched-tokens": "max_num_batched_tokens",
        "gpu-memory-utilization": "memory_share",
        "kv-cache-dtype": "kv_dtype",
        "quantization": "quantization",
        "block-size": "block_size",
        "enable-chunked-prefill": "chunked_prefill",
        "enable-prefix-caching": "prefix_caching",
        "swap-space": "swap_space",
        "cpu-offload-gb": "cpu_offload",
        "dtype": "dtype",
        "speculative-config": "speculative",
        "speculative-model": "speculative",
        "enforce-eager": "enforce_eager",
        "async-scheduling": "async_scheduling",
        "kv-cache-memory-bytes": "kv_memory",
        "kv-cache-memory": "kv_memory",
        "num-gpu-blocks-override": "num_blocks",
        "nnodes": "nnodes",
        "distributed-executor-backend": "executor",
        "kv-transfer-config": "kv_transfer",
        "kv-offloading-size": "kv_offload",
        "load-format": "load_format",
        "max-waiting-requests": "admission",
        "config": "config",
    },
    positional_model=True,
)
