"""VLMEvalKit's models under the engine: loaded by name, asked by units of work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..engine.asking import ModelAsker
from ..engine.config import Inference, ModelEntry
from ..engine.executors import Executor, Loader, LocalExecutor, ThreadsExecutor
from ..identity import Answering, Described
from ..variant import Variant, nearest, parse
from . import register
from .entries import asked_with, described, entry_of, on_this_machine, with_space
from .runner import host_version

_ANY = "FindIt_Pascal_xyxy_json"
"""What is part of every key is the same on every variant."""

MakeExecutor = Callable[[Loader, Inference], Executor]


class VLMEvalKitHost:
    """Answers with the models that VLMEvalKit knows, ours among them.

    Args:
        inference: how calls are made.
        make: an executor from a loader; None answers in this process.

    Raises:
        ImportError: VLMEvalKit is not installed.
    """

    def __init__(self, inference: Inference, make: MakeExecutor | None = None) -> None:
        register()
        self._inference = inference
        self._make = make

    def check(self, entry: ModelEntry) -> None:
        from vlmeval.config import supported_VLM

        from .local import make_known

        if entry.checkpoint is not None:
            make_known(entry.name, entry.checkpoint, entry.row)
        if entry.name not in supported_VLM:
            where = f"line {entry.line}: " if entry.line else ""
            raise ValueError(
                f"{where}VLMEvalKit has no model {entry.name!r}{nearest(entry.name, supported_VLM)}"
            )

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        made = entry_of(entry.name, entry.settings)
        return asked_with(made, described(entry.name, made, parse(_ANY)).answering)

    def describe(self, entry: ModelEntry, variant: Variant) -> Described:
        made = with_space(entry_of(entry.name, entry.settings), entry.space)
        return described(entry.name, made, variant)

    def on_this_machine(self, entry: ModelEntry, found: Answering) -> Answering:
        return on_this_machine(entry_of(entry.name, entry.settings), found)

    @property
    def version(self) -> Mapping[str, str]:
        return host_version()

    def executor(self, entry: ModelEntry) -> Executor:
        made = with_space(entry_of(entry.name), entry.space)
        arguments = {**made.arguments, **entry.settings, **entry.resources}
        load = partial(load_model, entry.name, arguments)
        if self._make is not None:
            return self._make(load, self._inference)
        if made.is_api:
            return ThreadsExecutor(lambda: [load()], self._inference.threads)
        return LocalExecutor(load)


def load_model(name: str, arguments: Mapping[str, Any]) -> ModelAsker:
    """Load one of VLMEvalKit's models; another process may do it.

    Raises:
        ImportError: VLMEvalKit is not installed.
        KeyError: it has no such model.
    """
    register()
    from vlmeval.config import supported_VLM

    return ModelAsker(supported_VLM[name](**arguments))
