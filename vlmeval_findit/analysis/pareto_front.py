"""The Pareto front of score and cost: what no other point beats."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol import Better
from ..scoring import Run

_DIGITS = 12  # Equal values must not be told apart by their last bits


def counted_score(run: Run) -> float | None:
    """Return the headline of a run with failed calls as misses; None: it has no value.

    A failed call costs little: over answered calls alone, a model that fails on the hard images
    would be both good and cheap.
    """
    return run.value(run.benchmark.headline_counting_failures)


def pareto_front(
    scores: Sequence[float | None],
    costs: Sequence[float | None],
    better: Better = Better.HIGHER,
) -> list[int]:
    """Return the places of the points that no other point beats, the cheapest first.

    A point beats another that is no better and no cheaper, unless both are equal in score and cost:
    of equal scores the cheapest stays, of equal costs the best, and equal points stay together.

    Args:
        scores: a score for each point; one without a score (None) is not on the front.
        costs: a cost for each point, in any unit; one whose cost is not known (None) is not on the
            front, and beats none.
        better: which scores are better.

    Raises:
        ValueError: another number of costs than of scores.

    >>> pareto_front([90.0, 90.0, 80.0, 70.0], [5.0, 3.0, None, 1.0])
    [3, 1]
    >>> pareto_front([0.5, 0.9], [1.0, 2.0], Better.LOWER)
    [0]
    """
    points = []
    for at, (score, cost) in enumerate(zip(scores, costs, strict=True)):
        if score is not None and cost is not None:
            points.append((_rounded(cost), better.order(_rounded(score)), at))
    front: list[int] = []
    last: tuple[float, float] | None = None
    # The cheapest first, of equal costs the best: who follows must be better than all before.
    for cost, loss, at in sorted(points):
        if last is None or loss < last[1] or (cost, loss) == last:
            front.append(at)
            last = (cost, loss)
    return front


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
