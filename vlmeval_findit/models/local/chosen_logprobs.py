"""How probable every chosen token was, found out while a model generates."""

from __future__ import annotations

from typing import Any

import torch


class ChosenLogprobs:
    """A processor of logits that changes none and notes the log-probabilities of what is chosen.

    It sees the logits of a step before the token of it is known, so it holds on to those of one
    step, and to one number a row of every step before: memory does not grow with the vocabulary
    times the steps.  It must come before processors that mask or penalise.
    """

    def __init__(self) -> None:
        self._last: Any = None
        self._known: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Look at the logits (rows, vocabulary) of a step, in 32 bits; they come back as they are.

        ``input_ids`` (rows, tokens) end with the token that was chosen in the step before.
        """
        self._note(input_ids[:, -1])
        # On a CPU this takes half of the time of logsumexp; and who masks in place masks not this.
        self._last = scores.log_softmax(dim=-1)
        return scores

    def _note(self, tokens: Any) -> None:
        if self._last is not None:
            self._known.append(self._last.gather(1, tokens[:, None])[:, 0])

    def of(self, new: Any) -> list[list[float]]:
        """The log-probabilities of the new tokens (rows, steps), once, after the last step."""
        if len(self._known) < new.shape[1]:
            self._note(new[:, -1])
        self._last = None
        if not self._known:
            return [[] for _ in new]
        found: list[list[float]] = torch.stack(self._known[: new.shape[1]], dim=1).tolist()
        return found
