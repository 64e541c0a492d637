"""Compare two runs for a page: metrics, error types, and the queries that each finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

from ..analysis import (
    ELSEWHERE,
    PairTest,
    StatisticsError,
    compare_hits,
    error_differences,
    error_estimate,
    estimate_run,
    paired_differences,
    scores_by_index,
    untested_metrics,
)
from ..core import printable
from ..leaderboard import Board, DatasetMean, difference_of
from ..protocol import Metric
from ..scoring import Run
from ..statistics import BestOf, Difference, Estimate, FamilyOfTests, paired_difference
from .pair_choice import MODELS, Pair, page_key
from .value_text import ends, rounded


class _Answers(NamedTuple):
    """A run with values for its pairs."""

    run: Run
    metrics: Estimate
    losses: Estimate | None  # Points of every error type; None if the run has no error types
    scores: dict[int, float]
    # Where its format was chosen: what models are compared by; None: not known
    is_chosen: bool
    elsewhere: Estimate | None
    failed: int  # Number of failed calls, of those in other formats, too


def pair_values(pairs: Iterable[Pair], board: Board, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the pairs for the page's script; every pair is tested as the board tests it.

    Where the format of a run was chosen, models are compared by their answers elsewhere: each
    metric has a row more. ``chosen`` are the names of the metrics that have no test for that
    reason.

    ``left`` and ``right`` are places in ``runs``; ``metrics`` are [name, left, right, difference,
    low, high, p-value, whether it is significant] of each metric, None if missing; ``untested`` are
    the names of those that are over different queries, so they have no test; ``family`` is the name
    of that of their p-values; ``losses`` are as the metrics for the points of each error type;
    ``counts`` are numbers of queries: all, answered by both, with scores that ``differ``, and by
    the runs that find them.
    """
    metrics = board.shown
    place = {page_key(run): at for at, run in enumerate(runs)}
    known = {page_key(answers.reported): answers for answers in board.elsewhere.values()}

    # Pairs come dataset by dataset, so a few runs are needed again soon; all do not fit.
    @lru_cache(2 * MODELS)
    def answers(at: int) -> _Answers:
        run = runs[at]
        try:
            losses = error_estimate(run)
        except StatisticsError:
            losses = None
        scored = estimate_run(run)
        held_out = known.get(page_key(run))
        if held_out is None:
            return _Answers(run, scored, losses, scores_by_index(run), False, scored, run.failed)
        return _Answers(
            run=run,
            metrics=scored,
            losses=losses,
            scores=scores_by_index(run),
            is_chosen=True,
            elsewhere=held_out.estimate(scored.metrics),
            failed=run.failed + held_out.failed,
        )

    choice_of = cache(board.choice)  # Pairs of a column share it
    values = []
    for pair in pairs:
        left = place[page_key(pair.left)]
        right = place[page_key(pair.right)]
        places = {"dataset": pair.dataset, "left": left, "right": right}
        both = answers(left), answers(right)
        test, family = _test_of(board, pair, choice_of)
        of_pair = _values(*both, metrics, test)
        if pair.left.model != pair.right.model:
            of_pair |= _elsewhere(both, of_pair["metrics"], metrics, test)
        values.append({"chosen": [], "family": family.name, **places, **of_pair})
    return values


def _test_of(
    board: Board, pair: Pair, choice_of: Callable[[str, str], BestOf]
) -> tuple[PairTest, FamilyOfTests]:
    """Return how the board tests the two runs, and what their p-values are corrected for.

    Two reported runs are two models of a column, or else two formats of a model. A pair of
    ``--compare`` may be neither: it is tested alone. ``choice_of`` is :meth:`.Board.choice`.
    """
    models = pair.left.model, pair.right.model
    if models[0] == models[1]:
        row = next(row for row in board.runs if row.run is pair.left)
        return row.choice.difference, row.choice.family
    reported = [board.run(model, pair.dataset) for model in models]
    if reported != [pair.left, pair.right]:
        return paired_difference, FamilyOfTests.PAIR

    def of_models(left: Estimate, right: Estimate, metric: str) -> Difference:
        return choice_of(pair.dataset, metric).difference(left, right, metric)

    return of_models, FamilyOfTests.MODELS


def _elsewhere(
    both: tuple[_Answers, _Answers],
    rows: Sequence[list[Any]],
    metrics: Sequence[Metric],
    test: PairTest,
) -> dict[str, Any]:
    """Return the rows of metrics with those of the answers elsewhere; nothing without any.

    The value in the chosen format stays, without its test.
    """
    if not any(each.is_chosen for each in both):
        return {}
    estimates = [each.elsewhere for each in both]
    failed = any(each.failed for each in both)
    counting_failures = both[0].run.benchmark.headline_counting_failures.name
    by_title = {metric.title: metric for metric in metrics}
    shown: list[list[Any]] = []
    for title, left, right, value, *_ in rows:
        metric = by_title[title]
        is_tested = not failed or metric.name == counting_failures
        shown.append(_row_elsewhere(title, metric, estimates, test if is_tested else None))
        shown.append([title, left, right, value, None, None, None, None])
    return {"metrics": shown, "chosen": list(by_title)}


def _row_elsewhere(
    title: str, metric: Metric, estimates: Sequence[Estimate | None], test: PairTest | None
) -> list[Any]:
    """Return the row of a metric of the answers elsewhere; without a test where it has none."""
    left, right = estimates
    values = [each.value(metric.name) if each is not None else None for each in estimates]
    difference = None
    if left is not None and right is not None and None not in values and test is not None:
        difference = test(left, right, metric.name)
    return [f"{title} {ELSEWHERE}", *rounded(*values), *_tested(difference)]


def mean_values(pairs: Iterable[Pair], board: Board) -> list[dict[str, Any]]:
    """Return the differences of two models over several datasets, as their board tests them.

    Each is of the names ``left`` and ``right``; ``rows`` are as ``metrics`` of :func:`pair_values`,
    of the metric that ranks (``metric``), for every mean of several datasets that both models have;
    ``over`` says of each row what the mean is over. A difference that is not known is None.
    """
    metric = board.metrics[0]
    means = _means_by_title(board)
    tested = cache(partial(board.tested_estimate, metrics=(metric,)))
    choice_of = cache(board.choice)  # Models of a column share it

    values = []
    for left, right in _reported_models(pairs, board):
        rows = []
        over = []
        for title, mean in means.items():
            entries = [board.entry(model, mean.name, metric.name) for model in (left, right)]
            ranked = [entry for entry in entries if entry is not None and entry.rank is not None]
            if len(ranked) < 2:
                continue
            apart = ranked[0].tested - ranked[1].tested
            estimates = tested(left, mean.datasets), tested(right, mean.datasets)
            difference = None
            if None not in estimates:
                choice = choice_of(mean.name, metric.name)
                difference = difference_of(choice, apart, *estimates, metric.name)
            numbers = rounded(ranked[0].tested, ranked[1].tested)
            rows.append([title, *numbers, *_tested(difference)])
            over.append(f"average over {len(mean.datasets)} datasets ({mean.name})")
        if rows:
            names = {"left": printable(left), "right": printable(right)}
            title = board.headline.title
            values.append({**names, "metric": title, "rows": rows, "over": over})
    return values


def _means_by_title(board: Board) -> dict[str, DatasetMean]:
    """Return the means over several datasets; of two over the same ones, the first."""
    by_datasets: dict[tuple[str, ...], DatasetMean] = {}
    for mean in board.means:
        if len(mean.datasets) > 1:
            by_datasets.setdefault(mean.datasets, mean)
    title = board.headline.title
    return {
        f"{title}, {mean.name} (mean of {len(mean.datasets)})": mean
        for mean in by_datasets.values()
    }


def _reported_models(pairs: Iterable[Pair], board: Board) -> list[tuple[str, str]]:
    """Return the models of pairs of two models in their reported formats, each two once."""
    models: dict[frozenset[str], tuple[str, str]] = {}
    for pair in pairs:
        named = pair.left.model, pair.right.model
        reported = [board.run(model, pair.dataset) for model in named]
        if named[0] != named[1] and reported == [pair.left, pair.right]:
            models.setdefault(frozenset(named), named)
    return list(models.values())


def opening_pair(pairs: Sequence[Mapping[str, Any]], runs: Sequence[Run]) -> int:
    """Return the place of the pair to open with, among those of :func:`pair_values`.

    It is the first pair of two models, the best two as they are reported; else the pair with the
    most queries that differ.
    """
    for place, pair in enumerate(pairs):
        if runs[pair["left"]].model != runs[pair["right"]].model:
            return place
    return max(range(len(pairs)), key=lambda at: pairs[at]["counts"]["differ"], default=0)


def _values(
    left: _Answers, right: _Answers, metrics: Sequence[Metric], test: PairTest
) -> dict[str, Any]:
    rows = []
    runs = (left.run, right.run)
    both = (left.metrics, right.metrics)
    differences = paired_differences(runs, both, test)
    untested = untested_metrics(*runs)
    for metric in metrics:
        if {run.value(metric) for run in runs} != {None}:
            difference = differences.get(metric.name)
            rows.append(_difference(metric.title, metric.name, *both, difference))
    losses = []
    if left.losses is not None and right.losses is not None:
        both = left.losses, right.losses
        names = {each.key: each.name for each in left.run.benchmark.errors.error_types}
        for key, difference in error_differences(*both).items():
            losses.append(_difference(names[key], key, *both, difference))
    queries = compare_hits(left.scores, right.scores)
    groups = ("both", "left", "right", "neither")
    counts = {name: len(getattr(queries, name)) for name in groups}
    whole = {"queries": len(left.run.rows), "answered": sum(counts.values())}
    return {
        "metrics": rows,
        "untested": [metric.title for metric in metrics if metric.name in untested],
        "losses": losses,
        "counts": {**whole, **counts, "differ": queries.differ},
    }


def _difference(
    title: str, metric: str, left: Estimate, right: Estimate, test: Difference | None
) -> list[Any]:
    return [title, *rounded(left.value(metric), right.value(metric)), *_tested(test)]


def _tested(test: Difference | None) -> list[Any]:
    """Return difference, its interval, p-value, whether it is significant; None if missing.

    An interval that says nothing is missing.
    """
    if test is None:
        return [None] * 5
    interval = None if test.says_nothing else test.interval
    return [*rounded(test.value), *ends(interval), test.corrected, test.significant]
