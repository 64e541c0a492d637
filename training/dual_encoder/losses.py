"""What FindIt-Nano-SigLIP is trained to lessen.

SigLIP's own loss over a batch; that a caption is nearer to its own picture than to the other of the
pair, and a picture to its own caption; and, with heads that are thrown away afterwards, two things
that make a short training find its way: what lies under each patch, and what the scene has at all,
which is read from pictures and captions by one and the same head.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from training.dual_encoder.lessons import ATTRIBUTES, BONDS, NOTHING, VALUES


class Heads(nn.Module):  # type: ignore[misc]
    """Heads of the auxiliary losses, over towers of ``width``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.sizes = [*map(len, ATTRIBUTES.values())]
        self.cell = nn.Linear(width, 1 + sum(self.sizes))
        self.facts = nn.Linear(width, len(VALUES) + len(BONDS))


class Batch(NamedTuple):
    """2n pictures and captions: the two of a pair stand one behind the other.

    ``pixels`` 2n x 3 x side x side, ``ids`` 2n x 64, ``cells`` 2n x patches x 5, ``facts`` 2n x f,
    ``full`` 2n: whether the caption says all that the scene has.
    """

    pixels: Any
    ids: Any
    cells: Any
    facts: Any
    full: Any


class Losses(NamedTuple):
    """The parts of a step's loss, and the share of pairs whose captions are both right."""

    sigmoid: Any
    within: Any
    cells: Any
    facts: Any
    right: float


def features(model: Any, batch: Batch) -> tuple[Any, Any, Any]:
    """Pooled pictures and captions (2n x d each), and the patches (2n x patches x d)."""
    seen = model.vision_model(pixel_values=batch.pixels)
    said = model.text_model(input_ids=batch.ids)
    return seen.pooler_output, said.pooler_output, seen.last_hidden_state


def both_right(pictures: Any, captions: Any) -> Any:
    """Of each pair, whether both captions are at least as near to their own picture: n booleans."""
    a, b = functional.normalize(pictures, dim=-1), functional.normalize(captions, dim=-1)
    near = torch.einsum("pcd,pid->pci", b.unflatten(0, (-1, 2)), a.unflatten(0, (-1, 2)))
    return (near[:, 0, 0] >= near[:, 0, 1]) & (near[:, 1, 1] >= near[:, 1, 0])


def grade(model: Any, heads: Heads, batch: Batch, sharpness: float) -> Losses:
    """The losses of a batch; gradients flow through all of them.

    ``sharpness`` is the scale of the cosines where two of a pair are told apart.
    """
    pictures, captions, patches = (out.float() for out in features(model, batch))
    a, b = functional.normalize(pictures, dim=-1), functional.normalize(captions, dim=-1)
    cosines = b @ a.T
    scores = cosines * model.logit_scale.exp() + model.logit_bias
    signs = 2 * torch.eye(len(a)) - 1
    sigmoid = -functional.logsigmoid(scores * signs).sum() / len(a)
    pairs = torch.arange(len(a)).view(-1, 2)
    near = sharpness * cosines[pairs[:, :, None], pairs[:, None, :]]
    own = torch.tensor([0, 1]).expand(len(pairs), 2)
    within = functional.cross_entropy(near, own) + functional.cross_entropy(
        near.transpose(1, 2), own
    )
    right = both_right(pictures, captions).float().mean().item()
    facts = functional.binary_cross_entropy_with_logits(heads.facts(pictures), batch.facts)
    told = functional.binary_cross_entropy_with_logits(
        heads.facts(captions[batch.full]), batch.facts[batch.full]
    )
    return Losses(sigmoid, within, _cells(heads, patches, batch.cells), facts + told, right)


def _cells(heads: Heads, patches: Any, cells: Any) -> Any:
    guess = heads.cell(patches)
    there = cells[..., 0] != NOTHING
    loss = functional.binary_cross_entropy_with_logits(guess[..., 0], there.float())
    guesses = guess[there][:, 1:].split(heads.sizes, dim=-1)
    for i, scores in enumerate(guesses):
        loss = loss + functional.cross_entropy(scores, cells[there][:, i])
    return loss
