"""OpenAI-compatible servers as the host of a sweep: ``--endpoints URL,URL``.  No VLMEvalKit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..models.client import ChatClient, Endpoint
from ..models.services import server_key, server_space, template_fields
from ..scoring import settings_from
from ..spaces import Space
from ..variant import Variant, parse
from .asking import Asker
from .config import Inference, ModelEntry
from .endpoints import Served, ServerAsker
from .executors import Executor, ThreadsExecutor

_ANY = "FindIt_Pascal_xyxy_json"
"""Whether a space needs bounds that only the user knows shows on any variant."""


class ServersHost:
    """Answers with servers that all serve the same model; each gets its share of the calls.

    Args:
        urls: base URLs up to and with ``/v1``.
        inference: how calls are made; ``threads`` at a time to each server.

    Raises:
        ValueError: a URL is none.
    """

    def __init__(self, urls: Sequence[str], inference: Inference) -> None:
        self._endpoints = [Endpoint(url, server_key()) for url in urls]
        self._inference = inference

    def check(self, entry: ModelEntry) -> None:
        """Servers know their models themselves; the space of the replies must be known here."""
        _space_of(entry)(parse(_ANY))

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        # Served by another program, the same weights may say something else.
        return {**entry.settings, "served": entry.served or entry.name}

    def space(self, entry: ModelEntry) -> Mapping[str, Any] | None:
        if entry.space is None or isinstance(entry.space, Mapping):
            return entry.space
        return {"kind": entry.space}

    def records_space(self, entry: ModelEntry) -> bool:
        return True

    def executor(self, entry: ModelEntry) -> Executor:
        given = {k: v for k, v in entry.settings.items() if k != "max_new_tokens"}
        model = Served(
            name=entry.name,
            served=entry.served or entry.name,
            space=_space_of(entry),
            fields={**template_fields(entry.name), **given},
        )

        def askers() -> list[Asker]:
            clients = [ChatClient(endpoint, attempts=1) for endpoint in self._endpoints]
            turns = [clients[at:] + clients[:at] for at in range(len(clients))]
            return [ServerAsker(model, turn) for turn in turns]

        return ThreadsExecutor(askers, self._inference.threads)


def _space_of(entry: ModelEntry) -> Callable[[Variant], Space]:
    """The space of an entry's replies by variant: what the sweep or the environment says first."""
    return server_space(entry.name, settings_from({"space": entry.space}).space)
