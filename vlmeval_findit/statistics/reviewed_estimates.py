"""What reviews of random rows say of all rows, and how far two reviewers agree.

Reviewed rows of an audit's list were chosen because models doubted them, so they say nothing of the
rest. Each random row stands for an equal part of the rows that are not on the list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..protocol import Metric, SumName, add_up, weighted
from .influences import Estimate, Hits
from .share_intervals import CONFIDENCE_LEVEL, SampledChanges


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
    rest = (1 - CONFIDENCE_LEVEL) / 2
    as_many = hypergeom.sf(random_wrong - 1, unlisted, possible, random)
    as_few = hypergeom.cdf(random_wrong, unlisted, possible, random)
    fitting = possible[(as_many >= rest) & (as_few >= rest)]
    return CountEstimate(
        value=listed_wrong + unlisted * random_wrong / random,
        low=listed_wrong + int(fitting.min()),
        high=listed_wrong + int(fitting.max()),
    )


# --- values ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RandomRows:
    """Reviewed random rows of a run, and how many rows they stand for."""

    # Of each row: its sums as reviewed, minus those as labelled; an excluded row loses all
    changes: tuple[Mapping[SumName, float], ...]
    unlisted: int  # Rows that they were drawn from
    rows: int  # Of the run

    @property
    def others(self) -> float:
        """The number of further rows that each random row stands for."""
        return self.unlisted / len(self.changes) - 1


def sums_of_all_rows(
    as_reviewed: Mapping[SumName, float], random: RandomRows
) -> dict[SumName, float]:
    """Return the sums of all rows, were unlisted rows reviewed like the random rows among them.

    >>> random = RandomRows(({"hits": 1}, {}, {}, {}), unlisted=40, rows=100)
    >>> sums_of_all_rows({"hits": 70, "asked": 100}, random)
    {'hits': 79.0, 'asked': 100}
    """
    changed = add_up(random.changes)
    return add_up([as_reviewed, {key: random.others * total for key, total in changed.items()}])


def value_of_all_rows(metric: Metric, sums: Mapping[SumName, float]) -> float | None:
    """Return a metric by :func:`sums_of_all_rows`: a share is at most 100 %.

    Few random rows may say that there are more hits than rows.
    """
    value = metric.value(sums)
    return min(max(value, 0.0), 100.0) if value is not None and metric.share else value


def estimate_all_rows(
    as_reviewed: Estimate, sums: Mapping[SumName, float], random: RandomRows
) -> Estimate:
    """Correct an estimate by what random rows changed, and carry their sampling.

    Args:
        as_reviewed: each row as it was scored, random rows once.
        sums: those of :func:`sums_of_all_rows`.
        random: the random rows.
    """
    change = np.zeros((len(random.changes), len(as_reviewed.metrics)))
    for at, changed in enumerate(random.changes):
        if any(changed.values()):
            change[at] = [_derivative(metric, sums, changed) for metric in as_reviewed.metrics]
    values = [value_of_all_rows(metric, sums) for metric in as_reviewed.metrics]
    return replace(
        as_reviewed,
        values=np.array([np.nan if value is None else value / 100 for value in values]),
        changes=SampledChanges(random.unlisted * change, random.unlisted, random.rows),
        hits=_hits_of_all_rows(as_reviewed, sums),
    )


def _hits_of_all_rows(as_reviewed: Estimate, sums: Mapping[SumName, float]) -> Hits | None:
    """Correct the shares of hits like the values; those that metrics do not name stay."""
    if as_reviewed.hits is None:
        return None
    share = as_reviewed.hits.share.copy()
    for at, metric in enumerate(as_reviewed.metrics):
        if metric.hits is not None:
            value = value_of_all_rows(metric.of_hits(metric.hits), sums)
            share[at] = np.nan if value is None else value / 100
    return replace(as_reviewed.hits, share=share)


def _derivative(
    metric: Metric, sums: Mapping[SumName, float], changed: Mapping[SumName, float]
) -> float:
    """Return by how much a small change of sums changes a metric, in hundredths."""
    changes = []
    for ratio in metric.ratios(sums):
        whole = weighted(sums, ratio.whole)
        if whole:
            value = weighted(sums, ratio.part) / whole
            moved = weighted(changed, ratio.part) - value * weighted(changed, ratio.whole)
            changes.append(metric.scale * moved / whole / 100)
    return float(np.mean(changes)) if changes else 0.0


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
