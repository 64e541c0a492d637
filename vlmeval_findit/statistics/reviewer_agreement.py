"""Agreement of two reviewers, beyond chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def cohens_kappa(one: Sequence[str], other: Sequence[str]) -> float | None:
    """Compute Cohen's kappa of two reviewers' verdicts on the same rows, in the same order.

    1 is full agreement, 0 that of chance. None without rows, or where both gave one same verdict to
    every row: chance alone agrees then.

    >>> round(cohens_kappa(["label", "label", "model", "model"], ["label", "model"] * 2), 2)
    0.0
    """
    rows = len(one)
    agreed = sum(a == b for a, b in zip(one, other, strict=True))
    times = Counter(other)
    by_chance = sum(count * times[verdict] for verdict, count in Counter(one).items())
    if by_chance == rows**2:
        return None
    return (rows * agreed - by_chance) / (rows**2 - by_chance)
