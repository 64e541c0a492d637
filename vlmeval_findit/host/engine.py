"""VLMEvalKit's models under the engine: loaded by name, asked by units of work."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..answers import Asker
from ..engine.asking import ModelAsker
from ..engine.config import Inference, ModelEntry
from ..engine.executors import Executor, Loader, LocalExecutor, ThreadsExecutor
from ..models.spending import Budget
from ..variant import nearest
from . import register

MakeExecutor = Callable[[Loader, Inference], Executor]


class VLMEvalKitHost:
    """Answers with the models that VLMEvalKit knows, ours among them.

    Args:
        inference: how calls are made.
        make: an executor from a loader; None answers in this process.
        budget: what all models over HTTP may spend together (None: only count).

    Raises:
        ImportError: VLMEvalKit is not installed.
    """

    def __init__(
        self,
        inference: Inference,
        make: MakeExecutor | None = None,
        budget: Budget | None = None,
    ) -> None:
        register()
        self._inference = inference
        self._make = make
        self._budget = budget or Budget()

    def check(self, entry: ModelEntry) -> None:
        from vlmeval.config import supported_VLM

        where = f"line {entry.line}: " if entry.line else ""
        if entry.name not in supported_VLM:
            raise ValueError(
                f"{where}VLMEvalKit has no model {entry.name!r}{nearest(entry.name, supported_VLM)}"
            )
        if entry.headers:
            raise ValueError(f"{where}headers of {entry.name} are for servers (--endpoints)")
        try:
            self._check_settings(entry, supported_VLM[entry.name])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}settings of {entry.name}: {error}") from None

    def _check_settings(self, entry: ModelEntry, maker: Callable[..., Any]) -> None:
        """Refuse what its class would refuse when it is loaded, or would not heed."""
        given = {**entry.settings, **entry.resources}
        if _is_ours(maker):
            from .api import settings_of

            if "max_usd" in given or "budget" in given:
                raise ValueError("max_usd is the whole sweep's: beside `models`, or --max-usd")
            settings_of(given)
            return
        if _is_api(maker) and not math.isinf(self._budget.limit):
            raise ValueError("what VLMEvalKit's own model over an API costs is not known: no limit")
        inspect.signature(maker).bind_partial(**given)

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
        from vlmeval.config import supported_VLM

        maker = supported_VLM[entry.name]
        arguments = {**entry.settings, **entry.resources}
        if _is_ours(maker):
            # Calls over HTTP are made here, whoever else works: one budget, one policy.
            arguments = {"timeout": self._inference.timeout, **arguments, "budget": self._budget}
        load = partial(load_model, entry.name, arguments)
        if self._make is not None and not _is_ours(maker):
            return self._make(load, self._inference)
        if _is_api(maker):
            return ThreadsExecutor(lambda: [load()], self._inference.threads)
        return LocalExecutor(load)


def load_model(name: str, arguments: Mapping[str, Any]) -> Asker:
    """Load one of VLMEvalKit's models; another process may do it.

    Raises:
        ImportError: VLMEvalKit is not installed.
        KeyError: it has no such model.
    """
    register()
    from vlmeval.config import supported_VLM

    model = supported_VLM[name](**arguments)
    asker: Asker | None = getattr(model, "asker", None)
    return ModelAsker(model) if asker is None else asker


def _is_api(maker: Callable[..., Any]) -> bool:
    return bool(getattr(getattr(maker, "func", maker), "is_api", False))


def _is_ours(maker: Callable[..., Any]) -> bool:
    """Whether a maker is of one of our models over HTTP."""
    from .api import API_CLASSES

    return getattr(maker, "func", maker) in API_CLASSES
