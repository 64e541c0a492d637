"""What a command writes unless it is told goes to the folder that was named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from every_pair import every_pair
from few_fast import few_fast
from scored_runs import scored_outputs

from vlmeval_findit.cli import main

DATA = "FindIt_Pascal_xyxy_json_bbox_2d"

# By the words of a command, what it writes
COMMANDS = {
    "export --to coco": "export/coco",
    "leaderboard": "leaderboard/leaderboard.csv",
    "report": "report.html",
}

# What is typed behind it in a folder with ``all/Good`` and ``all/Poor``, and where it goes
PLACES: Sequence[tuple[str, str]] = [
    ("all", "all"),
    ("all/Good all/Poor", "all"),
    ("all/Good", "all/Good"),
    ("{absolute}/all", "all"),
    (f"all/Good/Good_{DATA}.json", "outputs"),
    ("all/Good other/Poor", "outputs"),
]


@every_pair("words, typed, place", COMMANDS, PLACES, fast=2)
def test_results_go_to_the_named_folder(
    words: str, typed: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored_outputs(tmp_path, monkeypatch)
    for model in ("Good", "Poor"):
        Path("all", model).mkdir(parents=True)
        for path in Path("outputs").glob(f"{model}_*"):
            path.rename(Path("all", model, path.name))
    Path("outputs").rmdir()
    Path("other").symlink_to("all")
    command, *flags = words.split()
    assert main([command, *typed.format(absolute=tmp_path).split(), *flags]) == 0
    assert Path(place, COMMANDS[words]).exists()
    assert (place == "outputs") == Path("outputs").exists()


@pytest.mark.parametrize("words", few_fast(COMMANDS, 1))
def test_without_a_run_results_go_beside_them(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a variable names the folder of results."""
    scored_outputs(tmp_path, monkeypatch)
    Path("outputs").rename("mine")
    monkeypatch.setenv("MMEVAL_ROOT", "mine")
    command, *flags = words.split()
    runs = ["mine"] if command == "export" else []
    assert main([command, *runs, *flags]) == 0
    assert Path("mine", COMMANDS[words]).exists()
    assert not Path("outputs").exists()


@pytest.mark.slow
def test_a_search_has_all_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = "search --model FindIt-Nano-px --data Scenes_mini --limit 2 --work-dir mine"
    assert main(asked.split()) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"mine"}
    assert Path("mine", "best_formats.yaml").is_file()
