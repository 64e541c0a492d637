"""What scores lost, for the page: a stacked bar a model, on every dataset and average."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.anatomy import Cause
from ..core.evidence import Evidence, mean
from ..core.metric import Better
from ..core.statistics import Interval, figure_intervals
from ..leaderboard.board import Board, ColumnMean
from ..runs.anatomy import Loss, NoAnatomyError, anatomy_of, loss_evidence
from ..runs.scored_run import Run

_LEAST = 0.005
"""Points that can be seen in a bar."""

_REACHABLE = 1.0
"""Points whose segment is wide enough to be pointed at; the table and the gallery's filter have
all."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What one cause took; ``place`` is that of the cause among all of its benchmark."""

    cause: Cause
    place: int
    events: float
    points: float
    interval: Interval | None

    @property
    def drawn(self) -> bool:
        """Whether it can be seen; a cause may have events that cost nothing."""
        return self.points >= _LEAST

    @property
    def reachable(self) -> bool:
        """Whether it is wide enough to be pointed at, and a stop of the Tab key."""
        return self.points >= _REACHABLE

    @property
    def bounds(self) -> str:
        """``2.1–7.5``; empty where there is no interval."""
        return f"{self.interval.low:.1f}–{self.interval.high:.1f}" if self.interval else ""

    @property
    def counted(self) -> str:
        """How many events: a whole number where they are such."""
        return f"{self.events:,.0f}" if float(self.events).is_integer() else f"{self.events:,.2f}"

    @property
    def said(self) -> str:
        """The segment as a sentence."""
        bounds = f" ({self.bounds})" if self.bounds else ""
        return (
            f"{self.cause.name}: {self.points:.1f} points{bounds}, {self.counted} events; "
            f"{self.cause.meaning}"
        )


@dataclass(frozen=True, slots=True)
class LossBar:
    """A model on a dataset or an average: its score and what took the rest of 100.

    ``format`` is that of its runs; "" where they have several.
    """

    model: str
    where: str
    is_average: bool
    format: str
    score: float
    segments: tuple[Segment, ...]

    def at(self, cause: Cause) -> Segment | None:
        """What a cause took; None for nothing."""
        return next((one for one in self.segments if one.cause == cause), None)


@dataclass(frozen=True, slots=True)
class Losses:
    """All bars of a page; ``causes`` are those that were met, with their places.

    ``lacking`` says of runs that have no bar, why.
    """

    score: str
    causes: tuple[tuple[int, Cause], ...]
    bars: tuple[LossBar, ...]
    lacking: tuple[str, ...]

    def colours(self) -> list[tuple[int, Cause]]:
        """The causes that can be seen in a bar."""
        seen = {one.place for bar in self.bars for one in bar.segments if one.drawn}
        return [(place, cause) for place, cause in self.causes if place in seen]

    def wheres(self) -> list[str]:
        return list(dict.fromkeys(bar.where for bar in self.bars))

    def models(self) -> list[str]:
        return list(dict.fromkeys(bar.model for bar in self.bars))


def losses_of(board: Board) -> Losses:
    """The bars of a board: of its averages over several datasets, then of its columns."""
    lacking: list[str] = []
    found: dict[tuple[str, str], Sequence[Loss]] = {}
    for (model, name), cell in board.cells.items():
        if cell.run is not None:
            try:
                found[model, name] = anatomy_of(cell.run)
            except NoAnatomyError as error:
                lacking.append(f"{model}, {name}: {error}")
    bars = (*_averages(board, found), *_columns(board, found))
    met = {one.cause.key for bar in bars for one in bar.segments}
    anatomy = board.benchmark.anatomy
    score = anatomy.score
    return Losses(
        score=score.name if score.better is Better.HIGHER else f"100 − {score.name}",
        causes=tuple((at, c) for at, c in enumerate(anatomy.causes) if c.key in met),
        bars=bars,
        lacking=tuple(lacking),
    )


Found = dict[tuple[str, str], Sequence[Loss]]


def _columns(board: Board, found: Found) -> Iterator[LossBar]:
    for column in board.columns:
        for model in board.models:
            if (model, column.name) in found:
                run = _run(board, model, column.name)
                yield _bar(model, column.name, False, [run], found[model, column.name])


def _averages(board: Board, found: Found) -> Iterator[LossBar]:
    """Of several datasets, each set of them once: of one the dataset's own bar says it."""
    first: dict[tuple[str, ...], ColumnMean] = {}
    for average in board.averages:
        if len(average.columns) > 1:
            first.setdefault(average.columns, average)
    for average in first.values():
        for model in board.models:
            places = [(model, name) for name in average.columns]
            if all(place in found for place in places):
                runs = [_run(board, *place) for place in places]
                over = mean([loss_evidence(run) for run in runs])
                losses = _mean(over, [found[place] for place in places])
                yield _bar(model, average.name, True, runs, losses)


def _run(board: Board, model: str, column: str) -> Run:
    run = board.cells[model, column].run
    assert run is not None
    return run


def _mean(over: Evidence, parts: Sequence[Sequence[Loss]]) -> list[Loss]:
    """The mean of points over datasets, as the mean of their scores; events add up."""
    bounds = figure_intervals(over)
    return [
        Loss(
            of_cause[0].cause,
            sum(one.events for one in of_cause),
            over.figure(of_cause[0].cause.key) or 0.0,
            bounds.get(of_cause[0].cause.key),
        )
        for of_cause in zip(*parts, strict=True)
    ]


def _bar(
    model: str, where: str, is_average: bool, runs: Sequence[Run], losses: Sequence[Loss]
) -> LossBar:
    formats = {run.question.format for run in runs}
    return LossBar(
        model=model,
        where=where,
        is_average=is_average,
        format=formats.pop() if len(formats) == 1 else "",
        score=100 - sum(one.points for one in losses),
        segments=tuple(
            Segment(one.cause, place, one.events, one.points, one.interval)
            for place, one in enumerate(losses)
            if one.events or one.points
        ),
    )
