"""Models over HTTP: at servers, at a provider, at OpenRouter by name, in batches."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ..core import Count, Dollars, Seconds, Whole, no_effect, validate
from ..models import (
    LIMIT_SETTING,
    OPENROUTER,
    AddressFile,
    BatchKind,
    Budget,
    ChatModel,
    Endpoint,
    Endpoints,
    ModelEntry,
    PricesField,
    RunSettings,
    Sampling,
    chat_model,
    find_provider,
    header_lines,
    headers_to,
    identifying_servers,
    is_other_model,
    joined_headers,
    make_endpoints,
    names_asked,
    options_to,
    provider_endpoints,
    recorded_headers,
    sampling_of,
    server_headers,
    token_limit,
    urls_of,
    with_logprobs,
)
from ..protocol import CallResult, DatasetVariant, Described, say_once
from .backend import Backend
from .batch_backend import BatchBackend
from .deployment import CONCURRENT, IN_WORDS, SAMPLED, Deployment, at_its_place, naming_model
from .server_state import policy_of

if TYPE_CHECKING:
    from ..models import BatchService
    from .http_backend import HttpService


def chat_of(entry: ModelEntry) -> ChatModel:
    """Return how servers are asked for a model; its settings are fields of every request.

    Raises SpaceError if its space is not known, ValueError for its token limit or name.
    """
    limit, rest = token_limit(entry.settings)
    who = entry.name, entry.provider, entry.served
    chat = chat_model(*who, entry.space, rest, limit, entry.like)
    return chat if entry.prices is None else replace(chat, prices=entry.prices)


# Settings that only a model on this machine has; a space stands beside them, whoever answers
OF_THIS_MACHINE = tuple(
    each.name
    for each in fields(RunSettings)
    if each.name not in (*(drawn.name for drawn in fields(Sampling)), LIMIT_SETTING, "space")
)


def refuse_of_this_machine(name: str, what: str, stated: Container[str]) -> None:
    """Refuse, with a ValueError, a setting that only a model on this machine has.

    Requests would have it as a field, which no service takes.

    Args:
        name: of the model.
        what: it is (:attr:`.Deployment.what`).
        stated: the names of its settings.
    """
    for setting in OF_THIS_MACHINE:
        if setting in stated:
            why = f"it is of models on this machine, and {name} is {what}"
            raise ValueError(no_effect(setting, why))


class OverHttp(Deployment):
    """A model that the engine asks over HTTP."""

    uses = IN_WORDS | SAMPLED | CONCURRENT | {"timeout", "max_usd", "logprobs"}

    @abstractmethod
    def service(self) -> HttpService:
        """Return what makes its calls; servers of this machine are started."""

    def check_options(self) -> None:
        super().check_options()
        if self.asking.logprobs:
            with naming_model(self.entry):
                with_logprobs(self.entry.settings)

    def note_on_answer(self, answer: CallResult) -> str | None:
        """Say that another model answered than was asked; None: it did not, as far as is known."""
        chat = self.chat
        named = str(answer.record.model.get("identifier") or "")
        if chat is None or answer.error is not None:
            return None
        if not is_other_model(names_asked(chat.served, self.name, chat.row), named):
            return None
        return f"{self.name}: answered by {named}; asked was {chat.served}"

    @property
    def calls_at_a_time(self) -> int:
        """How many calls each server gets."""
        return self.asking.calls.threads

    def backend(self) -> Backend:
        # Imported late, as a finished sweep asks nothing.
        from .http_backend import HttpBackend

        return HttpBackend(self.service, self.calls_at_a_time)


class AtServer(OverHttp):
    """A model of servers that take OpenAI's chat completions."""

    called = "a model of a server (--base-url)"
    uses = OverHttp.uses | options_to("asking") | {"like", "base_url", "extra_body", "prices"}

    @cached_property
    def chat(self) -> ChatModel:
        return chat_of(self.entry)

    def check(self) -> None:
        super().check()
        header_lines(self.asking.headers)  # of all models: no name before what is wrong
        self._refuse_of_this_machine()
        with naming_model(self.entry):
            servers = self.servers(needs_key=self.asking.asks)
            # Imported late: it imports the standard library's HTTP client.
            from ..models import notes_on_proxies

            now = servers() if isinstance(servers, AddressFile) else servers
            for note in notes_on_proxies(now):
                say_once(note)
            self._refuse_unsent_key(now)
            chat = self.chat
            if not math.isinf(self.asking.budget.limit):
                chat.check_limit(self._that_may_state_costs(servers))

    def _refuse_of_this_machine(self) -> None:
        """Refuse what only a model on this machine has."""
        entry = self.entry
        with at_its_place(entry):
            refuse_of_this_machine(self.name, self.what, {**entry.settings, **entry.resources})
        with naming_model(entry):
            if entry.checkpoint is not None:
                raise ValueError(
                    f"checkpoint {entry.checkpoint} is of a model on this machine, but servers are "
                    "asked: give their name for it as `served`"
                )
            if entry.resources:
                raise ValueError(
                    no_effect(
                        next(iter(entry.resources)),
                        "resources are of a model on this machine, and a server is asked",
                        "Leave it out, or write it in `settings` if it is a field of requests",
                    )
                )

    def _refuse_unsent_key(self, servers: Sequence[Endpoint]) -> None:
        """Refuse a key in whose place a header is sent."""
        key = self.asking.key or ""
        for sent in map(headers_to, servers if key else ()):
            if sent and not any(key in value for value in sent.values()):
                name = self.asking.spelled("key")
                raise ValueError(no_effect(name, "a header has its place", "Leave one out"))

    def _that_may_state_costs(self, servers: Endpoints) -> Sequence[Any]:
        return identifying_servers(servers)

    @property
    def stated(self) -> Mapping[str, Any]:
        return self.entry.settings  # All are fields of requests

    def describe(self, variant: DatasetVariant) -> Described:
        with naming_model(self.entry):
            servers = self.servers(needs_key=False)
            known = identifying_servers(servers)
            described = self.chat.describe(variant, known)
            # Imported late, as above.
            from ..models import recorded_proxies

            answering = replace(
                described.answering,
                headers=recorded_headers(self.headers),
                proxy=recorded_proxies(known),
            )
            return described._replace(answering=answering)

    def service(self) -> HttpService:
        from .http_backend import HttpService

        asking = self.asking
        how = asking.calls.timeout, asking.budget, asking.policy
        return HttpService(self.chat, self.servers(), *how)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that the user states of every request, whose values may be secrets."""
        return server_headers(self._headers)

    @property
    def _headers(self) -> dict[str, str]:
        return joined_headers(self.asking.headers, self.entry.headers)

    def servers(self, *, needs_key: bool = True) -> Endpoints:
        """Return its servers; ``needs_key``: refuse a provider without a key."""
        urls = urls_of(self.entry.base_url)
        return make_endpoints(urls, self.asking.key, self._headers)


class AtProvider(AtServer):
    """A model at a provider, in its protocol."""

    called = "a model at a provider (--provider)"

    def check_options(self) -> None:
        assert self.entry.provider is not None
        with naming_model(self.entry):
            gives_logprobs = find_provider(self.entry.provider).gives_logprobs
            if self.asking.logprobs and not gives_logprobs:
                raise ValueError(
                    f"--logprobs: {self.entry.provider} gives no log-probabilities. Leave it out"
                )
        super().check_options()

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers

    def servers(self, *, needs_key: bool = True) -> Endpoints:
        assert self.entry.provider is not None
        urls = urls_of(self.entry.base_url)
        who = self.entry.provider, urls, self.asking.key, self._headers
        return provider_endpoints(*who, needs_key=needs_key)


class InBatches(AtServer):
    """A model at a server or a provider that is asked in batches."""

    called = "a model that is asked in batches (--batch)"
    uses = AtServer.uses - CONCURRENT | {"batch"}

    @property
    def kind(self) -> BatchKind:
        assert self.asking.batch is not None
        return self.asking.batch

    def check(self) -> None:
        if self.asking.logprobs and self.kind.is_plain:
            raise ValueError(f"--logprobs: the {self.kind.value} interface gives none")
        with naming_model(self.entry):
            self._refuse_other_places()
        super().check()

    def _refuse_other_places(self) -> None:
        kind = self.kind
        provider = self.entry.provider
        urls = urls_of(self.entry.base_url)
        if provider not in (None, kind.value):
            raise ValueError(
                f"it is asked at {provider}, but --batch {kind.value} is another provider's"
            )
        if provider and len(urls) > 1:
            raise ValueError(f"--batch {kind.value} needs a single address, but there are several")
        if not provider and (len(urls) != 1 or urls[0].startswith("@")):
            raise ValueError(
                f"--batch {kind.value} needs a single server: --base-url with its address, up to "
                "and with /v1, or --provider"
            )

    def _that_may_state_costs(self, servers: Endpoints) -> Sequence[Any]:
        return []  # The cost of a batch is not known beforehand

    def describe(self, variant: DatasetVariant) -> Described:
        if self.kind.is_plain and variant.reply_schema is not None:
            with naming_model(self.entry):
                raise ValueError(
                    f"{variant.name}: --batch {self.kind.value} cannot constrain replies to a "
                    "format: ask it one by one, or without _constrained"
                )
        return super().describe(variant)

    @property
    def _one_by_one(self) -> AtServer:
        """The same model, as it is asked without batches."""
        kind = AtProvider if self.entry.provider is not None else AtServer
        return kind(self.entry, self.asking)

    @property
    def headers(self) -> Mapping[str, str]:
        return self._one_by_one.headers

    def servers(self, *, needs_key: bool = True) -> Endpoints:
        return self._one_by_one.servers(needs_key=needs_key)

    def backend(self) -> Backend:
        return BatchBackend(self._service_of_batches, self.asking.calls.poll)

    def _service_of_batches(self) -> BatchService:
        from ..models import BATCH_SERVICES

        (endpoint,) = identifying_servers(self.servers())
        asking = self.asking
        how = asking.calls.timeout, asking.budget
        return BATCH_SERVICES[self.kind](self.chat, endpoint, *how)


# --- OpenRouter, by the name of a model -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ApiSettings(Sampling):
    """Settings of a model at OpenRouter; how replies are drawn, None: as the row says."""

    called: ClassVar[str] = "setting"
    retry: Whole = 6  # attempts a call at most
    timeout: Seconds = 600.0  # of an attempt
    max_usd: Dollars | None = None  # spending limit
    budget: Budget | None = None  # shared by several models, in place of max_usd
    max_new_tokens: Count | None = None  # None: the row's limit, else the variant's
    prices: PricesField | None = None  # US dollars a million tokens; None: the model table's


def api_settings(given: Mapping[str, Any]) -> ApiSettings:
    """Read the settings of a model, the token limit by any of its names.

    Raises ValueError for an unknown setting or an invalid value.
    """
    limit, rest = token_limit(given)
    return validate(ApiSettings, {**rest, "max_new_tokens": limit})


def asked_settings(api: ApiSettings) -> dict[str, Any]:
    """Return the settings that decide what is asked: those of a :class:`.ModelEntry`."""
    limit = {} if api.max_new_tokens is None else {LIMIT_SETTING: api.max_new_tokens}
    return {**sampling_of(api), **limit}


def api_chat(model: str, api: ApiSettings, space: Any = None) -> ChatModel:
    """Return how a model is asked at OpenRouter; ``space``: of its replies, if not its row's."""
    limit, fields = token_limit(asked_settings(api))
    chat = chat_model(model, OPENROUTER, space=space, fields=fields, max_tokens=limit)
    return chat if api.prices is None else replace(chat, prices=api.prices)


def describe_api(variant: DatasetVariant, model: str, **settings: Any) -> Described:
    """Describe a run of a model at OpenRouter; it needs no key."""
    return _described_there(api_chat(model, api_settings(settings)), variant)


def _described_there(chat: ChatModel, variant: DatasetVariant) -> Described:
    return chat.describe(variant, provider_endpoints(OPENROUTER, needs_key=False))


def api_service(model: str, api: ApiSettings, space: Any = None) -> HttpService:
    """Return what makes the calls of a model at OpenRouter; ValueError without a key.

    A ValueError, too, where the budget has a limit, and no price is known.
    """
    from .http_backend import HttpService

    chat = api_chat(model, api, space)
    servers = provider_endpoints(OPENROUTER)
    budget = api.budget or Budget(api.max_usd or math.inf)
    if not math.isinf(budget.limit):
        chat.check_limit(servers)
    return HttpService(chat, servers, api.timeout, budget, policy_of(api.retry))


# Settings of a model at OpenRouter that are no fields of its requests
_OF_CALLS = tuple(
    each.name
    for each in fields(ApiSettings)
    if each.name not in (LIMIT_SETTING, *(field.name for field in fields(Sampling)))
)


class AtOpenRouter(OverHttp):
    """A proprietary model that is asked at OpenRouter, as its name alone says."""

    called = "a model at OpenRouter"
    uses = AtProvider.uses - {"base_url"}

    @cached_property
    def _there(self) -> AtProvider:
        """The same model, as ``--provider openrouter`` asks it."""
        entry = self.entry
        stated = {**entry.settings, **entry.resources}
        with at_its_place(entry, f"settings of {self.name}: "):
            api = api_settings({name: stated[name] for name in _OF_CALLS if name in stated})
        settings, resources = (
            {name: value for name, value in given.items() if name not in _OF_CALLS}
            for given in (entry.settings, entry.resources)
        )
        asking = self.asking
        if "timeout" in stated:
            asking = replace(asking, calls=replace(asking.calls, timeout=api.timeout))
        if "retry" in stated:
            asking = replace(asking, policy=policy_of(api.retry))
        prices = entry.prices or api.prices
        there = replace(
            entry, provider=OPENROUTER, settings=settings, resources=resources, prices=prices
        )
        return AtProvider(there, asking)

    @property
    def chat(self) -> ChatModel:
        return self._there.chat

    def check(self) -> None:
        super().check()
        entry = self.entry
        with at_its_place(entry):
            refuse_of_this_machine(self.name, self.what, {**entry.settings, **entry.resources})
        self._there.check()

    def describe(self, variant: DatasetVariant) -> Described:
        return self._there.describe(variant)

    def service(self) -> HttpService:
        return self._there.service()


def refuse_headers(entry: ModelEntry) -> None:
    """Refuse headers of a model that is not asked at a server."""
    if entry.headers:
        why = f"{entry.name} is asked at no server"
        raise ValueError(f"{entry.where}{no_effect('headers', why)}")
