"""VLMEvalKit's models under the engine: loaded by name, asked by units of work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..engine.asking import ModelAsker
from ..engine.config import Inference, ModelEntry
from ..engine.executors import Executor, Loader, LocalExecutor, ThreadsExecutor
from ..variant import nearest
from . import register

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

        if entry.name not in supported_VLM:
            where = f"line {entry.line}: " if entry.line else ""
            raise ValueError(
                f"{where}VLMEvalKit has no model {entry.name!r}{nearest(entry.name, supported_VLM)}"
            )

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        return entry.settings

    def space(self, entry: ModelEntry) -> Mapping[str, Any] | None:
        if entry.space is not None:
            return entry.space if isinstance(entry.space, Mapping) else {"kind": entry.space}
        # Not at the top: our datasets subclass the host's, which must be imported before.
        from .datasets import stock_bounds

        return stock_bounds(entry.name)

    def records_space(self, entry: ModelEntry) -> bool:
        from .datasets import records_space

        return records_space(entry.name)

    def executor(self, entry: ModelEntry) -> Executor:
        load = partial(load_model, entry.name, {**entry.settings, **entry.resources})
        if self._make is not None:
            return self._make(load, self._inference)
        if _is_api(entry.name):
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


def _is_api(name: str) -> bool:
    from vlmeval.config import supported_VLM

    entry = supported_VLM[name]
    return bool(getattr(getattr(entry, "func", entry), "is_api", False))
