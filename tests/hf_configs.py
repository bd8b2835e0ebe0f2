"""Small configs, one or more a family: the sizes of real models, and their published totals.

Sizes are facts; fields that change no size are left out. A total is the parameter count of the
published checkpoint, parts named beside ours in `beside` included. Those of `RECALLED` were
written from memory and found in no source that could be read again: they agree with the count to
the unit, which is evidence, but whoever has the checkpoint's metadata should confirm them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Fields = dict[str, Any]


class Published(NamedTuple):
    """One model: class, sizes, the published total, and what that counts beside ours."""

    architecture: str
    fields: Fields
    total: int
    beside: int = 0  # rotary buffers and the like, in the checkpoint and in no model
    with_mtp: bool = False


def sizes(
    hidden: int, layers: int, heads: int, kv_heads: int | None, width: int | None, vocab: int,
    context: int = 4096, **more: Any,
) -> Fields:  # fmt: skip
    """The fields that most configs share."""
    fields = {
        "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "intermediate_size": width, "vocab_size": vocab,
        "max_position_embeddings": context, "torch_dtype": "bfloat16",
    }  # fmt: skip
    return {**{key: value for key, value in fields.items() if value is not None}, **more}


UNTIED = {"tie_word_embeddings": False}
TIED = {"tie_word_embeddings": True}
MLA = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
GPT = {"torch_dtype": "float16"}


def gpt(hidden: int, layers: int, heads: int, context: int, vocab: int, **more: Any) -> Fields:
    """GPT-2's names of the same sizes."""
    return {
        "n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": context,
        "vocab_size": vocab, "torch_dtype": "float16", **more,
    }  # fmt: skip


def opt(hidden: int, layers: int, heads: int) -> Fields:
    return {
        **sizes(hidden, layers, heads, None, None, 50272, 2048), "ffn_dim": 4 * hidden,
        "word_embed_proj_dim": hidden, "do_layer_norm_before": True,
    }  # fmt: skip


GEMMA3_VISION = {
    "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "patch_size": 14,
    "image_size": 896, "num_attention_heads": 16, "vision_use_head": False,
}  # fmt: skip
QWEN3_VL_VISION = {
    "depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "in_channels": 3,
    "num_position_embeddings": 2304, "out_hidden_size": 2048, "patch_size": 16,
    "spatial_merge_size": 2, "temporal_patch_size": 2, "deepstack_visual_indexes": [5, 11, 17],
}  # fmt: skip
GLM_45 = {
    **UNTIED, "head_dim": 128, "attention_bias": True, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "num_nextn_predict_layers": 1,
}  # fmt: skip
NANO_PATTERN = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"
NEMOTRON3_NANO_PATTERN = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
GRANITE4_ATTENTION = {5, 15, 25, 35}

RECALLED = {
    "phi-2", "phi-3.5-moe", "mimo-7b", "qwen1.5-7b", "qwen3-vl-2b", "gemma-7b", "jamba-v0.1",
    "granite-3.1-8b", "command-r", "command-r-plus", "command-r7b", "olmo-7b", "olmoe",
    "stablelm-3b", "stablelm-2-1.6b", "stablelm-2-12b", "internlm2-7b", "baichuan2-7b",
    "decilm-7b", "mpt-7b", "gpt2", "starcoder", "starcoder2-15b", "gpt-j-6b", "gpt-neox-20b",
    "pythia-6.9b", "opt-6.7b", "opt-13b", "falcon-7b", "falcon-40b",
}  # fmt: skip

PUBLISHED: dict[str, Published] = {
    "llama-2-13b": Published(
        "LlamaForCausalLM", sizes(5120, 40, 40, 40, 13824, 32000, **UNTIED), 13_015_866_880,
        beside=40 * 64,
    ),
    "mistral-7b": Published(
        "MistralForCausalLM",
        sizes(4096, 32, 32, 8, 14336, 32000, 32768, sliding_window=4096, **UNTIED), 7_241_732_096,
    ),
    "mistral-small-3.2": Published(
        "Mistral3ForConditionalGeneration",
        {
            "spatial_merge_size": 2, "torch_dtype": "bfloat16",
            "text_config": sizes(
                5120, 40, 32, 8, 32768, 131072, 131072, head_dim=128, sliding_window=None, **UNTIED
            ),
            "vision_config": {
                "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
                "num_attention_heads": 16, "head_dim": 64, "patch_size": 14,
            },
        },
        24_011_361_280,
    ),
    "mixtral-8x7b": Published(
        "MixtralForCausalLM",
        sizes(4096, 32, 32, 8, 14336, 32000, num_local_experts=8, num_experts_per_tok=2, **UNTIED),
        46_702_792_704,
    ),
    "phi-3-mini": Published(
        "Phi3ForCausalLM",
        sizes(3072, 32, 32, 32, 8192, 32064, sliding_window=2047, **UNTIED), 3_821_079_552,
    ),
    "phi-4": Published(
        "Phi3ForCausalLM",
        sizes(5120, 40, 40, 10, 17920, 100352, 16384, sliding_window=None, **UNTIED),
        14_659_507_200,
    ),
    "phi-4-mini": Published(
        "Phi3ForCausalLM",
        sizes(3072, 32, 24, 8, 8192, 200064, 131072, sliding_window=262144, **TIED), 3_836_021_760,
    ),
    "phi-2": Published(
        "PhiForCausalLM", sizes(2560, 32, 32, 32, 10240, 51200, 2048, **UNTIED), 2_779_683_840
    ),
    "phi-3.5-moe": Published(
        "PhiMoEForCausalLM",
        sizes(
            4096, 32, 32, 8, 6400, 32064, 131072, num_local_experts=16, num_experts_per_tok=2,
            attention_bias=True, lm_head_bias=True, sliding_window=131072, **UNTIED,
        ),
        41_873_153_344,
    ),
    "mimo-7b": Published(
        "MiMoForCausalLM",
        sizes(
            4096, 36, 32, 8, 11008, 151680, 32768, head_dim=128, attention_bias=True,
            num_nextn_predict_layers=1, use_sliding_window=False, **UNTIED,
        ),
        7_833_409_536, with_mtp=True,
    ),
    "qwen1.5-7b": Published(
        "Qwen2ForCausalLM", sizes(4096, 32, 32, 32, 11008, 151936, 32768, **UNTIED), 7_721_324_544
    ),
    "qwen1.5-moe": Published(
        "Qwen2MoeForCausalLM",
        sizes(
            2048, 24, 16, 16, 5632, 151936, 8192, num_experts=60, num_experts_per_tok=4,
            moe_intermediate_size=1408, shared_expert_intermediate_size=5632,
            decoder_sparse_step=1, **UNTIED,
        ),
        14_315_784_192,
    ),
    "qwen3-next-coder": Published(
        "Qwen3NextForCausalLM",
        sizes(
            2048, 48, 16, 2, 5120, 151936, 262144, head_dim=256, full_attention_interval=4,
            linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128,
            linear_value_head_dim=128, linear_conv_kernel_dim=4, num_experts=512,
            num_experts_per_tok=10, moe_intermediate_size=512,
            shared_expert_intermediate_size=512, decoder_sparse_step=1, **UNTIED,
        ),
        79_674_391_296,
    ),
    "qwen3-vl-2b": Published(
        "Qwen3VLForConditionalGeneration",
        {
            **TIED,
            "text_config": sizes(2048, 28, 16, 8, 6144, 151936, 262144, head_dim=128, **TIED),
            "vision_config": QWEN3_VL_VISION,
        },
        2_127_532_032,
    ),
    "gemma-7b": Published(
        "GemmaForCausalLM", sizes(3072, 28, 16, 16, 24576, 256000, 8192, head_dim=256),
        8_537_680_896,
    ),
    "gemma-2-9b": Published(
        "Gemma2ForCausalLM",
        sizes(3584, 42, 16, 8, 14336, 256000, 8192, head_dim=256, sliding_window=4096),
        9_241_705_984,
    ),
    "llama-4-maverick": Published(
        "Llama4ForConditionalGeneration",
        {
            "text_config": sizes(
                5120, 48, 40, 8, 8192, 202048, 1048576, head_dim=128, intermediate_size_mlp=16384,
                num_local_experts=128, num_experts_per_tok=1, interleave_moe_layer_step=2,
                moe_layers=list(range(1, 48, 2)), no_rope_layers=[1, 1, 1, 0] * 12, **UNTIED,
            ),
            "vision_config": {
                "hidden_size": 1408, "intermediate_size": 5632, "num_hidden_layers": 34,
                "num_channels": 3, "patch_size": 14, "image_size": 336, "num_attention_heads": 16,
                "projector_input_dim": 4096, "projector_output_dim": 4096,
                "vision_output_dim": 4096,
            },
        },
        401_583_781_376,
    ),
    "gemma-3-4b": Published(
        "Gemma3ForConditionalGeneration",
        {
            "text_config": {
                "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
                "sliding_window": 1024,
            },
            "vision_config": GEMMA3_VISION, "torch_dtype": "bfloat16",
        },
        4_300_079_472,
    ),
    "gemma-3-12b": Published(
        "Gemma3ForConditionalGeneration",
        {
            "text_config": {
                "hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 48,
                "num_attention_heads": 16, "num_key_value_heads": 8, "sliding_window": 1024,
            },
            "vision_config": GEMMA3_VISION, "torch_dtype": "bfloat16",
        },
        12_187_325_040,
    ),
    "qwen2.5-vl-7b": Published(
        "Qwen2_5_VLForConditionalGeneration",
        sizes(
            3584, 28, 28, 4, 18944, 152064, 128000, sliding_window=32768, use_sliding_window=False,
            **UNTIED,
            vision_config={
                "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
                "in_chans": 3, "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2,
                "spatial_patch_size": 14, "temporal_patch_size": 2,
            },
        ),
        8_292_166_656,
    ),
    "qwen2.5-vl-32b": Published(
        "Qwen2_5_VLForConditionalGeneration",
        sizes(
            5120, 64, 40, 8, 27648, 152064, 128000, use_sliding_window=False, **UNTIED,
            vision_config={"hidden_size": 1280, "intermediate_size": 3456, "in_chans": 3,
                           "out_hidden_size": 5120, "spatial_patch_size": 14},
        ),
        33_452_718_336,
    ),
    "deepseek-v2": Published(
        "DeepseekV2ForCausalLM",
        sizes(
            5120, 60, 128, 128, 12288, 102400, 163840, q_lora_rank=1536, **MLA,
            n_routed_experts=160, n_shared_experts=2, num_experts_per_tok=6,
            moe_intermediate_size=1536, first_k_dense_replace=1, moe_layer_freq=1,
            topk_method="group_limited_greedy", **UNTIED,
        ),
        235_741_434_880,
    ),
    "deepseek-v4-flash": Published(
        "DeepseekV4ForCausalLM",
        sizes(
            4096, 43, 64, 1, None, 129280, 1048576, head_dim=512, q_lora_rank=1024, o_groups=8,
            o_lora_rank=1024, n_routed_experts=256, n_shared_experts=1, num_experts_per_tok=6,
            moe_intermediate_size=2048, index_n_heads=64, index_head_dim=128, index_topk=512,
            sliding_window=128, num_hash_layers=3, hc_mult=4, topk_method="noaux_tc",
            num_nextn_predict_layers=1, compress_ratios=[0, 0, *[4, 128] * 20, 4, 0], **UNTIED,
        ),
        290_944_616_402, with_mtp=True,
    ),
    "moonlight": Published(
        "DeepseekV3ForCausalLM",
        sizes(
            2048, 27, 16, 16, 11264, 163840, 8192, q_lora_rank=None, **MLA, n_routed_experts=64,
            n_shared_experts=2, num_experts_per_tok=6, moe_intermediate_size=1408,
            first_k_dense_replace=1, topk_method="noaux_tc", num_nextn_predict_layers=0, **UNTIED,
        ),
        15_960_111_936, beside=27 * 64,  # fits buffers of 64 a layer; not seen in a file header
    ),
    "glm-4.5": Published(
        "Glm4MoeForCausalLM",
        sizes(
            5120, 92, 96, 8, 12288, 151552, 131072, **GLM_45, use_qk_norm=True,
            n_routed_experts=160, moe_intermediate_size=1536, first_k_dense_replace=3,
        ),
        358_337_791_296, with_mtp=True,
    ),
    "glm-4.5-air": Published(
        "Glm4MoeForCausalLM",
        sizes(
            4096, 46, 96, 8, 10944, 151552, 131072, **GLM_45, use_qk_norm=False,
            n_routed_experts=128, moe_intermediate_size=1408, first_k_dense_replace=1,
        ),
        110_468_824_832, with_mtp=True,
    ),
    "glm-4.7-flash": Published(
        "Glm4MoeLiteForCausalLM",
        sizes(
            2048, 47, 20, 20, 10240, 154880, 202752, n_routed_experts=64, n_shared_experts=1,
            num_experts_per_tok=4, moe_intermediate_size=1536, first_k_dense_replace=1,
            q_lora_rank=768, kv_lora_rank=512, qk_nope_head_dim=192, qk_rope_head_dim=64,
            v_head_dim=256, topk_method="noaux_tc", num_nextn_predict_layers=1, **UNTIED,
        ),
        31_221_488_576, with_mtp=True,
    ),
    "glm-4-9b": Published(
        "Glm4ForCausalLM",
        sizes(
            4096, 40, 32, 2, 13696, 151552, 32768, head_dim=128, attention_bias=True, **UNTIED
        ),
        9_400_279_040,
    ),
    "chatglm3-6b": Published(
        "ChatGLMModel",
        {
            "hidden_size": 4096, "num_layers": 28, "num_attention_heads": 32, "kv_channels": 128,
            "multi_query_attention": True, "multi_query_group_num": 2, "ffn_hidden_size": 13696,
            "padded_vocab_size": 65024, "seq_length": 8192, "add_qkv_bias": True,
            "add_bias_linear": False, "rmsnorm": True, "torch_dtype": "float16",
        },
        6_243_584_032, beside=32,
    ),
    "gpt-oss-20b": Published(
        "GptOssForCausalLM",
        {
            "hidden_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64,
            "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880,
            "vocab_size": 201088, "max_position_embeddings": 131072, "num_local_experts": 32,
            "num_experts_per_tok": 4, "sliding_window": 128, **UNTIED,
            "layer_types": ["sliding_attention", "full_attention"] * 12,
        },
        20_914_757_184,
    ),
    "minimax-m2": Published(
        "MiniMaxM2ForCausalLM",
        sizes(
            3072, 62, 48, 8, 1536, 200064, 196608, head_dim=128, num_local_experts=256,
            num_experts_per_tok=8, use_qk_norm=True, qk_norm_type="per_layer",
            use_routing_bias=True, shared_intermediate_size=0, **UNTIED,
        ),
        228_689_764_864,
    ),
    "nemotron-nano-9b-v2": Published(
        "NemotronHForCausalLM",
        sizes(
            4480, 56, 40, 8, 15680, 131072, 131072, head_dim=128, mamba_num_heads=128,
            mamba_head_dim=80, ssm_state_size=128, n_groups=8, conv_kernel=4, use_bias=False,
            hybrid_override_pattern=NANO_PATTERN, **UNTIED,
        ),
        8_888_227_328,
    ),
    "nemotron-3-nano": Published(
        "NemotronHForCausalLM",
        sizes(
            2688, 52, 32, 2, 1856, 131072, 262144, head_dim=128, mamba_num_heads=64,
            mamba_head_dim=64, ssm_state_size=128, n_groups=8, conv_kernel=4, use_bias=False,
            hybrid_override_pattern=NEMOTRON3_NANO_PATTERN, n_routed_experts=128,
            num_experts_per_tok=6, moe_intermediate_size=1856, n_shared_experts=1,
            moe_shared_expert_intermediate_size=3712, **UNTIED,
        ),
        31_577_937_344, beside=-23 * 128,  # fits the router biases of 23 layers left out; inferred
    ),
    "jamba-v0.1": Published(
        "JambaForCausalLM",
        sizes(
            4096, 32, 32, 8, 14336, 65536, 262144, attn_layer_period=8, attn_layer_offset=4,
            expert_layer_period=2, expert_layer_offset=1, num_experts=16, num_experts_per_tok=2,
            mamba_d_state=16, mamba_d_conv=4, mamba_expand=2, mamba_dt_rank=256, **UNTIED,
        ),
        51_570_323_328,
    ),
    "granite-3.1-8b": Published(
        "GraniteForCausalLM", sizes(4096, 40, 32, 8, 12800, 49155, 131072, **TIED), 8_170_848_256
    ),
    "granite-4.0-micro": Published(
        "GraniteMoeHybridForCausalLM",
        sizes(
            2560, 40, 40, 8, None, 100352, 131072, mamba_n_heads=128, mamba_d_head=64,
            mamba_d_state=256, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2,
            num_local_experts=0, shared_intermediate_size=8192, layer_types=["attention"] * 40,
            **TIED,
        ),
        3_402_836_480,
    ),
    "granite-4.0-h-small": Published(
        "GraniteMoeHybridForCausalLM",
        sizes(
            4096, 40, 32, 8, 768, 100352, 131072, mamba_n_heads=128, mamba_d_head=64,
            mamba_d_state=128, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2,
            num_local_experts=72, num_experts_per_tok=10, shared_intermediate_size=1536,
            layer_types=["attention" if i in GRANITE4_ATTENTION else "mamba" for i in range(40)],
            **TIED,
        ),
        32_207_337_984,
    ),
    "command-r": Published(
        "CohereForCausalLM", sizes(8192, 40, 64, 64, 22528, 256000, 8192), 34_980_831_232
    ),
    "command-r-plus": Published(
        "CohereForCausalLM",
        sizes(12288, 64, 96, 8, 33792, 256000, 131072, use_qk_norm=True), 103_810_674_688,
    ),
    "command-r7b": Published(
        "Cohere2ForCausalLM",
        sizes(4096, 32, 32, 8, 14336, 256000, 8192, sliding_window=4096), 8_028_033_024,
    ),
    "olmo-7b": Published(
        "OlmoForCausalLM", sizes(4096, 32, 32, 32, 11008, 50304, 2048, **UNTIED), 6_888_095_744
    ),
    "olmo-2-7b": Published(
        "Olmo2ForCausalLM", sizes(4096, 32, 32, 32, 11008, 100352, **UNTIED), 7_298_617_344
    ),
    "olmo-3-7b": Published(
        "Olmo3ForCausalLM",
        sizes(
            4096, 32, 32, 32, 11008, 100278, 65536, sliding_window=4096, **UNTIED,
            layer_types=[*["sliding_attention"] * 3, "full_attention"] * 8,
        ),
        7_298_011_136,
    ),
    "olmoe": Published(
        "OlmoeForCausalLM",
        sizes(2048, 16, 16, 16, 1024, 50304, num_experts=64, num_experts_per_tok=8, **UNTIED),
        6_919_161_856,
    ),
    "stablelm-3b": Published(
        "StableLmForCausalLM",
        sizes(2560, 32, 32, 32, 6912, 50304, use_qkv_bias=False, **UNTIED), 2_795_443_200,
    ),
    "stablelm-2-1.6b": Published(
        "StableLmForCausalLM",
        sizes(2048, 24, 32, 32, 5632, 100352, use_qkv_bias=True, **UNTIED), 1_644_515_328,
    ),
    "stablelm-2-12b": Published(
        "StableLmForCausalLM",
        sizes(
            5120, 40, 32, 8, 13824, 100352, use_qkv_bias=False, qk_layernorm=True,
            use_parallel_residual=True, **UNTIED,
        ),
        12_143_185_920,
    ),
    "internlm2-7b": Published(
        "InternLM2ForCausalLM", sizes(4096, 32, 32, 8, 14336, 92544, bias=False, **UNTIED),
        7_737_708_544,
    ),
    "baichuan2-7b": Published(
        "BaichuanForCausalLM", sizes(4096, 32, 32, None, 11008, 125696, **UNTIED), 7_505_973_248
    ),
    "decilm-7b": Published(
        "DeciLMForCausalLM",
        # The order of the layers changes no sum: 67 KV heads in all.
        sizes(
            4096, 32, 32, None, 14336, 32000, 8192,
            num_key_value_heads_per_layer=[4] * 5 + [2] * 20 + [1] * 7, **UNTIED,
        ),
        7_043_551_232,
    ),
    "smollm3-3b": Published(
        "SmolLM3ForCausalLM",
        sizes(2048, 36, 16, 4, 11008, 128256, 65536, no_rope_layer_interval=4, **TIED),
        3_075_098_624,
    ),
    "mpt-7b": Published(
        "MPTForCausalLM",
        {
            "d_model": 4096, "n_layers": 32, "n_heads": 32, "expansion_ratio": 4,
            "vocab_size": 50432, "max_seq_len": 2048, "no_bias": True,
            "attn_config": {"alibi": True, "attn_type": "multihead_attention"},
            "torch_dtype": "bfloat16",
        },
        6_649_286_656,
    ),
    "gpt2": Published("GPT2LMHeadModel", gpt(768, 12, 12, 1024, 50257), 124_439_808),
    "starcoder": Published(
        "GPTBigCodeForCausalLM",
        gpt(6144, 40, 48, 8192, 49152, n_inner=24576, multi_query=True), 15_517_456_384,
    ),
    "starcoder2-15b": Published(
        "Starcoder2ForCausalLM",
        sizes(6144, 40, 48, 4, 24576, 49152, 16384, sliding_window=4096, use_bias=True, **UNTIED),
        15_957_889_024,
    ),
    "gpt-j-6b": Published("GPTJForCausalLM", gpt(4096, 28, 16, 2048, 50400), 6_050_882_784),
    "gpt-neox-20b": Published(
        "GPTNeoXForCausalLM", sizes(6144, 44, 64, None, 24576, 50432, 2048, **UNTIED),
        20_554_567_680,
    ),
    "pythia-6.9b": Published(
        "GPTNeoXForCausalLM", sizes(4096, 32, 32, None, 16384, 50432, 2048, **UNTIED),
        6_857_302_016,
    ),
    "bloom": Published(
        "BloomForCausalLM",
        {"n_embed": 14336, "n_layer": 70, "num_attention_heads": 112, "vocab_size": 250880, **GPT},
        176_247_271_424,
    ),
    "bloom-7b1": Published(
        "BloomForCausalLM",
        {"hidden_size": 4096, "n_layer": 30, "n_head": 32, "vocab_size": 250880, **GPT},
        7_069_016_064,
    ),
    "opt-6.7b": Published("OPTForCausalLM", opt(4096, 32, 32), 6_658_473_984),
    "opt-13b": Published("OPTForCausalLM", opt(5120, 40, 40), 12_853_473_280),
    "falcon-7b": Published(
        "FalconForCausalLM",
        sizes(
            4544, 32, 71, None, None, 65024, multi_query=True, parallel_attn=True, bias=False,
            new_decoder_architecture=False,
        ),
        6_921_720_704,
    ),
    "falcon-40b": Published(
        "FalconForCausalLM",
        sizes(
            8192, 60, 128, None, None, 65024, multi_query=True, parallel_attn=True, bias=False,
            new_decoder_architecture=True, num_kv_heads=8,
        ),
        41_303_293_952,
    ),
    "falcon-180b": Published(
        "FalconForCausalLM",
        sizes(
            14848, 80, 232, None, None, 65024, multi_query=True, parallel_attn=True, bias=False,
            new_decoder_architecture=True, num_kv_heads=8,
        ),
        179_522_565_120, beside=65024 * 14848,  # the checkpoint stores the tied head again
    ),
}  # fmt: skip
