"""Who answers by batches: submits calls, waits for them, across restarts, and collects them.

At every moment the ledger says what may be on its way.  A call that may be is never submitted
again: first it is found out whether it is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.work import Answer, Stop
from ..models.http.batch.dialects import BatchKind
from ..models.http.completion import CallError
from ..models.http.spending import Budget, SpendingError
from .backend import single_calls, work_of
from .batch_ledger import Ledger, Noted, Route, refuse_other_routes
from .batch_parts import AskedToStopError, Packing, Rests
from .batch_wanted import Wanted
from .cancel import CancelToken
from .executors import Answered, until
from .plan import WorkItem

if TYPE_CHECKING:
    from ..models.http.batch.asker import BatchAsker
    from ..models.http.batch.services import Look


@dataclass(frozen=True, slots=True)
class Batching:
    """That calls are made in batches: by whom, the journal of the ledger, and who is told."""

    kind: BatchKind
    journal: Path
    told: Callable[[str], None]


class BatchExecutor:
    """One model through a batch service.

    A run ends with :attr:`.Stop.LATER` where somebody else has to do something first, or where the
    service cannot be reached: the next run goes on.

    Args:
        load: makes the asker, when the first unit comes.
        journal: beside which the ledger lies.
        poll: the most seconds between two looks at a batch.
        budget: what may be spent.
    """

    def __init__(
        self, load: Callable[[], BatchAsker], journal: Path, poll: float, budget: Budget
    ) -> None:
        self._load = load
        self._journal = journal
        self._poll = poll
        self._budget = budget
        self.took: Mapping[str, int] = {}

    def submit(self, units: Iterable[WorkItem], stop: CancelToken) -> None:
        """Have calls on their way, and wait for no answer; :meth:`run` says what was wrong.

        Raises:
            ValueError: calls are on their way in other batches.
        """
        run = self._of(units, stop)
        if run is not None:
            with suppress(AskedToStopError, SpendingError, CallError):
                for _ in run.sent():
                    pass

    def run(self, units: Iterable[WorkItem], stop: CancelToken) -> Iterator[Answered]:
        run = self._of(units, stop)
        if run is None:
            return
        try:
            yield from run.answers()
        except AskedToStopError:
            return
        except (SpendingError, CallError) as error:
            # Whatever has no answer: its run ends with why.
            yield run.wanted.first, [Answer("", error=str(error), stop=_stop(error))]

    def _of(self, units: Iterable[WorkItem], stop: CancelToken) -> _Run | None:
        wanted = Wanted(one for unit in until(stop, units) for one in single_calls(unit))
        if not wanted:
            return None
        return _Run(self._load(), Ledger(self._journal), wanted, stop, self._poll, self._budget)


def _stop(error: SpendingError | CallError) -> Stop:
    if isinstance(error, SpendingError):
        return Stop.SPENT
    return Stop.HOPELESS if error.hopeless else Stop.LATER


@dataclass(slots=True)
class _Run:
    """One run of the executor; ``wanted`` are the calls without an answer, by their keys."""

    asker: BatchAsker
    ledger: Ledger
    wanted: Wanted
    stop: CancelToken
    poll: float
    budget: Budget
    going: list[Noted] = field(default_factory=list)

    def answers(self) -> Iterator[Answered]:
        """All answers, as batches end.

        Raises:
            CallError: no more can be had now.
            SpendingError: no more can be paid.
            AskedToStopError: somebody asked to stop.
        """
        error: CallError | SpendingError | None = None
        try:
            yield from self.sent()
        except (CallError, SpendingError) as problem:
            # What is on its way already is paid for, and still collected.
            error = problem
        yield from self._collected()
        if error is not None:
            raise error

    # --- submitting -------------------------------------------------------------------------------

    def sent(self) -> Iterator[Answered]:
        """Have all calls on their way, each once; yields those that cannot be sent.

        Raises:
            ValueError: calls are on their way in batches that are asked otherwise.
            CallError, SpendingError, AskedToStopError: not all are.
        """
        first = self.wanted.first.calls[0].cell
        service = self.asker.service
        route = Route(service.kind, service.name, first.model, first.confidences)
        noted = self.ledger.with_any(self.wanted.keys())
        refuse_other_routes(self.ledger, noted, route)
        for one in noted:
            self._found(one)
        yield from self._submitted(route)

    def _found(self, one: Noted) -> bool:
        """Whether a batch was made; it is then among those that go on.

        It waits as long as nobody can know: a batch that was just submitted may not be listed yet.
        That counts from the first look: how long the upload before it took, nobody noted.
        """
        rests, until = Rests(self.poll, self.stop), math.inf
        while not one.id:
            known = {other.id for other in self.ledger.batches()}
            found = self.asker.service.find(one.intent, known)
            if found.id:
                one = self.ledger.made(one.intent.name, found.id)
            elif found.perhaps:
                self.asker.tell(
                    f"the batch {found.perhaps} may be one of ours whose submission was "
                    "interrupted: its results say it; nothing is submitted before"
                )
                rests.rest()
            elif self.asker.service.works_alone and time.monotonic() < until:
                until = min(until, time.monotonic() + self.poll)
                rests.rest()
            else:
                self.ledger.ended(one.intent.name, "it was never made")
                return False
        self.going.append(one)
        return True

    def _submitted(self, route: Route) -> Iterator[Answered]:
        """Submit what is on its way in no batch; what cannot be sent is answered."""
        covered = {key for one in self.going for key in one.live}
        packing = Packing()
        dialect = self.asker.service.dialect
        for key in [key for key in self.wanted if key not in covered]:
            if self.stop.requested:
                raise AskedToStopError
            unit = self.wanted[key]
            work = work_of(unit)
            try:
                line, at_most = self.asker.prepared(key, work)
                if len(line) + len(dialect.head) + len(dialect.tail) > dialect.size:
                    raise ValueError(f"a request of {len(line):,} bytes is too large for a batch")
            except Exception as error:  # whatever a broken picture makes of its reader
                del self.wanted[key]
                yield unit, [self.asker.unreadable(work, error)]
                continue
            packed = len(dialect.between) + len(line) + len(dialect.tail)
            if len(packing.keys) == dialect.requests or packing.size + packed > dialect.size:
                self._submit(route, packing)
                packing = Packing()
            packing.add(key, line, dialect.between if packing.keys else dialect.head)
            packing.cost(at_most)
        if packing.keys:
            self._submit(route, packing)

    def _submit(self, route: Route, packing: Packing) -> None:
        with packing.file as file:
            self.budget.commit(packing.at_most)
            file.write(self.asker.service.dialect.tail)
            file.seek(0)
            one = self.ledger.intend(route, packing.keys)
            try:
                one = self.ledger.made(one.intent.name, self.asker.service.submit(one.intent, file))
            except CallError as error:
                if 400 <= error.status < 500:
                    self.ledger.ended(one.intent.name, str(error))
                    raise
                if not self._found(one):
                    raise
                return
            self.going.append(one)
            self.asker.tell(f"batch {one.id}: {len(packing.keys):,} calls")

    # --- collecting -------------------------------------------------------------------------------

    def _collected(self) -> Iterator[Answered]:
        """The answers of all batches that go on."""
        rests, waiting = Rests(self.poll, self.stop), list(self.going)
        while waiting:
            for one in list(waiting):
                if (look := self._looked(one)) is not None:
                    yield from self._of_batch(one, look)
                    waiting.remove(one)
            if not self.asker.service.works_alone:
                break
            if waiting:
                rests.rest()
        for one in (without := self.ledger.with_any(self.wanted.keys())):
            self.asker.tell(self.asker.service.to_do(one.id))
        if without:
            raise CallError(f"{len(self.wanted):,} calls have no results yet: run that, then again")

    def _looked(self, one: Noted) -> Look | None:
        """How a batch ended; None where it goes on.

        Raises:
            CallError: nothing came of it, or the service does not let us look.
        """
        try:
            look = self.asker.service.look(one.id)
        except CallError as error:
            if not error.transient:
                raise CallError(
                    f"the batch {one.id} cannot be looked at: {error} (it is noted in "
                    f"{self.ledger.path})",
                    error.status,
                    hopeless=True,
                ) from None
            self.asker.tell(f"batch {one.id}: {error}; looking again")
            return None
        if look.refused:
            self.ledger.ended(one.intent.name, look.refused)
            raise CallError(f"the batch {one.id} was refused: {look.refused}", hopeless=True)
        of = len(one.intent.keys)
        self.asker.tell(f"batch {one.id}: {look.said}, {look.done:,} of {of:,} calls")
        return look if look.ended else None

    def _of_batch(self, one: Noted, look: Look) -> Iterator[Answered]:
        """The answers of a batch that ended, in the order of the plan: pictures are read once."""
        rests = Rests(self.poll, self.stop)
        while True:
            try:
                results = self.asker.service.results(one.id)
                break
            except CallError as error:
                if not error.transient:
                    raise
                self.asker.tell(f"batch {one.id}: {error}; fetching again")
                rests.rest()
        done = []
        with results:
            for key in [key for key in self.wanted if key in one.live]:
                result = results.get(key)
                if result is None and not look.whole:
                    continue
                unit = self.wanted[key]
                why = f"the batch has no result of it ({look.said})"
                yield unit, [self.asker.answer(work_of(unit), one.id, result, why)]
                if self.stop.requested:
                    # Perhaps it could not be kept: what is not noted is fetched again.
                    raise AskedToStopError
                del self.wanted[key]
                done.append(key)
        self.ledger.collected(one.intent.name, done)
