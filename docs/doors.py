"""The doors of the package's rooms, read from their stubs without importing anything.

``Door.names`` are the public names of a room, in the order of its ``__init__.pyi``, each with the
first sentence that stands where it is defined.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "vlmeval_findit"


@dataclass(frozen=True)
class PublicName:
    """A name that a room hands out."""

    name: str
    module: str  # Below the room, as "lenient.repairs"; "" for a module that is itself handed out
    sentence: str  # "" if it has none


@dataclass(frozen=True)
class Door:
    """A room, or a benchmark's folder, and its public names."""

    room: str  # "boxes", "benchmarks.findit"
    purpose: str  # The first sentence of its docstring
    names: tuple[PublicName, ...]


def doors(package: Path = PACKAGE) -> list[Door]:
    """Read the doors of all rooms, by name; the package's own door is no room's."""
    stubs = [path for path in sorted(package.rglob("__init__.pyi")) if path.parent != package]
    return [_door(stub, package) for stub in stubs]


def _door(stub: Path, package: Path) -> Door:
    folder = stub.parent
    room = ".".join(folder.relative_to(package).parts)
    docstring = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
    return Door(room, first_sentence(docstring), tuple(_names(stub)))


def _names(stub: Path) -> Iterator[PublicName]:
    for node in tree_of(stub).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id  # Stands in the package's own file: a benchmark's prefix
            yield PublicName(name, "", sentence_of(stub.with_suffix(".py"), name))
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for alias in node.names:
                path = _path_of(stub.parent, module or alias.name)
                sentence = sentence_of(path, alias.name) if module else _purpose(path)
                yield PublicName(alias.name, module, sentence)


def _path_of(folder: Path, module: str) -> Path:
    path = folder.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _purpose(path: Path) -> str:
    return first_sentence(ast.get_docstring(tree_of(path)) or "")


def sentence_of(path: Path, name: str) -> str:
    """Return what a module says of a name.

    That is the first sentence of its docstring; of a constant, the string below it, the comment at
    its end, or the one above it.
    """
    body = tree_of(path).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name == name:
                return first_sentence(ast.get_docstring(node) or "")
        elif name in _assigned(node):
            return _said_of_constant(path, node, after)
    return ""


def _assigned(node: ast.stmt) -> set[str]:
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    parts = [part for target in targets for part in ast.walk(target)]
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _said_of_constant(path: Path, node: ast.stmt, after: ast.stmt | None) -> str:
    match after:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return first_sentence(text)
    lines = _lines(path)
    assert node.end_lineno is not None
    for line in (lines[node.end_lineno - 1], lines[node.lineno - 1]):
        if comment := re.search(r"\s# (?!noqa|type:)(.+)", line):
            return first_sentence(comment[1])
    above = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.startswith("# ") or line.startswith("# --"):
            break
        above.append(line.removeprefix("# "))
    return first_sentence(" ".join(reversed(above)))


def first_sentence(text: str) -> str:
    """Cut a docstring or a comment after its first sentence, on one line."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.:;?!])\s(?=[A-Z`:])", paragraph)[0].rstrip(":;")


@cache
def tree_of(path: Path) -> ast.Module:
    """Parse a file, once."""
    return ast.parse("\n".join(_lines(path)))


@cache
def _lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8").splitlines())


def doors_page() -> str:
    """Write all doors as a page, a table a room."""
    lines = ["# Doors", "", "What each room hands out, in the order in which to meet it."]
    for door in doors():
        lines += ["", f"## {door.room}", "", door.purpose, "", "| name | what it is |", "|---|---|"]
        for each in door.names:
            sentence = each.sentence.replace("|", r"\|")
            lines.append(f"| `{each.name}` | {sentence} |")
    return "\n".join(lines) + "\n"
