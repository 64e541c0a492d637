"""What FindIt-Nano is trained to lessen.

The reply's tokens; and, with heads that are thrown away afterwards, what makes a short training
find its way: what object and what mark lie under each visual token, that a token before a
coordinate looks at the object which that coordinate belongs to, that at a request's end it is
known which objects are meant, all of them or none, and at an option's end whether it is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from training import attention
from training.architecture import coordinate_ids
from training.batches import IGNORED, MARK, Batch
from vlmeval_findit.data.rendered.drawing import COLOURS, SHAPES, TEXTURES

_LOOK = 64
_FAR = 72.0
"""Pixels: distances in the loss are counted in these."""
_MARKS = 10.0
"""Weighs marks against objects: most of a map's places have none."""
_OPTIONS = 0.3
"""Weighs whether an option is right against which visual tokens are meant: most are not."""
_SELDOM = 2.0
"""Before anything is known, one visual token in eight is taken to be meant."""
_WORDS = 2.0
"""Weighs what is no coordinate: which objects there are is a word or two of a long reply."""


class Heads(nn.Module):  # type: ignore[misc]
    """Heads of the auxiliary losses: over a language model of ``width`` and its last layers."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.cell = nn.Linear(width, 1 + 4 + len(SHAPES) + len(COLOURS) + len(TEXTURES))
        self.asks = nn.ModuleList([nn.Linear(width, _LOOK) for _ in range(layers)])
        self.answers = nn.ModuleList([nn.Linear(width, _LOOK) for _ in range(layers)])
        self.mark = nn.Linear(width, MARK)
        self.means = nn.ModuleList([nn.Linear(width, _LOOK) for _ in range(layers)])
        self.meant = nn.ModuleList([nn.Linear(width, _LOOK) for _ in range(layers)])
        self.right = nn.ModuleList([nn.Linear(width, 1) for _ in range(layers)])
        for new in (self.mark, *self.means, *self.right):
            # They may come to a model that has learnt: they begin by saying nothing.
            nn.init.zeros_(new.weight)
            nn.init.zeros_(new.bias)


class Losses(NamedTuple):
    """The parts of a step's loss, and two figures that a person can read.

    ``right`` is the share of reply tokens that were foreseen; ``off`` how far coordinates were off,
    in its own units.
    """

    reply: Any
    cells: Any
    looks: Any
    meant: Any
    right: float
    off: float


class Grader:
    """Computes the losses of a batch.

    Args:
        model: the language model with its vision tower.
        heads: trained beside it.
        tokenizer: whose coordinates are ordered.
        numbers: the coordinates that the model says, in order.
    """

    def __init__(self, model: Any, heads: Heads, tokenizer: Any, numbers: Sequence[int]) -> None:
        self._model, self._heads = model, heads
        device = model.device
        attention.use(model)
        self._coordinates = torch.tensor(coordinate_ids(tokenizer, numbers), device=device)
        self._place = torch.full((len(tokenizer),), -1, device=device)
        self._style = torch.full((len(tokenizer),), -1, device=device)
        for style, ids in enumerate(self._coordinates):
            self._place[ids], self._style[ids] = torch.arange(len(ids), device=device), style
        self._numbers = torch.tensor([*numbers], dtype=torch.float32, device=device)
        self._seen: list[Any] = []
        model.model.visual.merger.register_forward_hook(
            lambda module, given, out: self._seen.append(out)
        )

    def grade(self, batch: Batch, softness: float) -> Losses:
        """The losses of a batch; gradients flow through all of them.

        Args:
            batch: of the model's own tokenizer.
            softness: a coordinate's target is a bell of this width, in the coordinate's own units,
                around the right one: near misses are better than far ones.
        """
        self._seen.clear()
        out = self._model.model(
            input_ids=batch.ids,
            pixel_values=batch.pixels,
            image_grid_thw=batch.grid,
            # Four dimensions are taken as they are; the layout says who sees whom.
            attention_mask=batch.positions.new_zeros(1, 1, 1, 1),
            position_ids=batch.positions,
            use_cache=False,
            output_hidden_states=True,
            turns=batch.layout,
        )
        seen = self._seen[0].reshape(len(batch.ids), len(batch.visual), -1)
        reply, right, off = self._reply(out.last_hidden_state, batch, softness)
        layers = out.hidden_states[-1 - len(self._heads.asks) : -1]
        cells = self._cells(seen.float(), batch.cells)
        marks = functional.binary_cross_entropy_with_logits(
            self._heads.mark(seen).float(), batch.marks
        )
        meant = self._meant(layers, batch) + _OPTIONS * self._options(layers, batch)
        looks = self._looks(layers, batch)
        return Losses(reply, cells + _MARKS * marks, looks, meant, right, off)

    def _reply(self, hidden: Any, batch: Batch, softness: float) -> tuple[Any, float, float]:
        asked = batch.targets != IGNORED
        target = batch.targets[asked]
        scores = functional.log_softmax(self._model.lm_head(hidden[asked]).float(), -1)
        said = torch.zeros_like(asked)
        said[batch.looks[:, 0], batch.looks[:, 1]] = True
        numbers = said[asked] & (self._place[target] >= 0)
        place = self._place[target[numbers]]
        hard = -scores[~numbers].gather(1, target[~numbers, None]).sum()
        # Shares among all tokens, not among coordinates: what is no coordinate is wrong here too.
        among = scores[numbers].gather(1, self._coordinates[self._style[target[numbers]]])
        apart = (self._numbers[place, None] - self._numbers) / softness
        soft = -(among * torch.softmax(-apart.square() / 2, -1)).sum()
        right = (scores.argmax(-1) == target).float().mean().item()
        wrong = (self._numbers[among.argmax(-1)] - self._numbers[place]).abs()
        off = wrong.mean().item() if len(wrong) else 0.0
        return (_WORDS * hard + soft) / len(target), right, off

    def _cells(self, seen: Any, cells: Any) -> Any:
        """Whether an object is there, its sides, its shape, colour and texture."""
        guess = self._heads.cell(seen)
        names = cells[..., 4:]
        there = names.sum(-1) > 0
        loss = functional.binary_cross_entropy_with_logits(guess[..., 0], there.float())
        if not there.any():
            return loss
        guess, truth = guess[there], cells[there]
        loss = loss + 2 * functional.l1_loss(guess[:, 1:5], truth[:, :4] / _FAR)
        first = 0
        for size in (len(SHAPES), len(COLOURS), len(TEXTURES)):
            scores = guess[:, 5 + first : 5 + first + size]
            which = truth[:, 4 + first : 4 + first + size].argmax(-1)
            loss = loss + functional.cross_entropy(scores, which)
            first += size
        return loss

    def _looks(self, layers: Any, batch: Batch) -> Any:
        """Cross-entropy of where a coordinate's token looks, a mean over layers."""
        if not len(batch.looks):
            return batch.covers.new_zeros(())
        rows, places = batch.looks.T
        total = batch.covers.new_zeros(())
        for asks, answers, hidden in zip(
            self._heads.asks, self._heads.answers, layers, strict=True
        ):
            asked = asks(hidden[rows, places])
            shown = answers(hidden[:, batch.visual])[rows]
            scores = (shown @ asked[..., None]).squeeze(-1).float() / _LOOK**0.5
            total = total - (torch.log_softmax(scores, -1) * batch.covers).sum(-1).mean()
        return total / len(layers)

    def _meant(self, layers: Any, batch: Batch) -> Any:
        """Cross-entropy of which visual tokens lie on what is meant, a mean over layers."""
        rows, places = batch.asks.T
        total = batch.meant.new_zeros(())
        for means, meant, hidden in zip(self._heads.means, self._heads.meant, layers, strict=True):
            even = functional.rms_norm(hidden, hidden.shape[-1:])
            asked = means(even[rows, places])
            shown = meant(even[:, batch.visual])[rows]
            scores = (shown @ asked[..., None]).squeeze(-1).float() / _LOOK**0.5 - _SELDOM
            total = total + functional.binary_cross_entropy_with_logits(scores, batch.meant)
        return total / len(layers)

    def _options(self, layers: Any, batch: Batch) -> Any:
        """Cross-entropy of whether an option is right, a mean over layers."""
        total = batch.right.new_zeros(())
        if not len(batch.right):
            return total
        rows, places = batch.options.T
        for right, hidden in zip(self._heads.right, layers, strict=True):
            even = functional.rms_norm(hidden[rows, places], hidden.shape[-1:])
            scores = right(even).squeeze(-1).float()
            total = total + functional.binary_cross_entropy_with_logits(scores, batch.right)
        return total / len(layers)
