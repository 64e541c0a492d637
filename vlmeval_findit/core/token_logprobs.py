"""Logprobs of a reply's tokens, as ``--confidences`` records them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

_DECIMALS = 4

LEAST = -9999.0  # Stands for the log of 0, which JSON cannot hold (as in vLLM)


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """The tokens of a reply as stored: stripped, without its thought.

    Token i ends before character ``ends[i]``; one that ends within a character, or was stripped,
    shares its end with the one before. ``logprobs[i]`` is a natural logarithm under the model's own
    distribution (temperature 1, before grammar mask or penalty), rounded to 4 decimals.

    Raises:
        ValueError: lengths that differ, ends that go back, a logprob that is not finite.

    >>> TokenLogprobs.of([2, 5], [-0.00001, float("-inf")])
    TokenLogprobs(ends=(2, 5), logprobs=(0.0, -9999.0))
    """

    ends: tuple[int, ...]
    logprobs: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.ends) != len(self.logprobs):
            raise ValueError(f"{len(self.ends)} ends of tokens, {len(self.logprobs)} logarithms")
        if any(a > b for a, b in pairwise((0, *self.ends))):
            raise ValueError("ends of tokens that go back")
        if not all(map(isfinite, self.logprobs)):
            raise ValueError("a logarithm that is not finite")

    @classmethod
    def of(cls, ends: Iterable[int], logprobs: Iterable[float]) -> TokenLogprobs:
        """Round logprobs, with :data:`LEAST` for a probability of 0."""
        # Adding 0.0 turns -0.0 into 0.0.
        rounded = (round(max(one, LEAST), _DECIMALS) + 0.0 for one in logprobs)
        return cls(tuple(ends), tuple(rounded))

    def behind(self, begin: int) -> TokenLogprobs:
        """Return the tokens behind the first ``begin`` characters.

        >>> TokenLogprobs((2, 5), (-1.0, -2.0)).behind(3)
        TokenLogprobs(ends=(2,), logprobs=(-2.0,))
        """
        if not begin:
            return self
        left = [one for one in zip(self.ends, self.logprobs, strict=True) if one[0] > begin]
        return TokenLogprobs(tuple(end - begin for end, _ in left), tuple(one for _, one in left))

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a record; :func:`token_logprobs` reads them back."""
        return {"ends": list(self.ends), "logprobs": list(self.logprobs)}


def token_logprobs(value: object) -> TokenLogprobs | None:
    """Read a reply's tokens from a record; None if anything is invalid."""
    if not isinstance(value, dict):
        return None
    ends, logprobs = value.get("ends"), value.get("logprobs")
    if not isinstance(ends, list) or not isinstance(logprobs, list):
        return None
    whole = all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
    real = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in logprobs)
    if not whole or not real:
        return None
    try:
        return TokenLogprobs(tuple(ends), tuple(map(float, logprobs)))
    except (ValueError, OverflowError):
        return None
