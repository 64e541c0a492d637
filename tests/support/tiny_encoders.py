"""Tiny dual encoders of the real architectures, with random weights, built on the fly.

Each has the tokenizer class and the image processor of its family, so captions and pictures are
encoded as for the real model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers as hf

CORPUS = [
    "a small plain red circle at the upper left; a large dotted blue square in the middle",
    "two dogs run over a green meadow, one of them with a yellow ball in its mouth",
    "The quick brown fox jumps over the lazy dog while nobody looks. 0123456789!",
] * 10
_TOWER = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2
}  # fmt: skip
_VISION = {**_TOWER, "image_size": 32, "patch_size": 16}
_SIDE = {"height": 32, "width": 32}


def _siglip(folder: Path) -> tuple[Any, Any]:
    """With SigLIP's kind of tokenizer, which ``sentencepiece`` reads."""
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(CORPUS))
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus),
        model_prefix=str(folder / "spiece"),
        vocab_size=96,
        hard_vocab_limit=False,
        pad_id=-1,
        bos_id=-1,
        eos_id=1,
        unk_id=2,
        control_symbols=["<pad>"],
        minloglevel=2,
    )
    tokenizer = hf.SiglipTokenizer(str(folder / "spiece.model"))
    ids = {"bos_token_id": tokenizer.eos_token_id, "eos_token_id": tokenizer.eos_token_id}
    text = {**_TOWER, **ids, "vocab_size": tokenizer.vocab_size}
    config = hf.SiglipConfig(text_config=text, vision_config=_VISION)
    pictures = hf.SiglipImageProcessor(size=_SIDE)
    return hf.SiglipModel(config), hf.SiglipProcessor(pictures, tokenizer)


def _clip(folder: Path) -> tuple[Any, Any]:
    letters = sorted({letter for line in CORPUS for letter in line.lower() if letter != " "})
    pieces = [*letters, *(f"{letter}</w>" for letter in letters)]
    vocabulary = {piece: i for i, piece in enumerate([*pieces, "<|startoftext|>", "<|endoftext|>"])}
    tokenizer = hf.CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=77)
    begin, end = len(pieces), len(pieces) + 1
    ids = {"bos_token_id": begin, "eos_token_id": end, "pad_token_id": end}
    text = {**_TOWER, **ids, "vocab_size": len(tokenizer)}
    config = hf.CLIPConfig(text_config=text, vision_config=_VISION, projection_dim=24)
    pictures = hf.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=_SIDE)
    return hf.CLIPModel(config), hf.CLIPProcessor(pictures, tokenizer)


FAMILIES: Mapping[str, Callable[[Path], tuple[Any, Any]]] = {"SigLIP": _siglip, "CLIP": _clip}


def build(family: str, folder: Path, seed: int = 4) -> Path:
    """Save a tiny checkpoint of a family into a folder; returns the folder.

    Weights are larger than those that a training begins with, so that features tell inputs apart.
    """
    torch.manual_seed(seed)
    folder.mkdir(parents=True, exist_ok=True)
    model, processor = FAMILIES[family](folder)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(0.0, 0.3)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
