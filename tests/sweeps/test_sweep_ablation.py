"""A sweep over one axis ends in a table and a plot of it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from vlmeval_findit.cli import main

SWEEP = """\
models: {models}
datasets: [Scenes_mini_video]
representations: xyxy
outputs: {outputs}
frames: [4, 1, 2]
limit: 5
work_dir: out
"""


@pytest.fixture
def here(tmp_path: Path, lmu_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LMUData", str(lmu_data))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_axis_ends_in_a_table_and_a_plot(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "sweep.yaml").write_text(SWEEP.format(models="[FullImage]", outputs="json"))
    assert main(["sweep", "sweep.yaml"]) == 0
    printed = capsys.readouterr().out
    assert "F1@0.5 by frames: FullImage on Scenes_mini_video:" in printed
    assert "out/: ablation.md, ablation.csv, ablation.tex, ablation.svg" in printed
    with open("out/ablation.csv", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    # The first value of the file is the first here.
    assert [row["frames"] for row in rows] == ["4", "1", "2"]
    assert [bool(row["minus first"]) for row in rows] == [False, True, True]
    assert "F1@0.5 by frames" in (here / "out/ablation.tex").read_text(encoding="utf-8")
    assert "frames 1: 0.0 %" in (here / "out/ablation.svg").read_text(encoding="utf-8")


def test_two_axes_end_in_scores_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "sweep.yaml").write_text(SWEEP.format(models="[FullImage]", outputs="all"))
    assert main(["sweep", "sweep.yaml"]) == 0
    assert "by frames" not in capsys.readouterr().out
    assert not [*(here / "out").glob("ablation*")]


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("ablation*")}


FOUR = {"ablation.md", "ablation.csv", "ablation.tex", "ablation.svg"}
# What a later sweep into the same folder changes, and what it leaves there
LATER = {
    "the same axis": ({"outputs: json": "outputs: text"}, FOUR),
    "two axes": ({"outputs: json": "outputs: all"}, set()),
    "one value": ({"frames: [4, 1, 2]": "frames: 1"}, set()),
    "two stages": (
        {"representations: xyxy\noutputs: json\n": "stages: [{outputs: json}, {keys: bbox_2d}]\n"},
        set(),
    ),
}


@pytest.mark.parametrize("later", LATER)
def test_no_file_is_of_an_earlier_sweep(later: str, here: Path, capsys) -> None:
    changes, left = LATER[later]
    text = SWEEP.format(models="[FullImage]", outputs="json")
    (here / "sweep.yaml").write_text(text)
    assert main(["sweep", "sweep.yaml"]) == 0
    assert files_in(here / "out") == FOUR
    (here / "out/ablation-notes.md").write_text("mine")
    for suffix in ("md", "csv", "tex", "svg"):  # Of a sweep over several benchmarks
        (here / f"out/ablation-VP-Bench.{suffix}").write_text("earlier")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (here / "sweep.yaml").write_text(text)
    assert main(["sweep", "sweep.yaml"]) == 0, capsys.readouterr().err
    assert files_in(here / "out") == {*left, "ablation-notes.md"}
