"""Two reproductions of one figure: what differs in their conditions, and by how much."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from ..benchmarks.findit import how_to_make
from ..core import as_called, plain_value
from ..data import published_dataset
from ..protocol import Metric
from ..scoring import other_parts, part_in_words
from ..statistics import (
    ClusteredSums,
    Difference,
    Estimate,
    estimate_metrics,
    mean_of_estimates,
    paired_difference,
)
from .figure_metric import FIGURE_METRICS
from .reproduction_file import StoredReproduction, StoredRun, StoredTable


class NotComparableError(ValueError):
    """Two reproductions of different things; the message says which, and what to type."""


@dataclass(frozen=True, slots=True)
class ConditionDifference:
    """What was so here and otherwise there; "" where it is not known."""

    name: str
    here: str
    there: str


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Both values in percent over the rows that both asked, and their paired difference."""

    rows: int
    pictures: int
    here: float
    there: float
    difference: Difference  # Here minus there
    of: str = ""  # What both are of, where it is not the figure's metric


@dataclass(frozen=True, slots=True)
class TwoReproductions:
    """Two reproductions compared."""

    differences: tuple[ConditionDifference, ...]
    same: tuple[str, ...]  # The names of what is known of both, and equal
    shared: SharedRows | None  # None: not a row of some dataset was asked in both


def compare_reproductions(
    here: StoredReproduction, there: StoredReproduction, there_is: str
) -> TwoReproductions:
    """Compare two reproductions.

    Args:
        here: of this machine.
        there: the other.
        there_is: how messages call the other: its file.

    Raises:
        NotComparableError: they measured different metrics, or other datasets or tables, or two
            scorers scored them.
    """
    tables = {run.dataset: run.table for run in here.runs}
    refuse_other_things(here.figure.metric, tables, here.made_with, there, there_is)
    ours = dict(_conditions(here))
    theirs = dict(_conditions(there))
    differences: list[ConditionDifference] = []
    same: list[str] = []
    for name in dict.fromkeys((*ours, *theirs)):
        pair = ours.get(name, ""), theirs.get(name, "")
        if pair[0] != pair[1]:
            differences.append(ConditionDifference(name, *pair))
        elif pair[0]:
            same.append(name)
    return TwoReproductions(tuple(differences), tuple(same), _shared_rows(here, there))


# --- what can be compared -------------------------------------------------------------------------


def refuse_other_things(
    metric: str,
    tables: Mapping[str, StoredTable],
    scored_with: Mapping[str, str],
    there: StoredReproduction,
    there_is: str,
) -> None:
    """Refuse a reproduction that measured something else.

    Args:
        metric: what is measured here.
        tables: what is asked about here, by dataset.
        scored_with: what scores here.
        there: the other.
        there_is: how messages call it: its file.

    Raises:
        NotComparableError: it is of another metric, of other datasets or tables, or another scorer
            scored it.
    """
    if metric != there.figure.metric:
        raise NotComparableError(
            f"{there_is}: figure.metric is {plain_value(there.figure.metric)}, here it is "
            f"{metric}: the two values are of different metrics. {_again(there)}"
        )
    theirs = {run.dataset: run.table for run in there.runs}
    if tables.keys() != theirs.keys():
        raise NotComparableError(
            f"{there_is}: runs are of {plain_value(', '.join(theirs))}, here of "
            f"{', '.join(tables)}. {_again(there)}"
        )
    for name, table in tables.items():
        other = theirs[name]
        if other.sha256 != table.sha256:
            raise NotComparableError(
                f"{there_is}: the table of {name} has {other.rows:,} rows, SHA-256 "
                f"{plain_value(other.sha256[:12])}, made of {plain_value(_source(other))}; here "
                f"{table.rows:,} rows, {table.sha256[:12]}, made of {_source(table)}. These are "
                "two copies of the dataset, whose rows may differ. Make the same on both machines "
                f"and reproduce it again: {_how_to_make(name, table)}"
            )
    if names := other_parts(scored_with, there.made_with):
        ours = ", ".join(part_in_words(scored_with, name) for name in names)
        others = ", ".join(part_in_words(there.made_with, name) for name in names)
        raise NotComparableError(
            f"{there_is}: scored by {plain_value(others)}, here by {ours}: these are two scorers, "
            "whose values are not compared. Install the same on both machines and reproduce again; "
            f"no call is repeated. {_again(there)}"
        )


def _again(there: StoredReproduction) -> str:
    """Return what to type to reproduce the figure of the other."""
    words = ["reproduce", there.figure.model, "--set", there.figure.set]
    typed = f"python run_findit.py {plain_value(shlex.join(words), 200)}"
    return as_called(f"To measure the same, type: {typed}")


def _source(table: StoredTable) -> str:
    return table.facts.get("source") or "an unknown file"


def _how_to_make(dataset: str, table: StoredTable) -> str:
    """Return what makes a table again."""
    published = published_dataset(dataset)
    if published is not None:
        row, _ = published
        return as_called(f"python run_findit.py data import PATH --set {row.name} --replace")
    return how_to_make(PurePath(table.file).stem)


# --- conditions -----------------------------------------------------------------------------------

# Conditions that runs record as they were really asked
_RECORDED_BY_RUNS = ("prompt", "format", "space")


def _conditions(stored: StoredReproduction) -> Iterator[tuple[str, str]]:
    """Yield all that may explain a difference, by name, in words."""
    yield "figure", f"{stored.figure.model}, {stored.figure.set}"
    for condition in stored.conditions:
        if condition.name not in _RECORDED_BY_RUNS:
            yield condition.name, condition.here
    yield "seed", str(stored.seed)
    several = len(stored.runs) > 1
    for run in stored.runs:
        for name, value in _conditions_of_run(run):
            yield f"{name} ({run.dataset})" if several else name, value
    for name, version in stored.made_with.items():
        yield f"{name}, when it was judged", version


def _conditions_of_run(run: StoredRun) -> Iterator[tuple[str, str]]:
    who = run.answering
    yield "variant", run.variant
    yield "prompt set", run.prompts or ""
    yield "hash of the prompts", (run.prompt_hash or "")[:12]
    yield "coordinate space", _space_words(run.space)
    yield "class", who.kind or ""
    yield "row of the model table", who.row or ""
    yield "checkpoint", who.checkpoint or ""
    yield "revision", who.revision or ""
    yield "program", who.program or ""
    yield "served checkpoint", who.served or ""
    yield "model in the replies", ", ".join(who.named)
    for name, value in who.settings.items():
        yield f"setting {name}", plain_value(value)
    for name, value in who.headers.items():
        yield f"header {name}", plain_value(value)
    for name, version in run.versions.items():
        yield name, version
    yield "failed calls", str(run.failed)
    yield "rows", f"{len(run.rows):,}"


def _space_words(space: Mapping[str, Any] | None) -> str:
    """Return a space in words: ``smart_resize patch=16``."""
    if space is None:
        return ""
    rest = [f"{name}={value}" for name, value in space.items() if name != "kind" and value]
    return " ".join([str(space.get("kind", "")), *rest])


# --- values over shared rows ----------------------------------------------------------------------


def _shared_rows(here: StoredReproduction, there: StoredReproduction) -> SharedRows | None:
    theirs = {run.dataset: run for run in there.runs}
    measured = FIGURE_METRICS.get(here.figure.metric)
    metric = Metric(here.figure.metric, {"part": 1}, {"whole": 1})
    of_here: list[Estimate] = []
    of_there: list[Estimate] = []
    rows = 0
    for run in here.runs:
        other = theirs[run.dataset]
        shared = set(run.rows) & set(other.rows)
        if not shared:
            return None
        rows += len(shared)
        of_here.append(estimate_metrics([metric], _sums(run, shared)))
        of_there.append(estimate_metrics([metric], _sums(other, shared)))
    ours = mean_of_estimates(of_here)
    others = mean_of_estimates(of_there)
    return SharedRows(
        rows=rows,
        pictures=len(ours.images),
        here=100 * float(ours.values[0]),
        there=100 * float(others.values[0]),
        difference=paired_difference(ours, others, metric.name),
        of=measured.by_rows if measured is not None else "",
    )


def _sums(run: StoredRun, shared: set[int]) -> ClusteredSums:
    """Return the sums of shared rows: how much each counts, and how much of it was a hit."""
    places = [place for place, row in enumerate(run.rows) if row in shared]
    images = [run.images[place] for place in places]
    names = tuple(sorted(set(images)))
    place_of = {name: place for place, name in enumerate(names)}
    weights = np.array([run.weights[place] if run.weights else 1.0 for place in places])
    hits = np.array([run.hits[place] for place in places])
    image = np.array([place_of[name] for name in images], dtype=np.intp)
    return ClusteredSums(names, image, {"part": hits * weights, "whole": weights}, {})
