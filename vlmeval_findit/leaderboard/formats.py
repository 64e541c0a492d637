"""Which of a model's formats is reported, and how the others compare to it.

A model is reported on every dataset at its best format (:mod:`.best_format`) of those that were
run on the most datasets; a dataset that lacks it gets the next best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..benchmarks.findit.best_format import format_of, ranked
from ..core.spelling import nearest
from ..core.statistics import (
    METRICS,
    Difference,
    Interval,
    correct,
    difference,
    evidence,
    figure_intervals,
)
from ..runs.scored_run import Run
from .columns import Column, check_format, format_name

EVERY_MODEL = ""
"""The key of a wanted format that holds for every model without one of its own."""


class FormatError(ValueError):
    """A format that no run has; the message says what is nearest."""


def wanted_formats(given: Iterable[str], columns: Iterable[Column]) -> dict[str, str]:
    """``[MODEL=]FORMAT``, as on the command line, by model.

    Raises:
        VariantError: not a format.
        FormatError: a model that has no run, or a format that no run has.
    """
    runs = [run for column in columns for run in column.runs]
    models = sorted({run.model for run in runs})
    wanted = {}
    for entry in given:
        model, _, name = entry.rpartition("=")
        if model and model not in models:
            raise FormatError(f"--format {entry}: no run of {model!r}{nearest(model, models)}")
        wanted[model] = check_format(name)
        there = {format_name(run.variant) for run in runs if model in (EVERY_MODEL, run.model)}
        if wanted[model] not in there:
            raise FormatError(
                f"--format {entry}: no run has this format{nearest(name, sorted(there))}"
            )
    return wanted


def choose(
    columns: Sequence[Column], wanted: Mapping[str, str] | None = None
) -> dict[tuple[str, str], Run]:
    """The run that is reported, by (model, column name).

    Args:
        columns: comparable runs.
        wanted: a format by model, or for all under :data:`EVERY_MODEL`; a column that lacks it has
            no entry then.
    """
    wanted = wanted or {}
    chosen: dict[tuple[str, str], Run] = {}
    for model in sorted({run.model for column in columns for run in column.runs}):
        mine = [run for column in columns for run in column.runs if run.model == model]
        order = [average.format for average in ranked((run.variant, run.figures) for run in mine)]
        only = wanted.get(model, wanted.get(EVERY_MODEL))
        for column in columns:
            here = {
                format_of(run.variant): run
                for run in column.runs
                if run.model == model and only in (None, format_name(run.variant))
            }
            best = next((made for made in order if made in here), None)
            if best is not None:
                chosen[model, column.name] = here[best]
    return chosen


@dataclass(frozen=True, slots=True)
class FormatRow:
    """One run of the sweep beside the reported run of its model and column.

    ``to_reported`` is its F1@0.5 minus the reported one's, corrected for the number of formats that
    its model has there; None for the reported run itself.
    """

    run: Run
    column: str
    intervals: Mapping[str, Interval | None]
    reported: bool
    to_reported: Difference | None


def format_rows(
    columns: Iterable[Column], chosen: Mapping[tuple[str, str], Run]
) -> list[FormatRow]:
    """Every comparable run, with intervals and a paired test against its model's reported one."""
    rows = []
    for column in columns:
        for model in sorted({run.model for run in column.runs}):
            runs = [run for run in column.runs if run.model == model]
            rows += _model_rows(column.name, runs, chosen.get((model, column.name)))
    return rows


def _model_rows(column: str, runs: Sequence[Run], reported: Run | None) -> list[FormatRow]:
    found = [evidence(run) for run in runs]
    best = next((at for at, run in enumerate(runs) if run is reported), None)
    tests: dict[int, Difference] = {}
    if best is not None:
        others = [at for at in range(len(runs)) if at != best]
        made = correct(difference(found[at], found[best], METRICS[0]) for at in others)
        tests = dict(zip(others, made, strict=True))
    return [
        FormatRow(run, column, figure_intervals(found[at]), at == best, tests.get(at))
        for at, run in enumerate(runs)
    ]
