"""What cannot be asked is refused at every door, before any call: commands, files and Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from chat_server import ChatServer
from every_pair import every_pair
from wrong_models import WRONG, Wrong, folder

import vlmeval_findit as findit
from vlmeval_findit.cli import main

DATA = "FindIt_Demo_xyxy_json"

__all__ = ["folder"]


def flags_of(wrong: Wrong) -> list[str]:
    """Return the arguments as they are typed."""
    words = shlex.split(wrong.flags or "")
    for name, value in wrong.arguments.items():
        if name != "headers":
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def swept(model: str, flags: list[str]) -> list[str]:
    """Write the file of a sweep, and return its command."""
    name, _, checkpoint = model.partition("=")
    entry = {"name": name, **({"checkpoint": checkpoint} if checkpoint else {})}
    # Whom no table knows, the file must say the space of
    entry |= {"space": "unit"} if name in ("Mine", "FindIt-Nanno") else {}
    sweep = {"models": [entry], "datasets": [DATA], "limit": 1}
    Path("sweep.yaml").write_text(json.dumps(sweep))
    return ["sweep", "sweep.yaml", *flags]


COMMANDS: Mapping[str, Callable[[str, list[str]], list[str]]] = {
    "run": lambda model, flags: ["run", "--data", DATA, "--model", model, "--limit", "1", *flags],
    "sweep": swept,
    "search": lambda model, flags: ["search", "--model", model, "--data", "Demo", *flags],
    "probe": lambda model, flags: ["probe", "--model", model, *flags],
    "reproduce": lambda model, flags: ["reproduce", model, *flags],
}
TYPED = [name for name, wrong in WRONG.items() if wrong.flags is not None]


def at(wrong: Wrong, server: ChatServer) -> Wrong:
    arguments = {
        name: server.url if value == "SERVER" else value for name, value in wrong.arguments.items()
    }
    return wrong._replace(arguments=arguments)


@pytest.mark.parametrize("what", WRONG)
def test_python_refuses_when_a_model_is_opened(what: str, server: ChatServer) -> None:
    wrong = at(WRONG[what], server)
    asked = len(server.asked)
    with pytest.raises((ValueError, OSError)) as refusal:
        findit.open_model(wrong.model, **wrong.arguments)
    assert wrong.words in str(refusal.value)
    assert len(server.asked) == asked


@every_pair("what, command", TYPED, COMMANDS, fast=10)
def test_a_command_refuses_it_too(
    what: str, command: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = at(WRONG[what], server)
    asked = len(server.asked)
    assert main(COMMANDS[command](wrong.model, flags_of(wrong))) == 2
    said = capsys.readouterr().err
    has_figure = command != "reproduce" or "no published figure" not in said
    assert wrong.words in said or not has_figure, said
    assert len(server.asked) == asked
