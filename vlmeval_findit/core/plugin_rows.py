"""Find rows that plug-ins add to our tables.

They are entry points (``vlmeval_findit.models``, …) of packages or attributes (``MODELS``, …) of
files in FINDIT_PLUGINS, loaded only for a name that is not built in. Broken ones are reported once.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from importlib import metadata
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from .files import file_sha256, modules_sha256, read_bytes, sha256_of
from .quoted_values import quoted_value
from .redaction import error_line, scrub

log = logging.getLogger(__name__)

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
    package: str = ""  # That is imported; "": a file

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.version, f"({self.origin})")))

    @property
    def code(self) -> str:
        """The version and, of a package, a hash of its modules: they may change under one."""
        module = sys.modules.get(self.package)
        if module is None:
            return self.version
        folders = [Path(folder) for folder in getattr(module, "__path__", ())]
        hashes = [modules_sha256(folder) for folder in folders]
        if not folders and module.__file__:
            hashes = [file_sha256(Path(module.__file__))]
        return f"{self.version} sha256:{sha256_of(*map(str.encode, hashes))[:12]}"


class Offer(NamedTuple):
    """A row that a plug-in would add."""

    plugin: Plugin
    row: Any


class Broken(NamedTuple):
    """A part of a plug-in that cannot be used."""

    group: Group | None  # None: the whole file
    plugin: Plugin
    what: str  # Name of the row, or where rows should be; "" for the whole file
    why: str

    def __str__(self) -> str:
        where = f", {self.group.value}" if self.group else ""
        part = f" {self.what}" if self.what else ""
        return f"plug-in {self.plugin}{where}{part}: {self.why}"


class _LoadedFile(NamedTuple):
    """A file of FINDIT_PLUGINS as a module."""

    plugin: Plugin
    module: ModuleType


class _State:
    """What this process has loaded of plug-ins so far."""

    def __init__(self) -> None:
        self.loads_running = 0
        self.entry_points: dict[Group, Sequence[Offer]] = {}
        self.files: dict[str, _LoadedFile | None] = {}  # None: it cannot be loaded
        self.broken: dict[Broken, None] = {}  # In the order in which they were met
        self.reports = True

    @cached_property
    def installed(self) -> Mapping[Group, Sequence[metadata.EntryPoint]]:
        """The entry points of packages: reading those of all takes as long as those of a group."""
        found = metadata.entry_points()
        return {group: tuple(found.select(group=group.entry_points)) for group in Group}

    @contextmanager
    def load_running(self) -> Iterator[None]:
        """Count a load: until it ends, who asks for rows may not get all of them."""
        self.loads_running += 1
        try:
            yield
        finally:
            self.loads_running -= 1


_STATE = _State()

_LOCK = threading.RLock()  # Of all tables: a row may need a row of another table


def named_files() -> tuple[str, ...]:
    """Return the files of FINDIT_PLUGINS, without duplicates."""
    paths = filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep))
    return tuple(dict.fromkeys(str(Path(path).resolve()) for path in paths))


def offered(group: Group) -> tuple[Offer, ...]:
    """Return what plug-ins would add to a table: packages by name, then files in order."""
    with _LOCK:
        from_files = [offer for path in named_files() for offer in _of_file(path, group)]
        return (*_of_entry_points(group), *from_files)


def loaded_files() -> list[ModuleType]:
    """Return the modules of the files that were loaded."""
    with _LOCK:
        return [file.module for file in _STATE.files.values() if file is not None]


def report(broken: Broken) -> None:
    """Remember what is left out, and log it once."""
    with _LOCK:
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
    state = _STATE
    before = state.reports
    state.reports = False
    try:
        yield
    finally:
        state.reports = before


def forget() -> None:
    """Look for plug-ins again, as a new process would."""
    global _STATE
    with _LOCK:
        _STATE = _State()


def _of_entry_points(group: Group) -> Sequence[Offer]:
    """Return the rows of installed packages; they are loaded once."""
    state = _STATE
    if group not in state.entry_points:
        state.entry_points[group] = ()  # For a package that asks while it is loaded
        with state.load_running():
            state.entry_points[group] = _load_entry_points(group)
    return state.entry_points[group]


def _load_entry_points(group: Group) -> Sequence[Offer]:
    offers: list[Offer] = []
    for entry in sorted(_STATE.installed[group], key=_place_of):
        origin = f"entry point {group.entry_points}: {entry.name}"
        if entry.dist is None:
            plugin = Plugin(entry.module, "", origin, _top_package(entry.module))
        else:
            package = _top_package(entry.module)
            plugin = Plugin(entry.dist.name, entry.dist.version, origin, package)
        offers += _offers(group, plugin, entry.value, entry.load)
    return offers


def _place_of(entry: metadata.EntryPoint) -> tuple[str, str]:
    """Sort entry points by package and name."""
    return (entry.dist.name if entry.dist else "", entry.name)


def _of_file(path: str, group: Group) -> Sequence[Offer]:
    """Return the rows of a file, which is loaded once."""
    state = _STATE
    if path not in state.files:
        state.files[path] = None  # For the file itself, if it asks while it is loaded
        with state.load_running():
            state.files[path] = _load_file(path)
    file = state.files[path]
    if file is None:
        return ()

    def rows() -> object:
        # Access may raise: a module may have a __getattr__.
        if group is Group.BENCHMARKS and hasattr(file.module, "PREFIX"):
            return [file.module]
        return getattr(file.module, group.name, ())

    return _offers(group, file.plugin, group.name, rows)


def _load_file(path: str) -> _LoadedFile | None:
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
        report(Broken(None, plugin, "", error_line(error)))
        return None
    return _LoadedFile(plugin, module)


def _offers(group: Group, plugin: Plugin, what: str, load: Callable[[], object]) -> Sequence[Offer]:
    """Load a row or several; report a plug-in that raises an error."""
    try:
        value = load()
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            value = [value]
        return [Offer(plugin, row) for row in value]
    except (Exception, SystemExit) as error:
        report(Broken(group, plugin, what, error_line(error)))
        return ()


def raised_in(error: BaseException) -> str:
    """Return the plug-in, and the line of it, in whose code an error was raised; "" if in none."""
    distributions = _distributions()
    files = named_files()
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        package = _top_package(str(frame.f_globals.get("__name__", "")))
        if path in files:
            where = f"{Path(path).name} ({path}, line {line})"
        elif package in distributions:
            where = f"{distributions[package]} ({path}, line {line})"
    return where


def _distributions() -> dict[str, str]:
    """Return the distributions of plug-ins by the package that is imported, without ours."""
    distributions = {}
    for group in Group:
        for entry in _STATE.installed[group]:
            package = _top_package(entry.module)
            distributions[package] = entry.dist.name if entry.dist else package
    distributions.pop(_top_package(__name__), None)
    return distributions


def _top_package(module: str) -> str:
    return module.partition(".")[0]


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
    _added: Mapping[str, Offer] = field(default_factory=dict, init=False)
    # What `_added` was made of: the state and the files; (): nothing yet
    _made_of: tuple[object, ...] = field(default=(), init=False)
    # The rows so far, while rows are checked
    _unfinished: dict[str, Offer] | None = field(default=None, init=False)

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
        with _LOCK:
            if self._unfinished is not None:
                # A plug-in's row asks for another: it sees those before it.
                return dict(self._unfinished)
            made_of = (_STATE, named_files())
            if made_of == self._made_of:
                return self._added
            added = self._check_offers()
            if not _STATE.loads_running:  # Else some may be missing
                self._added = added
                self._made_of = made_of
            return added

    def _check_offers(self) -> Mapping[str, Offer]:
        """Return the offered rows that can be used, and report the others."""
        taken: dict[str, Offer] = {}
        self._unfinished = taken
        try:
            for offer in offered(self.group):
                self._take(offer, taken)
        finally:
            self._unfinished = None
        return taken

    def _take(self, offer: Offer, taken: dict[str, Offer]) -> None:
        """Add an offer to those that were taken, or report why it cannot be used."""
        name = ""
        reason: str | None
        try:
            if isinstance(offer.row, self.kind):
                name = self.name(offer.row)
                reason = self._refused_name(name, taken) or self.problem(offer.row)
            else:
                reason = f"should be a {self.kind.__name__}, and is {quoted_value(offer.row)}"
        except (Exception, SystemExit) as error:
            reason = error_line(error)
        if reason is None:
            taken[name] = offer
        else:
            report(Broken(self.group, offer.plugin, str(name), reason))

    def _refused_name(self, name: object, taken: Mapping[str, Offer]) -> str | None:
        """Say why a row cannot have a name; None if it can."""
        if not isinstance(name, str) or not name or not name.isprintable() or name != name.strip():
            return f"{quoted_value(name)} is not a name"
        if name in self.builtin:
            return f"{name} is a row of vlmeval_findit"
        if name in taken:
            return f"{name} is a row of {taken[name].plugin}"
        return None
