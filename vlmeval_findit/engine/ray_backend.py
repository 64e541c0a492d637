"""Calls over a Ray cluster: each replica of a model is a server of the scheduler.

Ray places replicas, starts those again that died, and keeps them apart; which of them is asked what
is decided here, and every answer comes here.  The machines of a cluster need this package and the
images at the same paths.  Without a cluster a local Ray is started, which listens on this machine's
loopback address only.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.work import Answer, said
from .backend import Loader, WorkResult, image_name, not_loaded, work_of
from .cancel import CancelToken
from .config import Inference
from .finished import code_sha256
from .outcome import Outcome, Policy
from .plan import WorkItem
from .ray_cluster import cluster, import_ray, replicas
from .ray_replica import Ready
from .scheduler import Assignment, Scheduler

log = logging.getLogger(__name__)

_POLICY = Policy(
    attempts=3,
    failures=3,
    rest=(math.inf, math.inf),  # a replica that fails again and again is retired
    patience=0.0,
    first_patience=0.0,
    hold_siblings=False,
)

_DEATHS = 6
"""Deaths of a replica, no answer between, after which it is lost: more than one item makes."""

_COMES_BACK = 900.0
"""Seconds in which a replica that died should have loaded its model again."""


@dataclass(slots=True, eq=False)
class _Actor:
    """An actor, and how it did."""

    name: str
    handle: Any
    machine: str = "a machine of the cluster"
    deaths: int = 0

    def __str__(self) -> str:
        return f"{self.name} on {self.machine}"


@dataclass(slots=True, eq=False)
class _Progress:
    """An item at a replica: its calls that did not come home, and their failed answers so far."""

    calls: tuple[Any, ...]
    failed: list[Answer] = field(default_factory=list)


class RayBackend:
    """Replicas of a model in the actors of a Ray cluster.

    Args:
        load: makes the asker, in every actor.
        inference: how many replicas, and what each of them needs.

    Raises:
        ValueError: Ray is not installed.
    """

    def __init__(self, load: Loader, inference: Inference) -> None:
        self._ray = import_ray()
        self._load = load
        self._inference = inference
        self.capacity: Mapping[str, int] = {}

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        scheduler = Scheduler(((image_name(item), item) for item in items), {}, _POLICY)
        if scheduler.done:
            return
        with cluster(self._ray), replicas(self._ray, self._load, self._inference) as handles:
            actors = [_Actor(f"replica {at}", handle) for at, handle in enumerate(handles, 1)]
            run = _Run(self._ray, scheduler, actors, cancel)
            try:
                async for result in run.results():
                    yield result
            finally:
                run.end()


class _Run:
    """The calls of one run: what the scheduler says is sent, what comes home is put in a queue."""

    def __init__(
        self, ray: Any, scheduler: Scheduler, actors: list[_Actor], cancel: CancelToken
    ) -> None:
        self._ray = ray
        self._scheduler = scheduler
        self._actors = {actor.name: actor for actor in actors}
        self._cancel = cancel
        self._home: asyncio.Queue[WorkResult | BaseException | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = len(actors)
        self._failed: dict[int, tuple[str, list[Answer]]] = {}
        self._problem: BaseException | None = None

    async def results(self) -> AsyncGenerator[WorkResult, None]:
        """Yield answers as they come home, until nothing more does."""
        loop = asyncio.get_running_loop()

        def told() -> None:
            loop.call_soon_threadsafe(self._stop)

        for actor in self._actors.values():
            self._go(self._start(actor))
        with self._cancel.on_request(told):
            while not self._cancel.now:
                self._begin()
                for result in self._ended():
                    yield result
                is_over = self._cancel.requested or self._scheduler.done
                if is_over and not self._scheduler.in_flight and self._home.empty():
                    return
                wake_at = self._scheduler.wake_at(time.monotonic())
                wait = None if wake_at is None else max(wake_at - time.monotonic(), 0.0)
                try:
                    async with asyncio.timeout(wait):
                        came = await self._home.get()
                except TimeoutError:
                    continue
                if isinstance(came, BaseException):
                    raise came
                if came is not None:
                    yield came

    def end(self) -> None:
        """Wait for nothing any more."""
        for task in self._tasks:
            task.cancel()

    def _stop(self) -> None:
        for actor in self._actors.values():
            actor.handle.stop.remote()
        self._home.put_nowait(None)

    def _go(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._gone)

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._home.put_nowait(None if task.cancelled() else task.exception())

    # --- replicas come and go ---------------------------------------------------------------------

    async def _start(self, actor: _Actor, *, again: bool = False) -> None:
        """Ask a replica from when its model is loaded; the others do not wait for it.

        Raises:
            ValueError: it has another version of this package.
        """
        ready = actor.handle.ready.options(max_task_retries=-1 if again else 0)
        try:
            async with asyncio.timeout(_COMES_BACK if again else None):
                found: Ready = await ready.remote()
        except self._ray.exceptions.RayActorError as error:
            self._died(actor, error)
        except (self._ray.exceptions.RayError, TimeoutError) as error:
            self._lose(actor, "does not load its model", _cause(error))
        else:
            if found.code != code_sha256():
                raise ValueError(
                    f"{found.machine} has another version of this package: install the same one "
                    "on all machines of the cluster"
                )
            actor.machine = found.machine
            self._scheduler.add_server(actor.name, 1)
        finally:
            self._starting -= 1

    def _lose(self, actor: _Actor, what: str, error: BaseException) -> None:
        log.warning("%s %s: %s", actor, what, said(error))
        self._problem = error
        if actor.name in self._scheduler.servers:
            self._scheduler.remove_server(actor.name, time.monotonic(), said(error))
        self._ray.kill(actor.handle)

    def _died(self, actor: _Actor, error: BaseException) -> None:
        """Wait for a replica that died, which Ray starts again, where there is room."""
        actor.deaths += 1
        if actor.deaths >= _DEATHS:
            self._lose(actor, f"died {actor.deaths} times and is not started again", error)
            return
        log.warning("%s died and is started again", actor)
        self._starting += 1
        self._scheduler.servers_may_come = True
        if actor.name in self._scheduler.servers:
            self._scheduler.remove_server(actor.name, time.monotonic(), "it died")
        self._go(self._start(actor, again=True))

    # --- calls ------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._scheduler.servers_may_come = self._starting > 0
        while not self._cancel.requested:
            if (assignment := self._scheduler.next(time.monotonic())) is None:
                return
            self._go(self._ask(assignment))

    async def _ask(self, assignment: Assignment) -> None:
        """Have a replica answer an item, and say what came of it."""
        item: WorkItem = assignment.item.value
        actor, left = self._actors[assignment.server.name], _Progress(item.calls)
        death: BaseException | None = None
        reason = ""
        try:
            ask = actor.handle.ask.options(num_returns="streaming")
            async for reference in ask.remote(work_of(item)):
                home = await reference
                for level, line in home.words:
                    log.log(level, "%s: %s", actor, line)
                self._came(left, home.answers, actor)
        except self._ray.exceptions.RayActorError as error:
            death, reason = error, f"its replica died ({type(error).__name__})"
        except self._ray.exceptions.RayError as error:
            reason = said(_cause(error))
        remaining = WorkItem(left.calls, item.shares_images)
        if not left.calls or (self._cancel.requested and not reason):
            outcome = Outcome.ANSWERED
        elif reason:
            outcome = Outcome.FAILED
        else:
            outcome, reason = self._all_failed(assignment, left), left.failed[-1].error or ""
        self._scheduler.ended(assignment, outcome, time.monotonic(), reason, remaining=remaining)
        if death is not None:
            self._died(actor, death)
        elif assignment.server.on_trial and actor.name in self._scheduler.servers:
            self._lose(actor, "fails every call and is retired", RuntimeError(reason))

    def _came(self, left: _Progress, answers: tuple[Answer, ...], actor: _Actor) -> None:
        """Hand answers over; failed ones when others show that it is not the replica's fault."""
        left.failed += answers
        if all(answer.error is not None and answer.stop is None for answer in left.failed):
            return
        actor.deaths = 0
        count = len(left.failed)
        self._home.put_nowait(WorkResult(left.calls[:count], tuple(left.failed)))
        left.calls, left.failed = left.calls[count:], []

    def _all_failed(self, assignment: Assignment, left: _Progress) -> Outcome:
        """Whose fault it is that all calls of an item fail: where two replicas say so, the item's;
        without another replica nobody knows, and the calls have failed.
        """
        key, name = id(assignment.item), assignment.server.name
        before = self._failed.pop(key, None)
        others = self._scheduler.servers.keys() - {name}
        if before is None and (others or self._starting):
            self._failed[key] = name, left.failed
            return Outcome.FAILED
        if before is not None and (first := self._scheduler.servers.get(before[0])) is not None:
            first.works(time.monotonic())
        self._home.put_nowait(WorkResult(left.calls, tuple(left.failed)))
        return Outcome.INVALID

    def _ended(self) -> Iterator[WorkResult]:
        """What the scheduler gave up: items that killed replicas; or all, as no replica is left."""
        finished, self._scheduler.finished[:] = self._scheduler.finished[:], []
        for one in finished:
            failed = self._failed.pop(id(one.item), None)
            if one.outcome is Outcome.HOPELESS:
                error = self._problem or RuntimeError(one.reason)
                yield not_loaded(one.item.value, error)
                return
            if one.outcome is Outcome.FAILED:
                calls = one.item.value.calls
                answers = failed[1] if failed else [Answer("", error=one.reason)] * len(calls)
                yield WorkResult(calls, tuple(answers))


def _cause(error: BaseException) -> BaseException:
    """What an actor raised, without Ray's account of it."""
    return getattr(error, "cause", None) or error
