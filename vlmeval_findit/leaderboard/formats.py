"""Choose the reported format of a model, and compare the others with it.

A model is reported on every dataset in its best format (:mod:`..runs.best_format`) of those that
were run on the most datasets; a dataset that lacks it gets the next best.

The best of many formats is optimistic on the queries that it was chosen on. It is not if it is
chosen on one dataset and reported on the others, or chosen on half of the images and reported on
the other half (:func:`split`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..core.estimate import Estimate
from ..core.formatting import nearest
from ..core.scored_row import RowTable
from ..core.statistics import Difference, Interval, correct, difference, metric_intervals
from ..runs.best_format import ranked
from ..runs.run_statistics import estimate
from ..runs.scored_run import Run
from .comparable import ComparableRuns, by_model

HALF = "half"
"""In place of a dataset: half of the images of every dataset."""

FLAG = "--choose-on"

EVERY_MODEL = ""
"""The key of a format for every model without a format under its name."""


class FormatError(ValueError):
    """A format that no run has; the message suggests the nearest."""


def formats_by_model(
    entries: Iterable[str], runs: Sequence[Run], flag: str = "--format"
) -> dict[str, str]:
    """Parse ``[MODEL=]FORMAT`` entries; ``flag`` is the option's name in messages.

    Raises:
        FormatError: a model that has no run, or a format that no run has.
    """
    models = sorted({run.model for run in runs})
    formats = {}
    for entry in entries:
        model, _, name = entry.rpartition("=")
        if model and model not in models:
            raise FormatError(f"{flag} {entry}: no run of {model!r}{nearest(model, models)}")
        of_model = [run for run in runs if model in (EVERY_MODEL, run.model)]
        known = sorted({run.question.format for run in of_model})
        formats[model] = name
        if name not in known:
            raise FormatError(f"{flag} {entry}: no run has this format{nearest(name, known)}")
    return formats


def choose(
    datasets: Sequence[ComparableRuns],
    fixed: Mapping[str, str] | None = None,
    choosing: Sequence[ComparableRuns] | None = None,
) -> dict[tuple[str, str], Run]:
    """Return the reported runs by (model, dataset).

    Args:
        datasets: comparable runs.
        fixed: a format by model, or for all under :data:`EVERY_MODEL`; a dataset that lacks it has
            no entry then.
        choosing: datasets on which the best format is chosen (None: the datasets); a model with
            several formats of which none was run on them has no entry.
    """
    fixed = fixed or {}
    choosing_runs = by_model(run for dataset in (choosing or ()) for run in dataset.runs)
    reported: dict[tuple[str, str], Run] = {}
    by_dataset = {dataset.name: by_model(dataset.runs) for dataset in datasets}
    every = by_model(run for dataset in datasets for run in dataset.runs)
    for model, runs in sorted(every.items()):
        several = len({run.question.format for run in runs}) > 1
        by = choosing_runs.get(model, []) if choosing is not None and several else runs
        order = [
            average.format
            for average in ranked(runs[0].benchmark, [(run.question, run.sums) for run in by])
        ]
        only = fixed.get(model, fixed.get(EVERY_MODEL))
        for name, of_models in by_dataset.items():
            by_format = {
                run.question.format: run
                for run in of_models.get(model, ())
                if only in (None, run.question.format)
            }
            best = next((each for each in (only, *order) if each in by_format), None)
            if best is not None:
                reported[model, name] = by_format[best]
    return reported


@dataclass(frozen=True, slots=True)
class FormatRow:
    """A comparable run, with its test against the reported run of its model and dataset."""

    run: Run
    dataset: str
    intervals: Mapping[str, Interval | None]
    reported: bool
    # Its headline minus the reported run's, failed calls as misses, corrected for the number of
    # formats; None for the reported run itself, and if either has no value
    to_reported: Difference | None


def make_format_rows(
    datasets: Iterable[ComparableRuns], reported: Mapping[tuple[str, str], Run]
) -> list[FormatRow]:
    """Make a row for every comparable run."""
    rows = []
    for dataset in datasets:
        for model, runs in sorted(by_model(dataset.runs).items()):
            estimates = [estimate(run) for run in runs]
            chosen = reported.get((model, dataset.name))
            best = next((at for at, run in enumerate(runs) if run is chosen), None)
            tests = _tests_to_reported(estimates, best) if best is not None else {}
            rows += [
                FormatRow(
                    run, dataset.name, metric_intervals(estimates[at]), at == best, tests.get(at)
                )
                for at, run in enumerate(runs)
            ]
    return rows


def _tests_to_reported(estimates: Sequence[Estimate], best: int) -> dict[int, Difference]:
    """Return the differences to the reported format by the headline, by their places."""
    headline = estimates[best].metrics[0].name
    known = [at for at, each in enumerate(estimates) if each.value(headline) is not None]
    others = [at for at in known if at != best] if best in known else []
    tests = correct(difference(estimates[at], estimates[best], headline) for at in others)
    return dict(zip(others, tests, strict=True))


# --- data that formats are chosen on --------------------------------------------------------------


class Split(NamedTuple):
    """Runs that formats are chosen by, reported runs, and the name of the former in notes."""

    choosing: tuple[ComparableRuns, ...]
    reported: tuple[ComparableRuns, ...]
    name: str


def split(datasets: Sequence[ComparableRuns], on: Sequence[str]) -> Split:
    """Split datasets by ``--choose-on``: by names, or by :data:`HALF` alone.

    Raises:
        FormatError: a dataset does not exist, or nothing would be left to report.
    """
    if HALF in on:
        if len(on) > 1:
            raise FormatError(f"{FLAG} {HALF} is of every dataset: name no other with it")
        choosing, reported = (
            tuple(half for dataset in datasets if (half := _half_of(dataset, side)) is not None)
            for side in (0, 1)
        )
        return Split(choosing, reported, "the other half of the images")
    names = [dataset.name for dataset in datasets]
    for name in on:
        if name not in names:
            raise FormatError(f"{FLAG} {name}: no dataset of these runs{nearest(name, names)}")
    if set(names) <= set(on):
        raise FormatError(f"{FLAG} {' '.join(on)}: no other dataset is left to report on")
    return Split(
        tuple(dataset for dataset in datasets if dataset.name in on),
        tuple(dataset for dataset in datasets if dataset.name not in on),
        ", ".join(on),
    )


def _half_of(dataset: ComparableRuns, side: int) -> ComparableRuns | None:
    """Return a dataset with the queries of one half of its images; None if it has none."""
    runs = tuple(_cut(run, side) for run in dataset.runs)
    return replace(dataset, runs=runs) if runs[0].rows else None


def _side(images: str, source: str) -> int:
    """Return 0 or 1: the same for an image in all datasets."""
    return hashlib.sha256(f"{images}/{source}".encode()).digest()[0] % 2


def _cut(run: Run, side: int) -> Run:
    rows, images = run.rows, run.question.images
    if isinstance(rows, RowTable):
        inside = np.array([_side(images, name) == side for name in rows.source.values], dtype=bool)
        return replace(run, rows=rows.where(inside[rows.source.of]))
    return replace(run, rows=tuple(row for row in rows if _side(images, row.source) == side))
