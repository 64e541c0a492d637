"""Several OpenAI-compatible servers of one model: a call that one cannot take goes to the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..models.client import ChatClient
from ..models.completion import CallError, Completion
from ..models.payload import Request, request, server_manner
from ..models.table import find_model
from ..predictions import Recorded
from ..prompts import Part, PartKind
from ..spaces import Space
from ..variant import Variant, parse
from .asking import Answer, Work, said
from .calls import HostMessage


@dataclass(frozen=True, slots=True)
class Served:
    """A model as its servers know it.

    ``name`` is that of the results, ``served`` the servers'; ``space`` gives the coordinate space
    of its replies by variant; ``fields`` are more fields of every request.
    """

    name: str
    served: str
    space: Callable[[Variant], Space]
    fields: Mapping[str, Any]

    def request(self, message: HostMessage, variant: Variant, max_tokens: int) -> Request:
        """The request for a message: greedy, images at their places.

        Raises:
            OSError: an image cannot be read.
        """
        parts = [Part(PartKind(part["type"]), part["value"]) for part in message]
        space = self.space(variant)
        manner = server_manner(self.served, space, self.fields)
        return request(parts, variant, space, replace(manner, max_tokens=max_tokens))

    def answer(self, completion: Completion, asked: Request, variant: Variant) -> Answer:
        """A completion with what the run records of it."""
        row = find_model(self.name)
        if row is not None and row.opens_thought:
            completion = completion.begun_in_thought()
        recorded = Recorded(
            space=self.space(variant).as_dict(),
            finish_reason=completion.finish_reason,
            images=tuple(image.as_record() for image in asked.images),
            thought=completion.thought,
            ends_in_thought=completion.ends_in_thought,
            tokens=completion.tokens,
            model={**completion.model, **({"row": row.name} if row else {})},
            call={"id": completion.id} if completion.id else {},
        )
        return Answer(completion.text, recorded.as_json())


class ServerAsker:
    """Asks one of several servers first; any number of threads may use it.

    Args:
        model: what they serve.
        clients: the servers, each with one attempt a call; the one that is asked first in front.
        attempts: how often a call is tried, over all servers.
        sleep: waits a number of seconds.
    """

    def __init__(
        self,
        model: Served,
        clients: Sequence[ChatClient],
        attempts: int = 5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._clients = clients
        self._attempts = max(attempts, len(clients))
        self._sleep = sleep

    def ask(self, work: Work) -> list[Answer]:
        tokens = work.settings["max_new_tokens"]
        pairs = zip(work.messages, work.datasets, strict=True)
        return [self._one(message, parse(dataset), tokens) for message, dataset in pairs]

    def answers_together(self, *, shares_images: bool) -> bool:
        return False

    def _one(self, message: HostMessage, variant: Variant, max_tokens: int) -> Answer:
        start = time.perf_counter()
        try:
            asked = self._model.request(message, variant, max_tokens)
            answer = self._model.answer(self._tried(asked.body), asked, variant)
        except CallError as error:
            answer = Answer("", error=str(error))
        except (OSError, ValueError) as error:
            answer = Answer("", error=said(error))
        return answer._replace(seconds=time.perf_counter() - start)

    def _tried(self, body: Mapping[str, Any]) -> Completion:
        """The completion of the first server that gives one.

        Raises:
            CallError: none did; or one said what the others would say too.
        """
        for attempt in range(self._attempts):
            turn, at = divmod(attempt, len(self._clients))
            if turn and not at:
                # Every server was asked once more.
                self._sleep(0.5 * 2 ** (turn - 1))
            try:
                return self._clients[at].complete(body)
            except CallError as error:
                # Without a status there was no reply; a hopeless server is not the others.
                others = error.transient or not error.status
                others = others or (error.hopeless and len(self._clients) > 1)
                if not others or attempt + 1 == self._attempts:
                    raise
        raise AssertionError("the last attempt returns or raises")
