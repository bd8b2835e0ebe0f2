#!/bin/bash
#SBATCH --job-name=summaries
#SBATCH --nodes=2
#SBATCH --gres=gpu:h100:4
#SBATCH --time=04:00:00
module load cuda
pip install "tensorrt_llm==1.0.0"
MODEL=meta-llama/Llama-3.3-70B-Instruct
srun --mpi=pmix trtllm-llmapi-launch \
  trtllm-serve $MODEL --tp_size 4 --pp_size 2 --max_batch_size 128 --max_seq_len 8192
