"""One model's part of a sweep: its calls are made, kept, and its cells written."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from ..core.identity import Answering, Described
from ..core.question import Question
from ..core.work import Answer
from ..runs.cell_result import Result
from .backend import Backend, run_sync
from .batch_backend import BatchBackend
from .batch_ledger import Ledger
from .calls import Call, ImageHash, keys_of
from .cancel import CancelToken
from .cell_files import finished_cell
from .config import ModelEntry, Sweep
from .finished import FinishedCells
from .journal.lines import Record
from .journal.lookup import JournalView
from .journal.writer import Journal
from .outputs import Output, begin, found_here, made_before, record_of
from .plan import ItemSizes, make_plan
from .sink import Planned, ResultSink, Watcher
from .unanswered import OpenCalls, Unanswered, calls_left


class StoppedError(RuntimeError):
    """A sweep was asked to stop; finished calls are in the journal."""

    def __init__(self, journal: JournalView) -> None:
        super().__init__(f"stopped; finished calls are in {journal.path}: run again to go on")


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

    def answered_by(self, entry: ModelEntry, question: Question) -> object:
        """All that decides who answers, as JSON knows it, without loading or asking anything."""

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        """What a model's answers depend on beside messages: part of every key."""

    def describe(self, entry: ModelEntry, question: Question) -> Described:
        """Who answers, and in which space, as far as is known before anything is loaded."""

    def on_this_machine(self, entry: ModelEntry, found: Answering) -> Answering:
        """The same, when calls are going to be made: with what the machine and the hub say."""

    @property
    def version(self) -> Mapping[str, str]:
        """The program that the models are of, as identities record it."""

    def backend(self, entry: ModelEntry) -> Backend:
        """Who answers its calls; nothing is loaded before the first."""


def as_described(host: Host, entry: ModelEntry, question: Question) -> object:
    """What :meth:`Host.answered_by` says where describing a model loads nothing."""
    try:
        return [host.settings(entry), repr(host.describe(entry, question))]
    except ValueError as error:  # it is refused when it is checked
        return str(error)


@dataclass(frozen=True, slots=True)
class Context:
    """What a sweep runs in."""

    host: Host
    watcher: Watcher
    cancel: CancelToken


@dataclass(frozen=True, slots=True)
class Engine:
    """All that the calls of a sweep need: whatever is asked, of whichever model.

    ``opened`` gives the journal and ``checked`` the host, which are not looked at where every cell
    was finished before.
    """

    sweep: Sweep
    context: Context
    opened: Callable[[], Journal]
    checked: Callable[[], Host]
    hashes: ImageHash
    finished: FinishedCells

    @property
    def journal(self) -> Journal:
        return self.opened()

    def job(self, entry: ModelEntry, outputs: Sequence[Output], backend: Backend) -> Job:
        """The calls of a model's cells."""
        sweep, host = self.sweep, self.context.host
        return Job(
            outputs=outputs,
            backend=backend,
            journal=self.journal,
            hashes=self.hashes,
            unanswered=Unanswered(self.journal, sweep.confidences),
            sizes=ItemSizes(sweep.inference.variants, sweep.inference.batch_size),
            watcher=self.context.watcher,
            answering=lambda one: host.on_this_machine(entry, one.identity.answering),
        )


@dataclass(frozen=True, slots=True)
class Job:
    """Calls of one model: which, who answers them, and what becomes of the answers."""

    outputs: Sequence[Output]
    """Its cells."""
    backend: Backend
    journal: Journal
    hashes: ImageHash
    """Names the content of images."""
    unanswered: Container[str]
    """The keys of the calls that are made."""
    sizes: ItemSizes
    watcher: Watcher
    answering: Callable[[Output], Answering]
    """Who answers, with what only the machine that makes the calls knows."""
    begin: Callable[[Output], Output] = begin
    """Writes what a cell's run is."""
    finish: Callable[[Output], Result] | None = None
    """Writes the files of a cell whose calls were all made; a thread calls it."""
    known: Sequence[Result] = ()
    """The results of other cells of the model, which were finished before."""


class Answered(NamedTuple):
    """What came of a job."""

    outputs: Mapping[int, Output]
    """By its place, every cell whose calls were all made, with what the machine says of it."""
    results: Mapping[int, Result]
    """By its place, what came out of every cell that was finished."""
    last: Answer | None
    """The answer after which no further call should be made, if there was one."""


def answer(job: Job, cancel: CancelToken) -> Answered:
    """Make the calls of a model's cells that were not made before.

    Raises:
        IdentityError: the run is another than the one that was recorded.
        ValueError: calls are on their way in batches, and would be paid twice.
        JournalError: replies cannot be kept any more.
        StoppedError: somebody asked to stop.
        KeyboardInterrupt: somebody asked a second time.
    """
    journal, watcher, model = job.journal, job.watcher, job.outputs[0].cell.model
    plan = make_plan([output.cell for output in job.outputs], job.hashes)
    ledger = Ledger(journal)
    left = calls_left(plan, journal, job.unanswered, ledger.open)
    if isinstance(job.backend, BatchBackend):
        job.backend.ledger = ledger
    else:
        ledger.refuse_open(left.noted)
    outputs = [
        found_here(output, job.answering(output)) if waits else output
        for output, waits in zip(job.outputs, left.waits, strict=True)
    ]
    for at, output in enumerate(outputs):
        keys = keys_of(output.cell, job.hashes) if at in left.known else ()
        outputs[at] = job.begin(made_before(output, keys, journal))
    tell(watcher, model, job.known, Planned(len(outputs), left.calls, left.calls - left.left))
    identities = {id(output.cell): output.identity for output in outputs}

    def record(call: Call, answer: Answer) -> Record:
        cell = call.cell
        identity = identities[id(cell)]
        return record_of(cell, call.row, answer, call.asked, identity, cell.confidences)

    finish = job.finish
    sink = ResultSink(
        journal,
        left.waits,
        record,
        watcher,
        None if finish is None else lambda at: finish(outputs[at]),
    )
    # An interruption must not come between a reply and the journal.
    with cancel.shielded():
        calls = OpenCalls(plan, job.unanswered, job.sizes)
        run_sync(answer_calls(calls, job.backend, sink, cancel))
    watcher.took(model, job.backend.capacity)
    if sink.error is not None:
        raise sink.error
    if sink.last is None and cancel.requested and len(sink.complete) < len(outputs):
        raise StoppedError(journal)
    return Answered({at: outputs[at] for at in sink.complete}, sink.results, sink.last)


async def answer_calls(
    calls: OpenCalls, backend: Backend, sink: ResultSink, cancel: CancelToken
) -> None:
    """Make the calls that are left of a plan, and hand their answers to a sink.

    The sink says in the end whether all could be made and kept.
    """
    # The others of a run go on where one model ends.
    own = CancelToken(cancel)
    async with sink.open(cancel):
        for result in calls.unreadable():
            sink.take(result)
        if sink.ended:
            return
        async with aclosing(backend.answer(calls, own)) as results:
            async for result in results:
                sink.take(result)
                if sink.ended:
                    # What is on its way is paid for: it comes, and is kept where there is room.
                    own.request()


# --- the cells of a sweep -------------------------------------------------------------------------


def left_of(cells: Iterable[Output | Result]) -> list[Output]:
    """The cells that were not finished before."""
    return [one for one in cells if isinstance(one, Output)]


def run_model(engine: Engine, entry: ModelEntry, cells: Sequence[Output | Result]) -> list[Result]:
    """Make the calls of one model's cells; every cell is written when its last call was made.

    The results of cells that were finished before are told, and nothing more.

    Raises:
        ModelStoppedError: it said that no further call should be made.
        JournalError: replies cannot be kept any more.
        StoppedError: somebody asked to stop.
    """
    outputs, known = left_of(cells), [one for one in cells if isinstance(one, Result)]
    if not outputs:
        if known:
            tell(engine.context.watcher, entry.name, known, Planned(0, 0, 0))
        return known
    job = engine.job(entry, outputs, engine.context.host.backend(entry))
    found = answer(
        replace(job, known=known, finish=partial(finished, engine)), engine.context.cancel
    )
    by_path = {one.path: one for one in (*known, *found.results.values())}
    results = [by_path[one.path] for one in cells if one.path in by_path]
    if found.last is not None:
        raise ModelStoppedError(entry.name, found.last, results)
    return results


def tell(watcher: Watcher, model: str, known: Sequence[Result], left: Planned) -> None:
    """Say what is planned of a model, and the results of its cells that were finished before."""
    rows = sum(result.rows for result in known)
    cells, calls, made = left
    watcher.planned(model, Planned(cells + len(known), calls + rows, made + rows))
    for result in known:
        watcher.scored(result)


def finished(engine: Engine, output: Output) -> Result:
    """Write the files of a cell whose calls were all made."""
    result = finished_cell(output, engine.hashes, engine.journal)
    engine.finished.keep(output, result)
    return result


def submit(engine: Engine, entry: ModelEntry, outputs: Sequence[Output]) -> None:
    """Have the calls of a model on their way in batches, before another model is waited for.

    Raises:
        ValueError: some are on their way in other batches.
    """
    backend, cancel = engine.context.host.backend(entry), engine.context.cancel
    if isinstance(backend, BatchBackend):
        plan = make_plan([output.cell for output in outputs], engine.hashes)
        left = Unanswered(engine.journal, engine.sweep.confidences)
        backend.ledger = Ledger(engine.journal)
        with cancel.shielded():
            run_sync(backend.submit(OpenCalls(plan, left, ItemSizes()), cancel))
