"""One model's calls as requests of a batch, and results as its answers.

Requests are the bodies of :class:`..asker.ChatAsker`, and a result is recorded as its calls are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ....core.replies import Recorded
from ....core.work import Answer, Work, refused_if_it_quotes, said
from ..asker import Made
from ..chat import ChatModel
from ..completion import CallError, Completion
from ..holding import was_free
from ..logprobs import FIELDS
from ..payload import Beginning, Request
from .dialects import HALF
from .services import BatchService


class Prepared(NamedTuple):
    """One request as it is sent, and what it costs at most in US dollars (None: not known)."""

    line: bytes
    at_most: float | None


class BatchAsker:
    """Asks a model through a batch service.

    Args:
        model: who is asked.
        service: through whom.
        limit_field: the request's field that limits the reply's tokens.
        told: takes what a user should know, a line at a time.
    """

    def __init__(
        self,
        model: ChatModel,
        service: BatchService,
        limit_field: str,
        told: Callable[[str], None],
    ) -> None:
        self.model = model
        self.service = service
        self._limit_field = limit_field
        self._told = told
        self._shown: set[str] = set()

    def tell(self, line: str) -> None:
        """Say a line, once."""
        if line not in self._shown:
            self._shown.add(line)
            self._told(line)

    def prepared(self, key: str, work: Work) -> Prepared:
        """The request of a call.

        Raises:
            Exception: whatever a broken picture makes of its reader.
        """
        asked = self._request(work)
        body = {
            self._limit_field if name == "max_tokens" else name: value
            for name, value in {**asked.body, **(FIELDS if work.confidences else {})}.items()
        }
        line = json.dumps(self.service.dialect.line(key, body)).encode()
        return Prepared(line, self._at_most(work, asked))

    def answer(self, work: Work, batch: str, result: Mapping[str, Any] | None, why: str) -> Answer:
        """A result as the answer of its call; ``why`` there is none, where there is none."""
        (question,) = work.questions
        try:
            asked: Request | None = self._request(work)
        except Exception:  # the picture was there when it was sent: the answer stays one
            asked = None
        outcome: Completion | CallError
        try:
            if result is None:
                raise CallError(why)
            answered = self.service.dialect.completion(result, work.confidences)
            outcome = answered.priced(self.model.prices, HALF)
        except CallError as error:
            outcome = error
        cost = outcome.cost
        call = {**Made(outcome, 1, self.service.name, cost).call, "batch": batch}
        if isinstance(outcome, CallError):
            recorded = self.model.recorded(question, asked, None)
            return _failed(str(outcome), recorded, call)
        if outcome.no_logprobs:
            self.tell(f"{outcome.no_logprobs}: its replies are kept without log-probabilities")
        completion = self.model.read(outcome, question)
        if question.reply_schema is not None and was_free(completion):
            self.tell("its replies are not held to the format: it decodes freely")
        recorded = replace(self.model.recorded(question, asked, completion), call=call)
        return refused_if_it_quotes(Answer(completion.text, recorded.as_json()))

    def unreadable(self, work: Work, error: BaseException) -> Answer:
        """A call that could not be made a request of, as the single call would have failed."""
        (question,) = work.questions
        return _failed(said(error), self.model.recorded(question, None, None), {})

    def _request(self, work: Work) -> Request:
        beginning = Beginning.AGAIN if work.shares_images else Beginning.ONCE
        return self.model.request(work.messages[0], work.questions[0], beginning)

    def _at_most(self, work: Work, asked: Request) -> float | None:
        message, (question,) = work.messages[0], work.questions
        single = self.model.at_most(message, question, asked, shared=work.shares_images)
        return None if single is None else single * HALF


def _failed(error: str, recorded: Recorded, call: Mapping[str, Any]) -> Answer:
    whole = replace(recorded, call={**call, "error": error})
    return Answer("", whole.as_json(), error)
