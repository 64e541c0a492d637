"""Calls over a Ray cluster: each replica of a model is a server of the scheduler.

Ray places and restarts replicas; who is asked what is decided here.  The machines of a cluster need
this package and the images at the same paths; a local Ray listens on the loopback address only.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from logging.handlers import BufferingHandler
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from ..core.command import install
from ..core.plugins import FILES_VARIABLE, loaded_files, named_files
from ..core.redaction import quoted
from ..core.work import Answer, Asker, Work, said
from .backend import (
    Inference,
    Loader,
    WorkResult,
    answers_in_turn,
    image_name,
    not_loaded,
    work_of,
)
from .cancel import CancelToken
from .finished import code_sha256
from .plan import WorkItem
from .scheduler import Assignment, Scheduler
from .server import Outcome, Policy

log = logging.getLogger(__name__)

_POLICY = Policy(
    attempts=3,
    failures=3,
    rest=(math.inf, math.inf),  # a replica that fails again and again is retired
    hold_siblings=False,
)

_RESTARTS = 20  # of a replica: more than one item makes
_COMES_BACK = 900.0  # seconds in which a replica that died should have loaded its model again
_TOGETHER = 0.25  # seconds of answers that go home together: a message costs the driver 0.4 ms

_SECRET = re.compile("KEY|TOKEN|HEADERS|SECRET|PASS")
"""In names of variables that replicas do not get: what is sent lies in the object store of the
cluster, for everybody on it to read."""

_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""At 0 Ray listens on 127.0.0.1 only: meant for systems whose firewalls would ask."""


class RayBackend:
    """Replicas of a model in the actors of a Ray cluster.

    Raises:
        ValueError: Ray is not installed.
    """

    def __init__(self, load: Loader, inference: Inference) -> None:
        try:
            import ray
        except ImportError:
            raise ValueError(f"Ray is not installed: {install('cluster')}") from None
        self._ray: Any = ray
        self._load = load
        self._inference = inference
        self.capacity: Mapping[str, int] = {}

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        scheduler = Scheduler(((image_name(item), item) for item in items), {}, _POLICY)
        if scheduler.done:
            return
        with _cluster(self._ray), replicas(self._ray, self._load, self._inference) as handles:
            run = _Run(self._ray, scheduler, handles, cancel)
            try:
                async for result in run.results():
                    yield result
            finally:
                for task in run.tasks:
                    task.cancel()


@dataclass(slots=True, eq=False)
class _Actor:
    name: str
    handle: Any
    machine: str = "a machine of the cluster"

    def __str__(self) -> str:
        return f"{self.name} on {self.machine}"


class _Run:
    """The calls of one run: what the scheduler says is sent, what comes home is put in a queue."""

    def __init__(
        self, ray: Any, scheduler: Scheduler, handles: Iterable[Any], cancel: CancelToken
    ) -> None:
        self._ray = ray
        self._errors = ray.exceptions
        self._scheduler = scheduler
        actors = (_Actor(f"replica {at}", handle) for at, handle in enumerate(handles, 1))
        self._actors = {actor.name: actor for actor in actors}
        self._cancel = cancel
        self._home: asyncio.Queue[WorkResult | BaseException | None] = asyncio.Queue()
        self.tasks: set[asyncio.Task[None]] = set()
        self._starting = len(self._actors)
        self._failed: dict[int, tuple[str, WorkResult]] = {}  # items that one replica failed
        self._problem: BaseException | None = None

    async def results(self) -> AsyncGenerator[WorkResult, None]:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(self._stop)

        for actor in self._actors.values():
            self._go(self._start(actor))
        with self._cancel.on_request(stop):
            while not self._cancel.now:
                while not self._cancel.requested:
                    self._scheduler.servers_may_come = self._starting > 0
                    if (assignment := self._scheduler.next(time.monotonic())) is None:
                        break
                    self._go(self._ask(assignment))
                for result in self._given_up():
                    yield result
                is_over = self._cancel.requested or self._scheduler.done
                if is_over and not self._scheduler.in_flight and self._home.empty():
                    return
                now, came = time.monotonic(), None
                wake_at = self._scheduler.wake_at(now)
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if wake_at is None else wake_at - now):
                        came = await self._home.get()
                if isinstance(came, BaseException):
                    raise came
                if came is not None:
                    yield came

    def _stop(self) -> None:
        for actor in self._actors.values():
            actor.handle.stop.remote()
        self._home.put_nowait(None)

    def _go(self, coroutine: Any) -> None:
        def gone(task: asyncio.Task[None]) -> None:
            self.tasks.discard(task)
            self._home.put_nowait(None if task.cancelled() else task.exception())

        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(gone)

    # --- replicas come and go ---------------------------------------------------------------------

    async def _start(self, actor: _Actor, within: float | None = None) -> None:
        """Ask a replica from when its model is loaded; the others do not wait for it."""
        try:
            async with asyncio.timeout(within):
                machine, code = await actor.handle.ready.options(max_task_retries=-1).remote()
            if code != code_sha256():
                raise ValueError(
                    f"{machine} has another version of this package: install the same one on all "
                    "machines of the cluster"
                )
            actor.machine = machine
            self._scheduler.add_server(actor.name, 1)
        except (self._errors.RayError, TimeoutError) as error:
            self._lose(actor, "does not load its model", _cause(error))
        finally:
            self._starting -= 1

    def _lose(self, actor: _Actor, what: str, error: BaseException) -> None:
        log.warning("%s %s: %s", actor, what, said(error))
        self._problem = error
        if actor.name in self._scheduler.servers:
            self._scheduler.remove_server(actor.name, time.monotonic(), said(error))
        self._ray.kill(actor.handle)

    # --- calls ------------------------------------------------------------------------------------

    async def _ask(self, assignment: Assignment) -> None:
        """Have a replica answer an item, and say what came of it.

        Failed answers wait for one that shows that it is not the replica's fault.
        """
        item: WorkItem = assignment.item.value
        actor, calls, failed = self._actors[assignment.server.name], item.calls, list[Answer]()
        reason, died = "", False
        try:
            ask = actor.handle.ask.options(num_returns="streaming")
            async for reference in ask.remote(work_of(item)):
                answers, words = await reference
                for level, line in words:
                    log.log(level, "%s: %s", actor, line)
                failed += answers
                if any(answer.error is None or answer.stop is not None for answer in failed):
                    self._home.put_nowait(WorkResult(calls[: len(failed)], tuple(failed)))
                    calls, failed = calls[len(failed) :], []
        except self._errors.RayActorError as error:
            reason, died = f"its replica died ({type(error).__name__})", True
        except self._errors.RayError as error:
            reason = said(_cause(error))
        if not calls or (self._cancel.requested and not reason):
            outcome = Outcome.ANSWERED
        elif reason:
            outcome = Outcome.FAILED
        else:
            reason = failed[-1].error or ""
            outcome = self._all_failed(assignment, WorkResult(calls, tuple(failed)))
        left = WorkItem(calls, item.shares_images)
        self._scheduler.ended(assignment, outcome, time.monotonic(), reason, remaining=left)
        if died:
            # Ray starts it again, where there is room.
            log.warning("%s died and is started again", actor)
            self._starting += 1
            self._scheduler.servers_may_come = True
            if actor.name in self._scheduler.servers:
                self._scheduler.remove_server(actor.name, time.monotonic(), "it died")
            self._go(self._start(actor, _COMES_BACK))
        elif assignment.server.on_trial and actor.name in self._scheduler.servers:
            self._lose(actor, "fails every call and is retired", RuntimeError(reason))

    def _all_failed(self, assignment: Assignment, result: WorkResult) -> Outcome:
        """Whose fault it is that all calls of an item fail: where two replicas say so, the item's;
        without another replica nobody knows, and the calls have failed.
        """
        key, name, servers = id(assignment.item), assignment.server.name, self._scheduler.servers
        before = self._failed.pop(key, None)
        if before is None and (servers.keys() - {name} or self._starting):
            self._failed[key] = name, result
            return Outcome.FAILED
        if before is not None and before[0] in servers:
            servers[before[0]].works(time.monotonic())
        self._home.put_nowait(result)
        return Outcome.INVALID

    def _given_up(self) -> Iterator[WorkResult]:
        """Items that killed replicas; or all, as no replica is left."""
        finished, self._scheduler.finished[:] = self._scheduler.finished[:], []
        for one in finished:
            calls = one.item.value.calls
            nothing = WorkResult(calls, (Answer("", error=one.reason),) * len(calls))
            _, result = self._failed.pop(id(one.item), ("", nothing))
            if one.outcome is Outcome.HOPELESS:
                yield not_loaded(one.item.value, self._problem or RuntimeError(one.reason))
                return
            if one.outcome is Outcome.FAILED:
                yield result


def _cause(error: BaseException) -> BaseException:
    """What an actor raised, without Ray's account of it."""
    return getattr(error, "cause", None) or error


# --- the cluster ----------------------------------------------------------------------------------


@contextmanager
def _cluster(ray: Any) -> Iterator[None]:
    """The cluster that RAY_ADDRESS or an earlier ``ray start`` names, else a local Ray."""
    if ray.is_initialized():
        yield
        return
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    with ExitStack() as undo:
        if not os.environ.get("RAY_ADDRESS"):
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            # Its sockets lie in this folder, and a socket's path must be short.
            folder = TemporaryDirectory(prefix="findit-ray-", ignore_cleanup_errors=True)
            quiet |= {"address": "local", "_temp_dir": undo.enter_context(folder)}
            quiet["include_dashboard"] = False
            # The workers have it from the environment.
            constants = ray._private.ray_constants
            undo.callback(setattr, constants, "ENABLE_RAY_CLUSTER", constants.ENABLE_RAY_CLUSTER)
            constants.ENABLE_RAY_CLUSTER = False
            if _LOOPBACK not in os.environ:
                os.environ[_LOOPBACK] = "0"
                undo.callback(os.environ.pop, _LOOPBACK)
        undo.callback(ray.shutdown)
        handler = signal.getsignal(signal.SIGTERM)
        ray.init(**quiet)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray's own ends the process at once
        yield


@contextmanager
def replicas(ray: Any, load: Loader, inference: Inference) -> Iterator[list[Any]]:
    """The actors of a model, as many as are wanted or fit; they are gone in the end.

    Raises:
        ValueError: the cluster has GPUs, and they would not be used.
    """
    there = ray.cluster_resources()
    needs = {"CPU": inference.cpus, "GPU": inference.gpus}
    needs = {kind: need for kind, need in needs.items() if need}
    if not inference.gpus and (gpus := there.get("GPU", 0)):
        raise ValueError(
            f"--gpus 0: each replica would run on processors, and the cluster has {gpus:g} GPUs. "
            "Type --gpus 1, or start Ray with --num-gpus 0"
        )
    room = min((there.get(kind, 0) / need for kind, need in needs.items()), default=1)
    if room < 1:
        log.warning("a replica needs %s; until the cluster has them, none starts", needs)
    for module in loaded_files():
        # No worker could import what a question of theirs is an instance of.
        ray.cloudpickle.register_pickle_by_value(module)
    ours = (name for name in os.environ if name.startswith("FINDIT_") or name == "LMUData")
    environment = {name: os.environ[name] for name in ours if not _SECRET.search(name)}
    environment[FILES_VARIABLE] = os.pathsep.join(named_files())
    remote = ray.remote(Replica)
    how: dict[str, Any] = {"num_cpus": inference.cpus, "num_gpus": inference.gpus}
    how |= {"max_restarts": _RESTARTS, "max_concurrency": 3, "scheduling_strategy": "SPREAD"}
    with ExitStack() as undo:
        handles = []
        for _ in range(inference.replicas or max(1, int(room))):
            if inference.gpus > 1:
                how["scheduling_strategy"] = _one_machine(needs, undo)
            handle = remote.options(**how).remote(load, environment)
            undo.callback(ray.kill, handle)
            handles.append(handle)
        yield handles


def _one_machine(needs: Mapping[str, float], undo: ExitStack) -> Any:
    """Room on one machine, which whatever an actor starts for tensor parallelism shares with it."""
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    group = placement_group([needs], strategy="STRICT_PACK")
    undo.callback(remove_placement_group, group)
    return PlacementGroupSchedulingStrategy(group, 0, placement_group_capture_child_tasks=True)


# --- what runs on the other machines --------------------------------------------------------------


class Home(NamedTuple):
    """What comes home at a time."""

    answers: tuple[Answer, ...]  # in the order of the messages
    words: list[tuple[int, str]]  # what the replica logged: level and line


class Replica:
    """One replica; it lives in an async actor, and its model in one thread of that."""

    def __init__(self, load: Callable[[], Asker], environment: Mapping[str, str]) -> None:
        os.environ.update(environment)
        self._load = load
        self._asker: Asker | None = None
        self._stopped = False
        # CUDA's current device and torch's grad mode belong to a thread.
        self._thread = ThreadPoolExecutor(1)
        self._heard = BufferingHandler(1000)
        self._heard.setLevel(logging.WARNING)
        logging.getLogger().addHandler(self._heard)

    async def ready(self) -> tuple[str, str]:
        """Load the model, unless it is loaded; return the machine and the hash of this package."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._loaded)
        return socket.gethostname(), code_sha256()

    async def ask(self, work: Work) -> AsyncIterator[Home]:
        """Yield the answers to the messages; fewer, if it is stopped."""
        answers: deque[Answer] = deque()

        def run() -> None:
            for some in answers_in_turn(self._loaded(), work, lambda: self._stopped):
                answers.extend(some)

        running = asyncio.get_running_loop().run_in_executor(self._thread, run)
        while not running.done() or answers:
            await asyncio.wait([running], timeout=_TOGETHER)
            if answers:
                together = tuple(answers.popleft() for _ in range(len(answers)))
                heard, self._heard.buffer = self._heard.buffer, []
                words = [(one.levelno, quoted(one.getMessage(), 2000)) for one in heard]
                yield Home(together, words)
        await running

    async def stop(self) -> None:
        """Begin no further call; a model that can ends between two tokens."""
        self._stopped = True

    def _loaded(self) -> Asker:
        self._asker = self._asker or self._load()
        return self._asker
