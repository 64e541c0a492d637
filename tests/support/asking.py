"""Backends of servers on this machine, and what to ask them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.answers import Answer
from vlmeval_findit.core.question import Message, text
from vlmeval_findit.engine.backend import run_sync
from vlmeval_findit.engine.calls import Call
from vlmeval_findit.engine.cancel import CancelToken
from vlmeval_findit.engine.http_backend import HttpBackend, HttpService
from vlmeval_findit.engine.plan import WorkItem
from vlmeval_findit.engine.server import ServerPolicy
from vlmeval_findit.models.http.chat import chat_model
from vlmeval_findit.models.http.endpoint import Endpoint

KEY = "sk-or-v1-c0ffee-SECRET"
QUESTION = parse("FindIt_Demo_xyxy_json")
WORDS: Message = (text("where?"),)
QUICK = ServerPolicy(attempts=4, refusals=4, backoff=(0.001, 0.002), rest=(0.01, 0.02))
"""Waits that no test notices."""


def service(
    urls: str | Sequence[str], fields: dict[str, Any] | None = None, **how: Any
) -> HttpService:
    """Qwen3-VL behind servers."""
    urls = [urls] if isinstance(urls, str) else urls
    where = [Endpoint(url, KEY) for url in urls]
    return HttpService(chat_model("Qwen3-VL", fields=fields), where, **{"policy": QUICK, **how})


def ask(
    who: HttpService | HttpBackend,
    calls: int = 1,
    message: Message | Sequence[Message] = WORDS,
    question: Any = QUESTION,
    *,
    logprobs: bool = False,
    at_once: int = 1,
    images: Sequence[str] = (),
    cancel: CancelToken | None = None,
) -> list[Answer]:
    """Return the answers to calls of one run, in their order; without those that were not made.

    Args:
        who: is asked; a backend knows what it found out before.
        message: all the same, or one a call.
        at_once: to all servers.
        images: the name of the content of the images of each call (default: it has none).
    """
    backend = who if isinstance(who, HttpBackend) else HttpBackend(lambda: who, at_once)
    messages = list(message) if isinstance(message, list) else [message] * calls
    made = []
    for number, said in enumerate(messages):
        cell = _Cell(said, question, logprobs, (images[number],) if images else ())
        made.append(Call(str(number), cast(Any, cell), number))
    came: dict[int, Answer] = {}

    async def run() -> None:
        items = (WorkItem((call,), shares_images=False) for call in made)
        async with aclosing(backend.answer(items, cancel or CancelToken())) as results:
            async for result in results:
                for call, answer in zip(result.calls, result.answers, strict=True):
                    assert call.row not in came
                    came[call.row] = answer

    run_sync(run())
    return [came[number] for number in sorted(came)]


class _Shown:
    """The images of the message, whichever number it has."""

    def __init__(self, shown: tuple[str, ...]) -> None:
        self._shown = shown

    def __getitem__(self, at: int) -> int:
        return at

    def contents(self, number: int) -> tuple[str, ...]:
        return self._shown


class _Cell:
    """As much of a cell of one message as a backend reads."""

    rows = range(1 << 30)
    is_sampled = False

    def __init__(
        self, message: Message, question: Any, logprobs: bool, shown: tuple[str, ...]
    ) -> None:
        self.question = question
        self.logprobs = logprobs
        self.prompts = self.prompt_hashes = self
        self.images = _Shown(shown)
        self._message = message

    def message(self, row: int) -> Message:
        return self._message


def one(who: HttpService | HttpBackend, **how: Any) -> Answer:
    """Return the answer to one message."""
    (answer,) = ask(who, **how)
    return answer


def call_of(answer: Answer) -> dict[str, Any]:
    """Return what is recorded of a call."""
    call = json.loads(answer.extra)["findit"]["call"]
    assert isinstance(call, dict)
    return call
