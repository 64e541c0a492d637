"""Which replica is asked what, and when: pieces of work on their way, and what came of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..backend import failures
from ..cancel import CancelToken
from ..executors import GRACE, Answered
from ..line import Picture, pictures_of
from ..plan import WorkItem
from .replica import Came, Piece

_LOOK = 0.25
"""Seconds between looks whether somebody asked to stop."""

_RETRIES = 3
"""How often work is asked again whose actor died: work that kills its actor must end somewhere."""

_SECONDS, _MOST = 2.0, 1000
"""About so long a replica works at what it is sent at a time, and at most so many pieces: a message
to an actor costs a millisecond or two."""


class _Pictures:
    """What replicas are asked: each has pictures of its own, in the order of the plan.

    Args:
        pieces: what is to be asked.
    """

    def __init__(self, pieces: Iterator[WorkItem]) -> None:
        self._coming = pictures_of(pieces)
        self._open: dict[str, Picture] = {}

    def take(self, name: str, most: int) -> list[WorkItem]:
        """At most so many pieces for a replica: of the picture that it is at, then of further ones;
        where no more come, of one that another has begun.
        """
        found: list[WorkItem] = []
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
    """Pieces that a replica answers now, since when; ``retries``: so often after its death."""

    name: str
    pieces: Sequence[WorkItem]
    began: float
    retries: int


class Ways(NamedTuple):
    """What is needed to ask: Ray's module, the actors by their names, and the cells."""

    ray: Any
    replicas: Mapping[str, Any]
    sheet: Sequence[Any]


class Spreading:
    """Pieces of work on their way to replicas, as many at a time as take about two seconds.

    Args:
        ways: whom to ask.
        pieces: what is to be asked, in the order of the plan.
        stop: asked whether more may begin.
    """

    def __init__(self, ways: Ways, pieces: Iterator[WorkItem], stop: CancelToken) -> None:
        self._ray, self._replicas, self._sheet = ways
        self._stop = stop
        self._sizes = dict.fromkeys(ways.replicas, 1)
        self._running: dict[Any, _Bundle] = {}
        self._again: dict[str, deque[WorkItem]] = {name: deque() for name in ways.replicas}
        self._pictures = _Pictures(pieces)

    def answers(self) -> Iterator[Answered]:
        """What was asked, with answers, as it comes home; without what had not begun at a stop."""
        told = False
        while not self._stop.now:
            if not self._stop.requested:
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

    def _begin(self, name: str, pieces: Sequence[WorkItem], retries: int) -> None:
        sent = [
            Piece(tuple((call.wanted_by[0], call.row) for call in one.calls), one.shares_images)
            for one in pieces
        ]
        ask = self._replicas[name].ask_of.options(max_task_retries=retries)
        self._running[ask.remote(self._sheet, sent)] = _Bundle(
            name, pieces, time.monotonic(), retries
        )

    def _came(self, reference: Any) -> Iterator[Answered]:
        """What came of a bundle.

        Where its actor died, or could not give it back, its pieces are asked one by one: of the
        same actor, which knows what it has answered.
        """
        name, pieces, began, retries = self._running.pop(reference)
        try:
            came: list[Came] = self._ray.get(reference)
        except Exception as error:
            if retries:
                yield pieces[0], failures(pieces[0], error)
            else:
                self._again[name].extend(pieces)
            return
        took = max(time.monotonic() - began, 1e-3)
        fitting = int(len(pieces) * _SECONDS / took)
        # Not too many at once: what follows a few quick answers may be slow.
        self._sizes[name] = max(1, min(fitting, 2 * self._sizes[name], _MOST))
        if came:
            calls = tuple(pieces[one.piece].calls[one.call] for one in came)
            yield WorkItem(calls, shares_images=False), [one.answer for one in came]
