"""The best of many formats: outputs show their number; it can be chosen on other queries."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from boards import JSON, LABELS_JSON, LABELS_TEXT, NOW, TEXT, csv_rows, runs, world
from openpyxl import load_workbook
from scored_runs import World, query, speaking

from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery
from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard.board import OVERALL, make_board
from vlmeval_findit.leaderboard.board_files import as_markdown
from vlmeval_findit.leaderboard.formats import HALF, FormatError
from vlmeval_findit.leaderboard.notes import tried_lines
from vlmeval_findit.report.page import make_page
from vlmeval_findit.runs.scored_run import RowData, Run, load_runs

__all__ = ["runs", "world"]

Answer = Callable[[FindItQuery, np.random.Generator], str]
YXYX = "FindIt_Pascal_yxyx_text"


def test_every_output_shows_the_number_of_tried_formats(world: World, tmp_path, capsys) -> None:
    for name in (JSON, TEXT):
        world.predict("Searched", name, speaking(name, 0.8))
    # A search over a part of the rows chose the format as well.
    world.predict("Searched", YXYX, speaking(YXYX, 0.8), rows=6)
    world.predict("Asked once", JSON, speaking(JSON, 0.7))
    assert main(["leaderboard", str(world.runs), "--out", str(tmp_path)]) == 0
    board = make_board(load_runs([world.runs]))
    [line] = tried_lines(board)
    assert line.startswith("Searched: one of 3 formats that were tried, on the queries that it is")
    assert line in capsys.readouterr().out
    rows = csv_rows(tmp_path / "leaderboard.csv")
    assert {r["model"]: r["formats tried"] for r in rows} == {"Searched": "3", "Asked once": "1"}
    openvlm = json.loads((tmp_path / "leaderboard.json").read_text())
    assert openvlm["results"]["Searched"]["FindIt_Pascal"]["Formats tried"] == 3
    assert openvlm["findit"]["remarks"]["Formats tried"] == [line]
    assert "| 1 | Searched | 3 |" in (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    latex = (tmp_path / "leaderboard.tex").read_text(encoding="utf-8")
    assert "rank & model & formats tried &" in latex
    assert "1 & Searched & 3 &" in latex
    assert "one of 3 formats that were tried" in latex
    book = load_workbook(tmp_path / "leaderboard.xlsx")
    sheet = book.worksheets[0]
    tried = {sheet.cell(row, 2).value: sheet.cell(row, 3).value for row in (4, 5)}
    assert (sheet["C3"].value, tried) == ("formats tried", {"Searched": 3, "Asked once": 1})
    assert f"Formats tried: {line}" in [cell.value for cell in book["Notes"]["A"]]
    page = make_page(board, NOW)
    assert line in page
    assert '<th scope="col">formats tried</th>' in page


def test_without_a_choice_there_is_no_note(world: World) -> None:
    world.predict("One", JSON, speaking(JSON, 0.8))
    board = make_board(load_runs([world.runs]))
    assert tried_lines(board) == []
    assert "formats tried" not in as_markdown(board)


def test_chosen_on_one_dataset_reported_on_the_others(world: World) -> None:
    """Good is better in text on Pascal, in JSON on the other; the latter must not choose."""
    for name, chance in ((JSON, 0.2), (TEXT, 1.0), (LABELS_JSON, 1.0), (LABELS_TEXT, 0.1)):
        world.predict("Good", name, speaking(name, chance, 10))
    world.predict("Once", LABELS_JSON, speaking(LABELS_JSON, 0.7))
    for name in (LABELS_JSON, LABELS_TEXT):
        world.predict("Unknown", name, speaking(name, 0.7))
    scored = load_runs([world.runs])
    board = make_board(scored, choose_on=["Pascal"])
    assert [column.name for column in board.datasets] == ["Pascal_multilabel"]
    assert board.cells["Good", "Pascal_multilabel"].format == "xyxy_text"
    assert make_board(scored).cells["Good", "Pascal_multilabel"].format == "xyxy_json"
    # A single format is no choice; of several that were not run on Pascal none can be chosen.
    assert board.cells["Once", "Pascal_multilabel"].format == "xyxy_json"
    assert {each.run.model for each in board.excluded} == {"Unknown"}
    assert "no format of its model was run on --choose-on Pascal" in board.excluded[0].reason
    [line] = tried_lines(board)
    assert line == "Good: one of 2 formats that were tried, chosen on Pascal"
    fixed = make_board(scored, ["Good=xyxy_json"], ["Pascal"])
    assert fixed.cells["Good", "Pascal_multilabel"].format == "xyxy_json"


def right_on(name: str, places: set[str]) -> Answer:
    """Return a model that is right on some pictures only."""
    good, bad = speaking(name, 1.0), speaking(name, 0.0)
    return lambda q, generator: (good if q.images[0] in places else bad)(q, generator)


@pytest.mark.parametrize("keep", [RowData.DETAILS, RowData.SUMS])
def test_chosen_on_half_of_the_pictures_reported_on_the_other(world: World, keep: RowData) -> None:
    world.table("Pascal", [query(i, picture=f"{i // 2}.jpg") for i in range(80)])
    world.predict("M", JSON, speaking(JSON, 1.0))
    rows = make_board(load_runs([world.runs], keep=keep), choose_on=[HALF]).datasets[0].runs[0].rows
    reported = {row.source for row in rows}
    # All queries of a picture stay together, and each half has some.
    assert 10 < len(reported) < 30
    assert len(rows) == 2 * len(reported)
    # A format that is right on the reported half only is better there, and is not chosen.
    world.predict("M", JSON, right_on(JSON, reported))
    others = {f"{i}.jpg" for i in range(40)} - reported
    world.predict("M", TEXT, right_on(TEXT, others | set(sorted(reported)[:2])))
    board = make_board(load_runs([world.runs], keep=keep), choose_on=[HALF])
    cell = board.cells["M", "Pascal"]
    assert cell.format == "xyxy_text"
    assert (cell.queries, board.datasets[0].images) == (2 * len(reported), len(reported))
    expected = 100 * 2 * 2 / (2 + len(reported))
    assert cell.entries["F1@0.5"].value == pytest.approx(expected)
    assert board.cells["M", OVERALL].entries["F1@0.5"].value == pytest.approx(expected)
    [line] = tried_lines(board)
    assert line.endswith("tried, chosen on the other half of the images")


@pytest.mark.parametrize(
    ("on", "message"),
    [
        (["Pascl"], "--choose-on Pascl: no dataset of these runs: did you mean Pascal"),
        (["Pascal", "Pascal_multilabel"], "no other dataset is left to report on"),
        ([HALF, "Pascal"], "--choose-on half is of every dataset: name no other with it"),
    ],
)
def test_invalid_datasets_to_choose_on_are_refused(
    runs: list[Run], on: list[str], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        make_board(runs, choose_on=on)
