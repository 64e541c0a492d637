"""Every worker of pytest reads every test file: tests import what takes seconds to import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import ROOT
from syntax_trees import tree_of

TESTS = ROOT / "tests"
SECONDS = ("vlmeval", "vlmeval_findit.host")
"""VLMEvalKit, and the room that imports it. A light installation does not have it."""


NAMED = re.compile(r"\bvlmeval\b|\bhost\b")


def imported_at_the_top(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports as soon as it is read.

    Of most files that is known without parsing them: they name neither.
    """
    if not NAMED.search(path.read_text(encoding="utf-8")):
        return
    for node in tree_of(path).body:
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                yield node.module or ""
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def takes_seconds(module: str) -> bool:
    return any(module == slow or module.startswith(f"{slow}.") for slow in SECONDS)


def test_no_test_file_imports_vlmevalkit_when_it_is_read() -> None:
    slow = set()
    for path in [*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")]:
        if any(map(takes_seconds, imported_at_the_top(path))):
            slow.add(path.relative_to(ROOT).as_posix())
    assert slow == set()


def test_fast_tests_are_collected_without_torch(
    collected_with: frozenset[str], request: pytest.FixtureRequest
) -> None:
    if request.config.option.markexpr != "not slow":
        pytest.skip("files of slow tests import it")
    assert not collected_with & {"torch", "transformers", "vlmeval"}


def test_no_file_with_slow_tests_is_left_out_of_them(lost_slow: frozenset[Path]) -> None:
    assert lost_slow == set()
