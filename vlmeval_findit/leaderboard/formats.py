"""Which of a model's formats is reported, and how the others compare to it.

A model is reported on every dataset at its best format (:mod:`..runs.best_format`) of those that
were run on the most datasets; a dataset that lacks it gets the next best.

The best of many formats on the very queries that it is reported on is an optimistic value.  Chosen
on one dataset and reported on the others, or chosen on half of the images and reported on the other
half, it is none (:func:`split`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..core.estimate import Estimate
from ..core.formatting import nearest
from ..core.question import QuestionError
from ..core.scored_row import RowTable
from ..core.statistics import Difference, Interval, correct, difference, metric_intervals
from ..runs.best_format import ranked
from ..runs.run_statistics import estimate
from ..runs.scored_run import Run
from .comparable import ComparableRuns

HALF = "half"
"""In place of a dataset: half of the pictures of every dataset."""

FLAG = "--choose-on"

EVERY_MODEL = ""
"""The key of a wanted format that holds for every model without one of its own."""


class FormatError(ValueError):
    """A format that no run has; the message says what is nearest."""


def wanted_formats(
    given: Iterable[str], runs: Sequence[Run], flag: str = "--format"
) -> dict[str, str]:
    """``[MODEL=]FORMAT``, as on the command line, by model.

    ``flag`` is what was given, for messages.

    Raises:
        FormatError: a model that has no run, or a format that no run has.
    """
    models = sorted({run.model for run in runs})
    wanted = {}
    for entry in given:
        model, _, name = entry.rpartition("=")
        if model and model not in models:
            raise FormatError(f"{flag} {entry}: no run of {model!r}{nearest(model, models)}")
        mine = [run for run in runs if model in (EVERY_MODEL, run.model)]
        there = sorted({run.question.format for run in mine})
        wanted[model] = name if name in there else _canonical(name, mine)
        if wanted[model] not in there:
            raise FormatError(f"{flag} {entry}: no run has this format{nearest(name, there)}")
    return wanted


def _canonical(name: str, runs: Iterable[Run]) -> str:
    """A format's canonical name, where it is another name of one that runs have."""
    for run in runs:
        question = run.question
        front = question.name.removesuffix(question.format)
        try:
            meant = run.benchmark.parse(f"{front}{name}")
        except QuestionError:
            continue
        if meant.column == question.column:
            return meant.format
    return name


def choose(
    columns: Sequence[ComparableRuns],
    wanted: Mapping[str, str] | None = None,
    choosing: Sequence[ComparableRuns] | None = None,
) -> dict[tuple[str, str], Run]:
    """The run that is reported, by (model, column name).

    Args:
        columns: comparable runs.
        wanted: a format by model, or for all under :data:`EVERY_MODEL`; a column that lacks it has
            no entry then.
        choosing: what the best format is decided on (None: the columns); a model with several
            formats of which none is in there has no entry.
    """
    wanted = wanted or {}
    decided = _by_model(run for one in (choosing or ()) for run in one.runs)
    chosen: dict[tuple[str, str], Run] = {}
    by_column = {column.name: _by_model(column.runs) for column in columns}
    every = _by_model(run for column in columns for run in column.runs)
    for model, mine in sorted(every.items()):
        several = len({run.question.format for run in mine}) > 1
        by = decided.get(model, []) if choosing is not None and several else mine
        scored = [(run.question, run.sums) for run in by]
        order = [average.format for average in ranked(mine[0].benchmark, scored)]
        only = wanted.get(model, wanted.get(EVERY_MODEL))
        for column in columns:
            here = {
                run.question.format: run
                for run in by_column[column.name].get(model, ())
                if only in (None, run.question.format)
            }
            best = next((made for made in (only, *order) if made in here), None)
            if best is not None:
                chosen[model, column.name] = here[best]
    return chosen


def _by_model(runs: Iterable[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.model, []).append(run)
    return found


@dataclass(frozen=True, slots=True)
class FormatRow:
    """One run of the sweep beside the reported run of its model and column.

    ``to_reported`` is its headline figure minus the reported one's, failed calls as misses in both,
    corrected for the number of formats that its model has there; None for the reported run itself,
    and where either has none.
    """

    run: Run
    column: str
    intervals: Mapping[str, Interval | None]
    reported: bool
    to_reported: Difference | None


def format_rows(
    columns: Iterable[ComparableRuns], chosen: Mapping[tuple[str, str], Run]
) -> list[FormatRow]:
    """Every comparable run, with intervals and a paired test against its model's reported one."""
    rows = []
    for column in columns:
        for model, runs in sorted(_by_model(column.runs).items()):
            rows += _model_rows(column.name, runs, chosen.get((model, column.name)))
    return rows


def _model_rows(column: str, runs: Sequence[Run], reported: Run | None) -> list[FormatRow]:
    found = [estimate(run) for run in runs]
    best = next((at for at, run in enumerate(runs) if run is reported), None)
    tests = _to_reported(found, best) if best is not None else {}
    return [
        FormatRow(run, column, metric_intervals(found[at]), at == best, tests.get(at))
        for at, run in enumerate(runs)
    ]


def _to_reported(found: Sequence[Estimate], best: int) -> dict[int, Difference]:
    """The differences of formats to the reported one by the headline, by their places."""
    headline = found[best].metrics[0].name
    there = [at for at, one in enumerate(found) if one.value(headline) is not None]
    others = [at for at in there if at != best] if best in there else []
    made = correct(difference(found[at], found[best], headline) for at in others)
    return dict(zip(others, made, strict=True))


# --- on what it is chosen -------------------------------------------------------------------------


class Split(NamedTuple):
    """What formats are chosen by, what is reported, and how a sentence calls the former."""

    choosing: tuple[ComparableRuns, ...]
    reported: tuple[ComparableRuns, ...]
    name: str


def split(columns: Sequence[ComparableRuns], on: Sequence[str]) -> Split:
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


def _of_pictures(column: ComparableRuns, place: int) -> ComparableRuns | None:
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
