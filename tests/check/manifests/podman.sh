#!/bin/sh
podman run -d --device nvidia.com/gpu=all --shm-size=8g lmsysorg/sglang:v0.5.3-cu126 \
  python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2 --mem-fraction-static 0.8
docker run --gpus '"device=0,1"' --ipc=host vllm/vllm-openai:v0.10.2 \
  --model Qwen/Qwen3-14B --tensor-parallel-size=2 --max-num-seqs=64
