"""What reviews of random rows say of all rows.

Reviewed rows of an audit's list were chosen because models doubted them, so they say nothing of the
rest. Each random row stands for an equal part of the rows that are not on the list.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .student import LEVEL


@dataclass(frozen=True, slots=True)
class CountEstimate:
    """A number of rows, estimated, with its 95 % interval."""

    value: float
    low: int
    high: int


def count_wrong(listed_wrong: int, random_wrong: int, random: int, unlisted: int) -> CountEstimate:
    """Estimate how many labels of a table are wrong, with an exact interval.

    Wrong labels of listed rows are known; those of unlisted rows are estimated from the random rows
    among them. The ends are the numbers with which as few wrong random rows, or as many, have a
    chance of at least 2.5 %.

    >>> count_wrong(listed_wrong=60, random_wrong=4, random=100, unlisted=900)
    CountEstimate(value=96.0, low=71, high=146)
    >>> count_wrong(listed_wrong=60, random_wrong=0, random=100, unlisted=900)
    CountEstimate(value=60.0, low=60, high=90)

    Args:
        listed_wrong: reviewed rows of the list whose label is wrong.
        random_wrong: random rows whose label is wrong.
        random: reviewed random rows; at least one.
        unlisted: rows that they were drawn from.
    """
    # SciPy's distributions take half a second to import.
    from scipy.stats import hypergeom

    possible = np.arange(random_wrong, unlisted - (random - random_wrong) + 1)
    rest = (1 - LEVEL) / 2
    as_many = hypergeom.sf(random_wrong - 1, unlisted, possible, random)
    as_few = hypergeom.cdf(random_wrong, unlisted, possible, random)
    fitting = possible[(as_many >= rest) & (as_few >= rest)]
    return CountEstimate(
        value=listed_wrong + unlisted * random_wrong / random,
        low=listed_wrong + int(fitting.min()),
        high=listed_wrong + int(fitting.max()),
    )
