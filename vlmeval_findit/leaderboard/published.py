"""Figures that others published, beside ours: never ranked, never averaged."""

from __future__ import annotations

from dataclasses import dataclass

from .board import Board

PUBLISHED = "published"
"""Stands where a rank would."""


@dataclass(frozen=True, slots=True)
class PublishedLine:
    """One model of a source, by one metric: a figure or None for every :meth:`.Board.names`."""

    model: str
    where: str
    values: tuple[float | None, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple("–" if value is None else f"{value:.1f}" for value in self.values)


def published_lines(board: Board, metric: str) -> list[PublishedLine]:
    """What was published by a metric, in the benchmark's order, with the columns that have runs."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for one in board.published:
        if metric in one.values:
            found.setdefault((one.model, one.where), {})[one.column] = one.values[metric]
    return [
        PublishedLine(model, where, tuple(values.get(name) for name in board.names()))
        for (model, where), values in found.items()
    ]


def published_notes(board: Board) -> list[str]:
    """A line for every source: who is from there."""
    models: dict[str, dict[str, None]] = {}
    for one in board.published:
        models.setdefault(one.where, {})[one.model] = None
    return [f"{where}: {', '.join(names)}" for where, names in models.items()]
