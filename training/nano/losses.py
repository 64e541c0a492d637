"""The losses of FindIt-Nano.

The loss of the reply's tokens, and auxiliary losses that shorten the training, with heads that are
not shipped: which object and which mark lie under each visual token (``cells``); that a token
before a coordinate points at the object of that coordinate (``pointers``); at the end of a request
or a phrase, which visual tokens it means, and at the end of an option, whether it is right
(``phrases``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from training.nano import attention
from training.nano.architecture import coordinate_ids
from training.nano.batches import IGNORED, MARK, Batch
from vlmeval_findit.data import COLOURS, SHAPES, TEXTURES

_HEAD_WIDTH = 64
_FAR = 72.0  # Pixels: distances in the loss are counted in these
_MARKS = 10.0  # Weight of marks against objects: most of a map's places have no mark
_OPTIONS = 0.3  # Weight of the rightness of options against the visual tokens that phrases mean
_PRIOR = 2.0  # Logit of the prior that a phrase means a visual token: one in eight
_WORDS = 2.0  # Weight of tokens that are no coordinates: few words of a long reply name the objects


class Heads(nn.Module):  # type: ignore[misc]
    """Heads of the auxiliary losses: over a language model of ``width`` and its last layers."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()

        def each(out: int) -> nn.ModuleList:
            return nn.ModuleList([nn.Linear(width, out) for _ in range(layers)])

        self.cell = nn.Linear(width, 1 + 4 + len(SHAPES) + len(COLOURS) + len(TEXTURES))
        self.pointer_queries = each(_HEAD_WIDTH)
        self.pointer_keys = each(_HEAD_WIDTH)
        self.mark = nn.Linear(width, MARK)
        self.phrase_queries = each(_HEAD_WIDTH)
        self.phrase_keys = each(_HEAD_WIDTH)
        self.option_right = each(1)
        for new in (self.mark, *self.phrase_queries, *self.option_right):
            # The model may be trained already: new heads begin with zero.
            nn.init.zeros_(new.weight)
            nn.init.zeros_(new.bias)


class Losses(NamedTuple):
    """The parts of a step's loss, and two numbers that a person can read."""

    reply: Any
    cells: Any
    pointers: Any
    phrases: Any
    right: float  # Share of reply tokens that were predicted
    off: float  # Mean error of coordinates, in their units

    def as_numbers(self) -> dict[str, float]:
        parts = self._asdict().items()
        return {name: float(torch.as_tensor(part).detach()) for name, part in parts}


class Grader:
    """Computes the losses of a batch; ``numbers`` are the coordinates of replies, in order."""

    def __init__(self, model: Any, heads: Heads, tokenizer: Any, numbers: Sequence[int]) -> None:
        self._model = model
        self._heads = heads
        device = model.device
        attention.use(model)
        self._coordinates = torch.tensor(coordinate_ids(tokenizer, numbers), device=device)
        self._place = torch.full((len(tokenizer),), -1, device=device)
        self._style = torch.full((len(tokenizer),), -1, device=device)
        for style, ids in enumerate(self._coordinates):
            self._place[ids] = torch.arange(len(ids), device=device)
            self._style[ids] = style
        self._numbers = torch.tensor([*numbers], dtype=torch.float32, device=device)
        self._visual: list[Any] = []
        model.model.visual.merger.register_forward_hook(
            lambda module, inputs, out: self._visual.append(out)
        )

    def grade(self, batch: Batch, softness: float) -> Losses:
        """Return the losses of a batch; gradients flow through all of them.

        ``softness`` is the width, in the coordinate's units, of the bell around the right
        coordinate that is its target: near misses cost less than far ones.
        """
        self._visual.clear()
        out = self._model.model(
            input_ids=batch.ids,
            pixel_values=batch.pixels,
            image_grid_thw=batch.grid,
            # A mask of four dimensions is passed on unchanged; attention follows from the layout.
            attention_mask=batch.positions.new_zeros(1, 1, 1, 1),
            position_ids=batch.positions,
            use_cache=False,
            output_hidden_states=True,
            turns=batch.layout,
        )
        visual = self._visual[0].reshape(len(batch.ids), len(batch.visual), -1)
        reply, right, off = self._reply(out.last_hidden_state, batch, softness)
        layers = out.hidden_states[-1 - len(self._heads.pointer_queries) : -1]
        cells = self._cells(visual.float(), batch.cells)
        marks = functional.binary_cross_entropy_with_logits(
            self._heads.mark(visual).float(), batch.marks
        )
        even = [functional.rms_norm(hidden, hidden.shape[-1:]) for hidden in layers]
        phrases = self._phrases(even, batch) + _OPTIONS * self._options(even, batch)
        pointers = self._pointers(layers, batch)
        return Losses(reply, cells + _MARKS * marks, pointers, phrases, right, off)

    def _reply(self, hidden: Any, batch: Batch, softness: float) -> tuple[Any, float, float]:
        learnt = batch.targets != IGNORED
        target = batch.targets[learnt]
        scores = functional.log_softmax(self._model.lm_head(hidden[learnt]).float(), -1)
        pointing = torch.zeros_like(learnt)
        pointing[batch.pointers[:, 0], batch.pointers[:, 1]] = True
        numbers = pointing[learnt] & (self._place[target] >= 0)
        place = self._place[target[numbers]]
        hard = -scores[~numbers].gather(1, target[~numbers, None]).sum()
        # Shares among all tokens, not among coordinates: other tokens are wrong here too.
        among = scores[numbers].gather(1, self._coordinates[self._style[target[numbers]]])
        apart = (self._numbers[place, None] - self._numbers) / softness
        soft = -(among * torch.softmax(-apart.square() / 2, -1)).sum()
        right = (scores.argmax(-1) == target).float().mean().item()
        wrong = (self._numbers[among.argmax(-1)] - self._numbers[place]).abs()
        off = wrong.mean().item() if len(wrong) else 0.0
        return (_WORDS * hard + soft) / len(target), right, off

    def _cells(self, visual: Any, cells: Any) -> Any:
        """Return the loss of whether an object is there, its sides, shape, colour and texture."""
        guess = self._heads.cell(visual)
        names = cells[..., 4:]
        there = names.sum(-1) > 0
        loss = functional.binary_cross_entropy_with_logits(guess[..., 0], there.float())
        if not there.any():
            return loss
        guess = guess[there]
        truth = cells[there]
        loss = loss + 2 * functional.l1_loss(guess[:, 1:5], truth[:, :4] / _FAR)
        sizes = [len(SHAPES), len(COLOURS), len(TEXTURES)]
        all_scores = guess[:, 5:].split(sizes, -1)
        all_values = truth[:, 4:].split(sizes, -1)
        for scores, values in zip(all_scores, all_values, strict=True):
            loss = loss + functional.cross_entropy(scores, values.argmax(-1))
        return loss

    def _pointers(self, layers: Sequence[Any], batch: Batch) -> Any:
        """Return the cross-entropy of a coordinate token's pointer, a mean over layers."""
        if not len(batch.pointers):
            return batch.pointer_maps.new_zeros(())
        queries = self._heads.pointer_queries
        keys = self._heads.pointer_keys
        losses = [
            -(torch.log_softmax(scores, -1) * batch.pointer_maps).sum(-1).mean()
            for scores in _scores(queries, keys, layers, batch.pointers, batch.visual)
        ]
        return sum(losses) / len(layers)

    def _phrases(self, even: Sequence[Any], batch: Batch) -> Any:
        """Return the cross-entropy of the visual tokens that phrases mean, a mean over layers."""
        queries = self._heads.phrase_queries
        keys = self._heads.phrase_keys
        losses = [
            functional.binary_cross_entropy_with_logits(scores - _PRIOR, batch.phrase_maps)
            for scores in _scores(queries, keys, even, batch.phrases, batch.visual)
        ]
        return sum(losses) / len(even)

    def _options(self, even: Sequence[Any], batch: Batch) -> Any:
        """Return the cross-entropy of whether an option is right, a mean over layers."""
        total = batch.options_right.new_zeros(())
        if not len(batch.options_right):
            return total
        rows, places = batch.options.T
        for right, hidden in zip(self._heads.option_right, even, strict=True):
            scores = right(hidden[rows, places]).squeeze(-1).float()
            total = total + functional.binary_cross_entropy_with_logits(scores, batch.options_right)
        return total / len(even)


def _scores(
    queries: Any, keys: Any, layers: Sequence[Any], tokens: Any, visual: Any
) -> Iterator[Any]:
    """Yield, for each layer, how far tokens (N, 2) point at visual tokens: (N, V)."""
    rows, places = tokens.T
    for query_of, key_of, hidden in zip(queries, keys, layers, strict=True):
        query = query_of(hidden[rows, places])
        key = key_of(hidden[:, visual])[rows]
        yield (key @ query[..., None]).squeeze(-1).float() / _HEAD_WIDTH**0.5
