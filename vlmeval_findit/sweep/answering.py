"""One model's part of a sweep: its calls are made, kept, and its cells written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from ..benchmarks.findit.formats import Format
from ..core.identity import Answering, Described
from ..core.question import Question
from ..core.work import Answer
from .batch_ledger import Ledger, refuse_calls_in_batches
from .batches import BatchExecutor
from .calls import Call, ImageHash, keys_of
from .cell_files import finish
from .config import ModelEntry, Sweep
from .executors import Executor
from .finished import Memory
from .journal import Journal
from .journal_lines import Record
from .keeping import Calls, Keeping, Unanswered, Waiting, answer_calls, calls_left, count_failed
from .outputs import Output, begin, found_here, made_before, record_of
from .plan import UnitSizes, make_plan, unfinished, units
from .results import Result, result_of
from .stopping import Stopping


class StoppedError(RuntimeError):
    """A sweep was asked to stop; finished calls are in the journal."""


class ModelStoppedError(RuntimeError):
    """A model said that no further call should be made; ``results`` are its finished cells."""

    def __init__(self, model: str, answer: Answer, results: list[Result]) -> None:
        why = answer.stop.value if answer.stop else "asked to"
        super().__init__(f"{model}: stopped, {why}: {answer.error}")
        self.stop = answer.stop
        self.results = results


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


class Planned(NamedTuple):
    """How much there is to do for a model; so many of the calls were made before.

    Equal calls count once, but in cells that were finished before, which nobody looked into.
    """

    cells: int
    calls: int
    finished: int


class Watcher(Protocol):
    """Who is told how a sweep goes."""

    def planned(self, model: str, planned: Planned) -> None:
        """A model's work begins."""

    def answered(self, answers: Sequence[Answer]) -> None:
        """Calls were made."""

    def took(self, model: str, servers: Mapping[str, int]) -> None:
        """Calls were made; how many at once each of its servers takes."""

    def scored(self, result: Result) -> None:
        """A cell's files are written."""


PickWinner = Callable[[Sequence[Result]], Format]
"""The best format among results of one model."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a sweep runs in."""

    host: Host
    watcher: Watcher
    stop: Stopping
    pick: PickWinner


@dataclass(frozen=True, slots=True)
class Engine:
    """All that the calls of a sweep need: whatever is asked, of whichever model.

    ``opened`` gives the journal, which is not opened before it is needed; ``memory`` are the cells
    that were finished before.
    """

    sweep: Sweep
    around: Surroundings
    opened: Callable[[], Journal]
    hashes: ImageHash
    memory: Memory

    @property
    def journal(self) -> Journal:
        return self.opened()


Made = Callable[[int, Output, Sequence[str]], None]
"""Takes the place of an output whose calls were all made, the output, and the keys of its rows."""


def run_model(
    engine: Engine, entry: ModelEntry, outputs: Sequence[Output], known: Sequence[Result] = ()
) -> list[Result]:
    """Make the calls of one model's cells; every cell is written when its last call was made.

    ``known`` are the results of others of its cells, which were finished before: they are told, and
    nothing more.

    Raises:
        ModelStoppedError: it said that no further call should be made.
        JournalError: replies cannot be kept any more.
        StoppedError: somebody asked to stop.
    """
    written: dict[int, Result] = {}

    def write(at: int, output: Output, keys: Sequence[str]) -> None:
        written[at] = written_result(engine, output, keys)
        engine.memory.keep(output, written[at])

    if known and not outputs:
        _tell(engine, entry, Planned(0, 0, 0), known)
        return []
    last = ask(engine, entry, outputs, engine.around.host.executor(entry), write, known)
    results = [written[at] for at in sorted(written)]
    if last is not None:
        raise ModelStoppedError(entry.name, last, results)
    return results


def _tell(engine: Engine, entry: ModelEntry, work: Planned, known: Sequence[Result]) -> None:
    rows = sum(result.rows for result in known)
    whole = Planned(work.cells + len(known), work.calls + rows, work.finished + rows)
    engine.around.watcher.planned(entry.name, whole)
    for result in known:
        engine.around.watcher.scored(result)


def written_result(engine: Engine, output: Output, keys: Sequence[str]) -> Result:
    """Write the files of a cell whose calls were all made."""
    failed = count_failed(output.cell, keys, engine.journal)
    result = replace(result_of(finish(output, keys, engine.journal), output.path), failed=failed)
    engine.around.watcher.scored(result)
    return result


def submit(engine: Engine, entry: ModelEntry, outputs: Sequence[Output]) -> None:
    """Have the calls of a model on their way in batches, before another model is waited for.

    Raises:
        ValueError: some are on their way in other batches.
    """
    executor = engine.around.host.executor(entry)
    if isinstance(executor, BatchExecutor):
        plan = make_plan([output.cell for output in outputs], engine.hashes)
        left = Unanswered(engine.journal, engine.sweep.confidences)
        executor.submit(unfinished(units(plan.calls, UnitSizes()), left), engine.around.stop)


def ask(
    engine: Engine,
    entry: ModelEntry,
    outputs: Sequence[Output],
    executor: Executor,
    made: Made,
    known: Sequence[Result] = (),
) -> Answer | None:
    """Make the calls of one model's cells that were not made before.

    Returns the answer after which no further call should be made, if there was one.

    Raises:
        ValueError: calls are on their way in batches, and would be paid twice.
        JournalError: replies cannot be kept any more.
        StoppedError: somebody asked to stop.
    """
    journal, around = engine.journal, engine.around
    plan = make_plan([output.cell for output in outputs], engine.hashes)
    unanswered = Unanswered(journal, engine.sweep.confidences)
    ledger = Ledger(journal.path)
    left = calls_left(plan, journal, unanswered, ledger.live)
    if engine.sweep.batch is None:
        refuse_calls_in_batches(ledger, left.noted)
    waiting = Waiting(left.waits)
    complete = frozenset(waiting.complete())
    outputs = [
        output
        if at in complete
        else found_here(output, around.host.on_this_machine(entry, output.identity.answering))
        for at, output in enumerate(outputs)
    ]
    known_keys = [
        keys_of(output.cell, engine.hashes) if at in left.known else ()
        for at, output in enumerate(outputs)
    ]
    outputs = [
        begin(made_before(output, keys, journal))
        for output, keys in zip(outputs, known_keys, strict=True)
    ]
    _tell(engine, entry, Planned(len(plan.cells), left.calls, left.calls - left.left), known)
    done = 0

    def write(at: int) -> None:
        nonlocal done
        made(at, outputs[at], plan.keys(at))
        done += 1

    by = {id(output.cell): output.identity for output in outputs}

    def record(call: Call, answer: Answer) -> Record:
        identity = by[id(call.cell)]
        return record_of(call.cell, call.row, answer, call.asked, identity, call.cell.confidences)

    keeping = Keeping(journal, waiting, around.watcher.answered, write, record)
    keeping.write_complete()
    inference = engine.sweep.inference
    sizes = UnitSizes(inference.variants, inference.batch_size)
    answer_calls(Calls(plan, unanswered, sizes), executor, keeping, around.stop)
    around.watcher.took(entry.name, executor.took)
    if keeping.error is not None:
        raise keeping.error
    if keeping.last is None and around.stop.is_set() and done < len(outputs):
        raise StoppedError(f"stopped; finished calls are in {journal.path}: run again to go on")
    return keeping.last
