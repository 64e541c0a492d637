"""A whole sweep: stage by stage, model by model, from its file to scores."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from ..benchmarks import benchmark_of, load
from ..benchmarks.findit.formats import Format
from ..benchmarks.findit.grid import formats, variants
from ..core.identity import Answering, Described
from ..core.image_checks import rows_to_leave_out
from ..core.metric import figures
from ..core.places import image_folder
from ..core.question import AnyTask, Question
from ..core.settings import settings_from
from ..core.work import Answer, Stop
from ..runs.score import RunScore
from .calls import Call, Cell, ImageHash, ImageHashes, Prompts, prompts_of, settings_of
from .cell_files import adopt_others, clean_up, finish
from .config import ModelEntry, Sweep, questions_of
from .executors import Executor
from .journal import Journal
from .journal_errors import lock_of_a_sweep
from .journal_lines import Record
from .keeping import Calls, Keeping, Waiting, answer_calls
from .outputs import (
    Output,
    begin,
    found_here,
    made_before,
    prediction_path,
    prepare_output,
    record_of,
)
from .plan import Plan, UnitSizes, make_plan
from .stopping import Stopping

log = logging.getLogger(__name__)


class StoppedError(RuntimeError):
    """A sweep was asked to stop; finished calls are in the journal."""


class ModelStoppedError(RuntimeError):
    """A model said that no further call should be made; ``results`` are its finished cells."""

    def __init__(self, model: str, answer: Answer, results: list[Result]) -> None:
        why = answer.stop.value if answer.stop else "asked to"
        super().__init__(f"{model}: stopped, {why}: {answer.error}")
        self.stop = answer.stop
        self.results = results


class UnfinishedError(RuntimeError):
    """Models of a sweep were stopped, the others went on; ``results`` are all finished cells."""

    def __init__(self, results: Sequence[Result], stopped: Sequence[ModelStoppedError]) -> None:
        super().__init__("\n".join(map(str, stopped)))
        self.results = results
        self.spent = any(one.stop is Stop.SPENT for one in stopped)


class Host(Protocol):
    """What answers for the models of a sweep."""

    def check(self, entry: ModelEntry) -> None:
        """Refuse a model that cannot be asked, with a ValueError, before anything runs."""

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        """What a model's answers depend on beside messages: part of every key."""

    def describe(self, entry: ModelEntry, question: Question) -> Described:
        """Who answers, and in which space, as far as is known before anything is loaded."""

    def on_this_machine(self, entry: ModelEntry, found: Answering) -> Answering:
        """The same, when calls are going to be made: with what the machine and the hub say."""

    @property
    def version(self) -> Mapping[str, str]:
        """The program that the models are of, as identities record it."""

    def executor(self, entry: ModelEntry) -> Executor:
        """Who answers its calls; nothing is loaded before the first."""


class Watcher(Protocol):
    """Who is told how a sweep goes."""

    def planned(self, model: str, plan: Plan, finished: int) -> None:
        """A model's work begins; so many of its calls are in the journal."""

    def answered(self, answers: Sequence[Answer]) -> None:
        """Calls were made."""

    def took(self, model: str, servers: Mapping[str, int]) -> None:
        """Its calls were made; how many at once each of its servers takes."""

    def scored(self, result: Result) -> None:
        """A cell's files are written."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The score of one cell; ``path`` is its prediction file.

    ``compared``: its format is one of the axes', not that of a question which the sweep names.
    ``doctor`` says why its coordinate space is in doubt.
    """

    model: str
    question: Question
    sums: Mapping[str, float]
    rows: int
    failed: int
    path: Path
    compared: bool = True
    doctor: str | None = None

    @property
    def figures(self) -> Mapping[str, float | None]:
        """The figures in percent, by the names of metrics."""
        return figures(benchmark_of(self.question.name).metrics, self.sums)


def result_of(run: RunScore, path: Path) -> Result:
    """What is kept of a score in memory."""
    sums, rows, doctor = run.sums, len(run.rows), run.doctor
    return Result(run.model, run.task.question, sums, rows, run.failed, path, doctor=doctor)


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
        return Cell(
            model=model,
            prompts=prompts,
            rows=tuple(index for index in queries if index not in left_out)[:limit],
            left_out=tuple(sorted(left_out)),
            settings=settings_of(question, given),
        )

    def _prompts_for(self, question: Question, model: str) -> Prompts:
        """The messages of a question; models that are asked alike share them."""
        for asked in (model, None):
            if (question, asked) in self._prompts:
                return self._prompts[question, asked]
        task = benchmark_of(question.name).for_model(self.task(question), model)
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
    benchmark = benchmark_of(question.name)
    return benchmark.name, *benchmark.rows(question)


def cells_of(
    sweep: Sweep, entry: ModelEntry, tables: Tables, host: Host, wanted: Sequence[Format]
) -> list[Cell]:
    """The cells of a model in some formats, table by table, then questions of their own."""
    given = host.settings(entry)
    asked = questions_of(sweep, wanted)
    return [tables.cell(entry.name, question, sweep.limit, given) for question in asked]


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

PickWinner = Callable[[Sequence[Result]], Format]
"""The best format among results of one model."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a sweep runs in."""

    host: Host
    watcher: Watcher
    stop: Stopping
    pick: PickWinner


def run_sweep(sweep: Sweep, around: Surroundings, chosen: Chosen | None = None) -> list[Result]:
    """Make every call of a sweep that was not made before, and write all its files.

    Raises:
        ValueError: something was refused before the first call.
        JournalError: replies cannot be kept any more, for example on a full disk.
        UnfinishedError: a model said that no further call of it should be made.
        StoppedError: somebody asked to stop.
        KeyboardInterrupt: somebody asked a second time.
    """
    for entry in sweep.models:
        around.host.check(entry)
    with lock_of_a_sweep(sweep.work_dir / ".sweep.lock"):
        for entry in sweep.models:
            clean_up(sweep.work_dir / entry.name)
        with Journal(sweep.journal) as journal:
            return _stages(sweep, around, chosen, journal)


def _stages(
    sweep: Sweep, around: Surroundings, chosen: Chosen | None, journal: Journal
) -> list[Result]:
    tables, hashes = Tables(sweep.skip_missing), ImageHashes()
    results: list[Result] = []
    winners: dict[str, Format] = {}
    stopped: dict[str, ModelStoppedError] = {}
    for stage in range(len(sweep.stages) if chosen is None else 1):
        prepared = []
        cells_of_axes: set[Question] = set()
        going = [entry for entry in sweep.models if entry.name not in stopped]
        for entry in going:
            wanted = wanted_formats(sweep, stage, entry.name, chosen, winners.get(entry.name))
            cells_of_axes.update(variants(sweep.tables, wanted, sweep.views))
            done = {r.question for r in results if r.model == entry.name}
            cells = cells_of(sweep, entry, tables, around.host, wanted)
            cells = [cell for cell in cells if cell.question not in done]
            prepared.append((entry, _outputs(sweep, entry, cells, around.host)))
        for _, outputs in prepared:
            for output in outputs:
                adopt_others(output, journal, hashes)
        for entry, outputs in prepared:
            try:
                found = run_model(sweep, entry, outputs, journal, around, hashes)
            except ModelStoppedError as error:
                log.error("%s", error)
                stopped[entry.name] = error
                found = error.results
            results += [replace(one, compared=one.question in cells_of_axes) for one in found]
        if stage + 1 < len(sweep.stages):
            for entry in going:
                if entry.name not in stopped:
                    own = [r for r in results if r.model == entry.name and r.compared]
                    winners[entry.name] = around.pick(own)
    if stopped:
        raise UnfinishedError(results, list(stopped.values()))
    return results


def _outputs(sweep: Sweep, entry: ModelEntry, cells: Sequence[Cell], host: Host) -> list[Output]:
    given = {"space": entry.space, "reads_like": entry.reads_like, "force": sweep.force}
    settings = settings_from(given)
    return [
        prepare_output(
            prediction_path(sweep.work_dir, cell),
            cell,
            settings,
            host.describe(entry, cell.question),
            host.version,
        )
        for cell in cells
    ]


def run_model(
    sweep: Sweep,
    entry: ModelEntry,
    outputs: Sequence[Output],
    journal: Journal,
    around: Surroundings,
    hashes: ImageHash,
) -> list[Result]:
    """Make the calls of one model's cells; every cell is written when its last call was made.

    Raises:
        ModelStoppedError: it said that no further call should be made.
        JournalError: replies cannot be kept any more.
        StoppedError: somebody asked to stop.
    """
    plan = make_plan([output.cell for output in outputs], hashes)
    left = {call.key for call in plan.calls if call.key not in journal}
    waiting = Waiting(plan, left)
    complete = waiting.complete()
    outputs = [
        output
        if at in complete
        else found_here(output, around.host.on_this_machine(entry, output.identity.answering))
        for at, output in enumerate(outputs)
    ]
    outputs = [
        begin(made_before(output, keys, journal))
        for output, keys in zip(outputs, plan.keys, strict=True)
    ]
    around.watcher.planned(entry.name, plan, len(plan.calls) - len(left))
    written: dict[int, Result] = {}

    def write(at: int) -> None:
        run = finish(outputs[at], plan.keys[at], journal)
        written[at] = result_of(run, outputs[at].path)
        around.watcher.scored(written[at])

    by = {id(output.cell): output.identity for output in outputs}

    def record(call: Call, answer: Answer) -> Record:
        return record_of(call.cell, call.row, answer, call.asked, by[id(call.cell)])

    keeping = Keeping(journal, waiting, around.watcher.answered, write, record)
    keeping.write_complete()
    sizes = UnitSizes(sweep.inference.variants, sweep.inference.batch_size)
    executor = around.host.executor(entry)
    answer_calls(Calls(plan, left, sizes, hashes), executor, keeping, around.stop)
    around.watcher.took(entry.name, executor.took)
    results = [written[at] for at in sorted(written)]
    if keeping.error is not None:
        raise keeping.error
    if keeping.last is not None:
        raise ModelStoppedError(entry.name, keeping.last, results)
    if around.stop.is_set() and len(results) < len(outputs):
        raise StoppedError(f"stopped; finished calls are in {journal.path}: run again to go on")
    return results
