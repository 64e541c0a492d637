"""Calls over a Ray cluster: each replica of a model is a server of the scheduler.

Ray places and restarts replicas; the scheduler decides what they are asked.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ..core import error_line, install_command
from ..protocol import CallResult, CancelledError, StopReason
from .backend import (
    CallOptions,
    CancelToken,
    Loader,
    ScheduledRun,
    WorkResult,
    not_loaded,
)
from .local_backend import batch_of
from .plan import WorkItem
from .ray_cluster import cluster, code_sha256, replicas, room_for
from .retry_scheduler import Assignment, FinishedItem, Scheduler
from .server_state import CallOutcome, ServerPolicy

log = logging.getLogger(__name__)

_POLICY = ServerPolicy(
    attempts=3,
    failures=3,
    rest=(math.inf, math.inf),  # a replica that keeps failing is retired
    hold_siblings=False,
)

# Seconds for a replica that died to load its model again, and for a cluster that lost its machines
# to have others
_COMES_BACK = 900.0
_LOOKS = 5.0  # seconds between two looks at what machines there are


class RayBackend:
    """Replicas of a model as actors of a Ray cluster; ValueError if Ray is needed and missing."""

    def __init__(self, load: Loader, inference: CallOptions) -> None:
        self._load = load
        self._inference = inference

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        scheduler = Scheduler(((item.image_name, item) for item in items), {}, _POLICY)
        if scheduler.done:
            return
        try:
            with cancel.exposed():
                ray = _ray()
        except CancelledError:
            return
        with cluster(ray), replicas(ray, self._load, self._inference) as handles:
            run = _RayRun(ray, scheduler, handles, cancel, self._inference)
            async with aclosing(run.results()) as results:
                async for finished in results:
                    for result in finished:
                        yield result


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ValueError(f"Ray is not installed: {install_command('cluster')}") from None
    return ray


@dataclass(slots=True, eq=False)
class _Actor:
    name: str
    handle: Any
    machine: str = "a machine of the cluster"

    def __str__(self) -> str:
        return f"{self.name} on {self.machine}"


class _RayRun(ScheduledRun[WorkResult]):
    def __init__(
        self,
        ray: Any,
        scheduler: Scheduler,
        handles: Iterable[Any],
        cancel: CancelToken,
        inference: CallOptions,
    ) -> None:
        super().__init__(scheduler, cancel)
        self._ray = ray
        self._inference = inference
        self._waits: set[asyncio.Timeout] = set()  # Of replicas that start
        self._starting = 0
        self._partial: list[WorkResult] = []
        self._problem: BaseException = RuntimeError("no replica is left")
        self._actors = [_Actor(f"replica {at}", handle) for at, handle in enumerate(handles, 1)]
        for actor in self._actors:
            self._start(actor)
        self._go(self._watch_machines(), calls=False)

    def _stop(self) -> None:
        for actor in self._actors:
            actor.handle.stop.remote()
        self._wake()

    def _begin(self) -> bool:
        if self._cancel.requested:
            self._scheduler.give_up("not asked: the run is to stop")
        while (assignment := self._scheduler.next(self._loop.time())) is not None:
            self._go(self._ask(assignment), calls=True)
        return True

    def _finished(self) -> list[WorkResult]:
        partial = self._partial
        self._partial = []
        return partial + super()._finished()

    def _result(self, finished: FinishedItem) -> WorkResult | None:
        item: WorkItem = finished.item.value
        stop = None
        if finished.outcome is CallOutcome.HOPELESS:
            if not finished.item.reason:
                return not_loaded(item, self._problem)  # no replica was asked
            stop = StopReason.HOPELESS
        elif finished.outcome is not CallOutcome.FAILED or self._cancel.requested:
            return None
        is_without_room = stop is not None and isinstance(self._problem, TimeoutError)
        reason = str(self._problem) if is_without_room else finished.reason
        answer = CallResult("", error=reason, stop=stop)
        return WorkResult(item.calls, (answer,) * len(item.calls))

    def _start(self, actor: _Actor, within: float | None = None) -> None:
        """Use a replica once its model is loaded, without waiting for it."""

        async def start() -> None:
            try:
                async with asyncio.timeout(within) as limit:
                    self._waits.add(limit)
                    ready = actor.handle.ready.options(max_task_retries=-1)
                    actor.machine = await ready.remote(code_sha256())
                self._scheduler.add_server(actor.name, 1, actor)
            except Exception as error:
                why = _cause(error)
                if limit.expired():
                    why = TimeoutError(
                        f"its machine is gone, and no machine had room for it within "
                        f"{_COMES_BACK / 60:g} minutes. Type ray status to see what the cluster "
                        "has; the same command goes on"
                    )
                self._lose(actor, "does not load its model", why)
            finally:
                self._waits.discard(limit)
                self._starting -= 1
                self._scheduler.servers_may_come = self._starting > 0

        self._starting += 1
        self._scheduler.servers_may_come = True
        self._go(start(), calls=False)

    async def _watch_machines(self) -> None:
        """End the wait of replicas once a cluster that had machines has had none for long.

        A cluster that never had room may yet grow: there they wait for as long as it takes.
        """
        last_room: float | None = None
        while True:
            await asyncio.sleep(_LOOKS)
            try:
                room = await asyncio.to_thread(room_for, self._ray, self._inference)
            except Exception as error:
                log.debug("the cluster does not say what it has", exc_info=error)
                continue
            now = self._loop.time()
            if room >= 1:
                last_room = now
            elif last_room is not None and now - last_room > _COMES_BACK:
                for limit in self._waits:
                    limit.reschedule(now)

    def _lose(self, actor: _Actor, what: str, error: BaseException) -> None:
        log.warning("%s %s: %s", actor, what, error_line(error))
        self._problem = error
        self._remove(actor, error_line(error))
        self._ray.kill(actor.handle)

    def _remove(self, actor: _Actor, why: str) -> None:
        if actor.name in self._scheduler.servers:
            self._scheduler.remove_server(actor.name, self._loop.time(), why)

    async def _ask(self, assignment: Assignment) -> None:
        """Have a replica answer an item; failed answers are held back until one succeeds."""
        item: WorkItem = assignment.item.value
        actor: _Actor = assignment.server.endpoint
        left = dict(enumerate(item.calls))
        failed: dict[int, CallResult] = {}
        outcome = CallOutcome.ANSWERED
        reason = ""
        died = False
        hopeless = False
        try:
            ask = actor.handle.ask.options(num_returns="streaming")
            async for reference in ask.remote(batch_of(item)):
                parts, words = await reference
                for level, line in words:
                    log.log(level, "%s: %s", actor, line)
                for part in parts:
                    failed.update(zip(part.places, part.answers, strict=True))
                answers = tuple(failed.values())
                if any(answer.error is None for answer in answers):
                    calls = tuple(left.pop(at) for at in failed)
                    self._partial.append(WorkResult(calls, answers))
                    failed = {}
                    self._woken.set()
            if left and not self._cancel.requested:
                answers = tuple(failed.values())
                reason = answers[-1].error or ""
                hopeless = any(answer.stop is not None for answer in answers)
                calls = tuple(left[at] for at in failed)
                outcome = self._all_failed(assignment, WorkResult(calls, answers))
        except Exception as error:
            outcome = CallOutcome.FAILED
            reason = error_line(_cause(error))
            died = isinstance(error, self._ray.exceptions.RayActorError)
            if died:
                reason = f"its replica died ({type(error).__name__})"
        if died:
            # Ray restarts it where there is room.
            log.warning("%s died and is started again where the cluster has room", actor)
            self._start(actor, _COMES_BACK)
        remaining = WorkItem(tuple(left.values()))
        self._scheduler.ended(assignment, outcome, self._loop.time(), reason, remaining=remaining)
        if died:
            self._remove(actor, "it died")
        elif hopeless or assignment.server.on_trial:
            self._lose(actor, "fails every call and is retired", RuntimeError(reason))

    def _all_failed(self, assignment: Assignment, result: WorkResult) -> CallOutcome:
        """Blame an item whose calls all fail if two replicas fail it, or no other can try it.

        A replica that says that no further call would be answered speaks for itself: the run ends
        if it is the last.
        """
        name = assignment.server.name
        servers = self._scheduler.servers
        others = assignment.item.failed_at - {name}
        is_last = not (self._starting or servers.keys() - {name})
        if not others and not is_last:
            return CallOutcome.FAILED
        for other in others & servers.keys():
            servers[other].works(self._loop.time())
        if not is_last:
            answers = tuple(answer._replace(stop=None) for answer in result.answers)
            result = WorkResult(result.calls, answers)
        self._partial.append(result)
        return CallOutcome.INVALID


def _cause(error: BaseException) -> BaseException:
    return getattr(error, "cause", None) or error
