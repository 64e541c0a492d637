"""References in docstrings: every part of what ``:func:`` and its like name is defined."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from paths import ROOT
from syntax_trees import nodes_of

PACKAGES = ("vlmeval_findit", "training")
REFERENCE = re.compile(r":(?:attr|class|data|exc|func|meth|mod|obj):`~?\.*([\w.]+)`")


def modules() -> Iterator[tuple[Path, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def defined(path: Path) -> Iterator[str]:
    """Yield names of a module, its packages, and everything that it defines or assigns."""
    yield from path.with_suffix("").parts
    for node in nodes_of(ROOT / path):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr


def test_what_is_referred_to_is_there() -> None:
    names = {name for path, _ in modules() for name in defined(path)}
    references = [(path, name) for path, text in modules() for name in REFERENCE.findall(text)]
    assert len(references) > 100
    for path, name in references:
        first, *_ = parts = name.split(".")
        is_elsewhere = hasattr(builtins, first) or (first not in PACKAGES and find_spec(first))
        assert names.issuperset(parts) or is_elsewhere, f"{path}: {name}"
