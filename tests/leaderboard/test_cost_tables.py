"""Costs on a leaderboard: a table for people, columns for programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from costly_runs import with_records
from openpyxl import load_workbook
from rich.console import Console
from scored_runs import World, speaking

import vlmeval_findit as findit
from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import (
    RUN_COSTS,
    Board,
    cost_table,
    legend_of,
    make_board,
    to_markdown,
    to_terminal,
    write_board,
)
from vlmeval_findit.scoring import load_runs

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"
OTHER = "FindIt_Pascal_multilabel_xyxy_json_bbox_2d"


def add_run(
    world: World, model: str, name: str, record: Mapping[str, Any], seconds: float | None = None
) -> None:
    """Add a run all of whose answers cost the same."""
    path = world.predict(model, name, speaking(name, 0.9))
    time = {} if seconds is None else {"seconds": seconds}
    with_records(path, lambda index: record, lambda index: time)


def board_of(world: World) -> Board:
    return make_board(load_runs([world.runs]))


def paid(usd: float, prompt: int, reply: int, **call: Any) -> dict[str, Any]:
    tokens = {"prompt": prompt, "completion": reply}
    return {"tokens": tokens, "call": {"cost": usd, **call}}


@pytest.fixture
def two_models(world: World) -> Board:
    """Return a board: A over 12 and 5 queries, B over 12, without a price."""
    add_run(world, "A", NAME, paid(0.001, 1000, 20), 1.5)
    add_run(world, "A", OTHER, paid(0.003, 2000, 40, attempts=2), 2.5)
    add_run(world, "B", NAME, {"tokens": {"prompt": 700, "reply": 9}}, 0.25)
    return board_of(world)


def test_a_model_costs_the_mean_over_its_datasets(two_models: Board) -> None:
    table = cost_table(two_models)
    assert table.records() == [
        {
            "model": "A",
            "s median": 2.0,
            "s p95": 2.0,
            "tokens in": 1500.0,
            "tokens out": 30.0,
            "USD/1000": pytest.approx(2.0),
            "datasets": "2/2",
        },
        {
            "model": "B",
            "s median": 0.25,
            "s p95": 0.25,
            "tokens in": 700.0,
            "tokens out": 9.0,
            "USD/1000": None,
            "datasets": "1/2",
        },
    ]
    (line,) = table.notes[1].lines
    assert line == "A: dollars: stated by the service; 5 of 17 after several attempts"
    text = to_markdown(table)
    assert "| B | 0.25 ‡ | 0.25 ‡ | 700 ‡ | 9 ‡ | – | 1/2 |" in text
    assert "‡" not in text.split("| B |")[0], "A has every dataset"
    assert legend_of([table])[0].startswith("‡: of its own datasets")


def test_a_cost_unknown_of_one_dataset_is_empty(world: World) -> None:
    add_run(world, "A", NAME, paid(0.001, 1000, 20))
    add_run(world, "A", OTHER, {"tokens": {"prompt": 2000, "completion": 40}})
    table = cost_table(board_of(world))
    assert table.records() == [{"model": "A", "tokens in": 1500.0, "tokens out": 30.0}]
    assert table.notes[0].lines[0] == "tokens out have thoughts; failed calls do not count"
    assert table.notes[1].lines == ["A: dollars known of 12 of 17 answers"], "a price of nothing"


def test_what_is_partly_known_is_said(world: World) -> None:
    path = world.predict("A", NAME, speaking(NAME, 0.9))
    with_records(path, lambda index: paid(0.001 * index, 900, 9) if index % 2 else {})
    table = cost_table(board_of(world))
    assert table.records()[0]["USD/1000"] == pytest.approx(6.0)  # of rows 1, 3, 5, 7, 9 and 11
    (line,) = table.notes[1].lines
    assert "tokens in, tokens out, dollars known of 6 of 12 answers" in line


def test_seconds_of_many_calls_at_once_are_told_apart(world: World, tmp_path: Path) -> None:
    for model, at_once in (("Alone", 1.0), ("Busy", 7.5)):
        path = world.predict(model, NAME, speaking(NAME, 0.9))
        time = {"seconds": 1.0, "at_once": at_once}
        with_records(path, lambda index: {}, lambda index, time=time: time)
    board = board_of(world)
    assert cost_table(board).notes[1].lines == ["Busy: seconds: 7.5 calls at once"]
    write_board(board, tmp_path)
    rows = csv.DictReader((tmp_path / "leaderboard.csv").read_text().splitlines())
    assert {row["model"]: float(row["calls at once"]) for row in rows} == {
        "Alone": 1.0,
        "Busy": 7.5,
    }


def test_without_any_cost_there_is_no_table(world: World, tmp_path: Path) -> None:
    world.run("A", NAME, speaking(NAME, 0.9))
    board = board_of(world)
    assert not cost_table(board).rows
    write_board(board, tmp_path / "out")
    assert "Cost of a query" not in (tmp_path / "out" / "leaderboard.md").read_text()
    assert "Cost" not in load_workbook(tmp_path / "out" / "leaderboard.xlsx").sheetnames


def test_a_table_of_all_costs_fits_a_terminal(world: World) -> None:
    images = [{"sent": [2048, 1536]}]
    record = {**paid(0.0123, 12_345, 1_234), "images": images}
    path = world.predict("A-model-with-quite-a-long-name", NAME, speaking(NAME, 0.9))
    with_records(path, lambda index: record, lambda index: {"seconds": 12.3, "cpu_seconds": 45.6})
    (part,) = to_terminal(cost_table(board_of(world)), 80)
    out = Console(width=80, file=StringIO())
    out.print(part)
    lines = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= 80
    assert len(lines) == 2
    assert lines[1].split()[1:] == ["12.3", "12.3", "12,345", "1,234", "12.3", "45.6", "3.15"]


def test_files_for_programs_have_every_cost(two_models: Board, tmp_path: Path) -> None:
    write_board(two_models, tmp_path)
    rows = list(csv.DictReader((tmp_path / "leaderboard.csv").read_text().splitlines()))
    costs = {(row["model"], row["dataset"]): row for row in rows}
    assert {column.name for column in RUN_COSTS} <= rows[0].keys()
    assert float(costs["A", "Pascal"]["USD per 1000"]) == pytest.approx(1.0)
    assert float(costs["A", "mean: Overall"]["USD per 1000"]) == pytest.approx(2.0)
    assert costs["A", "Pascal_multilabel"]["retried"] == "5"
    assert costs["B", "Pascal"]["USD per 1000"] == ""
    content = json.loads((tmp_path / "leaderboard.json").read_text())
    in_json = {(row["model"], row["dataset"]): row for row in content["rows"]}
    assert in_json["B", "Pascal"]["USD per 1000"] is None
    assert in_json["A", "Pascal"]["seconds (median)"] == 1.5
    formats = csv.DictReader((tmp_path / "formats.csv").read_text().splitlines())
    assert {row["tokens out"] for row in formats} == {"20.0000", "40.0000", "9.0000"}
    assert "Cost of a query" in (tmp_path / "leaderboard.tex").read_text()
    book = load_workbook(tmp_path / "leaderboard.xlsx")
    assert "Cost" in book.sheetnames
    formats = [[cell.number_format for cell in row] for row in book["Cost"].iter_rows(4, 5, 2, 5)]
    assert [["‡" in each for each in row] for row in formats] == [[False] * 4, [True] * 4]
    for sheet in ("Formats", "All values"):
        names = [cell.value for cell in book[sheet][3]]
        assert {"USD per 1000", "answers", "retried"} <= {*names}
        assert {"cached", "batched", "seconds known", "USD known"}.isdisjoint(names), "say nothing"


def test_the_command_prints_costs_below_the_board(
    two_models: Board, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["leaderboard", str(world.runs), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    table = printed.split("Cost of a query (means over datasets):\n")[1]
    assert table.splitlines()[1].split() == ["A", "2", "2", "1,500", "30", "2", "2/2"]
    assert "–: not recorded" in table


def test_load_runs_has_the_cost_of_each_answer(two_models: Board, world: World) -> None:
    frame = findit.load_runs(world.runs)
    of_a = frame[(frame.model == "A") & (frame.dataset == NAME)]
    assert (
        of_a[["tokens in", "tokens out", "seconds", "cost in USD"]].values.tolist()
        == [[1000, 20, 1.5, 0.001]] * 12
    )


def test_load_scores_has_costs(two_models: Board, world: World) -> None:
    frame = findit.load_scores(world.runs).set_index(["model", "dataset"])
    assert frame.loc[("A", NAME), "USD per 1000"] == pytest.approx(1.0)
    assert frame.loc[("B", NAME), "answers"] == frame.loc[("B", NAME), "seconds known"] == 12
