"""FindIt's models on this machine and at OpenRouter, and its baselines, without VLMEvalKit.

VLMEvalKit makes them, and importing it takes seconds: a run that is finished needs none of it.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from ..benchmarks import baseline_for, baseline_named, baselines, benchmarks
from ..core import Config, Count, Dollars, Number, Seconds, Whole, host_version, validate
from ..models import (
    OPENROUTER,
    Budget,
    ChatModel,
    ModelEntry,
    PricesField,
    RunSettings,
    chat_model,
    describe_local_run,
    local_names,
    on_this_machine,
    provider_endpoints,
    row_of_checkpoint,
    row_to_run,
    token_limit,
)
from ..protocol import Answering, CancelledError, DatasetVariant, Described, settings_from
from .answering import BackendFactory
from .backend import Backend, CancelToken, WorkResult
from .calls import given_key
from .plan import WorkItem

# --- what a run records, by the arguments of VLMEvalKit's entries ---------------------------------


def describe_baseline(variant: DatasetVariant, baseline: str = "FullImage") -> Described:
    """Describe a run of a baseline; ValueError if it cannot answer the variant."""
    row = baseline_for(baseline, variant)
    settings = {"baseline": row.answer.__name__}
    return Described(Answering("FindItBaseline", settings=settings), row.space, row.space)


def baseline_key(baseline: str = "FullImage") -> dict[str, Any]:
    """Return the part of a baseline in every call's key."""
    return {"baseline": baseline_named(baseline).answer.__name__}


def describe_local(
    variant: DatasetVariant, like: str, model_path: str | None = None, **settings: Any
) -> Described:
    """Describe a run of a model on this machine; nothing is loaded.

    Raises ValueError for an unknown row or setting.
    """
    row, checkpoint = row_to_run(like, model_path, settings.get("space"))
    return describe_local_run(row, checkpoint, variant, validate(RunSettings, settings))


def local_on_this_machine(answering: Answering, **arguments: Any) -> Answering:
    """Add the device and the hub's revision; the model is not loaded."""
    given = {k: v for k, v in arguments.items() if k in RunSettings.__dataclass_fields__}
    return on_this_machine(answering, validate(RunSettings, given))


def local_key(given: Mapping[str, Any], answering: Answering) -> dict[str, Any]:
    """Return the part of a model on this machine in every call's key.

    Its checkpoint is known by its content; ``given`` are the user's settings.
    """
    return given_key(given, answering.revision or answering.checkpoint)


# --- models at OpenRouter -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ApiSettings(Config):
    """Settings of a model at OpenRouter."""

    called: ClassVar[str] = "setting"
    retry: Whole = 6  # attempts a call at most
    timeout: Seconds = 600.0  # of an attempt
    max_usd: Dollars | None = None  # spending limit
    budget: Budget | None = None  # shared by several models, in place of max_usd
    max_new_tokens: Count | None = None  # None: the row's limit, else the variant's
    temperature: Number | None = None  # None: the row's
    prices: PricesField | None = None  # US dollars a million tokens; None: the model table's


def api_settings(given: Mapping[str, Any]) -> ApiSettings:
    """Read the settings of a model, the token limit by any of its names.

    Raises ValueError for an unknown setting or an invalid value.
    """
    limit, rest = token_limit(given)
    return validate(ApiSettings, {**rest, "max_new_tokens": limit})


def asked_settings(api: ApiSettings) -> dict[str, Any]:
    """Return the settings that decide what is asked: those of a :class:`.ModelEntry`."""
    asked = {"temperature": api.temperature, "max_new_tokens": api.max_new_tokens}
    return {name: value for name, value in asked.items() if value is not None}


def api_chat(model: str, api: ApiSettings) -> ChatModel:
    """Return how a model is asked at OpenRouter."""
    limit, fields = token_limit(asked_settings(api))
    return chat_model(model, OPENROUTER, fields=fields, max_tokens=limit)


def describe_api(variant: DatasetVariant, model: str, **settings: Any) -> Described:
    """Describe a run of a model at OpenRouter; it needs no key."""
    chat = api_chat(model, api_settings(settings))
    return chat.describe(variant, provider_endpoints(OPENROUTER, needs_key=False))


# --- in a sweep -----------------------------------------------------------------------------------


class OwnModels:
    """Answers with models of FindIt's: ``host`` makes what does, for the first call."""

    def __init__(self, host: Callable[[], BackendFactory]) -> None:
        self._host = cache(host)

    @property
    def version(self) -> Mapping[str, str]:
        return host_version()

    def check(self, entry: ModelEntry) -> None:
        if entry.checkpoint is not None:
            _local_arguments(entry)  # raises where no row fits
        refuse_headers(entry)
        given = {**entry.settings, **entry.resources}
        try:
            if entry.name in baselines():
                inspect.signature(baseline_key).bind_partial(**given)
            elif _is_at_openrouter(entry):
                api_settings(given)
            else:
                _run_settings(given)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{entry.where}settings of {entry.name}: {error}") from None

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        if entry.name in baselines():
            return baseline_key(entry.name)
        if _is_at_openrouter(entry):
            return given_key(entry.settings, None)
        # The part in every key is the same for all variants.
        benchmark = benchmarks()[0]
        variant = benchmark.parse(benchmark.variant_names()[0])
        return local_key(entry.settings, self.describe(entry, variant).answering)

    def describe(self, entry: ModelEntry, variant: DatasetVariant) -> Described:
        if entry.name in baselines():
            return describe_baseline(variant, entry.name)
        if _is_at_openrouter(entry):
            return describe_api(variant, entry.name, **entry.settings)
        return describe_local(variant, **_local_arguments(entry))

    def on_this_machine(self, entry: ModelEntry, answering: Answering) -> Answering:
        if entry.name in baselines() or _is_at_openrouter(entry):
            return answering
        return local_on_this_machine(answering, **_local_arguments(entry))

    def backend(self, entry: ModelEntry) -> Backend:
        def make() -> Backend:
            self._host().check(entry)  # makes its name known there
            return self._host().backend(entry)

        return LateBackend(make)


def refuse_headers(entry: ModelEntry) -> None:
    """Refuse headers of a model that is not asked at a server."""
    if entry.headers:
        raise ValueError(f"{entry.where}headers of {entry.name} need a server: --base-url URL")


def _is_at_openrouter(entry: ModelEntry) -> bool:
    return entry.checkpoint is None and entry.name not in local_names()


def _run_settings(arguments: Mapping[str, Any]) -> RunSettings:
    """Read the settings among the arguments of a model on this machine."""
    given = {k: v for k, v in arguments.items() if k not in ("like", "model_path")}
    return validate(RunSettings, given)


def _local_arguments(entry: ModelEntry) -> dict[str, Any]:
    """Return the arguments with which VLMEvalKit makes a model on this machine."""
    if entry.checkpoint is not None:
        stated = entry.space is not None
        row = row_of_checkpoint(entry.name, entry.checkpoint, entry.like, space_stated=stated)
        checkpoint = entry.checkpoint
    else:
        row, checkpoint = local_names()[entry.name]
    arguments = {"like": row.name, "model_path": checkpoint, **entry.settings}
    space = settings_from({"space": entry.space}).space
    return arguments if space is None else {**arguments, "space": space}


class LateBackend:
    """A backend that is made when the first call is needed; what that raises passes through."""

    def __init__(self, make: Callable[[], Backend]) -> None:
        self._make = cache(make)

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        if next(iter(items), None) is None:
            return
        try:
            with cancel.exposed():
                backend = self._make()
        except CancelledError:
            return
        async with aclosing(backend.answer(items, cancel)) as results:
            async for result in results:
                yield result
