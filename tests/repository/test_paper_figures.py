"""The page of the papers' figures: its commands are typed, and make the columns that it names.

The blocks of the page that need no download are run with those of other pages; here stand-ins are
in place of what the authors publish.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import refl4_stand_in
import stage2_stand_in
from jsonl_data import LINES, import_lines
from pages import PAGES, blocks, commands

from vlmeval_findit.benchmarks.vpbench import mark_choices, parts_in, prepare_stage2
from vlmeval_findit.cli import main

PAGE = PAGES["docs/reference/paper-figures.md"]
MODELS = {"FindIt_RefL4": "FullImage", "VPBench": "FirstOption"}
"""Who answers in place of the page's model, by the beginning of the set."""

_ROW = re.compile(r"^\| .* \|$", re.MULTILINE)
_NAMES = re.compile(r"`([^`]+)`")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(section: str) -> None:
    """Type the commands of a section that the page does not run itself."""
    text = _section(section)
    for block in blocks(PAGE):
        if block.info != "sh parsed" or block.text not in text:
            continue
        for words in commands(block.text):
            model = next((MODELS[at] for at in MODELS if any(at in word for word in words)), "")
            line = [model if word == "Qwen3-VL-8B" else word for word in words]
            assert main(line) == 0, line


def _section(title: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def stated(section: str) -> set[str]:
    """Return the columns and slices that the last column of a section's table names."""
    names = set()
    for row in _ROW.findall(_section(section)):
        where = row.rstrip(" |").rpartition("|")[2]
        for name in _NAMES.findall(where):
            if not name.endswith((".csv", ".tex", ".yaml", ".*")):
                names.add(name)
    return names


def made(boards: Iterable[Path]) -> set[str]:
    """Return the columns of boards, and the kinds of their slices."""
    names = set()
    for board in boards:
        with open(board / "leaderboard.csv", encoding="utf-8") as f:
            names |= set(csv.DictReader(f).fieldnames or ())
        if (board / "slices.csv").is_file():
            with open(board / "slices.csv", encoding="utf-8") as f:
                names |= {row["slice"] for row in csv.DictReader(f)}
    return names


@pytest.mark.slow
def test_ref_l4s_commands_make_what_the_page_names(here: Path) -> None:
    refl4_stand_in.prepared(here / "lmu", here / "parquet")
    typed("Ref-L4")
    missing = stated("Ref-L4") - made([here / "outputs/refl4/board/Ref-L4"])
    assert not missing
    html = (here / "outputs/refl4/report.html").read_text(encoding="utf-8")
    assert "<summary>Classes, the best first</summary>" in html


def test_vp_benchs_commands_make_what_the_page_names(here: Path) -> None:
    layout = stage2_stand_in.Layout.JSON
    stage2_stand_in.write_part(here / "parts", 0, stage2_stand_in.rows(layout), layout)
    prepare_stage2(parts_in(here / "parts"), here / "lmu")
    marks = {"FirstOption": {"best": "oval-red"}}
    good = {"shapes": ["oval"], "colours": ["red"]}
    mark_choices.write_marks({"models": marks, "good": good})
    typed("VP-Bench")
    stage1 = ["run", "--data", "VPBench_Scenes_mini", "--model", "FirstOption"]
    assert main([*stage1, "--work-dir", "one"]) == 0
    assert main(["leaderboard", "one", "--out", "board"]) == 0
    boards = [here / "board/VP-Bench", here / "outputs/marks2/board/VP-Bench"]
    assert not stated("VP-Bench") - made(boards)


def test_findits_commands_make_what_the_page_names(here: Path) -> None:
    data = ["FindIt_Scenes_mini_xyxy_json", "FindIt_Scenes_mini_described_xyxy_json"]
    assert main(["run", "--data", *data, "--model", "FullImage", "--limit", "4"]) == 0
    assert main(["leaderboard", "outputs", "--out", "board"]) == 0
    assert not stated("FindIt") - made([here / "board"])


def test_captions_are_ablated_as_the_page_says(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_lines(here, LINES["refexp_all"], "--box", "corners") == 0
    assert "`captions: [false, true]`" in _section("FindIt")
    (here / "captions.yaml").write_text(
        "models: FullImage\ndatasets: Mine\nrepresentations: xyxy\noutputs: json\n"
        "captions: [false, true]\nwork_dir: out\n"
    )
    assert main(["sweep", "captions.yaml"]) == 0
    assert "F1@0.5 by caption: FullImage on Mine:" in capsys.readouterr().out
