"""Who answers calls: :class:`Backend`, and the model in this process.

A backend looks few items ahead and brings home what it has begun, so that a sweep can stop at any
point without losing a reply that was paid for.  An exception is a failed answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

from ..core.config import Config, Count, Number, Seconds, Wanted
from ..core.work import Answer, Asker, Cancellable, CancelledError, Stop, Work, in_thread, said
from .calls import Call
from .cancel import CancelToken
from .plan import WorkItem

log = logging.getLogger(__name__)

T = TypeVar("T")
Loader = Callable[[], Asker]
"""Loads a model.  Another process may call it, so it is a plain picklable value."""


@dataclass(frozen=True, slots=True)
class Inference(Config):
    """How calls are made: nothing that an answer may depend on."""

    threads: Count = 8  # calls at a time to an API, or to each endpoint
    timeout: Seconds = 600.0  # for one attempt of such a call
    batch_size: Count = 8  # the most calls of one variant that a local model gets together
    variants: Count = 32  # the most calls over one image that a local model gets together
    poll: Seconds = 60.0  # the longest between two looks at a batch
    replicas: Annotated[int, Wanted("at least 0 (as many as fit)", strict=True, ge=0)] = 0  # on Ray
    cpus: Number = 1.0  # of each replica
    gpus: Number = 0.0  # of each replica


class WorkResult(NamedTuple):
    """Calls that came home together, each with its answer."""

    calls: tuple[Call, ...]
    answers: tuple[Answer, ...]


class Backend(Protocol):
    """Answers calls: a model in this process, HTTP servers, a provider's batch service, Ray."""

    @property
    def capacity(self) -> Mapping[str, int]:
        """By server, how many calls at once it was seen to take."""

    def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        """Yield every call of the items with its answer; fewer once a stop was requested.

        Items are pulled on the loop's thread, one after the other, a bounded number ahead; who
        walks through them again gets those whose calls are still without an answer.  A
        failed call is an answer with an error.  After a request to stop nothing begins any more and
        what is at servers comes home; after an interruption (``cancel.now``) it ends at once.
        """


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def image_name(item: WorkItem) -> str:
    """A name of the content of an item's images; empty where it has none, or several."""
    names = {call.image_sha256 for call in item.calls}
    return "+".join(names.pop()) if len(names) == 1 else ""


def work_of(item: WorkItem) -> Work:
    """An item as plain values."""
    return Work(
        messages=tuple(call.message for call in item.calls),
        questions=tuple(call.cell.question for call in item.calls),
        shares_images=item.shares_images,
        confidences=item.calls[0].cell.confidences,
    )


def single_calls(item: WorkItem) -> list[WorkItem]:
    """An item's calls one by one, so that each can be kept as soon as it is answered."""
    return [WorkItem((call,), item.shares_images) for call in item.calls]


def answers_of(asker: Asker, work: Work) -> tuple[Answer, ...]:
    """An answer to each message, whatever the model does; an exception is failures."""
    count = len(work.messages)
    try:
        answers = tuple(asker.ask(work))
        if len(answers) == count and all(isinstance(answer, Answer) for answer in answers):
            return answers
        why = f"not {count} answers to {count} messages"
    except (Exception, SystemExit) as error:
        why = said(error)
    return (Answer("", error=why),) * count


def answers_in_turn(
    asker: Asker, work: Work, is_stopped: Callable[[], bool]
) -> Iterator[tuple[Answer, ...]]:
    """Yield the answers to the messages that a model takes together; fewer after a stop.

    A model that is :class:`.Cancellable` does not finish what it has begun when the run is to stop:
    nobody pays for it, and it may take minutes.
    """
    if isinstance(asker, Cancellable):
        asker.cancelled_by(is_stopped)
    pieces = [work]
    if not asker.answers_together(shares_images=work.shares_images):
        both = zip(work.messages, work.questions, strict=True)
        pieces = [work._replace(messages=(one,), questions=(of,)) for one, of in both]
    with suppress(CancelledError):
        for piece in pieces:
            if is_stopped():
                return
            yield answers_of(asker, piece)


def not_loaded(item: WorkItem, error: BaseException) -> WorkResult:
    """What ends the run of a model that cannot be loaded: other models go on."""
    log.debug("a model cannot be loaded", exc_info=error)
    answer = Answer("", error=said(error), stop=Stop.NOT_LOADED)
    return WorkResult(item.calls, (answer,) * len(item.calls))


class LocalBackend:
    """One model in this process, loaded once, when the first item comes.

    It is asked on the loop's own thread: CUDA's current device and torch's grad mode belong to a
    thread, and nothing else wants the loop meanwhile.
    """

    def __init__(self, load: Loader) -> None:
        self._load = load
        self._asker: Asker | None = None
        self.capacity: Mapping[str, int] = {}

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        with suppress(CancelledError):
            for item in items:
                if cancel.requested:
                    return
                try:
                    with cancel.exposed():
                        asker = self._asker = self._asker or self._load()
                except (Exception, SystemExit) as error:
                    yield not_loaded(item, error)
                    return
                calls = iter(item.calls)
                coming = answers_in_turn(asker, work_of(item), lambda: cancel.requested)
                while True:
                    with cancel.exposed():
                        answers = next(coming, ())
                    if not answers:
                        break
                    yield WorkResult(tuple(islice(calls, len(answers))), answers)
                    await asyncio.sleep(0)  # a turn of the loop, for what else is due


GRACE = 1.0  # seconds that replies have which are just coming in when everything is given up


class ThreadedBackend:
    """One model that any thread may ask, as VLMEvalKit's own over APIs: so many calls at a time.

    A call that hangs when everything is given up is left in its thread.
    """

    def __init__(self, load: Loader, threads: int) -> None:
        self._load = load
        self._threads = threads
        self._asker: Asker | None = None
        self.capacity: Mapping[str, int] = {}

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        coming = (piece for item in items for piece in single_calls(item))
        running: dict[asyncio.Task[Any], WorkItem] = {}

        def give_up() -> None:
            if cancel.now:
                loop.call_soon_threadsafe(loop.call_later, GRACE, over.set)

        waiting = asyncio.create_task(over.wait())
        try:
            with suppress(CancelledError), cancel.on_request(give_up):
                while not over.is_set():
                    while len(running) < self._threads and not cancel.requested:
                        if (piece := next(coming, None)) is None:
                            break
                        try:
                            with cancel.exposed():
                                asker = self._asker = self._asker or self._load()
                        except (Exception, SystemExit) as error:
                            yield not_loaded(piece, error)
                            return
                        task = asyncio.create_task(in_thread(answers_of, asker, work_of(piece)))
                        running[task] = piece
                    if not running:
                        return
                    tasks = {*running, waiting}
                    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in done - {waiting}:
                        yield WorkResult(running.pop(task).calls, task.result())
        finally:
            for task in (waiting, *running):
                task.cancel()
