"""Divide lost points among error types: a bar for each model, dataset and average."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..analysis import ErrorCost, StatisticsError, error_estimate, errors_of
from ..core import printable
from ..leaderboard import Board
from ..protocol import Better, ErrorType
from ..scoring import Run
from ..statistics import mean_of_estimates, metric_intervals
from .value_text import ends

MODELS = 100  # Most models with bars: the first of a board


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
        bars: list[list[Any]] = []
        for bar in self.bars:
            segments = []
            for cost in bar.segments:
                place = error_types.index(cost.error_type)
                low, high = ends(cost.interval)
                segments.append([place, round(cost.points, 4), round(cost.events, 2), low, high])
            score = round(bar.score, 4)
            place_of_bar = [printable(bar.model), bar.where, bar.is_average, bar.format]
            bars.append([*place_of_bar, score, segments])
        return {"score": self.score, "bars": bars}


def losses_of(board: Board) -> Losses:
    """Return the bars of a board: of its averages over several datasets, then of its datasets.

    Only its first :data:`MODELS` models have bars.
    """
    lacking: list[str] = []
    known: dict[tuple[str, str], tuple[Run, Sequence[ErrorCost]]] = {}
    models = board.models[:MODELS]
    for (model, name), cell in board.cells.items():
        if model in models and cell.run is not None:
            try:
                known[model, name] = cell.run, errors_of(cell.run)
            except StatisticsError as error:
                lacking.append(f"{model}, {name}: {error}")
    averages: dict[tuple[str, ...], str] = {}
    for average in board.means:
        if len(average.datasets) > 1:
            averages.setdefault(average.datasets, average.name)
    bars = []
    for datasets, name in averages.items():
        for model in models:
            places = [(model, dataset) for dataset in datasets]
            if all(place in known for place in places):
                runs = [known[place][0] for place in places]
                costs = [known[place][1] for place in places]
                bars.append(_bar(model, name, runs, _mean(runs, costs)))
    for dataset in board.datasets:
        for model in models:
            if (model, dataset.name) in known:
                run, costs_of_run = known[model, dataset.name]
                bars.append(_bar(model, dataset.name, [run], costs_of_run))
    score = board.headline
    lost_by = score.name if score.better is Better.HIGHER else f"100 − {score.name}"
    return Losses(lost_by, tuple(bars), tuple(lacking))


def _mean(runs: Sequence[Run], parts: Sequence[Sequence[ErrorCost]]) -> Iterator[ErrorCost]:
    """Average points over datasets, as their scores are; events add up."""
    estimate = mean_of_estimates([error_estimate(run) for run in runs])
    bounds = metric_intervals(estimate)
    for costs in zip(*parts, strict=True):
        error_type = costs[0].error_type
        events = sum(cost.events for cost in costs)
        points = estimate.value(error_type.key) or 0.0
        yield ErrorCost(error_type, events, points, bounds.get(error_type.key))


def _bar(model: str, where: str, runs: Sequence[Run], costs: Iterable[ErrorCost]) -> LossBar:
    costs = tuple(costs)
    formats = {run.variant.format for run in runs}
    return LossBar(
        model=model,
        where=where,
        is_average=len(runs) > 1,
        format=formats.pop() if len(formats) == 1 else "",
        score=100 - sum(cost.points for cost in costs),
        segments=tuple(cost for cost in costs if cost.events or cost.points),
    )
