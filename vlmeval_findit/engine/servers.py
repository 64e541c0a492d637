"""OpenAI-compatible servers as the host of a sweep: ``--endpoints URL,URL``.  No VLMEvalKit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .asking import Asker
from .config import Inference, ModelEntry
from .endpoints import ServerAsker, check_url
from .executors import Executor, ThreadsExecutor


class ServersHost:
    """Answers with servers that all serve the same model; each gets its share of the calls.

    Args:
        urls: base URLs up to and with ``/v1``.
        inference: how calls are made; ``threads`` at a time to each server.

    Raises:
        ValueError: a URL is none.
    """

    def __init__(self, urls: Sequence[str], inference: Inference) -> None:
        self._urls = [check_url(url) for url in urls]
        self._inference = inference

    def check(self, entry: ModelEntry) -> None:
        """Servers know their models themselves: the first call finds out."""

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        # Served by another program, the same weights may say something else.
        return {**entry.settings, "served": entry.served or entry.name}

    def space(self, entry: ModelEntry) -> Mapping[str, Any] | None:
        if entry.space is None or isinstance(entry.space, Mapping):
            return entry.space
        return {"kind": entry.space}

    def records_space(self, entry: ModelEntry) -> bool:
        return False

    def executor(self, entry: ModelEntry) -> Executor:
        served = entry.served or entry.name

        def askers() -> list[Asker]:
            turns = [self._urls[at:] + self._urls[:at] for at in range(len(self._urls))]
            return [ServerAsker(urls, served) for urls in turns]

        return ThreadsExecutor(askers, self._inference.threads)
