"""One call over its attempts: its request, cost and answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import error_line, scrub
from ...protocol import (
    NOT_TIMED,
    CallResult,
    CallTime,
    DatasetVariant,
    Message,
    PartKind,
    ReplyRecord,
    StopReason,
)
from ..tiers import StatedTier, surcharge
from ..token_limits import LIMIT_FIELDS
from .asked_server import HttpEndpoint, is_unknown
from .call_errors import CallError
from .chat import ChatModel
from .client import HttpClient
from .completion import Completion
from .refused_fields import advise_on_fields
from .reply_logprobs import refuses_logprobs, with_logprobs
from .response_verdict import read_completion
from .schema import (
    SchemaCheck,
    SchemaRoot,
    check_request,
    refuse_unconstrained,
)
from .sent_images import ChatRequest, EncodedImages, refuse_changed
from .spending import NO_ESTIMATE, Budget, Charge, MostTokens, Usage, charge_for, is_implausible


@dataclass(slots=True, eq=False)
class ChatCall:
    """One message to a model."""

    model: ChatModel
    budget: Budget
    message: Message
    variant: DatasetVariant
    logprobs: bool = False
    shared: bool = False  # whether other calls have the same images
    seed: int | None = None  # of its random numbers, where replies are sampled
    planned: Sequence[str] = ()  # contents of its images, which no others may replace
    request: ChatRequest | None = None
    began: float = 0.0
    time: CallTime = NOT_TIMED  # of the last request, until its reply was read
    attempts: int = 0
    server: str = ""
    batch: str = ""
    cost: float | None = 0.0  # of all attempts, in US dollars; None: unknown
    guessed: float = 0.0  # of it, the most that attempts could cost of which nothing is known
    guesses: int = 0  # attempts that cost it
    cost_from: str = ""  # source of the prices of a computed cost
    error: CallError | None = None  # of the last attempt
    lasting: int = 0  # attempts with an error that would probably come again
    unreadable: str = ""
    completion: Completion | None = None
    warnings: tuple[str, ...] = ()  # for the user, once: :meth:`_warn` adds them

    @property
    def is_constrained(self) -> bool:
        return self.variant.reply_schema is not None

    @property
    def max_tokens(self) -> int:
        return self.model.max_tokens(self.variant)

    @property
    def shown(self) -> object:
        """Return what tells its images from others'; of a call without any, the call itself."""
        names = tuple(value for kind, value in self.message if kind is PartKind.IMAGE)
        return tuple(self.planned) or names or self

    async def attempt(
        self, server: HttpEndpoint, client: HttpClient, images: EncodedImages
    ) -> None:
        """Ask a server, and set ``completion``, or raise CallError.

        Other exceptions are raised only before the server is asked.
        """
        self.server = server.name
        request = self.request or await self.build_request(images)
        try:
            with images.asking(request.images):
                if self.is_constrained:
                    await self._check_schemas(server, client, request)
                completion = await self._ask(server, client, request)
        except CallError as error:
            self.fail(error)
            raise
        except Exception as error:
            # The server was asked, and may have answered: the call was made and may cost.
            failure = CallError(f"its answer is lost: {error_line(error)}", worked_on=True)
            self.fail(failure)
            raise failure from error
        self.completion = completion
        self.pay(completion.usage)

    def fail(self, error: CallError, share: float = 1.0) -> None:
        """Set the error of an attempt, and count what it cost, at a share of the prices."""
        self._pay_for(error, share)
        self.lasting += error.lasting
        # They hold the reply, whole and parsed, for as long as the call is kept.
        self.error = error.without_traces()

    def _pay_for(self, error: CallError, share: float = 1.0) -> None:
        if error.is_charged:
            self.pay(error.usage, share, dearest=None if error.arrived else self.budget.dearest)

    async def build_request(self, images: EncodedImages) -> ChatRequest:
        """Build its request, with marks for the images; a broken image may raise anything."""
        to_send = self.model.images_to_send(self.message, self.variant)
        shown = await images.all(to_send)
        refuse_changed(self.planned, to_send, shown)
        request = self.model.request(self.message, self.variant, shown, shared=self.shared)
        if self.seed is not None and "seed" not in self.model.removed:
            request = request._replace(body={"seed": self.seed, **request.body})
        self.request = request
        return request

    async def _check_schemas(
        self, server: HttpEndpoint, client: HttpClient, request: ChatRequest
    ) -> None:
        """Raise CallError for a server that does not enforce schemas.

        The first call asks, and pays; the others wait for what it learns, which may be an error.
        If it learns nothing, the next of them asks.
        """
        if self.model.schema_root is None:
            return
        while server.schema_check is not None:
            result = await asyncio.shield(server.schema_check)
            if isinstance(result, CallError):
                raise result.of_another()
            if result is SchemaCheck.ENFORCED:
                return
        check = server.schema_check = asyncio.get_running_loop().create_future()
        learned: SchemaCheck | CallError = SchemaCheck.UNKNOWN  # if this call is cut off
        try:
            await self._ask_for_schema(server, client, request, self.model.schema_root)
            learned = SchemaCheck.ENFORCED
        except CallError as error:
            learned = error
            raise
        finally:
            is_hopeless = isinstance(learned, CallError) and learned.hopeless
            if learned is not SchemaCheck.ENFORCED and not is_hopeless:
                server.schema_check = None  # a later call asks again
            check.set_result(learned)

    async def _ask_for_schema(
        self, server: HttpEndpoint, client: HttpClient, request: ChatRequest, root: SchemaRoot
    ) -> None:
        """Ask what only a server that enforces schemas answers correctly; CallError if it fails."""
        attempts = self.attempts
        try:
            completion = await self._send(server, client, check_request(request.body, root))
        except CallError as error:
            error.args = (f"{error} (to the question that comes before constrained ones)",)
            raise
        self.attempts = attempts
        self.pay(completion.usage)
        refuse_unconstrained(completion, self.variant)

    async def _ask(
        self, server: HttpEndpoint, client: HttpClient, request: ChatRequest
    ) -> Completion:
        """Return the answer of a server, with log-probabilities if they are requested."""
        if not self.logprobs:
            return await self._send(server, client, request.body)
        body = with_logprobs(request.body)
        try:
            return await self._send(server, client, body, logprobs=True)
        except CallError as error:
            if not refuses_logprobs(error.status, str(error)):
                raise
            # All calls would be refused until the flag is removed.
            error.args = (f"it gives no log-probabilities: run without --logprobs ({error})",)
            error.hopeless = True
            raise

    async def _send(
        self,
        server: HttpEndpoint,
        client: HttpClient,
        body: Mapping[str, Any],
        *,
        logprobs: bool = False,
    ) -> Completion:
        """Send a body; a second time if the server takes the token limit in another field."""
        limit_field = server.limit_field

        async def send() -> Completion:
            assert self.request is not None
            self.attempts += 1
            sent = {limit_field if name == "max_tokens" else name: it for name, it in body.items()}
            with server.shared_time.call() as taken:
                reply = await server.reply(client, sent, self.request.images, self.model.name)
            self.time = taken.call_time(server.endpoint.gpus)
            return read_completion(reply, logprobs=logprobs, rule=self.model.thoughts)

        try:
            completion = await send()
        except CallError as error:
            if not is_unknown(limit_field, error):
                raise
            self._pay_for(error)
            limit_field = next(name for name in LIMIT_FIELDS if name != limit_field)
            completion = await send()
        server.limit_field = limit_field
        return completion

    def pay(self, usage: Usage, share: float = 1.0, dearest: float | None = None) -> None:
        """Add what an attempt cost, as :func:`.charge_for` charges it."""
        self._note_tiers(usage)
        at_most = self.at_most()
        charge = charge_for(usage, self.model.prices, at_most, share, dearest, self._most_tokens())
        charged = self.budget.at_least_seen(self.model.name, charge)
        if usage.unread:
            self._warn_once("unread", _unread(usage, charged))
        elif is_implausible(usage.stated, at_most):
            self._warn_once("implausible", self._implausible(usage.stated, at_most))
        if charged.cost is None or self.cost is None:
            self.cost = None
            return
        for tier in charged.unknown:
            self._warn(_unknown_price(tier))
        self.cost += charged.cost
        self.cost_from = charged.source or self.cost_from
        if charged.is_guess:
            self.guessed += charged.cost
            self.guesses += 1

    def _warn_once(self, kind: str, words: str) -> None:
        """Warn of the first case in a run: numbers differ from call to call."""
        told = (self.model.name, kind)
        if told not in self.budget.told:
            self.budget.told.add(told)
            self._warn(words)

    def _warn(self, words: str) -> None:
        """Add a warning, which may quote any text of a reply, without secrets."""
        self.warnings += (scrub(words),)

    def _implausible(self, stated: float | None, at_most: float | None) -> str:
        shown = [Path(value).name for kind, value in self.message if kind is PartKind.IMAGE]
        about = ", ".join([self.variant.name, *shown[:1]])
        than = "" if at_most is None else f", though the most that it can cost is ${at_most:.4g}"
        return (
            f"a reply ({about}) states a cost of ${stated:.10g}{than}: it counts as stated. Look "
            "at the service's bill; --max-usd ends a run before the next such call"
        )

    def _note_tiers(self, usage: Usage) -> None:
        """Note the dearest tier: replies that are lost may have it, too."""
        if self.model.prices is None:
            return
        extra = surcharge(usage.tiers, self.model.prices)
        self.budget.multiple = max(self.budget.multiple, extra.multiple)

    def at_most(self) -> float | None:
        """Return the greatest cost of an attempt in US dollars (None: it is not known)."""
        if self.request is None:
            return None
        asked = self.message, self.variant, self.request
        most = self.model.at_most(*asked, shared=self.shared)
        return None if most is None else most * self.budget.multiple

    def _most_tokens(self) -> MostTokens:
        if self.request is None or self.model.prices is None:
            return NO_ESTIMATE
        most = self.model.most_tokens(self.message, self.variant, self.request)
        return most._replace(multiple=most.multiple * self.budget.multiple)

    def answer(self, stop: StopReason | None = None, later: str = "") -> CallResult:
        """Return its answer, and set ``warnings``; ``later``: when a server may be asked again.

        It may quote a credential: :func:`.refused_if_it_quotes`.
        """
        if self.completion is not None:
            return self._answered(self.completion)
        if self.error is not None:
            return self._failed(self.error, stop, later)
        return self._without_answer(self.unreadable, {})

    def _answered(self, completion: Completion) -> CallResult:
        if completion.no_logprobs:
            why = f"{completion.no_logprobs}: its replies are stored without log-probabilities"
            self._warn(why)
        if completion.odd_finish:
            ended = f"finish_reason {completion.odd_finish!r}"
            self._warn(f"its replies end with {ended}, which is not known: they count")
        read = self.model.read(completion, self.variant)
        record = self._recorded(read.record, self._record(completion, 200))
        return CallResult(read.text, record, time=self.time)

    def _failed(self, error: CallError, stop: StopReason | None, later: str) -> CallResult:
        failed = f"{error}{later}"
        if error.repeated and error.unread:
            failed += "; all first replies were like this"
        elif error.repeated:
            failed += advise_on_fields(
                failed,
                self.request.body if self.request else (),
                self.variant,
                logprobs=self.logprobs,
                started=self.model.started,
            )
        self._warn(failed)
        if self.attempts > 1:
            failed += f" ({self.attempts} attempts)"
        call = self._record(Completion(""), error.status)
        return self._without_answer(failed, call, stop)

    def _without_answer(
        self, failed: str, call: Mapping[str, Any], stop: StopReason | None = None
    ) -> CallResult:
        nothing = ReplyRecord(model={"identifier": self.model.served})
        record = self._recorded(nothing, {**call, "error": failed})
        return CallResult("", record, failed, stop=stop)

    def _recorded(self, record: ReplyRecord, call: Mapping[str, Any]) -> ReplyRecord:
        images = self.request.images if self.request else ()
        return self.model.recorded(self.variant, images, record, call)

    def _record(self, completion: Completion, status: int) -> dict[str, Any]:
        known = {
            "id": completion.id or None,
            "cost": self.cost,
            "cost_guessed": self.guessed or None,
            "cost_from": self.cost_from or None,
            "cache_discount": completion.cache_discount,
            "status": status or None,
            "attempts": self.attempts,
            "server": self.server or None,
            "batch": self.batch or None,
            **completion.more,
        }
        return {name: value for name, value in known.items() if value is not None}


def _unread(usage: Usage, charged: Charge) -> str:
    counts = "what it costs is not known"
    if charged.cost is not None:
        counts = f"such calls count at the most that they can cost (this one: ${charged.cost:.4g})"
    return f"a reply states a cost in a form that is not read ({usage.unread}): {counts}"


def _unknown_price(tier: StatedTier) -> str:
    return (
        f"its replies state {tier}, of which no price is known: they count at "
        f"{tier.at_most:g} times the price. Ask for the usual one with --extra-body "
        f'\'{{"{tier.field}": "{tier.usual}"}}\''
    )
