"""Calls over a Ray cluster: one replica of the model an actor, the journal with the driver.

An actor that dies is started again and loads its model again, and what it was working on is asked
again; only the driver writes, so a reply is kept once or not at all.  The machines of a cluster
need this package and the images at the same paths.  Without a cluster a local Ray is started, which
listens on this machine's loopback address only.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

from ..core.extras import install
from ..core.plugins import FILES_VARIABLE, loaded_files, named_files
from ..core.routing import Place
from ..core.work import Answer, Asker, Work, said
from .config import Inference
from .executors import GRACE, Answered, Loader, answers_of, failures, single_calls, until, work_of
from .line import Line, Taken
from .plan import Unit
from .stopping import Stopping

_LOOK = 0.25
"""Seconds between looks whether somebody asked to stop."""

_RETRIES = 3
"""How often work is asked again whose actor died: work that kills its actor must end somewhere."""


class _Replica:
    """One replica of a model; what runs in an actor, which has the files of plug-ins by name."""

    def __init__(self, load: Loader, plugin_files: str) -> None:
        os.environ[FILES_VARIABLE] = plugin_files
        self._asker: Asker = load()

    def ask(self, work: Work) -> list[Answer]:
        return self._asker.ask(work)

    def answers_together(self, shares_images: bool) -> bool:
        return self._asker.answers_together(shares_images=shares_images)


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
        self.took: Mapping[str, int] = {}

    def run(self, units: Iterable[Unit], stop: Stopping) -> Iterator[Answered]:
        coming = iter(units)
        first = next(coming, None)
        if first is None:
            return
        with _cluster(self._ray):
            actors = self._replicas()
            together = {sharing: self._together(actors[0], sharing) for sharing in (True, False)}
            pieces = (
                piece
                for unit in chain([first], coming)
                for piece in ([unit] if together[unit.shares_images] else single_calls(unit))
            )
            with stop.shielded():
                yield from self._spread(actors, until(stop, pieces), stop)

    def _together(self, actor: Any, shares_images: bool) -> bool:
        """What the model can do; the first to notice that it cannot be loaded.

        Raises:
            ValueError: it cannot be loaded.
        """
        try:
            return bool(self._ray.get(actor.answers_together.remote(shares_images)))
        except self._ray.exceptions.RayActorError as error:
            raise ValueError(f"the model cannot be loaded: {said(error)}") from None

    def _spread(
        self, actors: Sequence[Any], pieces: Iterator[Unit], stop: Stopping
    ) -> Iterator[Answered]:
        replicas = {f"replica {number}": actor for number, actor in enumerate(actors)}
        places = [Place(name, 1) for name in replicas]
        line = Line(pieces, lambda: places)
        running: dict[Any, Taken] = {}
        while not stop.now:
            line.fill(2 * len(actors))
            # Nothing waits at an actor: it would be begun after a stop.  The pause between two
            # units is a few milliseconds.
            while not stop.is_set() and (taken := line.take()) is not None:
                try:
                    reference = replicas[taken.place].ask.remote(work_of(taken.unit))
                except Exception as error:
                    line.done(taken)
                    yield taken.unit, failures(taken.unit, error)
                else:
                    running[reference] = taken
            if not running:
                return
            done, _ = self._ray.wait(list(running), num_returns=1, timeout=_LOOK)
            for reference in done:
                taken = running.pop(reference)
                line.done(taken)
                yield taken.unit, self._answers(reference, taken.unit)
        if not running:
            return
        # What is there already, or as good as there; a call that is given up did not fail.
        done, _ = self._ray.wait(list(running), num_returns=len(running), timeout=GRACE)
        for reference in done:
            unit = running[reference].unit
            answers = self._answers(reference, unit)
            if not any(answer.error for answer in answers):
                yield unit, answers

    def _answers(self, reference: Any, unit: Unit) -> list[Answer]:
        try:
            came = self._ray.get(reference)
        except Exception as error:
            # Its actor died more often than it may, or could not give the answer back.
            return failures(unit, error)
        return answers_of(lambda work: came, unit)

    def _replicas(self) -> list[Any]:
        needs = {"num_cpus": self._inference.cpus, "num_gpus": self._inference.gpus}
        remote = self._ray.remote(_Replica).options(
            max_restarts=-1, max_task_retries=_RETRIES, **needs
        )
        count = self._inference.replicas or self._fitting()
        plugin_files = os.pathsep.join(named_files())
        for module in loaded_files():
            # No worker could import what a question of theirs is an instance of.
            self._ray.cloudpickle.register_pickle_by_value(module)
        return [remote.remote(self._load, plugin_files) for _ in range(count)]

    def _fitting(self) -> int:
        """As many replicas as the cluster has room for."""
        there = self._ray.cluster_resources()
        needs = {"CPU": self._inference.cpus, "GPU": self._inference.gpus}
        room = [there.get(kind, 0) / need for kind, need in needs.items() if need]
        return max(1, int(min(room, default=1)))


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
