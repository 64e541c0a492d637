"""Several hosts as one: each model of a sweep is answered by its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ..core.files import file_sha256, sha256_of
from ..core.identity import Answering, Described
from ..core.plugins import named_files
from ..core.question import Question
from ..core.vlmevalkit import host_version, package_folder
from ..models.revision import known_revision
from ..models.table import find_model
from .answering import Host
from .backend import Backend
from .config import ModelEntry


@dataclass(frozen=True, slots=True)
class Hosts:
    """``of`` says whose a model is; ``version`` is the host's that identities record."""

    of: Callable[[ModelEntry], Host]
    version: Mapping[str, str]

    def check(self, entry: ModelEntry) -> None:
        self.of(entry).check(entry)

    def answered_by(self, entry: ModelEntry, question: Question) -> object:
        return self.of(entry).answered_by(entry, question)

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        return self.of(entry).settings(entry)

    def describe(self, entry: ModelEntry, question: Question) -> Described:
        return self.of(entry).describe(entry, question)

    def on_this_machine(self, entry: ModelEntry, found: Answering) -> Answering:
        return self.of(entry).on_this_machine(entry, found)

    def backend(self, entry: ModelEntry) -> Backend:
        return self.of(entry).backend(entry)


class LateHost(Hosts):
    """VLMEvalKit, which is imported when the first of its models is asked: that takes twenty
    seconds, and of a finished sweep none is.

    Args:
        make: imports it.
    """

    def __init__(self, make: Callable[[], Host]) -> None:
        made = cache(make)
        super().__init__(lambda entry: made(), host_version())

    def answered_by(self, entry: ModelEntry, question: Question) -> object:
        return answered_here(entry)


def answered_here(entry: ModelEntry) -> object:
    """All that decides how VLMEvalKit answers for a model, as of :meth:`.Host.answered_by`."""
    revisions = {one: known_revision(one) for one in sorted(_checkpoints(entry))}
    files = [file_sha256(Path(path)) for path in named_files()]
    return [repr(replace(entry, line=0)), host_version(), _package_state(), revisions, files]


def _checkpoints(entry: ModelEntry) -> Iterator[str]:
    """The folders or identifiers of weights that an entry, or its row of the table, names."""
    row = find_model(entry.row or entry.name)
    local = row.local.checkpoints.values() if row is not None and row.local is not None else ()
    for named in (entry.checkpoint, entry.settings.get("model_path"), *local):
        if isinstance(named, str):
            yield named


@cache
def _package_state() -> str:
    """A hash of the names, sizes and times of VLMEvalKit's files."""
    folder = package_folder()
    paths = sorted(folder.rglob("*.py")) if folder is not None else []
    states = ((path, path.stat()) for path in paths)
    return sha256_of(*(f"{path} {s.st_size} {s.st_mtime_ns}\n".encode() for path, s in states))
