"""One call over its attempts: its request, what they cost, and the answer that comes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core.messages import Message
from ...core.question import Question
from ...core.replies import Recorded
from ...core.work import Answer, Stop, refused_if_it_quotes
from .chat import ChatModel
from .client import HttpClient
from .completion import CallError, Completion, read_completion
from .endpoint import LIMIT_FIELDS
from .images import EncodedImages
from .logprobs import FIELDS, refuses_logprobs
from .model_server import ModelServer
from .payload import Beginning, Request
from .refusals import explained, is_unknown
from .schema import First, check, was_free
from .spending import Budget


@dataclass(slots=True, eq=False)
class ChatCall:
    """One message to a model.

    ``cost`` is what its attempts cost in US dollars (None: nobody says it), of which ``guessed`` is
    what replies may have cost that nobody saw; ``error`` is why the last attempt failed.
    """

    model: ChatModel
    budget: Budget
    message: Message
    question: Question
    confidences: bool = False
    beginning: Beginning = Beginning.ONCE
    request: Request | None = None
    began: float = 0.0
    attempts: int = 0
    server: str = ""
    batch: str = ""
    cost: float | None = 0.0
    guessed: float = 0.0
    error: CallError | None = None
    unreadable: str = ""
    completion: Completion | None = None
    warnings: tuple[tuple[str, str], ...] = ()
    """What a user should know, once, and what to add the first time."""

    @property
    def kind(self) -> str:
        """Whether a server takes it may depend on whether its reply is held to a format."""
        return "free" if self.question.reply_schema is None else "held"

    async def attempt(self, server: ModelServer, client: HttpClient, images: EncodedImages) -> None:
        """Ask a server; ``completion`` is its answer.

        Raises:
            CallError: it gave none.
        """
        self.server = server.endpoint.name
        try:
            request = self.request or await self.made_request(images)
            if (first := self.model.first(request, self.question)) is not None:
                await self._check_holding(server, client, first)
            more = FIELDS if self.confidences else {}
            found = await self._sent(server, client, {**request.body, **more}, self.confidences)
        except CallError as error:
            self._pay(error.cost)
            if error.worked_on:
                self._guess()
            self.error = error
            raise
        if found.cost is None:
            # What nobody said is what it may have been.
            at_most = self.at_most()
            self.guessed += at_most or 0.0
            self.cost = ((self.cost or 0.0) + (at_most or 0.0)) or at_most
        else:
            self._pay(found.cost)
        self.completion = found

    async def made_request(self, images: EncodedImages) -> Request:
        """Its request, with marks in place of the images.

        Raises:
            Exception: whatever a broken image makes of its reader.
        """
        wanted = self.model.wanted_images(self.message, self.question)
        shown = await images.all(wanted)
        self.request = self.model.request(self.message, self.question, self.beginning, shown)
        return self.request

    # --- what is sent -----------------------------------------------------------------------------

    async def _check_holding(self, server: ModelServer, client: HttpClient, first: First) -> None:
        """Ask what only a held reply answers as its schema has it, once a server: calls beside it
        wait for what comes.  It is paid with this call.

        Raises:
            CallError: it is refused, or answered freely; also to those who waited.
        """
        if server.holds:
            return
        if server.never_holds is not None:
            raise server.never_holds.of_another()
        if server.asked_first is not None:
            if (error := await asyncio.shield(server.asked_first)) is not None:
                raise error.of_another()
            return
        came = server.asked_first = asyncio.get_running_loop().create_future()
        error, attempts = None, self.attempts
        try:
            try:
                completion = await self._sent(server, client, first.body)
            except CallError as refused:
                refused.args = (f"{refused} (to the question that comes before constrained ones)",)
                raise
            self.attempts = attempts
            if completion.cost is None:
                self._guess()
            self._pay(completion.cost or 0.0)
            check(completion, first)
            server.holds = True
        except CallError as failure:
            error = failure
            server.never_holds = failure if failure.hopeless else None
            raise
        finally:
            server.asked_first = None
            came.set_result(error)

    async def _sent(
        self,
        server: ModelServer,
        client: HttpClient,
        body: Mapping[str, Any],
        confidences: bool = False,
    ) -> Completion:
        """The reply to a body, with the limit of tokens in the field that the server takes."""
        usual = server.takes
        for takes in (usual, *(name for name in LIMIT_FIELDS if name != usual)):
            self.attempts += 1
            own = {takes if name == "max_tokens" else name: it for name, it in body.items()}
            try:
                reply = await server.reply(client, own, self.request.images if self.request else ())
                found = read_completion(reply, confidences=confidences)
            except CallError as error:
                if takes == usual and is_unknown(takes, error):
                    continue
                if not confidences or not refuses_logprobs(error.status, str(error)):
                    raise
                # Every further call would be refused too, and nothing but the flag can change it.
                message = f"it gives no log-probabilities: run without --confidences ({error})"
                raise CallError(message, error.status, cost=error.cost, hopeless=True) from None
            server.takes = takes
            return found.priced(self.model.prices)
        raise AssertionError("the last field's error is raised")

    # --- what it costs ----------------------------------------------------------------------------

    def _pay(self, cost: float) -> None:
        self.cost = (self.cost or 0.0) + cost

    def _guess(self) -> None:
        """Count what nobody said the price of, at the most that it may be."""
        known = self.at_most()
        guess = self.budget.dearest if known is None else known
        self._pay(guess)
        self.guessed += guess

    def at_most(self) -> float | None:
        """What an attempt costs at most, in US dollars (None: no price is known)."""
        assert self.request is not None
        shared = self.beginning is Beginning.AGAIN
        return self.model.at_most(self.message, self.question, self.request, shared=shared)

    # --- what comes of it -------------------------------------------------------------------------

    def answer(self, stop: Stop | None, later: str) -> Answer:
        """What came of it; of a failed one ``warnings`` say why.

        Args:
            stop: that its failure ends the run.
            later: when its server wants to be asked again, where nobody waits.
        """
        if self.completion is not None:
            return self._answered(self.completion)
        recorded = self.model.recorded(self.question, self.request, None)
        if (error := self.error) is None:
            return _failed(self.unreadable, recorded, {})
        message = f"{error}{later}"
        if error.hopeless and error.alike and self.request is not None:
            body, asked = self.request.body, self.question
            message += explained(error, body, asked, confidences=self.confidences)
        attempts = f" ({self.attempts} attempts)" if self.attempts > 1 else ""
        self.warnings = ((message, attempts),)
        return _failed(message + attempts, recorded, self._record(error.status), stop)

    def _answered(self, found: Completion) -> Answer:
        read = self.model.read(found, self.question)
        if found.no_logprobs:
            why = f"{found.no_logprobs}: its replies are kept without log-probabilities"
            self.warnings += ((why, ""),)
        if self.question.reply_schema is not None and was_free(read):
            why = "its replies are not held to the format: it decodes freely"
            self.warnings += ((why, ""),)
        recorded = self.model.recorded(self.question, self.request, read)
        whole = replace(recorded, call=self._record(200))
        return refused_if_it_quotes(Answer(read.text, whole.as_json()))

    def _record(self, status: int) -> dict[str, Any]:
        """What is recorded of how it was made."""
        found = self.completion or Completion("")
        known = {
            "id": found.id or None,
            "cost": self.cost,
            "cost_guessed": self.guessed or None,
            "cost_from": found.cost_from or None,
            "cache_discount": found.cache_discount,
            "status": status or None,
            "attempts": self.attempts,
            "server": self.server or None,
            "batch": self.batch or None,
        }
        return {name: value for name, value in known.items() if value is not None}


def _failed(
    error: str, recorded: Recorded, call: Mapping[str, Any], stop: Stop | None = None
) -> Answer:
    whole = replace(recorded, call={**call, "error": error})
    return Answer("", whole.as_json(), error, stop=stop)
