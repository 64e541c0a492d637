"""FindIt's models on this machine, and its baselines, described without VLMEvalKit.

VLMEvalKit makes them, and importing it takes seconds: a run that is finished needs none of it.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from functools import cache
from typing import Any

from ..benchmarks import baseline_for, baseline_named, baselines, benchmarks
from ..core import host_version, validate
from ..models import (
    ModelEntry,
    RunSettings,
    describe,
    local_names,
    on_this_machine,
    row_of_checkpoint,
    row_to_run,
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
    return describe(row, checkpoint, variant, validate(RunSettings, settings))


def local_on_this_machine(answering: Answering, **arguments: Any) -> Answering:
    """Add the device and the hub's revision; the model is not loaded."""
    given = {k: v for k, v in arguments.items() if k in RunSettings.__dataclass_fields__}
    return on_this_machine(answering, validate(RunSettings, given))


def local_key(given: Mapping[str, Any], answering: Answering) -> dict[str, Any]:
    """Return the part of a model on this machine in every call's key.

    Its checkpoint is known by its content; ``given`` are the user's settings.
    """
    return given_key(given, answering.revision or answering.checkpoint)


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
        if entry.headers:
            raise ValueError(f"{entry.where}headers of {entry.name} need a server: --base-url URL")
        if entry.name in baselines():
            try:
                inspect.signature(baseline_key).bind_partial(**entry.settings, **entry.resources)
            except TypeError as error:
                raise ValueError(f"{entry.where}settings of {entry.name}: {error}") from None

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        if entry.name in baselines():
            return baseline_key(entry.name)
        # The part in every key is the same for all variants.
        benchmark = benchmarks()[0]
        variant = benchmark.parse(benchmark.variant_names()[0])
        return local_key(entry.settings, self.describe(entry, variant).answering)

    def describe(self, entry: ModelEntry, variant: DatasetVariant) -> Described:
        if entry.name in baselines():
            return describe_baseline(variant, entry.name)
        return describe_local(variant, **_local_arguments(entry))

    def on_this_machine(self, entry: ModelEntry, answering: Answering) -> Answering:
        if entry.name in baselines():
            return answering
        return local_on_this_machine(answering, **_local_arguments(entry))

    def backend(self, entry: ModelEntry) -> Backend:
        def make() -> Backend:
            self._host().check(entry)  # makes its name known there
            return self._host().backend(entry)

        return LateBackend(make)


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
