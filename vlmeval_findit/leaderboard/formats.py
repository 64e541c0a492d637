"""Which of a model's formats is reported, and how the others compare to it.

A model is reported on every dataset at the format with the highest average F1@0.5 over datasets
(protocol section 6).  Averages over other datasets are not comparable, so the format that was run
on the most datasets goes first; a dataset that lacks it gets the next best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..runs import Run
from ..statistics import METRICS, Difference, Interval, difference, interval, resample
from ..variant import nearest
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
        order = _best_first(model, columns)
        only = wanted.get(model, wanted.get(EVERY_MODEL))
        for column in columns:
            here = {format_name(r.variant): r for r in column.runs if r.model == model}
            best = next((name for name in order if name in here and only in (None, name)), None)
            if best is not None:
                chosen[model, column.name] = here[best]
    return chosen


def _best_first(model: str, columns: Iterable[Column]) -> list[str]:
    """A model's formats: those of the most columns first, then by average F1@0.5, then by name."""
    f1: dict[str, list[float]] = {}
    for column in columns:
        for run in column.runs:
            if run.model == model:
                f1.setdefault(format_name(run.variant), []).append(run.figures.f1)
    # Rounded: formats that are read to the same boxes may differ in the last bits.
    return sorted(f1, key=lambda name: (-len(f1[name]), -round(fmean(f1[name]), 9), name))


@dataclass(frozen=True, slots=True)
class FormatRow:
    """One run of the sweep beside the reported run of its model and column.

    ``to_reported`` is its F1@0.5 minus the reported one's, over the same draws; None for the
    reported run itself.
    """

    run: Run
    column: str
    intervals: Mapping[str, Interval | None]
    reported: bool
    to_reported: Difference | None


def format_rows(
    columns: Iterable[Column],
    chosen: Mapping[tuple[str, str], Run],
    resamples: int,
    seed_of: Mapping[str, int],
) -> list[FormatRow]:
    """Every comparable run, with intervals and a paired test against its model's reported one."""
    rows = []
    for column in columns:
        for model in sorted({run.model for run in column.runs}):
            runs = [run for run in column.runs if run.model == model]
            best = chosen.get((model, column.name))
            rows += _model_rows(column.name, runs, best, resamples, seed_of[column.name])
    return rows


def _model_rows(
    column: str, runs: Sequence[Run], best: Run | None, resamples: int, seed: int
) -> list[FormatRow]:
    draws = resample(runs, resamples, seed)
    at_best = next((at for at, run in enumerate(runs) if run is best), None)
    rows = []
    for at, run in enumerate(runs):
        apart = None
        if at_best is not None and at != at_best:
            apart = difference(
                run.figures.f1, runs[at_best].figures.f1, draws[at, :, 0], draws[at_best, :, 0]
            )
        found = {name: interval(draws[at, :, m]) for m, name in enumerate(METRICS)}
        rows.append(FormatRow(run, column, found, at == at_best, apart))
    return rows
