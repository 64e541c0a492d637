"""What cannot be asked is refused at every door, before any call: commands, files and Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from adapters import write_base
from chat_server import ChatServer, completion
from weight_headers import write_weights

import vlmeval_findit as findit
from vlmeval_findit.cli import main

DATA = "FindIt_Demo_xyxy_json"


class Wrong(NamedTuple):
    """A model that cannot be asked so: its arguments in Python, and words of each refusal."""

    model: str
    arguments: Mapping[str, Any]
    words: str
    # In the words of a command, if they are not those of Python; None: no flag says it
    flags: str | None = ""


AT = {"base_url": "SERVER", "space": "unit"}
WRONG: Mapping[str, Wrong] = {
    # --- a model at a server ---
    "an address": Wrong("Mine", {"base_url": "localhost", "space": "unit"}, "localhost"),
    "a temperature": Wrong("Mine", {**AT, "temperature": -1}, "should be a number, at least 0"),
    "no temperature": Wrong("Mine", {**AT, "temperature": "hot"}, "temperature", None),
    "a limit": Wrong("Mine", {**AT, "max_new_tokens": 0}, "max_new_tokens: 0 should be", None),
    "weights there": Wrong("Mine", {**AT, "dtype": "half"}, "dtype has no effect"),
    "a device there": Wrong("Mine", {**AT, "device": "cpu"}, "device has no effect"),
    "a batch there": Wrong("Mine", {**AT, "batch_size": 2}, "batch"),
    "a header": Wrong("Mine", {**AT, "headers": {"x y": "a"}}, "x y", "--header 'x y: a'"),
    "a space": Wrong("Mine", {"base_url": "SERVER", "space": "furlongs"}, "furlongs"),
    "another's words": Wrong("Mine", {**AT, "like": "Qwen9"}, "Qwen9"),
    "a text": Wrong("Mine", {**AT, "system": "none.txt"}, "none.txt"),
    "a template": Wrong("Mine", {**AT, "prompt_template": "none.txt"}, "none.txt"),
    "a template's name": Wrong("Mine", {**AT, "prompt_template": "shade.txt"}, "shade"),
    "a baseline": Wrong("FullImage", {"base_url": "SERVER"}, "is a baseline and calls no server"),
    # --- at a provider ---
    "a provider": Wrong("GPT-5.4", {"provider": "opnai"}, "opnai"),
    "no key": Wrong("GPT-5.4", {"provider": "openai"}, "OPENAI_API_KEY"),
    "no name there": Wrong("Qwen3-VL", {"provider": "openai", "key": "k"}, "is not known"),
    "a baseline there": Wrong("FullImage", {"provider": "openai"}, "calls no server"),
    "a warm one": Wrong(
        "GPT-6-Astra", {"provider": "openai", "key": "k", "temperature": 0.5}, "temperature: GPT-6"
    ),
    # --- on this machine ---
    "a name": Wrong("FindIt-Nanno", {}, "FindIt-Nano"),
    "a key": Wrong("FindIt-Nano", {"key": "k"}, "key has no effect"),
    "headers": Wrong("FindIt-Nano", {"headers": {"a": "b"}}, "header", "--header 'a: b'"),
    "a relative": Wrong("FindIt-Nano", {"like": "Qwen3-VL"}, "like has no effect"),
    "a type": Wrong("FindIt-Nano", {"dtype": 7}, "dtype", None),
    "a batch": Wrong("FindIt-Nano", {"batch_size": 0}, "0 should be a whole number, at least 1"),
    "a GPU": Wrong("FindIt-Nano", {"device": "cuda:99"}, "cuda:99"),
    "an adapter": Wrong("FindIt-Nano", {"merge_adapter": True}, "merge_adapter", None),
    "bounds": Wrong("FindIt-Nano", {"patches": 7}, "patches", None),
    "a folder": Wrong("mine=/nowhere/at/all", {"like": "Qwen3-VL"}, "does not exist"),
    "another type": Wrong("mine=other", {"like": "Qwen3-VL"}, "qwen2_5_vl"),
    "a baseline's words": Wrong("FullImage", {"system": "text.txt"}, "system has no effect"),
    "a baseline's heat": Wrong("FullImage", {"temperature": 0.5}, "temperature has no effect"),
}


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


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked, number: completion("[]")) as started:
        yield started


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("Look twice.")
    Path("shade.txt").write_text("{{ shade }}")
    write_base(Path("other"), model_type="qwen2_5_vl")
    write_weights(Path("other/model.safetensors"), "model.norm.weight")


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


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("what", TYPED)
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
