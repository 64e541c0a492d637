"""Find rows that plug-ins add to our tables.

They are entry points (``vlmeval_findit.models``, …) of packages or attributes (``MODELS``, …) of
files in FINDIT_PLUGINS, loaded only for a name that is not built in. Broken ones are reported once.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from .files import read_bytes, sha256_of
from .formatting import shown
from .redaction import quoted, scrub

log = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")
Row = TypeVar("Row")

FILES_VARIABLE = "FINDIT_PLUGINS"  # Paths joined by ``os.pathsep``; worker processes inherit it


class Group(Enum):
    """A table that rows can be added to."""

    MODELS = "models"
    PROVIDERS = "providers"
    BENCHMARKS = "benchmarks"
    SPACES = "spaces"
    REPRESENTATIONS = "representations"
    SOURCES = "sources"

    @property
    def entry_points(self) -> str:
        return f"vlmeval_findit.{self.value}"


class PluginError(ValueError):
    """A plug-in that was named cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """Where a row comes from."""

    name: str  # The package, or the file's name
    version: str  # The package's, or ``sha256:`` and 12 digits of the file's
    origin: str  # File or entry point

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.version, f"({self.origin})")))


class Offer(NamedTuple):
    """A row that a plug-in would add."""

    plugin: Plugin
    row: Any


class Broken(NamedTuple):
    """A part of a plug-in that cannot be used."""

    group: Group | None  # None: the whole file
    plugin: Plugin
    what: str
    why: str

    def __str__(self) -> str:
        where = f", {self.group.value}" if self.group else ""
        part = f" {self.what}" if self.what else ""
        return f"plug-in {self.plugin}{where}{part}: {self.why}"


class _State:
    """What was looked for so far."""

    def __init__(self) -> None:
        self.loading = 0
        self.entry_points: dict[Group, tuple[Offer, ...]] = {}
        self.files: dict[str, tuple[Plugin, ModuleType] | None] = {}
        self.broken: dict[Broken, None] = {}
        self.reports = True

    def once(self, cache: dict[K, V], key: K, make: Callable[[], V], meanwhile: V) -> V:
        """Make a value once; who asks for it meanwhile gets another."""
        if key not in cache:
            cache[key] = meanwhile
            self.loading += 1
            try:
                cache[key] = make()
            finally:
                self.loading -= 1
        return cache[key]


_STATE = _State()

lock = threading.RLock()  # Of all tables: a row may need a row of another table


def named_files() -> tuple[str, ...]:
    """Return the files of FINDIT_PLUGINS, without duplicates."""
    paths = filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep))
    return tuple(dict.fromkeys(str(Path(path).resolve()) for path in paths))


def offered(group: Group) -> tuple[Offer, ...]:
    """Return what plug-ins would add to a table: packages by name, then files in order."""
    with lock:
        from_files = [offer for path in named_files() for offer in _of_file(path, group)]
        return (*_of_entry_points(group), *from_files)


def loaded_files() -> list[ModuleType]:
    """Return the modules of the files that were loaded."""
    with lock:
        return [module[1] for module in _STATE.files.values() if module is not None]


def report(broken: Broken) -> None:
    """Remember what is left out, and log it once."""
    with lock:
        if broken in _STATE.broken:
            return
        _STATE.broken[broken] = None
        if _STATE.reports:
            log.warning("%s: left out", scrub(str(broken)))


def reported() -> list[Broken]:
    """Return everything that was left out so far."""
    return list(_STATE.broken)


@contextmanager
def unreported() -> Iterator[None]:
    """Remember what is left out without logging it; the caller reports it."""
    before, _STATE.reports = _STATE.reports, False
    try:
        yield
    finally:
        _STATE.reports = before


def forget() -> None:
    """Look for plug-ins again, as a new process would."""
    global _STATE
    with lock:
        _STATE = _State()


def _of_entry_points(group: Group) -> tuple[Offer, ...]:
    def make() -> tuple[Offer, ...]:
        result: list[Offer] = []
        entries = importlib.metadata.entry_points(group=group.entry_points)
        for entry in sorted(entries, key=lambda e: (e.dist.name if e.dist else "", e.name)):
            name, version = (
                (entry.dist.name, entry.dist.version) if entry.dist else (entry.module, "")
            )
            plugin = Plugin(name, version, f"entry point {group.entry_points}: {entry.name}")
            result += _offers(group, plugin, entry.value, entry.load)
        return tuple(result)

    return _STATE.once(_STATE.entry_points, group, make, ())


def _of_file(path: str, group: Group) -> Sequence[Offer]:
    loaded = _STATE.once(_STATE.files, path, partial(_loaded, path), None)
    if loaded is None:
        return ()
    plugin, module = loaded

    def rows() -> object:
        # Access may raise: a module may have a __getattr__.
        if group is Group.BENCHMARKS and hasattr(module, "PREFIX"):
            return [module]
        return getattr(module, group.name, ())

    return _offers(group, plugin, group.name, rows)


def _loaded(path: str) -> tuple[Plugin, ModuleType] | None:
    """Load a file as a module, from the bytes that were hashed and without a ``.pyc``."""
    plugin = Plugin(Path(path).name, "", path)
    try:
        source = read_bytes(Path(path))
        digest = sha256_of(source)[:12]
        plugin = Plugin(Path(path).name, f"sha256:{digest}", path)
        module = ModuleType(f"findit_plugin_{Path(path).stem}_{digest}")
        module.__file__ = path
        # Dataclasses need the module here.
        sys.modules[module.__name__] = module
        exec(compile(source, path, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        report(Broken(None, plugin, "", why(error)))
        return None
    return plugin, module


def _offers(group: Group, plugin: Plugin, what: str, load: Callable[[], object]) -> Sequence[Offer]:
    try:
        value = load()
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            value = [value]
        return [Offer(plugin, row) for row in value]
    except (Exception, SystemExit) as error:
        report(Broken(group, plugin, what, why(error)))
        return ()


def raised_in(error: BaseException) -> str:
    """Return the plug-in, and the line of it, in whose code an error was raised; "" if in none."""
    packages = {}
    for group in Group:
        for entry in importlib.metadata.entry_points(group=group.entry_points):
            package = entry.module.partition(".")[0]
            packages[package] = entry.dist.name if entry.dist else package
    packages.pop(__name__.partition(".")[0], None)
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if path in named_files():
            where = f"{Path(path).name} ({path}, line {line})"
        elif package in packages:
            where = f"{packages[package]} ({path}, line {line})"
    return where


def why(error: BaseException) -> str:
    """Format an error on one line."""
    return quoted(f"{type(error).__name__}: {error}", 300).removesuffix(":")


@dataclass(eq=False)
class PluginTable(Mapping[str, Row]):
    """Built-in rows and, on a miss or when listed, those of plug-ins.

    A plug-in never replaces a row. Our modules must not list a table while imported, since plug-ins
    import them. ``problem`` says or raises why a row cannot be used.

    >>> table = PluginTable(Group.SPACES, {"a": 1}, int, name=str)
    >>> table["a"], "b" in table, list(table.builtin)
    (1, False, ['a'])
    """

    group: Group
    builtin: Mapping[str, Row]
    kind: type
    problem: Callable[[Any], str | None] = lambda row: None
    name: Callable[[Any], str] = attrgetter("name")
    _asked: tuple[object, ...] = field(default=(), init=False)
    _added: Mapping[str, Offer] = field(default_factory=dict, init=False)
    _asking: dict[str, Offer] | None = field(default=None, init=False)

    def __getitem__(self, name: str) -> Row:
        if name in self.builtin:
            return self.builtin[name]
        if not name:
            raise KeyError(name)  # as where no name was recorded
        row: Row = self.added()[name].row
        return row

    def __iter__(self) -> Iterator[str]:
        yield from self.builtin
        yield from self.added()

    def __len__(self) -> int:
        return len(self.builtin) + len(self.added())

    def plugin_of(self, name: str | None) -> Plugin | None:
        """Return the plug-in of a row; None for our rows and unknown names."""
        if name is None or name in self.builtin:
            return None
        offer = self.added().get(name)
        return offer.plugin if offer else None

    def added(self) -> Mapping[str, Offer]:
        """Return the rows of plug-ins by name; cached."""
        with lock:
            if self._asking is not None:
                # A plug-in's row asks for another: it sees those before it.
                return dict(self._asking)
            asked = (_STATE, named_files())
            if asked == self._asked:
                return self._added
            offers = self._asking = {}
            try:
                for offer in offered(self.group):
                    self._take(offer, offers)
            finally:
                self._asking = None
            if not _STATE.loading:  # while plug-ins load, this may be incomplete
                self._asked, self._added = asked, offers
            return offers

    def _take(self, offer: Offer, taken: dict[str, Offer]) -> None:
        row, name, reason = offer.row, "", None
        try:
            if isinstance(row, self.kind):
                name = self.name(row)
                reason = self._no_name(name, taken) or self.problem(row)
            else:
                reason = f"should be a {self.kind.__name__}, and is {shown(row)}"
        except (Exception, SystemExit) as error:
            reason = why(error)
        if reason is None:
            taken[name] = Offer(offer.plugin, row)
        else:
            report(Broken(self.group, offer.plugin, str(name), reason))

    def _no_name(self, name: object, taken: Mapping[str, Offer]) -> str | None:
        if not isinstance(name, str) or not name or not name.isprintable() or name != name.strip():
            return f"{shown(name)} is no name"
        if name in self.builtin:
            return f"{name} is a row of vlmeval_findit"
        return f"{name} is a row of {taken[name].plugin}" if name in taken else None
