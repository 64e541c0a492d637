"""One server of a model: how a request is sent there, and what was found out of it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...core.threads import in_thread
from ...core.work import said
from .client import HttpClient, HttpRequest
from .completion import CallError, object_in
from .endpoint import Endpoint
from .images import SentImage
from .payload import pieces
from .providers.table import OPENAI_CHAT, Chat, WireFormat, find_provider
from .refusals import Refusals


class ModelServer:
    """A server, for as long as calls go there.

    ``takes`` is the field that it takes a limit of tokens in.  ``holds`` says that it is known to
    hold replies to a format, ``never_holds`` why it never will, ``asked_first`` what came of the
    question that shows it, while that is asked.  ``alike`` are the refusals of its first calls by
    the kind of them: whether one kind is answered says nothing of the other.
    """

    def __init__(self, name: str, endpoint: Endpoint, apart: float) -> None:
        self.name = name
        self.endpoint = endpoint
        self.takes = endpoint.takes
        self.holds = False
        self.never_holds: CallError | None = None
        self.asked_first: asyncio.Future[CallError | None] | None = None
        self.alike: defaultdict[str, Refusals] = defaultdict(lambda: Refusals(apart))
        self._provider = find_provider(endpoint.provider) if endpoint.provider else None
        self._url = cache(endpoint.at)
        self._headers = cache(lambda wire: wire.headers(endpoint))

    async def reply(
        self, client: HttpClient, body: Mapping[str, Any], images: Sequence[SentImage]
    ) -> bytes | Mapping[str, Any]:
        """The chat reply to a chat body, which has marks in place of its images.

        Raises:
            CallError: there is none.
        """
        provider = self._provider
        if provider is None:
            return await self._post(client, OPENAI_CHAT, body, images)
        if body.get("logprobs") and not provider.gives_logprobs:
            raise CallError(f"{provider.name} has no logprobs", 501)
        if isinstance(provider.chat, WireFormat):
            reply = object_in(await self._post(client, provider.chat, body, images))
            return {"provider": provider.name, **provider.chat.reply(reply)}
        whole = json.loads(b"".join(pieces(body, images)))
        return await _ask_function(provider.chat, whole, self.endpoint, client.timeout)

    async def _post(
        self,
        client: HttpClient,
        wire: WireFormat,
        body: Mapping[str, Any],
        images: Sequence[SentImage],
    ) -> bytes:
        url, headers = self._url(wire.path(body)), self._headers(wire)
        return await client.send(
            HttpRequest("POST", url, headers, pieces(wire.request(body), images))
        )


async def _ask_function(
    chat: Chat, body: Mapping[str, Any], endpoint: Endpoint, timeout: float
) -> Mapping[str, Any]:
    """Call the function of a plug-in's provider, in a thread of its own.

    Raises:
        CallError: there is no reply.
    """

    def ask() -> Mapping[str, Any]:
        try:
            return {"provider": endpoint.provider, **chat(body, endpoint, timeout)}
        except CallError:
            raise
        except BaseException as error:  # whatever somebody's function makes of a reply
            why = f"the provider {endpoint.provider} failed: {said(error)}"
            raise CallError(why) from None

    try:
        return await asyncio.wait_for(in_thread(ask), timeout)
    except TimeoutError:
        why = f"no reply within {timeout:g} s"
        raise CallError(why, transient=True, worked_on=True) from None


def model_servers(endpoints: Sequence[Endpoint], apart: float) -> dict[str, ModelServer]:
    """Servers by a name for each: the same ones whoever lists them in whatever order.

    Args:
        endpoints: where they are.
        apart: as of :class:`.refusals.Refusals`.
    """
    seen: Counter[str] = Counter()
    servers = {}
    for endpoint in endpoints:
        seen[endpoint.name] += 1
        count = seen[endpoint.name]
        name = endpoint.name if count == 1 else f"{endpoint.name} ({count})"
        servers[name] = ModelServer(name, endpoint, apart)
    return servers
