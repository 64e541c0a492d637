"""Make and journal the calls of a model, and write its cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ..protocol import Answering, CallResult
from ..scoring import CellResult
from .backend import Backend, CancelToken, run_sync
from .batch_backend import BatchBackend, BatchLedger
from .cell_files import RowDigests, finished_cell
from .deployment import Deployment
from .journal.view import JournalView
from .journal.writer import Journal
from .outputs import Output, begin_output, notes_on_answers
from .plan import Plan, calls_left
from .sink import PlannedCalls, ResultSink, Watcher


class StoppedError(RuntimeError):
    """A run was asked to stop; finished calls are in the journal."""

    def __init__(self, journal: JournalView) -> None:
        super().__init__(f"stopped; finished calls are in {journal.path}: run again to go on")


class ModelStoppedError(RuntimeError):
    """A model must not be called any more; ``results`` are its finished cells."""

    def __init__(self, model: str, answer: CallResult, results: list[CellResult]) -> None:
        why = answer.stop.value if answer.stop else "asked to"
        super().__init__(f"{model}: stopped, {why}: {answer.error}")
        self.stop = answer.stop
        self.results = results


# --- the calls of a model's cells -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The calls of one model, their backend, and what happens to the answers."""

    outputs: Sequence[Output]
    backend: Backend
    journal: Journal
    window: int  # calls that the backend is handed at a time
    watcher: Watcher
    answering: Callable[[Output], Answering]  # adds what only this machine knows
    # The prediction files that get the identity of a cell as a neighbour
    identities: Callable[[Output], Iterable[Path]] = lambda output: [output.path]
    finish: Callable[[Output], CellResult] | None = None  # writes a cell's files, in a thread
    again: bool = True  # whether failed calls are repeated


class JobResult(NamedTuple):
    """The outcome of a job, by index of its cells."""

    outputs: Mapping[int, Output]  # complete cells, with what the machine adds
    results: Mapping[int, CellResult]  # of finished cells
    last: CallResult | None  # ends the calls of its model


def answer_cells(job: JobSpec, cancel: CancelToken) -> JobResult:
    """Make the calls of a model's cells that the journal has no answer to.

    Raises:
        IdentityError: another run was recorded.
        ValueError: calls are pending in batches, and would be paid twice.
        JournalError: replies cannot be written any more.
        StoppedError: a stop was requested.
        KeyboardInterrupt: a stop was requested twice.
    """
    journal = job.journal
    watcher = job.watcher
    model = job.outputs[0].cell.model
    plan = Plan([output.cell for output in job.outputs], journal, job.window, job.again)
    ledger = BatchLedger(journal)
    left = calls_left(plan, ledger.open)
    if isinstance(job.backend, BatchBackend):
        job.backend.ledger = ledger
    else:
        ledger.holding(left.noted)  # refuses them
    outputs = [
        begin_output(
            output,
            job.answering(output) if left.waits[at] else None,
            output.cell.call_keys() if at in left.known else (),
            journal,
            job.identities(output),
        )
        for at, output in enumerate(job.outputs)
    ]
    watcher.planned(model, PlannedCalls(len(outputs), left.calls, left.calls - left.left))
    identities = {output.cell: output.identity for output in outputs}
    finish = job.finish
    finish_at = None if finish is None else lambda at: finish(outputs[at])
    sink = ResultSink(journal, left.waits, identities.__getitem__, watcher, finish_at)
    # An interruption must not come between a reply and the journal.
    with cancel.shielded():
        run_sync(sink.answer(plan, job.backend, cancel))
    if sink.error is not None:
        raise sink.error
    journal.check_kept()
    if sink.last is None and cancel.requested and len(sink.complete) < len(outputs):
        raise StoppedError(journal)
    return JobResult({at: outputs[at] for at in sink.complete}, sink.results, sink.last)


def check_earlier_answers(
    deployment: Deployment, outputs: Iterable[Output], journal: JournalView
) -> None:
    """Refuse cells whose answers in a journal are of another run, or on their way.

    Raises:
        IdentityError: the journal has answers of another run.
        ValueError: calls are pending in batches, and would be paid twice.
    """
    pending = BatchLedger(journal)
    for output in outputs:
        notes_on_answers(output, output.cell.call_keys(), journal)
        if pending.open and deployment.asking.batch is None:
            pending.holding({key for key in output.cell.call_keys() if key not in journal})


# --- the cells of several models ------------------------------------------------------------------


@dataclass
class Engine:
    """Answers the cells of all models."""

    watcher: Watcher
    cancel: CancelToken
    open_journal: Callable[[], Journal]  # called once any cell is unfinished

    @cached_property
    def journal(self) -> Journal:
        return self.open_journal()

    @cached_property
    def digests(self) -> RowDigests:
        return RowDigests(self.journal)

    def check(self, deployment: Deployment, outputs: Iterable[Output]) -> None:
        """Refuse what :meth:`run_model` would refuse, when calls of others would be paid.

        Raises:
            IdentityError: the journal has answers of another run.
            ValueError: calls are pending in batches, and would be paid twice.
        """
        check_earlier_answers(deployment, outputs, self.journal)

    def answer(
        self, deployment: Deployment, outputs: Sequence[Output], backend: Backend, **more: Any
    ) -> JobResult:
        """Make the calls of a model's cells by :func:`answer_cells`; ``more`` are of the job."""
        job = JobSpec(
            outputs=outputs,
            backend=backend,
            journal=self.journal,
            window=deployment.window,
            watcher=self.watcher,
            answering=lambda output: deployment.on_this_machine(output.identity.answering),
            **more,
        )
        return answer_cells(job, self.cancel)

    def run_model(self, deployment: Deployment, outputs: Sequence[Output]) -> list[CellResult]:
        """Make a model's calls; raises as :func:`answer_cells`, and ModelStoppedError."""
        if not outputs:
            return []
        answered = self.answer(deployment, outputs, deployment.backend(), finish=self.finish)
        results = [result for _, result in sorted(answered.results.items())]
        if answered.last is not None:
            raise ModelStoppedError(deployment.name, answered.last, results)
        return results

    def finish(self, output: Output) -> CellResult:
        return finished_cell(output, self.journal, self.digests)

    def submit(self, deployment: Deployment, outputs: Sequence[Output]) -> None:
        """Submit a model's calls in batches; ValueError if some are pending in other batches."""
        backend = deployment.backend()
        if isinstance(backend, BatchBackend):
            plan = Plan([output.cell for output in outputs], self.journal)
            backend.ledger = BatchLedger(self.journal)
            with self.cancel.shielded():
                run_sync(backend.submit(plan, self.cancel))
