"""A Qwen3-VL of 0.1 million random weights, saved with all that a server needs to load it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip

_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% for part in message.content -%}
{%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
{%- else -%}{{ part.text }}{%- endif -%}
{%- endfor -%}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}"""

_WIDTH = 32


def build(folder: Path) -> Path:
    """Save the checkpoint into a folder and return it.

    Its generation settings sample, as those of the published one do: FindIt must not.
    """
    import torch
    import transformers as hf

    torch.manual_seed(0)
    tokenizer = _tokenizer()
    ids = tokenizer.convert_tokens_to_ids
    config = hf.Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": _WIDTH,
            "intermediate_size": 2 * _WIDTH,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "initializer_range": 0.3,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [4, 2, 2],  # adds up to half of head_dim
                "mrope_interleaved": True,
            },
        },
        vision_config={
            "depth": 2,
            "hidden_size": _WIDTH,
            "intermediate_size": 2 * _WIDTH,
            "num_heads": 2,
            "patch_size": 16,
            "out_hidden_size": _WIDTH,
            "num_position_embeddings": 256,
            "deepstack_visual_indexes": [0],
        },
        image_token_id=ids("<|image_pad|>"),
        video_token_id=ids("<|video_pad|>"),
        vision_start_token_id=ids("<|vision_start|>"),
        vision_end_token_id=ids("<|vision_end|>"),
    )
    model = hf.Qwen3VLForConditionalGeneration(config).eval()
    model.generation_config = hf.GenerationConfig(
        do_sample=True,
        temperature=0.7,
        top_k=20,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model.save_pretrained(folder)
    processor = hf.Qwen3VLProcessor(
        image_processor=hf.Qwen2VLImageProcessor(
            size={"shortest_edge": 64**2, "longest_edge": 256**2}, patch_size=16
        ),
        tokenizer=tokenizer,
        video_processor=hf.Qwen3VLVideoProcessor(patch_size=16),
        chat_template=_TEMPLATE,
    )
    processor.save_pretrained(folder)
    return folder


def _tokenizer() -> Any:
    import transformers as hf
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=list(_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["Find the bounding box in the image."], trainer)
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
