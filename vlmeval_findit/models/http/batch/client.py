"""One model's calls as requests of a batch, and results as its answers.

Requests are those of single calls, and a result is recorded as a single call is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ....core.messages import Message
from ....core.question import Question
from ....core.work import Answer, said
from ..chat import ChatModel
from ..chat_call import ChatCall
from ..completion import CallError
from ..images import EncodedImages
from ..logprobs import FIELDS
from ..payload import Beginning, pieces
from ..spending import Budget
from .records import HALF
from .services import BatchService


@dataclass(slots=True)
class BatchClient:
    """Asks a model through a batch service, on one event loop."""

    model: ChatModel
    service: BatchService
    limit_field: str
    """The request's field that limits the reply's tokens."""
    budget: Budget
    told: Callable[[str], None]
    """Takes what a user should know, a line at a time."""
    _shown: set[str] = field(default_factory=set)
    _images: EncodedImages = field(default_factory=EncodedImages)

    def tell(self, line: str) -> None:
        """Say a line, once."""
        if line not in self._shown:
            self._shown.add(line)
            self.told(line)

    def call(
        self, message: Message, question: Question, confidences: bool, beginning: Beginning
    ) -> ChatCall:
        """A call that is going to be made, or was made, in a batch."""
        made = ChatCall(self.model, self.budget, message, question, confidences, beginning)
        made.attempts, made.server = 1, self.service.name
        return made

    async def request_line(self, key: str, call: ChatCall) -> tuple[bytes, float | None]:
        """The request of a call, and what it costs at most in US dollars (None: not known).

        Raises:
            Exception: whatever a broken image makes of its reader.
        """
        asked = await call.made_request(self._images)
        fields = {**asked.body, **(FIELDS if call.confidences else {})}
        fields[self.limit_field] = fields.pop("max_tokens")
        at_most = call.at_most()
        line = b"".join(pieces(self.service.line(key, fields), asked.images))
        return line, None if at_most is None else at_most * HALF

    async def answer(
        self, call: ChatCall, batch: str, result: Mapping[str, Any] | None, why: str
    ) -> Answer:
        """A result as the answer of its call; ``why`` there is none, where there is none."""
        with suppress(Exception):  # the image was there when it was sent: the answer stays one
            await call.made_request(self._images)
        call.batch = batch
        try:
            if result is None:
                raise CallError(why)
            found = self.service.completion(result, call.confidences)
            call.completion = found.priced(self.model.prices, HALF)
            call.cost = call.completion.cost
        except CallError as error:
            call.error, call.cost = error, error.cost
        answer = call.answer(None, "")
        if call.completion is not None:
            for warning, _ in call.warnings:
                self.tell(warning)
        return answer

    def unreadable(self, call: ChatCall, error: BaseException) -> Answer:
        """A call that could not be made a request of, as the single call would have failed."""
        call.unreadable = said(error)
        return call.answer(None, "")
