"""Headers decide who answers: other values are other setups, and no secret is written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from chat_server import ChatServer
from every_pair import every_pair

from vlmeval_findit.cli import main
from vlmeval_findit.storage import read_identity

DATA = "FindIt_Demo_xyxy_json"
SECRET = "s3cret-of-mine"


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("OPENAI_API_KEY", "of-nobody")
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.delenv("FINDIT_SERVER_HEADERS", raising=False)
    monkeypatch.chdir(tmp_path)


class Asker:
    """Asks the same model, with headers that are stated at one place."""

    def __init__(self, server: ChatServer, place: str, patch: pytest.MonkeyPatch) -> None:
        self._server, self._place, self._patch = server, place, patch

    def ask(self, header: tuple[str, str] | None, *more: str) -> int:
        name, value = header or ("", "")
        entry = {"name": "mine", "served": "m", "space": "unit", "base_url": self._server.url}
        words = [*more]
        if self._place == "provider":
            entry["provider"] = "openai"
        if header is not None and self._place == "variable":
            self._patch.setenv("FINDIT_SERVER_HEADERS", json.dumps({name: value}))
        elif header is not None and self._place == "flag":
            words += ["--header", f"{name}: {value}"]
        elif header is not None:
            entry |= {"headers": {name: value}}  # type: ignore[dict-item]
        Path("sweep.yaml").write_text(json.dumps({"models": [entry], "datasets": DATA, "limit": 1}))
        return main(["sweep", "sweep.yaml", *words])


PLACES = ("flag", "entry", "variable", "provider")
HEADERS = (
    ("x-portkey-provider", "openai", "groq"),
    ("Helicone-Target-Url", "http://a/v1", "http://b/v1"),
    ("OpenAI-Project", "proj_a", "proj_b"),
    ("x-api-key", f"{SECRET}-1", f"{SECRET}-2"),
    ("Authorization", f"Bearer {SECRET}-1", f"Bearer {SECRET}-2"),
)


def written() -> str:
    """Return all that lies in the folder, but the file that states the headers."""
    files = [path for path in Path().rglob("*") if path.is_file() and path.name != "sweep.yaml"]
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


@every_pair("header, place", HEADERS, PLACES, fast=3)
def test_another_header_is_another_setup(
    header: tuple[str, str, str],
    place: str,
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, first, second = header
    asker = Asker(server, place, monkeypatch)
    assert asker.ask((name, first)) == 0
    asked = len(server.asked)
    assert asker.ask((name.upper(), first)) == 0, "it goes on as itself"
    for other in (
        ["--work-dir", "outputs"],
        ["--work-dir", "x", "--journal", "outputs/calls.jsonl"],
    ):
        capsys.readouterr()
        assert asker.ask((name, second), *other) == 2
        error = capsys.readouterr().err
        assert f"header {name.lower()}" in error
        assert SECRET not in error
    assert asker.ask((name, second), "--dry-run") == 2
    assert len(server.asked) == asked
    assert SECRET not in written()
    assert (first in written()) is (SECRET not in first)


def test_no_header_is_another_setup_than_one(
    server: ChatServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asker = Asker(server, "flag", monkeypatch)
    assert asker.ask(None) == 0
    (path,) = Path("outputs").rglob(f"*{DATA}.json")
    identity = read_identity(path)
    assert identity is not None
    assert identity.answering.headers == {}
    assert asker.ask(("x-team", "a")) == 2
    assert "header x-team: recorded not set, now a" in capsys.readouterr().err


REFUSED = {
    "--header 'a: 1' --header 'A: 1'": "--header names a and A, which are one header, twice",
    "--header 'x-mine: 2'": "sweep.yaml, line 1: mine: --header x-mine and `headers` of its entry",
    "--key k --header 'Authorization: Bearer t'": "--key has no effect: a header has its place",
}


@pytest.mark.parametrize("flags", REFUSED)
@pytest.mark.parametrize("more", ["", " --dry-run"])
def test_headers_that_contradict_are_refused(
    flags: str, more: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"name": "mine", "space": "unit", "base_url": server.url, "headers": {"X-Mine": "1"}}
    Path("sweep.yaml").write_text(json.dumps({"models": [entry], "datasets": DATA, "limit": 1}))
    asked = len(server.asked)
    assert main(["sweep", "sweep.yaml", *shlex.split(flags + more)]) == 2
    assert REFUSED[flags] in capsys.readouterr().err
    assert len(server.asked) == asked
