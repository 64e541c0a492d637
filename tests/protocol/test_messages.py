"""What messages tell people to type can be typed."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest
from paths import ROOT
from syntax_trees import nodes_of

from vlmeval_findit.cli import COMMANDS, main
from vlmeval_findit.core import EXTRAS
from vlmeval_findit.protocol import SettingsError, settings_from

PACKAGE = ROOT / "vlmeval_findit"


def texts() -> Iterator[tuple[str, str]]:
    """Every text of the package that is no docstring, with its place; a value in it is a ``_``."""
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = nodes_of(path)
        joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        skipped = {id(value) for node in joined for value in node.values}
        skipped |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.JoinedStr):
                pieces = (getattr(value, "value", "_") for value in node.values)
                yield where, "".join(each if isinstance(each, str) else "_" for each in pieces)
            elif id(node) not in skipped and isinstance(getattr(node, "value", None), str):
                yield where, node.value  # type: ignore[attr-defined]


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*command.split(), "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_commands_in_messages_are_commands_with_their_flags(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = [
        (where, found[1])
        for where, text in texts()
        if not where.startswith("vlmeval_findit/cli/__init__.py")
        for found in re.finditer(r"run_findit\.py ([^\n;`(),]+)", text)
    ]
    assert len(result) > 25
    helps = {"": help_of("run", capsys)}
    wrong = []
    for where, command in result:
        words = [word.strip(".,:)'\"") for word in command.split()[:2]]
        name = words[0] if words[0] in COMMANDS else " ".join(words)
        name = "" if name.startswith(("-", "_")) else name
        if command.startswith("coords --model"):
            name = "probe"  # its options
        if name not in COMMANDS and name:
            wrong.append(f"{where}: no command {command!r}")
            continue
        if name not in helps:
            helps[name] = help_of(name, capsys)
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", command):
            if not re.search(rf"{flag}(?![\w-])", helps[name]):
                wrong.append(f"{where}: {name or 'run'} has no {flag} ({command!r})")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_extras_in_messages_are_those_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    there = {name for name, needs in extras.items() if needs != ["vlmeval-findit[data]"]}
    assert there >= {"run", "local", "data", "mlflow"}
    assert not there & {"photos", "video", "marks", "calibration"}, "names of 1.0"
    assert set(EXTRAS.values()) <= there
    code = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert set(re.findall(r"\binstall\(['\"](\w+)['\"]\)", code)) <= there
    raw = [where for where, text in texts() if "vlmeval-findit[" in text]
    raw = [where for where in raw if not where.startswith("vlmeval_findit/core/command.py")]
    assert raw == [], "core.command.install says how: in a clone the package has another name"


def test_a_wrong_space_names_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"^space=") as caught:
        settings_from({"space": '{"kind": grid1000}'})
    assert "FINDIT_SPACE" not in str(caught.value)
    monkeypatch.setenv("FINDIT_SPACE", "{kind}")
    with pytest.raises(SettingsError, match=r"^FINDIT_SPACE="):
        settings_from({})
    with pytest.raises(SettingsError, match="force: 'no' should be true or false"):
        settings_from({"space": "unit", "force": "no"})
