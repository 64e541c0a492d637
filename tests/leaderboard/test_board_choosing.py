"""The best of many formats: outputs show their number."""

from __future__ import annotations

import json

from boards import JSON, NOW, TEXT, csv_rows, runs, world
from openpyxl import load_workbook
from scored_runs import World, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.leaderboard.board_files import as_markdown
from vlmeval_findit.leaderboard.notes import tried_lines
from vlmeval_findit.report.page import make_page
from vlmeval_findit.runs.scored_run import load_runs

__all__ = ["runs", "world"]

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
