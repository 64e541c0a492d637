"""A provider's batch service as a backend: calls outlive the run that submits them.

The ledger knows which calls may be pending; none of them is submitted again before it is known not
to be.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..core import agreeing, counted, error_line, scrub, sha256_of
from ..models import BUSY_STATUSES, BatchRequest, BatchStatus, CallError, SpendingError
from ..protocol import CallResult, CancelledError, StopReason
from .backend import CancelToken, WorkResult
from .journal.view import JournalView
from .journal.writer import Journal
from .plan import WorkItem, single_calls
from .server_state import LONGEST_WAIT

if TYPE_CHECKING:
    from ..models import BatchResults, BatchService, ChatCall

log = logging.getLogger(__name__)

T = TypeVar("T")

_OPTIONS = ("kind", "server", "model", "logprobs")

_DOWNLOADS = 7  # of results that do not all come, over a minute
_TRIES = 5  # of an upload that broke
_SHOWN = 3  # lines of results that are named, of many alike


class BatchLedger:
    """The batches of a journal, by our names; they are its events.

    An intended batch is noted before it is submitted, the service's ids after, so after any kill
    the next run knows what to look for. It holds no prompts, images or service keys.
    """

    def __init__(self, journal: JournalView) -> None:
        """Read its events; only a journal that is written takes new ones."""
        self._journal = journal
        self.batches: dict[str, BatchRequest] = {}
        for event in journal.events():
            self._take(event)

    @property
    def open(self) -> frozenset[str]:
        return frozenset().union(*(batch.open for batch in self.batches.values()))

    def holding(
        self, keys: Set[str], options: Mapping[str, Any] | None = None
    ) -> list[BatchRequest]:
        """Return the batches in which some of these calls are pending; ValueError if one has other
        options.
        """
        batches = [batch for batch in self.batches.values() if batch.open & keys]
        for batch in batches:
            if batch.options != options:
                was = "with" if batch.options["logprobs"] else "without"
                raise ValueError(
                    f"{len(batch.open & keys)} of these calls are on their way in {batch}, asked "
                    f"{was} --logprobs: run with --batch {batch.options['kind']}, and like "
                    "this, to collect them first; or name another --journal to ask and pay them "
                    "again"
                )
        return batches

    def intend(self, options: Mapping[str, Any], keys: Iterable[str]) -> BatchRequest:
        keys = sorted(keys)
        # The number gives a batch whose calls all failed a new name when it is repeated.
        name = sha256_of("\n".join([str(len(self.batches)), *keys]).encode())[:32]
        return self.note(name, **options, at=round(time.time(), 3), keys=keys)

    def note(self, batch: str, **step: Any) -> BatchRequest:
        """Note ``uploaded`` requests, a created ``id``, ``collected`` keys, or why it ``ended``."""
        event = {"batch": batch, **step}
        assert isinstance(self._journal, Journal)
        self._journal.note(event)
        self._take(event)
        return self.batches[batch]

    def _take(self, event: Mapping[str, Any]) -> None:
        name = event.get("batch", "")
        if "keys" in event:
            keys = frozenset(event["keys"])
            options = {name: event[name] for name in _OPTIONS}
            self.batches[name] = BatchRequest(name, options, event["at"], keys, keys)
        elif name in self.batches:
            known = self.batches[name]
            gone = known.open if "ended" in event else event.get("collected", ())
            ids = {step: event[step] for step in ("uploaded", "uploaded_at", "id") if step in event}
            self.batches[name] = replace(known, open=known.open.difference(gone), **ids)


@dataclass(repr=False, eq=False)
class BatchBackend:
    """A model through a batch service; StopReason.LATER ends a run that cannot reach it."""

    load: Callable[[], BatchService]
    poll: float
    ledger: BatchLedger = field(init=False)  # of the run's journal; set before anything is asked

    async def submit(self, items: Iterable[WorkItem], cancel: CancelToken) -> None:
        """Submit calls without waiting; ValueError if some are pending in other batches."""
        run = self._run(items, cancel)
        if run is not None:
            with suppress(CancelledError, SpendingError, CallError):
                async for _ in run.submitted():
                    pass

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        run = self._run(items, cancel)
        if run is not None:
            with suppress(CancelledError):
                async with aclosing(run.answers()) as results:
                    async for result in results:
                        yield result

    def _run(self, items: Iterable[WorkItem], cancel: CancelToken) -> _BatchRun | None:
        if cancel.requested or next(iter(items), None) is None:
            return None
        return _BatchRun(self.load(), self.ledger, items, cancel, self.poll)


@dataclass(slots=True)
class _BatchRun:
    """One run of the backend; its calls, perhaps a million, are built again as they are needed."""

    service: BatchService
    ledger: BatchLedger
    items: Iterable[WorkItem]
    cancel: CancelToken
    poll: float
    going: list[BatchRequest] = field(default_factory=list)  # created batches
    answered: set[str] = field(default_factory=set)  # keys
    refused: list[BatchRequest] = field(default_factory=list)  # that may be taken later
    collected: int = 0  # batches since calls were submitted
    most: int = 0  # requests of a batch, where larger ones were refused (0: as the service says)
    second: int = 0  # results of requests that had one before
    shown: set[str] = field(default_factory=set)

    def tell(self, words: str) -> None:
        """Say something once: without secrets, as it may quote any text of a service."""
        line = scrub(words)
        if line not in self.shown:
            self.shown.add(line)
            log.warning("%s", line)

    def pending(self) -> Iterator[WorkItem]:
        """Yield unanswered calls one by one, in the order of the plan, until cancelled."""
        for item in single_calls(self.items):
            if self.cancel.requested:
                raise CancelledError
            if item.calls[0].key not in self.answered:
                yield item

    def _call(self, item: WorkItem) -> ChatCall:
        (call,) = item.calls
        return self.service.call(
            call.message,
            call.cell.variant,
            call.cell.logprobs,
            call.shares_images,
            call.seed,
            call.image_sha256,
        )

    async def answers(self) -> AsyncGenerator[WorkResult, None]:
        """Yield all answers as batches end; if no more can be had, the last answer says why."""
        error: CallError | SpendingError | None = None
        while error is None:
            for answers in (self.submitted, self._collected):
                try:
                    async for result in answers():
                        yield result
                except (CallError, SpendingError) as problem:
                    # Pending calls are paid for, and still collected.
                    error = error or problem
            if not self.refused:
                break
            try:
                await self._make_room()
            except CallError as problem:
                error = error or problem
        if self.second:
            results = agreeing(self.second, "a second result", f"{self.second:,} second results")
            self.tell(f"{results} came in batches: of each request the first answer is kept")
        if error is not None:
            stop = StopReason.SPENT
            if isinstance(error, CallError):
                stop = StopReason.HOPELESS if error.hopeless else StopReason.LATER
            answer = CallResult("", error=str(error), stop=stop)
            yield WorkResult(next(self.pending()).calls, (answer,))

    async def _make_room(self) -> None:
        """Prepare for submitting refused calls again; CallError if none of them would be taken."""
        smallest = min(len(batch.keys) for batch in self.refused)
        if not self.collected:  # nothing of this run stood in the way: it is too large
            if smallest == 1:
                raise CallError(
                    "nothing was submitted: the service takes no batch now, of a single call "
                    "either, as others of this account are on their way: run again later"
                )
            self.most = (smallest + 1) // 2
            self.tell(f"the service took no batch so large: now in batches of {self.most:,} calls")
            await self._unless_cancelled(asyncio.sleep(min(self.poll, 1.0)))
        else:
            self.tell("what ran was collected: the refused calls are submitted now")
        self.refused = []
        self.going = []
        self.collected = 0

    async def submitted(self) -> AsyncGenerator[WorkResult, None]:
        """Submit all calls, each once; yield the calls that cannot be sent."""
        item = next(self.pending(), None)
        if item is None:
            return
        first = item.calls[0].cell
        service = self.service
        most_requests = self.most or service.requests
        options: dict[str, Any] = {"kind": service.kind.value, "server": service.name}
        options |= {"model": first.model, "logprobs": first.logprobs}
        on_way = self.ledger.open
        if on_way:
            on_way &= {item.calls[0].key for item in self.pending()}
        for batch in self.ledger.holding(on_way, options):
            await self._find(batch)
        covered = frozenset[str]().union(*(batch.open for batch in self.going))
        requests = dict[str, bytes]()
        size = 0
        at_most = 0.0
        for item in self.pending():
            key = item.calls[0].key
            if key in covered:
                continue
            call = self._call(item)
            try:
                line, most = await service.request_line(key, call)
                if len(line) + len(service.head) + len(service.tail) > service.size:
                    raise ValueError(f"a request of {len(line):,} bytes is too large for a batch")
            except Exception as error:  # a broken image may raise anything
                self.answered.add(key)
                call.unreadable = error_line(error)  # as the single call would have failed
                yield WorkResult(item.calls, (call.answer(),))
                continue
            whole = size + len(service.between) + len(line) + len(service.tail)
            if requests and (len(requests) >= most_requests or whole > service.size):
                await self._submit(options, requests, at_most)
                requests = {}
                size = 0
                at_most = 0.0
            requests[key] = (service.between if requests else service.head) + line
            size += len(requests[key])
            at_most += most or 0.0  # unknown if there is no limit
        if requests:
            await self._submit(options, requests, at_most)

    async def _find(self, batch: BatchRequest, *, is_final: bool = True) -> bool:
        """Find out whether a batch was created; if so, collect it too.

        Where it was not, it is noted as ended if that ``is_final``. It may not be listed at once,
        so it is searched for during one poll interval.
        """
        service = self.service
        seconds = _waits(self.poll)
        until = math.inf
        if not batch.id and service.takes_files and not batch.uploaded:
            self.ledger.note(batch.name, ended="it was never made: its requests were not uploaded")
            return False
        while not batch.id:
            known = {each.id for each in self.ledger.batches.values()}
            why = f"{batch} cannot be looked for"
            id, perhaps = await self._ask_again(why, service.find, batch, known)
            if id:
                batch = self.ledger.note(batch.name, id=id)
                break
            if perhaps:
                self.tell(
                    f"the batch {perhaps} may be a batch of this journal whose submission was "
                    "interrupted: its results say it; nothing is submitted before"
                )
            elif time.monotonic() < until:
                until = min(until, time.monotonic() + self.poll)
            else:
                if is_final:
                    self.ledger.note(batch.name, ended="it was never made")
                return False
            await self._unless_cancelled(asyncio.sleep(next(seconds)))
        self.going.append(batch)
        return True

    async def _submit(
        self, options: Mapping[str, Any], requests: Mapping[str, bytes], at_most: float
    ) -> None:
        service = self.service
        content = [*requests.values(), self.service.tail]
        service.budget.commit(at_most)
        batch = self.ledger.intend(options, requests)
        if service.takes_files:
            try:
                id, at = await self._uploaded(batch, content)
            except CallError as error:
                self.ledger.note(batch.name, ended=f"nothing was submitted: {error}")
                raise CallError(
                    f"nothing was submitted: {error}", error.status, hopeless=error.hopeless
                ) from None
            batch = self.ledger.note(batch.name, uploaded=id, uploaded_at=at)
        seconds = _waits(self.poll)
        while True:
            try:
                id = await self._unless_cancelled(service.submit(batch, content), paid=True)
                batch = self.ledger.note(batch.name, id=id)
                break
            except CallError as error:
                is_made = await self._may_be_made(batch, error)
                if is_made:
                    return
                wait = next(seconds) if error.retry_after is None else error.retry_after
                if error.status not in BUSY_STATUSES or error.hopeless or wait > LONGEST_WAIT:
                    self.ledger.note(batch.name, ended=f"nothing was submitted: {error}")
                    raise CallError(
                        f"nothing was submitted: {error}", error.status, hopeless=error.hopeless
                    ) from None
                self.tell(f"the service takes no batch now: {error}; asking again")
                await self._unless_cancelled(asyncio.sleep(wait))
        self.going.append(batch)
        self.tell(f"batch {batch.id}: {counted(len(requests), 'call')}")

    async def _uploaded(self, batch: BatchRequest, content: Sequence[bytes]) -> tuple[str, float]:
        """Upload requests, which costs nothing, again where that may help."""
        seconds = _waits(self.poll)
        tries = 0
        while True:
            try:
                return await self._unless_cancelled(self.service.upload(batch, content))
            except CallError as error:
                tries += error.status not in BUSY_STATUSES
                wait = next(seconds) if error.retry_after is None else error.retry_after
                if not error.transient or error.hopeless or tries >= _TRIES or wait > LONGEST_WAIT:
                    raise
                self.tell(f"the requests of a batch cannot be uploaded: {error}; asking again")
                await self._unless_cancelled(asyncio.sleep(wait))

    async def _may_be_made(self, batch: BatchRequest, error: CallError) -> bool:
        """Return whether a batch was made, though its creation got an error; then it is going."""
        if 400 <= error.status < 500 and not error.worked_on:
            return False
        # The answer was lost; the batch may have been created, and be paid for.
        return await self._find(batch, is_final=False)

    async def _collected(self) -> AsyncGenerator[WorkResult, None]:
        """Yield the answers of batches as they end; one that is refused, or lost, ends no other."""
        seconds = _waits(self.poll)
        waiting = list(self.going)
        error: CallError | None = None
        while waiting:
            for batch in list(waiting):
                try:
                    status = await self._status(batch)
                    if status.results is None:
                        continue
                    async for result in self._results(batch, status):
                        yield result
                    self.collected += not status.refused
                except CallError as problem:
                    error = error or problem
                waiting.remove(batch)
            if waiting:
                await self._unless_cancelled(asyncio.sleep(next(seconds)))
        if error is not None:
            raise error

    async def _status(self, batch: BatchRequest) -> BatchStatus:
        """Return the state of a batch; a CallError if it was refused for good."""
        why = f"the batch {batch.id} cannot be looked at"
        status = await self._ask_again(why, self.service.status, batch.id)
        if status.refused:
            self.ledger.note(batch.name, ended=status.refused)
            why = f"the batch {batch.id} was refused: {status.refused}"
            if not status.may_pass:
                raise CallError(why, hopeless=True)
            self.tell(why)
            self.refused.append(batch)
            return status
        done = f"{status.done:,} of {len(batch.keys):,} calls"
        self.tell(f"batch {batch.id}: {status.word}, {done}")
        return status

    async def _downloaded(
        self, batch: BatchRequest, status: BatchStatus
    ) -> tuple[BatchResults, BatchStatus]:
        """Return the results of an ended batch, asked for again while some are missing.

        A list that ends early says nothing of what it leaves out.
        """
        problem = f"the results of {batch} cannot be had"
        longest = self.service.longest_line(self._most_tokens(batch), batch.options["logprobs"])
        seconds = _waits(self.poll)
        for left in reversed(range(_DOWNLOADS)):
            places = status.results or ()
            asked = (places, longest, len(batch.keys))
            results = await self._ask_again(problem, self.service.results, *asked)
            missing = self._missing(batch, results, status)
            if not (missing or results.damaged) or not left:
                break
            lacking = f"{missing:,} of its results have not come"
            if results.damaged:
                lacking += f", {len(results.damaged):,} cannot be read"
            self.tell(f"{batch}: {lacking}; asking again")
            await self._unless_cancelled(asyncio.sleep(next(seconds)))
            status = await self._status(batch)
        return results, status

    def _missing(self, batch: BatchRequest, results: BatchResults, status: BatchStatus) -> int:
        """Return how many results that were paid for did not come, or name no request."""
        path = status.paid_path
        if not path:
            return status.paid
        without = batch.keys - results.keys - results.damaged.keys()
        unnamed = results.unnamed_of(path)
        # A service may count nothing: what it sent without a name is of some request all the same.
        at_least = min(len(unnamed), len(without))
        came = (results.keys_of(path) | results.damaged_of(path)) & batch.keys
        return max(status.paid - len(came), at_least)

    def _most_tokens(self, batch: BatchRequest) -> int:
        calls = (item for item in self.pending() if item.calls[0].key in batch.keys)
        return max((self._call(item).max_tokens for item in calls), default=0)

    async def _results(
        self, batch: BatchRequest, status: BatchStatus
    ) -> AsyncGenerator[WorkResult, None]:
        """Yield the answers of an ended batch in the order of the plan: images are read once.

        CallError if results that were paid for did not come: their calls stay on their way.
        """
        if status.refused:
            return
        results, status = await self._downloaded(batch, status)
        for each in results.unread[:_SHOWN]:
            self.tell(f"{batch}: {each}")
        if len(results.unread) > _SHOWN:
            self.tell(f"{batch}: {len(results.unread) - _SHOWN:,} more of its lines are not read")
        others = results.places_of_others(batch.keys)
        if others:
            self.tell(f"{batch}: {_not_matched(others)}")
        if results.repeated:
            self.tell(f"{batch}: {_repeated(results.repeated)}")
            self.second += len(results.repeated)
        left = self._missing(batch, results, status)
        ended = results.keys | results.damaged.keys()
        done = []
        for item in self.pending():
            key = item.calls[0].key
            if key not in batch.open or (left and key not in ended):
                continue
            missing = self._without_result(batch, results, status, key)
            call = self._call(item)
            answer = await self.service.answer(call, batch.id, results.line(key), missing)
            for warning in call.warnings if answer.error is None else ():
                self.tell(warning)
            yield WorkResult(item.calls, (answer,))
            if self.cancel.requested:
                # The answer may not have been stored: it is fetched again, as it is not noted.
                raise CancelledError
            self.answered.add(key)
            done.append(key)
        self.ledger.note(batch.name, collected=done)
        if left:
            lost = results.lost.get(status.paid_path) or (_not_matched(others) if others else "")
            raise CallError(
                f"{batch}: {left:,} of its results, which were paid for, do not come"
                f"{f' ({lost})' if lost else ''}. It is noted in the journal, so run again later; "
                "if they are gone, name another --journal to ask, and pay, its calls once more",
                hopeless=True,
            )

    def _without_result(
        self, batch: BatchRequest, results: BatchResults, status: BatchStatus, key: str
    ) -> CallError:
        """Return why a request has no result: its line is damaged, or there is none."""
        damaged = results.damaged.get(key)
        if damaged is not None:
            why = f"{batch} has no readable result of it: {damaged}"
            return CallError(why, worked_on=damaged.path == status.paid_path)
        why = f"the batch {batch.id} has no result of it ({status.word})"
        if results.unread:
            why = f"{batch} has no readable result of it: {'; '.join(results.unread[:_SHOWN])}"
        return CallError(why)

    async def _ask_again(self, problem: str, ask: Callable[..., Awaitable[T]], *about: Any) -> T:
        """Ask a service about a batch, again and again while it is down."""
        seconds = _waits(self.poll)
        while True:
            try:
                return await self._unless_cancelled(ask(*about))
            except CallError as error:
                if not error.transient:
                    why = f"{problem}: {error} (it is noted in the journal{_if_gone(error)})"
                    raise CallError(why, error.status, hopeless=True) from None
                self.tell(f"{problem}: {error}; asking again")
            await self._unless_cancelled(asyncio.sleep(next(seconds)))

    async def _unless_cancelled(self, awaited: Awaitable[T], *, paid: bool = False) -> T:
        """Await unless cancelled; a paid request only ends on an interruption."""
        task: asyncio.Future[T] = asyncio.ensure_future(awaited)
        with self.cancel.ending(task, early=not paid):
            try:
                return await task
            except asyncio.CancelledError:
                if self.cancel.requested:
                    raise CancelledError from None
                raise


def _not_matched(places: Sequence[str]) -> str:
    """Say which results cannot be matched with a request."""
    count = len(places)
    results = agreeing(count, "a result names", f"{count:,} results name")
    return f"{results} no request of it ({_first(places)}), so nothing is taken from there"


def _repeated(places: Sequence[str]) -> str:
    """Say which results are of requests that have one before."""
    count = len(places)
    results = agreeing(count, "a second result", f"{count:,} second results")
    return f"{results} of the same request ({_first(places)}): the first that is an answer is kept"


def _first(places: Sequence[str]) -> str:
    return ", ".join([*places[:_SHOWN], *(["…"] if len(places) > _SHOWN else [])])


def _if_gone(error: CallError) -> str:
    """Say what to do about a batch that a service does not have, or no longer."""
    if error.status not in (404, 410):
        return ""
    return (
        "; if --base-url and the key are those that it was submitted with, it is gone: name "
        "another --journal to ask, and pay, its calls once more"
    )


def _waits(poll: float) -> Iterator[float]:
    seconds = 1.0
    while True:
        yield min(seconds, poll)
        seconds *= 2
