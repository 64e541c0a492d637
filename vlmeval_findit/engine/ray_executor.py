"""Calls over a Ray cluster: one replica of the model an actor, the journal with the driver.

An actor that dies is started again and loads its model again, and what it was working on is asked
again; only the driver writes, so a reply is kept once or not at all.  The machines of a cluster
need this package and the images at the same paths.  Without a cluster a local Ray is started.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from threading import Event
from typing import Any

from ..answers import Answer, Asker, Work, said
from .config import Inference
from .executors import Answered, Loader, single_calls, until, work_of
from .plan import Unit

_WAITING = 2
"""Units at an actor: one that it works on and one that waits."""

_RETRIES = 3
"""How often work is asked again whose actor died: work that kills its actor must end somewhere."""


class _Replica:
    """One replica of a model; what runs in an actor."""

    def __init__(self, load: Loader) -> None:
        self._asker: Asker = load()

    def ask(self, work: Work) -> list[Answer]:
        return self._asker.ask(work)

    def answers_together(self, shares_images: bool) -> bool:
        return self._asker.answers_together(shares_images=shares_images)


class RayExecutor:
    """Replicas of a model in the actors of a Ray cluster.

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

    def run(self, units: Iterable[Unit], stop: Event) -> Iterator[Answered]:
        coming = iter(units)
        first = next(coming, None)
        if first is None:
            return
        with _Cluster(self._ray):
            actors = self._replicas()
            together = {sharing: self._together(actors[0], sharing) for sharing in (True, False)}
            pieces = (
                piece
                for unit in chain([first], coming)
                for piece in ([unit] if together[unit.shares_images] else single_calls(unit))
            )
            yield from self._spread(actors, until(stop, pieces))

    def _together(self, actor: Any, shares_images: bool) -> bool:
        """What the model can do; the first to notice that it cannot be loaded.

        Raises:
            ValueError: it cannot be loaded.
        """
        try:
            return bool(self._ray.get(actor.answers_together.remote(shares_images)))
        except self._ray.exceptions.RayActorError as error:
            raise ValueError(f"the model cannot be loaded: {said(error)}") from None

    def _spread(self, actors: Sequence[Any], pieces: Iterator[Unit]) -> Iterator[Answered]:
        waiting = dict.fromkeys(range(len(actors)), 0)
        running: dict[Any, tuple[int, Unit]] = {}
        while True:
            for unit in islice(pieces, _WAITING * len(actors) - len(running)):
                at = min(waiting, key=lambda one: waiting[one])
                waiting[at] += 1
                running[actors[at].ask.remote(work_of(unit))] = (at, unit)
            if not running:
                return
            done, _ = self._ray.wait(list(running), num_returns=1)
            for reference in done:
                at, unit = running.pop(reference)
                waiting[at] -= 1
                yield unit, self._answers(reference, unit)

    def _answers(self, reference: Any, unit: Unit) -> list[Answer]:
        try:
            answers: list[Answer] = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            # Its actor died more often than it may, or could not give the answer back.
            return [Answer("", error=said(error))] * len(unit.calls)
        return answers

    def _replicas(self) -> list[Any]:
        needs = {"num_cpus": self._inference.cpus, "num_gpus": self._inference.gpus}
        remote = self._ray.remote(_Replica).options(
            max_restarts=-1, max_task_retries=_RETRIES, **needs
        )
        count = self._inference.replicas or self._fitting()
        return [remote.remote(self._load) for _ in range(count)]

    def _fitting(self) -> int:
        """As many replicas as the cluster has room for."""
        there = self._ray.cluster_resources()
        needs = {"CPU": self._inference.cpus, "GPU": self._inference.gpus}
        room = [there.get(kind, 0) / need for kind, need in needs.items() if need]
        return max(1, int(min(room, default=1)))


class _Cluster:
    """The cluster that RAY_ADDRESS or an earlier ``ray start`` names, else a local Ray."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._folder: str | None = None
        self._own = False

    def __enter__(self) -> None:
        if self._ray.is_initialized():
            return
        self._own = True
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        if os.environ.get("RAY_ADDRESS"):
            self._ray.init(**quiet)
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Its sockets lie in this folder, and a socket's path must be short.
        self._folder = tempfile.mkdtemp(prefix="findit-ray-")
        self._ray.init(address="local", include_dashboard=False, _temp_dir=self._folder, **quiet)

    def __exit__(self, *stopped: object) -> None:
        if self._own:
            self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ValueError("Ray is not installed: pip install 'vlmeval-findit[ray]'") from None
    return ray
