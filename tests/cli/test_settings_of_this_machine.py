"""What only a model on this machine has is no field of a request: refused at every door."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, completion
from every_pair import every_pair
from host_runs import require_host

import vlmeval_findit as findit
from vlmeval_findit.cli import main
from vlmeval_findit.engine import OF_THIS_MACHINE
from vlmeval_findit.models import LIMIT_SETTING, RunSettings, Sampling

VALUES: Mapping[str, Any] = {
    "batch_size": 2,
    "dtype": "float32",
    "device": "cpu",
    "revision": "main",
    "attention": "eager",
    "engine": "numpy",
    "min_pixels": 3136,
    "max_pixels": 654_321,
    "patches": 7,
    "merge_adapter": True,
    "template": {"add_vision_id": True},
}
# Kind -> an entry, keys beside `models`, and what messages call it
KINDS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], str]] = {
    "server": ({"base_url": "SERVER", "space": "unit"}, {}, "a model of a server (--base-url)"),
    "provider": (
        {"provider": "openai", "base_url": "SERVER", "served": "x", "space": "unit"},
        {},
        "a model at a provider (--provider)",
    ),
    "batch": (
        {"provider": "openai", "base_url": "SERVER", "served": "x", "space": "unit"},
        {"batch": "openai"},
        "a model that is asked in batches (--batch)",
    ),
    "OpenRouter as a provider": (
        {"provider": "openrouter", "served": "x", "space": "unit"},
        {},
        "a model at a provider (--provider)",
    ),
    "OpenRouter": ({"name": "Gemini-2.5-Flash"}, {}, "a model at OpenRouter"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked, number: completion("[]")) as running:
        yield running


@pytest.fixture(autouse=True)
def folder(
    server: ChatServer, demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.setenv("LMUData", str(demo_data))
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "of-nobody")
    monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.chdir(tmp_path)
    yield
    assert not server.asked


def entry_of(kind: str, server: ChatServer) -> dict[str, Any]:
    stated = {"name": "mine", **KINDS[kind][0]}
    return {key: server.url if value == "SERVER" else value for key, value in stated.items()}


def refusal(setting: str, entry: Mapping[str, Any], what: str) -> str:
    name = entry["name"]
    why = f"it is of models on this machine, and {name} is {what}"
    return f"{setting} has no effect: {why}. Leave it out"


def test_every_setting_has_a_value() -> None:
    of_all = {LIMIT_SETTING, "space", *(each.name for each in fields(Sampling))}
    assert {each.name for each in fields(RunSettings)} - of_all == {*VALUES}
    assert {*OF_THIS_MACHINE} == {*VALUES}


@every_pair("setting, kind", VALUES, KINDS)
def test_files_and_flags_refuse_it(
    setting: str, kind: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = entry_of(kind, server)
    _, beside, what = KINDS[kind]
    given = {setting: VALUES[setting]}
    of_file = {**entry, "settings": given}
    of_flag = f"--extra-body {shlex.quote(json.dumps(given))}"
    for model, flags in ((of_file, ""), (of_file, "--dry-run"), (entry, of_flag)):
        sweep = {"models": [model], "datasets": "FindIt_Demo_xyxy_json", "limit": 1, **beside}
        Path("s.yaml").write_text(json.dumps(sweep))
        assert main(["sweep", "s.yaml", *shlex.split(flags)]) == 2
        assert refusal(setting, entry, what) in capsys.readouterr().err


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "batch"])
@pytest.mark.parametrize("setting", VALUES)
def test_python_refuses_it(setting: str, kind: str, server: ChatServer) -> None:
    entry = entry_of(kind, server)
    at = {key: value for key, value in entry.items() if key not in ("name", "served")}
    said = re.escape(refusal(setting, entry, KINDS[kind][2]))
    with pytest.raises(ValueError, match=f"^{said}$"):
        findit.open_model(entry["name"], **at, **{setting: VALUES[setting]})


CLASSES = {
    "server": "FindItServer",
    "provider": "FindItProvider",
    "OpenRouter as a provider": "FindItProvider",
    "OpenRouter": "FindItOpenRouter",
}


@pytest.mark.host
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("setting", VALUES)
def test_classes_of_config_files_refuse_it(setting: str, kind: str, server: ChatServer) -> None:
    require_host()
    import vlmeval.api

    from vlmeval_findit.host import register

    register()
    entry = entry_of(kind, server)
    arguments = {"model" if key == "name" else key: value for key, value in entry.items()}
    made = getattr(vlmeval.api, CLASSES[kind])
    given = {setting: VALUES[setting]}
    doors = [given] if kind == "OpenRouter" else [given, {"extra_body": given}]
    said = re.escape(refusal(setting, entry, KINDS[kind][2]))
    for more in doors:
        with pytest.raises(ValueError, match=f"^{said}$"):
            made(**arguments, **more)
