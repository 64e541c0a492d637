"""Figures of others beside runs over a published set: marked, without a rank, with their source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import refcoco_stand_ins as copies
from boards import csv_rows
from custom_data import data_folder
from scored_runs import World, query, speaking
from toy_benchmark import LETTERS, guessing, letters

from vlmeval_findit.cli import main
from vlmeval_findit.core import Group, PluginTable
from vlmeval_findit.data import (
    SOURCES,
    Conditions,
    DataSource,
    FigureSet,
    ImageBounds,
    PublishedDecoding,
    figures_template,
    published_figures,
    sources,
)
from vlmeval_findit.leaderboard import (
    Board,
    as_latex,
    as_markdown,
    make_board,
    metric_table,
    remarks,
    values_table,
)
from vlmeval_findit.scoring import Run, load_runs

__all__ = ["letters"]

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


# --- whose format, and whose rows -----------------------------------------------------------------


@pytest.fixture
def zoo_runs(letters: World) -> list[Run]:
    """Return runs over the toy table: one has the name of a published model."""
    for model in ("Small_Model", "Mine"):
        for name in ("Letters_Zoo_json", "Letters_Zoo_plain"):
            letters.predict(model, name, guessing(0.9 if name.endswith("json") else 0.3))
    return load_runs([letters.runs])


@pytest.mark.parametrize("told", ["", "quoted"])
def test_a_published_row_has_the_format_that_its_source_tells(
    told: str, zoo_runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = [replace(each, format=told) for each in LETTERS.published()]
    monkeypatch.setattr(type(LETTERS), "published", lambda benchmark: figures)
    board = make_board(zoo_runs)
    tables = [metric_table(board, metric.name, formats=True) for metric in board.shown]
    tables.append(values_table(board))
    quoted = 0
    for table in tables:
        rows = table.records()
        first_quoted = len(rows) - table.quoted
        quoted += table.quoted
        for row in rows[first_quoted:]:
            assert row["format"] == told, table.title
        for row in rows[:first_quoted]:
            if not str(row.get("dataset", "")).startswith("mean: "):
                assert row["format"] == "json", table.title
    assert quoted
    for text in (as_latex(board), as_markdown(board)):
        lines = [line for line in text.splitlines() if "published" in line and "Small" in line]
        assert lines
        assert all("json" not in line for line in lines)


# What is known of a table, and whether published values stand beside runs over it
OTHER_TABLES: Mapping[str, tuple[Mapping[str, Any], bool]] = {
    "nothing": ({}, True),
    "as published, of 1.0": ({"unlike_release": []}, True),
    "other annotations": ({"unlike published": "12 rows, published are 45"}, False),
    "other annotations, of 1.0": ({"unlike_release": ["12 rows", "no sizes"]}, False),
}


@pytest.mark.parametrize("known", OTHER_TABLES)
def test_published_values_are_of_the_same_annotations(known: str, zoo_runs: list[Run]) -> None:
    facts, is_shown = OTHER_TABLES[known]
    runs = []
    for run in zoo_runs:
        table = replace(run.provenance.table, meta=facts)
        runs.append(replace(run, provenance=replace(run.provenance, table=table)))
    board = make_board(runs)
    assert bool(board.published) == is_shown
    said = dict(remarks(board)).get("Other annotations", [])
    assert bool(said) != is_shown
    for text in (as_latex(board), as_markdown(board)):
        assert ("Big-Model" in text) == is_shown
        assert ("12 rows" in text) != is_shown


def test_published_values_are_of_the_same_rows(
    letters: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A board says that they are not shown, where there are some."""
    letters.predict("Mine", "Letters_Zoo_json", guessing(0.9), rows=20)
    part = "20 of the 24 queries of its table"
    for are_any in (True, False):
        board = make_board(load_runs([letters.runs]))
        assert not board.published
        (line,) = dict(remarks(board))["Part of a table"]
        assert line.startswith(f"Zoo: {part}")
        assert line.endswith("no published value stands beside these") is are_any
        monkeypatch.setattr(type(LETTERS), "published", lambda benchmark: [])


# Conditions that figures may have, and how their row states each
CONDITIONS: Mapping[str, tuple[Any, str]] = {
    "prompt": ("qwen3-vl-1", "prompt qwen3-vl-1"),
    "space": ("grid1000", "space grid1000"),
    "bounds": (ImageBounds(min_pixels=5, patches=6), "min_pixels 5, patches 6"),
    "decoding": (
        PublishedDecoding(temperature=0.7, thinking=False),
        "temperature 0.7, no thinking",
    ),
    "engine": ("vllm", "engine vllm"),
    "iou": (">", "IoU > the threshold"),
    "note": ("a slot for the mark", "a slot for the mark"),
}


def test_a_published_row_states_each_condition(world: World) -> None:
    world.predict("Mine", "FindIt_Pascal_xyxy_json", speaking("FindIt_Pascal_xyxy_json", 1.0))
    runs = load_runs([world.runs])
    assert {*CONDITIONS, "format"} == {each.name for each in fields(Conditions)}
    of = FigureSet("F1@0.5", ("Pascal",))
    nothing = replace(published_figures()[0], set=of, conditions=Conditions(), note="")
    for name, (value, words) in CONDITIONS.items():
        told = replace(nothing, conditions=replace(Conditions(), **{name: value}))
        board = make_board(runs, figures=[nothing, told])
        without, stated = (row.where for row in board.published)
        assert words not in without
        assert words in stated


@pytest.fixture
def typed_figures(tmp_path: Path) -> Path:
    """Return a user's file with a figure of a dataset that the package has none of."""
    path = tmp_path / "figures.yaml"
    text = figures_template().replace(
        "{model: Qwen3-VL, conditions: v1 grid, values: {}}",
        "{model: Qwen3-VL-8B-Instruct, conditions: v1 grid, values: {Pascal: 51.2}}",
    )
    path.write_text(text)
    return path


@pytest.mark.sees("leaderboard --figures", "report --figures")
def test_typed_figures_stand_below_the_runs_with_their_conditions(
    typed_figures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.at_hand(monkeypatch)
    world.table("Pascal", [query(at, picture=f"{at}.jpg") for at in range(6)])
    for at in range(6):
        world.picture(f"{at}.jpg", at)
    name = "FindIt_Pascal_xyxy_json"
    for model, chance in (("Mine", 1.0), ("Other", 0.0)):
        world.predict(model, name, speaking(name, chance=chance))
    runs = str(world.runs)
    out = tmp_path / "board"
    flags = ["--figures", str(typed_figures)]
    assert main(["leaderboard", runs, "--out", str(out), *flags]) == 0
    (quoted,) = [row for row in csv_rows(out / "leaderboard.csv") if row["published in"]]
    assert float(quoted["F1@0.5"]) == 51.2
    assert not quoted["F1@0.5 rank"]
    told = (out / "leaderboard.md").read_text()
    assert "arXiv 2606.04282v1" in told
    assert "the release's own words" in told
    assert "space grid1000, engine transformers, temperature 0" in told
    page = tmp_path / "report.html"
    assert main(["report", runs, "--out", str(page), *flags]) == 0
    assert "2606.04282v1" in page.read_text()
