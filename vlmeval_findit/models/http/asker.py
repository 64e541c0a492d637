"""The one asker of models behind HTTP: OpenRouter, a provider, one server or several.

Whatever a server does is an answer, with an error or without; nothing is raised.  What may pass is
tried again, at another server where there is one; waiting ends as soon as the run is to stop.
"""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, stop_any
from tenacity.stop import stop_base
from tenacity.wait import wait_exponential_jitter

from ...core.messages import Message
from ...core.question import Question
from ...core.replies import Recorded
from ...core.routing import Place
from ...core.work import Answer, Stop, Work, refused_if_it_quotes, said
from .chat import ChatModel
from .completion import CallError, Completion, read_completion
from .endpoint import LIMIT_FIELDS, Endpoint
from .holding import First, check, was_free
from .logprobs import FIELDS, refuses_logprobs
from .payload import Beginning, Request
from .pool import Caller, Pool, Server
from .providers.calls import ProviderCalls
from .refusals import explained, is_unknown
from .spending import Budget, SpendingError
from .transport import Transport

log = logging.getLogger(__name__)

_backoff = wait_exponential_jitter(initial=1.0, max=60.0, jitter=1.0)

_LOOK_UP = 0.1
"""Seconds after which one who waits looks whether the run is to stop."""

LONGEST_WAIT = 600.0
"""Seconds; a server that asks for a longer wait is not waited for: the next run asks again."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How calls are made.

    ``attempts`` are those for one call at most (each server gets one at least), ``timeout`` is in
    seconds for one attempt, from the look-up of the server's name to the reply's last byte.
    """

    attempts: int = 6
    timeout: float = 600.0

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise ValueError(f"timeout: {self.timeout!r} should be seconds, more than 0")


class Over(NamedTuple):
    """How a call is made: a name of the content of its images, the server that should answer,
    whether other calls are over the same images, whether log-probabilities are asked for; and the
    request that goes before the first one to a server (None: none does)."""

    picture: str = ""
    place: str = ""
    beginning: Beginning = Beginning.ONCE
    confidences: bool = False
    first: First | None = None


class ChatAsker:
    """Asks a model over HTTP; any number of threads may share it.

    Args:
        model: who is asked.
        servers: where; all serve the same model.
        terms: how.
        budget: what may be spent, perhaps together with other models.
        sleep: waits a number of seconds between attempts (None: until the run is to stop).
    """

    def __init__(
        self,
        model: ChatModel,
        servers: Sequence[Endpoint],
        terms: Terms | None = None,
        budget: Budget | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        terms = terms or Terms()
        self._model = model
        self._pool = Pool(servers, stopping=lambda: self.stopping)
        self._attempts = max(terms.attempts, len(servers), 1)
        self._budget = budget or Budget()
        self._transport = Transport(terms.timeout)
        self._calls = ProviderCalls(terms.timeout)
        self._stopping = threading.Event()
        self._told_to_stop: Callable[[], bool] = self._stopping.is_set
        self._sleep = self._rest if sleep is None else sleep
        self._shown: set[str] = set()
        self._lock = threading.Lock()

    def ask(self, work: Work) -> list[Answer]:
        pictures = work.pictures or ("",) * len(work.messages)
        beginning = Beginning.AGAIN if work.shares_images else Beginning.ONCE
        return [
            self._one(message, question, Over(picture, work.place, beginning, work.confidences))
            for message, question, picture in zip(
                work.messages, work.questions, pictures, strict=True
            )
        ]

    def answers_together(self, *, shares_images: bool) -> bool:
        return False

    def expect(self, calls: int) -> None:
        """So many calls will come at a time: each server takes its share at most."""
        self._pool.expect(calls)

    def places(self) -> Sequence[Place]:
        """The servers, and how many calls each takes at a time now."""
        return self._pool.places()

    @property
    def took(self) -> Mapping[str, int]:
        """By server, how many calls at once it takes, as far as it was tried."""
        return self._pool.took

    @property
    def stopped(self) -> Stop | None:
        """Why no further call will be answered; None where it may."""
        if self._pool.hopeless is not None:
            return Stop.HOPELESS
        return Stop.SPENT if self._budget.exhausted else None

    def stop(self) -> None:
        """Try nothing again: who waits for another attempt fails now, what is sent comes home."""
        self._stopping.set()

    def stops_with(self, told: Callable[[], bool]) -> None:
        """Stop when a run is told to; nothing here may be called from a signal's handler."""
        self._told_to_stop = told

    @property
    def stopping(self) -> bool:
        """Whether nothing is tried again."""
        return self._stopping.is_set() or self._told_to_stop()

    def cancel(self) -> None:
        """End what is on its way too: every call comes back at once, as a failed answer."""
        self._stopping.set()
        self._transport.cancel()
        self._calls.cancel()

    close = cancel

    def wait_as_asked(self) -> None:
        """Wait where every server asked to be left alone for a while that is worth waiting for."""
        seconds = self._pool.wait()
        if seconds and seconds <= LONGEST_WAIT:
            self._sleep(seconds + random.uniform(0.0, 0.5))

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.stopping and (left := until - time.monotonic()) > 0:
            self._stopping.wait(min(left, _LOOK_UP))

    def _post(self, endpoint: Endpoint, body: Mapping[str, Any]) -> bytes:
        """The chat reply to a body.

        Raises:
            CallError: there is none.
        """
        if endpoint.provider:
            return self._calls.post(endpoint, body)
        return self._transport.post(endpoint, json.dumps(body).encode())

    # --- one call ---------------------------------------------------------------------------------

    def _one(self, message: Message, question: Question, over: Over) -> Answer:
        start = time.perf_counter()
        answer = self._answer(message, question, over)
        return answer._replace(seconds=time.perf_counter() - start)

    def _answer(self, message: Message, question: Question, over: Over) -> Answer:
        recorded = Recorded()
        try:
            recorded = self._model.recorded(question, None, None)
            asked = self._model.request(message, question, over.beginning)
            over = over._replace(first=self._model.first(asked, question))
        except Exception as error:  # whatever a broken picture makes of its reader
            return _failed(said(error), recorded, {})
        try:
            with self._budget.call() as charge:
                made = self._made(asked, over, self._at_most(message, question, asked, over))
                charge.cost = made.cost
        except SpendingError as error:
            extra = self._model.recorded(question, asked, None).as_json()
            return Answer("", extra, f"Not asked: {error}", stop=Stop.SPENT)
        if isinstance(made.outcome, CallError):
            recorded = self._model.recorded(question, asked, None)
            hopeless = made.outcome.hopeless and self._pool.hopeless is not None
            stop = Stop.HOPELESS if hopeless else None
            why = self._message(made, asked, question, over)
            return _failed(why, recorded, made.call, stop)
        if made.outcome.no_logprobs:
            why = f"{made.outcome.no_logprobs}: its replies are kept without log-probabilities"
            self._say_once(made.server, why)
        completion = self._model.read(made.outcome, question)
        if question.reply_schema is not None and was_free(completion):
            self._say_once(made.server, "its replies are not held to the format: it decodes freely")
        recorded = replace(self._model.recorded(question, asked, completion), call=made.call)
        return refused_if_it_quotes(Answer(completion.text, recorded.as_json()))

    def _at_most(
        self, message: Message, question: Question, asked: Request, over: Over
    ) -> float | None:
        shared = over.beginning is Beginning.AGAIN
        return self._model.at_most(message, question, asked, shared=shared)

    def _made(self, asked: Request, over: Over, at_most: float | None) -> Made:
        call = _Call(self, asked.body, over, at_most)
        retrying = Retrying(
            retry=retry_if_exception(call.is_worth_another),
            stop=stop_any(stop_after_attempt(self._attempts), _TooLong()),
            wait=call.wait,
            sleep=self._sleep,
            before_sleep=_tell,
            reraise=True,
        )
        try:
            completion = retrying(call.attempt)
        except CallError as error:
            return Made(error, call.attempts, call.server, call.lost, call.guessed)
        # What failed attempts cost is part of the price; what nobody said is what it may have been.
        cost = at_most if completion.cost is None else completion.cost
        if call.lost:
            cost = (cost or 0.0) + call.lost
        guessed = call.guessed + (at_most or 0.0 if completion.cost is None else 0.0)
        return Made(completion, call.attempts, call.server, cost, guessed)

    def _message(self, made: Made, asked: Request, question: Question, over: Over) -> str:
        """Why a call failed, logged the first time that it is seen."""
        error = made.outcome
        assert isinstance(error, CallError)
        message = f"{error}{_later(error.retry_after)}"
        if error.hopeless and error.alike:
            message += explained(error, asked.body, question, confidences=over.confidences)
        attempts = f" ({made.attempts} attempts)" if made.attempts > 1 else ""
        self._say_once(made.server, message, attempts)
        return message + attempts

    def _say_once(self, server: str, message: str, more: str = "") -> None:
        with self._lock:
            new = message not in self._shown
            self._shown.add(message)
        if new:
            log.warning("%s: %s%s", server or self._model.name, message, more)


class Made(NamedTuple):
    """What came of one call, after how many attempts, from which server, and what all cost.

    So much of the ``cost`` is ``guessed``: of attempts whose reply nobody saw, at their most.
    """

    outcome: Completion | CallError
    attempts: int
    server: str
    cost: float | None
    guessed: float = 0.0

    @property
    def call(self) -> dict[str, Any]:
        """What is recorded of it."""
        failed = isinstance(self.outcome, CallError)
        known = {
            "id": None if failed else self.outcome.id or None,  # type: ignore[union-attr]
            "cost": self.cost,
            "cost_guessed": self.guessed or None,
            "cost_from": None if failed else self.outcome.cost_from or None,  # type: ignore[union-attr]
            "cache_discount": None if failed else self.outcome.cache_discount,  # type: ignore[union-attr]
            "status": self.outcome.status or None if failed else 200,  # type: ignore[union-attr]
            "attempts": self.attempts,
            "server": self.server or None,
        }
        return {name: value for name, value in known.items() if value is not None}


class _Call:
    """One call over its attempts: which servers failed it, and what that cost."""

    def __init__(
        self, asker: ChatAsker, body: Mapping[str, Any], over: Over, at_most: float | None
    ) -> None:
        self._asker = asker
        self._at_most = at_most
        self._body = {**body, **FIELDS} if over.confidences else body
        self._over = over
        self._tried: set[Server] = set()
        self._last: CallError | None = None
        self.attempts = 0
        self.lost = 0.0
        self.guessed = 0.0
        self.server = ""

    def attempt(self) -> Completion:
        """The answer of the next server.

        Raises:
            CallError: it gave none.
        """
        if self._last is not None and self._asker.stopping:
            raise self._last
        if self._last is None:
            self._asker.wait_as_asked()
        try:
            over = self._over
            caller = Caller(self, "free" if over.first is None else "held")
            taken = self._asker._pool.server(self._tried, over.picture, over.place, caller)
            with taken as server:
                self.server = server.endpoint.name
                self._tried.add(server)
                if over.first is not None:
                    server.holding.find_out(partial(self._first, server, over.first))
                return self._completion(server, self._body, over.confidences)
        except CallError as error:
            self.lost += error.cost
            if error.worked_on:
                self._guess()
            self._last = error
            raise

    def is_worth_another(self, error: BaseException) -> bool:
        """Whether the same request may be answered, by this server or another."""
        if not isinstance(error, CallError) or self._asker.stopping:
            return False
        if error.hopeless or (error.alike and error.transient):
            return self._asker._pool.another(self._tried)
        return error.transient

    def wait(self, state: RetryCallState) -> float:
        """Seconds before the next attempt: none where another server may be asked.

        The random part keeps threads that failed together from coming back together.
        """
        if self._asker._pool.another(self._tried):
            return 0.0
        self._tried.clear()
        asked = self._asker._pool.wait()
        return _backoff(state) if asked is None else asked + random.uniform(0.0, 0.5)

    def _first(self, server: Server, first: First) -> None:
        """Ask what only a held reply answers as its schema has it; it is paid with this call.

        Raises:
            CallError: it is refused, or answered freely.
        """
        if self._asker.stopping:
            raise CallError("not asked: the run is to stop")
        attempts = self.attempts
        try:
            completion = self._completion(server, first.body)
        except CallError as error:
            error.args = (f"{error} (to the question that comes before constrained ones)",)
            raise
        self.attempts = attempts
        if completion.cost is None:
            self._guess()
        self.lost += completion.cost or 0.0
        check(completion, first)

    def _guess(self) -> None:
        """Count what nobody said the price of, at the most that it may be."""
        known = self._at_most
        guess = self._asker._budget.dearest if known is None else known
        self.lost += guess
        self.guessed += guess

    def _completion(
        self, server: Server, body: Mapping[str, Any], confidences: bool = False
    ) -> Completion:
        takes = server.takes
        try:
            return self._sent(server, takes, body, confidences)
        except CallError as error:
            if not is_unknown(takes, error):
                raise
        other = next(field for field in LIMIT_FIELDS if field != takes)
        completion = self._sent(server, other, body, confidences)
        server.takes = other
        return completion

    def _sent(
        self, server: Server, takes: str, body: Mapping[str, Any], confidences: bool
    ) -> Completion:
        self.attempts += 1
        own = {takes if name == "max_tokens" else name: it for name, it in body.items()}
        try:
            reply = self._asker._post(server.endpoint, own)
            found = read_completion(reply, confidences=confidences)
            return found.priced(self._asker._model.prices)
        except CallError as error:
            if not confidences or not refuses_logprobs(error.status, str(error)):
                raise
            # Every further call would be refused too, and nothing but the flag can change it.
            message = f"it gives no log-probabilities: run without --confidences ({error})"
            raise CallError(message, error.status, cost=error.cost, hopeless=True) from None


class _TooLong(stop_base):
    """Not to wait for a server that asks for hours."""

    def __call__(self, retry_state: RetryCallState) -> bool:
        return retry_state.upcoming_sleep > LONGEST_WAIT + 1.0


def _tell(state: RetryCallState) -> None:
    log.info("attempt %d failed, next in %.1f s", state.attempt_number, state.upcoming_sleep)


_NEVER = 1e6 * 86400


def _later(seconds: float | None) -> str:
    """When a server wants to be asked again, where nobody waits for it."""
    if seconds is None or seconds <= LONGEST_WAIT:
        return ""
    if seconds >= 100 * 3600:
        days = seconds / 86400
        return (
            f"; asks to come back in {days:.0f} days" if days < 1e6 else "; asks not to come back"
        )
    minutes = round(seconds / 60)
    return f"; asks to come back in {minutes // 60} h {minutes % 60:02} min"


def _failed(
    error: str, recorded: Recorded, call: Mapping[str, Any], stop: Stop | None = None
) -> Answer:
    whole = replace(recorded, call={**call, "error": error})
    return Answer("", whole.as_json(), error, stop=stop)
