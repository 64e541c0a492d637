"""Several hosts as one: each model of a sweep is answered by its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.identity import Answering, Described
from ..core.question import Question
from .answering import Host
from .backend import Backend
from .config import ModelEntry


@dataclass(frozen=True, slots=True)
class Hosts:
    """``of`` says whose a model is; ``main`` is the host whose version identities record."""

    of: Callable[[ModelEntry], Host]
    main: Host

    def check(self, entry: ModelEntry) -> None:
        self.of(entry).check(entry)

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        return self.of(entry).settings(entry)

    def describe(self, entry: ModelEntry, question: Question) -> Described:
        return self.of(entry).describe(entry, question)

    def on_this_machine(self, entry: ModelEntry, found: Answering) -> Answering:
        return self.of(entry).on_this_machine(entry, found)

    @property
    def version(self) -> Mapping[str, str]:
        return self.main.version

    def backend(self, entry: ModelEntry) -> Backend:
        return self.of(entry).backend(entry)
