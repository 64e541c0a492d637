"""Askers of servers on this machine, and what to ask them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vlmeval_findit.benchmarks.findit.names import parse
from vlmeval_findit.core.messages import text
from vlmeval_findit.core.work import Answer, Work
from vlmeval_findit.models.http.asker import ChatAsker, Terms
from vlmeval_findit.models.http.chat import server_model
from vlmeval_findit.models.http.endpoint import Endpoint
from vlmeval_findit.models.http.spending import Budget

KEY = "sk-or-v1-c0ffee-SECRET"
QUESTION = parse("FindIt_Demo_xyxy_json")
WORK = Work(((text("where?"),),), (QUESTION,), {}, False)


class Sleeps(list[float]):
    """Takes the place of waiting and remembers how long."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def asker(
    urls: str | Sequence[str],
    terms: Terms | None = None,
    sleeps: Sleeps | None = None,
    budget: Budget | None = None,
    fields: dict[str, Any] | None = None,
) -> ChatAsker:
    """An asker of Qwen3-VL behind servers, which waits for nothing."""
    urls = [urls] if isinstance(urls, str) else urls
    return ChatAsker(
        server_model("Qwen3-VL", fields=fields),
        [Endpoint(url, KEY) for url in urls],
        terms or Terms(attempts=4),
        budget,
        Sleeps() if sleeps is None else sleeps,
    )


def one(asking: ChatAsker) -> Answer:
    """The answer to one message."""
    (answer,) = asking.ask(WORK)
    return answer


def call_of(answer: Answer) -> dict[str, Any]:
    """What is recorded of a call."""
    call = json.loads(answer.extra)["findit"]["call"]
    assert isinstance(call, dict)
    return call
