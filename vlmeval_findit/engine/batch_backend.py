"""A provider's batch service as a backend: calls outlive the run that submits them.

The ledger says at every moment which calls may be on their way.  Such a call is never submitted
again before it is known that it is not.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Set
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field, replace
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from ..core.files import sha256_of
from ..core.work import Answer, CancelledError, Stop, said
from ..models.http.batch.records import Batch, BatchStatus
from ..models.http.completion import CallError
from ..models.http.spending import SpendingError
from .backend import WorkResult, single_calls
from .cancel import CancelToken
from .journal.writer import Journal
from .plan import WorkItem

if TYPE_CHECKING:
    from ..models.http.batch.services import BatchService
    from ..models.http.chat_call import ChatCall

log = logging.getLogger(__name__)

T = TypeVar("T")

_HOW = ("kind", "server", "model", "confidences")
_REFUSALS = 3  # in a row to say something of a batch, which end the run


class Ledger:
    """The batches of a journal, as its events.  What is going to be submitted is written down
    before, the service's ids after: after any kill the next run knows what to look for first.
    No prompt, no image and no key of a service is in it.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._batches: dict[str, Batch] = {}
        for event in journal.events():
            self._take(event)

    @property
    def open(self) -> frozenset[str]:
        """The keys of all calls that are on their way."""
        return frozenset().union(*(one.open for one in self._batches.values()))

    @property
    def ids(self) -> frozenset[str]:
        """The services' ids of all batches that were made."""
        return frozenset(one.id for one in self._batches.values())

    def with_any(self, keys: Set[str]) -> list[Batch]:
        """The batches that some of these calls are on their way in, as they were submitted."""
        return [one for one in self._batches.values() if one.open & keys]

    def intend(self, how: Mapping[str, Any], keys: Iterable[str]) -> Batch:
        """Note that a batch is going to be submitted."""
        own = sorted(keys)
        # The number keeps the name of a batch whose calls all failed from coming again.
        name = sha256_of("\n".join([str(len(self._batches)), *own]).encode())[:32]
        return self._note({"batch": name, **how, "at": round(time.time(), 3), "keys": own})

    def note(self, batch: Batch, **step: Any) -> Batch:
        """Note what became of a batch: its requests were ``uploaded`` as a file, it was made under
        an ``id``, the results of some keys were ``collected``, or nothing comes of it (``ended``).
        """
        return self._note({"batch": batch.name, **step})

    def refuse_open(self, keys: Set[str], how: Mapping[str, Any] | None = None) -> None:
        """Refuse to pay twice for calls that are on their way in batches that are asked otherwise.

        Raises:
            ValueError: some are.
        """
        for one in self.with_any(keys):
            if one.how != how:
                as_said = "with" if one.how["confidences"] else "without"
                raise ValueError(
                    f"{len(one.open & keys)} of these calls are on their way in {one}, asked "
                    f"{as_said} --confidences: run with --batch {one.how['kind']}, and like "
                    "this, to collect them first, or name another --journal to ask, and pay, them "
                    "once more"
                )

    def _note(self, event: Mapping[str, Any]) -> Batch:
        self._journal.note(event)
        self._take(event)
        return self._batches[event["batch"]]

    def _take(self, event: Mapping[str, Any]) -> None:
        name = event.get("batch", "")
        if "keys" in event:
            keys, how = frozenset(event["keys"]), {one: event[one] for one in _HOW}
            self._batches[name] = Batch(name, how, event["at"], keys, keys)
        elif (known := self._batches.get(name)) is not None:
            gone = known.open if "ended" in event else event.get("collected", ())
            ids = {step: event[step] for step in ("uploaded", "id") if step in event}
            self._batches[name] = replace(known, open=known.open.difference(gone), **ids)


class BatchBackend:
    """One model through a batch service.

    A run ends with :attr:`.Stop.LATER` where the service cannot be reached: the next run goes on.
    """

    ledger: Ledger  # in the journal of the run: set before anything is asked

    def __init__(self, load: Callable[[], BatchService], poll: float) -> None:
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

    service: BatchService
    ledger: Ledger
    items: Iterable[WorkItem]
    cancel: CancelToken
    poll: float
    going: list[Batch] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)

    def tell(self, line: str) -> None:
        if line not in self.shown:
            self.shown.add(line)
            log.warning("%s", line)

    def pending(self) -> Iterator[WorkItem]:
        """Calls without an answer, one each, in the order of the plan, until the run is to stop."""
        for item in self.items:
            if self.cancel.requested:
                raise CancelledError
            for one in single_calls(item):
                if one.calls[0].key not in self.answered:
                    yield one

    def _call(self, item: WorkItem) -> ChatCall:
        (call,), cell = item.calls, item.calls[0].cell
        shared = item.shares_images
        return self.service.call(call.message, cell.question, cell.confidences, shared)

    async def answers(self) -> AsyncGenerator[WorkResult, None]:
        """All answers, as batches end; where no more can be had, the last one says why."""
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
        """Have all calls on their way, each once; yields those that cannot be sent."""
        first, service = next(self.pending()).calls[0].cell, self.service
        how: dict[str, Any] = {"kind": service.kind.value, "server": service.name}
        how |= {"model": first.model, "confidences": first.confidences}
        noted = self.ledger.open
        keys = (item.calls[0].key for item in (self.pending() if noted else ()))
        on_way = {key for key in keys if key in noted}
        self.ledger.refuse_open(on_way, how)
        for batch in self.ledger.with_any(on_way):
            await self._find(batch)
        covered = {key for one in self.going for key in one.open}
        requests = _Requests()
        for item in self.pending():
            if (key := item.calls[0].key) in covered:
                continue
            call = self._call(item)
            try:
                line, at_most = await service.request_line(key, call)
                if len(line) + len(service.head) + len(service.tail) > service.size:
                    raise ValueError(f"a request of {len(line):,} bytes is too large for a batch")
            except Exception as error:  # whatever a broken image makes of its reader
                self.answered.add(key)
                call.unreadable = said(error)  # as the single call would have failed
                yield WorkResult(item.calls, (call.answer(None, ""),))
                continue
            size = requests.file.tell() + len(service.between) + len(line) + len(service.tail)
            if len(requests.keys) == service.requests or size > service.size:
                await self._submit(how, requests)
                requests = _Requests()
            requests.file.write(service.between if requests.keys else service.head)
            requests.file.write(line)
            requests.keys.append(key)
            requests.at_most += at_most or 0.0  # not known where there is no limit
        if requests.keys:
            await self._submit(how, requests)

    async def _find(self, batch: Batch) -> bool:
        """Whether a batch was made; it is then among those that go on.

        It waits as long as nobody can know: a batch that was just submitted may not be listed yet.
        That counts from the first look: how long the upload before it took, nobody noted.
        """
        service, seconds, until = self.service, _waits(self.poll), math.inf
        if not batch.id and service.takes_files and not batch.uploaded:
            self.ledger.note(batch, ended="it was never made: its requests were not uploaded")
            return False
        while not batch.id:
            why = f"{batch} cannot be looked for"
            found, perhaps = await self._asked(why, service.find, batch, self.ledger.ids)
            if found:
                batch = self.ledger.note(batch, id=found)
                break
            if perhaps:
                self.tell(
                    f"the batch {perhaps} may be one of ours whose submission was "
                    "interrupted: its results say it; nothing is submitted before"
                )
            elif time.monotonic() < until:
                until = min(until, time.monotonic() + self.poll)
            else:
                self.ledger.note(batch, ended="it was never made")
                return False
            await self._unless_cancelled(asyncio.sleep(next(seconds)))
        self.going.append(batch)
        return True

    async def _submit(self, how: Mapping[str, Any], requests: _Requests) -> None:
        service = self.service
        with requests.file as file:
            service.budget.commit(requests.at_most)
            file.write(service.tail)
            file.seek(0)
            batch = self.ledger.intend(how, requests.keys)
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
        self.tell(f"batch {batch.id}: {len(requests.keys):,} calls")

    # --- collecting -------------------------------------------------------------------------------

    async def _collected(self) -> AsyncGenerator[WorkResult, None]:
        seconds, waiting = _waits(self.poll), list(self.going)
        while waiting:
            for batch in list(waiting):
                why = f"the batch {batch.id} cannot be looked at"
                status = await self._asked(why, self.service.status, batch.id)
                if status.refused:
                    self.ledger.note(batch, ended=status.refused)
                    why = f"the batch {batch.id} was refused: {status.refused}"
                    raise CallError(why, hopeless=True)
                done = f"{status.done:,} of {len(batch.keys):,} calls"
                self.tell(f"batch {batch.id}: {status.said}, {done}")
                if status.results is not None:
                    async for result in self._results(batch, status):
                        yield result
                    waiting.remove(batch)
            if waiting:
                await self._unless_cancelled(asyncio.sleep(next(seconds)))

    async def _results(self, batch: Batch, status: BatchStatus) -> AsyncGenerator[WorkResult, None]:
        """The answers of a batch that ended, in the order of the plan: images are read once."""
        done, problem = [], f"the results of {batch} cannot be had"
        results = await self._asked(problem, self.service.results, status.results or ())
        with closing(results):
            for item in self.pending():
                key = item.calls[0].key
                if key not in batch.open:
                    continue
                why = f"the batch has no result of it ({status.said})"
                call = self._call(item)
                answer = await self.service.answer(call, batch.id, results.get(key), why)
                for warning in call.warnings if answer.error is None else ():
                    self.tell(warning)
                yield WorkResult(item.calls, (answer,))
                if self.cancel.requested:
                    # Perhaps it could not be kept: what is not noted is fetched again.
                    raise CancelledError
                self.answered.add(key)
                done.append(key)
        self.ledger.note(batch, collected=done)

    # --- waiting ----------------------------------------------------------------------------------

    async def _asked(self, problem: str, ask: Callable[..., Awaitable[T]], *about: Any) -> T:
        """What a service says of a batch; asked again as long as it may still say it."""
        seconds, refusals = _waits(self.poll), 0
        while True:
            try:
                return await self._unless_cancelled(ask(*about))
            except CallError as error:
                refusals = 0 if error.transient else refusals + 1
                if refusals == _REFUSALS:
                    why = f"{problem}: {error} (it is noted in the journal)"
                    raise CallError(why, error.status, hopeless=True) from None
                self.tell(f"{problem}: {error}; asking again")
            await self._unless_cancelled(asyncio.sleep(next(seconds)))

    async def _unless_cancelled(self, awaited: Awaitable[T], paid: bool = False) -> T:
        """What is waited for, unless the run is to stop; what is paid for, unless at once."""
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
    seconds = 1.0
    while True:
        yield min(seconds, poll)
        seconds *= 2


@dataclass(slots=True)
class _Requests:
    file: BinaryIO = field(default_factory=TemporaryFile)
    keys: list[str] = field(default_factory=list)
    at_most: float = 0.0  # what they cost, in US dollars
