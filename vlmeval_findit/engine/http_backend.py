"""Asks a model over HTTP: local servers, a provider, OpenRouter.

The scheduler decides which call goes where and when; this module sends it. Whatever a server does
becomes an answer, with or without an error; nothing is raised.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

from ..core import RARE_COLLECTIONS, error_line, open_file_limit, room_for_files, too_many_files
from ..models import (
    BUSY_STATUSES,
    DENIED_STATUSES,
    AddressFile,
    Budget,
    CallError,
    ChatCall,
    ChatModel,
    EncodedImages,
    Endpoint,
    HttpClient,
    HttpEndpoint,
    SpendingError,
    http_endpoints,
    proxies_to,
)
from ..protocol import CallResult, DatasetVariant, Message, StopReason, refused_if_it_quotes
from .backend import (
    CancelToken,
    ScheduledRun,
    WorkResult,
    not_loaded,
    run_sync,
)
from .calls import Call
from .plan import WorkItem, single_calls
from .retry_scheduler import Assignment, FinishedItem, Scheduler
from .server_state import (
    LONGEST_WAIT,
    UNREACHED_PATIENCE,
    CallOutcome,
    ServerPolicy,
    ServerState,
)

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class HttpService:
    """A model over HTTP, how it is asked, and the state of its servers.

    Backends may share it in turn, so that servers are probed once. Callable endpoints are listed
    again every second, and raise RuntimeError when no server will come.
    """

    model: ChatModel
    endpoints: Sequence[Endpoint] | Callable[[], Sequence[Endpoint]]
    timeout: float = 600.0  # seconds per attempt, from name lookup to last byte
    budget: Budget = field(default_factory=Budget)  # may be shared with other models
    policy: ServerPolicy = field(default_factory=ServerPolicy)
    _known: dict[str, HttpEndpoint] = field(default_factory=dict, init=False, repr=False)
    _shown: set[str] = field(default_factory=set, repr=False)
    _waited_for: set[tuple[str, int]] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ValueError("no server is given: --base-url URL")
        known = self.servers().values()
        proxies_to(server.endpoint for server in known)  # refuses those of unknown kinds

    def servers(self) -> dict[str, HttpEndpoint]:
        """Return the current servers by name; what is known of former servers stays."""
        endpoints = self.endpoints() if callable(self.endpoints) else self.endpoints
        current = http_endpoints(endpoints)
        self._known = {**current, **self._known}
        return {name: self._known[name] for name in current}

    def warn(self, call: ChatCall) -> None:
        for message in call.warnings:
            if message not in self._shown:
                self._shown.add(message)
                log.warning("%s: %s", call.server or call.model.name, message)

    def say_waiting(self, server: str, error: CallError, patience: float) -> None:
        """Say, once for a server and status, that a refused call is asked again, and how long."""
        if (server, error.status) in self._waited_for:
            return
        self._waited_for.add((server, error.status))
        until = "until it answers" if math.isinf(patience) else f"for up to {_minutes(patience)}"
        if patience == UNREACHED_PATIENCE:
            until += " (if it is still starting, wait until it listens, or have --serve start it)"
        paid = "; each attempt is counted as it may be billed" if error.is_charged else ""
        log.warning("%s: %s: asking again %s%s; Ctrl-C stops", server, error, until, paid)


@dataclass(repr=False, eq=False)
class HttpBackend:
    """Answers calls of a model over HTTP, with at most ``calls`` in flight per server."""

    load: Callable[[], HttpService]
    calls: int = 1

    @cached_property
    def service(self) -> HttpService:
        """Load the service; any exception of the loader passes through."""
        return self.load()

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        remaining = iter(items)
        first = next(remaining, None)
        if first is None:
            return
        try:
            service = self.service
        except (Exception, SystemExit) as error:
            yield not_loaded(first, error)
            return
        run = HttpRun(self, _calls_of(chain([first], remaining), service), cancel)
        async with aclosing(run.answers()) as results:
            with RARE_COLLECTIONS:
                async for finished in results:
                    yield WorkResult(*zip(*finished, strict=True))

    def ask(self, message: Message, variant: DatasetVariant) -> CallResult:
        call = ChatCall(self.service.model, self.service.budget, message, variant)

        async def asked() -> CallResult:
            run = HttpRun(self, iter([("", (None, call))]), CancelToken())
            async with aclosing(run.answers()) as results:
                answers = []
                async for finished in results:
                    answers += [answer for _, answer in finished]
                return refused_if_it_quotes(answers.pop())

        return run_sync(asked())


_Asked = tuple[Any, ChatCall]  # a call of the engine (or None), and how it is made


def _calls_of(items: Iterable[WorkItem], service: HttpService) -> Iterator[tuple[str, _Asked]]:
    """Yield the names of images with calls, and how these are made."""
    singles = ((item.image_name, item.calls[0]) for item in single_calls(items))
    end: tuple[str, Call | None] = ("", None)
    before = ""
    for (image, call), (after, _) in pairwise(chain(singles, [end])):
        assert call is not None
        asked = ChatCall(
            service.model,
            service.budget,
            call.message,
            call.cell.variant,
            logprobs=call.cell.logprobs,
            # Calls over the same images are neighbours: providers are told to cache those.
            shared=image != "" and image in (before, after),
            seed=call.seed,
            planned=call.image_sha256,
        )
        before = image
        yield image, (call, asked)


class HttpRun(ScheduledRun[tuple[Any, CallResult]]):
    """Asks the calls of one run over HTTP."""

    def __init__(
        self, backend: HttpBackend, calls: Iterator[tuple[str, _Asked]], cancel: CancelToken
    ) -> None:
        service = backend.service
        super().__init__(Scheduler(calls, {}, service.policy), cancel)
        self._service = service
        servers = service.servers()
        self._at_once = _calls_with_files(backend.calls, len(servers))
        for name, endpoint in servers.items():
            self._scheduler.add_server(name, self._at_once, endpoint)
        self._budget = service.budget
        self._client = HttpClient(service.timeout)
        self._images = EncodedImages()
        self._spent = ""
        self._lost = ""
        if callable(service.endpoints):
            self._scheduler.servers_may_come = True
            self._go(self._follow_servers(), calls=False)
            if not servers:
                is_file = isinstance(service.endpoints, AddressFile)
                where = f" in {service.endpoints}" if is_file else ""
                log.warning("%s: no server yet%s: calls wait for one", service.model.name, where)

    async def answers(self) -> AsyncGenerator[list[tuple[Any, CallResult]], None]:
        try:
            with self._budget.watched_by(self._wake):
                async with self._client, aclosing(self.results()) as results:
                    async for finished in results:
                        yield finished
        finally:
            self._images.close()

    def _begin(self) -> bool:
        """Begin what may begin; False if the budget waits for the cost of other calls.

        Then only they can wake it.
        """
        scheduler = self._scheduler
        if self._cancel.requested and not scheduler.given_up:
            scheduler.give_up("not asked: the run is to stop")
        while not scheduler.done:
            try:
                if not self._budget.begin():
                    return False
            except SpendingError as error:
                self._spent = f"Not asked: {error}"
                scheduler.give_up(self._spent)
                break
            assignment = scheduler.next(self._loop.time())
            if assignment is None:
                self._budget.take_back()
                break
            self._go(self._attempt(assignment), calls=True)
        return True

    def _result(self, finished: FinishedItem) -> tuple[Any, CallResult] | None:
        """Return a call and its answer; None if it was not made."""
        asked, call = finished.item.value
        if not (call.completion or call.error or call.unreadable):
            if not (self._spent or self._lost):
                return None
            why = StopReason.SPENT if self._spent else StopReason.NOT_LOADED
            return asked, CallResult("", error=self._spent or self._lost, stop=why)
        stop = None
        gave_up = self._scheduler.given_up and not (self._spent or self._cancel.requested)
        if gave_up and finished.outcome is CallOutcome.HOPELESS:
            stop = StopReason.HOPELESS
        answer = call.answer(stop, _later(call.error.retry_after if call.error else None))
        if call.warnings:
            self._service.warn(call)
        return asked, answer._replace(seconds=self._loop.time() - call.began)

    async def _follow_servers(self) -> None:
        scheduler = self._scheduler
        while not scheduler.given_up:
            await asyncio.sleep(_LOOK_SECONDS)
            now = self._loop.time()
            servers: dict[str, HttpEndpoint] = {}
            try:
                servers = self._service.servers()
            except RuntimeError as error:
                self._lost = error_line(error)
                scheduler.give_up(self._lost, CallOutcome.HOPELESS)
            for name, endpoint in servers.items():
                if name not in scheduler.servers:
                    scheduler.add_server(name, self._at_once, endpoint)
            for name in scheduler.servers.keys() - servers.keys():
                scheduler.remove_server(name, now)
            self._woken.set()

    async def _attempt(self, assignment: Assignment) -> None:
        _, call = assignment.item.value
        server: HttpEndpoint = assignment.server.endpoint
        call.began = call.began or assignment.began
        before = call.cost or 0.0
        guessed = call.guessed
        guesses = call.guesses
        failure: CallError | None = None
        try:
            await call.attempt(server, self._client, self._images)
            server.note_answer(constrained=call.is_constrained)
            outcome = CallOutcome.ANSWERED
            reason = ""
        except CallError as error:
            server.note_refusal(error, constrained=call.is_constrained, images=call.shown)
            failure = error
            outcome = _outcome_of(error, call.lasting)
            reason = str(error)
        except Exception as error:  # before the call: a broken image may raise anything
            log.debug("a call was not made", exc_info=error)
            reason = too_many_files(error)
            if reason:  # which passes, and is no fault of the image
                outcome = CallOutcome.FAILED
                call.error = failure = CallError(reason, transient=True)
            else:
                outcome = CallOutcome.INVALID
                reason = error_line(error)
                call.unreadable = reason
        finally:
            cost = None if call.cost is None else call.cost - before
            self._budget.end(cost, call.guessed - guessed, call.guesses - guesses)
        now = self._loop.time()
        retry_after = failure.retry_after if failure else None
        # What replied before may be restarting; an address that never did is probably wrong.
        unreached = failure is not None and failure.unreached and not server.has_replied
        self._scheduler.ended(
            assignment, outcome, now, reason, retry_after=retry_after, unreached=unreached
        )
        if failure is not None and outcome in (CallOutcome.REFUSED, CallOutcome.FAILED):
            self._say_waiting(assignment.server, failure)

    def _say_waiting(self, server: ServerState, error: CallError) -> None:
        scheduler = self._scheduler
        if scheduler.done or scheduler.given_up or (error.retry_after or 0.0) > LONGEST_WAIT:
            return
        patience = math.inf if scheduler.servers_may_come else server.patience
        self._service.say_waiting(server.name, error, patience)


_SPARE_FILES = 32  # for images, the journal, scores and libraries


def _calls_with_files(calls: int, servers: int) -> int:
    """Return how many calls at a time each server gets: each is a connection, an open file.

    A warning says where the limit of the process allows fewer than ``calls``.
    """
    servers = max(servers, 1)
    possible = max(1, room_for_files(calls * servers, _SPARE_FILES) // servers)
    if possible < calls:
        log.warning(
            "%d calls at a time instead of %d: this process may have %d open files. More: "
            "ulimit -n 4096 before the command",
            possible,
            calls,
            open_file_limit(),
        )
    return possible


_LASTING = 2  # attempts that such an error ends


def _outcome_of(error: CallError, lasting: int) -> CallOutcome:
    """Return what an attempt's error means; ``lasting``: how many would probably come again."""
    if error.hopeless:
        is_denial = error.status in DENIED_STATUSES and not error.certain
        return CallOutcome.DENIED if is_denial else CallOutcome.HOPELESS
    if error.lasting and lasting < _LASTING:
        return CallOutcome.FAILED
    if not error.transient:
        return CallOutcome.INVALID
    return CallOutcome.REFUSED if error.status in BUSY_STATUSES else CallOutcome.FAILED


def _later(seconds: float | None) -> str:
    """Say when a server asks to come back, if that is too long to wait."""
    if seconds is None or seconds <= LONGEST_WAIT:
        return ""
    return f"; asks to come back in {_minutes(seconds)}"


def _minutes(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:g} seconds"
    if seconds == 60:
        return "a minute"
    if seconds < 7200:
        return f"{seconds / 60:.3g} minutes"
    return f"{seconds / 3600:.3g} hours"
