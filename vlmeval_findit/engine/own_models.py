"""Models that a process of ours runs: FindIt's on this machine, and its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..benchmarks import baseline_for
from ..core import alternatives, may_have_model, no_effect
from ..models import (
    ModelEntry,
    ModelRow,
    RunSettings,
    TimedClient,
    adapter_of,
    check_like,
    describe_local_run,
    engine_of,
    load_local_client,
    local_names,
    name_taken,
    on_this_machine,
    options_to,
    refuse_missing,
    refuse_settings,
    refuse_unloadable,
    refuse_without_peft,
    row_of_checkpoint,
    row_to_run,
    run_settings,
    window_of,
    with_one_limit,
)
from ..protocol import Answering, Batch, CallResult, DatasetVariant, Described, settings_from
from ..serving import visible_gpus
from .backend import Loader
from .calls import of_answers
from .deployment import IN_WORDS, SAMPLED, InProcess, at_its_place
from .over_http import refuse_headers

# --- what a run records, by the arguments of VLMEvalKit's entries ---------------------------------


def describe_baseline(variant: DatasetVariant, baseline: str = "FullImage") -> Described:
    """Describe a run of a baseline; ValueError if it cannot answer the variant."""
    row = baseline_for(baseline, variant)
    who = {"baseline": row.answer.__name__}
    return Described(Answering("FindItBaseline", settings=who), row.space, row.space, who)


def describe_local(
    variant: DatasetVariant,
    like: str | None = None,
    model_path: str | None = None,
    **settings: Any,
) -> Described:
    """Describe a run of a model on this machine; nothing is loaded.

    Raises ValueError for an unknown row or setting.
    """
    row, checkpoint = row_to_run(like, model_path, settings.get("space"))
    return describe_local_run(row, checkpoint, variant, run_settings(settings))


def local_on_this_machine(answering: Answering, **arguments: Any) -> Answering:
    """Add the device and the hub's revision; the model is not loaded."""
    settings = with_one_limit(arguments).items()
    given = {k: v for k, v in settings if k in RunSettings.__dataclass_fields__}
    return on_this_machine(answering, run_settings(given))


# --- who answers ----------------------------------------------------------------------------------


class BaselineClient(TimedClient):
    """A baseline of a benchmark, by name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @property
    def called(self) -> str:
        return self._name

    def answers_together(self) -> bool:
        return False

    def replies(self, batch: Batch) -> list[CallResult]:
        (message,), (variant,) = batch.messages, batch.variants
        return [CallResult(*baseline_for(self._name, variant).answer(message, variant))]


class LocalBaseline(InProcess):
    """A model without weights."""

    called = "a baseline"

    @property
    def loader(self) -> Loader:
        return partial(BaselineClient, self.name)

    def check(self) -> None:
        super().check()
        entry = self.entry
        refuse_headers(entry)
        with at_its_place(entry, f"settings of {self.name}: "):
            for name in (*entry.settings, *entry.resources):
                raise ValueError(no_effect(name, "a baseline has none"))

    @property
    def stated(self) -> Mapping[str, Any]:
        return {}

    def describe(self, variant: DatasetVariant) -> Described:
        return describe_baseline(variant, self.name)


class Local(InProcess):
    """A model of FindIt's table on this machine."""

    called = "a model on this machine"
    uses = IN_WORDS | SAMPLED | options_to("resources") | {"dtype", "logprobs"}

    def check(self) -> None:
        super().check()
        with at_its_place(self.entry):
            self._check_files()

    def check_options(self) -> None:
        super().check_options()
        with at_its_place(self.entry):
            if self.asking.asks and not self.asking.on_ray:
                refuse_device(self.entry)
        refuse_headers(self.entry)
        with at_its_place(self.entry, f"settings of {self.name}: "):
            _run_settings({**self.entry.settings, **self.entry.resources})
            _refuse_answers_of(self.entry.resources)

    def _check_files(self) -> None:
        row, checkpoint = local_names()[self.name]
        refuse_missing(checkpoint)
        self._refuse_loading(row, checkpoint)

    def _refuse_loading(self, row: ModelRow, checkpoint: str) -> None:
        """Refuse a checkpoint that this process cannot load, or not as its settings say."""
        stated = _run_settings(self._settings)
        refuse_loading(row, checkpoint, stated, self.name, elsewhere=self.asking.on_ray)

    @property
    def stated(self) -> Mapping[str, Any]:
        return of_answers(self._settings)

    def describe(self, variant: DatasetVariant) -> Described:
        return describe_local(variant, **self.arguments)

    def on_this_machine(self, answering: Answering) -> Answering:
        return local_on_this_machine(answering, **self.arguments)

    @property
    def loader(self) -> Loader:
        return partial(load_local_client, **self.arguments, **self._resources)

    @property
    def window(self) -> int:
        return window_of(self._resources.get("batch_size"))

    @property
    def _resources(self) -> Mapping[str, Any]:
        """Its resources, with those that are stated of all models."""
        batch_size = self.asking.calls.batch_size
        of_all = {} if batch_size is None else {"batch_size": batch_size}
        return {**of_all, **self.entry.resources}

    @property
    def _settings(self) -> Mapping[str, Any]:
        return with_one_limit(self.entry.settings)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments on which its answers depend, with which it is loaded."""
        return self._arguments(*local_names()[self.name])

    def _arguments(self, row: ModelRow, checkpoint: str) -> Mapping[str, Any]:
        settings = self._settings
        stated = _run_settings({**settings, **self.entry.resources})
        # Decided here, so that a replica elsewhere does not decide otherwise
        engine = engine_of(row, checkpoint, stated)
        given = {"like": row.name, "model_path": checkpoint, **settings, "engine": engine}
        return _in_its_space(self.entry, given)


def refuse_loading(
    row: ModelRow,
    checkpoint: str,
    settings: RunSettings,
    name: str = "",
    *,
    elsewhere: bool = False,
) -> None:
    """Refuse a checkpoint that cannot be loaded, or not as its settings say.

    Arguments and errors are those of :func:`.refuse_settings`.
    """
    refuse_settings(row, checkpoint, settings, name=name, elsewhere=elsewhere)
    refuse_unloadable(checkpoint)
    refuse_without_peft(checkpoint)
    adapter_of(checkpoint, settings.merge_adapter)


class LocalCheckpoint(Local):
    """A user's checkpoint on this machine."""

    called = "a checkpoint on this machine"
    uses = Local.uses | {"like"}

    @property
    def checkpoint(self) -> str:
        assert self.entry.checkpoint is not None
        return self.entry.checkpoint

    def check_options(self) -> None:
        super().check_options()
        with at_its_place(self.entry):
            check_like(self.name, self.checkpoint, self.entry.like)

    def _check_files(self) -> None:
        refuse_other_checkpoint(self.entry)
        self._refuse_loading(self._row, self.checkpoint)

    @property
    def _row(self) -> ModelRow:
        entry = self.entry
        stated = entry.space is not None
        return row_of_checkpoint(entry.name, self.checkpoint, entry.like, space_stated=stated)

    @property
    def arguments(self) -> Mapping[str, Any]:
        return self._arguments(self._row, self.checkpoint)


def refuse_other_checkpoint(entry: ModelEntry) -> None:
    """Refuse a checkpoint that fits no row, or whose name is of a model of VLMEvalKit's."""
    assert entry.checkpoint is not None
    stated = entry.space is not None
    row_of_checkpoint(entry.name, entry.checkpoint, entry.like, space_stated=stated)
    if may_have_model(entry.name):
        raise ValueError(name_taken(entry.name, entry.checkpoint))


# Exists where a machine may have AMD's GPUs, which torch calls cuda, too
AMD_DRIVER = Path("/dev/kfd")


def refuse_device(entry: ModelEntry) -> None:
    """Refuse a model's NVIDIA GPU that this machine lacks; torch checks other devices."""
    device = entry.resources.get("device")
    if device is None:
        return
    kind, _, number = device.partition(":")
    if kind == "gpu" or (number and not number.isdecimal()):
        raise ValueError(f"--device {device}: unknown device; devices are cpu, cuda, cuda:1, mps …")
    if kind == "cuda" and not AMD_DRIVER.exists():
        count = len(visible_gpus())
        if count <= int(number or 0):
            here = [f"cuda:{place}" for place in range(count)] or ["cpu"]
            raise ValueError(f"--device {device}: not here; type --device {alternatives(here)}")


def _refuse_answers_of(resources: Mapping[str, Any]) -> None:
    """Refuse resources on which answers depend: no run records them."""
    for name in resources.keys() - options_to("resources"):
        raise ValueError(
            f"{name} stands in `resources`, which no run records, and answers depend on it. Write "
            "it in `settings`"
        )


def _run_settings(arguments: Mapping[str, Any]) -> RunSettings:
    """Read the settings among the arguments of a model on this machine."""
    given = {k: v for k, v in arguments.items() if k not in ("like", "model_path")}
    return run_settings(given)


def _in_its_space(entry: ModelEntry, arguments: dict[str, Any]) -> Mapping[str, Any]:
    space = settings_from({"space": entry.space}).space
    return arguments if space is None else {**arguments, "space": space}
