"""Compare two runs for a page: metrics, error types, and the queries that each finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from ..core.influences import Estimate
from ..core.intervals import ALPHA, Difference, correct, difference
from ..core.metric import Metric
from ..runs.run_errors import error_estimate
from ..runs.run_statistics import StatisticsError, compare_hits, estimate, scores_by_index
from ..runs.scored_run import Run
from .pairs import MODELS, Pair, key_of


@dataclass(frozen=True)
class _Answers:
    """A run with values for its pairs, calculated once."""

    run: Run

    @cached_property
    def estimate(self) -> Estimate:
        return estimate(self.run)

    @cached_property
    def losses(self) -> Estimate | None:
        """Return the points of every error type; None if the run has no error types."""
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
    low, high, p-value] of each metric, None if missing; ``losses`` are the same for the points of
    each error type, their p-values corrected for the number of types; ``counts`` are numbers of
    queries: all, answered by both, with scores that ``differ``, and by the runs that find them.
    """
    place = {key_of(run): at for at, run in enumerate(runs)}

    # Pairs come dataset by dataset, so a few runs are needed again soon; all do not fit.
    @lru_cache(2 * MODELS)
    def of(at: int) -> _Answers:
        return _Answers(runs[at])

    sides = [(place[key_of(pair.left)], place[key_of(pair.right)]) for pair in pairs]
    return [
        {"dataset": pair.dataset, "left": left, "right": right}
        | _values(of(left), of(right), metrics)
        for pair, (left, right) in zip(pairs, sides, strict=True)
    ]


def opening_pair(pairs: Sequence[Mapping[str, Any]], runs: Sequence[Run]) -> int:
    """Return the place of the pair to open with, among those of :func:`pair_values`.

    It is the first pair of two models whose first metric differs significantly; else the pair with
    the most queries that differ.
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
            _metric(metric, left.estimate, right.estimate)
            for metric in metrics
            if {metric.value(left.run.sums), metric.value(right.run.sums)} != {None}
        ],
        "losses": _losses(left, right),
        "counts": {"queries": len(left.run.rows), **_counts(left.query_scores, right.query_scores)},
    }


def _metric(metric: Metric, left: Estimate, right: Estimate) -> list[Any]:
    known = None not in (left.value(metric.name), right.value(metric.name))
    test = difference(left, right, metric.name) if known else None
    return _difference(metric.title, metric.name, left, right, test)


def _losses(left: _Answers, right: _Answers) -> list[list[Any]]:
    """Compare the error types of both, as :func:`..runs.run_errors.compare_errors` does."""
    left_losses, right_losses = left.losses, right.losses
    if left_losses is None or right_losses is None:
        return []
    names = {type_.key: type_.name for type_ in left.run.benchmark.errors.error_types}
    keys = [key for key in names if left_losses.value(key) or right_losses.value(key)]
    tests = correct(difference(left_losses, right_losses, key) for key in keys)
    return [
        _difference(names[key], key, left_losses, right_losses, test)
        for key, test in zip(keys, tests, strict=True)
    ]


def _difference(
    title: str, metric: str, left: Estimate, right: Estimate, test: Difference | None
) -> list[Any]:
    value = low = high = p_value = None
    if test is not None:
        value, p_value = test.value, test.corrected
        if test.interval is not None:
            low, high = test.interval.low, test.interval.high
    numbers = (left.value(metric), right.value(metric), value, low, high)
    rounded = [None if number is None else round(number, 4) for number in numbers]
    return [title, *rounded, p_value]


def _counts(left: dict[int, float], right: dict[int, float]) -> dict[str, int]:
    queries = compare_hits(left, right)
    groups = ("both", "left", "right", "neither")
    counts = {name: len(getattr(queries, name)) for name in groups}
    return {**counts, "differ": queries.differ, "answered": sum(counts.values())}
