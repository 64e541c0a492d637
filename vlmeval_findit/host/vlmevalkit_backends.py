"""VLMEvalKit's models as backends of the engine, loaded by name, and their weights judged."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from ..core import suggestion
from ..engine import (
    Backend,
    Deployment,
    InVLMEvalKit,
    Loader,
    LocalBackend,
    ThreadedBackend,
    refuse_headers,
)
from ..models import GenerateClient, ModelEntry, checked_loading, report_of
from ..protocol import Answering, DatasetVariant, Described, ModelClient, settings_from
from .free_questions import FREE_QUESTION
from .model_descriptions import (
    Entry,
    described,
    entry_of,
    on_this_machine,
    refuse_unknown_bounds,
    stated_of,
    with_space,
    with_system,
)
from .model_registration import register_models


@dataclass(frozen=True, eq=False)
class VLMEvalKitModel(InVLMEvalKit):
    """A model that VLMEvalKit makes; its runner makes FindIt's, too. VLMEvalKit is imported."""

    # What it is, if VLMEvalKit passes an object: not what its name would be
    passed: Entry | None = None

    def check(self) -> None:
        from vlmeval.config import supported_VLM

        entry = self.entry
        if entry.name not in supported_VLM:
            near = suggestion(entry.name, supported_VLM)
            raise ValueError(f"{entry.where}VLMEvalKit has no model {entry.name!r}{near}")
        refuse_headers(entry)
        try:
            self._check_settings(supported_VLM[entry.name])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{entry.where}settings of {entry.name}: {error}") from None

    def _check_settings(self, maker: Callable[..., Any]) -> None:
        """Refuse settings that its class would refuse or ignore."""
        entry = self.entry
        given = {**entry.settings, **entry.resources}
        made = with_system(entry_of(entry.name), entry.prompt)
        if made.is_api and not math.isinf(self.asking.budget.limit):
            raise ValueError(
                "--max-usd: what VLMEvalKit's model over an API costs is not known. Leave it out"
            )
        inspect.signature(maker).bind_partial(**given)

    @property
    def made(self) -> Entry:
        """The model as VLMEvalKit makes it, with the space and words of its run."""
        if self.passed is not None:
            return self.passed
        entry = self.entry
        space = settings_from({"space": entry.space}).space
        made = with_space(entry_of(entry.name, entry.settings), space)
        return with_system(made, entry.prompt)

    @property
    def stated(self) -> Mapping[str, Any]:
        return stated_of(self.made)

    def describe(self, variant: DatasetVariant) -> Described:
        made = self.made
        is_stated = settings_from({"space": self.entry.space}).space is not None
        if variant is not FREE_QUESTION and not is_stated:
            refuse_unknown_bounds(self.name, made, variant)
        return described(self.name, made, variant)

    def on_this_machine(self, answering: Answering) -> Answering:
        return on_this_machine(self.made, answering)

    def ready(self) -> VLMEvalKitModel:
        return self

    @property
    def loader(self) -> Loader:
        return partial(load_model, self.name, {**self.made.arguments, **self.entry.resources})

    def backend(self) -> Backend:
        if self.made.is_api:
            return ThreadedBackend(self.loader, self.asking.calls.threads)
        return LocalBackend(self.loader)


def load_model(name: str, arguments: Mapping[str, Any]) -> ModelClient:
    """Load a model of VLMEvalKit, in any process; KeyError if there is none."""
    import vlmeval.config

    register_models(vlmeval.config)
    is_api = entry_of(name).is_api
    with nullcontext() if is_api else judged_loading():
        model = vlmeval.config.supported_VLM[name](**arguments)
    return GenerateClient(model, runs_here=not is_api)


ASKED: dict[str, Deployment] = {}
"""What answers for the models of this command line."""


def asked(model: str) -> Deployment:
    """Return what answers for a model; for others than those of the command line, VLMEvalKit."""
    return ASKED.get(model) or VLMEvalKitModel(ModelEntry(model))


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
