"""Where nothing of runs can be shown, nothing is written, and what to type is said."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from every_pair import every_pair
from refl4_stand_in import prepared
from scored_runs import World, saying, small_world, speaking
from stored_reproductions import NAME, reproduced

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import FAILED_ANSWER, Answering, Identity

DATA = "FindIt_Pascal_xyxy_json"

# What a command writes, by its words
WRITERS = {"report": "outputs/report.html", "leaderboard": "outputs/leaderboard/leaderboard.csv"}


def in_space(kind: str) -> Callable[[Identity], Identity]:
    return lambda run: replace(run, answering=Answering("Test", settings={"temperature": kind}))


def two_under_one_name(world: World) -> None:
    for folder in ("one", "two"):
        world.predict("M", DATA, speaking(DATA, 0.9), folder=folder, change=in_space(folder))


def no_call_answered(world: World) -> None:
    world.predict("M", DATA, saying(f"{FAILED_ANSWER} via API."), folder="one")


def no_rows(world: World) -> None:
    world.predict("M", DATA, speaking(DATA, 0.9), rows=0, folder="one")


NOTHING = {"two": two_under_one_name, "unanswered": no_call_answered, "empty": no_rows}


@every_pair("words, nothing", WRITERS, NOTHING)
def test_nothing_to_show_replaces_no_earlier_page(
    words: str,
    nothing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = small_world(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    NOTHING[nothing](world)
    world.runs.rename("outputs")
    earlier = Path(WRITERS[words])
    earlier.parent.mkdir(exist_ok=True)
    earlier.write_text("of yesterday", encoding="utf-8")
    assert main([words, "outputs"]) == 2
    said = capsys.readouterr().err
    assert "nothing of FindIt can be shown, so nothing is written:" in said
    runs = sorted(Path("outputs").rglob(f"M_{DATA}.json"))
    assert all(str(run) in said for run in runs)
    assert earlier.read_text(encoding="utf-8") == "of yesterday"
    assert [*earlier.parent.iterdir()] == [earlier] or words == "report"
    typed = re.search(rf"findit[.\w]* ({words} .*)", said)
    assert (typed is not None) == (nothing == "two")
    if typed is not None:
        assert main([*shlex.split(typed[1]), "--out", str(tmp_path / "new")]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", WRITERS)
def test_one_benchmark_without_runs_hides_no_other(
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(prepared(tmp_path / "lmu", tmp_path / "parquet")))
    world = World(tmp_path)
    world.predict("M", "FindIt_RefL4Full_all_xyxy_json", saying("[]"))
    no_call_answered(small_world(tmp_path, monkeypatch))
    assert main([words, str(world.runs)]) == 1
    said = capsys.readouterr()
    assert "error: nothing of FindIt can be shown" in said.err
    assert "RefL4Full_all" in said.out


def test_verdicts_are_shown_where_their_runs_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two reproductions of one model, in other setups: each has its section of the page."""
    world = small_world(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    reproduced(world)
    world.predict("Mine", NAME, speaking(NAME, 0.5), folder="two", change=in_space("two"))
    assert main(["leaderboard", str(world.runs), "--out", "board"]) == 2
    assert main(["report", str(world.runs), "--out", "page.html"]) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Qwen3-VL on RefCOCO testA: lower than published" in page
