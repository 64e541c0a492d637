"""One model's calls as requests of a batch, and results as its answers.

Requests are those of single calls, and a result is recorded as a single call is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ....core.work import Answer, Work, said
from ..call_records import CallOutcome, answered, failed
from ..chat import ChatModel
from ..completion import CallError
from ..holding import was_free
from ..logprobs import FIELDS
from ..payload import Beginning, Request
from .dialects import HALF
from .services import BatchService


class BatchClient:
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
        self.service = service
        self._model = model
        self._limit_field = limit_field
        self._told = told
        self._shown: set[str] = set()

    def tell(self, line: str) -> None:
        """Say a line, once."""
        if line not in self._shown:
            self._shown.add(line)
            self._told(line)

    def request_line(self, key: str, work: Work) -> tuple[bytes, float | None]:
        """The request of a call, and what it costs at most in US dollars (None: not known).

        Raises:
            Exception: whatever a broken image makes of its reader.
        """
        asked = self._request(work)
        body = {
            self._limit_field if name == "max_tokens" else name: value
            for name, value in {**asked.body, **(FIELDS if work.confidences else {})}.items()
        }
        message, (question,) = work.messages[0], work.questions
        single = self._model.at_most(message, question, asked, shared=work.shares_images)
        line = json.dumps(self.service.dialect.line(key, body)).encode()
        return line, None if single is None else single * HALF

    def answer(self, work: Work, batch: str, result: Mapping[str, Any] | None, why: str) -> Answer:
        """A result as the answer of its call; ``why`` there is none, where there is none."""
        (question,) = work.questions
        try:
            asked: Request | None = self._request(work)
        except Exception:  # the image was there when it was sent: the answer stays one
            asked = None
        try:
            if result is None:
                raise CallError(why)
            completion = self.service.dialect.completion(result, work.confidences)
            completion = completion.priced(self._model.prices, HALF)
        except CallError as error:
            outcome = CallOutcome(error, 1, self.service.name, error.cost)
            recorded = self._model.recorded(question, asked, None)
            return failed(str(error), recorded, {**outcome.as_record(), "batch": batch})
        outcome = CallOutcome(completion, 1, self.service.name, completion.cost)
        if completion.no_logprobs:
            self.tell(f"{completion.no_logprobs}: its replies are kept without log-probabilities")
        completion = self._model.read(completion, question)
        if question.reply_schema is not None and was_free(completion):
            self.tell("its replies are not held to the format: it decodes freely")
        recorded = self._model.recorded(question, asked, completion)
        call = {**outcome.as_record(), "batch": batch}
        return answered(completion, replace(recorded, call=call))

    def unreadable(self, work: Work, error: BaseException) -> Answer:
        """A call that could not be made a request of, as the single call would have failed."""
        (question,) = work.questions
        return failed(said(error), self._model.recorded(question, None, None), {})

    def _request(self, work: Work) -> Request:
        beginning = Beginning.AGAIN if work.shares_images else Beginning.ONCE
        return self._model.request(work.messages[0], work.questions[0], beginning)
