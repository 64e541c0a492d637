"""Runs over one journal that state another space are refused before a call, or say so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_server import ChatServer

from vlmeval_findit.cli import main
from vlmeval_findit.storage import read_identity

DATA = "FindIt_Demo_xyxy_json"


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    for name in ("FINDIT_FORCE", "FINDIT_SPACE"):
        monkeypatch.setenv(name, "")  # a command sets them for its process
    monkeypatch.chdir(tmp_path)


def ran(server: ChatServer, work_dir: str, limit: int, space: str, *more: str) -> int:
    """Run with what was answered before, as who takes a run's journal elsewhere has it."""
    answered = Path("calls.jsonl")
    journal = Path(work_dir, "mine", f"mine_{DATA}_calls.jsonl")
    if answered.exists():
        journal.parent.mkdir(parents=True)
        journal.write_bytes(answered.read_bytes())
    of_run = ["--model", "mine", "--base-url", server.url, "--data", DATA, "--space", space]
    status = main(["run", *of_run, "--limit", str(limit), "--work-dir", work_dir, *more])
    answered.write_bytes(journal.read_bytes())
    return status


def swept(server: ChatServer, work_dir: str, limit: int, space: str, *more: str) -> int:
    models = [{"name": "mine", "base_url": server.url, "space": json.loads(space)}]
    Path("s.yaml").write_text(json.dumps({"models": models, "datasets": DATA, "limit": limit}))
    where = ("--work-dir", work_dir, "--journal", "calls.jsonl")
    return main(["sweep", "s.yaml", *where, *more])


UNIT = '{"kind": "unit"}'
GRID = '{"kind": "grid1000"}'
Asked = Callable[..., int]
COMMANDS = [ran, swept]


@pytest.mark.parametrize("asked", COMMANDS)
@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["asked", "counted"])
def test_another_space_is_refused_before_a_call(
    asked: Asked, more: tuple[str, ...], server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(server, "a", 2, UNIT) == 0
    answered = Path("calls.jsonl").read_bytes()
    calls = len(server.asked)
    capsys.readouterr()
    assert asked(server, "b", 4, GRID, *more) == 2
    said = capsys.readouterr().err
    assert (
        'coordinate space of answers: recorded {"kind": "unit"}, now {"kind": "grid1000"}' in said
    )
    assert "findit score RUN --space 'grid1000'" in said
    assert len(server.asked) == calls
    assert Path("calls.jsonl").read_bytes() == answered


@pytest.mark.parametrize("asked", COMMANDS)
def test_the_same_space_shares_answers(asked: Asked, server: ChatServer) -> None:
    calls = len(server.asked)
    assert asked(server, "a", 2, UNIT) == 0
    assert asked(server, "b", 3, UNIT) == 0
    assert len(server.asked) == calls + 3


@pytest.mark.parametrize("asked", COMMANDS)
def test_what_is_paid_is_scored_where_it_is_stated(asked: Asked, server: ChatServer) -> None:
    assert asked(server, "a", 2, UNIT) == 0
    calls = len(server.asked)
    assert main(["score", "a", "--space", "grid1000"]) == 0
    assert [*Path("a").rglob("*.space-*")]
    assert len(server.asked) == calls
    assert asked(server, "b", 3, GRID, "--force") == 0
    assert len(server.asked) == calls + 1
    (path,) = Path("b").rglob(f"mine_{DATA}.json")
    recorded = read_identity(path)
    assert recorded is not None
    assert "coordinate space of answers" in recorded.forced[0]
