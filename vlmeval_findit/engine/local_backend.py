"""Backends of models in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from ..core import error_line
from ..protocol import (
    Batch,
    CallResult,
    Cancellable,
    CancelledError,
    Expecting,
    ModelClient,
    in_thread,
)
from .backend import CancelToken, Loader, WorkResult, not_loaded
from .plan import WorkItem, single_calls


def batch_of(item: WorkItem) -> Batch:
    """Return an item as plain values."""
    return Batch(
        messages=tuple(call.message for call in item.calls),
        variants=tuple(call.cell.variant for call in item.calls),
        logprobs=item.calls[0].cell.logprobs,
        seeds=tuple(call.seed for call in item.calls if call.seed is not None),
    )


def answers_of(client: ModelClient, batch: Batch) -> tuple[CallResult, ...]:
    """Return one answer per message; an exception fails them all."""
    count = len(batch.messages)
    try:
        answers = tuple(client.ask(batch))
        if len(answers) == count and all(isinstance(answer, CallResult) for answer in answers):
            return answers
        why = f"not {count} answers to {count} messages"
    except (Exception, SystemExit) as error:
        why = error_line(error)
    return (CallResult("", error=why),) * count


class PartAnswered(NamedTuple):
    """The answers that a model gave together, and the places of their messages in a window."""

    places: Sequence[int]
    answers: tuple[CallResult, ...]


def answers_in_turn(
    client: ModelClient, window: Batch, is_stopped: Callable[[], bool]
) -> Iterator[PartAnswered]:
    """Yield the answers to a window, part by part as the model answers them; fewer after a stop.

    A :class:`.Cancellable` model is stopped while it generates: that costs nothing, and may take
    minutes. An :class:`.Expecting` one knows the next part while it answers.
    """
    if isinstance(client, Cancellable):
        client.cancelled_by(is_stopped)
    with suppress(CancelledError):
        parts = client.parts(window)
        for places, following in zip_longest(parts, parts[1:]):
            if is_stopped():
                return
            if following is not None and isinstance(client, Expecting):
                client.expect(window.only(following))
            yield PartAnswered(places, answers_of(client, window.only(places)))


class LocalBackend:
    """One model in this process, loaded with the first item.

    It runs on the thread of the loop, as CUDA's device and torch's grad mode belong to a thread.
    """

    def __init__(self, load: Loader) -> None:
        self._load = cache(load)

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        with suppress(CancelledError):
            for item in items:
                if cancel.requested:
                    return
                try:
                    with cancel.exposed():
                        client = self._load()
                except (Exception, SystemExit) as error:
                    yield not_loaded(item, error)
                    return
                answered = answers_in_turn(client, batch_of(item), lambda: cancel.requested)
                while True:
                    with cancel.exposed():
                        part = next(answered, None)
                    if part is None:
                        break
                    calls = tuple(item.calls[at] for at in part.places)
                    yield WorkResult(calls, part.answers)
                    await asyncio.sleep(0)  # let other tasks of the loop run


class ThreadedBackend:
    """A model that is safe to call from several threads, as VLMEvalKit's API models are.

    A call that hangs when everything is given up is left in its thread.
    """

    def __init__(self, load: Loader, threads: int) -> None:
        self._load = cache(load)
        self._threads = threads

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        singles = single_calls(items)
        running: dict[asyncio.Task[Any], WorkItem] = {}
        waiting = asyncio.create_task(asyncio.Event().wait())  # until an interruption
        try:
            with suppress(CancelledError), cancel.ending(waiting):
                while not waiting.done():
                    for item in islice(singles, self._threads - len(running)):
                        if cancel.requested:
                            break
                        try:
                            with cancel.exposed():
                                client = self._load()
                        except (Exception, SystemExit) as error:
                            yield not_loaded(item, error)
                            return
                        task = asyncio.create_task(in_thread(answers_of, client, batch_of(item)))
                        running[task] = item
                    if not running:
                        return
                    await asyncio.wait({*running, waiting}, return_when=asyncio.FIRST_COMPLETED)
                    for task in [task for task in running if task.done()]:
                        yield WorkResult(running.pop(task).calls, task.result())
        finally:
            for task in (waiting, *running):
                task.cancel()
