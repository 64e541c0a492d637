"""FindIt-Nano-SigLIP's tokenizer, processor, model and losses: the SigLIP architecture, very small.

The losses: SigLIP's over a batch; within a pair, that a caption is nearest to its image and an
image to its caption; and, with heads that are not shipped, two that shorten the training: the
object under each patch, and the contents of the scene, read from images and from captions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
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
from torch import nn
from torch.nn import functional

from training.pairs import ATTRIBUTES
from training.siglip.samples import BONDS, NOTHING, VALUES

LONGEST = 64  # Tokens of a caption, as SigLIP has it

_PAD = "<pad>"
_END = "</s>"


def build_tokenizer(corpus: Iterable[str], size: int) -> Any:
    """Train a byte-level BPE tokenizer of at most ``size`` tokens; a caption ends with a token."""
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
    """Build a SigLIP processor whose images are ``side`` x ``side`` pixels."""
    images = hf.SiglipImageProcessor(size={"height": side, "width": side})
    return hf.SiglipProcessor(image_processor=images, tokenizer=tokenizer)


def build_model(tokenizer: Any, text: Mapping[str, int], vision: Mapping[str, int]) -> Any:
    """Build a SigLIP with random weights; ``text`` and ``vision`` are configuration entries."""
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
    # SigLIP's initial values: nearly all of a batch's captions are of other images.
    model.logit_scale.data.fill_(math.log(10.0))
    model.logit_bias.data.fill_(-10.0)
    return model


# --- losses ---------------------------------------------------------------------------------------


class Heads(nn.Module):  # type: ignore[misc]
    """Heads of the auxiliary losses, over towers of ``width``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.sizes = [*map(len, ATTRIBUTES.values())]
        self.cell = nn.Linear(width, 1 + sum(self.sizes))
        self.facts = nn.Linear(width, len(VALUES) + len(BONDS))


class Batch(NamedTuple):
    """Tensors of n pairs: 2n images and captions, those of a pair next to each other."""

    pixels: Any  # (2n, 3, side, side)
    ids: Any  # (2n, 64)
    cells: Any  # (2n, patches, 5)
    facts: Any  # (2n, facts)
    full: Any  # (2n,): whether the caption describes the whole scene


class Losses(NamedTuple):
    """The parts of a step's loss."""

    sigmoid: Any
    within: Any
    cells: Any
    facts: Any
    right: float  # Share of pairs whose captions are both right

    def as_numbers(self) -> dict[str, float]:
        parts = self._asdict().items()
        return {name: float(torch.as_tensor(part).detach()) for name, part in parts}


def both_right(images: Any, captions: Any) -> Any:
    """Return n booleans: both captions of a pair are nearest to their image; ties count."""
    a = functional.normalize(images, dim=-1)
    b = functional.normalize(captions, dim=-1)
    near = torch.einsum("pcd,pid->pci", b.unflatten(0, (-1, 2)), a.unflatten(0, (-1, 2)))
    return (near[:, 0, 0] >= near[:, 0, 1]) & (near[:, 1, 1] >= near[:, 1, 0])


def grade(model: Any, heads: Heads, batch: Batch, sharpness: float) -> Losses:
    """Return the losses of a batch; gradients flow through all of them.

    ``sharpness`` is the scale of the cosines within a pair.
    """
    seen = model.vision_model(pixel_values=batch.pixels)
    images = seen.pooler_output.float()
    patches = seen.last_hidden_state.float()
    captions = model.text_model(input_ids=batch.ids).pooler_output.float()
    a = functional.normalize(images, dim=-1)
    b = functional.normalize(captions, dim=-1)
    cosines = b @ a.T
    scores = cosines * model.logit_scale.exp() + model.logit_bias
    signs = 2 * torch.eye(len(a), device=a.device) - 1
    sigmoid = -functional.logsigmoid(scores * signs).sum() / len(a)
    pairs = torch.arange(len(a), device=a.device).view(-1, 2)
    near = sharpness * cosines[pairs[:, :, None], pairs[:, None, :]]
    matching = torch.tensor([0, 1], device=a.device).expand(len(pairs), 2)
    within = functional.cross_entropy(near, matching) + functional.cross_entropy(
        near.transpose(1, 2), matching
    )
    right = both_right(images, captions).float().mean().item()
    facts = functional.binary_cross_entropy_with_logits(heads.facts(images), batch.facts)
    caption_facts = functional.binary_cross_entropy_with_logits(
        heads.facts(captions[batch.full]), batch.facts[batch.full]
    )
    return Losses(
        sigmoid, within, _cells(heads, patches, batch.cells), facts + caption_facts, right
    )


def _cells(heads: Heads, patches: Any, cells: Any) -> Any:
    guess = heads.cell(patches)
    there = cells[..., 0] != NOTHING
    loss = functional.binary_cross_entropy_with_logits(guess[..., 0], there.float())
    guesses = guess[there][:, 1:].split(heads.sizes, dim=-1)
    for i, scores in enumerate(guesses):
        loss = loss + functional.cross_entropy(scores, cells[there][:, i])
    return loss
