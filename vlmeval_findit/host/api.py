"""Models behind an HTTP API as VLMEvalKit's: OpenRouter, providers, servers elsewhere and here.

The host's ``BaseAPI.generate`` retries every error, takes an empty reply for a failed call and
prints replies. Its place takes :mod:`..engine.http_backend`: it retries what may succeed, stores
empty replies, and records a failed call, which the next run makes again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from vlmeval.api.base import BaseAPI
from vlmeval.smp import get_logger

from ..core import names_of_arguments, refuse_unknown, validate
from ..engine import (
    ApiSettings,
    Asking,
    AtOpenRouter,
    AtProvider,
    AtServer,
    CallOptions,
    HttpBackend,
    HttpService,
    OverHttp,
    Served,
    api_service,
    api_settings,
    asked_settings,
    deployment_of,
    describe_api,
    policy_of,
    refuse_of_this_machine,
)
from ..models import (
    MODELS,
    Budget,
    HostMessage,
    ModelEntry,
    RunSettings,
    from_host_message,
    merged_fields,
    names_of_settings,
)
from ..protocol import CallResult, DatasetVariant, Described, Message
from ..serving import ServeOptions
from .baseline_models import RecordedReply, recorded_reply, variant_of
from .free_questions import FREE_QUESTION, free_message, text_alone

log = get_logger("FindIt")


class OverHttpModel(BaseAPI):  # type: ignore[misc]
    """A model that the engine asks over HTTP; any number of threads may share it."""

    is_api = True
    INTERLEAVE = True
    takes_system = True
    allowed_types = ("text", "image")

    def __init__(self, load: Callable[[], HttpService]) -> None:
        super().__init__(retry=1, verbose=False)
        self._load = load
        self._loading = threading.Lock()
        self._loaded: HttpBackend | None = None

    def generate(
        self, message: HostMessage, dataset: str | None = None, **_: Any
    ) -> RecordedReply | str:
        """Return the reply to a message, or a failed call as VLMEvalKit's classes say it.

        To a question that is not FindIt's it is the text alone, else there is a record, too.
        """
        variant = variant_of(dataset)
        if variant is None:
            return self.generate_inner(message)[1]
        return recorded_reply(self._ask(from_host_message(message), variant))

    def generate_inner(self, inputs: Any, **_: Any) -> tuple[int, str, str]:
        """Return the status (0: answered), text and error of a question that is not FindIt's."""
        answer = self._ask(free_message(inputs), FREE_QUESTION)
        text = text_alone(answer)
        return (0 if text == answer.text else -1), text, answer.error or ""

    def _ask(self, message: Message, variant: DatasetVariant) -> CallResult:
        with self._loading:  # once: it may start servers
            self._loaded = self._loaded or HttpBackend(self._load)
            _ = self._loaded.service
        return self._loaded.ask(message, variant)


class FindItOpenRouter(OverHttpModel):
    """A proprietary model through OpenRouter, asked as in the paper's runs.

    ``service`` makes its calls. The key is OPENROUTER_API_KEY, the URL OPENROUTER_BASE_URL if set.

    Args:
        model: any name of a row of the model table that has API facts.
        settings: the fields of :class:`.ApiSettings`.

    Raises:
        ValueError: unknown model or setting, or no key.
    """

    def __init__(self, model: str, **settings: Any) -> None:
        super().__init__(lambda: self.service)
        refuse_of_this_machine(model, AtOpenRouter.called, settings)
        refuse_unknown(settings, ["model", *names_of_settings(ApiSettings)])
        self.service = api_service(model, api_settings(settings))
        self.name = self.service.model.name

    @classmethod
    def describe(cls, variant: DatasetVariant, model: str, **settings: Any) -> Described:
        """Describe a run with the constructor's arguments; it needs no key."""
        return describe_api(variant, model, **settings)


def api_models() -> dict[str, Callable[..., Any]]:
    """Return the entries of VLMEvalKit's ``supported_VLM`` for proprietary models."""
    # `retry` is named so that the host's --retry reaches it.
    return {
        row.entry: partial(FindItOpenRouter, model=row.entry, retry=6)
        for row in MODELS.values()
        if row.api
    }


# --- classes of --config files: the engine asks, as in a sweep ------------------------------------


class DeployedModel(OverHttpModel):
    """A model that answers as a deployment of the engine says (``asked``)."""

    def __init__(self, asked: OverHttp) -> None:
        super().__init__(asked.service)
        self.asked = asked
        self._told: set[str] = set()  # Which models answered in its place

    def _ask(self, message: Message, variant: DatasetVariant) -> CallResult:
        answer = super()._ask(message, variant)
        note = self.asked.note_on_answer(answer) if variant is FREE_QUESTION else None
        if note is not None and note not in self._told:
            self._told.add(note)
            log.warning("%s", note)
        return answer


class FindItServer(DeployedModel):
    """A model behind OpenAI-compatible servers (``vllm serve``, ``transformers serve`` ...).

    Args:
        model: its row of the model table has the space.
        base_url: the server's URL, up to and with ``/v1``; several with commas between them, or
            ``@`` and a file of them.
        served: the servers' name for the model (default: the same).
        space: the coordinate space, if the model table does not have it.
        extra_body: more fields of every request; a field that is None is not sent.
        like: known model whose prompts and coordinates it shares (default: that of its name).
        settings: the fields of :class:`.ApiSettings`; ``key`` (default: the environment variable
            FINDIT_SERVER_KEY), ``headers`` by name, in addition to FINDIT_SERVER_HEADERS.

    Raises:
        ValueError: a setting cannot be used.
    """

    def __init__(self, model: str, base_url: str, **arguments: Any) -> None:
        super().__init__(_at_address(model, base_url=base_url, **arguments))


class FindItProvider(DeployedModel):
    """A model at a provider, in the provider's protocol and with the user's key.

    Args:
        model: its row of the model table says how it is asked.
        provider: a row of :data:`..models.http.providers.provider_table.PROVIDERS`.
        served: the provider's name for the model (default: that of the model table).
        base_url: another address that speaks the provider's protocol.
        space, extra_body, like, settings: as of :class:`FindItServer`.

    Raises:
        ValueError: unknown provider, no key; a setting cannot be used.
    """

    def __init__(self, model: str, provider: str, **arguments: Any) -> None:
        super().__init__(_at_address(model, provider=provider, **arguments))


_OF_CALLS = frozenset({"retry", "timeout"})
"""Settings of calls to servers here."""


class FindItServed(DeployedModel):
    """A checkpoint that is started as OpenAI-compatible servers on this machine's GPUs.

    Args:
        model: a known model, or any name.
        serve: the program, or the fields of :class:`..serving.programs.ServeOptions`.
        checkpoint: a folder or an identifier (default: of the name).
        like: known model whose prompts and coordinates it shares (default: of the name).
        space: the coordinate space (default: the row's).
        work_dir: has the servers' logs.
        settings: as of a model in this process; ``retry`` and ``timeout`` of calls.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        model: str,
        serve: str | Mapping[str, Any] = "vllm",
        checkpoint: str | None = None,
        like: str | None = None,
        space: str | Mapping[str, Any] | None = None,
        work_dir: str = "outputs",
        **settings: Any,
    ) -> None:
        known = names_of_arguments(FindItServed.__init__)
        refuse_unknown(settings, [*known, *names_of_settings(RunSettings), *_OF_CALLS])
        serving = validate(ServeOptions, {"program": serve} if isinstance(serve, str) else serve)
        serving.check()
        names = settings.keys() & _OF_CALLS
        calls: dict[str, Any] = {name: settings.pop(name) for name in names}
        entry = ModelEntry(model, settings, checkpoint=checkpoint, like=like, space=space)
        asking = replace(_asking(api_settings(calls)), serving=serving, work_dir=Path(work_dir))
        super().__init__(Served(entry, asking))


def _at_address(
    model: str,
    *,
    extra_body: Mapping[str, Any] | None = None,
    key: str | None = None,
    provider: str | None = None,
    served: str | None = None,
    base_url: str | None = None,
    space: str | Mapping[str, Any] | None = None,
    like: str | None = None,
    headers: Mapping[str, str] | None = None,
    **arguments: Any,
) -> OverHttp:
    """Return what answers for a model."""
    kind = AtServer if provider is None else AtProvider
    refuse_of_this_machine(model, kind.called, arguments)
    known = names_of_arguments(_at_address)
    refuse_unknown(arguments, [*known, *names_of_settings(ApiSettings)])
    api = api_settings(arguments)
    entry = ModelEntry(
        model,
        merged_fields(extra_body or {}, asked_settings(api)),
        space=space,
        like=like,
        served=served,
        provider=provider,
        base_url=base_url,
        prices=api.prices,
        headers=headers,
    )
    deployment = deployment_of(entry, replace(_asking(api), key=key))
    assert isinstance(deployment, OverHttp)
    deployment.check()
    return deployment


def _asking(api: ApiSettings) -> Asking:
    return Asking(
        calls=CallOptions(timeout=api.timeout),
        budget=api.budget or Budget(api.max_usd or math.inf),
        policy=policy_of(api.retry),
    )


API_CLASSES = (FindItOpenRouter, FindItServer, FindItProvider, FindItServed)
