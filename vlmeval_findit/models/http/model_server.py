"""One server of a model: how to send requests, and what is known of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...core.answers import error_line, in_thread
from .client import HttpClient, HttpRequest
from .completion import CallError
from .endpoint import Endpoint
from .judgement import object_in
from .providers.provider_table import OPENAI_CHAT, Chat, WireFormat, find_provider
from .schema import SchemaCheck
from .sent_images import SentImage, pieces
from .service_errors import MODERATED

_ALIKE = 5  # identically refused first calls after which no further call starts
_FINAL = frozenset({400, 422, 501})  # statuses of requests that a server does not take

_UNKNOWN = re.compile(
    r"unsupported|not supported|unrecognized|unknown|not permitted|unexpected|instead",
    re.IGNORECASE,
)


class ModelServer:
    """A server, for as long as calls go there."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self.limit_field = endpoint.limit_field  # its field for the token limit
        # None: not yet asked
        self.schema_check: asyncio.Future[SchemaCheck | CallError] | None = None
        # By ``constrained``: the first calls, while all are refused in the same words; None: a call
        # was answered.
        self._first: dict[bool, list[CallError] | None] = {False: [], True: []}
        self._provider = find_provider(endpoint.provider) if endpoint.provider else None
        self._chat = self._provider.chat if self._provider else OPENAI_CHAT
        self._headers = self._chat.headers(endpoint) if isinstance(self._chat, WireFormat) else {}
        self._url = cache(endpoint.at)

    async def reply(
        self, client: HttpClient, body: Mapping[str, Any], images: Sequence[SentImage]
    ) -> Mapping[str, Any]:
        """Return the chat reply to a chat body with marks for its images, or raise CallError."""
        wire, provider = self._chat, self._provider
        if provider is not None and body.get("logprobs") and not provider.gives_logprobs:
            raise CallError(f"{provider.name} has no logprobs", 501)
        if not isinstance(wire, WireFormat):
            whole = json.loads(b"".join(pieces(body, images)))
            return await _ask_function(wire, whole, self.endpoint, client.timeout)
        url, sent = self._url(wire.path(body)), pieces(wire.request(body), images)
        reply = object_in(await client.send(HttpRequest("POST", url, self._headers, sent)))
        who = {} if provider is None else {"provider": provider.name}
        return {**who, **wire.reply(reply)}

    def note_answer(self, *, constrained: bool) -> None:
        self._first[constrained] = None

    def note_refusal(self, error: CallError, *, constrained: bool) -> None:
        """Make an error hopeless that all first calls of its kind got, and none an answer."""
        if (first := self._first[constrained]) is None:
            return
        is_final = error.unread or error.status in _FINAL
        if not is_final or MODERATED.search(str(error)):
            first.clear()
            return
        if first and str(error) != str(first[0]):
            first.clear()
        first.append(error)
        if len(first) >= _ALIKE:
            for refused in first:
                refused.alike = refused.hopeless = True


def is_unknown(field: str, error: CallError) -> bool:
    """Return whether a server does not know a field."""
    named = re.search(rf"\b{field}\b", str(error)) is not None
    return error.status in _FINAL and named and _UNKNOWN.search(str(error)) is not None


async def _ask_function(
    chat: Chat, body: Mapping[str, Any], endpoint: Endpoint, timeout: float
) -> Mapping[str, Any]:
    """Call the function of a plug-in's provider in a thread."""

    def ask() -> Mapping[str, Any]:
        try:
            return {"provider": endpoint.provider, **chat(body, endpoint, timeout)}
        except CallError:
            raise
        except BaseException as error:  # a plug-in may raise anything
            why = f"the provider {endpoint.provider} failed: {error_line(error)}"
            raise CallError(why) from None

    try:
        return await asyncio.wait_for(in_thread(ask), timeout)
    except TimeoutError:
        why = f"no reply within {timeout:g} s"
        raise CallError(why, transient=True, worked_on=True) from None


def model_servers(endpoints: Sequence[Endpoint]) -> dict[str, ModelServer]:
    """Return servers by unique name, independent of their order."""
    seen: Counter[str] = Counter()
    servers = {}
    for endpoint in endpoints:
        seen[endpoint.name] += 1
        count = seen[endpoint.name]
        name = endpoint.name if count == 1 else f"{endpoint.name} ({count})"
        servers[name] = ModelServer(endpoint)
    return servers
