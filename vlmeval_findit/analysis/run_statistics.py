"""Intervals of scored runs, and paired comparisons of runs that showed the same images.

:mod:`..statistics.intervals` has the maths. :mod:`.comparable_pairs` says which runs are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import compress

from ..protocol import Metric, failed_calls, indices
from ..scoring import Run
from ..statistics import (
    BestOf,
    Difference,
    Estimate,
    Interval,
    clustered_sums,
    estimate_all_rows,
    estimate_metrics,
    mean_of_estimates,
    metric_intervals,
    paired_difference,
)
from ..storage import read_predictions
from .comparable_pairs import StatisticsError, check_comparable

HIT_SCORE = 50.0  # Query score, in percent, from which a query counts as a hit


def estimate_run(run: Run, metrics: Sequence[Metric] = ()) -> Estimate:
    """Estimate metrics of a run that has rows (default: all), with each image's influence."""
    if not run.rows:
        raise StatisticsError(f"{run.path}: the run has no rows, so it has no intervals")
    scored = estimate_metrics(
        metrics or run.benchmark.all_metrics, clustered_sums(run.rows, run.variant.images)
    )
    return estimate_all_rows(scored, run.sums, run.random) if run.random else scored


def run_intervals(run: Run) -> dict[str, Interval | None]:
    """Return the 95 % interval of every metric of a run; None where too few images count."""
    return metric_intervals(estimate_run(run))


# --- two runs over the same rows ------------------------------------------------------------------


class SameAnswers(Enum):
    """What two runs share where all of their answers are equal."""

    RUN = "A and B are the same run: every reply is equal"
    FILE = "A and B are one file of answers, scored in two ways: only the scoring differs"
    REPLIES = "A and B are two runs, and every reply is equal"


def is_same_run(run: Run, other: Run) -> bool:
    """Return whether two runs are one, perhaps under two paths: a link and a copy are.

    One file of answers scored in two spaces, or with reviews, is two runs.
    """
    return _is_one_file(run, other) and run.model == other.model and run.sums == other.sums


def _is_one_file(run: Run, other: Run) -> bool:
    """Return whether two runs are scores of one file of answers, perhaps under two paths."""
    its, others = run.provenance, other.provenance
    if (its.model, run.variant) != (others.model, other.variant):
        return False
    return its.predictions_sha256 == others.predictions_sha256


def same_answers(run: Run, other: Run) -> SameAnswers | None:
    """Return whether two runs are one, or have equal replies to the same rows; None: neither.

    The replies are read.
    """
    if run.provenance.rows != other.provenance.rows:
        return None
    if run.variant.board_dataset != other.variant.board_dataset:
        return None
    if is_same_run(run, other):
        return SameAnswers.RUN
    if _is_one_file(run, other):
        return SameAnswers.FILE
    replies = _replies(run)
    return SameAnswers.REPLIES if replies and replies == _replies(other) else None


def _replies(run: Run) -> dict[int, str]:
    """Return the replies of a run by row; none where their file is gone, or a call failed."""
    if run.failed or not run.path.is_file():
        return {}
    return {reply.index: reply.text for reply in read_predictions(run.path)}


def compare_runs(run: Run, other: Run, choice: BestOf | None = None) -> dict[str, Difference]:
    """Subtract the metrics of ``other`` from those of ``run``: another model or another format.

    A metric that either lacks is left out. A run minus itself is 0, and no test is made.
    ``choice``: of how many values they are two (None: the pair is tested alone).

    Raises:
        StatisticsError: the runs have other rows or images, or none, or another scorer.
    """
    check_comparable(run, other)
    estimates = estimate_run(run), estimate_run(other)
    if is_same_run(run, other):
        names = [metric.name for metric in estimates[0].metrics]
        known = [name for name in names if estimates[0].value(name) is not None]
        return {name: Difference.untested(0.0) for name in known}
    test = choice.difference if choice else paired_difference
    return paired_differences((run, other), estimates, test)


# Subtracts the second value from the first, by the name of a metric
PairTest = Callable[[Estimate, Estimate, str], Difference]


def paired_differences(
    runs: tuple[Run, Run], estimates: tuple[Estimate, Estimate], test: PairTest
) -> dict[str, Difference]:
    """Subtract the metrics of the second run from the first's; a metric that either lacks is out.

    Failed calls are misses in ``headline_counting_failures`` only. Every other metric is over
    answered calls: where runs answered different queries, it has neither interval nor test.
    """
    left, right = estimates
    untested = untested_metrics(*runs)
    differences = {}
    for metric in left.metrics:
        values = left.value(metric.name), right.value(metric.name)
        if values[0] is None or values[1] is None:
            continue
        if metric.name in untested:
            differences[metric.name] = Difference.untested(values[0] - values[1])
        else:
            differences[metric.name] = test(left, right, metric.name)
    return differences


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The headline of two models, averaged over datasets; failed calls count as misses."""

    datasets: tuple[str, ...]
    values: tuple[float, float]
    difference: Difference
    failed: tuple[int, int]  # Numbers of failed calls


def compare_means(
    pairs: Sequence[tuple[Run, Run]], choice: BestOf | None = None
) -> MeanDifference | None:
    """Subtract the mean of the second runs from the first's, as a leaderboard has them.

    It is over the labelled datasets, or over all if all have reviews. None of a single dataset, and
    where a run has no value.

    Args:
        pairs: of two models on datasets of one benchmark, as :func:`compare_runs` takes them.
        choice: as of :func:`compare_runs`.
    """
    labelled = [pair for pair in pairs if pair[0].provenance.reviews is None] or pairs
    if len(labelled) < 2:
        return None
    metric = labelled[0][0].benchmark.headline_counting_failures
    sides = list(zip(*labelled, strict=True))
    left, right = (
        mean_of_estimates([estimate_run(run, (metric,)) for run in side]) for side in sides
    )
    values = left.value(metric.name), right.value(metric.name)
    if values[0] is None or values[1] is None:
        return None
    test = Difference.untested(0.0)
    if not all(is_same_run(*pair) for pair in labelled):
        subtract = choice.difference if choice else paired_difference
        test = subtract(left, right, metric.name)
    failed = [sum(run.failed for run in side) for side in sides]
    return MeanDifference(
        datasets=tuple(run.board_dataset for run in sides[0]),
        values=(values[0], values[1]),
        difference=test,
        failed=(failed[0], failed[1]),
    )


def untested_metrics(run: Run, other: Run) -> frozenset[str]:
    """Return the metrics that two runs over the same rows have over different queries.

    These are the metrics over answered calls, where the failed calls of the two differ.
    """
    if _failed_queries(run) == _failed_queries(other):
        return frozenset()
    names = {metric.name for metric in run.benchmark.all_metrics}
    return frozenset(names - {run.benchmark.headline_counting_failures.name})


def _failed_queries(run: Run) -> set[int]:
    return set(compress(indices(run.rows), failed_calls(run.rows)))


@dataclass(frozen=True, slots=True)
class HitGroups:
    """Indices of the queries that both runs answered, by which run hits them."""

    both: tuple[int, ...]
    left: tuple[int, ...]  # Only the first run
    right: tuple[int, ...]  # Only the second run
    neither: tuple[int, ...]
    differ: int  # Number of queries whose scores differ


def scores_by_index(run: Run) -> dict[int, float]:
    """Return the query score of every answer by its index, in percent; a failed call has none."""
    rows = zip(indices(run.rows), failed_calls(run.rows), run.query_scores, strict=True)
    # Not fewer digits: 49.96 is no hit
    return {index: round(score, 9) for index, failed, score in rows if not failed}


def compare_hits(left: dict[int, float], right: dict[int, float]) -> HitGroups:
    """Sort the queries of two runs by which run hits them, given their query scores.

    >>> queries = compare_hits({1: 100.0, 2: 60.0, 3: 0.0}, {1: 50.0, 2: 0.0, 4: 100.0})
    >>> queries.both, queries.left, queries.right, queries.neither, queries.differ
    ((1,), (2,), (), (), 2)
    """
    shared = sorted(left.keys() & right.keys())

    def group(by_left: bool, by_right: bool) -> tuple[int, ...]:
        return tuple(
            index
            for index in shared
            if (left[index] >= HIT_SCORE, right[index] >= HIT_SCORE) == (by_left, by_right)
        )

    return HitGroups(
        both=group(True, True),
        left=group(True, False),
        right=group(False, True),
        neither=group(False, False),
        differ=sum(left[index] != right[index] for index in shared),
    )


def pair_runs(left: Sequence[Run], right: Sequence[Run]) -> Iterator[tuple[Run, Run]]:
    """Pair two runs, or two sets of runs by their dataset, whatever the format.

    Raises ValueError if there is no pair, or a set has several runs of a dataset.
    """
    if len(left) == len(right) == 1:
        yield left[0], right[0]
        return
    by_left, by_right = _by_dataset(left), _by_dataset(right)
    shared = [key for key in by_left if key in by_right]
    if not shared:
        raise ValueError(
            f"no dataset of {left[0].path.parent} is in {right[0].path.parent}: name two runs over "
            "the same dataset"
        )
    for key in shared:
        yield by_left[key], by_right[key]


def _by_dataset(runs: Sequence[Run]) -> dict[tuple[str, str], Run]:
    runs_by_key: dict[tuple[str, str], Run] = {}
    for run in runs:
        key = run.benchmark.name, run.board_dataset
        if key in runs_by_key:
            folder = run.path.parent
            raise ValueError(
                f"{runs_by_key[key].path} and {run.path} are both of {run.board_dataset}: "
                f"name the file of a single run, or its format: {folder}={run.variant.format}"
            )
        runs_by_key[key] = run
    return runs_by_key
