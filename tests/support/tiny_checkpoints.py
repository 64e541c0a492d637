"""Tiny checkpoints of the real architectures, with random weights, built on the fly.

Each has the family's tokens, processor and chat template, so queries are encoded as for the real
model.  The templates follow the published templates as far as FindIt depends on them: the place of
images, the generation prompt, and the switch that turns thinking off.  About 0.1 million parameters
and half a megabyte each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers as hf
from tiny_tokenizers import (
    GEMMA,
    GEMMA_TOKENS,
    GLM,
    GLM_TOKENS,
    INTERN,
    INTERN_TOKENS,
    QWEN,
    QWEN35,
    QWEN_TOKENS,
    build_tokenizer,
    template,
)

HIDDEN = 32
_SIZES = {"hidden_size": HIDDEN, "intermediate_size": 64}
_TOWER = {**_SIZES, "num_hidden_layers": 2, "num_attention_heads": 2}
_TEXT = {
    **_TOWER, "num_key_value_heads": 1, "max_position_embeddings": 32768, "initializer_range": 0.3
}  # fmt: skip
_VISION = {**_SIZES, "depth": 2, "num_heads": 2}
_AREA = {"shortest_edge": 64 * 64, "longest_edge": 1024 * 1024}


class Parts(NamedTuple):
    """What a checkpoint is saved from."""

    config: Any
    model_class: Any
    processor: Any


def _rope(section: Sequence[int], **more: Any) -> dict[str, Any]:
    """Multimodal rotary positions; ``section`` adds up to half the rotary dimension."""
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": list(section)}
    return {**rope, **more}


def _qwen(config: Any, model: Any, template: str, text: Any, vision: Any, side: int = 16) -> Parts:
    """Return a Qwen-VL whose patches have a side of so many pixels."""
    tokenizer = build_tokenizer(QWEN_TOKENS, "<|endoftext|>", "<|im_end|>")
    ids = tokenizer.convert_tokens_to_ids
    whole = config(
        text_config={**_TEXT, "vocab_size": len(tokenizer), **text},
        vision_config={**_VISION, "patch_size": side, "out_hidden_size": HIDDEN, **vision},
        tie_word_embeddings=False,
        image_token_id=ids("<|image_pad|>"),
        video_token_id=ids("<|video_pad|>"),
        vision_start_token_id=ids("<|vision_start|>"),
        vision_end_token_id=ids("<|vision_end|>"),
    )
    later = side == 16
    processor = (hf.Qwen3VLProcessor if later else hf.Qwen2_5_VLProcessor)(
        image_processor=hf.Qwen2VLImageProcessor(size=dict(_AREA), patch_size=side),
        tokenizer=tokenizer,
        video_processor=(hf.Qwen3VLVideoProcessor if later else hf.Qwen2VLVideoProcessor)(
            patch_size=side
        ),
        chat_template=template,
    )
    return Parts(whole, model, processor)


def _qwen3_vl(head: int = 16) -> Parts:
    rope = _rope([head // 4, head // 8, head // 8], mrope_interleaved=True)
    text = {"head_dim": head, "rope_parameters": rope}
    vision = {"num_position_embeddings": 256, "deepstack_visual_indexes": [0]}
    return _qwen(hf.Qwen3VLConfig, hf.Qwen3VLForConditionalGeneration, QWEN, text, vision)


def _qwen3_5() -> Parts:
    text = {
        "head_dim": 16, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
        "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_conv_kernel_dim": 4,
        "layer_types": ["linear_attention", "full_attention"],
        "rope_parameters": _rope([2, 1, 1], mrope_interleaved=True, partial_rotary_factor=0.5),
    }  # fmt: skip
    vision = {"num_position_embeddings": 256}
    return _qwen(hf.Qwen3_5Config, hf.Qwen3_5ForConditionalGeneration, QWEN35, text, vision)


def _qwen2_5_vl(head: int = 16) -> Parts:
    rope = _rope([head // 4, head // 8, head // 8])
    heads = HIDDEN // head
    text = {"use_sliding_window": False, "num_attention_heads": heads, "rope_parameters": rope}
    vision = {"window_size": 56, "fullatt_block_indexes": [1]}
    model = hf.Qwen2_5_VLForConditionalGeneration
    return _qwen(hf.Qwen2_5_VLConfig, model, QWEN, text, vision, side=14)


def _glm46v() -> Parts:
    tokenizer = build_tokenizer(GLM_TOKENS, "<|endoftext|>", "<|endoftext|>")
    ids = tokenizer.convert_tokens_to_ids
    rope = _rope([2, 1, 1], partial_rotary_factor=0.5)
    text = {"model_type": "glm4v_text", "vocab_size": len(tokenizer), "rope_parameters": rope}
    sizes = {"image_size": 336, "patch_size": 14, "out_hidden_size": HIDDEN}
    config = hf.Glm46VConfig(
        text_config={**_TEXT, **text},
        vision_config={**_VISION, "model_type": "glm4v_vision", **sizes},
        image_token_id=ids("<|image|>"),
        video_token_id=ids("<|video|>"),
        image_start_token_id=ids("<|begin_of_image|>"),
        image_end_token_id=ids("<|end_of_image|>"),
        video_start_token_id=ids("<|begin_of_video|>"),
        video_end_token_id=ids("<|end_of_video|>"),
        tie_word_embeddings=False,
    )
    # Its sizes count both frames of a temporal patch: two times height times width.
    area = {key: 2 * value for key, value in _AREA.items()}
    processor = hf.Glm46VProcessor(
        image_processor=hf.Glm46VImageProcessor(size=area),
        tokenizer=tokenizer,
        video_processor=hf.Glm46VVideoProcessor(),
        chat_template=GLM,
    )
    return Parts(config, hf.Glm46VForConditionalGeneration, processor)


def _gemma4() -> Parts:
    named = {
        "image_token": "<|image|>", "boi_token": "<|image>", "eoi_token": "<image|>",
        "audio_token": "<|audio|>", "boa_token": "<|audio>", "eoa_token": "<audio|>",
    }  # fmt: skip
    tokenizer = build_tokenizer(GEMMA_TOKENS, "<pad>", "<eos>", "<bos>", **named)
    ids = tokenizer.convert_tokens_to_ids
    config = hf.Gemma4Config(
        text_config={
            **_TEXT, "vocab_size": len(tokenizer), "vocab_size_per_layer_input": len(tokenizer),
            "head_dim": 16, "global_head_dim": 16, "hidden_size_per_layer_input": 8,
            "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 96,
            "use_bidirectional_attention": "vision",
        },
        vision_config={
            **_TOWER, "num_key_value_heads": 2, "head_dim": 16, "patch_size": 16,
            "pooling_kernel_size": 3, "position_embedding_size": 256,
        },
        audio_config=None,
        video_token_id=ids("<|video|>"),
        eoa_token_index=ids("<audio|>"),
        **{f"{name}_id": ids(token) for name, token in named.items() if name != "eoa_token"},
    )  # fmt: skip
    sizes = {"patch_size": 16, "max_soft_tokens": 70, "pooling_kernel_size": 3}
    processor = hf.Gemma4Processor(
        feature_extractor=hf.Gemma4AudioFeatureExtractor(),
        image_processor=hf.Gemma4ImageProcessor(**sizes),
        tokenizer=tokenizer,
        video_processor=hf.Gemma4VideoProcessor(),
        chat_template=GEMMA,
        image_seq_length=70,
    )
    return Parts(config, hf.Gemma4ForConditionalGeneration, processor)


def _internvl3() -> Parts:
    named = {
        "start_image_token": "<img>", "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>", "video_token": "<video>",
    }  # fmt: skip
    tokenizer = build_tokenizer(INTERN_TOKENS, "<|endoftext|>", "<|im_end|>", **named)
    text = {"model_type": "qwen2", "vocab_size": len(tokenizer), "tie_word_embeddings": False}
    config = hf.InternVLConfig(
        text_config={**_TEXT, **text},
        vision_config={**_TOWER, "image_size": [112, 112], "patch_size": [14, 14]},
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=16,
        downsample_ratio=0.5,
        tie_word_embeddings=False,
    )
    tile = {"height": 112, "width": 112}
    processor = hf.InternVLProcessor(
        image_processor=hf.GotOcr2ImageProcessor(size=tile),
        tokenizer=tokenizer,
        video_processor=hf.InternVLVideoProcessor(size=tile),
        image_seq_length=16,
        chat_template=INTERN,
    )
    return Parts(config, hf.InternVLForConditionalGeneration, processor)


def _idefics3() -> Parts:
    tiles = " ".join(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7))
    specials = "<|endoftext|> <|im_start|> <|im_end|> <end_of_utterance> <fake_token_around_image>"
    specials += f" <image> <global-img> {tiles}"
    tokenizer = build_tokenizer(specials, "<|im_end|>", "<end_of_utterance>")
    config = hf.Idefics3Config(
        text_config={**_TEXT, "model_type": "llama", "vocab_size": len(tokenizer)},
        vision_config={**_TOWER, "image_size": 56, "patch_size": 14},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    sides = {"size": {"longest_edge": 4 * 56}, "max_image_size": {"longest_edge": 56}}
    opens = "{{ '<|im_start|>' + m.role + ':' }}"
    closes = "{{ '<end_of_utterance>\\n' }}"
    processor = hf.Idefics3Processor(
        image_processor=hf.Idefics3ImageProcessor(**sides),
        tokenizer=tokenizer,
        image_seq_len=4,
        chat_template=template(opens, closes, "<image>", "{{ 'Assistant:' }}"),
    )
    return Parts(config, hf.Idefics3ForConditionalGeneration, processor)


FAMILIES: Mapping[str, Callable[[], Parts]] = {
    "Qwen3-VL": _qwen3_vl,
    "Qwen2.5-VL": _qwen2_5_vl,
    "Qwen3.5": _qwen3_5,
    "Qwen3.5-nothink": _qwen3_5,
    "GLM-4.6V": _glm46v,
    "Gemma 4": _gemma4,
    "InternVL3": _internvl3,
}
"""By the row of the model table."""

WIDE_HEADS: Mapping[str, Callable[[], Parts]] = {
    "Qwen3-VL": partial(_qwen3_vl, 32),
    "Qwen2.5-VL": partial(_qwen2_5_vl, 32),
}
"""With heads of 32 dimensions, the fewest for vLLM's attention on CPUs."""

STRANGER = "Idefics3"
"""An architecture that no row of the model table is of."""


def build(row: str, folder: Path, seed: int = 4, *, wide_heads: bool = False) -> Path:
    """Save a tiny checkpoint of a row, or of a stranger, into a folder; returns the folder.

    Its generation settings sample, as those of the published checkpoints do: FindIt must not.  With
    the default seed every family says different things about different questions.
    """
    torch.manual_seed(seed)
    families = WIDE_HEADS if wide_heads else {**FAMILIES, STRANGER: _idefics3}
    parts = families[row]()
    model = parts.model_class(parts.config).eval()
    tokenizer = parts.processor.tokenizer
    # Published Qwens name both; models here stop at both anyway, servers at those named here.
    ends = [tokenizer.eos_token_id, tokenizer.pad_token_id]
    model.generation_config = hf.GenerationConfig(
        do_sample=True,
        temperature=0.7,
        top_k=20,
        repetition_penalty=1.05,
        eos_token_id=ends if wide_heads else tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    if wide_heads:
        _say_whole_characters(model, tokenizer)
    model.save_pretrained(folder)
    parts.processor.save_pretrained(folder)
    return folder


def _say_whole_characters(model: Any, tokenizer: Any) -> None:
    """Make tokens that are no whole character unlikely: vLLM states no bytes for logprobs."""
    parts = [token for token in range(len(tokenizer)) if "\ufffd" in tokenizer.decode([token])]
    with torch.no_grad():
        model.get_output_embeddings().weight[parts] = 0.0
