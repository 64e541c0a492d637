"""Logits processors: see whether they are numbers, enforce a JSON schema, sample, and record
log-probabilities.

Each takes a step's ``input_ids`` (rows, tokens), which end with the last token, and its logits
(rows, vocabulary).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from .grammar import ReplyGrammar, consume
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

    ``prompt`` is the prompt's length in tokens.
    """

    def __init__(self, grammar: ReplyGrammar, prompt: int) -> None:
        self._grammar = grammar
        self._prompt = prompt
        self._matchers: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        rows, width = scores.shape
        if not self._matchers:
            self._matchers = self._grammar.matchers(rows, width)
        if input_ids.shape[1] > self._prompt:
            for matcher, token in zip(self._matchers, input_ids[:, -1].tolist(), strict=True):
                consume(matcher, token)
        allowed = np.stack([self._grammar.allowed(each, width) for each in self._matchers])
        return scores.masked_fill(torch.from_numpy(~allowed).to(scores.device), float("-inf"))


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
