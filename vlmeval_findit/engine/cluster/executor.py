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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from ...core.plugins import loaded_files
from ...core.work import said
from ..backend import Loader, not_loaded, single_calls
from ..cancel import CancelToken
from ..config import Inference
from ..executors import Answered, until
from ..finished import code_sha256
from ..journal.shards import shard_path
from ..plan import WorkItem
from ..results import Result
from .ray import cluster, import_ray
from .replica import Came, Piece, Ready, Replica, Scorer, Sheet
from .spreading import Spreading, Ways

log = logging.getLogger(__name__)


class RayExecutor:
    """Replicas of a model in the actors of a Ray cluster; work over a picture goes to one of them.

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
        self._sheet: Sheet | None = None
        self.took: Mapping[str, int] = {}

    def gets(self, sheet: Sheet) -> None:
        """The calls that come next are of these cells."""
        self._sheet = sheet

    def opened(self) -> AbstractContextManager[None]:
        """The cluster; within it :meth:`run` and :meth:`finished` start none of their own."""
        return cluster(self._ray)

    def run(self, units: Iterable[WorkItem], stop: CancelToken) -> Iterator[Answered]:
        coming = iter(units)
        first = next(coming, None)
        if first is None:
            return
        with self.opened():
            sheet = self._sent()
            try:
                replicas, together = self._replicas()
            except self._ray.exceptions.RayError as error:
                yield first, not_loaded(first, error).answers
                return
            pieces = (
                piece
                for unit in chain([first], coming)
                for piece in ([unit] if together[unit.shares_images] else single_calls(unit))
            )
            ways = Ways(self._ray, replicas, sheet)
            yield from Spreading(ways, until(stop, pieces), stop).answers()
            if not stop.now:
                self._close(replicas.values())

    def _close(self, actors: Iterable[Any]) -> None:
        """Have replicas leave their files as they should be, and their processors to others."""
        closing = [(actor, actor.close.remote()) for actor in actors]
        for actor, reference in closing:
            try:
                self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                # What it left is as good, and taken in line by line.
                log.warning("a replica did not end as it should: %s", said(error))
            self._ray.kill(actor)

    def finished(self, places: Iterable[int], stop: CancelToken) -> Iterator[tuple[int, Result]]:
        """Write the files of cells all of whose answers the journal has.

        None begins after a stop.  One that could not be written there is left out.
        """
        with self.opened():
            sheet, task = self._sent(), self._ray.remote(_finished)
            coming, running = until(stop, iter(places)), dict[Any, int]()
            problems = set[str]()
            room = 2 * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            while True:
                for at in islice(coming, room - len(running)):
                    running[task.remote(sheet, at)] = at
                if not running:
                    break
                done, _ = self._ray.wait(list(running), num_returns=1)
                for reference in done:
                    at = running.pop(reference)
                    try:
                        result: Result = self._ray.get(reference)
                    except self._ray.exceptions.RayError as error:
                        problems.add(said(getattr(error, "cause", None) or error))
                    else:
                        yield at, result

            for problem in sorted(problems):
                log.warning("cells are scored here, as a worker could not: %s", problem)

    def _sent(self) -> Sequence[Any]:
        """A reference to the cells: in a list, as it is itself what an actor is given."""
        for module in loaded_files():
            # No worker could import what a question of theirs is an instance of.
            self._ray.cloudpickle.register_pickle_by_value(module)
        return [self._ray.put(self._sheet)]

    def _replicas(self) -> tuple[Mapping[str, Any], Mapping[bool, bool]]:
        """The actors by the names of their files, and what the model can do.

        Raises:
            RayError: it cannot be loaded.
            ValueError: a machine cannot keep what it answers.
        """
        assert self._sheet is not None, "nobody said which cells are asked"
        needs = {"num_cpus": self._inference.cpus, "num_gpus": self._inference.gpus}
        how = {"max_restarts": -1, "concurrency_groups": {"stop": 1}, **needs}
        remote = self._ray.remote(**how)(_Actor)
        around = self._sheet.around
        names = [uuid4().hex for _ in range(self._inference.replicas or self._fitting())]
        actors = {name: remote.remote(self._load, around, name) for name in names}
        ready: list[Ready] = self._ray.get([one.ready.remote() for one in actors.values()])
        for name, one in zip(names, ready, strict=True):
            _refuse_strangers(shard_path(around.journal, name), one)
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
    return _scorer(sheet[0]).finished(at)


@lru_cache(maxsize=1)
def _scorer(reference: Any) -> Scorer:
    """Made once for all cells of a model that a worker scores."""
    return Scorer(_fetched(reference))


@lru_cache(maxsize=1)
def _fetched(reference: Any) -> Sheet:
    """What a worker was sent."""
    sheet: Sheet = import_ray().get(reference)
    return sheet
