"""Scored runs: what statistics, leaderboard and report read, and nothing else.

A run is one prediction file that was scored: ``<stem>_provenance.json`` and
``<stem>_details.jsonl`` beside it, as :func:`.score_files.write_score` leaves them.  The model is
not asked and the annotation table is not needed.  Every score becomes one frozen :class:`Run`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from math import isclose
from pathlib import Path
from typing import Any, TypeVar

from ..benchmarks import benchmark_of, parse
from ..core.benchmark import Benchmark
from ..core.error_analysis import with_events
from ..core.files import file_sha256
from ..core.identity import GIVEN
from ..core.metric import metric_values
from ..core.predictions import PredictionError
from ..core.question import Question, QuestionError
from ..core.run_files import PROVENANCE, files_below, marked, run_of
from ..core.scored_row import RowTable, ScoredRow, add_up, failures, table_of, totals_of
from .prediction_names import prediction_files, score_command
from .provenance import Provenance, provenance_from, read_provenance
from .run_identity import plugin_conflicts
from .score_files import read_details_line


class RowData(Enum):
    """What is kept of the rows of a run."""

    DETAILS = "everything"
    QUERY_SCORES = "what figures rest on, and how good every answer is"
    SUMS = "what figures rest on: sums and slices, without the details"


class RunError(ValueError):
    """A run that cannot be read; the message names the file, and what to do."""


@dataclass(frozen=True)
class Run:
    """One scored run: a model over one question.  ``path`` is its prediction file.

    ``details`` is the file that the details of the rows lie in where they were not kept
    (:class:`RowData`); :func:`read_details` reads them again.
    """

    model: str
    question: Question
    path: Path
    rows: Sequence[ScoredRow]
    provenance: Provenance
    details: Path | None = None

    def __repr__(self) -> str:
        """The same, without the rows: there are thousands."""
        return f"Run({self.model} on {self.question.name}, {len(self.rows)} queries)"

    @property
    def benchmark(self) -> Benchmark:
        return benchmark_of(self.question)

    @cached_property
    def sums(self) -> Mapping[str, float]:
        """The sums of all rows, of their slices too."""
        return totals_of(self.rows)

    @cached_property
    def metric_values(self) -> Mapping[str, float | None]:
        """The figures in percent, by the names of metrics."""
        return metric_values(self.benchmark.metrics, self.sums)

    @property
    def query_scores(self) -> list[float]:
        """How good every answer is, in percent, in the order of the rows."""
        if isinstance(self.rows, RowTable) and self.rows.query_scores is not None:
            known: list[float] = self.rows.query_scores.tolist()
            return known
        return list(map(self.benchmark.query_score, self.rows))

    @property
    def other_space(self) -> bool:
        """Whether it was scored in another space than it recorded; its model's name says so."""
        return any(f"({GIVEN}" in space for space in self.provenance.spaces)

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return failures(self.rows)


class PluginMissingError(RunError):
    """A run is of a plug-in that is not here; the message says which, and how to have it."""


def load_runs(
    paths: Iterable[Path],
    left_out: Callable[[PluginMissingError], None] | None = None,
    keep: RowData = RowData.DETAILS,
) -> list[Run]:
    """The scored runs of prediction files and folders, each once, by model and variant.

    Args:
        paths: prediction files, or folders that are searched to any depth.
        left_out: is told of the runs whose plug-in is not here, where there are others (None: such
            a run is an error).
        keep: what of their rows; boards of many runs do not fit with their details.

    Raises:
        FileNotFoundError: a path is not there.
        RunError: a prediction file without a score, a folder without any, files that do not hold
            what :func:`.score_files.write_score` leaves, or a score of other predictions.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        for provenance in _provenances(path):
            # VLMEvalKit links files of a run's folder into the model's: one run, two paths.
            found.setdefault(provenance.resolve(), provenance)
    runs, missing = [], []
    rows = _Shared()
    for path in found.values():
        try:
            run = load_run(path, keep)
            runs.append(replace(run, provenance=_sharing(run.provenance, rows)))
        except PluginMissingError as error:
            missing.append(error)
    if missing and (left_out is None or not runs):
        raise missing[0]
    for one in missing:
        assert left_out is not None
        left_out(one)
    return sorted(runs, key=lambda run: (run.model, run.question.name, str(run.path)))


T = TypeVar("T")


class _Shared(dict[Any, Any]):
    """The first of equal values: runs over the same rows share what they say of them."""

    def of(self, value: T) -> T:
        found: T = self.setdefault(value, value)
        return found


def _sharing(basis: Provenance, shared: _Shared) -> Provenance:
    run = basis.identity
    if run is not None and run.rows is not None:
        run = replace(run, rows=shared.of(run.rows))
    return replace(basis, rows=shared.of(basis.rows), identity=run)


def _provenances(path: Path) -> list[Path]:
    if path.is_dir():
        inside = sorted(one for one in files_below(path) if one.name.endswith(PROVENANCE))
        if not inside:
            raise RunError(f"{path}: no scored run in it (no *{PROVENANCE}); {_how_to_have(path)}")
        return inside
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: no such file or folder; name the --work-dir of runs, or {_EXAMPLE}"
        )
    beside = run_of(path).provenance
    if not beside.is_file():
        raise RunError(
            f"{path}: not scored yet ({beside.name} is not beside it); score it with: "
            f"{score_command(path)}"
        )
    return [beside]


_EXAMPLE = "make some with: python run_findit.py demo"


def _how_to_have(folder: Path) -> str:
    """What to type where a folder has no scored run."""
    try:
        prediction_files([folder])
    except PredictionError:
        return f"name the --work-dir of runs, or {_EXAMPLE}"
    return f"score its prediction files: python run_findit.py score {shlex.quote(str(folder))}"


def load_run(provenance: Path, keep: RowData = RowData.DETAILS) -> Run:
    """The run of one ``…_provenance.json``; see :func:`load_runs` for what it raises."""
    files = run_of(provenance)
    details = files.details
    try:
        values = read_provenance(provenance.read_text(encoding="utf-8"))
        question = _question(provenance, values)
        rows = tuple(_rows(details))
        rests_on = provenance_from(values, rows)
        predictions = provenance.with_name(values["predictions"]["file"])
        run = Run(marked(str(values["model"]), files.mark), question, predictions, rows, rests_on)
    except FileNotFoundError:
        raise RunError(f"{details} is missing; {_again(files.predictions)}") from None
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        what = f"no key {error}" if isinstance(error, KeyError) else str(error)
        raise RunError(f"{provenance}: {what}; {_again(files.predictions)}") from None
    _check(run, values, provenance)
    if keep is RowData.DETAILS:
        return run
    counted = with_events(run.benchmark.errors, rows)
    table = table_of(rows, counted, run.query_scores if keep is RowData.QUERY_SCORES else None)
    return replace(run, rows=table, details=details)


def read_details(run: Run, places: Collection[int] | None = None) -> Sequence[ScoredRow]:
    """Rows with their details, which are read again where they were not kept.

    Args:
        run: a scored run.
        places: of the wanted ones among its rows, ascending (None: all of them).

    Raises:
        RunError: the details are gone, or are not those any more that the run was read from.
    """
    wanted = None if places is None else frozenset(places)
    known = [row for at, row in enumerate(run.rows) if wanted is None or at in wanted]
    if run.details is None:
        return known
    try:
        found = list(_rows(run.details, wanted))
    except FileNotFoundError:
        raise RunError(f"{run.details} is missing; {_again(run.path, run.question.name)}") from None
    if [replace(row, details={}) for row in found] != known:
        raise RunError(f"{run.details}: changed after it was read; start this command again")
    return found


def with_details(run: Run) -> Run:
    """The run with the details of all its rows; see :func:`read_details`."""
    return replace(run, rows=tuple(read_details(run)), details=None)


def _question(provenance: Path, values: Mapping[str, Any]) -> Question:
    """What was asked; where it is a plug-in's that is not here, the error says which one."""
    try:
        return parse(values["variant"]["name"])
    except QuestionError as error:
        for other in plugin_conflicts(values.get("plugins", {})):
            raise PluginMissingError(f"{provenance}: {other}") from error
        raise


def _again(predictions: Path, dataset: str | None = None) -> str:
    return f"score it again: {score_command(predictions, dataset)}"


def _check(run: Run, values: Mapping[str, Any], provenance: Path) -> None:
    """Details, provenance and predictions must be of one scoring."""
    expected = values["totals"]
    found = add_up(sums for row in run.rows for sums in (row.sums, *row.parts.values()))
    for name in {**expected, **found}:
        said, is_ = expected.get(name), found.get(name, 0)
        number = isinstance(said, (int, float))
        if not number or not isclose(said, is_, rel_tol=1e-9, abs_tol=1e-9):
            raise RunError(
                f"{provenance}: totals.{name} is {said}, but the details beside it "
                f"add up to {is_}; {_again(run.path, run.question.name)}"
            )
    if run.path.is_file() and file_sha256(run.path) != run.provenance.predictions_sha256:
        raise RunError(
            f"{run.path}: changed after it was scored; {_again(run.path, run.question.name)}"
        )


def _rows(details: Path, wanted: Collection[int] | None = None) -> Iterator[ScoredRow]:
    """The rows of a file, or those of them at the wanted places."""
    with details.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if wanted is not None and number - 1 not in wanted:
                continue
            try:
                yield read_details_line(line)
            except KeyError as error:
                raise RunError(
                    f"{details}, line {number}: no key {error}, as before this version; "
                    + _again(run_of(details).predictions)
                ) from None
            except (TypeError, ValueError) as error:
                raise RunError(f"{details}, line {number}: {error}") from None
