"""Rows that other packages and files add to our tables, and where each comes from.

Two origins: entry points of installed packages (``vlmeval_findit.models`` and so on: one row, or
several), and Python files that FINDIT_PLUGINS names, which have attributes ``MODELS`` and so on.
Nothing is looked for before a name is none of ours (:class:`.plugin_table.Table`), so whoever uses
our rows alone pays nothing.  What cannot be used is reported once and left out.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from .files import sha256_of
from .redaction import scrub

log = logging.getLogger(__name__)

FILES_VARIABLE = "FINDIT_PLUGINS"
"""Paths with ``os.pathsep`` between them: workers and other programs have them from it."""


class Group(Enum):
    """A table that rows can be added to; the value is the end of its entry points' group."""

    MODELS = "models"
    PROVIDERS = "providers"
    BENCHMARKS = "benchmarks"
    SPACES = "spaces"
    REPRESENTATIONS = "representations"
    IMPORTERS = "importers"

    @property
    def entry_points(self) -> str:
        """The group of entry points."""
        return f"vlmeval_findit.{self.value}"


class PluginError(ValueError):
    """A plug-in that somebody named cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """Where a row comes from.

    ``name`` is the package, or the file's name; ``version`` the package's, or ``sha256:`` and the
    beginning of the file's; ``origin`` says where it was found.
    """

    name: str
    version: str
    origin: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.version, f"({self.origin})")))


class Offer(NamedTuple):
    """A row that a plug-in would add."""

    plugin: Plugin
    row: object


class Later(NamedTuple):
    """A row that is made when the rows before it are there."""

    make: Callable[[], object]


class Broken(NamedTuple):
    """What of a plug-in cannot be used: the group, what of it, and why.

    ``group`` is None where a whole file is meant.
    """

    group: Group | None
    plugin: Plugin
    what: str
    why: str

    def __str__(self) -> str:
        where = f", {self.group.value}" if self.group else ""
        said = f" {self.what}" if self.what else ""
        return f"plug-in {self.plugin}{where}{said}: {self.why}"


class _State:
    """What was found so far in this process."""

    def __init__(self) -> None:
        self.loading = 0
        self.entry_points: dict[Group, tuple[Offer, ...]] = {}
        self.files: dict[str, tuple[Plugin, ModuleType] | None] = {}
        self.broken: dict[Broken, None] = {}
        self.reports = True


_STATE = _State()

lock = threading.RLock()
"""One for all tables: a plug-in's row of one may need a row of another."""


def is_loading() -> bool:
    """Whether plug-ins are being loaded: what they offer now may not be all."""
    return _STATE.loading > 0


def named_files() -> tuple[str, ...]:
    """The files of FINDIT_PLUGINS, each once however it is written."""
    said = filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep))
    return tuple(dict.fromkeys(str(Path(path).resolve()) for path in said))


def offered(group: Group) -> tuple[Offer, ...]:
    """What plug-ins would add to a table: packages by their names, then files in their order."""
    with lock:
        from_files = [offer for path in named_files() for offer in _of_file(path, group)]
        return (*_of_entry_points(group), *from_files)


def loaded_files() -> list[ModuleType]:
    """The modules of the files that were loaded."""
    with lock:
        return [found[1] for found in _STATE.files.values() if found is not None]


def report(broken: Broken) -> None:
    """Remember what is left out, and say it once."""
    with lock:
        if broken in _STATE.broken:
            return
        _STATE.broken[broken] = None
        if _STATE.reports:
            log.warning("%s: left out", scrub(str(broken)))


def reported() -> list[Broken]:
    """Everything that was left out so far."""
    return list(_STATE.broken)


@contextmanager
def unreported() -> Iterator[None]:
    """Only remember what is left out: whoever does this says it."""
    before, _STATE.reports = _STATE.reports, False
    try:
        yield
    finally:
        _STATE.reports = before


def forget() -> None:
    """Look for plug-ins anew, as a new process would."""
    global _STATE
    with lock:
        _STATE = _State()


def stamp() -> tuple[object, ...]:
    """What is the same as long as the same plug-ins are asked."""
    return (_STATE, named_files())


@contextmanager
def _loading() -> Iterator[None]:
    _STATE.loading += 1
    try:
        yield
    finally:
        _STATE.loading -= 1


def _of_entry_points(group: Group) -> tuple[Offer, ...]:
    if group not in _STATE.entry_points:
        _STATE.entry_points[group] = ()  # what its packages themselves find meanwhile
        with _loading():
            found = importlib.metadata.entry_points(group=group.entry_points)
            ordered = sorted(found, key=lambda one: (one.dist.name if one.dist else "", one.name))
            _STATE.entry_points[group] = tuple(
                offer for one in ordered for offer in _of_entry_point(one, group)
            )
    return _STATE.entry_points[group]


def _of_entry_point(entry: importlib.metadata.EntryPoint, group: Group) -> Sequence[Offer]:
    name, version = (entry.dist.name, entry.dist.version) if entry.dist else (entry.module, "")
    plugin = Plugin(name, version, f"entry point {group.entry_points}: {entry.name}")
    try:
        return [Offer(plugin, row) for row in _rows(entry.load())]
    except (Exception, SystemExit) as error:
        report(Broken(group, plugin, entry.value, why(error)))
        return ()


def _of_file(path: str, group: Group) -> Sequence[Offer]:
    if path not in _STATE.files:
        _STATE.files[path] = None
        with _loading():
            _STATE.files[path] = _loaded(path)
    found = _STATE.files[path]
    if found is None:
        return ()
    plugin, module = found
    value = getattr(module, group.name, ())
    if group is Group.BENCHMARKS and hasattr(module, "PREFIX"):
        return [Offer(plugin, module)]
    try:
        return [Offer(plugin, row) for row in _rows(value)]
    except Exception as error:
        report(Broken(group, plugin, group.name, why(error)))
        return ()


def _loaded(path: str) -> tuple[Plugin, ModuleType] | None:
    """A file as a module; it is run as it was read, and leaves nothing beside it."""
    plugin = Plugin(Path(path).name, "", path)
    try:
        source = Path(path).read_bytes()
        digest = sha256_of(source)[:12]
        plugin = Plugin(Path(path).name, f"sha256:{digest}", path)
        module = ModuleType(f"findit_plugin_{Path(path).stem}_{digest}")
        module.__file__ = path
        # Where dataclasses look for the module of a class.
        sys.modules[module.__name__] = module
        exec(compile(source, path, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        report(Broken(None, plugin, "", why(error)))
        return None
    return plugin, module


def _rows(value: object) -> Sequence[object]:
    """One row, or the rows of several."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return list(value)
    return [value]


def why(error: BaseException) -> str:
    """An error in one line."""
    said = " ".join(str(error).split())
    name = type(error).__name__
    said = f"{name}: {said}" if said else name
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"


_LONGEST = 300
