"""How 5 % hold where results are looked at again and again: races and learning curves."""

from __future__ import annotations

from collections.abc import Mapping
from math import pow, sqrt

from .intervals import ALPHA

# --- races: formats are dropped round by round ----------------------------------------------------

# How late chances are spent. The leader of a few queries is often a lucky one, whose lead looks
# surer than it is: spent in proportion (1), races of equal formats used up all of the 5 %.
_LATE = 1.5


def allowance(stage: int, stages: int, share: float, spent: float) -> float:
    """Return what may be spent on dropping formats after a round.

    >>> round(allowance(0, 2, 0.2, 0.0), 4), round(allowance(1, 2, 1.0, 0.02), 4)
    (0.0022, 0.03)
    """
    return ALPHA * (stage + pow(share, _LATE)) / stages - spent


def least_likely(chances: Mapping[str, float], allowed: float) -> list[str]:
    """Return the names of the lowest chances that add up to ``allowed`` at most.

    Of equal chances the last goes first.

    >>> least_likely({"a": 0.5, "b": 0.01, "c": 0.02, "d": 0.01}, allowed=0.03)
    ['d', 'b']
    """
    names = list(chances)
    names.reverse()
    names.sort(key=lambda name: chances[name])
    chosen = []
    for name in names:
        allowed -= chances[name]
        if allowed < 0:
            break
        chosen.append(name)
    return chosen


# --- learning curves: a table after every checkpoint ----------------------------------------------


def alpha_share(checkpoints: int) -> float:
    """Return which share of 5 % the table of so many checkpoints is tested at, from two on.

    With the shares of a training's tables 1 - 1 / sqrt(k) of the 5 % is spent by the k-th
    checkpoint. The first false claim of a table is about the best and the worst of k equally good
    checkpoints, and one of them is new with a chance of 2 / k: earlier tables, which are tested at
    higher levels, had all other pairs.

    >>> [round(alpha_share(checkpoints), 3) for checkpoints in (2, 3, 20)]
    [0.293, 0.195, 0.058]
    >>> round(sum(alpha_share(checkpoints) * 2 / checkpoints for checkpoints in range(2, 101)), 9)
    0.9
    """
    spent_now = 1 / sqrt(checkpoints - 1) - 1 / sqrt(checkpoints)
    return spent_now * checkpoints / 2
