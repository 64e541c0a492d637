"""Who answers: this process, or threads over one or more askers.

An executor takes units as it can do them and gives back their answers, in any order.  It holds few
calls at a time: when it is told to stop it takes no more, and what it has taken is answered and
given back, so that a sweep can stop at any point without losing a reply that was paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import cycle, islice
from threading import Event
from typing import Protocol

from ..answers import Answer, Asker, Work
from .plan import Unit

Answered = tuple[Unit, list[Answer]]
Loader = Callable[[], Asker]
"""Makes an asker: loads a model.  Another process may call it, so it is a plain picklable value."""


class Executor(Protocol):
    """Who answers units."""

    def run(self, units: Iterable[Unit], stop: Event) -> Iterator[Answered]:
        """Every unit, or its calls one by one, with answers, in any order; fewer once stopped."""


def work_of(unit: Unit) -> Work:
    """A unit as plain values."""
    first = unit.calls[0].cell
    return Work(
        messages=tuple(call.cell.message(call.row) for call in unit.calls),
        datasets=tuple(call.cell.variant.name for call in unit.calls),
        settings=first.settings,
        shares_images=unit.shares_images,
    )


def single_calls(unit: Unit) -> list[Unit]:
    """A unit's calls one by one, for an asker that gains nothing from having them together.

    Each can then be kept as soon as it is answered.
    """
    return [Unit((call,), unit.shares_images) for call in unit.calls]


def until(stop: Event, units: Iterable[Unit]) -> Iterator[Unit]:
    """Units as long as nobody asks to stop."""
    for unit in units:
        if stop.is_set():
            return
        yield unit


class LocalExecutor:
    """One model in this process, loaded when the first unit comes."""

    def __init__(self, load: Loader) -> None:
        self._load = load

    def run(self, units: Iterable[Unit], stop: Event) -> Iterator[Answered]:
        asker: Asker | None = None
        for unit in until(stop, units):
            if asker is None:
                asker = self._load()
            together = asker.answers_together(shares_images=unit.shares_images)
            for piece in until(stop, [unit] if together else single_calls(unit)):
                yield piece, asker.ask(work_of(piece))


class ThreadsExecutor:
    """Threads over askers that any thread may use: an API, or several servers.

    Args:
        load: makes the askers, when the first unit comes.
        threads: calls at a time to each asker.
    """

    def __init__(self, load: Callable[[], Sequence[Asker]], threads: int) -> None:
        self._load = load
        self._threads = threads

    def run(self, units: Iterable[Unit], stop: Event) -> Iterator[Answered]:
        coming = until(stop, (piece for unit in units for piece in single_calls(unit)))
        first = next(coming, None)
        if first is None:
            return
        askers = self._load()
        workers = len(askers) * self._threads
        turn = cycle(askers)
        with ThreadPoolExecutor(workers) as pool:
            running: dict[Future[list[Answer]], Unit] = {}

            def submit(unit: Unit) -> None:
                running[pool.submit(next(turn).ask, work_of(unit))] = unit

            submit(first)
            while True:
                # One call waits for every worker: none is idle, and few are on their way.
                for unit in islice(coming, 2 * workers - len(running)):
                    submit(unit)
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
