"""Another program takes a run's files away, or cuts them off: what is kept, and what is said."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, completion

from vlmeval_findit.cli import main

DATA = "FindIt_Scenes_mini_xyxy_json"
CALLS = 12
OUT = Path("o")
BOX = '[{"bbox": [0, 0, 1000, 1000]}]'

SWEEP = """
models: [{name: M, space: grid1000, served: stub}]
datasets: [Demo]
representations: [xyxy]
outputs: json
limit: 12
"""

Deed = Callable[[Path], object]


def _again(path: Path) -> None:
    """Write other bytes over it, as many and more."""
    path.write_bytes(b"x" * (path.stat().st_size + 10_000))


def _replaced_by_a_file(path: Path) -> None:
    shutil.rmtree(OUT)
    OUT.write_text("mine")


CUTS: dict[str, Deed] = {
    "emptied": lambda path: os.truncate(path, 0),
    "cut in the middle": lambda path: os.truncate(path, path.stat().st_size // 2),
    "without its last byte": lambda path: os.truncate(path, path.stat().st_size - 1),
    "written again": _again,
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
}
REMOVALS: dict[str, Deed] = {
    "the journal is removed": lambda path: path.unlink(),
    "its folder is removed": lambda path: shutil.rmtree(path.parent),
    "all is removed": lambda path: shutil.rmtree(OUT),
    "all is moved": lambda path: OUT.rename("elsewhere"),
}


def journal() -> Path:
    (found,) = OUT.rglob("*_calls.jsonl")
    return found


def serve(deed: Deed, at: int) -> ChatServer:
    """Return a server that does something before it answers a call."""

    def said(asked: Asked, number: int) -> Answer:
        if number == at:
            deed(journal())
        return completion(BOX)

    return ChatServer(said)


def run(server: ChatServer, *more: str) -> int:
    words = ["run", "--data", DATA, "--model", "M=stub", "--space", "grid1000", "--limit"]
    given = [str(CALLS), "--base-url", server.url, "--work-dir", str(OUT), "--api-nproc", "1"]
    return main([*words, *given, *more])


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("at", [4, CALLS - 1])
@pytest.mark.parametrize("deed", CUTS)
def test_a_journal_that_is_cut_off_ends_the_run(
    deed: str, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(CUTS[deed], at) as server:
        assert run(server) == 1
        told = capsys.readouterr().err
        assert "another program cut it off, or wrote it again" in told
        assert "nothing was run" not in told
        assert len(server.asked) <= at + 2, "one is perhaps on its way"


@pytest.mark.parametrize("at", [4, CALLS - 1])
@pytest.mark.parametrize("deed", REMOVALS)
def test_what_is_removed_is_stored_again(
    deed: str, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(REMOVALS[deed], at) as server:
        assert run(server) == 1
        told = capsys.readouterr().err
        assert "nothing was run" not in told
        assert "Every reply is stored in it: run again to go on." in told
        assert run(server) == 0
        assert len(server.asked) == CALLS, "no call is paid for twice"


@pytest.mark.parametrize("at", [4, CALLS - 1])
def test_lost_answers_are_said_to_be_lost(at: int, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(_replaced_by_a_file, at) as server:
        assert run(server) == 1
    told = capsys.readouterr().err
    assert "the replies in it are lost" in told
    assert "nothing was run" not in told


def test_results_that_cannot_be_written_lose_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """The folder of results is in the way of a file; the journal lies elsewhere."""

    def said(asked: Asked, number: int) -> Answer:
        if number == CALLS - 1:
            shutil.rmtree(OUT, ignore_errors=True)
            OUT.write_text("mine")
        return completion(BOX)

    Path("sweep.yaml").write_text(SWEEP)
    places = ["--work-dir", str(OUT), "--journal", "calls.jsonl"]
    with ChatServer(said) as server:
        words = ["sweep", "sweep.yaml", *places, "--base-url", server.url]
        assert main(words) == 1
        assert "every reply is stored in calls.jsonl" in capsys.readouterr().err
        OUT.unlink()
        assert main(words) == 0
        assert len(server.asked) == CALLS
