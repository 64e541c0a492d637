"""Servers and providers as the host of a sweep: ``--endpoints``, ``--provider``.  No VLMEvalKit.

With ``--batch`` their batch interface, or files of requests for a program without a server.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.identity import Answering, Described
from ..core.question import Question
from ..models.http.batch.records import BatchKind
from ..models.http.chat import (
    ChatModel,
    provider_key,
    provider_model,
    served_key,
    server_model,
    token_limit,
)
from ..models.http.endpoint import LIMIT_FIELDS
from ..models.http.providers.endpoints import Ready, provider_endpoints
from ..models.http.services import (
    Endpoints,
    endpoints,
    header_lines,
    lasting,
    served_as,
)
from ..models.http.spending import Budget
from .answering import as_described
from .backend import Backend
from .batch_backend import BatchBackend, Batching
from .config import Inference, ModelEntry

if TYPE_CHECKING:
    from ..models.http.batch.client import BatchClient
    from ..models.http.batch.services import BatchService

_FIELD = "max_tokens_field"


class ServersHost:
    """Answers with servers that all serve the same model, or with a model's provider.

    Args:
        urls: base URLs up to and with ``/v1``, or ``@`` with the file that has them; each gets its
            share of the calls.  A model that names a provider is asked there in its protocol, and
            where it is without them.
        inference: how calls are made; ``threads`` at a time to each server.
        headers: ``NAME: VALUE`` each, of every request.
        budget: what all models may spend together (None: only count).
        batching: that calls are made in batches (None: one by one).

    Raises:
        ValueError: a URL or a header is none, or batches are not taken there.
    """

    def __init__(
        self,
        urls: Sequence[str],
        inference: Inference,
        headers: Sequence[str] = (),
        budget: Budget | None = None,
        batching: Batching | None = None,
    ) -> None:
        self._batching = batching
        if batching is not None and batching.kind is BatchKind.FILES and urls:
            raise ValueError("--batch files asks no server: leave --endpoints away")
        self._urls = urls
        self._headers = headers
        self._inference = inference
        self._budget = budget or Budget()
        endpoints(urls, headers=headers)  # what cannot be used is refused now

    def check(self, entry: ModelEntry) -> None:
        with _said_of(entry):
            if "max_usd" in entry.settings:
                raise ValueError("max_usd is the whole sweep's: beside `models`, or --max-usd")
            if entry.checkpoint is not None:
                raise ValueError(
                    f"checkpoint {entry.checkpoint} is of a model on this machine, and servers are "
                    "asked: say their name for it, `served`"
                )
            if self._batching is not None:
                _refuse_batches(self._batching.kind, entry.provider, self._urls)
            self._endpoints(entry)
            self.check_limit(entry)

    def check_limit(self, entry: ModelEntry) -> None:
        """Refuse a spending limit that could not be kept, with a ValueError."""
        chat = chat_model(entry)
        if not math.isinf(self._budget.limit):
            # What a batch will cost nobody says beforehand.
            servers = [] if self._batching else self._endpoints(entry, Ready.TO_DESCRIBE)
            chat.check_limit(lasting(servers))

    def answered_by(self, entry: ModelEntry, question: Question) -> object:
        return as_described(self, entry, question)

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        return settings(entry)

    def describe(self, entry: ModelEntry, question: Question) -> Described:
        with _said_of(entry):
            kind = self._batching and self._batching.kind
            if kind and question.reply_schema is not None and kind.is_plain:
                raise ValueError(
                    f"{question.name}: --batch {kind.value} holds no reply to a format: ask it one "
                    "by one, or without _constrained"
                )
            servers = self._endpoints(entry, Ready.TO_DESCRIBE)
            return chat_model(entry).describe(question, lasting(servers))

    def on_this_machine(self, entry: ModelEntry, found: Answering) -> Answering:
        return found

    @property
    def version(self) -> Mapping[str, str]:
        return {}

    def backend(self, entry: ModelEntry) -> Backend:
        if self._batching is not None:
            load = partial(self._batch_client, entry, self._batching)
            return BatchBackend(load, self._inference.poll)
        servers = partial(self._endpoints, entry)
        return http_backend(chat_model(entry), servers, self._inference, self._budget)

    def _batch_client(self, entry: ModelEntry, batching: Batching) -> BatchClient:
        from ..models.http.batch.client import BatchClient
        from ..models.http.batch.services import AnthropicBatches, BatchFiles, OpenAIBatches

        service: BatchService
        limit_field = LIMIT_FIELDS[0]
        if batching.kind is BatchKind.FILES:
            service = BatchFiles(batching.folder, entry.served or served_as(entry.name))
        else:
            (endpoint,) = lasting(self._endpoints(entry))
            if batching.kind is BatchKind.ANTHROPIC:
                service = AnthropicBatches(endpoint, self._inference.timeout)
            else:
                service = OpenAIBatches(endpoint, self._inference.timeout)
                limit_field = endpoint.takes
        return BatchClient(chat_model(entry), service, limit_field, self._budget, batching.told)

    def _endpoints(self, entry: ModelEntry, ready: Ready = Ready.TO_ASK) -> Endpoints:
        headers = {**header_lines(self._headers), **(entry.headers or {})}
        field = entry.settings.get(_FIELD)
        said: Any = {"headers": headers, "limit_field": None if field is None else str(field)}
        if entry.provider is not None:
            return provider_endpoints(entry.provider, self._urls, ready, **said)
        return endpoints(self._urls, **said) if self._urls else []


def http_backend(
    chat: ChatModel, servers: Callable[[], Endpoints], inference: Inference, budget: Budget
) -> Backend:
    """Who asks a model's servers; they are looked up when the first call comes."""
    # Not at the top: what asks is not imported where nothing is asked.
    from .http_backend import HttpBackend, Service

    def load() -> Service:
        return Service(chat, servers(), inference.timeout, budget)

    return HttpBackend(load, inference.threads, each=True)


def _refuse_batches(kind: BatchKind, provider: str | None, urls: Sequence[str]) -> None:
    """Refuse a batch interface that is not the model's provider's, or one without an address."""
    if provider is not None and provider != kind.value:
        raise ValueError(f"it is asked at {provider}, and --batch {kind.value} is another's")
    if provider is not None and len(urls) > 1:
        raise ValueError(f"--batch {kind.value} is for one address, and there are several")
    is_one = len(urls) == 1 and not urls[0].startswith("@")
    if provider is None and kind is not BatchKind.FILES and not is_one:
        raise ValueError(
            f"--batch {kind.value} is for one server: --endpoints with its address, up to and with "
            "/v1, or --provider"
        )


@contextmanager
def _said_of(entry: ModelEntry) -> Iterator[None]:
    """Give errors of a model its place in the sweep's file; a SpaceError stays one."""
    try:
        yield
    except ValueError as error:
        where = f"line {entry.line}: " if entry.line else ""
        raise type(error)(f"{where}{entry.name}: {error}") from None


def settings(entry: ModelEntry) -> dict[str, Any]:
    """What the answers of a served model depend on beside messages."""
    if entry.provider is not None:
        return provider_key(entry.provider, entry.name, entry.served, entry.settings)
    return served_key(entry.name, entry.served, entry.settings)


def chat_model(entry: ModelEntry) -> ChatModel:
    """A model of a sweep as its servers know it; its settings are fields of every request.

    Raises:
        SpaceError: the coordinate space is not known.
        ValueError: its limit of tokens is none; a provider's name for it is not known.
    """
    limit, rest = token_limit(entry.settings)
    rest.pop(_FIELD, None)
    said = (entry.name, entry.served, entry.space, rest, limit, entry.row)
    made = server_model(*said) if entry.provider is None else provider_model(entry.provider, *said)
    return made if entry.prices is None else replace(made, prices=entry.prices)
