"""Whole runs at providers with the user's keys: the host, ``search``, ``sweep``, ``probe``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from provider_servers import ANTHROPIC, GOOGLE, KEY, OPENAI, PROTOCOLS, address

from vlmeval_findit.cli import main

DATA = "FindIt_Demo_xyxy_json"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for protocol in PROTOCOLS:
        monkeypatch.setenv(protocol.variable, KEY)


def a_box(body: Mapping[str, Any]) -> str:
    """Return the same answer to the same request."""
    return f'[{{"bbox_2d": [20, 30, {500 + len(json.dumps(body)) % 500}, 900], "label": "cat"}}]'


def plain(asked: Asked, number: int) -> Answer:
    """Answer as an OpenAI-compatible server."""
    return completion(a_box(asked.body))


def search(folder: Path, *flags: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    places = {"--work-dir": "runs", "--journal": "calls.jsonl", "--out": "best.yaml"}
    where = [word for flag, name in places.items() for word in (flag, str(folder / name))]
    return ["search", "--data", "Demo", "--limit", "1", *flags, *where]


def test_going_on_with_another_provider_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--model", "GPT-5.4=gpt-5.4"]
    with ChatServer(OPENAI.answering(a_box)) as server:
        where = ["--provider", "openai", "--base-url", address(server, OPENAI)]
        assert main(search(tmp_path, *flags, *where)) == 0
        asked = len(server.asked)
    with ChatServer(plain) as server:
        assert main(search(tmp_path, "--model", "GPT-5.4", "--base-url", server.url)) != 0
        assert not server.asked
    assert "class" in capsys.readouterr().err
    with ChatServer(plain) as server:
        served = ["--model", "GPT-5.4=gpt-5.4", "--base-url", server.url]
        elsewhere = search(tmp_path, *served)
        elsewhere[elsewhere.index("--work-dir") + 1] = str(tmp_path / "other runs")
        assert main(elsewhere) == 0
        assert len(server.asked) == asked, "Answers of another deployment are not reused."
    with ChatServer(ANTHROPIC.answering(a_box)) as server:
        where = ["--provider", "anthropic", "--base-url", address(server, ANTHROPIC)]
        assert main(search(tmp_path, "--model", "GPT-5.4=claude-x", *where)) != 0
        assert not server.asked
    assert "anthropic" in capsys.readouterr().err


MIXED = """
models:
  - {{name: GPT-5.4, provider: openai}}
  - {{name: Mine, provider: google, served: gemini-2.5-flash, like: Gemini 2.5 Flash}}
  - {{name: GPT-6-Astra, provider: openai}}
datasets: [Demo]
representations: [xyxy]
outputs: json
limit: 2
work_dir: {folder}
"""


@pytest.mark.sees("key provider")
def test_a_sweep_may_ask_several_providers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(MIXED.format(folder=tmp_path / "runs"))
    with (
        ChatServer(OPENAI.answering(a_box)) as first,
        ChatServer(GOOGLE.answering(a_box)) as second,
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", address(first, OPENAI))
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", address(second, GOOGLE))
        assert main(["sweep", str(path), "--dry-run"]) == 0
        assert "GPT-5.4 over HTTP: 2 calls" in capsys.readouterr().out
        assert (len(first.asked), len(second.asked)) == (0, 0)
        assert main(["sweep", str(path)]) == 0
        assert (len(first.asked), len(second.asked)) == (4, 2)
        assert {asked.body["model"] for asked in first.asked} == {"gpt-5.4", "gpt-6-astra"}
        capsys.readouterr()
        assert main(["sweep", str(path), "--provider", "openai"]) == 2
        assert "Mine is asked at google" in capsys.readouterr().err
    identity = next((tmp_path / "runs" / "Mine").glob("*_identity.json"))
    who = json.loads(identity.read_text())["answering"]
    assert (who["kind"], who["checkpoint"]) == ("provider google", "gemini-2.5-flash")
    assert who["endpoint"] == f"{address(second, GOOGLE)}/v1beta"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"SECRET" in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("search --model GPT-5.4 --provider opnai", "did you mean openai"),
        ("search --model Claude-Opus-5.5 --provider openai", "NAME_AT_OPENAI"),
        ("search --model Unknown=q --provider openai", "unknown model 'Unknown'"),
        ("search --model GPT-6-Astra --provider openai --temperature 1", "accepts none at openai"),
        (
            "search --model Gemini-2.5-Flash --provider google --batch openai",
            "is another provider's",
        ),
        (f"--data {DATA} --model Opus --provider anthropic", "NAME_AT_ANTHROPIC"),
        (f"--data {DATA} --model GPT-5.4 --provider openai --like x", "--like: unknown model 'x'"),
        (f"--data {DATA} MMBench --model FindIt-Nano --temperature 1", "in separate commands"),
    ],
)
def test_what_contradicts_is_refused_before_the_first_call(
    command: str,
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # no outputs/ of before, where a finished sweep is looked for first
    assert main(command.split()) == 2
    assert why in capsys.readouterr().err
