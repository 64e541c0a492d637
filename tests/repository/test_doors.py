"""A room has one door: its names stand in its ``__init__.pyi``, and others import them from there.

So modules inside a room are merged, split and renamed in one commit that touches no other room.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

from doors import PACKAGE, doors
from paths import ROOT
from syntax_trees import nodes_of

OUTSIDE = ("tests", "benchmarks", "training", "docs/plugin-template")


@cache
def names_at_doors() -> dict[str, set[str]]:
    """Return the names of each door by its room."""
    return {door.room: {name.name for name in door.names} for door in doors()}


@dataclass(frozen=True)
class Import:
    """One name that a file imports from the package: ``from module import name``."""

    file: Path
    module: str  # Below the package: "boxes.matching"; "" for the package itself
    name: str

    @property
    def room(self) -> str:
        """The room whose door stands before the module, or "" for the package's own door."""
        return room_of(self.module)


def room_of(module: str) -> str:
    parts = module.split(".")
    inner = ".".join(parts[:2])
    return inner if inner in names_at_doors() else parts[0]


def imports_of(file: Path) -> Iterator[Import]:
    package = ".".join(file.relative_to(ROOT).parent.parts)
    for node in nodes_of(file):
        if not isinstance(node, ast.ImportFrom):
            continue
        module = resolve_name("." * node.level + (node.module or ""), package)
        first, _, inner = module.partition(".")
        if first == PACKAGE.name:
            for alias in node.names:
                yield Import(file, inner, alias.name)
                if not inner and alias.name in names_at_doors():
                    yield from attributes_of(file, alias)


def attributes_of(file: Path, alias: ast.alias) -> Iterator[Import]:
    """Yield what a file asks of a room that it imports whole: ``benchmarks.load``."""
    local = alias.asname or alias.name
    for node in nodes_of(file):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == local:
                yield Import(file, alias.name, attribute)


@cache
def imports() -> tuple[Import, ...]:
    """List what other rooms, tests and tools import of each room."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        own = room_of(".".join(file.relative_to(PACKAGE).with_suffix("").parts))
        found += [each for each in imports_of(file) if each.room != own]
    for folder in OUTSIDE:
        for file in sorted((ROOT / folder).rglob("*.py")):
            found += imports_of(file)
    return tuple(found)


def patched_modules(file: Path) -> set[str]:
    """Return the names whose attributes a test replaces."""
    found = set()
    for node in nodes_of(file):
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Name(id=name), *_]):
                found.add(name)
    return found


def is_module(each: Import) -> bool:
    path = PACKAGE.joinpath(*each.module.split("."), each.name)
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def test_others_import_from_the_door_only() -> None:
    """What is no room may name a module as a whole: a test replaces something in it."""
    past = defaultdict(set)
    for each in imports():
        at_door = each.module == each.room and each.name in names_at_doors().get(each.room, ())
        own_door = each.module == ""
        whole = is_module(each) and not each.file.is_relative_to(PACKAGE)
        if not (at_door or own_door or whole or each.name == "__path__"):
            past[each.file.relative_to(ROOT).as_posix()].add(f"{each.module}: {each.name}")
    assert not past


def test_every_name_at_a_door_is_asked_for() -> None:
    asked = defaultdict(set)
    for each in imports():
        asked[each.room].add(each.name)
    for room in names_at_doors():
        asked[room].add("PREFIX")  # `benchmark_table` asks every benchmark's folder for it
    for each in imports_of(PACKAGE / "__init__.pyi"):
        asked[each.room].add(each.name)
    idle = {}
    for room, names in names_at_doors().items():
        if names - asked[room]:
            idle[room] = names - asked[room]
    assert not idle


def test_every_name_at_a_door_has_a_sentence() -> None:
    silent = {
        f"{door.room}: {name.name}" for door in doors() for name in door.names if not name.sentence
    }
    assert not silent


def test_no_name_at_a_door_is_that_of_another_module() -> None:
    """Importing the module would put it in the place of the name."""
    hidden = []
    for door in doors():
        folder = PACKAGE.joinpath(*door.room.split("."))
        files = [path for path in folder.iterdir() if path.suffix in {"", ".py"}]
        modules = {path.stem for path in files} - {"__init__"}
        for each in door.names:
            if each.module and each.name in modules - {each.module.split(".")[0]}:
                hidden.append(f"{door.room}: {each.name}")
    assert not hidden


def test_the_structure_names_what_doors_hand_out() -> None:
    page = (ROOT / "docs/design/structure.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z0-9]+\.)+)([A-Za-z_]+)`", page)
    assert len(named) > 50
    assert [
        room + name for room, name in named if name not in names_at_doors().get(room[:-1], ())
    ] == []
