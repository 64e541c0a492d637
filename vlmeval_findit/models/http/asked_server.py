"""One server of a model: how requests are sent there, and what is known of it."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from ...core import error_line, parse_json
from ...protocol import CallTime, in_thread
from ..first_failures import FirstFailures
from .call_errors import NOT_TAKEN_STATUSES, CallError
from .client import HttpClient, HttpRequest
from .endpoint import Endpoint
from .providers.provider_table import OPENAI_CHAT, Chat, WireFormat, find_provider, headers_to
from .reply_bodies import most_reply_bytes
from .response_verdict import WEB_PAGE, object_in
from .schema import SchemaCheck
from .sent_images import SentImage, json_pieces
from .sent_whole import may_be_billed, was_sent_whole
from .service_errors import MODERATED
from .spending import usage_of
from .stated_costs import RESPONSE_HEADERS
from .wrong_address import NOTHING_THERE, Listing, advise, is_about_model, names_in, other_addresses

_LOOK_SECONDS = 10.0  # for a list of models

_PAGE_ADVICE = ": check --base-url, and whether a login or a proxy stands before the server"

_UNKNOWN = re.compile(
    r"unsupported|not supported|unrecognized|unknown|not permitted|unexpected|instead",
    re.IGNORECASE,
)


_replied: set[str] = set()  # addresses that replied to any model of this process


class HttpEndpoint:
    """A server, for as long as calls go there."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self.limit_field = endpoint.limit_field  # its field for the token limit
        self.shared_time = SharedTime()
        # What the check for schemas showed, or will show; None: no call has asked yet
        self.schema_check: asyncio.Future[SchemaCheck | CallError] | None = None
        # Refusals of the first calls by whether they are constrained
        self._first: dict[bool, _FirstRefusals] = {
            False: _FirstRefusals(),
            True: _FirstRefusals(),
        }
        self._provider = find_provider(endpoint.provider) if endpoint.provider else None
        self._chat = self._provider.chat if self._provider else OPENAI_CHAT
        self._headers = headers_to(endpoint)
        self._url_for = cache(self._address_for)

    async def reply(
        self,
        client: HttpClient,
        body: Mapping[str, Any],
        images: Sequence[SentImage],
        name: str = "",
    ) -> Mapping[str, Any]:
        """Return the chat reply to a chat body with marks for its images, or raise CallError.

        ``name`` is the model's in results, for advice (default: the body's).
        """
        chat = self._chat
        provider = self._provider
        served = str(body.get("model"))
        if provider is not None and body.get("logprobs") and not provider.gives_logprobs:
            raise CallError(f"{provider.name} has no logprobs", 501)
        if not isinstance(chat, WireFormat):
            whole = parse_json(b"".join(json_pieces(body, images)))
            return await _ask_function(chat, whole, self.endpoint, client.timeout)
        url = self._url_for(served)
        pieces = json_pieces(chat.request(body), images)
        request = HttpRequest("POST", url, self._headers, pieces, most=most_reply_bytes(body))
        try:
            response = await client.ask(request)
        except CallError as error:
            if error.status in NOTHING_THERE or is_about_model(error, served):
                raise await self._with_advice(error, client, url, name or served, served) from None
            raise error.with_note(self._about_key(error)) from None
        stated = {RESPONSE_HEADERS: response.cost_headers}
        try:
            reply = {**chat.reply(object_in(response.body)), **stated}
        except CallError as error:
            error.usage = usage_of(stated)
            if str(error).startswith(WEB_PAGE):  # perhaps of the address without /v1
                page = error.with_note(_PAGE_ADVICE)
                raise await self._with_advice(page, client, url, name or served, served) from None
            raise
        return reply if provider is None else {"provider": provider.name, **reply}

    def _about_key(self, error: CallError) -> str:
        """Return what to type where a server refuses the key, or wants one."""
        if self._provider is not None or error.status not in (401, 403) or not error.hopeless:
            return ""
        typed = "type --key KEY, or set FINDIT_SERVER_KEY"
        if self.endpoint.key or self.endpoint.headers:
            return f" (it refuses what was sent as key or header: {typed} to another)"
        return f" (no key was sent: {typed})"

    def _address_for(self, served: str) -> str:
        """Return the URL of calls to a model."""
        assert isinstance(self._chat, WireFormat)
        return self.endpoint.at(self._chat.path(served))

    async def _with_advice(
        self, error: CallError, client: HttpClient, url: str, name: str, served: str
    ) -> CallError:
        """Add what to type, by the models that the server lists here or at another address."""
        given = self.endpoint.base_url
        listing = None
        for base_url in (given, *other_addresses(given)):
            names = await self._models_at(client, base_url)
            if names is None:
                continue
            listing = Listing(base_url, names)
            # Some list models at every path, and answer below one.
            if base_url != given or served not in names:
                break
        advice = advise(url, given, name, served, listing)
        advised = error.with_note(f" ({advice.words})")
        advised.certain = advice.is_certain and error.status in NOTHING_THERE
        return advised

    async def _models_at(self, client: HttpClient, base_url: str) -> list[str] | None:
        """Return the names of the models that are listed there; None if there is no list."""
        url = replace(self.endpoint, base_url=base_url).at("models")
        with suppress(CallError, TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                return names_in(await client.send(HttpRequest("GET", url, self._headers)))
        return None

    @property
    def has_replied(self) -> bool:
        """Whether anything at its address replied to this process, whatever the model."""
        return self.endpoint.base_url in _replied

    def note_answer(self, *, constrained: bool) -> None:
        _replied.add(self.endpoint.base_url)
        self._first[constrained].failures.answered()

    def note_refusal(self, error: CallError, *, constrained: bool, images: object) -> None:
        """Mark an error that all first calls of a kind got, and none an answer.

        It is ``repeated`` after five calls (a field is probably wrong), and hopeless after those of
        five different images.
        """
        if error.status:
            _replied.add(self.endpoint.base_url)
        first = self._first[constrained]
        is_final = error.unread or error.status in NOT_TAKEN_STATUSES
        if is_final and not MODERATED.search(str(error)):
            first.note(error, images)
        else:
            first.failures.begin_anew()


@dataclass(slots=True)
class _FirstRefusals:
    """The first calls of a kind, with the errors that others in the same words make repeated."""

    failures: FirstFailures = field(default_factory=FirstFailures)
    errors: list[CallError] = field(default_factory=list)

    def note(self, error: CallError, images: object) -> None:
        self.failures.note(str(error), images)
        if self.failures.calls == 1:
            self.errors = []
        self.errors.append(error)
        if self.failures.are_repeated:
            for refused in self.errors:
                refused.repeated = True
            self.errors = []
        error.hopeless = error.hopeless or self.failures.are_hopeless


def is_unknown(field: str, error: CallError) -> bool:
    """Return whether a server does not know a field."""
    words = str(error)
    names_it = re.search(rf"\b{field}\b", words) is not None
    return error.status in NOT_TAKEN_STATUSES and names_it and _UNKNOWN.search(words) is not None


async def _ask_function(
    chat: Chat, body: Mapping[str, Any], endpoint: Endpoint, timeout: float
) -> Mapping[str, Any]:
    """Call the function of a plug-in's provider in a thread."""

    def ask() -> Mapping[str, Any]:
        try:
            return {"provider": endpoint.provider, **chat(body, endpoint, timeout)}
        except CallError as error:
            error.worked_on = error.worked_on or may_be_billed(
                is_whole=was_sent_whole(error), status=error.status, is_refused=error.hopeless
            )
            raise
        except BaseException as error:  # a plug-in may raise anything
            why = f"the provider {endpoint.provider} failed: {error_line(error)}"
            raise CallError(why, worked_on=may_be_billed(is_whole=was_sent_whole(error))) from None

    try:
        return await asyncio.wait_for(in_thread(ask), timeout)
    except TimeoutError:
        why = f"no reply within {timeout:g} s"
        raise CallError(why, transient=True, worked_on=True) from None


def http_endpoints(endpoints: Sequence[Endpoint]) -> dict[str, HttpEndpoint]:
    """Return servers by unique name, independent of their order."""
    seen: Counter[str] = Counter()
    servers = {}
    for endpoint in endpoints:
        seen[endpoint.name] += 1
        count = seen[endpoint.name]
        name = endpoint.name if count == 1 else f"{endpoint.name} ({count})"
        servers[name] = HttpEndpoint(endpoint)
    return servers


# --- the time of a server -------------------------------------------------------------------------


@dataclass(slots=True)
class TakenTime:
    """What a call took, once it has ended: its seconds, and its share of the server's."""

    seconds: float = 0.0
    share: float = 0.0

    def call_time(self, gpus: int) -> CallTime:
        """Return it as a time, of a server on so many GPUs (0: none, or elsewhere)."""
        return CallTime(
            seconds=round(self.seconds, 6),
            gpu_seconds=round(gpus * self.share, 6) if gpus else None,
            at_once=round(self.seconds / self.share, 2) if self.share else None,
        )


class SharedTime:
    """Shares the time of a server: at each moment, equally among the calls in flight there.

    So the shares of all calls add up to the time in which any was in flight, failed calls too.

    >>> clock = iter([0.0, 2.0, 6.0, 7.0])
    >>> shared = SharedTime(lambda: next(clock))
    >>> with shared.call() as first:  # 0 to 7
    ...     with shared.call() as second:  # 2 to 6
    ...         pass
    >>> first, second
    (TakenTime(seconds=7.0, share=5.0), TakenTime(seconds=4.0, share=2.0))
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._now = 0.0  # when a call began or ended last
        self._in_flight = 0
        self._share = 0.0  # of a call that would have been in flight always

    @contextmanager
    def call(self) -> Iterator[TakenTime]:
        """Count a call as in flight; what it took is known afterwards."""
        self._go_on()
        began = self._now
        before = self._share
        self._in_flight += 1
        taken = TakenTime()
        try:
            yield taken
        finally:
            self._go_on()
            self._in_flight -= 1
            taken.seconds = self._now - began
            taken.share = self._share - before

    def _go_on(self) -> None:
        now = self._clock()
        if self._in_flight:
            self._share += (now - self._now) / self._in_flight
        self._now = now
