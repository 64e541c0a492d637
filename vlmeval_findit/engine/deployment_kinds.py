"""All kinds of deployments, and which kind answers for an entry."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..benchmarks import baselines, benchmark_of
from ..core import (
    ended,
    host_version,
    install_command,
    may_have_model,
    model_names,
    no_effect,
    package_folder,
)
from ..models import (
    MODELS,
    WINDOW,
    ModelEntry,
    find_model,
    how_to_ask,
    known_model,
    local_names,
    meant_model,
    same_checkpoint,
)
from ..protocol import PROMPTS_VARIABLE, Answering, DatasetVariant, Described
from .backend import Backend, Loader
from .calls import of_answers
from .deployment import CONCURRENT, IN_WORDS, Asking, Deployment, InProcess, at_its_place
from .over_http import AtOpenRouter, AtProvider, AtServer, InBatches, refuse_headers
from .own_models import Local, LocalBaseline, LocalCheckpoint
from .ray_backend import RayBackend
from .served_model import Served

log = logging.getLogger(__name__)


class InVLMEvalKit(InProcess):
    """A model of VLMEvalKit's, as far as it is known without importing VLMEvalKit."""

    called = "a model of VLMEvalKit's"
    uses = IN_WORDS | CONCURRENT | {"use_vllm"}

    @property
    def version(self) -> Mapping[str, str]:
        return host_version()

    def check(self) -> None:
        super().check()
        with at_its_place(self.entry):
            _refuse_unknown(self.name)
        refuse_headers(self.entry)

    @property
    def stated(self) -> Mapping[str, Any]:
        prompt = self.entry.prompt
        words = {} if prompt is None or prompt.system is None else {"system_prompt": prompt.system}
        return of_answers({**self.entry.settings, **words})

    def describe(self, variant: DatasetVariant) -> Described:
        row = find_model(self.name)
        space = row.space(variant).as_dict() if row else None
        return Described(Answering(in_vlmevalkit=True), space, space)

    @property
    def loader(self) -> Loader:
        return self.ready().loader

    def backend(self) -> Backend:
        return self.ready().backend()

    def ready(self) -> InProcess:
        return self.asking.host()(self)


def _refuse_unknown(name: str) -> None:
    """Refuse a model that VLMEvalKit lacks; say where ours is the same checkpoint."""
    ours = " or ".join(same_checkpoint(name))
    same = f"{ours} is the same checkpoint, asked as the protocol says"
    if not may_have_model(name):
        meant = f": {same}" if ours else meant_model(name, all_models())
        said = f"unknown model {name!r}{meant}"
        if not said.endswith("?"):
            said = f"{ended(said)} {how_to_ask(name)}"
        if package_folder() is None:
            theirs = f"For a model of VLMEvalKit's, install it: {install_command('run')}"
            said = f"{ended(said)} {theirs}"
        raise ValueError(said)
    if ours and find_model(name) is not None:  # else its space is refused, in the same words
        log.warning("%s is VLMEvalKit's class, with its settings; %s", name, same)


def all_models() -> list[str]:
    """Return the names that ``--model`` takes: baselines, FindIt's, and VLMEvalKit's."""
    at_openrouter = [row.entry for row in MODELS.values() if row.api]
    return [*baselines(), *local_names(), *at_openrouter, *model_names()]


_OF_CLUSTERS = frozenset({"executor", "replicas", "gpus"})


@dataclass(frozen=True, eq=False)
class OnRay(InProcess):
    """A model that a Ray cluster runs instead of this machine; in all else as without it."""

    without: InProcess = field(kw_only=True)

    called = "a model on a Ray cluster"
    uses = Local.uses | _OF_CLUSTERS

    def has_effect(self, option: str) -> bool:
        return option in _OF_CLUSTERS or self.without.has_effect(option)

    @property
    def what(self) -> str:
        return self.without.what

    def check(self) -> None:
        self.without.check()

    def check_options(self) -> None:
        self.without.check_options()

    @property
    def stated(self) -> Mapping[str, Any]:
        return self.without.stated

    def describe(self, variant: DatasetVariant) -> Described:
        return self.without.describe(variant)

    def on_this_machine(self, answering: Answering) -> Answering:
        return self.without.on_this_machine(answering)

    @property
    def version(self) -> Mapping[str, str]:
        return self.without.version

    @property
    def loader(self) -> Loader:
        return self.without.loader

    @property
    def window(self) -> int:
        # Replicas share out windows: one batch each, so that none is left with all the work.
        return max(1, self.without.window // WINDOW)

    def backend(self) -> Backend:
        return RayBackend(self.loader, self.asking.calls)

    def ready(self) -> InProcess:
        return replace(self, without=self.without.ready())


# In the order in which messages name them
KINDS: tuple[type[Deployment], ...] = (
    LocalBaseline,
    Local,
    LocalCheckpoint,
    Served,
    OnRay,
    AtOpenRouter,
    AtServer,
    AtProvider,
    InBatches,
    InVLMEvalKit,
)


def deployment_of(entry: ModelEntry, asking: Asking | None = None) -> Deployment:
    """Return who answers for an entry; nothing is looked up on the network.

    A name in VLMEvalKit's list means VLMEvalKit's model.

    Raises:
        ValueError: a baseline is to be asked at a server.
    """
    asking = asking or Asking()
    kind = _kind_of(entry, asking)
    made = kind(entry, asking)
    if asking.on_ray and isinstance(made, InProcess):
        return OnRay(entry, asking, without=made)
    return made


def is_baseline(name: str) -> bool:
    """Return whether a name is of a baseline, which answers without a model."""
    row = find_model(name)
    if row is not None and (row.api is not None or row.local is not None):
        return False  # Without importing all benchmarks
    return name in baselines()


def _kind_of(entry: ModelEntry, asking: Asking) -> type[Deployment]:
    if asking.batch is not None:
        return InBatches
    option = "provider" if entry.provider else "base_url" if entry.base_url else None
    if is_baseline(entry.name):
        if option:
            why = f"{entry.name} is a baseline and calls no server"
            raise ValueError(no_effect(asking.spelled(option), why))
        return LocalBaseline
    if option:
        return AtProvider if entry.provider else AtServer
    if entry.checkpoint is not None:
        return LocalCheckpoint if asking.serving is None else Served
    if may_have_model(entry.name):
        return InVLMEvalKit
    if entry.name in local_names():
        return Local if asking.serving is None else Served
    row = find_model(entry.name)
    is_api = row is not None and row.api is not None and row.entry == entry.name
    return AtOpenRouter if is_api else InVLMEvalKit


# --- what is refused before the first call --------------------------------------------------------

# Options that not every kind has, by their names in :class:`.ModelOptions`
OF_SOME = frozenset[str]().union(*(kind.uses for kind in KINDS))


def has_effect(deployment: Deployment, option: str) -> bool:
    """Return whether an option changes something of a model."""
    return option not in OF_SOME or deployment.has_effect(option)


def users_of(option: str) -> list[type[Deployment]]:
    """Return the kinds that have an option."""
    return [kind for kind in KINDS if option in kind.uses]


def why_without_effect(deployment: Deployment, option: str) -> str:
    """Say who uses an option that changes nothing of a model."""
    using = ", ".join(kind.called for kind in users_of(option))
    return f"{deployment.name} is {deployment.what}; only these use it: {using}"


def check_model(
    deployment: Deployment, variants: Iterable[DatasetVariant], *, awaited: bool = False
) -> None:
    """Refuse a model that cannot be asked, and a prompt that fits none of its variants.

    ``awaited``: its checkpoint, if it has one, is not there yet, and no file of it is looked at.

    Raises ValueError.
    """
    entry = deployment.entry
    with at_its_place(entry):
        if entry.like is not None:
            known_model(entry.like, deployment.asking.spelled("like"))
        _check_prompt(entry, variants)
    if awaited and entry.checkpoint is not None:
        deployment.check_options()
    else:
        deployment.check()


def _check_prompt(entry: ModelEntry, variants: Iterable[DatasetVariant]) -> None:
    """Refuse a model's system text or template that cannot be read, or that fits no query."""
    prompt = entry.prompt
    if prompt is None:
        return
    if prompt.template is not None and os.environ.get(PROMPTS_VARIABLE):
        raise ValueError(
            "--prompt-template and --prompts (FINDIT_PROMPTS) exclude each other: leave one out"
        )
    for variant in variants:
        prompt.check(benchmark_of(variant))
