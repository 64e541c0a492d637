"""A whole sweep: stage by stage, model by model, from its file to scores."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import Any

from ..benchmarks import benchmark_of, load
from ..benchmarks.findit.formats import Format
from ..benchmarks.findit.grid import formats, variants
from ..core.image_checks import rows_to_leave_out
from ..core.lock import Watch
from ..core.places import image_folder
from ..core.question import AnyTask, Question
from ..core.settings import settings_from
from ..core.work import Stop
from ..runs.cell_result import Result
from ..runs.format_file import best_format
from .answering import (
    Context,
    Engine,
    Host,
    ModelStoppedError,
    left_of,
    run_model,
    submit,
)
from .calls import Cell, Prompts, prompts_of, settings_of
from .cell_files import adopt, clean_up
from .config import ModelEntry, Sweep, questions_of
from .finished import FinishedCells
from .image_hashes import RememberedHashes
from .journal.errors import lock_of_a_sweep, lock_path
from .journal.writer import Journal
from .outputs import Output, prediction_path, prepare_output
from .racing import Racing

log = logging.getLogger(__name__)


IMAGE_HASHES = ".image_hashes"
"""The file of a work dir in which the hashes of its images are remembered; it may be deleted."""


class UnfinishedError(RuntimeError):
    """Models of a sweep were stopped, the others went on; ``results`` are all finished cells."""

    def __init__(self, results: Sequence[Result], stopped: Sequence[ModelStoppedError]) -> None:
        super().__init__("\n".join(map(str, stopped)))
        self.results = results
        self.spent = any(one.stop is Stop.SPENT for one in stopped)
        self.later = all(one.stop is Stop.LATER for one in stopped)


# --- cells ----------------------------------------------------------------------------------------


class Tables:
    """Tasks and their usable rows, each table and each folder looked at once.

    Args:
        skip_missing: leave out rows without a usable image; None does not look at images at all.
    """

    def __init__(self, skip_missing: bool | None) -> None:
        self._skip = skip_missing
        self._tasks: dict[_Rows, AnyTask] = {}
        self._left_out: dict[_Rows, frozenset[int]] = {}
        self._prompts: dict[tuple[Question, str | None], Prompts] = {}
        self._rows: dict[tuple[int, ...], tuple[int, ...]] = {}

    def task(self, question: Question) -> AnyTask:
        """The task of a question.

        Raises:
            FileNotFoundError: its table is nowhere.
            TableError: its table cannot be read.
        """
        at = _rows_of(question)
        if at not in self._tasks:
            self._tasks[at] = load(question.name)
        return replace(self._tasks[at], name=question.name, question=question)

    def cell(
        self, model: str, question: Question, limit: int | None, given: Mapping[str, Any]
    ) -> Cell:
        """A model over the first ``limit`` usable rows of a question.

        Raises:
            ImageError: images are missing, and rows without are not to be left out.
            ValueError: nothing says how this model is asked.
        """
        left_out = self._rows_left_out(question)
        prompts = self._prompts_for(question, model)
        queries = prompts.task.queries
        rows = tuple(index for index in queries if index not in left_out)[:limit]
        return Cell(
            model=model,
            prompts=prompts,
            rows=self._rows.setdefault(rows, rows),  # one for all formats of a table
            left_out=tuple(sorted(left_out)),
            settings=settings_of(question, given),
        )

    def _prompts_for(self, question: Question, model: str) -> Prompts:
        """The messages of a question; models that are asked alike share them."""
        for asked in (model, None):
            if (question, asked) in self._prompts:
                return self._prompts[question, asked]
        task = benchmark_of(question).for_model(self.task(question), model)
        made = prompts_of(task)
        self._prompts[question, None if task.before is None else model] = made
        return made

    def _rows_left_out(self, question: Question) -> frozenset[int]:
        at = _rows_of(question)
        if at not in self._left_out:
            self._left_out[at] = frozenset()
            if self._skip is not None:
                queries = list(self.task(question).queries.values())
                folder = image_folder(question.images)
                self._left_out[at] = rows_to_leave_out(queries, folder, self._skip)
        return self._left_out[at]


_Rows = tuple[object, ...]


def _rows_of(question: Question) -> _Rows:
    """What says which rows a question asks, of whatever benchmark."""
    benchmark = benchmark_of(question)
    return benchmark.name, *benchmark.rows(question)


def cells_of(
    sweep: Sweep, entry: ModelEntry, tables: Tables, wanted: Sequence[Format]
) -> list[Cell]:
    """The cells of a model in some formats, table by table, then questions of their own; of the
    model's settings they have none.
    """
    asked = questions_of(sweep, wanted)
    cells = (tables.cell(entry.name, question, sweep.limit, {}) for question in asked)
    return [replace(cell, confidences=sweep.confidences) for cell in cells]


Chosen = Mapping[str, Format]
"""By model the one format that it is asked in."""


def wanted_formats(
    sweep: Sweep, stage: int, model: str, chosen: Chosen | None, winner: Format | None
) -> list[Format]:
    """The formats of a model in a stage: the one that was chosen for it, else those of the axes.

    Raises:
        ValueError: formats were chosen, but none for this model.
    """
    if chosen is None:
        return list(formats(sweep.stages[stage].after(winner)))
    if model not in chosen:
        raise ValueError(
            f"no format was chosen for {model!r} (there are: {', '.join(chosen) or 'none'}): "
            f"find one with: run_findit.py search --model {model}"
        )
    return [chosen[model]]


# --- the run --------------------------------------------------------------------------------------


def run_sweep(sweep: Sweep, context: Context, chosen: Chosen | None = None) -> list[Result]:
    """Make every call of a sweep that was not made before, and write all its files.

    Raises:
        ValueError: something was refused before the first call.
        JournalError: replies cannot be kept any more, for example on a full disk.
        UnfinishedError: a model said that no further call of it should be made.
        StoppedError: somebody asked to stop.
        KeyboardInterrupt: somebody asked a second time.
    """

    @cache
    def checked() -> Host:
        for entry in sweep.models:
            context.host.check(entry)
        return context.host

    if not sweep.work_dir.exists():
        checked()  # nothing is finished
    own = sweep.work_dir / ".sweep.lock"
    watch = Watch(own, lock_path(sweep.journal))
    with lock_of_a_sweep(own, watch), ExitStack() as stack:
        for entry in sweep.models:
            clean_up(sweep.work_dir / entry.name)
        hashes = RememberedHashes(sweep.work_dir / IMAGE_HASHES)
        stack.callback(hashes.save)

        @cache
        def opened() -> Journal:
            return stack.enter_context(Journal(sweep.journal, watch=watch))

        engine = Engine(sweep, context, opened, checked, hashes, FinishedCells(hashes))
        results = _stages(engine, chosen)
        if opened.cache_info().currsize and not any(result.failed for result in results):
            engine.journal.pack()
        return results


def _stages(engine: Engine, chosen: Chosen | None) -> list[Result]:
    sweep, tables = engine.sweep, Tables(engine.sweep.skip_missing)
    race = sweep.race
    races = {one.name: Racing(engine, one, race) for one in sweep.models} if race else {}
    results: list[Result] = []
    stopped: dict[str, ModelStoppedError] = {}
    of_axes: set[Question] = set()
    for stage in range(len(sweep.stages) if chosen is None else 1):
        prepared = []
        for entry in sweep.models:
            if entry.name in stopped:
                continue
            racing = races.get(entry.name)
            winner = _winner(entry, results, racing) if stage else None
            wanted = wanted_formats(sweep, stage, entry.name, chosen, winner)
            of_axes.update(variants(sweep.tables, wanted, sweep.views))
            done = {one.question for one in results if one.model == entry.name}
            done.update(racing.front if racing else ())
            cells = cells_of(sweep, entry, tables, wanted)
            work = _prepared(engine, entry, [one for one in cells if one.question not in done])
            prepared.append((entry, work))
        for _, work in prepared:
            for output in left_of(work):
                adopt(output, engine.journal, engine.hashes)
        if sweep.batch is not None and race is None and len(prepared) > 1:
            for entry, work in prepared:
                submit(engine, entry, left_of(work))
        for entry, work in prepared:
            try:
                found = _answered(engine, entry, work, of_axes, races.get(entry.name))
            except ModelStoppedError as error:
                log.error("%s", error)
                stopped[entry.name], found = error, error.results
            results += [replace(one, compared=one.question in of_axes) for one in found]
    if stopped:
        raise UnfinishedError(results, list(stopped.values()))
    return results


def _winner(entry: ModelEntry, results: Iterable[Result], racing: Racing | None) -> Format:
    """The format that is in front after the stages of a model that are done."""
    if racing is not None:
        return racing.winner
    return best_format([one for one in results if one.model == entry.name and one.compared])


def _answered(
    engine: Engine,
    entry: ModelEntry,
    work: Sequence[Output | Result],
    of_axes: Container[Question],
    racing: Racing | None,
) -> list[Result]:
    """The results of a model in a stage."""
    if racing is None:
        return run_model(engine, entry, work)
    others = [one for one in left_of(work) if one.cell.question not in of_axes]
    raced = [one for one in left_of(work) if one.cell.question in of_axes]
    return run_model(engine, entry, others) + racing.stage(raced)


def _prompt_hash(cell: Cell) -> str | None:
    """The hash of a cell's messages; None where those that all models share are others."""
    return cell.prompts.hash if cell.task.before is None else None


def _prepared(engine: Engine, entry: ModelEntry, cells: Sequence[Cell]) -> list[Output | Result]:
    """Of each cell of a model in a stage its result, if it was finished before, else its output."""
    sweep, host = engine.sweep, engine.context.host
    given = {"space": entry.space, "reads_like": entry.reads_like, "force": sweep.force}
    settings = settings_from(given)
    found: list[Output | Result] = []
    for cell in cells:
        path = prediction_path(sweep.work_dir, cell)
        if sweep.race is None:
            answered_by = host.answered_by(entry, cell.question)
            before = engine.finished.result(path, cell, settings, answered_by)
            if before is not None:
                found.append(before)
                continue
        checked = engine.checked()
        cell = replace(cell, settings=settings_of(cell.question, checked.settings(entry)))
        who, version = checked.describe(entry, cell.question), checked.version
        found.append(prepare_output(path, cell, settings, who, version, _prompt_hash(cell)))
    return found
