"""Which module reads which class: the name in `architectures` of a `config.json`."""

from __future__ import annotations

from collections.abc import Callable

from capplan.specs.hf import (
    classics,
    deepseek,
    deepseek_v4,
    gemma,
    glm,
    llama,
    mamba,
    moe_families,
    nemotron,
    olmo,
    qwen,
)
from capplan.specs.hf.config import Config
from capplan.specs.hf.stack import Stack

# A reader gets the decoder's config, and the outer one: the same, or the one that nests it.
Reader = Callable[[Config, Config], Stack]

READERS: dict[str, Reader] = {
    "AquilaForCausalLM": llama.llama,
    "BaiChuanForCausalLM": llama.baichuan,
    "BaichuanForCausalLM": llama.baichuan,
    "BambaForCausalLM": mamba.bamba,
    "BloomForCausalLM": classics.bloom,
    "ChatGLMForConditionalGeneration": glm.chatglm,
    "ChatGLMModel": glm.chatglm,
    "Cohere2ForCausalLM": llama.cohere2,
    "CohereForCausalLM": llama.cohere,
    "DeciLMForCausalLM": nemotron.deci,
    "DeepseekV2ForCausalLM": deepseek.deepseek_v2,
    "DeepseekV32ForCausalLM": deepseek.deepseek_v32,
    "DeepseekV3ForCausalLM": deepseek.deepseek_v3,
    "DeepseekV4ForCausalLM": deepseek_v4.deepseek_v4,
    "FalconForCausalLM": classics.falcon,
    "GPT2LMHeadModel": classics.gpt2,
    "GPTBigCodeForCausalLM": classics.gpt_bigcode,
    "GPTJForCausalLM": classics.gpt_j,
    "GPTNeoXForCausalLM": classics.gpt_neox,
    "Gemma2ForCausalLM": gemma.gemma2,
    "Gemma3ForCausalLM": gemma.gemma3,
    "Gemma3ForConditionalGeneration": gemma.gemma3,
    "Gemma4ForCausalLM": gemma.gemma4,
    "Gemma4ForConditionalGeneration": gemma.gemma4,
    "GemmaForCausalLM": gemma.gemma,
    "Glm4ForCausalLM": glm.glm4,
    "Glm4MoeForCausalLM": glm.glm4_moe,
    "Glm4MoeLiteForCausalLM": glm.glm4_moe_lite,
    "GlmForCausalLM": glm.glm,
    "GlmMoeDsaForCausalLM": deepseek.glm_moe_dsa,
    "GptOssForCausalLM": moe_families.gpt_oss,
    "GraniteForCausalLM": llama.granite,
    "GraniteMoeForCausalLM": llama.granite_moe,
    "GraniteMoeHybridForCausalLM": mamba.granite_hybrid,
    "InternLM2ForCausalLM": llama.internlm2,
    "JambaForCausalLM": mamba.jamba,
    "KimiK25ForConditionalGeneration": deepseek.kimi_k25,
    "Llama4ForCausalLM": moe_families.llama4,
    "Llama4ForConditionalGeneration": moe_families.llama4,
    "LlamaForCausalLM": llama.llama,
    "MPTForCausalLM": classics.mpt,
    "MiMoForCausalLM": llama.mimo,
    "MiMoV2FlashForCausalLM": moe_families.mimo_v2,
    "MiniMaxM2ForCausalLM": moe_families.minimax_m2,
    "MiniMaxM3ForCausalLM": moe_families.minimax_m3,
    "MiniMaxM3SparseForConditionalGeneration": moe_families.minimax_m3,
    "Ministral3ForCausalLM": llama.mistral,
    "MinistralForCausalLM": llama.ministral,
    "Mistral3ForConditionalGeneration": llama.mistral3,
    "MistralForCausalLM": llama.mistral,
    "MixtralForCausalLM": llama.mixtral,
    "NemotronForCausalLM": nemotron.nemotron,
    "NemotronHForCausalLM": nemotron.nemotron_h,
    "OPTForCausalLM": classics.opt,
    "Olmo2ForCausalLM": olmo.olmo2,
    "Olmo3ForCausalLM": olmo.olmo3,
    "OlmoForCausalLM": olmo.olmo,
    "OlmoeForCausalLM": olmo.olmoe,
    "Phi3ForCausalLM": llama.phi3,
    "PhiForCausalLM": classics.phi,
    "PhiMoEForCausalLM": moe_families.phimoe,
    "PhimoeForCausalLM": moe_families.phimoe,
    "Qwen2ForCausalLM": qwen.qwen2,
    "Qwen2MoeForCausalLM": qwen.qwen2_moe,
    "Qwen2_5_VLForConditionalGeneration": qwen.qwen2_5_vl,
    "Qwen3ForCausalLM": qwen.qwen3,
    "Qwen3MoeForCausalLM": qwen.qwen3_moe,
    "Qwen3NextForCausalLM": qwen.qwen3_next,
    "Qwen3VLForConditionalGeneration": qwen.qwen3_vl,
    "Qwen3VLMoeForConditionalGeneration": qwen.qwen3_vl_moe,
    "Qwen3_5ForCausalLM": qwen.qwen3_5,
    "Qwen3_5ForConditionalGeneration": qwen.qwen3_5,
    "Qwen3_5MoeForCausalLM": qwen.qwen3_5_moe,
    "Qwen3_5MoeForConditionalGeneration": qwen.qwen3_5_moe,
    "SmolLM3ForCausalLM": llama.llama,
    "StableLmForCausalLM": llama.stablelm,
    "Starcoder2ForCausalLM": classics.starcoder2,
}

# Known by name, and why they are not read.
REFUSED = {
    "KimiK3ForConditionalGeneration": "Kimi delta attention (`linear_attn_config`) and attention "
    "residuals (`attn_res_block_size`) are not modelled",
    "Step3p7FlashForCausalLM": "the sliding layers' heads (`attention_other_setting`) and the "
    "head-wise gates (`use_head_wise_attn_gate`) are not in the config",
}
