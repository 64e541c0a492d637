"""No number depends on the words of a command line: what answers is described by what it is."""

from __future__ import annotations

import ast
from pathlib import Path

from paths import ROOT
from syntax_trees import nodes_of

PACKAGE = ROOT / "vlmeval_findit"

MAY_READ = {
    "cli/main_command.py": "our own command, which parses it",
    "serving/guard.py": "a program of its own, which parses it",
    "core/command.py": "the name of our command in messages",
    "host/config_keys.py": "refuses a file; no number depends on it",
    "host/config_runs.py": "refuses a file; no number depends on it",
    "host/registration.py": "sets it for VLMEvalKit's runner, which parses it",
}


def reads(path: Path) -> bool:
    """Return whether a module reads or sets the words of this process's command line."""
    for node in nodes_of(path):
        match node:
            case ast.Attribute(value=ast.Name(id="sys"), attr="argv" | "orig_argv"):
                return True
            case ast.ImportFrom(module="sys"):
                if {"argv", "orig_argv"} & {alias.name for alias in node.names}:
                    return True
    return False


def test_few_modules_look_at_the_command_line() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    found = {path.relative_to(PACKAGE).as_posix() for path in paths if reads(path)}
    assert found == set(MAY_READ)


def test_the_room_of_the_host_only_sets_it() -> None:
    uses = [
        node.ctx
        for node in nodes_of(PACKAGE / "host/registration.py")
        if getattr(node, "attr", "") == "argv"
    ]
    assert [type(use) for use in uses] == [ast.Store]
