"""Who answers: this process, or threads over one or more askers.

An executor takes units as it can do them and gives back their answers, in any order.  It holds few
calls at a time: when it is told to stop it takes no more, and what it has taken is answered and
given back, so that a sweep can stop at any point without losing a reply that was paid for.
Whatever an asker does, every call that was begun has an answer: an exception is a failed one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, cycle, islice
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

from ..core.work import Answer, Asker, Stoppable, Work, said
from .plan import Unit
from .stopping import Stopping

GRACE = 1.0
"""Seconds that replies have which are just coming in when everything is given up."""

Answered = tuple[Unit, list[Answer]]
Loader = Callable[[], Asker]
"""Makes an asker: loads a model.  Another process may call it, so it is a plain picklable value."""


class Executor(Protocol):
    """Who answers units."""

    def run(self, units: Iterable[Unit], stop: Stopping) -> Iterator[Answered]:
        """Every unit, or its calls one by one, with answers, in any order; fewer once stopped.

        Raises:
            KeyboardInterrupt: what was on its way was given up, too.
        """


def work_of(unit: Unit) -> Work:
    """A unit as plain values."""
    first = unit.calls[0].cell
    return Work(
        messages=tuple(call.message for call in unit.calls),
        questions=tuple(call.cell.question for call in unit.calls),
        settings=first.settings,
        shares_images=unit.shares_images,
        confidences=first.confidences,
    )


def single_calls(unit: Unit) -> list[Unit]:
    """A unit's calls one by one, for an asker that gains nothing from having them together.

    Each can then be kept as soon as it is answered.
    """
    return [Unit((call,), unit.shares_images) for call in unit.calls]


def until(stop: Stopping, units: Iterable[Unit]) -> Iterator[Unit]:
    """Units as long as nobody asks to stop."""
    for unit in units:
        if stop.is_set():
            return
        yield unit


def failures(unit: Unit, error: BaseException) -> list[Answer]:
    """An exception as what came of every call of a unit."""
    return [Answer("", error=said(error))] * len(unit.calls)


def answers_of(ask: Callable[[Work], list[Answer]], unit: Unit) -> list[Answer]:
    """An answer to each call of a unit, whatever the asker does; an exception is failures."""
    count = len(unit.calls)
    try:
        answers = list(ask(work_of(unit)))
    except (Exception, SystemExit) as error:
        return failures(unit, error)
    if len(answers) != count or not all(isinstance(answer, Answer) for answer in answers):
        return [Answer("", error=f"not {count} answers to {count} messages")] * count
    return answers


class LocalExecutor:
    """One model in this process, loaded once, when the first unit comes."""

    def __init__(self, load: Loader) -> None:
        self._load = load
        self._asker: Asker | None = None

    def run(self, units: Iterable[Unit], stop: Stopping) -> Iterator[Answered]:
        for unit in until(stop, units):
            asker = self._asker = self._asker or self._load()
            together = asker.answers_together(shares_images=unit.shares_images)
            for piece in until(stop, [unit] if together else single_calls(unit)):
                yield piece, answers_of(asker.ask, piece)


class ThreadsExecutor:
    """Threads over askers that any thread may use: an API, or several servers.

    One that is :class:`.Stoppable` waits for nothing when the run is to stop, and gives up
    its calls when all are given up.

    Args:
        load: makes the askers, when the first unit comes.
        threads: calls at a time to each asker.
    """

    def __init__(self, load: Callable[[], Sequence[Asker]], threads: int) -> None:
        self._load = load
        self._threads = threads

    def run(self, units: Iterable[Unit], stop: Stopping) -> Iterator[Answered]:
        coming = until(stop, (piece for unit in units for piece in single_calls(unit)))
        first = next(coming, None)
        if first is None:
            return
        crew = _Crew(self._load(), self._threads, stop)
        try:
            with stop.shielded(crew.wake):
                yield from crew.answers(chain([first], coming))
        finally:
            crew.dismiss()


class _Crew:
    """Threads that answer calls.

    They do not keep the process from ending: one that waits for a server that hangs is left.
    """

    def __init__(self, askers: Sequence[Asker], threads: int, stop: Stopping) -> None:
        self._askers = askers
        self._stop = stop
        self._workers = len(askers) * threads
        # Simple queues: a signal's handler may put something in while their lock is taken.
        self._asked: SimpleQueue[tuple[Asker, Unit] | None] = SimpleQueue()
        self._home: SimpleQueue[tuple[Unit, list[Answer] | BaseException | None] | None]
        self._home = SimpleQueue()
        for asker in askers:
            if isinstance(asker, Stoppable):
                asker.stops_with(stop.is_set)
        for _ in range(self._workers):
            Thread(target=self._work, daemon=True).start()

    def wake(self) -> None:
        """Have it look whether everything is given up."""
        self._home.put(None)

    def dismiss(self) -> None:
        """Let the threads end, each after its call."""
        for _ in range(self._workers):
            self._asked.put(None)

    def answers(self, coming: Iterator[Unit]) -> Iterator[Answered]:
        """The units with answers, as they come home; without what had not begun at a stop."""
        turn = cycle(self._askers)
        out = 0
        while True:
            # One call waits for every worker: none is idle, and few are on their way.
            for unit in islice(coming, 2 * self._workers - out):
                self._asked.put((next(turn), unit))
                out += 1
            if not out:
                return
            came = self._home.get()
            if came is None:
                yield from self._given_up(out)
                return
            out -= 1
            unit, answers = came
            if isinstance(answers, BaseException):
                raise answers
            if answers is not None:
                yield unit, answers

    def _given_up(self, out: int) -> Iterator[Answered]:
        """What is there already, or as good as there, of so many calls."""
        for asker in self._askers:
            if isinstance(asker, Stoppable):
                with suppress(Exception):
                    asker.cancel()
        until = time.monotonic() + GRACE
        while out and (left := until - time.monotonic()) > 0:
            try:
                came = self._home.get(timeout=left)
            except Empty:
                return
            if came is None:
                continue
            out -= 1
            unit, answers = came
            # A call that was given up did not fail.
            if isinstance(answers, list) and not any(answer.error for answer in answers):
                yield unit, answers

    def _work(self) -> None:
        while (task := self._asked.get()) is not None:
            asker, unit = task
            answers: list[Answer] | BaseException | None = None
            if not self._stop.is_set():
                try:
                    answers = answers_of(asker.ask, unit)
                except BaseException as error:
                    answers = error
            self._home.put((unit, answers))
