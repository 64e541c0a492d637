"""A replica of a model in an actor of a Ray cluster: what runs on the other machines."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ..core.redaction import quoted
from ..core.work import Answer, Asker, Work
from .backend import answers_in_turn
from .finished import code_sha256

_TOGETHER = 0.25
"""Seconds of answers that go home together: a message costs the driver 0.4 ms."""

SETTINGS = (
    "LMUData",
    "FINDIT_CONFIDENCES",
    "FINDIT_CONFIG",
    "FINDIT_ENCODER",
    "FINDIT_FORCE",
    "FINDIT_IMAGES",
    "FINDIT_PROMPTS",
    "FINDIT_READS_LIKE",
    "FINDIT_REPLAY",
    "FINDIT_SCENES_MB",
    "FINDIT_SKIP_MISSING",
    "FINDIT_SPACE",
    "FINDIT_TABLES",
    "FINDIT_VP_MARK",
)
"""The variables that a replica takes over.  By their names, because what is sent lies in the object
store of the cluster, for everybody on it to read: keys and headers of servers are not among them.
"""


class Home(NamedTuple):
    """What comes home at a time."""

    answers: tuple[Answer, ...]
    """In the order of the messages."""

    words: list[tuple[int, str]]
    """What the replica logged: level and line."""


class Ready(NamedTuple):
    """A replica that has loaded its model."""

    machine: str
    code: str
    """The hash of its package."""


class Replica:
    """One replica; it lives in an async actor, and its model in one thread of that.

    Args:
        load: makes the asker.
        environment: variables that are set first.
    """

    def __init__(self, load: Callable[[], Asker], environment: Mapping[str, str]) -> None:
        os.environ.update(environment)
        self._load = load
        self._asker: Asker | None = None
        self._stopped = False
        # CUDA's current device and torch's grad mode belong to a thread.
        self._thread = ThreadPoolExecutor(1)
        self._heard = _Heard()
        logging.getLogger().addHandler(self._heard)

    async def ready(self) -> Ready:
        """Load the model, unless it is loaded, and say who is there."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._loaded)
        return Ready(socket.gethostname(), code_sha256())

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
                yield Home(together, self._heard.taken())
        await running

    async def stop(self) -> None:
        """Begin no further call; a model that can ends between two tokens."""
        self._stopped = True

    def _loaded(self) -> Asker:
        self._asker = self._asker or self._load()
        return self._asker


class _Heard(logging.Handler):
    """Keeps warnings and errors until somebody takes them home."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._words: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._words.append((record.levelno, quoted(record.getMessage(), 2000)))

    def taken(self) -> list[tuple[int, str]]:
        words, self._words = self._words, []
        return words
