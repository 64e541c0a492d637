"""The demonstration's runs do not hide one's own: above both they are left out, and said."""

from __future__ import annotations

from pathlib import Path

import pytest
from scored_runs import World, small_world, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.scoring import load_runs, prediction_files
from vlmeval_findit.storage import DEMO_FILE

DATA = "FindIt_Pascal_xyxy_json_bbox_2d"
SHOWN = Path("outputs/demo/runs")
SAID = f"not shown: the demonstration; name it to see it: {SHOWN}"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Make the runs of a demonstration below ``outputs``, with tables that were made of it."""
    world = small_world(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    world.predict("Shown", DATA, speaking(DATA, 0.9), folder="../outputs/demo/runs/Shown")
    (SHOWN / DEMO_FILE).write_text("{}\n", encoding="utf-8")
    assert main(["leaderboard", "outputs"]) == 0
    return world


def models(folder: str) -> list[str]:
    loaded = [run.model for run in load_runs([Path(folder)])]
    named = [path.name.partition("_")[0] for path in prediction_files([Path(folder)])]
    assert loaded == named
    return loaded


def test_it_is_left_out_beside_other_runs(world: World) -> None:
    assert models("outputs") == ["Shown"], "alone in the folder it is what was meant"
    world.predict("Mine", DATA, speaking(DATA, 0.5), folder="../outputs/Mine")
    assert models("outputs") == ["Mine"]
    assert models("outputs/demo") == models(str(SHOWN)) == ["Shown"]


@pytest.mark.parametrize("command", ["leaderboard", "report"])
def test_a_board_says_that_it_is_left_out(
    command: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.predict("Mine", DATA, speaking(DATA, 0.5), folder="../outputs/Mine")
    assert main([command, "outputs"]) == 0
    said = capsys.readouterr()
    assert SAID in said.err
    assert "Shown" not in said.out
    for folder in ("outputs/demo", str(SHOWN)):
        assert main([command, folder]) == 0
        assert SAID not in capsys.readouterr().err


def test_a_board_of_few_datasets_shows_each(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (DATA, DATA.replace("Pascal", "Pascal_multilabel")):
        world.predict("Mine", name, speaking(name, 0.5), folder="../outputs/Mine")
    capsys.readouterr()
    assert main(["leaderboard", "outputs"]) == 0
    (head,) = [line for line in capsys.readouterr().out.split("\n") if line.startswith("rank")]
    assert head.split() == ["rank", "model", "Overall", "Pascal", "Pascal_multilabel"]


def test_a_page_in_place_of_another_says_so(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.predict("Mine", DATA, speaking(DATA, 0.5), folder="../outputs/Mine")
    for model in ("A", "B"):
        world.predict(model, DATA, speaking(DATA, 0.5), folder=f"../outputs/two/{model}")
    for folder, before in (("outputs/demo", ""), ("outputs/Mine", ""), ("outputs/two", "1 run")):
        for command in ("report", "leaderboard"):
            capsys.readouterr()
            assert main([command, folder, "--out", f"one.{command}"]) == 0
            said = capsys.readouterr().out
            assert ("in place of" in said) is bool(before), "only where it shows something else"
            assert before in said
