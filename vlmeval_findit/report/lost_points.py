"""Divide lost points among error types: a bar for each model, dataset and average."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.error_analysis import ErrorType
from ..core.formatting import printable
from ..core.influences import Estimate, mean
from ..core.intervals import metric_intervals
from ..core.metric import Better
from ..leaderboard.board import Board, DatasetMean
from ..runs.run_errors import ErrorCost, error_estimate, errors_of
from ..runs.run_statistics import StatisticsError
from ..runs.scored_run import Run

MODELS = 100
"""Most models with bars: the first of a board."""


@dataclass(frozen=True, slots=True)
class LossBar:
    """A model on a dataset or an average: its score, and the costs of the rest to 100."""

    model: str
    where: str
    is_average: bool
    format: str  # Of its runs; "" if they have several
    score: float
    segments: tuple[ErrorCost, ...]  # Of the error types that occur


@dataclass(frozen=True, slots=True)
class Losses:
    """All bars of a page, averages first."""

    score: str  # Name of the score that lost the points
    bars: tuple[LossBar, ...]
    lacking: tuple[str, ...]  # Reasons why runs have no bar, as sentences

    def values(self, error_types: Sequence[ErrorType]) -> dict[str, Any]:
        """Return the bars for the page's script.

        A bar is [model, where, is average, format, score, segments], a segment [place of its error
        type among ``error_types``, points, events, low, high]; low and high are None without an
        interval.
        """
        return {"score": self.score, "bars": [_values(bar, error_types) for bar in self.bars]}


def _values(bar: LossBar, error_types: Sequence[ErrorType]) -> list[Any]:
    segments = []
    for cost in bar.segments:
        bounds = cost.interval
        low, high = (round(bounds.low, 4), round(bounds.high, 4)) if bounds else (None, None)
        place = error_types.index(cost.error_type)
        segments.append([place, round(cost.points, 4), round(cost.events, 2), low, high])
    name = printable(bar.model)
    return [name, bar.where, bar.is_average, bar.format, round(bar.score, 4), segments]


def losses_of(board: Board) -> Losses:
    """Return the bars of a board: of its averages over several datasets, then of its datasets.

    Only its first :data:`MODELS` models have bars.
    """
    lacking: list[str] = []
    costs: dict[tuple[str, str], Sequence[ErrorCost]] = {}
    models = {*board.models[:MODELS]}
    for (model, name), cell in board.cells.items():
        if model in models and cell.run is not None:
            try:
                costs[model, name] = errors_of(cell.run)
            except StatisticsError as error:
                lacking.append(f"{model}, {name}: {error}")
    bars = (*_averages(board, costs), *_datasets(board, costs))
    score = board.benchmark.errors.score
    return Losses(
        score=score.name if score.better is Better.HIGHER else f"100 − {score.name}",
        bars=bars,
        lacking=tuple(lacking),
    )


Costs = dict[tuple[str, str], Sequence[ErrorCost]]


def _datasets(board: Board, costs: Costs) -> Iterator[LossBar]:
    for dataset in board.datasets:
        for model in board.models:
            if (model, dataset.name) in costs:
                run = _run(board, model, dataset.name)
                yield _bar(model, dataset.name, False, [run], costs[model, dataset.name])


def _averages(board: Board, costs: Costs) -> Iterator[LossBar]:
    """Yield the averages over several datasets, each set of datasets once."""
    first: dict[tuple[str, ...], DatasetMean] = {}
    for average in board.means:
        if len(average.datasets) > 1:
            first.setdefault(average.datasets, average)
    for average in first.values():
        for model in board.models:
            places = [(model, name) for name in average.datasets]
            if all(place in costs for place in places):
                runs = [_run(board, *place) for place in places]
                over = mean([error_estimate(run) for run in runs])
                losses = _mean(over, [costs[place] for place in places])
                yield _bar(model, average.name, True, runs, losses)


def _run(board: Board, model: str, dataset: str) -> Run:
    run = board.cells[model, dataset].run
    assert run is not None
    return run


def _mean(over: Estimate, parts: Sequence[Sequence[ErrorCost]]) -> list[ErrorCost]:
    """Average points over datasets, as their scores are; events add up."""
    bounds = metric_intervals(over)
    return [
        ErrorCost(
            of_type[0].error_type,
            sum(cost.events for cost in of_type),
            over.value(of_type[0].error_type.key) or 0.0,
            bounds.get(of_type[0].error_type.key),
        )
        for of_type in zip(*parts, strict=True)
    ]


def _bar(
    model: str, where: str, is_average: bool, runs: Sequence[Run], losses: Sequence[ErrorCost]
) -> LossBar:
    formats = {run.question.format for run in runs}
    return LossBar(
        model=model,
        where=where,
        is_average=is_average,
        format=formats.pop() if len(formats) == 1 else "",
        score=100 - sum(cost.points for cost in losses),
        segments=tuple(cost for cost in losses if cost.events or cost.points),
    )
