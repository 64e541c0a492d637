"""VLMEvalKit's models as backends of the engine, loaded by name, and their weights judged."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from typing import Any

from ..benchmarks import benchmarks
from ..core import host_version, nearest
from ..engine import (
    Backend,
    BackendFactory,
    CallOptions,
    HttpBackend,
    Loader,
    LocalBackend,
    ThreadedBackend,
    api_settings,
    refuse_headers,
)
from ..models import Budget, GenerateClient, ModelEntry, checked_loading, report_of
from ..protocol import Answering, DatasetVariant, Described, ModelClient, settings_from
from .api import FindItOpenRouter
from .model_descriptions import (
    Entry,
    described,
    entry_of,
    key_settings,
    on_this_machine,
    refuse_unknown_bounds,
    with_space,
    with_system,
)
from .registration import register

MakeBackend = Callable[[Loader, CallOptions], Backend]


class VLMEvalKitBackends:
    """Answers with the models that VLMEvalKit knows, FindIt's among them.

    Args:
        inference: options of calls.
        make: a backend from a loader; None answers in this process.
        budget: what all models over HTTP may spend together (None: only count).

    Raises:
        ImportError: VLMEvalKit is not installed.
    """

    def __init__(
        self, inference: CallOptions, make: MakeBackend | None = None, budget: Budget | None = None
    ) -> None:
        register()
        self._inference = inference
        self._make = make
        self._budget = budget or Budget()

    def check(self, entry: ModelEntry) -> None:
        from vlmeval.config import supported_VLM

        from .local import make_known

        if entry.checkpoint is not None:
            stated = entry.space is not None
            make_known(entry.name, entry.checkpoint, entry.like, space_stated=stated)
        if entry.name not in supported_VLM:
            near = nearest(entry.name, supported_VLM)
            raise ValueError(f"{entry.where}VLMEvalKit has no model {entry.name!r}{near}")
        refuse_headers(entry)
        try:
            self._check_settings(entry, supported_VLM[entry.name])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{entry.where}settings of {entry.name}: {error}") from None

    def _check_settings(self, entry: ModelEntry, maker: Callable[..., Any]) -> None:
        """Refuse settings that its class would refuse or ignore."""
        given = {**entry.settings, **entry.resources}
        made = with_system(entry_of(entry.name), entry.prompt)
        if made.cls is FindItOpenRouter:
            api_settings(given)
            return
        if made.is_api and not math.isinf(self._budget.limit):
            raise ValueError(
                "--max-usd: what VLMEvalKit's model over an API costs is not known. Leave it out"
            )
        inspect.signature(maker).bind_partial(**given)

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        made = self.host_entry(entry)
        if hasattr(made.cls, "key_settings"):
            return key_settings(made, Answering())
        # The part in every key is the same for all variants.
        benchmark = benchmarks()[0]
        variant = benchmark.parse(benchmark.variant_names()[0])
        return key_settings(made, described(entry.name, made, variant).answering)

    def describe(self, entry: ModelEntry, variant: DatasetVariant) -> Described:
        made = self.host_entry(entry)
        if settings_from({"space": entry.space}).space is None:
            refuse_unknown_bounds(entry.name, made, variant)
        return described(entry.name, made, variant)

    def on_this_machine(self, entry: ModelEntry, answering: Answering) -> Answering:
        return on_this_machine(self.host_entry(entry), answering)

    def host_entry(self, entry: ModelEntry) -> Entry:
        """Return the model as VLMEvalKit makes it, with the space and words of its run."""
        space = settings_from({"space": entry.space}).space
        made = with_space(entry_of(entry.name, entry.settings), space)
        return with_system(made, entry.prompt)

    @property
    def version(self) -> Mapping[str, str]:
        return host_version()

    def backend(self, entry: ModelEntry) -> Backend:
        made = self.host_entry(entry)
        arguments = {**made.arguments, **entry.resources}
        if made.cls is FindItOpenRouter:
            # All calls over HTTP share one budget and one policy, so they are made here.
            given = {"timeout": self._inference.timeout, **arguments, "budget": self._budget}
            return HttpBackend(lambda: _made(entry.name, given).service, self._inference.threads)
        load = partial(load_model, entry.name, arguments)
        if self._make is not None:
            return self._make(load, self._inference)
        if made.is_api:
            return ThreadedBackend(load, self._inference.threads)
        return LocalBackend(load)


class PassedObject(VLMEvalKitBackends):
    """Answers with an object that VLMEvalKit passes: what it is, not what its name would be."""

    def __init__(self, passed: Entry) -> None:
        super().__init__(CallOptions())
        self._passed = passed

    def host_entry(self, entry: ModelEntry) -> Entry:
        return self._passed


def load_model(name: str, arguments: Mapping[str, Any]) -> ModelClient:
    """Load a model of VLMEvalKit, in any process; KeyError if there is none."""
    register()
    runs_here = not entry_of(name).is_api
    return GenerateClient(_made(name, arguments), runs_here=runs_here)


def _made(name: str, arguments: Mapping[str, Any]) -> Any:
    from vlmeval.config import supported_VLM

    with nullcontext() if entry_of(name).is_api else judged_loading():
        return supported_VLM[name](**arguments)


Asked = tuple[BackendFactory, ModelEntry]
"""What answers for a model, and the model."""

ASKED: dict[str, Asked] = {}
"""What answers for the models of this command line."""


def asked(model: str) -> Asked:
    """Return what answers for a model; for others than those of the command line, VLMEvalKit."""
    return ASKED.get(model) or (VLMEvalKitBackends(CallOptions()), ModelEntry(model))


@contextmanager
def judged_loading() -> Iterator[None]:
    """Refuse checkpoints that lack weights, by ValueError, while a model of VLMEvalKit's is made.

    Superfluous weights pass: classes load parts of a model one after the other.  What a class loads
    without transformers is not known.
    """
    if find_spec("transformers") is None:
        yield
        return
    from transformers import PreTrainedModel

    plain = vars(PreTrainedModel)["from_pretrained"]  # Not bound to the class

    def from_pretrained(cls: Any, checkpoint: Any, *arguments: Any, **options: Any) -> Any:
        load = plain.__func__
        if options.get("output_loading_info"):  # Whoever asks, judges
            return load(cls, checkpoint, *arguments, **options)
        options["output_loading_info"] = True
        model, info = load(cls, checkpoint, *arguments, **options)
        lacks = {name: info.get(name, ()) for name in ("missing_keys", "mismatched_keys")}
        checked_loading(str(checkpoint), report_of(lacks, model))
        return model

    PreTrainedModel.from_pretrained = classmethod(from_pretrained)
    try:
        yield
    finally:
        PreTrainedModel.from_pretrained = plain
