"""Servers, providers and their batch services as factories of a sweep, without VLMEvalKit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ..models import (
    LOCAL_SETTINGS,
    AddressFile,
    BatchKind,
    Budget,
    ChatModel,
    Endpoints,
    ModelEntry,
    chat_model,
    header_lines,
    identifying_servers,
    make_endpoints,
    model_key,
    provider_endpoints,
    token_limit,
    urls_of,
)
from ..protocol import Answering, DatasetVariant, Described
from .backend import Backend, CallOptions
from .batch_backend import BatchBackend
from .server_state import ServerPolicy

if TYPE_CHECKING:
    from ..models import BatchService
    from .http_backend import HttpService


def policy_of(retry: int) -> ServerPolicy:
    """Return a policy with so many attempts of a call; refusals, no fault of its, may be more."""
    usual = ServerPolicy()
    attempts = max(retry, 1)
    refusals = attempts * usual.refusals // usual.attempts
    return replace(usual, attempts=attempts, refusals=refusals)


@dataclass(repr=False, eq=False)
class ServerBackends:
    """Answers with servers of one model, or with a model's provider.

    Raises:
        ValueError: a URL or header is invalid, or batches are not supported there.
    """

    # Base URLs including ``/v1``, or ``@`` and a file of them, of models whose entry has none. A
    # model with a provider is asked there in its protocol; without URLs, at the provider's address.
    urls: Sequence[str]
    inference: CallOptions
    headers: Sequence[str] = ()  # ``NAME: VALUE`` each, sent with every request
    budget: Budget = field(default_factory=Budget)  # what all models may spend together
    batch: BatchKind | None = None  # the batch service to use (None: single calls)
    key: str | None = None  # of the servers or the provider (None: the environment's)
    policy: ServerPolicy = field(default_factory=ServerPolicy)
    asks: bool = True  # False: no call is made, so no key is needed

    version: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        make_endpoints(self.urls, headers=self.headers)  # refuses bad addresses now

    def check(self, entry: ModelEntry) -> None:
        with naming_model(entry):
            if entry.checkpoint is not None:
                raise ValueError(
                    f"checkpoint {entry.checkpoint} is of a model on this machine, but servers are "
                    "asked: give their name for it as `served`"
                )
            for name in LOCAL_SETTINGS:
                if name in entry.settings or name in entry.resources:
                    raise ValueError(
                        f"{name} is of a model on this machine, but a server is asked, which "
                        "decides it. Leave it out"
                    )
            if entry.resources:
                raise ValueError(
                    f"{next(iter(entry.resources))} has no effect: resources are of a model on "
                    "this machine, but a server is asked. Leave it out, or write it in `settings` "
                    "if it is a field of the server's requests"
                )
            if self.batch is not None:
                _refuse_batches(self.batch, entry.provider, self._urls_of(entry))
            servers = self._endpoints(entry, needs_key=self.asks)
            # Imported late: it imports the standard library's HTTP client.
            from ..models import refuse_unknown_proxies

            refuse_unknown_proxies(servers() if isinstance(servers, AddressFile) else servers)
            chat = chat_of(entry)
            if not math.isinf(self.budget.limit):
                # The cost of a batch is not known beforehand.
                chat.check_limit([] if self.batch else identifying_servers(servers))

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        return settings(entry)

    def describe(self, entry: ModelEntry, variant: DatasetVariant) -> Described:
        with naming_model(entry):
            if self.batch and self.batch.is_plain and variant.reply_schema is not None:
                raise ValueError(
                    f"{variant.name}: --batch {self.batch.value} cannot constrain replies to a "
                    "format: ask it one by one, or without _constrained"
                )
            servers = self._endpoints(entry, needs_key=False)
            return chat_of(entry).describe(variant, identifying_servers(servers))

    def on_this_machine(self, entry: ModelEntry, answering: Answering) -> Answering:
        return answering

    def backend(self, entry: ModelEntry) -> Backend:
        if self.batch is not None:
            load = partial(self._batch_service, entry, self.batch)
            return BatchBackend(load, self.inference.poll)
        # Imported late, as a finished sweep asks nothing.
        from .http_backend import HttpBackend

        return HttpBackend(partial(self._service, entry), self.inference.threads)

    def _service(self, entry: ModelEntry) -> HttpService:
        from .http_backend import HttpService

        servers = self._endpoints(entry)
        timeout = self.inference.timeout
        return HttpService(chat_of(entry), servers, timeout, self.budget, self.policy)

    def _batch_service(self, entry: ModelEntry, kind: BatchKind) -> BatchService:
        from ..models import BATCH_SERVICES

        (endpoint,) = identifying_servers(self._endpoints(entry))
        return BATCH_SERVICES[kind](chat_of(entry), endpoint, self.inference.timeout, self.budget)

    def _endpoints(self, entry: ModelEntry, *, needs_key: bool = True) -> Endpoints:
        headers = {**header_lines(self.headers), **(entry.headers or {})}
        urls = self._urls_of(entry)
        if entry.provider is not None:
            return provider_endpoints(entry.provider, urls, self.key, headers, needs_key=needs_key)
        return make_endpoints(urls, self.key, headers) if urls else []

    def _urls_of(self, entry: ModelEntry) -> Sequence[str]:
        return urls_of(entry.base_url) or self.urls


def _refuse_batches(kind: BatchKind, provider: str | None, urls: Sequence[str]) -> None:
    if provider not in (None, kind.value):
        raise ValueError(
            f"it is asked at {provider}, but --batch {kind.value} is another provider's"
        )
    if provider and len(urls) > 1:
        raise ValueError(f"--batch {kind.value} needs a single address, but there are several")
    if not provider and (len(urls) != 1 or urls[0].startswith("@")):
        raise ValueError(
            f"--batch {kind.value} needs a single server: --base-url with its address, up to and "
            "with /v1, or --provider"
        )


@contextmanager
def naming_model(entry: ModelEntry) -> Iterator[None]:
    """Prefix errors of a model with its place in the sweep's file and its name; keep their type."""
    try:
        yield
    except ValueError as error:
        raise type(error)(f"{entry.where}{entry.name}: {error}") from None


def settings(entry: ModelEntry) -> dict[str, Any]:
    """Return what the answers of a model over HTTP depend on besides messages."""
    return model_key(entry.name, entry.provider, entry.served, entry.settings)


def chat_of(entry: ModelEntry) -> ChatModel:
    """Return how servers are asked for a model; its settings are fields of every request.

    Raises SpaceError if its space is not known, ValueError for its token limit or name.
    """
    limit, rest = token_limit(entry.settings)
    who = entry.name, entry.provider, entry.served
    chat = chat_model(*who, entry.space, rest, limit, entry.like)
    return chat if entry.prices is None else replace(chat, prices=entry.prices)
