#!/usr/bin/env bash
# Nightly summaries: one server for some hours, no latency to keep.
set -euo pipefail

MODEL=meta-llama/Llama-3.1-70B-Instruct
TP=4

vllm serve "$MODEL" \
  --tensor-parallel-size "$TP" \
  --max-model-len 16384 \
  --max-num-seqs 256 \
  --gpu-memory-utilization 0.92 &

python3 summarise.py --base-url http://localhost:8000/v1
