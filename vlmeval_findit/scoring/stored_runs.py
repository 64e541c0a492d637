"""Scored runs: what statistics, leaderboard and report read, and nothing else.

A run is one prediction file that was scored: ``<stem>_provenance.json`` and
``<stem>_details.jsonl`` next to it, as :func:`.score_writing.write_score` leaves them. The model is
not asked and the annotation table is not needed. Every score becomes one frozen :class:`Run`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

from ..benchmarks import benchmark_of
from ..core import file_sha256, read_bytes
from ..data import parse_dataset
from ..protocol import (
    Answering,
    Benchmark,
    DatasetNameError,
    DatasetVariant,
    Metric,
    RowTable,
    RunCosts,
    ScoredRow,
    SumName,
    add_up,
    cost_in,
    failures,
    indices,
    none_answered,
    plugin_conflicts,
    sum_rows,
    sum_up,
    table_of,
    with_events,
)
from ..statistics import RandomRows, sums_of_all_rows, value_of_all_rows
from ..storage import (
    PROVENANCE,
    REVIEWED,
    SHOWN_COLUMN,
    PredictionError,
    RunFiles,
    Shown,
    files_below,
    model_with_mark,
    run_of,
    shown_in,
)
from .new_identity import installed_plugins
from .prediction_names import (
    NAME_RUNS,
    is_of_a_run,
    prediction_files,
    refuse_missing_runs,
    score_command,
)
from .provenance import Provenance, read_provenance
from .score_reading import ScoreFileError, stored_rows
from .stored_sums import read_sums, sums_in_details


class RowData(Enum):
    """What of the rows of a run is held in memory."""

    DETAILS = "everything"
    SUMS = "sums and slices"


class RunError(ValueError):
    """A run that cannot be read; the message names the file, and what to do."""


@dataclass(frozen=True)
class Run:
    """One scored run: a model over one variant."""

    model: str
    variant: DatasetVariant
    path: Path  # Of the predictions
    rows: Sequence[ScoredRow]
    provenance: Provenance
    details: Path | None = None  # File of the rows' details, where the rows are without them
    # Of a score with reviews, where random rows stand for others
    random: RandomRows | None = None
    mark: str = ""  # In the names of its score's files

    def __repr__(self) -> str:
        return f"Run({self.model} on {self.variant.name}, {len(self.rows)} queries)"

    @property
    def benchmark(self) -> Benchmark:
        return benchmark_of(self.variant)

    @property
    def answering(self) -> Answering | None:
        identity = self.provenance.identity
        return identity.answering if identity is not None else None

    @cached_property
    def sums(self) -> Mapping[SumName, float]:
        """The sums that all that is made of a score is of: metrics, their slices, counts.

        Where random rows stand for others, a row counts as often as there are rows like it, and the
        events of errors are among the sums.
        """
        return sum_rows(self.rows) if self.random is None else self.sums_with_events

    @cached_property
    def sums_with_events(self) -> Mapping[SumName, float]:
        """The same sums with the events of errors, which some benchmarks count when asked."""
        rows = with_events(self.benchmark.errors, self.rows)
        if self.random is not None:
            return sums_of_all_rows(sum_rows(rows), self.random)
        return self.sums if rows is self.rows else sum_rows(rows)

    @property
    def files(self) -> RunFiles:
        """The files of its predictions and its score."""
        return RunFiles(self.path, self.mark)

    @property
    def dataset_name(self) -> str:
        """The name of its variant, and of the reviews that it was scored with."""
        reviews = self.provenance.reviews
        return f"{self.variant.name} {reviews.column}" if reviews else self.variant.name

    @property
    def board_dataset(self) -> str:
        """Its dataset on a leaderboard; one with reviews is another."""
        reviews = self.provenance.reviews
        name = self.variant.board_dataset
        return f"{name} {reviews.column}" if reviews else name

    @property
    def is_unanswered(self) -> bool:
        """Whether no call was answered, so that it measures nothing."""
        return none_answered(self.failed, len(self.rows))

    def value(self, metric: Metric) -> float | None:
        """Return a metric, in percent if it is a share; None: it has no value."""
        if self.is_unanswered:
            return None
        return value_of_all_rows(metric, self.sums) if self.random else metric.value(self.sums)

    @cached_property
    def metric_values(self) -> Mapping[str, float | None]:
        """The metrics in percent, by name."""
        return {metric.name: self.value(metric) for metric in self.benchmark.metrics}

    @property
    def query_scores(self) -> list[float]:
        """The query score of every answer in percent, in the order of the rows."""
        scores: list[float] = self.benchmark.query_scores(self.rows).tolist()
        return scores

    @property
    def other_space(self) -> bool:
        """Whether it was scored in another space than it recorded; its model's name says so."""
        return self.provenance.is_in_given_space

    @property
    def voted(self) -> bool:
        """Whether reviewers of its labels saw its answers, or others of its model."""
        reviews = self.provenance.reviews
        if reviews is None:
            return False
        return self.provenance.voter in reviews.voters or self.model in reviews.voting_models

    @property
    def failed(self) -> int:
        """Number of failed calls."""
        return failures(self.rows)


class PluginMissingError(RunError):
    """A run needs a plug-in that is not installed; the message says which, and what to type."""


def load_runs(
    paths: Iterable[Path],
    on_missing_plugin: Callable[[PluginMissingError], None] | None = None,
    keep: RowData = RowData.DETAILS,
) -> list[Run]:
    """Load the scored runs of prediction files and folders, each once, by model and variant.

    Folders are searched to any depth. ``on_missing_plugin`` is called for each run whose plug-in is
    not installed, where there are others (None: an error). Boards of many runs do not fit into
    memory with their details: ``keep`` less.

    Raises:
        FileNotFoundError: a path is not there.
        RunError: a prediction file without a score, a folder without any, files that do not hold
            what :func:`.score_writing.write_score` leaves, or a score of other predictions.
    """
    files: dict[Path, Path] = {}
    paths = tuple(paths)
    refuse_missing_runs(paths)
    for path in paths:
        for provenance in _provenances(path):
            # VLMEvalKit links files of a run's folder into the model's: one run, two paths.
            files.setdefault(provenance.resolve(), provenance)
    runs = []
    missing = []
    shared: dict[Any, Any] = {}
    for path in files.values():
        try:
            run = load_run(path, keep)
            runs.append(replace(run, provenance=_sharing(run.provenance, shared)))
        except PluginMissingError as error:
            missing.append(error)
    for each in missing:
        if on_missing_plugin is None or not runs:
            raise each
        on_missing_plugin(each)
    return sorted(runs, key=lambda run: (run.model, run.variant.name, str(run.path)))


def _sharing(provenance: Provenance, shared: dict[Any, Any]) -> Provenance:
    """Share equal sets of rows and of images between runs, and what else they often agree in."""
    run = provenance.identity
    if run is not None and run.rows is not None:
        run = replace(run, rows=shared.setdefault(run.rows, run.rows))
    rows = shared.setdefault(provenance.rows, provenance.rows)
    images = tuple((row, *sorted(shown.items())) for row, shown in provenance.shown.items())
    shown = shared.setdefault(("images", images), provenance.shown)
    alike = {}
    for name in _OFTEN_ALIKE:
        value = getattr(provenance, name)
        alike[name] = shared.setdefault((name, repr(value)), value)
    return replace(provenance, rows=rows, identity=run, shown=shown, **alike)


_OFTEN_ALIKE = (
    "variant", "spaces", "table", "scored_with", "replies", "reasons", "answered_by", "costs",
)  # fmt: skip


def _provenances(path: Path) -> list[Path]:
    if path.is_dir():
        inside = sorted(files_below(path, lambda file: file.name.endswith(PROVENANCE)))
        if not inside:
            raise RunError(
                f"{path}: no scored runs in this folder (no *{PROVENANCE}); {_remedy(path)}"
            )
        return inside
    provenance = run_of(path).provenance
    if not provenance.is_file():
        raise RunError(
            f"{path}: not scored yet ({provenance.name} is not next to it). Score it: "
            f"{score_command(path)}{_or_convert(path)}"
        )
    return [provenance]


def _or_convert(path: Path) -> str:
    """Say what to type if another program wrote a file; nothing where it is a run's."""
    if is_of_a_run(path):
        return ""
    return f"; if another program wrote it: {score_command(path, None, '--convert')}"


def _remedy(folder: Path) -> str:
    try:
        prediction_files([folder])
    except PredictionError:
        return NAME_RUNS
    return f"score its prediction files: python run_findit.py score {shlex.quote(str(folder))}"


def load_run(provenance: Path, keep: RowData = RowData.DETAILS) -> Run:
    """Load the run of one ``…_provenance.json``; raises as :func:`load_runs`."""
    files = run_of(provenance)
    details = files.details
    try:
        stored = read_provenance(provenance)
        variant = _variant(provenance, stored)
        read = None if keep is RowData.DETAILS else _read_sums(stored, variant, files)
        read = read or _read_rows(stored, variant, details)
    except FileNotFoundError:
        raise RunError(f"{details} is missing; {_again(files)}") from None
    except ScoreFileError as error:
        raise RunError(f"{error}; {_again(files)}") from None
    except DatasetNameError as error:
        raise RunError(
            f"{provenance}: {error}; if the dataset was imported and is removed, import it again "
            "under its name, else move the run away"
        ) from None
    run = Run(
        model=model_with_mark(stored.model, files.mark),
        variant=variant,
        path=provenance.with_name(stored.predictions.file),
        rows=read.rows,
        provenance=_with_details(stored, read),
        random=read.random,
        mark=files.mark,
    )
    _check(run, stored.totals, provenance)
    if keep is RowData.DETAILS:
        return run
    table = run.rows
    if not isinstance(table, RowTable):
        table = table_of(run.rows, with_events(run.benchmark.errors, run.rows))
    return replace(run, rows=table, details=details)


class _ReadRows(NamedTuple):
    """The rows of a run, and what else its details say."""

    rows: Sequence[ScoredRow]
    shown: Mapping[int, Shown]  # The images of rows of which they are known
    costs: RunCosts
    random: RandomRows | None = None


def _read_rows(stored: Provenance, variant: DatasetVariant, details: Path) -> _ReadRows:
    rows = tuple(stored_rows(details))
    random = None
    if stored.reviews is not None:
        random = stored.reviews.random_rows(rows, benchmark_of(variant).errors)
    shown = {row.index: shown_in(row.details.get(SHOWN_COLUMN)) for row in rows}
    return _ReadRows(
        rows=rows,
        shown={index: images for index, images in shown.items() if images},
        costs=stored.costs if _has_costs(stored) else _sum_of_costs(rows),
        random=random,
    )


def _has_costs(stored: Provenance) -> bool:
    """Tell whether the costs of its answers are added up; some versions did not."""
    return stored.costs != RunCosts()


def _sum_of_costs(rows: Iterable[ScoredRow]) -> RunCosts:
    return sum_up([cost_in(row.details) for row in rows if not row.failed])


def _with_details(stored: Provenance, read: _ReadRows) -> Provenance:
    """Complete a provenance by what the details say; its totals were for checking these."""
    rows = frozenset(indices(read.rows))
    return replace(stored, costs=read.costs, rows=rows, shown=read.shown, totals={}, metrics={})


def _read_sums(stored: Provenance, variant: DatasetVariant, files: RunFiles) -> _ReadRows | None:
    """Read rows straight into columns; None where a score needs more of them, or is damaged."""
    in_sums = benchmark_of(variant).errors.in_sums
    if not _has_costs(stored) or stored.reviews is not None or not in_sums:
        return None
    sums = read_sums(files) or sums_in_details(read_bytes(files.details))
    return None if sums is None else _ReadRows(sums.rows, sums.shown, stored.costs)


def read_details(run: Run, places: Collection[int] | None = None) -> Sequence[ScoredRow]:
    """Return rows with their details, which are read again where the run is without them.

    ``places`` are indices among its rows, ascending (None: all of them).

    Raises:
        RunError: the details are gone, or damaged.
    """
    selected = range(len(run.rows)) if places is None else frozenset(places)
    if run.details is None:
        return [row for at, row in enumerate(run.rows) if at in selected]
    try:
        return list(stored_rows(run.details, selected))
    except FileNotFoundError:
        raise RunError(f"{run.details} is missing; {_again(run.files, run.variant.name)}") from None
    except ScoreFileError as error:
        raise RunError(f"{error}; {_again(run.files, run.variant.name)}") from None


def with_details(run: Run) -> Run:
    """Return the run with the details of all its rows; raises as :func:`read_details`."""
    return replace(run, rows=tuple(read_details(run)), details=None)


def _variant(provenance: Path, stored: Provenance) -> DatasetVariant:
    """Parse what was asked; the error names a plug-in that is not installed."""
    try:
        return parse_dataset(stored.variant["name"])
    except DatasetNameError as error:
        missing = plugin_conflicts(stored.plugins, installed_plugins())
        if missing:
            raise PluginMissingError(f"{provenance}: {missing[0]}") from error
        raise


def _again(files: RunFiles, dataset: str | None = None) -> str:
    flags = ["--reviews", "FILE"] if REVIEWED in files.mark else []
    return f"score it again: {score_command(files.predictions, dataset, *flags)}"


def _sums_by_name(rows: Sequence[ScoredRow]) -> Mapping[str, float]:
    """Return the sums of all rows and their parts, without those of slices."""
    if isinstance(rows, RowTable):
        return {str(name): total for name, total in sum_rows(replace(rows, slices={})).items()}
    return add_up(sums for row in rows for sums in (row.sums, *row.parts.values()))


def _check(run: Run, recorded: Mapping[str, float], provenance: Path) -> None:
    """Refuse details, provenance and predictions that are not of one scoring."""
    again = _again(run.files, run.variant.name)
    sums = _sums_by_name(run.rows)
    for name in {**recorded, **sums}:
        total = recorded.get(name)
        actual = sums.get(name, 0)
        if total is None or not isclose(total, actual, rel_tol=1e-9, abs_tol=1e-9):
            raise RunError(
                f"{provenance}: totals.{name} is {total}, but the details next to it "
                f"add up to {actual}; {again}"
            )
    if run.path.is_file() and file_sha256(run.path) != run.provenance.predictions_sha256:
        raise RunError(f"{run.path}: changed after it was scored; {again}")
