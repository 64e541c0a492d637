"""Tokenizer, processor and model of FindIt-Nano: the Qwen3-VL architecture, very small.

Frequent phrases of requests, every word of a label and every coordinate are one token each; all
other words are byte-level BPE. Short sequences make training on a processor feasible, and a colour
that is one token is learnt in a tenth of the time that its letters take.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from training.questions import ANY_SHAPE, RELATIONS
from vlmeval_findit.data import COLOURS, HALF_SIZES, SHAPES, TEXTURES

PATCH = 12  # Pixels of a patch's side; two by two patches are one visual token
TOKEN_SIDE = 2 * PATCH
MOST_PIXELS = 168 * 168  # Most pixels of an image; scenes are not larger and not resized
LEAST_PIXELS = 4 * TOKEN_SIDE * TOKEN_SIDE

COORDINATE_STEP = 5  # Coordinates in thousandths are multiples of this; pixels are whole numbers
THOUSANDTHS = tuple(range(0, 1001, COORDINATE_STEP))
# A scene's longer side is 192 pixels; photographs are shrunk to 264 at most, a rare side.
PIXELS = tuple(range(241))

# Coordinates that are one token each, in either unit
COORDINATES = tuple(sorted({*THOUSANDTHS, *PIXELS}))

# A coordinate is one token with or without a comma before it, so replies get shorter.
COORDINATE_STYLES = ("{}", ", {}")

_SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)

CHAT_TEMPLATE = (
    "{%- for m in messages -%}{{ '<|im_start|>' + m.role + '\\n' }}"
    "{%- if m.content is string -%}{{ m.content }}{%- else -%}"
    "{%- for c in m.content -%}{%- if c.type == 'image' -%}"
    "{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{%- else -%}{{ c.text }}{%- endif -%}{%- endfor -%}{%- endif -%}"
    "{{ '<|im_end|>\\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)


# ``[x_min, y_min, width, height]``: a representation's fields stay together, whatever follows.
_FIELDS = r"\[(?:[xyhwc]\w*(?:, )?)+\]"
_DIGIT = r"(?<![a-z_])\d"  # Digits of numbers stand alone; those of ``bbox_2d`` and ``x1`` do not
_SENTENCE = r"(?<=\. )"
_SHORTEST_PHRASE = 8
_LEAST_TEXTS = 4  # A phrase of :data:`_SHORTEST_PHRASE` letters in so many texts is a token


def words() -> list[str]:
    """Return the words of labels: tokens that no merge crosses."""
    return [*SHAPES, *COLOURS, *TEXTURES, *HALF_SIZES, *RELATIONS, ANY_SHAPE]


def build_tokenizer(corpus: Iterable[str], size: int) -> Any:
    """Train a tokenizer on requests and replies.

    ``size`` counts tokens of words and parts of words, not phrases and coordinates.
    """
    names = "|".join(sorted(words(), key=len, reverse=True))
    separators = rf" ?\b(?:{names})\b|{_FIELDS}|{_DIGIT}|\n"
    texts = list(corpus)
    pieces = re.compile(f"{separators}|{_SENTENCE}")
    counts = Counter(chain.from_iterable(map(pieces.split, texts)))
    often = [piece for piece, n in counts.items() if n >= _LEAST_TEXTS]
    phrases = [piece for piece in often if len(piece) >= _SHORTEST_PHRASE]
    # Sorted, so that the result does not depend on the order of the corpus.
    phrases.sort(key=lambda phrase: (-len(phrase), phrase))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(separators), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[*_SPECIAL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    phrase_pattern = re.compile("|".join(map(re.escape, phrases)) or r"(?!)")
    rests = chain.from_iterable(map(phrase_pattern.split, texts))
    tokenizer.train_from_iterator(rests, trainer)
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in phrases])
    alone, following = COORDINATE_STYLES
    for n in COORDINATES:
        first = AddedToken(alone.format(n), single_word=True, normalized=False)
        tokenizer.add_tokens([first, AddedToken(following.format(n), normalized=False)])
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        padding_side="left",
        extra_special_tokens={
            "image_token": "<|image_pad|>",
            "video_token": "<|video_pad|>",
            "vision_start_token": "<|vision_start|>",
            "vision_end_token": "<|vision_end|>",
        },
        model_max_length=4096,
    )


def build_processor(tokenizer: Any) -> Any:
    """Build Qwen3-VL's processor with small patches."""
    size = {"shortest_edge": LEAST_PIXELS, "longest_edge": MOST_PIXELS}
    half = [0.5, 0.5, 0.5]
    shared: dict[str, Any] = {
        "size": size,
        "patch_size": PATCH,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "image_mean": half,
        "image_std": half,
    }
    return hf.Qwen3VLProcessor(
        image_processor=hf.Qwen2VLImageProcessor(**shared),
        tokenizer=tokenizer,
        video_processor=hf.Qwen3VLVideoProcessor(**shared),
        chat_template=CHAT_TEMPLATE,
    )


def build_model(tokenizer: Any, text: Mapping[str, int], vision: Mapping[str, int]) -> Any:
    """Build a Qwen3-VL, initialised from torch's current seed.

    ``text`` has ``width``, ``depth`` and ``heads`` of the language model, ``vision`` the same of
    the vision tower.
    """
    token = tokenizer.convert_tokens_to_ids
    config = hf.Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": text["width"],
            "intermediate_size": 3 * text["width"],
            "num_hidden_layers": text["depth"],
            "num_attention_heads": text["heads"],
            "num_key_value_heads": text["heads"],
            "head_dim": 32,
            "max_position_embeddings": 4096,
            "initializer_range": 0.05,
            "pad_token_id": tokenizer.pad_token_id,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1000.0,
                "mrope_section": [6, 5, 5],
                "mrope_interleaved": True,
            },
        },
        vision_config={
            "depth": vision["depth"],
            "hidden_size": vision["width"],
            "intermediate_size": 4 * vision["width"],
            "num_heads": vision["heads"],
            "patch_size": PATCH,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "out_hidden_size": text["width"],
            "num_position_embeddings": _GRID * _GRID,
            "deepstack_visual_indexes": [vision["depth"] // 2],
            "initializer_range": 0.05,
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    model = hf.Qwen3VLForConditionalGeneration._from_config(config, attn_implementation="sdpa")
    model.generation_config = hf.GenerationConfig(
        do_sample=False, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    _start_ordered(model, tokenizer)
    return model


def load(folder: str | Path) -> tuple[Any, Any]:
    """Load processor and model of a checkpoint, in float32."""
    model = hf.Qwen3VLForConditionalGeneration.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa"
    )
    return hf.AutoProcessor.from_pretrained(folder), model


# Positions along each side of the vision tower's learned grid, as a square scene has patches
_GRID = 14


def _start_ordered(model: Any, tokenizer: Any) -> None:
    """Initialise positions and coordinates with waves that express their order.

    Learning from scratch that 410 lies between 400 and 420 takes most of a short training.
    """
    with torch.no_grad():
        positions = model.model.visual.pos_embed.weight
        at = (torch.arange(_GRID) + 0.5) / _GRID
        along = _waves(at, positions.shape[1] // 2, _GRID)
        rows = along[:, None].expand(-1, _GRID, -1)
        columns = along[None].expand(_GRID, -1, -1)
        positions.copy_(0.7 * torch.cat([rows, columns], -1).flatten(0, 1))
        table = model.model.language_model.embed_tokens.weight
        for ids in coordinate_ids(tokenizer):
            waves = _waves(torch.tensor([*COORDINATES]) / 1000, table.shape[1], 50.0)
            table[torch.tensor(ids)] = 0.07 * waves


def _waves(at: Any, width: int, highest: float) -> Any:
    """Return sines and cosines of places in 0 to 1: (places, width)."""
    speeds = torch.exp(torch.linspace(0.0, math.log(highest), width // 2)) * math.pi / 2
    angles = at[:, None] * speeds
    return torch.cat([torch.sin(angles), torch.cos(angles)], 1)


def coordinate_ids(tokenizer: Any, numbers: Sequence[int] = COORDINATES) -> list[list[int]]:
    """Return the tokens of numbers, in order: a list for each style of writing."""
    return [
        [tokenizer.convert_tokens_to_ids(style.format(n)) for n in numbers]
        for style in COORDINATE_STYLES
    ]


def coordinates(tokenizer: Any) -> frozenset[int]:
    """Return the tokens that are coordinates, in every style."""
    return frozenset(chain(*coordinate_ids(tokenizer)))
