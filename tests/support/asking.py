"""Backends of servers on this machine, and the calls that tests give them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.engine import (
    Call,
    CancelToken,
    HttpBackend,
    HttpService,
    ServerPolicy,
    WorkItem,
    run_sync,
)
from vlmeval_findit.models import Endpoint, chat_model
from vlmeval_findit.protocol import CallResult, Message, text

KEY = "sk-or-v1-c0ffee-SECRET"
QUESTION = parse("FindIt_Demo_xyxy_json")
WORDS: Message = (text("where?"),)
QUICK = ServerPolicy(attempts=4, refusals=4, backoff=(0.001, 0.002), rest=(0.01, 0.02))
"""Waits that no test notices."""


def service(
    urls: str | Sequence[str], fields: dict[str, Any] | None = None, **options: Any
) -> HttpService:
    """Return Qwen3-VL behind servers."""
    urls = [urls] if isinstance(urls, str) else urls
    endpoints = [Endpoint(url, KEY) for url in urls]
    model = chat_model("Qwen3-VL", fields=fields)
    return HttpService(model, endpoints, **{"policy": QUICK, **options})


def ask_calls(
    asked: HttpService | HttpBackend,
    calls: int = 1,
    message: Message | Sequence[Message] = WORDS,
    variant: Any = QUESTION,
    *,
    logprobs: bool = False,
    at_once: int = 1,
    images: Sequence[str] = (),
    cancel: CancelToken | None = None,
    seen: list[str] | None = None,
) -> list[CallResult]:
    """Return the answers to calls of a run, in their order; skipped calls have none.

    Args:
        asked: a service, or a backend that remembers earlier calls.
        calls: their number.
        message: of all calls, or a list of one for each.
        question: of all calls.
        logprobs: whether to ask for them.
        at_once: most calls in flight.
        images: for each call the name of its image's content (default: calls have no image).
        cancel: stops the run.
        seen: gets the texts of answers as they come, also where the run ends with an error.
    """
    backend = asked if isinstance(asked, HttpBackend) else HttpBackend(lambda: asked, at_once)
    messages = list(message) if isinstance(message, list) else [message] * calls
    answers: dict[int, CallResult] = {}

    def items() -> Any:
        for number, each in enumerate(messages):
            cell = _Cell(each, variant, logprobs, images[number : number + 1])
            call = Call(str(number), cast(Any, cell), number)
            yield WorkItem((call,))

    async def run() -> None:
        async with aclosing(backend.answer(items(), cancel or CancelToken())) as results:
            async for result in results:
                for call, answer in zip(result.calls, result.answers, strict=True):
                    assert call.row not in answers
                    answers[call.row] = answer
                    if seen is not None:
                        seen.append(answer.text)

    run_sync(run())
    return [answers[number] for number in sorted(answers)]


class _Cell:
    """A cell of one message, as far as a backend reads it; it is its prompts and images, too."""

    rows = range(1 << 30)
    is_sampled = False

    def __init__(
        self, message: Message, variant: Any, logprobs: bool, contents: Sequence[str]
    ) -> None:
        self.variant = variant
        self.logprobs = logprobs
        self.prompts = self.prompt_hashes = self.images = self
        self._message, self._contents = message, tuple(contents)

    def message(self, row: int) -> Message:
        return self._message

    def __getitem__(self, at: int) -> int:
        return at

    def contents(self, number: int) -> tuple[str, ...]:
        return self._contents


def ask_call(asked: HttpService | HttpBackend, **options: Any) -> CallResult:
    """Return the answer to a single call."""
    (answer,) = ask_calls(asked, **options)
    return answer


def call_of(answer: CallResult) -> dict[str, Any]:
    """Return the record of a call."""
    return dict(answer.record.call)
