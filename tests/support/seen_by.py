"""Tests that see what a flag, a key or a variable does: each says so, with the mark ``sees``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paths import ROOT
from syntax_trees import nodes_of

OF_KEYS = "key "
OF_VARIABLES = "FINDIT_"


@dataclass(frozen=True)
class Seen:
    """What a test sees: ``run --gpus``, ``key batch`` of a sweep, or ``FINDIT_SPACE``."""

    name: str
    test: str
    file: Path
    text: str
    """The file, without its marks."""


@cache
def seen() -> tuple[Seen, ...]:
    """List what tests say that they see."""
    found: list[Seen] = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if "mark.sees(" in text:
            found += _seen_in(file, text)
    return tuple(found)


def _seen_in(file: Path, text: str) -> Iterator[Seen]:
    marks: list[tuple[str, ast.Call]] = []
    for node in nodes_of(file):
        if isinstance(node, ast.FunctionDef):
            marks += [(node.name, mark) for mark in node.decorator_list if _is_mark(mark)]
    lines = text.splitlines()
    for _, mark in marks:
        for number in range(mark.lineno - 1, mark.end_lineno or mark.lineno):
            lines[number] = ""
    unmarked = "\n".join(lines)
    for test, mark in marks:
        for argument in mark.args:
            yield Seen(ast.literal_eval(argument), test, file, unmarked)


def _is_mark(decorator: ast.AST) -> bool:
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.sees"


def seen_flags() -> list[Seen]:
    """Return what tests see of flags and arguments of commands."""
    return [each for each in seen() if not each.name.startswith((OF_KEYS, OF_VARIABLES))]


def seen_keys() -> set[str]:
    """Return the keys of a sweep, of its models, of ``serve`` and ``inference`` that tests see."""
    names = (each.name for each in seen())
    return {name.removeprefix(OF_KEYS) for name in names if name.startswith(OF_KEYS)}


def seen_variables() -> list[Seen]:
    """Return what tests see of variables."""
    return [each for each in seen() if each.name.startswith(OF_VARIABLES)]
