"""Logits processors: see whether they are numbers, enforce a JSON schema, sample, and record
log-probabilities.

Each takes a step's ``input_ids`` (rows, tokens), which end with the last token, and its logits
(rows, vocabulary).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .grammar import ReplyGrammar, consume, mask_bytes, unpacked
from .loaded_model import Flaw


class NumberCheck:
    """Notes in which steps a row's logits are not numbers, or all equal, and changes none.

    It must come before processors that mask, and holds two truth values per row and step.
    """

    def __init__(self) -> None:
        self._steps: list[Any] = []
        self._equal: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        # NaN and infinity are the largest of a row; minus infinity is if nothing else is there.
        largest = scores.amax(dim=-1)
        self._steps.append(~largest.isfinite())
        self._equal.append(largest == scores.amin(dim=-1))
        return scores

    @property
    def ended(self) -> Any:
        """Rows whose last logits choose no token: whatever comes next is no answer."""
        return self._steps[-1] | self._equal[-1]

    def flaw(self, row: int, tokens: int) -> Flaw | None:
        """Return why any of a row's first ``tokens`` tokens was not chosen; None if all were."""
        if any(bool(step[row]) for step in self._steps[:tokens]):
            return Flaw.NOT_NUMBERS
        if any(bool(step[row]) for step in self._equal[:tokens]):
            return Flaw.ALL_EQUAL
        return None


class SchemaMask:
    """Masks all tokens with which a reply could not fit a schema.

    The masks are filled while a GPU computes the logits, and are unpacked there.
    """

    def __init__(self, grammar: ReplyGrammar) -> None:
        self._grammar = grammar
        self._matchers: list[Any] = []
        self._chosen: list[int] = []
        self._masks = torch.empty(0)

    def note(self, input_ids: Any) -> None:
        """Take the tokens that were chosen last; this is when the device has nothing to do."""
        self._chosen = input_ids[:, -1].tolist()

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        rows, width = scores.shape
        if not self._matchers:
            self._matchers = self._grammar.matchers(rows, width)
            shape = (rows, mask_bytes(width))
            self._masks = torch.empty(shape, dtype=torch.uint8, pin_memory=scores.is_cuda)
        else:
            for matcher, token in zip(self._matchers, self._chosen, strict=True):
                consume(matcher, token)
        masks = self._masks.numpy()
        self._grammar.fill(self._matchers, masks)
        if scores.device.type == "cpu":
            allowed = torch.from_numpy(unpacked(masks, width))
        else:
            # The next step fills them again: by then its tokens were waited for, and so this copy.
            allowed = unpacked_there(self._masks.to(scores.device, non_blocking=True), width)
        return torch.where(allowed, scores, float("-inf"))


def unpacked_there(masks: Any, width: int) -> Any:
    """Return masks as truth values, (rows, width), computed where they are.

    >>> unpacked_there(torch.tensor([[0b101, 0, 0, 0]], dtype=torch.uint8), 4)
    tensor([[ True, False,  True, False]])
    """
    bits = torch.arange(8, dtype=torch.uint8, device=masks.device)
    return (masks.unsqueeze(-1) >> bits & 1).bool().flatten(1)[:, :width]


class SeededSampler:
    """Samples each row from its whole distribution by its random numbers.

    The largest of logits / temperature plus Gumbel noise is a sample of their softmax (the Gumbel
    trick), so greedy decoding after it samples. A row's reply is the same in any batch. It must
    come last.
    """

    def __init__(self, temperature: float, seeds: Sequence[int | None]) -> None:
        self._temperature = temperature
        self._seeds = [int(torch.randint(2**31, ())) if s is None else s for s in seeds]
        self._generators: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return a step's logits with noise; -inf stays."""
        if not self._generators:
            device = scores.device
            self._generators = [torch.Generator(device).manual_seed(s) for s in self._seeds]
        drawn = torch.empty_like(scores, dtype=torch.float32)
        for row, generator in zip(drawn, self._generators, strict=True):
            row.exponential_(generator=generator)
        return scores.float() / self._temperature - drawn.log()


class LogprobRecorder:
    """Records the log-probabilities of chosen tokens, and changes no logits.

    A step's token is known only in the next one, so it holds the logits of one step and one number
    per row for earlier ones. It must come before processors that mask or penalise.
    """

    def __init__(self) -> None:
        self._last: Any = None
        self._known: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Record a step's 32-bit logits and return them."""
        self._note(input_ids[:, -1])
        # On a CPU half the time of logsumexp, and safe from masking in place.
        self._last = scores.log_softmax(dim=-1)
        return scores

    def _note(self, tokens: Any) -> None:
        if self._last is not None:
            self._known.append(self._last.gather(1, tokens[:, None])[:, 0])

    def logprobs_of(self, new: Any) -> list[list[float]]:
        """Return the log-probabilities of the new tokens (rows, steps); call once, at the end."""
        if len(self._known) < new.shape[1]:
            self._note(new[:, -1])
        self._last = None
        if not self._known:
            return [[] for _ in new]
        logprobs: list[list[float]] = torch.stack(self._known[: new.shape[1]], dim=1).tolist()
        return logprobs
