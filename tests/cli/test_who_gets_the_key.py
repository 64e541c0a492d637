"""Variables and flags that decide whose key goes where are told, at every door."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, completion
from every_pair import every_pair
from few_fast import few_fast

from vlmeval_findit.cli import main
from vlmeval_findit.models import PROVIDERS
from vlmeval_findit.protocol import FORCE_VARIABLE, say_once

DATA = "FindIt_Demo_xyxy_json"
ELSEWHERE = "http://127.0.0.1:9/v1"
FLAGGED = "http://127.0.0.1:8/v1"
VARIABLES = {row.address_variable: row.name for row in PROVIDERS.values() if row.address_variable}
SERVER_VARIABLES = {
    "FINDIT_SERVER_KEY": "of-servers",
    "FINDIT_SERVER_HEADERS": '{"x-team": "a"}',
}


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv(FORCE_VARIABLE, "")
    for row in PROVIDERS.values():
        for name in row.keys:
            monkeypatch.setenv(name, "of-nobody")
    for name in (*VARIABLES, *SERVER_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    say_once.cache_clear()


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked, number: completion("[]", model="small-3b")) as running:
        yield running


def swept(*flags: str, **entry: Any) -> list[str]:
    """Write the file of a sweep, and return its command."""
    model = {"name": "Qwen3-VL", "served": "mine", **entry}
    Path("s.yaml").write_text(json.dumps({"models": [model], "datasets": DATA, "limit": 1}))
    return ["sweep", "s.yaml", *flags]


MODEL = ["--model", "Qwen3-VL=mine"]
DOORS: Mapping[str, Callable[..., list[str]]] = {
    "run": lambda *flags: ["run", "--data", DATA, *MODEL, "--limit", "1", *flags],
    "sweep": swept,
    "search": lambda *flags: ["search", "--data", "Demo", *MODEL, "--limit", "1", *flags],
    "probe": lambda *flags: ["probe", *MODEL, "--limit", "20", *flags],
    "reproduce": lambda *flags: ["reproduce", "FindIt-Nano=mine", "--limit", "100", *flags],
}


@every_pair("variable, door", VARIABLES, DOORS, fast=4)
def test_an_address_of_the_environment_is_told_once(
    variable: str, door: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    provider = VARIABLES[variable]
    monkeypatch.setenv(variable, ELSEWHERE)
    assert main([*DOORS[door]("--provider", provider), "--dry-run"]) == 0
    line = f"{provider}: address of requests and key {ELSEWHERE}, by {variable}: nothing else"
    assert caplog.text.count(variable) == 1
    assert line in caplog.text


@pytest.mark.parametrize("variable", few_fast(VARIABLES, 1))
def test_a_typed_address_goes_before_the_environments(
    variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    provider = VARIABLES[variable]
    monkeypatch.setenv(variable, ELSEWHERE.replace("//", "//me:s3cret@"))
    flags = ["--provider", provider, "--base-url", FLAGGED, "--dry-run"]
    assert main(swept(*flags)) == 0
    assert f"is not used for {provider}, whose address" in caplog.text
    assert f"is known: {FLAGGED}" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("variable", few_fast(VARIABLES, 1))
def test_the_usual_address_is_not_told(
    variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    provider = VARIABLES[variable]
    monkeypatch.setenv(variable, PROVIDERS[provider].address)
    assert main(swept("--provider", provider, "--dry-run")) == 0
    assert variable not in caplog.text


@pytest.mark.parametrize("variable", SERVER_VARIABLES)
def test_a_servers_variable_is_told_where_a_provider_is_named(
    variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(variable, SERVER_VARIABLES[variable])
    flags = ["--provider", "openai", "--base-url", FLAGGED, "--dry-run"]
    assert main(swept(*flags)) == 0
    assert caplog.text.count(f"{variable} is not used at {FLAGGED}") == 1
    assert "of-servers" not in caplog.text


# --- entries and flags ----------------------------------------------------------------------------

ENTRIES: Mapping[str, Mapping[str, str]] = {
    "a server": {"base_url": "OTHER"},
    "a server that stays": {"base_url": "SERVER"},
    "a provider": {"provider": "openai"},
    "a provider elsewhere": {"provider": "openai", "base_url": "OTHER"},
    "a provider that stays": {"provider": "openai", "base_url": "SERVER"},
}
FLAGS = ("--provider openai", "--base-url SERVER", "--provider openai --base-url SERVER")


@every_pair("what, flags", ENTRIES, FLAGS, fast=3)
def test_a_line_says_whose_key_is_sent_where(
    what: str, flags: str, server: ChatServer, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """What the line says is what the server gets."""
    monkeypatch.setenv("FINDIT_SERVER_KEY", "of-servers")
    entry = {key: value.replace("SERVER", server.url) for key, value in ENTRIES[what].items()}
    entry = {key: value.replace("OTHER", ELSEWHERE) for key, value in entry.items()}
    typed = [each.replace("SERVER", server.url) for each in flags.split()]
    options = dict(zip(typed[::2], typed[1::2], strict=True))
    url = options.get("--base-url", entry.get("base_url"))
    provider = options.get("--provider", entry.get("provider"))
    reaches = url == server.url
    asked = len(server.asked)
    assert main(swept(*typed, *([] if reaches else ["--dry-run"]), **entry)) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if ", in place of " in line]
    is_changed = any(entry.get(flag[2:].replace("-", "_")) != to for flag, to in options.items())
    assert bool(said) is is_changed
    for line in said:
        assert line.endswith(f": openai's protocol and key, at {url}") is (provider is not None)
    if reaches:
        key = "of-servers" if provider is None else "of-nobody"
        assert server.asked[asked].headers["authorization"] == f"Bearer {key}"


# --- who answered ---------------------------------------------------------------------------------


@pytest.mark.parametrize("door", ["run", "probe"])
def test_another_model_that_answered_is_named(
    door: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(DOORS[door]("--base-url", server.url))
    printed = " ".join(capsys.readouterr().out.split())
    assert "answered by small-3b; asked was mine" in printed
