"""The rooms of the package, and what each may import: only rooms that come before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "vlmeval_findit"

ROOMS = (
    "core",
    "boxes",
    "marks",
    "models",
    "benchmarks",
    "doctor",
    "data",
    "runs",
    "engine",
    "leaderboard",
    "report",
    "api",
    "publish",
    "host",
    "cli",
)
"""In the order in which they build on each other."""

COMMANDS = {
    # By the names of its modules, and not before somebody asks for one.
    "__init__": ("api", "runs"),
    "__main__": ("cli",),
    "_autoload": ("host",),
    "conformance": ROOMS,
}
"""Modules that lie in no room, and what they may import."""

BY_NAME = {
    # A dataset's row names the part of data/ that makes its tables when they are first asked for.
    ("benchmarks", "data"): {
        "benchmarks/findit/task.py",
        "benchmarks/selfretrieval/pairs.py",
        "benchmarks/vpbench/tables.py",
    },
}
"""What climbs by the name of a module, when a function is called."""


def rooms_of(path: Path, text: str) -> Iterator[str]:
    """The rooms that a module of the package imports, at its top or later, for types too.

    Args:
        path: the module, relative to the package.
        text: its code.
    """
    package = path.parts[:-1]
    for node in ast.walk(ast.parse(text)):
        modules: list[tuple[str, ...]] = []
        if isinstance(node, ast.ImportFrom):
            named = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                base = (*package[: len(package) - node.level + 1], *named)
                modules = [base] if base else [(alias.name,) for alias in node.names]
            elif named[0] == PACKAGE.name:
                modules = [named[1:]] if named[1:] else [(alias.name,) for alias in node.names]
        elif isinstance(node, ast.Import):
            parts = [alias.name.split(".") for alias in node.names]
            modules = [tuple(part[1:]) for part in parts if part[0] == PACKAGE.name]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # A module that is imported by its name.
            part = node.value.split(".")
            modules = [tuple(part[1:2])] if part[0] == PACKAGE.name and part[1:] else []
        yield from (module[0] for module in modules if module and module[0] in ROOMS)


def climbing() -> dict[tuple[str, str], set[str]]:
    """Which modules import what they may not, by their room and the room that they import."""
    found: dict[tuple[str, str], set[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE)
        room = path.parts[0] if len(path.parts) > 1 else path.stem
        may = ROOMS[: ROOMS.index(room) + 1] if room in ROOMS else COMMANDS[room]
        for other in rooms_of(path, file.read_text(encoding="utf-8")):
            if other not in may:
                found.setdefault((room, other), set()).add(path.as_posix())
    return found


def test_no_room_imports_one_that_comes_after_it() -> None:
    assert climbing() == BY_NAME


def test_every_folder_is_a_room() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(ROOMS)
    assert {path.stem for path in PACKAGE.glob("*.py")} == set(COMMANDS)


@pytest.mark.parametrize(
    ("text", "rooms"),
    [
        ("from .files import write_once", {"core"}),
        ("from . import files", {"core"}),
        ("from ..benchmarks.findit import variant", {"benchmarks"}),
        ("from .. import cli, __version__", {"cli"}),
        ("def late():\n    import vlmeval_findit.host.local", {"host"}),
        ("from vlmeval_findit import engine", {"engine"}),
        ('import_module("vlmeval_findit.runs.score")', {"runs"}),
        ("from pathlib import Path", set()),
    ],
)
def test_every_kind_of_import_is_seen(text: str, rooms: set[str]) -> None:
    assert set(rooms_of(Path("core/module.py"), text)) == rooms
