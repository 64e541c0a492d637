"""Syntax trees of the repository's files, parsed once for all tests that look into them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from doors import tree_of


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's tree."""
    return tuple(ast.walk(tree_of(path)))
