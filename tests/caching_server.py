"""A chat server that keeps what it read of pictures, as vLLM and providers do: bounded, counted.

What is asked while a picture is still being read is read once more.  It says 429 to what is too
much at once, it may be slow, and it may go away for good.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from chat_server import Answer, Asked, ChatServer, completion, error

IMAGE_TOKENS = 250
"""Of every picture."""


@dataclass
class CachingServer:
    """``with CachingServer() as server``: answers at ``server.url`` until the end.

    ``keeps`` is how many beginnings of prompts it remembers, ``takes`` how many calls at once it
    does not refuse; ``reads`` and ``writes`` are the seconds for a picture that it does not have
    and for an answer; after ``dies_at`` calls it is gone.
    """

    keeps: int = 4
    takes: int = 10**6
    reads: float = 0.05
    writes: float = 0.01
    dies_at: int | None = None
    retry_after: str | None = None
    read: int = 0
    cached: int = 0
    refused: int = 0
    most: int = 0
    answered: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chat = ChatServer(self._script)
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, None] = OrderedDict()
        self._at_once = 0

    @property
    def url(self) -> str:
        return self._chat.url

    @property
    def asked(self) -> list[Asked]:
        return self._chat.asked

    @property
    def image_tokens(self) -> int:
        """Tokens of pictures that it had to read."""
        return IMAGE_TOKENS * self.read

    def __enter__(self) -> CachingServer:
        self._chat.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self._chat.__exit__(kind, error, trace)

    def _script(self, asked: Asked, number: int) -> Answer:
        if self.dies_at is not None and number >= self.dies_at:
            if number == self.dies_at:
                self.__exit__()
            return error(503, "going down")
        with self._lock:
            if self._at_once >= self.takes:
                self.refused += 1
                more = {"Retry_After": self.retry_after} if self.retry_after else {}
                return error(429, "too many at once", **more)
            self._at_once += 1
            self.most = max(self.most, self._at_once)
        try:
            return self._answer(asked.body)
        finally:
            with self._lock:
                self._at_once -= 1

    def _answer(self, body: Any) -> Answer:
        start, pictures, words = beginning(body)
        with self._lock:
            known = start in self._kept
            if known:
                self._kept.move_to_end(start)
        if not known:
            time.sleep(self.reads)
        with self._lock:
            self._kept[start] = None
            while len(self._kept) > self.keeps:
                self._kept.popitem(last=False)
            self.read += 0 if known else pictures
            self.cached += pictures if known else 0
            self.answered.append((start, words))
        time.sleep(self.writes)
        tokens = IMAGE_TOKENS * pictures
        return completion(
            "[10, 20, 300, 900]",
            usage={
                "prompt_tokens": tokens + len(words) // 4,
                "completion_tokens": 12,
                "prompt_tokens_details": {"cached_tokens": tokens if known else 0},
            },
        )


def beginning(body: Any) -> tuple[str, int, str]:
    """Of a request: its content up to the last picture, how many there are, and the words after."""
    content = body["messages"][0]["content"]
    places = [at for at, part in enumerate(content) if part["type"] == "image_url"]
    cut = places[-1] + 1 if places else 0
    return json.dumps(content[:cut]), len(places), json.dumps(content[cut:])
