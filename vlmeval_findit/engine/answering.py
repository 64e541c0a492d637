"""One model's part of a sweep: its calls are made, kept, and its cells written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..benchmarks import benchmark_of
from ..benchmarks.findit.formats import Format
from ..core.identity import Answering, Described
from ..core.question import Question
from ..core.work import Answer
from .backend import Backend, run_sync
from .batch_ledger import Ledger, refuse_calls_in_batches
from .batches import BatchExecutor
from .calls import Call, ImageHash, keys_of
from .cancel import CancelToken
from .cell_files import finished_cell
from .cluster.replica import Sheet, sheet_of
from .config import ModelEntry, Sweep
from .executors import until
from .finished import Memory
from .journal.lines import Record
from .journal.writer import Journal
from .outputs import Output, begin, found_here, made_before, record_of
from .plan import ItemSizes, make_plan, unfinished, work_items
from .results import Result
from .sink import ResultSink, Waiting
from .unanswered import OpenCalls, Unanswered, calls_left


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

    def backend(self, entry: ModelEntry) -> Backend:
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
    stop: CancelToken
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


Made = Callable[[int, Output], None]
"""Takes the place of an output whose calls were all made, and the output."""


@runtime_checkable
class Cluster(Protocol):
    """What an executor can do beside that has other machines: it keeps its answers itself, beside
    the journal, and scores cells there.
    """

    def gets(self, sheet: Sheet) -> None:
        """The calls that come next are of these cells."""

    def opened(self) -> AbstractContextManager[None]:
        """It is started once for all that is done within."""

    def finished(self, places: Iterable[int], stop: CancelToken) -> Iterator[tuple[int, Result]]:
        """Write the files of cells, by their places, as far as it can."""


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
    if known and not outputs:
        _tell(engine, entry, Planned(0, 0, 0), known)
        return []
    backend = engine.around.host.backend(entry)
    if (cluster := _cluster(backend)) is not None:
        with cluster.opened():
            last, written = _on_cluster(engine, entry, outputs, backend, known)
    else:
        written = dict[int, Result]()

        def write(at: int, output: Output) -> None:
            written[at] = written_result(engine, output)
            engine.memory.keep(output, written[at])

        last = ask(engine, entry, outputs, backend, write, known)
    results = [written[at] for at in sorted(written)]
    if last is not None:
        raise ModelStoppedError(entry.name, last, results)
    return results


def _cluster(backend: Backend) -> Cluster | None:
    executor = getattr(backend, "executor", None)
    return executor if isinstance(executor, Cluster) else None


def _on_cluster(
    engine: Engine,
    entry: ModelEntry,
    outputs: Sequence[Output],
    backend: Backend,
    known: Sequence[Result],
) -> tuple[Answer | None, dict[int, Result]]:
    """The answer that ended it, if one did, and the results of the cells: written on the cluster
    where that is the same as here, as it is where rows are scored one by one.
    """
    made: dict[int, Output] = {}
    last = ask(engine, entry, outputs, backend, made.__setitem__, known)
    stop, results = engine.around.stop, dict[int, Result]()
    apart = [at for at, one in made.items() if benchmark_of(one.cell.question).at_a_time]
    cluster = _cluster(backend)
    assert cluster is not None
    for at, result in cluster.finished(apart, stop):
        engine.around.watcher.scored(result)
        results[at] = result
    for at in until(stop, (at for at in made if at not in results)):
        results[at] = written_result(engine, made[at])
    for at, result in results.items():
        engine.memory.keep(made[at], result)
    if len(results) < len(made):
        raise _stopped(engine)
    return last, results


def _tell(engine: Engine, entry: ModelEntry, work: Planned, known: Sequence[Result]) -> None:
    rows = sum(result.rows for result in known)
    whole = Planned(work.cells + len(known), work.calls + rows, work.finished + rows)
    engine.around.watcher.planned(entry.name, whole)
    for result in known:
        engine.around.watcher.scored(result)


def written_result(engine: Engine, output: Output) -> Result:
    """Write the files of a cell whose calls were all made."""
    result = finished_cell(output, engine.hashes, engine.journal)
    engine.around.watcher.scored(result)
    return result


def submit(engine: Engine, entry: ModelEntry, outputs: Sequence[Output]) -> None:
    """Have the calls of a model on their way in batches, before another model is waited for.

    Raises:
        ValueError: some are on their way in other batches.
    """
    executor = getattr(engine.around.host.backend(entry), "executor", None)
    if isinstance(executor, BatchExecutor):
        plan = make_plan([output.cell for output in outputs], engine.hashes)
        left = Unanswered(engine.journal, engine.sweep.confidences)
        executor.submit(unfinished(work_items(plan.calls, ItemSizes()), left), engine.around.stop)


def ask(
    engine: Engine,
    entry: ModelEntry,
    outputs: Sequence[Output],
    backend: Backend,
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
        made(at, outputs[at])
        done += 1

    by = {id(output.cell): output.identity for output in outputs}

    def record(call: Call, answer: Answer) -> Record:
        identity = by[id(call.cell)]
        return record_of(call.cell, call.row, answer, call.asked, identity, call.cell.confidences)

    sink = ResultSink(journal, waiting, around.watcher.answered, write, record)
    sink.write_complete()
    if (cluster := _cluster(backend)) is not None:
        cluster.gets(sheet_of(journal.path, outputs, plan))
    inference = engine.sweep.inference
    calls = OpenCalls(plan, unanswered, ItemSizes(inference.variants, inference.batch_size))
    # An interruption must not come between a reply and the journal.
    with around.stop.shielded():
        run_sync(answer_calls(calls, backend, sink, around.stop))
        sink.take_in()
    around.watcher.took(entry.name, backend.capacity)
    if sink.error is not None:
        raise sink.error
    if sink.last is None and around.stop.requested and done < len(outputs):
        raise _stopped(engine)
    return sink.last


async def answer_calls(
    calls: OpenCalls, backend: Backend, sink: ResultSink, cancel: CancelToken
) -> None:
    """Make the calls that are left of a plan, and hand their answers to a sink.

    The sink says in the end whether all could be made and kept.
    """
    for result in calls.unreadable():
        sink.take(result)
    if sink.ended:
        return
    # The others of a run go on where one model ends.
    own = CancelToken(cancel)
    async with aclosing(backend.answer(calls.items(), own)) as results:
        async for result in results:
            sink.take(result)
            if sink.ended:
                # What is on its way is paid for: it still comes, and is kept where there is room.
                own.request()


def _stopped(engine: Engine) -> StoppedError:
    return StoppedError(f"stopped; finished calls are in {engine.journal.path}: run again to go on")
