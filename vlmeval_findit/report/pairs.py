"""Two runs side by side: which pairs a page has, and in what they differ.

A pair is two runs of one column, so they were asked the same.  Of all that could be paired a page
has, in every column, the reported runs of all models and each model's other formats against its
reported one; and whatever ``--compare`` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from ..core.evidence import Evidence
from ..core.metric import Metric
from ..core.spelling import nearest
from ..core.statistics import difference, difference_interval
from ..leaderboard.board import Board
from ..leaderboard.formats import FormatError, wanted_formats
from ..runs.intervals import evidence
from ..runs.scored_run import Run

FOUND = 50.0
"""An answer whose figure is so many percent found what was asked: half of it, or more."""

MODELS = 20
"""Models of a board, the best, that are paired with each other."""

FLAG = "--compare"


class Side(NamedTuple):
    """One side of a pair: a model in a format; "" is the one that it is reported in."""

    model: str
    format: str


class PairError(ValueError):
    """Two that cannot be put side by side; the message says what is nearest."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of a column."""

    column: str
    left: Run
    right: Run


# --- what --compare names -------------------------------------------------------------------------


def sides_of(given: Sequence[str], boards: Sequence[Board]) -> tuple[Side, ...]:
    """The sides that ``MODEL``, ``MODEL=FORMAT`` or, of one model only, ``FORMAT`` name.

    Args:
        given: two, or none.
        boards: of the pages that are made; one of them must have both in a column.

    Raises:
        PairError: no run is called so, several models have the format, or no column has both.
    """
    runs = [one.run for board in boards for one in board.sweep]
    sides = tuple(_side_of(entry, runs) for entry in given)
    if sides and not any(first_pairs(board, sides) for board in boards):
        what = " ".join(given)
        raise PairError(f"{FLAG} {what}: no dataset has two runs of them that can be compared")
    return sides


def _side_of(entry: str, runs: Sequence[Run]) -> Side:
    models = sorted({run.model for run in runs})
    if entry in models:
        return Side(entry, "")
    try:
        ((model, written),) = wanted_formats([entry], runs, FLAG).items()
    except FormatError as error:
        if "=" in entry:
            raise PairError(str(error)) from None
        formats = {run.question.format for run in runs} - {""}
        near = nearest(entry, [*models, *sorted(formats)])
        raise PairError(f"{FLAG} {entry}: neither a model nor a format of one{near}") from None
    mine = sorted(
        {run.model for run in runs if model in ("", run.model) and run.question.format == written}
    )
    if len(mine) > 1:
        say = f"say whose it is: {mine[0]}={written}"
        raise PairError(f"{FLAG} {entry}: {len(mine)} models were run in it; {say}")
    return Side(mine[0], written)


# --- the pairs of a page --------------------------------------------------------------------------


def pairs_of(board: Board, sides: Sequence[Side] = ()) -> list[Pair]:
    """The pairs of a board, each once: those of ``sides``, then models, then formats."""
    met: dict[frozenset[Path], Pair] = {}
    for pair in (*first_pairs(board, sides), *_of_models(board), *_of_formats(board)):
        met.setdefault(frozenset((pair.left.path, pair.right.path)), pair)
    return list(met.values())


def first_pairs(board: Board, sides: Sequence[Side]) -> list[Pair]:
    """The pairs that ``sides`` name, one a column."""
    found = (
        (name, [_run_of(board, name, side) for side in sides])
        for name in (column.name for column in board.columns if sides)
    )
    return [
        Pair(name, left, right)
        for name, (left, right) in found
        if left is not None and right is not None and left.path != right.path
    ]


def _run_of(board: Board, column: str, side: Side) -> Run | None:
    if not side.format:
        cell = board.cells.get((side.model, column))
        return cell.run if cell else None
    there = next(one for one in board.columns if one.name == column).runs
    named = (run for run in there if (run.model, run.question.format) == side)
    return next(named, None)


def _of_models(board: Board) -> Iterator[Pair]:
    for column in board.columns:
        reported = (_run_of(board, column.name, Side(m, "")) for m in board.models[:MODELS])
        for left, right in combinations((run for run in reported if run is not None), 2):
            yield Pair(column.name, left, right)


def _of_formats(board: Board) -> Iterator[Pair]:
    for column in board.columns:
        for run in column.runs:
            reported = _run_of(board, column.name, Side(run.model, ""))
            if reported is not None and run.path != reported.path:
                yield Pair(column.name, reported, run)


def pairs_note(board: Board) -> str:
    """What is left out, as a sentence."""
    left = [f"models below the first {MODELS}"] if len(board.models) > MODELS else []
    several = any(len(column.runs) > len(board.models) for column in board.columns)
    if several and len(board.models) > 1:
        left.append("two models in formats that they are not reported in")
    return f"Not among the pairs: {', '.join(left)}; {FLAG} brings two of them." if left else ""


# --- in what they differ --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Answers:
    """A run with what its pairs read, calculated once."""

    run: Run

    @cached_property
    def evidence(self) -> Evidence:
        return evidence(self.run)

    @cached_property
    def goodness(self) -> Mapping[int, float]:
        """The goodness of every answer, by index; what failed is no answer."""
        of = self.run.benchmark.goodness
        return {row.index: round(of(row), 1) for row in self.run.rows if not row.failed}


def pair_values(
    pairs: Iterable[Pair], metrics: Sequence[Metric], runs: Sequence[Run]
) -> list[dict[str, Any]]:
    """The pairs for the page's script.

    ``left`` and ``right`` are places in ``runs``; ``figures`` are [name, left, right, difference,
    low, high, p-value], None for what there is not; ``counts`` are of queries: all, those that
    both answered, those of them that ``differ`` in their figure, and by who found them.
    """
    of = {run.path: _Answers(run) for run in runs}
    place = {run.path: at for at, run in enumerate(runs)}
    return [
        {
            "column": pair.column,
            "left": place[pair.left.path],
            "right": place[pair.right.path],
            **_values(of[pair.left.path], of[pair.right.path], metrics),
        }
        for pair in pairs
    ]


def _values(left: _Answers, right: _Answers, metrics: Sequence[Metric]) -> dict[str, Any]:
    return {
        "figures": [_figure(metric, left.evidence, right.evidence) for metric in metrics],
        "counts": {"queries": len(left.run.rows), **_counts(left.goodness, right.goodness)},
    }


def _figure(metric: Metric, left: Evidence, right: Evidence) -> list[Any]:
    figures = left.figure(metric.name), right.figure(metric.name)
    if None in figures:
        return [metric.title, *map(_rounded, figures), None, None, None, None]
    found = difference(left, right, metric.name)
    bounds = difference_interval(left, right, metric.name)
    low, high = (bounds.low, bounds.high) if bounds else (None, None)
    numbers = (*figures, found.value, low, high)
    return [metric.title, *map(_rounded, numbers), found.p_value]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _counts(left: Mapping[int, float], right: Mapping[int, float]) -> dict[str, int]:
    both = [(left[index], right[index]) for index in left.keys() & right.keys()]
    found = [(one >= FOUND, other >= FOUND) for one, other in both]
    return {
        "both": found.count((True, True)),
        "left": found.count((True, False)),
        "right": found.count((False, True)),
        "neither": found.count((False, False)),
        "differ": sum(one != other for one, other in both),
        "answered": len(both),
    }


def most_different(pair: Pair, most: int) -> list[int]:
    """The indices of the queries on which a pair differs most, at most so many."""
    left, right = _Answers(pair.left).goodness, _Answers(pair.right).goodness
    apart = {index: abs(left[index] - right[index]) for index in left if index in right}
    order = sorted((index for index in apart if apart[index]), key=lambda at: (-apart[at], at))
    return order[:most]
