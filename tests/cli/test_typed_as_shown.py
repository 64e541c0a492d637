"""Words that a help has in the place of others, and paths that are nearly right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from every_pair import every_pair
from few_fast import every_nth_fast

from vlmeval_findit.cli import COMMANDS, command_named, main, placeholders
from vlmeval_findit.core import near_path

WORDS_OF_FLAGS = {"FLAGS", "IN", "NEW", "OF", "OLD", "OUT", "MARKS", "VLMEVALKIT"}
"""Parts of pairs, and headings: they are never typed alone."""


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_word_of_a_help_is_known(name: str) -> None:
    for option in command_named(name).params:
        words = set(re.findall(r"[A-Z]{2,}\b", option.metavar or ""))
        assert words - WORDS_OF_FLAGS <= {*placeholders.STANDS_FOR}, option.opts


LINES = [
    "models MODEL",
    "models NAME",
    "run --data FindIt_DATA_xyxy_json --model FindIt-Nano",
    "run --data FindIt_Scenes_mini_xyxy_json --model MODEL",
    "run --data FindIt_Scenes_mini_xyxy_json --model NAME=CHECKPOINT",
    "run --data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano --space SPACE",
    "run --data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano --base-url URL",
    "search --model MODEL --data Scenes_mini",
    "sweep FILE.yaml",
    "data import FILE --name Mine",
    "data get NAME",
    "data show NAME",
    "data stats NAME",
    "data remove NAME --yes",
    "reproduce MODEL",
    "report RUN",
    "report [RUN...]",
    "errors DIR",
    "compare RUN RUN",
    "check NAME",
    "score RUN",
]


@pytest.mark.parametrize("line", every_nth_fast(LINES, 3))
def test_a_copied_word_is_explained(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert re.search(r"[A-Z] stands for ", said), said


def test_a_folder_of_that_name_is_meant(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "RUN").mkdir()
    assert main(["errors", "RUN"]) == 2
    assert "stands for" not in capsys.readouterr().err


FOLDERS = [
    "score {}",
    "leaderboard {}",
    "compare {0} {0}",
    "errors {}",
    "errors right/FindIt-Nano --against {}",
    "audit {}",
    "samples {}",
    "calibration {}",
    "coords {}",
    "report {}",
    "export {} --to coco",
    "reproduce FindIt-Nano --against {}",
    "watch-checkpoints {} --once --data FindIt_Scenes_mini_xyxy_json",
    "data reviews {}",
    "data import {} --name Mine",
    "data import {}/a.json --name Mine",
    "sweep {}/a.json",
    "figures --figures {}/a.json",
    "run --data FindIt_Scenes_mini_xyxy_json --model mine={}",
    "run --data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano --image-root Scenes_mini={}",
    "run --data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano --system {}/a.json",
    "run --data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano --prompt-template {}/a.json",
    "data show FindIt_Scenes_mini_xyxy_json --system {}/a.json",
    "check --plugin {}/a.json",
    "sweep configs/smoke.yaml --formats {}/a.json",
]


@pytest.mark.parametrize("line", every_nth_fast(FOLDERS, 3))
def test_a_path_that_is_nearly_right_names_the_right_one(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    right = tmp_path / "right" / "FindIt-Nano"
    right.mkdir(parents=True)
    (right / "a.json").write_text("{}")
    assert main(line.format("right/FindIt-Nan").split()) == 2
    said = capsys.readouterr().err
    assert re.search(r"did you mean (\S*/)?right/FindIt-Nano(/a\.json)?\?", said), said


@every_pair(
    "typed, meant",
    ["outptus/runs/a.json", "outputs/rums/a.json", "outptus/rums/a.jsn", "outputs/runs/a.jso"],
    ["outputs/runs/a.json"],
)
def test_each_part_of_a_path_may_be_misspelt(
    typed: str, meant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(meant)
    file.parent.mkdir(parents=True)
    file.touch()
    assert near_path(Path(typed)) == file


def test_a_path_unlike_all_others_has_no_near_one(tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    (tmp_path / ".zebra").mkdir()
    assert near_path(tmp_path / "zebra") is None
    assert near_path(tmp_path / "photographs" / "a.png") is None
