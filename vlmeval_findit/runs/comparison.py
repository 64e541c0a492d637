"""Two runs over the same rows: paired tests of every metric, and which queries each one finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.statistics import Difference, difference
from .intervals import StatisticsError, evidence
from .scored_run import Run

FOUND = 50.0  # Query score, in percent, from which on a query counts as found: half of what it asks


@dataclass(frozen=True, slots=True)
class FoundQueries:
    """Indices of the queries that both runs answered, by who finds them."""

    both: tuple[int, ...]
    left: tuple[int, ...]  # found by the first run only
    right: tuple[int, ...]  # found by the second run only
    neither: tuple[int, ...]
    differ: int  # how many have another query score in each run


def compare(run: Run, other: Run) -> dict[str, Difference]:
    """Subtract the metrics of ``other`` from those of ``run``, two models or two formats of one.

    A metric that one of them lacks is left out.

    Raises:
        StatisticsError: the runs have other rows, or none, or were scored by something else.
    """
    check_comparable(run, other)
    ours, theirs = evidence(run), evidence(other)
    return {
        metric.name: difference(ours, theirs, metric.name)
        for metric in ours.metrics
        if None not in (ours.figure(metric.name), theirs.figure(metric.name))
    }


def check_comparable(run: Run, other: Run) -> None:
    """Refuse to pair runs of which an image's answers cannot be held against each other.

    Raises:
        StatisticsError: the runs have other rows, or were scored by something else.
    """
    ours, theirs = _images(run), _images(other)
    if run.provenance.rows != other.provenance.rows or ours != theirs:
        raise StatisticsError(
            f"{other.path} has {len(other.provenance.rows)} rows of {len(theirs)} pictures, "
            f"{run.path} has {len(run.provenance.rows)} of {len(ours)}: "
            "only runs over the same rows can be compared"
        )
    if run.provenance.scored_under != other.provenance.scored_under:
        raise StatisticsError(
            f"{other.path} was scored by {other.provenance.scorer}, {run.path} by "
            f"{run.provenance.scorer}: score both again by one of them"
        )


def _images(run: Run) -> set[tuple[str, str]]:
    return {(run.question.images, row.source) for row in run.rows}


def query_scores(run: Run) -> dict[int, float]:
    """Return the query score of every answer by its index, in percent; a failed call has none."""
    return {
        row.index: round(score, 1)
        for row, score in zip(run.rows, run.query_scores, strict=True)
        if not row.failed
    }


def found_queries(left: dict[int, float], right: dict[int, float]) -> FoundQueries:
    """Tell who finds which queries, from the query scores of two runs.

    >>> found = found_queries({1: 100.0, 2: 60.0, 3: 0.0}, {1: 50.0, 2: 0.0, 4: 100.0})
    >>> found.both, found.left, found.right, found.neither, found.differ
    ((1,), (2,), (), (), 2)
    """
    by: dict[tuple[bool, bool], list[int]] = {}
    shared = sorted(left.keys() & right.keys())
    for index in shared:
        by.setdefault((left[index] >= FOUND, right[index] >= FOUND), []).append(index)
    return FoundQueries(
        both=tuple(by.get((True, True), ())),
        left=tuple(by.get((True, False), ())),
        right=tuple(by.get((False, True), ())),
        neither=tuple(by.get((False, False), ())),
        differ=sum(left[index] != right[index] for index in shared),
    )


def pair_runs(left: Sequence[Run], right: Sequence[Run]) -> Iterator[tuple[Run, Run]]:
    """Pair two runs, or two sets of runs by their dataset, whatever the format.

    Raises:
        ValueError: there is no pair, or a set has several runs of a dataset.
    """
    if len(left) == len(right) == 1:
        yield left[0], right[0]
        return
    ours, theirs = _by_dataset(left), _by_dataset(right)
    shared = [key for key in ours if key in theirs]
    if not shared:
        raise ValueError(
            f"no dataset of {left[0].path.parent} is in {right[0].path.parent}: name two runs over "
            "the same dataset"
        )
    for key in shared:
        yield ours[key], theirs[key]


def _by_dataset(runs: Sequence[Run]) -> dict[tuple[str, str], Run]:
    found: dict[tuple[str, str], Run] = {}
    for run in runs:
        key = run.benchmark.name, run.question.column
        if key in found:
            raise ValueError(
                f"{found[key].path} and {run.path} are both of {run.question.column}: "
                "name the file of one"
            )
        found[key] = run
    return found
