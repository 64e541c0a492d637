"""Tokenizer, processor and model of FindIt-Nano-SigLIP: the SigLIP architecture, very small."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import transformers as hf
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

LONGEST = 64
"""Tokens of a caption, as SigLIP has it."""

_PAD, _END = "<pad>", "</s>"


def build_tokenizer(corpus: Iterable[str], size: int) -> Any:
    """A byte-level BPE tokenizer of at most ``size`` tokens; a caption ends with a token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[_PAD, _END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    end = tokenizer.token_to_id(_END)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {_END}", special_tokens=[(_END, end)]
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=_PAD,
        eos_token=_END,
        model_max_length=LONGEST,
        padding_side="right",
        model_input_names=["input_ids"],
    )


def build_processor(tokenizer: Any, side: int) -> Any:
    """A SigLIP processor whose pictures are ``side`` x ``side`` pixels."""
    pictures = hf.SiglipImageProcessor(size={"height": side, "width": side})
    return hf.SiglipProcessor(image_processor=pictures, tokenizer=tokenizer)


def build_model(tokenizer: Any, text: Mapping[str, int], vision: Mapping[str, int]) -> Any:
    """A SigLIP with random weights; ``text`` and ``vision`` are entries of its configurations."""
    config = hf.SiglipConfig(
        text_config={
            **text,
            "vocab_size": len(tokenizer),
            "max_position_embeddings": LONGEST,
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": tokenizer.eos_token_id,
        },
        vision_config=dict(vision),
    )
    model = hf.SiglipModel(config)
    # As SigLIP's authors begin: nearly all of a batch's captions are of other pictures.
    model.logit_scale.data.fill_(math.log(10.0))
    model.logit_bias.data.fill_(-10.0)
    return model
