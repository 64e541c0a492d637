"""Compare two runs for a page: metrics, error types, and who finds which queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from ..core.estimate import Estimate
from ..core.metric import Metric
from ..core.statistics import ALPHA, Difference, correct, difference
from ..runs.run_errors import error_estimate
from ..runs.run_statistics import StatisticsError, estimate, found_queries, scores_by_index
from ..runs.scored_run import Run
from .pairs import MODELS, Pair, key_of


@dataclass(frozen=True)
class _Answers:
    """A run with what its pairs need, calculated once."""

    run: Run

    @cached_property
    def estimate(self) -> Estimate:
        return estimate(self.run)

    @cached_property
    def losses(self) -> Estimate | None:
        """Return the points of every error type; None where nothing says what was lost."""
        try:
            return error_estimate(self.run)
        except StatisticsError:
            return None

    @cached_property
    def query_scores(self) -> dict[int, float]:
        return scores_by_index(self.run)


def pair_values(
    pairs: Iterable[Pair], metrics: Sequence[Metric], runs: Sequence[Run]
) -> list[dict[str, Any]]:
    """Return the pairs for the page's script.

    ``left`` and ``right`` are places in ``runs``; ``metrics`` are [name, left, right, difference,
    low, high, p-value] of each metric, None for what there is not; ``losses`` are the same of the
    points that each error type took, their p-values corrected for the number of types; ``counts``
    are of queries: all, those that both answered, those of them that ``differ`` in their score, and
    by who found them.
    """
    place = {key_of(run): at for at, run in enumerate(runs)}

    # Pairs come column by column, so a few runs are wanted again soon; those of all do not fit.
    @lru_cache(2 * MODELS)
    def of(at: int) -> _Answers:
        return _Answers(runs[at])

    sides = [(place[key_of(pair.left)], place[key_of(pair.right)]) for pair in pairs]
    return [
        {"column": pair.column, "left": left, "right": right}
        | _values(of(left), of(right), metrics)
        for pair, (left, right) in zip(pairs, sides, strict=True)
    ]


def opening_pair(pairs: Sequence[Mapping[str, Any]], runs: Sequence[Run]) -> int:
    """Return the place of the pair to open with, of those that :func:`pair_values` returns.

    It is the first of two models whose first metric differs significantly; else the pair with the
    most queries that differ.
    """
    for place, pair in enumerate(pairs):
        models = {runs[pair[side]].model for side in ("left", "right")}
        p_values = [p for *_, p in pair["metrics"][:1] if p is not None]
        if len(models) == 2 and any(p < ALPHA for p in p_values):
            return place
    return max(range(len(pairs)), key=lambda at: pairs[at]["counts"]["differ"], default=0)


def _values(left: _Answers, right: _Answers, metrics: Sequence[Metric]) -> dict[str, Any]:
    return {
        "metrics": [
            _figure(metric, left.estimate, right.estimate)
            for metric in metrics
            if {metric.value(left.run.sums), metric.value(right.run.sums)} != {None}
        ],
        "losses": _losses(left, right),
        "counts": {"queries": len(left.run.rows), **_counts(left.query_scores, right.query_scores)},
    }


def _figure(metric: Metric, left: Estimate, right: Estimate) -> list[Any]:
    if None in (left.value(metric.name), right.value(metric.name)):
        return [*_sides(metric.title, metric.name, left, right), None, None, None, None]
    found = difference(left, right, metric.name)
    return _difference(metric.title, metric.name, left, right, found)


def _losses(left: _Answers, right: _Answers) -> list[list[Any]]:
    """Compare the error types that either has, as :func:`..runs.run_errors.compare_errors` does."""
    left_losses, right_losses = left.losses, right.losses
    if left_losses is None or right_losses is None:
        return []
    names = {one.key: one.name for one in left.run.benchmark.errors.error_types}
    keys = [key for key in names if left_losses.value(key) or right_losses.value(key)]
    tests = correct(difference(left_losses, right_losses, key) for key in keys)
    return [
        _difference(names[key], key, left_losses, right_losses, found)
        for key, found in zip(keys, tests, strict=True)
    ]


def _difference(
    title: str, metric: str, left: Estimate, right: Estimate, found: Difference
) -> list[Any]:
    low, high = (found.interval.low, found.interval.high) if found.interval else (None, None)
    numbers = map(_rounded, (found.value, low, high))
    return [*_sides(title, metric, left, right), *numbers, found.corrected]


def _sides(title: str, metric: str, left: Estimate, right: Estimate) -> list[Any]:
    return [title, _rounded(left.value(metric)), _rounded(right.value(metric))]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _counts(left: dict[int, float], right: dict[int, float]) -> dict[str, int]:
    found = found_queries(left, right)
    groups = ("both", "left", "right", "neither")
    counts = {name: len(getattr(found, name)) for name in groups}
    return {**counts, "differ": found.differ, "answered": sum(counts.values())}
