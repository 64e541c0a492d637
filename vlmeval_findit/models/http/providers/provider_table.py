"""The providers, one row each.

Official client packages would duplicate attempts, pools and types, and add 2 to 3 ms of processor
time per call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from ....core import Group, PluginTable, quoted_value, suggestion
from ..endpoint import Endpoint
from ..schema import SchemaRoot
from . import anthropic_messages, google_content

# Takes a chat body, its endpoint and a timeout in seconds, and returns the reply.
#
# For a plug-in's provider with another protocol. It is called in several threads, makes exactly one
# request, waits for the whole reply, and raises CallError if there is none: with ``status``,
# ``retry_after`` if stated, ``transient`` if a retry may pass, ``hopeless`` if every request would
# fail (key, credit, model). Other exceptions are failed calls too. A failed call is charged as one
# whose request was sent whole, unless the status refuses it, it is hopeless, or its cause is a
# connection that was not made (:func:`..sent_whole.was_sent_whole`).
Chat = Callable[[Mapping[str, Any], Endpoint, float], Mapping[str, Any]]


class WireFormat(NamedTuple):
    """How to translate a chat body and its reply."""

    path: Callable[[str], str]  # below the address, for the service's name of a model
    headers: Callable[[Endpoint], dict[str, str]]
    request: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    reply: Callable[[Mapping[str, Any]], Mapping[str, Any]]


# OpenAI's chat completions, as most servers take them: nothing is translated.
OPENAI_CHAT = WireFormat(
    path=lambda model: "chat/completions",
    headers=Endpoint.request_headers,
    request=dict,
    reply=dict,
)


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider."""

    name: str  # as in --provider and in records
    chat: WireFormat | Chat  # protocol over HTTP, or a function
    address: str  # with the API's version, if it has one
    keys: tuple[str, ...] = ()  # environment variables of its key; the first that is set counts
    address_variable: str = ""  # environment variable of another address
    version: str = ""  # appended to addresses without it
    schema_root: SchemaRoot | None = None  # supported JSON schemas; None: none
    gives_logprobs: bool = False
    states_costs: bool = False  # in its replies, where :mod:`..stated_costs` looks
    relays: bool = False  # to makers of models; in records and keys it is a plain server
    # Fields of requests that no other service has; one within an object as ``routing.order``
    own_fields: tuple[str, ...] = ()


OPENROUTER = "openrouter"  # default for proprietary models

_ROWS = (
    Provider(
        OPENROUTER,
        OPENAI_CHAT,
        "https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        address_variable="OPENROUTER_BASE_URL",
        schema_root=SchemaRoot.LIST,
        gives_logprobs=True,
        states_costs=True,
        relays=True,
    ),
    Provider(
        "openai",
        OPENAI_CHAT,
        "https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        address_variable="OPENAI_BASE_URL",
        schema_root=SchemaRoot.OBJECT,
        gives_logprobs=True,
    ),
    Provider(
        "anthropic",
        WireFormat(
            lambda model: "messages",
            anthropic_messages.anthropic_headers,
            anthropic_messages.messages_request,
            anthropic_messages.reply_of_messages,
        ),
        "https://api.anthropic.com/v1",
        keys=("ANTHROPIC_API_KEY",),
        address_variable="ANTHROPIC_BASE_URL",
        version="v1",
        schema_root=SchemaRoot.OBJECT,
    ),
    Provider(
        "google",
        WireFormat(
            lambda model: f"models/{quote(model, safe='')}:generateContent",
            lambda endpoint: endpoint.request_headers("x-goog-api-key"),
            google_content.content_request,
            google_content.reply_of_content,
        ),
        "https://generativelanguage.googleapis.com/v1beta",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        address_variable="GOOGLE_GEMINI_BASE_URL",
        version="v1beta",
        schema_root=SchemaRoot.LIST,
        gives_logprobs=True,
    ),
)


def _problem(row: Provider) -> str | None:
    Endpoint(row.address)
    if not isinstance(row.chat, WireFormat) and not callable(row.chat):
        return f"its chat is {quoted_value(row.chat, 40)}"
    if not isinstance(row.schema_root, SchemaRoot | None):
        return f"its schema_root is {quoted_value(row.schema_root, 40)}"
    own = row.own_fields
    if not isinstance(own, tuple) or not all(isinstance(name, str) for name in own):
        return f"its own_fields are {quoted_value(own, 40)}, and should be a tuple of names"
    return None


# Model services with an address and key of their own, by name; plug-ins add rows
PROVIDERS: PluginTable[Provider] = PluginTable(
    Group.PROVIDERS, {row.name: row for row in _ROWS}, Provider, _problem
)


def headers_to(endpoint: Endpoint) -> Mapping[str, str]:
    """Return the headers of requests to an endpoint; none if a function of a plug-in sends them."""
    chat = find_provider(endpoint.provider).chat if endpoint.provider else OPENAI_CHAT
    return chat.headers(endpoint) if isinstance(chat, WireFormat) else {}


def own_fields_of(provider: str | None) -> tuple[str, ...]:
    """Return the fields of requests that only a provider has; none of servers."""
    return () if provider is None else find_provider(provider).own_fields


def find_provider(name: str) -> Provider:
    """Return the row of a provider, or raise ValueError."""
    if name not in PROVIDERS:
        raise ValueError(f"unknown provider {name!r}{suggestion(name, PROVIDERS)}")
    return PROVIDERS[name]
