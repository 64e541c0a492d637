"""Tokenizers and chat templates of the tiny checkpoints."""

from __future__ import annotations

from typing import Any

import transformers as hf
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

_CORPUS = [
    "Find every instance of the object in the image. Answer with nothing else.",
    'Return one bounding box for each, as a JSON list: [{"bbox": [10, 20, 300, 400]}, ...]',
    "user assistant system model Reference image 1 of the object: Scene: Frame 1:",
] * 20
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def build_tokenizer(specials: str, pad: str, eos: str, bos: str | None = None, **named: str) -> Any:
    """Return a small BPE tokenizer with the family's special tokens, separated by blanks."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=specials.split(),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=eos,
        pad_token=pad,
        bos_token=bos,
        extra_special_tokens=named,
        model_max_length=32768,
    )


def template(opens: str, closes: str, image: str, generation: str, after_user: str = "") -> str:
    """Return a chat template: messages opened and closed, with images and texts in place."""
    return (
        "{%- for m in messages -%}"
        + opens
        + "{%- for c in m.content -%}{%- if c.type == 'image' -%}{{ '"
        + image
        + "' }}{%- else -%}{{ c.text }}{%- endif -%}{%- endfor -%}"
        + after_user
        + closes
        + "{%- endfor -%}{%- if add_generation_prompt -%}"
        + generation
        + "{%- endif -%}"
    )


_OFF = "enable_thinking is defined and enable_thinking is false"


def chatml(image: str, generation: str = "") -> str:
    """Return a template in the style of ChatML."""
    return template(
        "{{ '<|im_start|>' + m.role + '\\n' }}",
        "{{ '<|im_end|>\\n' }}",
        image,
        "{{ '<|im_start|>assistant\\n' }}" + generation,
    )


_QWEN_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
QWEN = chatml(_QWEN_IMAGE)
QWEN35 = chatml(
    _QWEN_IMAGE,
    "{%- if " + _OFF + " -%}{{ '<think>\\n\\n</think>\\n\\n' }}"
    "{%- else -%}{{ '<think>\\n' }}{%- endif -%}",
)
GLM = "[gMASK]<sop>" + template(
    "{{ '<|' + m.role + '|>\\n' }}",
    "",
    "<|begin_of_image|><|image|><|end_of_image|>",
    "{{ '<|assistant|>' }}{%- if "
    + _OFF
    + " -%}{{ '\\n<think></think>' }}{%- endif -%}{{ '\\n' }}",
    "{%- if " + _OFF + " -%}{{ '/nothink' }}{%- endif -%}",
)
GEMMA = "{{ bos_token }}" + template(
    "{{ '<|turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' }}",
    "{{ '<turn|>\\n' }}",
    "<|image|>",
    "{{ '<|turn>model\\n' }}{%- if not enable_thinking | default(false) -%}"
    "{{ '<|channel>thought\\n<channel|>' }}{%- endif -%}",
)
INTERN = chatml("<IMG_CONTEXT>\\n")

QWEN_TOKENS = (
    "<|endoftext|> <|im_start|> <|im_end|> <|vision_start|> <|vision_end|> <|image_pad|> "
    "<|video_pad|> <think> </think>"
)
GLM_TOKENS = (
    "<|endoftext|> [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|> <|assistant|> "
    "<|observation|> <|begin_of_image|> <|end_of_image|> <|begin_of_video|> "
    "<|end_of_video|> <|image|> <|video|> <|begin_of_box|> <|end_of_box|> <think> </think> "
    "/nothink"
)
GEMMA_TOKENS = (
    "<pad> <eos> <bos> <unk> <|turn> <turn|> <|image> <|image|> <image|> <|audio> "
    "<|audio|> <audio|> <|video|> <|think|> <|channel> <channel|>"
)
INTERN_TOKENS = "<|endoftext|> <|im_start|> <|im_end|> <img> </img> <IMG_CONTEXT> <video>"
