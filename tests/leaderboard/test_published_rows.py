"""Figures of others beside runs over a published set: marked, without a rank, with their source."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import refcoco_stand_ins as copies
from boards import csv_rows
from custom_data import data_folder
from scored_runs import World, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.core import Group, PluginTable
from vlmeval_findit.data import SOURCES, DataSource, sources
from vlmeval_findit.leaderboard import Board, as_markdown, make_board, metric_table
from vlmeval_findit.scoring import load_runs

NAME = "FindIt_RefCOCOFull_testA_xyxy_json"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of RefCOCO, small and as published."""
    data_folder(tmp_path, monkeypatch)
    small = replace(SOURCES["RefCOCOFull"], parts=copies.COUNTS)
    rows = {**SOURCES.builtin, small.name: small}
    monkeypatch.setattr(sources, "SOURCES", PluginTable(Group.SOURCES, rows, DataSource))
    return copies.COPIES["Qwen-VL's JSON lines"](tmp_path / "copy")


def board_of(folder: Path, name: str = NAME) -> Board:
    world = World(folder)
    world.predict("Mine", name, speaking(name, chance=1.0))
    world.predict("Other", name, speaking(name, chance=0.0))
    return make_board(load_runs([world.runs]))


def test_figures_stand_below_the_runs_of_their_set(copy: Path, tmp_path: Path) -> None:
    assert main(["data", "import", str(copy), "--set", "RefCOCOFull"]) == 0
    board = board_of(tmp_path)
    assert board.models == ("Mine", "Other")
    recall = metric_table(board, "Recall")
    quoted = {row[1]: row for row in recall.rows[-recall.quoted :]}
    assert quoted["InternVL3-8B"][0] == "published"
    assert quoted["InternVL3-8B"][-1] == 94.6
    assert "Qwen3-VL-8B-Thinking" not in quoted, "only a mean of it is published"
    assert "Qwen3-VL-30B-A3B-Instruct" not in quoted, "a user's attempt"
    assert metric_table(board, "F1@0.5").quoted == 0
    page = as_markdown(board)
    assert "acc@0.5, which is Recall where replies have one box; measured by authors" in page
    assert "not told: bounds, decoding, engine, iou" in page
    out = tmp_path / "board"
    assert main(["leaderboard", str(tmp_path / "runs"), "--out", str(out)]) == 0
    rows = [row for row in csv_rows(out / "leaderboard.csv") if row["published in"]]
    assert len(rows) == recall.quoted
    assert all(row["Recall"] and not row["Recall rank"] for row in rows)


def test_other_tables_of_that_name_have_no_figures(copy: Path, tmp_path: Path) -> None:
    line = {"image": copies.file_name(3), "expression": "him", "boxes": [[5, 5, 105, 95]]}
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(line))
    images = ["--image-root", str(copy / "train2014")]
    own = ["data", "import", str(path), *images, "--name", "RefCOCOFull_testA"]
    assert main(own) == 0
    assert not board_of(tmp_path).published


def test_a_part_of_the_set_has_no_figures(copy: Path, tmp_path: Path) -> None:
    lines = copy / "refcoco_testA.jsonl"
    lines.write_text(lines.read_text().splitlines()[0])
    assert main(["data", "import", str(copy), "--set", "RefCOCOFull", "--partial"]) == 0
    assert not board_of(tmp_path).published


def test_clicks_are_beside_figures_of_clicks(copy: Path, tmp_path: Path) -> None:
    assert main(["data", "import", str(copy), "--set", "RefCOCOFull"]) == 0
    name = "FindIt_RefCOCOFull_testA_point_json_point_2d"
    assert not board_of(tmp_path, name).published, "figures of boxes are of another metric"
