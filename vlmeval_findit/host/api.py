"""Models behind an HTTP API as VLMEvalKit's: OpenRouter, providers, servers elsewhere and here.

The host's ``BaseAPI.generate`` retries every error, takes an empty reply for a failed call and
prints replies. These classes use :mod:`..engine.http_backend` instead: it retries what may
succeed, stores empty replies, and records a failed call, which the next run makes again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from vlmeval.api.base import BaseAPI

from ..core.config import Config, Count, Dollars, Number, Seconds, Whole, config_from
from ..core.identity import Answering, Described
from ..core.question import Question
from ..core.replies import recorded
from ..engine.backend import Backend
from ..engine.http_backend import HttpBackend, HttpService
from ..engine.server import ServerPolicy
from ..engine.started_servers import ServedModel, served_model
from ..models.http.addresses import endpoints, lasting, provider_endpoints
from ..models.http.chat import ChatModel, chat_model, model_key, token_limit
from ..models.http.providers.provider_table import OPENROUTER
from ..models.http.spending import Budget
from ..models.model_client import HostMessage, from_host_message
from ..models.model_entry import ModelEntry
from ..models.model_table import MODELS
from ..models.prices import PricesField
from ..serving.programs import ServeOptions
from .baseline_models import RecordedReply, question_of, recorded_reply


@dataclass(frozen=True, slots=True)
class ApiSettings(Config):
    """Settings of a model over HTTP."""

    called: ClassVar[str] = "setting"
    retry: Whole = 6  # attempts a call at most
    timeout: Seconds = 600.0  # of an attempt
    max_usd: Dollars | None = None  # spending limit
    budget: Budget | None = None  # shared by several models, in place of max_usd
    max_new_tokens: Count | None = None  # None: the row's limit, else the question's
    temperature: Number | None = None  # at OpenRouter; None: the row's
    prices: PricesField | None = None  # US dollars a million tokens; None: the model table's

    @property
    def policy(self) -> ServerPolicy:
        # A refusal is no fault of the call: it may take more attempts.
        usual, attempts = ServerPolicy(), max(self.retry, 1)
        refusals = attempts * usual.refusals // usual.attempts
        return replace(usual, attempts=attempts, refusals=refusals)


def settings_of(given: Mapping[str, Any]) -> ApiSettings:
    """Read the settings of a model, the token limit by any of its names.

    Raises ValueError for an unknown setting or an invalid value.
    """
    limit, rest = token_limit(given)
    return config_from(ApiSettings, {**rest, "max_new_tokens": limit})


Parts = tuple[ChatModel, Any, ApiSettings]
"""A model, its endpoints or a function that returns them, and the settings of its calls."""


class _ChatAPI(BaseAPI):  # type: ignore[misc]
    """A model over HTTP that any number of threads may share; ``service`` makes its calls."""

    is_api = True
    INTERLEAVE = True
    takes_system = True
    allowed_types = ("text", "image")

    @staticmethod
    def parts(model: str, needs_key: bool = True, **arguments: Any) -> Parts:
        """Return the model, its addresses and its settings, of the constructor's arguments."""
        raise NotImplementedError

    def __init__(self, model: str, **arguments: Any) -> None:
        chat, servers, settings = self.parts(model, **arguments)
        super().__init__(retry=1, verbose=False)
        self.name = chat.name
        budget = settings.budget or Budget(settings.max_usd or math.inf)
        if settings.prices is not None:
            chat = replace(chat, prices=settings.prices)
        if not math.isinf(budget.limit):
            chat.check_limit(() if callable(servers) else servers)
        self.service = HttpService(chat, servers, settings.timeout, budget, settings.policy)
        self._backend = HttpBackend(lambda: self.service)

    @classmethod
    def describe(cls, question: Question, model: str, **arguments: Any) -> Described:
        """Describe a run with the constructor's arguments; it needs no key."""
        chat, servers, _ = cls.parts(model, needs_key=False, **arguments)
        return chat.describe(question, lasting(servers))

    def generate(self, message: HostMessage, dataset: str | None = None, **_: Any) -> RecordedReply:
        """Return the reply to a message, or the record of a failed call.

        Raises ValueError if the dataset is none of FindIt's benchmarks.
        """
        answer = self._backend.ask(from_host_message(message), question_of(dataset))
        text = answer.text if answer.error is None else f"{self.fail_msg} {answer.error}"
        return recorded_reply(text, recorded(answer.extra))


class FindItOpenRouter(_ChatAPI):
    """A proprietary model through OpenRouter, asked as in the paper's runs.

    The key is OPENROUTER_API_KEY, the URL OPENROUTER_BASE_URL if set.

    Args:
        model: any name of a row of the model table that has API facts.
        settings: the fields of :class:`.ApiSettings`.

    Raises:
        ValueError: unknown model or setting, or no key.
    """

    @staticmethod
    def parts(model: str, needs_key: bool = True, **arguments: Any) -> Parts:
        settings = settings_of(arguments)
        sampling = {} if settings.temperature is None else {"temperature": settings.temperature}
        chat = chat_model(model, OPENROUTER, fields=sampling, max_tokens=settings.max_new_tokens)
        return chat, provider_endpoints(OPENROUTER, needs_key=needs_key), settings


class _EndpointAPI(_ChatAPI):
    """A model whose space and names may be given; without a provider, of servers."""

    takes_space = True

    @staticmethod
    def parts(
        model: str,
        needs_key: bool = True,
        *,
        provider: str | None = None,
        served: str | None = None,
        base_url: str | None = None,
        space: str | Mapping[str, Any] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        like: str | None = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Parts:
        if provider is None:
            servers = endpoints(base_url or "", key, headers or {})
        else:
            servers = provider_endpoints(
                provider, base_url, key, headers or {}, needs_key=needs_key
            )
        settings, fields = settings_of(arguments), extra_body
        chat = chat_model(model, provider, served, space, fields, settings.max_new_tokens, like)
        return chat, servers, settings

    @classmethod
    def key_settings(
        cls, model: str, provider: str | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Return the constructor's arguments that are part of every call's key."""
        limit, _ = token_limit(arguments)
        limited = {} if limit is None else {"max_new_tokens": limit}
        fields = {**(arguments.get("extra_body") or {}), **limited}
        return model_key(model, provider, arguments.get("served"), fields)


class FindItServer(_EndpointAPI):
    """A model behind OpenAI-compatible servers (``vllm serve``, ``transformers serve`` ...).

    Args:
        model: what results are called; its row of the model table has the space.
        base_url: the server's URL, up to and with ``/v1``; several with commas between them, or
            ``@`` and a file of them.
        served: the servers' name for the model (default: the same).
        space: the coordinate space, if the model table does not have it.
        extra_body: more fields of every request; a field that is None is not sent.
        like: known model whose prompts and coordinates it shares (default: that of its name).
        settings: the fields of :class:`.ApiSettings`; ``key`` (default: the environment variable
            FINDIT_SERVER_KEY), ``headers`` by name, in addition to FINDIT_SERVER_HEADERS.

    Raises:
        SpaceError: the coordinate space is not known.
        ValueError: a setting cannot be used.
    """

    def __init__(self, model: str, base_url: str, **arguments: Any) -> None:
        super().__init__(model, base_url=base_url, **arguments)


class FindItProvider(_EndpointAPI):
    """A model at a provider, in the provider's protocol and with the user's key.

    Args:
        model: what results are called; its row of the model table says how it is asked.
        provider: a row of :data:`..models.http.providers.provider_table.PROVIDERS`.
        served: the provider's name for the model (default: that of the model table).
        base_url: another address that speaks the provider's protocol.
        space, extra_body, like: as of :class:`FindItServer`.
        settings: the fields of :class:`.ApiSettings`; ``key`` (default: the environment's),
            ``headers`` by name.

    Raises:
        SpaceError: the coordinate space is not known.
        ValueError: unknown provider, no key; a setting cannot be used.
    """

    def __init__(self, model: str, provider: str, **arguments: Any) -> None:
        super().__init__(model, provider=provider, **arguments)


_LOGS = "outputs/servers"
_OF_CALLS = ("retry", "timeout")


class FindItServed(_ChatAPI):
    """A checkpoint that is started as OpenAI-compatible servers on this machine's GPUs.

    Args:
        model: name of the results.
        log_folder: of the servers.
        serve: the program, or the fields of :class:`..serving.programs.ServeOptions`.
        checkpoint: a folder or an identifier (default: of the name).
        like: known model whose prompts and coordinates it shares (default: of the name).
        space: the coordinate space (default: the row's).
        settings: as of a model in this process; ``retry`` and ``timeout`` of calls.

    Raises:
        ServingError: a server does not start.
        ValueError: an argument is invalid.
    """

    takes_space = True

    @staticmethod
    def parts(
        model: str, needs_key: bool = True, log_folder: str = _LOGS, **arguments: Any
    ) -> Parts:
        served, calls = _served(model, **arguments)
        return served.chat(), served.started(Path(log_folder)), calls

    @classmethod
    def backend(cls, calls: int, log_folder: str = _LOGS, **arguments: Any) -> Backend:
        """Return the backend of a run with the constructor's arguments, ``calls`` at a time."""
        served, call_settings = _served(**arguments)
        calls_each = max(calls // len(served.serving.devices()), 1)
        folder, policy = Path(log_folder), call_settings.policy
        load = partial(served.service, folder, timeout=call_settings.timeout, policy=policy)
        return HttpBackend(load, calls_each)

    @classmethod
    def describe(cls, question: Question, model: str, **arguments: Any) -> Described:
        """Describe a run with the constructor's arguments; nothing is started."""
        return _served(model, **arguments)[0].describe(question)

    @classmethod
    def on_this_machine(cls, answering: Answering, **arguments: Any) -> Answering:
        """Add the revision from the hub."""
        return _served(**arguments)[0].on_this_machine(answering)

    @classmethod
    def key_settings(cls, **arguments: Any) -> dict[str, Any]:
        """Return the constructor's arguments that are part of every call's key."""
        return _served(**arguments)[0].key()


def _served(
    model: str,
    log_folder: str = _LOGS,
    serve: str | Mapping[str, Any] = "vllm",
    checkpoint: str | None = None,
    like: str | None = None,
    space: str | Mapping[str, Any] | None = None,
    **settings: Any,
) -> tuple[ServedModel, ApiSettings]:
    """Return the model and the settings of its calls."""
    calls = {name: settings.pop(name) for name in _OF_CALLS if name in settings}
    serving = config_from(ServeOptions, {"program": serve} if isinstance(serve, str) else serve)
    serving.check()
    entry = ModelEntry(model, settings, checkpoint=checkpoint, like=like, space=space)
    return served_model(entry, serving), settings_of(calls)


API_CLASSES = (FindItOpenRouter, FindItServer, FindItProvider)


def api_models() -> dict[str, Callable[..., Any]]:
    """Return the entries of VLMEvalKit's ``supported_VLM`` for proprietary models."""
    # `retry` is named so that the host's --retry reaches it.
    return {
        row.entry: partial(FindItOpenRouter, model=row.entry, retry=6)
        for row in MODELS.values()
        if row.api
    }
