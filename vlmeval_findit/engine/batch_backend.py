"""A provider's batch service as a backend: calls are submitted, waited for across restarts, and
collected.

At every moment the ledger says what may be on its way.  A call that may be is never submitted
again: first it is found out whether it is.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from ..core.work import Answer, CancelledError, Stop
from ..models.http.batch.records import Batch, BatchKind, BatchStatus, Route
from ..models.http.completion import CallError
from ..models.http.payload import Beginning
from ..models.http.spending import SpendingError
from .backend import WorkResult, single_calls
from .batch_ledger import Ledger
from .cancel import CancelToken
from .plan import WorkItem

if TYPE_CHECKING:
    from ..models.http.batch.client import BatchClient
    from ..models.http.chat_call import ChatCall

T = TypeVar("T")

_REFUSALS = 3
"""So often in a row a service may refuse to say something of a batch before its run ends."""


@dataclass(frozen=True, slots=True)
class Batching:
    """That calls are made in batches: by whom, the folder of those in files, and who is told."""

    kind: BatchKind
    folder: Path
    told: Callable[[str], None]


class BatchBackend:
    """One model through a batch service.

    A run ends with :attr:`.Stop.LATER` where somebody else has to do something first, or where the
    service cannot be reached: the next run goes on.

    Args:
        load: makes the client, when the first item comes.
        poll: the most seconds between two looks at a batch.
    """

    ledger: Ledger
    """Where batches are noted, in the journal of the run: set before anything is asked."""

    def __init__(self, load: Callable[[], BatchClient], poll: float) -> None:
        self._load = load
        self._poll = poll
        self.capacity: Mapping[str, int] = {}

    async def submit(self, items: Iterable[WorkItem], cancel: CancelToken) -> None:
        """Have calls on their way, and wait for no answer; :meth:`answer` says what was wrong.

        Raises:
            ValueError: calls are on their way in other batches.
        """
        if (run := self._run(items, cancel)) is not None:
            with suppress(CancelledError, SpendingError, CallError):
                async for _ in run.submitted():
                    pass

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        if (run := self._run(items, cancel)) is not None:
            with suppress(CancelledError):
                async with aclosing(run.answers()) as results:
                    async for result in results:
                        yield result

    def _run(self, items: Iterable[WorkItem], cancel: CancelToken) -> _Run | None:
        if cancel.requested or next(iter(items), None) is None:
            return None
        return _Run(self._load(), self.ledger, items, cancel, self._poll)


@dataclass(slots=True)
class _Run:
    """One run of the backend.

    The batches in ``going`` were made, and calls with the keys in ``answered`` have their answer.
    There may be a million: they are not kept, but made again from ``items`` as they are needed.
    """

    client: BatchClient
    ledger: Ledger
    items: Iterable[WorkItem]
    cancel: CancelToken
    poll: float
    going: list[Batch] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)

    def pending(self) -> Iterator[WorkItem]:
        """Calls without an answer, one each, in the order of the plan.

        Raises:
            CancelledError: the run is to stop.
        """
        for item in self.items:
            if self.cancel.requested:
                raise CancelledError
            for one in single_calls(item):
                if one.calls[0].key not in self.answered:
                    yield one

    def _call(self, item: WorkItem) -> ChatCall:
        (call,), cell = item.calls, item.calls[0].cell
        beginning = Beginning.AGAIN if item.shares_images else Beginning.ONCE
        return self.client.call(call.message, cell.question, cell.confidences, beginning)

    def _on_their_way(self) -> set[str]:
        """The keys of pending calls that are in batches."""
        noted = self.ledger.open
        pending = self.pending() if noted else ()
        return {item.calls[0].key for item in pending if item.calls[0].key in noted}

    async def answers(self) -> AsyncGenerator[WorkResult, None]:
        """All answers, as batches end; where no more can be had, the last one says why.

        Raises:
            CancelledError: the run is to stop.
        """
        error: CallError | SpendingError | None = None
        for answers in (self.submitted, self._collected):
            try:
                async for result in answers():
                    yield result
            except (CallError, SpendingError) as problem:
                # What is on its way already is paid for, and still collected.
                error = problem
        if error is not None:
            stop = Stop.SPENT if isinstance(error, SpendingError) else Stop.LATER
            if isinstance(error, CallError) and error.hopeless:
                stop = Stop.HOPELESS
            answer = Answer("", error=str(error), stop=stop)
            yield WorkResult(next(self.pending()).calls, (answer,))

    # --- submitting -------------------------------------------------------------------------------

    async def submitted(self) -> AsyncGenerator[WorkResult, None]:
        """Have all calls on their way, each once; yields those that cannot be sent.

        Raises:
            ValueError: calls are on their way in batches that are asked otherwise.
            CallError, SpendingError, CancelledError: not all are.
        """
        first, service = next(self.pending()).calls[0].cell, self.client.service
        route = Route(service.kind, service.name, first.model, first.confidences)
        on_way = self._on_their_way()
        self.ledger.refuse_open(on_way, route)
        for batch in self.ledger.with_any(on_way):
            await self._find(batch)
        covered = {key for one in self.going for key in one.open}
        requests = _Requests()
        for item in self.pending():
            if (key := item.calls[0].key) in covered:
                continue
            call = self._call(item)
            try:
                line, at_most = await self.client.request_line(key, call)
                if len(line) + len(service.head) + len(service.tail) > service.size:
                    raise ValueError(f"a request of {len(line):,} bytes is too large for a batch")
            except Exception as error:  # whatever a broken image makes of its reader
                self.answered.add(key)
                yield WorkResult(item.calls, (self.client.unreadable(call, error),))
                continue
            size = requests.file.tell() + len(service.between) + len(line) + len(service.tail)
            if len(requests.keys) == service.requests or size > service.size:
                await self._submit(route, requests)
                requests = _Requests()
            requests.file.write(service.between if requests.keys else service.head)
            requests.file.write(line)
            requests.keys.append(key)
            if requests.at_most is not None:
                requests.at_most = None if at_most is None else requests.at_most + at_most
        if requests.keys:
            await self._submit(route, requests)

    async def _find(self, batch: Batch) -> bool:
        """Whether a batch was made; it is then among those that go on.

        It waits as long as nobody can know: a batch that was just submitted may not be listed yet.
        That counts from the first look: how long the upload before it took, nobody noted.
        """
        service, seconds, until = self.client.service, _waits(self.poll), math.inf
        if not batch.id and service.takes_files and not batch.uploaded:
            self.ledger.note(batch, ended="it was never made: its requests were not uploaded")
            return False
        while not batch.id:
            ask = partial(service.find, batch, self.ledger.ids)
            found = await self._asked(f"{batch} cannot be looked for", ask)
            if found.id:
                batch = self.ledger.note(batch, id=found.id)
                break
            if found.perhaps:
                self.client.tell(
                    f"the batch {found.perhaps} may be one of ours whose submission was "
                    "interrupted: its results say it; nothing is submitted before"
                )
            elif service.works_alone and time.monotonic() < until:
                until = min(until, time.monotonic() + self.poll)
            else:
                self.ledger.note(batch, ended="it was never made")
                return False
            await self._unless_cancelled(asyncio.sleep(next(seconds)))
        self.going.append(batch)
        return True

    async def _submit(self, route: Route, requests: _Requests) -> None:
        service = self.client.service
        with requests.file as file:
            self.client.budget.commit(requests.at_most)
            file.write(service.tail)
            file.seek(0)
            batch = self.ledger.intend(route, requests.keys)
            try:
                if service.takes_files:
                    id = await self._unless_cancelled(service.upload(batch, file))
                    batch = self.ledger.note(batch, uploaded=id)
                id = await self._unless_cancelled(service.submit(batch, file), paid=True)
                batch = self.ledger.note(batch, id=id)
            except CallError as error:
                if 400 <= error.status < 500:
                    self.ledger.note(batch, ended=str(error))
                    raise
                # The answer was lost: the batch may have been made, and is paid for then.
                if not await self._find(batch):
                    raise
                return
        self.going.append(batch)
        self.client.tell(f"batch {batch.id}: {len(requests.keys):,} calls")

    # --- collecting -------------------------------------------------------------------------------

    async def _collected(self) -> AsyncGenerator[WorkResult, None]:
        """The answers of all batches that go on."""
        service, seconds, waiting = self.client.service, _waits(self.poll), list(self.going)
        while waiting:
            for batch in list(waiting):
                status = await self._status(batch)
                if status.results is not None:
                    async for result in self._results(batch, status):
                        yield result
                    waiting.remove(batch)
            if not service.works_alone:
                break
            if waiting:
                await self._unless_cancelled(asyncio.sleep(next(seconds)))
        left = self._on_their_way()
        for batch in self.ledger.with_any(left):
            self.client.tell(service.to_do(batch.id))
        if left:
            raise CallError(f"{len(left):,} calls have no results yet: run that, then again")

    async def _status(self, batch: Batch) -> BatchStatus:
        """How a batch goes.

        Raises:
            CallError: nothing came of it, or the service does not let us look.
        """
        ask = partial(self.client.service.status, batch.id)
        status = await self._asked(f"the batch {batch.id} cannot be looked at", ask)
        if status.refused:
            self.ledger.note(batch, ended=status.refused)
            raise CallError(f"the batch {batch.id} was refused: {status.refused}", hopeless=True)
        done = f"{status.done:,} of {len(batch.keys):,} calls"
        self.client.tell(f"batch {batch.id}: {status.said}, {done}")
        return status

    async def _results(self, batch: Batch, status: BatchStatus) -> AsyncGenerator[WorkResult, None]:
        """The answers of a batch that ended, in the order of the plan: images are read once."""
        service, done = self.client.service, []
        ask = partial(service.results, status.results or ())
        results = await self._asked(f"the results of {batch} cannot be had", ask)
        with closing(results):
            for item in self.pending():
                key = item.calls[0].key
                if key not in batch.open:
                    continue
                if (result := results.get(key)) is None and not service.works_alone:
                    continue  # it may still come
                why = f"the batch has no result of it ({status.said})"
                answer = await self.client.answer(self._call(item), batch.id, result, why)
                yield WorkResult(item.calls, (answer,))
                if self.cancel.requested:
                    # Perhaps it could not be kept: what is not noted is fetched again.
                    raise CancelledError
                self.answered.add(key)
                done.append(key)
        self.ledger.note(batch, collected=done)

    # --- waiting ----------------------------------------------------------------------------------

    async def _asked(self, problem: str, ask: Callable[[], Awaitable[T]]) -> T:
        """What a service says of a batch; asked again as long as it may still say it.

        Raises:
            CallError: it refused three times in a row.
        """
        seconds, refusals = _waits(self.poll), 0
        while True:
            try:
                return await self._unless_cancelled(ask())
            except CallError as error:
                refusals = 0 if error.transient else refusals + 1
                if refusals == _REFUSALS:
                    why = f"{problem}: {error} (it is noted in the journal)"
                    raise CallError(why, error.status, hopeless=True) from None
                self.client.tell(f"{problem}: {error}; asking again")
            await self._unless_cancelled(asyncio.sleep(next(seconds)))

    async def _unless_cancelled(self, awaited: Awaitable[T], paid: bool = False) -> T:
        """What is waited for, unless the run is to stop; what is paid for, unless at once.

        Raises:
            CancelledError: it is.
        """
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(awaited)

        def end() -> None:
            if self.cancel.now or not paid:
                loop.call_soon_threadsafe(task.cancel)

        with self.cancel.on_request(end):
            try:
                return await task
            except asyncio.CancelledError:
                if self.cancel.requested:
                    raise CancelledError from None
                raise


def _waits(poll: float) -> Iterator[float]:
    """Seconds to wait that get longer: one, two, four, up to ``poll``.

    >>> [next(seconds) for seconds in [_waits(5.0)] for _ in range(4)]
    [1.0, 2.0, 4.0, 5.0]
    """
    return chain((min(2.0**n, poll) for n in range(20)), repeat(poll))


@dataclass(slots=True)
class _Requests:
    """The requests of one batch, in a file that goes with it."""

    file: BinaryIO = field(default_factory=TemporaryFile)
    keys: list[str] = field(default_factory=list)
    at_most: float | None = 0.0
