"""SGLang, `python -m sglang.launch_server` and `sglang serve`, versions 0.3 to 0.5.

Names from the server's own list of arguments, release 0.5.6, and options of earlier releases
that documentation of those still shows.
"""

from capplan.check.flag_tables.table import FlagTable

_VALUES = """
model-path tokenizer-path tokenizer-mode tokenizer-worker-num load-format
model-loader-extra-config context-length revision model-impl host port fastapi-root-path warmups
nccl-port dtype quantization quantization-param-path kv-cache-dtype modelopt-quant
mem-fraction-static max-running-requests max-queued-requests max-total-tokens
chunked-prefill-size max-prefill-tokens schedule-policy priority-scheduling-preemption-threshold
schedule-conservativeness page-size hybrid-kvcache-ratio swa-full-tokens-ratio
radix-eviction-policy device tensor-parallel-size pipeline-parallel-size
pp-max-micro-batch-size stream-interval random-seed constrained-json-whitespace-pattern
watchdog-timeout dist-timeout download-dir base-gpu-id gpu-id-step mm-process-config log-level
log-level-http log-requests-level crash-dump-folder gc-warning-threshold-secs
decode-log-interval kv-events-config otlp-traces-endpoint api-key served-model-name
weight-version chat-template completion-template file-storage-path reasoning-parser
tool-call-parser tool-server sampling-defaults data-parallel-size load-balance-method
load-watch-interval dist-init-addr nnodes node-rank json-model-override-args
preferred-sampling-params max-lora-rank max-loras-per-batch max-loaded-loras
lora-eviction-policy lora-backend max-lora-chunk-size attention-backend
prefill-attention-backend decode-attention-backend sampling-backend grammar-backend
mm-attention-backend nsa-prefill-backend nsa-decode-backend speculative-algorithm
speculative-draft-model-path speculative-draft-model-revision speculative-draft-load-format
speculative-num-steps speculative-eagle-topk speculative-num-draft-tokens
speculative-accept-threshold-single speculative-accept-threshold-acc speculative-token-map
speculative-attention-mode speculative-moe-runner-backend expert-parallel-size moe-a2a-backend
moe-runner-backend flashinfer-mxfp4-moe-precision deepep-mode ep-num-redundant-experts
ep-dispatch-algorithm init-expert-location eplb-algorithm eplb-rebalance-num-iterations
eplb-rebalance-layers-per-chunk eplb-min-rebalancing-utilization-threshold
expert-distribution-recorder-mode expert-distribution-recorder-buffer-size deepep-config
moe-dense-tp-size elastic-ep-backend mooncake-ib-device max-mamba-cache-size mamba-ssm-dtype
mamba-full-memory-ratio hicache-ratio hicache-size hicache-write-policy hicache-io-backend
hicache-mem-layout hicache-storage-backend hicache-storage-prefetch-policy
hicache-storage-backend-extra-config cpu-offload-gb offload-group-size offload-num-in-group
offload-prefetch-step offload-mode cuda-graph-max-bs cuda-graph-max-bs-decode
tbo-token-distribution-threshold piecewise-cuda-graph-max-tokens torch-compile-max-bs
torchao-config triton-attention-num-kv-splits num-continuous-decode-steps
scheduler-recv-interval disaggregation-mode disaggregation-transfer-backend
disaggregation-bootstrap-port disaggregation-decode-tp disaggregation-decode-dp
disaggregation-prefill-pp disaggregation-ib-device num-reserved-decode-tokens config
mm-max-concurrent-calls mm-per-request-timeout migration-limit dyn-tool-call-parser
dyn-reasoning-parser endpoint
"""
_SWITCHES = """
skip-tokenizer-init trust-remote-code is-embedding enable-multimodal grpc-mode skip-server-warmup
enable-priority-scheduling stream-output sleep-on-idle log-requests show-time-cost enable-metrics
enable-metrics-for-all-schedulers enable-request-time-stats-logging enable-trace
enable-cache-report prefill-round-robin-balance enable-lora enable-flashinfer-allreduce-fusion
enable-eplb enable-expert-distribution-metrics enable-hierarchical-cache enable-lmcache
enable-double-sparsity disable-radix-cache disable-cuda-graph disable-cuda-graph-padding
enable-cudagraph-gc enable-nccl-nvls enable-symm-mem enable-tokenizer-batch-encode
disable-tokenizer-batch-decode disable-outlines-disk-cache disable-custom-all-reduce
enable-mscclpp enable-torch-symm-mem disable-overlap-schedule enable-mixed-chunk
enable-dp-attention enable-dp-lm-head enable-two-batch-overlap enable-single-batch-overlap
enable-torch-compile enable-piecewise-cuda-graph enable-nan-detection enable-p2p-check
triton-attention-reduce-in-fp32 delete-ckpt-after-loading enable-memory-saver
enable-weights-cpu-backup allow-auto-truncate enable-custom-logit-processor
flashinfer-mla-disable-ragged disable-shared-experts-fusion disable-chunked-prefix-cache
disable-fast-image-processor enable-return-hidden-states enable-deterministic-inference
disaggregation-decode-enable-offload-kvcache weight-loader-disable-mmap enable-pdmux
enable-deepep-moe enable-ep-moe enable-flashinfer-moe enable-flashinfer-mla enable-flashmla
disable-mla disable-disk-cache disable-jump-forward disable-hybrid-swa-memory
mm-enable-dp-encoder use-sglang-tokenizer embedding-worker multimodal-worker
"""
_SEVERAL = """
bucket-time-to-first-token bucket-inter-token-latency bucket-e2e-request-latency
prompt-tokens-buckets generation-tokens-buckets lora-target-modules lora-paths cuda-graph-bs
cuda-graph-bs-decode numa-node debug-tensor-dump-layers custom-weight-loader
"""

SGLANG = FlagTable(
    engine="sglang",
    values=frozenset(_VALUES.split()),
    switches=frozenset(_SWITCHES.split()),
    several=frozenset(_SEVERAL.split()),
    aliases={
        "model": "model-path",
        "tp-size": "tensor-parallel-size",
        "tp": "tensor-parallel-size",
        "pp-size": "pipeline-parallel-size",
        "pp": "pipeline-parallel-size",
        "dp-size": "data-parallel-size",
        "dp": "data-parallel-size",
        "ep-size": "expert-parallel-size",
        "ep": "expert-parallel-size",
        "nccl-init-addr": "dist-init-addr",
        "speculative-draft-model": "speculative-draft-model-path",
        "speculative-draft": "speculative-draft-model-path",
    },
    meanings={
        "model-path": "model",
        "served-model-name": "served_name",
        "tensor-parallel-size": "tp",
        "pipeline-parallel-size": "pp",
        "data-parallel-size": "dp",
        "expert-parallel-size": "expert_parallel",
        "context-length": "max_model_len",
        "max-running-requests": "max_num_seqs",
        "chunked-prefill-size": "max_num_batched_tokens",
        "mem-fraction-static": "memory_share",
        "kv-cache-dtype": "kv_dtype",
        "quantization": "quantization",
        "page-size": "block_size",
        "disable-radix-cache": "prefix_caching",
        "cpu-offload-gb": "cpu_offload",
        "dtype": "dtype",
        "speculative-algorithm": "speculative",
        "disable-cuda-graph": "enforce_eager",
        "max-total-tokens": "max_total_tokens",
        "nnodes": "nnodes",
        "enable-dp-attention": "dp_attention",
        "max-queued-requests": "admission",
        "hicache-size": "kv_offload",
        "load-format": "load_format",
        "config": "config",
        "disaggregation-mode": "role",
    },
    inverted=frozenset({"disable-radix-cache"}),
)
