"""Calls over a Ray cluster: replicas that keep their own answers, and cells that are scored where
there is room.

The driver sends places of calls and hears that they are answered; each replica keeps its answers in
a file of its own beside the journal (:mod:`.replica`), and the driver takes the files in by
their content when all came home.  An actor that dies is started again, loads its model again, and
knows by its file what was answered; what kills it again and again is a failure in the end.

The machines of a cluster need this package, and the images, the journal and the work dir at the
same paths.  Without a cluster a local Ray is started, which listens on this machine's loopback
address only.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from ..core.extras import install
from ..core.plugins import loaded_files
from ..core.work import said
from .config import Inference
from .executors import GRACE, Answered, Loader, failures, single_calls, until
from .finished import code_sha256
from .journal_side import side_path
from .line import Picture, pictures_of
from .plan import Unit
from .replica import Came, Piece, Ready, Replica, Sheet, finished
from .results import Result
from .stopping import Stopping

log = logging.getLogger(__name__)

_LOOK = 0.25
"""Seconds between looks whether somebody asked to stop."""

_RETRIES = 3
"""How often work is asked again whose actor died: work that kills its actor must end somewhere."""

_SECONDS, _MOST = 2.0, 1000
"""About so long a replica works at what it is sent at a time, and at most so many pieces: a message
to an actor costs a millisecond or two."""


class RayExecutor:
    """Replicas of a model in the actors of a Ray cluster; work over a picture goes to one of them.

    Args:
        load: makes the asker, in every actor.
        inference: how many replicas, and what each of them needs.

    Raises:
        ValueError: Ray is not installed.
    """

    def __init__(self, load: Loader, inference: Inference) -> None:
        self._ray = _import_ray()
        self._load = load
        self._inference = inference
        self._sheet: Sheet | None = None
        self.took: Mapping[str, int] = {}

    def gets(self, sheet: Sheet) -> None:
        """The calls that come next are of these cells."""
        self._sheet = sheet

    def opened(self) -> AbstractContextManager[None]:
        """The cluster; within it :meth:`run` and :meth:`finished` start none of their own."""
        return _cluster(self._ray)

    def run(self, units: Iterable[Unit], stop: Stopping) -> Iterator[Answered]:
        coming = iter(units)
        first = next(coming, None)
        if first is None:
            return
        with self.opened():
            sheet, (replicas, together) = self._sent(), self._replicas()
            pieces = (
                piece
                for unit in chain([first], coming)
                for piece in ([unit] if together[unit.shares_images] else single_calls(unit))
            )
            with stop.shielded():
                ways = _Ways(self._ray, replicas, sheet)
                yield from _Spreading(ways, until(stop, pieces), stop).answers()
                if not stop.now:
                    self._closed(replicas.values())

    def _closed(self, actors: Iterable[Any]) -> None:
        """Have replicas leave their files as they should be; the files of the dead are as good."""
        closing = [actor.close.remote() for actor in actors]
        for reference in closing:
            try:
                self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                log.warning("a replica did not end as it should: %s", said(error))

    def finished(self, places: Iterable[int], stop: Stopping) -> Iterator[tuple[int, Result]]:
        """Write the files of cells all of whose answers the journal has.

        None begins after a stop.  One whose workers die is left out.

        Raises:
            OSError: they cannot be written.
        """
        with self.opened():
            sheet, task = self._sent(), self._ray.remote(_finished)
            coming, running = until(stop, iter(places)), dict[Any, int]()
            room = 2 * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            while True:
                for at in islice(coming, room - len(running)):
                    running[task.remote(sheet, at)] = at
                if not running:
                    return
                done, _ = self._ray.wait(list(running), num_returns=1)
                for reference in done:
                    at = running.pop(reference)
                    try:
                        yield at, self._ray.get(reference)
                    except self._ray.exceptions.RayTaskError as error:
                        raise error.cause from None
                    except self._ray.exceptions.RayError:
                        continue

    def _sent(self) -> Sequence[Any]:
        """A reference to the cells: in a list, as it is itself what an actor is given."""
        for module in loaded_files():
            # No worker could import what a question of theirs is an instance of.
            self._ray.cloudpickle.register_pickle_by_value(module)
        return [self._ray.put(self._sheet)]

    def _replicas(self) -> tuple[Mapping[str, Any], Mapping[bool, bool]]:
        """The actors by the names of their files, and what the model can do.

        Raises:
            ValueError: it cannot be loaded, or a machine cannot keep what it answers.
        """
        assert self._sheet is not None, "nobody said which cells are asked"
        needs = {"num_cpus": self._inference.cpus, "num_gpus": self._inference.gpus}
        how = {"max_restarts": -1, "concurrency_groups": {"stop": 1}, **needs}
        remote = self._ray.remote(**how)(_Actor)
        around = self._sheet.around
        names = [uuid4().hex for _ in range(self._inference.replicas or self._fitting())]
        actors = {name: remote.remote(self._load, around, name) for name in names}
        try:
            ready: list[Ready] = self._ray.get([one.ready.remote() for one in actors.values()])
        except self._ray.exceptions.RayError as error:
            raise ValueError(f"the model cannot be loaded: {said(error)}") from None
        for name, one in zip(names, ready, strict=True):
            _refuse_strangers(side_path(around.journal, name), one)
        return actors, ready[0].together

    def _fitting(self) -> int:
        """As many replicas as the cluster has room for."""
        there = self._ray.cluster_resources()
        needs = {"CPU": self._inference.cpus, "GPU": self._inference.gpus}
        room = [there.get(kind, 0) / need for kind, need in needs.items() if need]
        return max(1, int(min(room, default=1)))


def _refuse_strangers(side: Path, ready: Ready) -> None:
    """Refuse a machine whose answers would be made otherwise, or would not be found.

    Raises:
        ValueError: it has another version, or the file that it made is not seen here.
    """
    if ready.code != code_sha256():
        raise ValueError(
            f"{ready.machine} has another version of this package: install the same one on all "
            "machines of the cluster"
        )
    if not side.exists():
        raise ValueError(
            f"what {ready.machine} keeps beside the journal is not seen here: {side.parent} must "
            "be a folder that all machines of the cluster share (--journal)"
        )


class _Actor(Replica):
    """A replica in an actor; the cells come as a reference, one that is started again has none."""

    def ask_of(self, sheet: Sequence[Any], pieces: Sequence[Piece]) -> list[Came]:
        """Answer calls of the cells that a reference in a list names."""
        return self.ask(_fetched(sheet[0]), pieces)


def _finished(sheet: Sequence[Any], at: int) -> Result:
    """Runs in a worker."""
    return finished(_fetched(sheet[0]), at)


@lru_cache(maxsize=1)
def _fetched(reference: Any) -> Sheet:
    """What a worker was sent, taken apart once for all its cells."""
    sheet: Sheet = _import_ray().get(reference)
    return sheet


class _Pictures:
    """What replicas are asked: each has pictures of its own, in the order of the plan.

    Args:
        pieces: what is to be asked.
    """

    def __init__(self, pieces: Iterator[Unit]) -> None:
        self._coming = pictures_of(pieces)
        self._open: dict[str, Picture] = {}

    def take(self, name: str, most: int) -> list[Unit]:
        """At most so many pieces for a replica: of the picture that it is at, then of further ones;
        where no more come, of one that another has begun.
        """
        found: list[Unit] = []
        while len(found) < most and (picture := self._next(name)) is not None:
            found.append(picture.units.popleft())
        return found

    def _next(self, name: str) -> Picture | None:
        own = self._open.get(name)
        if own is not None and own.units:
            return own
        following = next(self._coming, None)
        if following is not None:
            self._open[name] = following
            return following
        begun = max(self._open.values(), key=lambda one: len(one.units), default=None)
        return begun if begun is not None and begun.units else None


class _Bundle(NamedTuple):
    """Pieces that a replica answers now, since when."""

    name: str
    pieces: Sequence[Unit]
    began: float


class _Ways(NamedTuple):
    """What is needed to ask: Ray's module, the actors by their names, and the cells."""

    ray: Any
    replicas: Mapping[str, Any]
    sheet: Sequence[Any]


class _Spreading:
    """Pieces of work on their way to replicas, as many at a time as take about two seconds.

    Args:
        ways: whom to ask.
        pieces: what is to be asked, in the order of the plan.
        stop: asked whether more may begin.
    """

    def __init__(self, ways: _Ways, pieces: Iterator[Unit], stop: Stopping) -> None:
        self._ray, self._replicas, self._sheet = ways
        self._stop = stop
        self._sizes = dict.fromkeys(ways.replicas, 1)
        self._running: dict[Any, _Bundle] = {}
        self._again: dict[str, deque[Unit]] = {name: deque() for name in ways.replicas}
        self._pictures = _Pictures(pieces)

    def answers(self) -> Iterator[Answered]:
        """What was asked, with answers, as it comes home; without what had not begun at a stop."""
        told = False
        while not self._stop.now:
            if not self._stop.is_set():
                self._send()
            elif not told:
                self._tell_to_stop()
                told = True
            if not self._running:
                return
            done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=_LOOK)
            for reference in done:
                yield from self._came(reference)
        if not self._running:
            return
        # What is there already, or as good as there; a call that is given up did not fail.
        waiting = list(self._running)
        done, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=GRACE)
        for reference in done:
            for unit, answers in self._came(reference):
                if not any(answer.error for answer in answers):
                    yield unit, answers

    def _tell_to_stop(self) -> None:
        """Have the calls that did not begin come home without an answer."""
        for bundle in self._running.values():
            stop = self._replicas[bundle.name].stop.options(concurrency_group="stop")
            stop.remote()

    def _send(self) -> None:
        """Give every idle replica what it does next: what waited there could not stop."""
        at_work = {bundle.name for bundle in self._running.values()}
        for name in self._replicas:
            if name in at_work:
                continue
            if self._again[name]:
                self._begin(name, [self._again[name].popleft()], retries=_RETRIES)
            elif pieces := self._pictures.take(name, self._sizes[name]):
                self._begin(name, pieces, retries=0)

    def _begin(self, name: str, pieces: Sequence[Unit], retries: int) -> None:
        sent = [
            Piece(tuple((call.wanted_by[0], call.row) for call in one.calls), one.shares_images)
            for one in pieces
        ]
        ask = self._replicas[name].ask_of.options(max_task_retries=retries)
        self._running[ask.remote(self._sheet, sent)] = _Bundle(name, pieces, time.monotonic())

    def _came(self, reference: Any) -> Iterator[Answered]:
        """What came of a bundle.

        Where its actor died, or could not give it back, its pieces are asked one by one: of the
        same actor, which knows what it has answered.
        """
        name, pieces, began = self._running.pop(reference)
        try:
            came: list[Came] = self._ray.get(reference)
        except Exception as error:
            if len(pieces) > 1:
                self._again[name].extend(pieces)
            else:
                yield pieces[0], failures(pieces[0], error)
            return
        took = max(time.monotonic() - began, 1e-3)
        fitting = int(len(pieces) * _SECONDS / took)
        # Not too many at once: what follows a few quick answers may be slow.
        self._sizes[name] = max(1, min(fitting, 2 * self._sizes[name], _MOST))
        if came:
            calls = tuple(pieces[one.piece].calls[one.call] for one in came)
            yield Unit(calls, shares_images=False), [one.answer for one in came]


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
            folder = tempfile.mkdtemp(prefix="findit-ray-")
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            undo.enter_context(_on_loopback(ray))
            quiet |= {"address": "local", "include_dashboard": False, "_temp_dir": folder}
        undo.callback(ray.shutdown)
        with _sigterm_kept():
            ray.init(**quiet)
        yield


@contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """Have a Ray that is started in it listen on 127.0.0.1 only.

    Ray has a switch for it, meant for systems whose firewalls would ask; the workers have it from
    the environment.
    """
    name, constants = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", ray._private.ray_constants
    before = os.environ.get(name), constants.ENABLE_RAY_CLUSTER
    os.environ[name], constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before[1]
        if before[0] is None:
            del os.environ[name]
        else:
            os.environ[name] = before[0]


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Keep the handler of SIGTERM: Ray puts one in its place that ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ValueError(f"Ray is not installed: {install('cluster')}") from None
    return ray
