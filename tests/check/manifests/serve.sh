#!/usr/bin/env bash
set -euo pipefail
MODEL=${1:-Qwen/Qwen3-32B}
TP="${TP:-4}"
export VLLM_LOGGING_LEVEL=INFO
EXTRA=(--max-num-seqs 64 --kv-cache-dtype fp8)
docker run --rm --gpus '"device=0,1,2,3"' --shm-size=8g \
  -v ~/.cache/huggingface:/root/.cache/huggingface -p 8000:8000 \
  vllm/vllm-openai:v0.11.0 \
  --model "$MODEL" --tensor-parallel-size "$TP" "${EXTRA[@]}" &

CUDA_VISIBLE_DEVICES=4,5 python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2 > log 2>&1
trtllm-serve serve nvidia/Llama-3.1-8B-Instruct-FP8 --tp_size 2 --max_batch_size 64
