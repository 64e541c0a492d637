"""On which runs a model's format is chosen, where it is not on those that are reported.

The best of many formats on the very queries that it is reported on is an optimistic figure.
Chosen on one dataset and reported on the others, or chosen on half of the pictures and reported on
the other half, it is none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..core.scored_row import RowTable
from ..core.spelling import nearest
from ..runs.scored_run import Run
from .columns import Column
from .formats import FormatError

HALF = "half"
"""In place of a dataset: half of the pictures of every dataset."""

FLAG = "--choose-on"


class Split(NamedTuple):
    """What formats are chosen by, what is reported, and how a sentence calls the former."""

    choosing: tuple[Column, ...]
    reported: tuple[Column, ...]
    name: str


def split(columns: Sequence[Column], on: Sequence[str]) -> Split:
    """Columns as ``--choose-on`` says: names of datasets, or :data:`HALF` alone.

    Raises:
        FormatError: there is no such dataset, or nothing would be left to report.
    """
    if HALF in on:
        if len(on) > 1:
            raise FormatError(f"{FLAG} {HALF} is of every dataset: name no other beside it")
        choosing, reported = (
            tuple(made for column in columns if (made := _of_pictures(column, place)) is not None)
            for place in (0, 1)
        )
        return Split(choosing, reported, "the other half of the pictures")
    names = [column.name for column in columns]
    for name in on:
        if name not in names:
            raise FormatError(f"{FLAG} {name}: no dataset of these runs{nearest(name, names)}")
    if set(names) <= set(on):
        raise FormatError(f"{FLAG} {' '.join(on)}: no other dataset is left to report on")
    return Split(
        tuple(column for column in columns if column.name in on),
        tuple(column for column in columns if column.name not in on),
        ", ".join(on),
    )


def _of_pictures(column: Column, place: int) -> Column | None:
    """A column with the queries of one half of its pictures; None where it has none there."""
    runs = tuple(_cut(run, place) for run in column.runs)
    return replace(column, runs=runs) if runs[0].rows else None


def _half(images: str, source: str) -> int:
    """0 or 1: always the same for a picture, whichever datasets show it."""
    return hashlib.sha256(f"{images}/{source}".encode()).digest()[0] % 2


def _cut(run: Run, place: int) -> Run:
    """A run with the rows of one half of its pictures."""
    rows, images = run.rows, run.question.images
    if isinstance(rows, RowTable):
        inside = np.array([_half(images, name) == place for name in rows.source.values], dtype=bool)
        return replace(run, rows=rows.where(inside[rows.source.of]))
    return replace(run, rows=tuple(row for row in rows if _half(images, row.source) == place))
