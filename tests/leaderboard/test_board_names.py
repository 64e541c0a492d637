"""Names of models as text: in files, in the terminal."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from boards import JSON, TEXT, board, csv_rows, runs
from openpyxl import load_workbook
from rich.console import Console
from scored_runs import World, failing, speaking

from vlmeval_findit.benchmarks.findit import Family
from vlmeval_findit.cli import print_board
from vlmeval_findit.core import printable
from vlmeval_findit.leaderboard import (
    OVERALL,
    DatasetMean,
    PaperStyle,
    as_latex,
    as_markdown,
    make_board,
    write_board,
)
from vlmeval_findit.scoring import Run

__all__ = ["board", "runs"]


UGLY = (
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "+1",
    "-1",
    " =1+1",
    "a$\\foo{$",
    "_leading",
    "[bold]not bold[/bold] [/]",
    "<script>alert(1)</script>&amp;",
    "#1 \\input{x} %~^{}_",
    "tab\tline\nbell\x07escape\x1b[31m",
    "right\u202eto left\u200f",
    "half \ud800 pair",
    "null\x00 and \ufffe",
    "name" * 50,
    "שלום 模型 🦄",
)


@pytest.fixture
def ugly(world: World) -> list[Run]:
    run = world.run("M", JSON, speaking(JSON, 0.5, 10))
    text = world.run("M", TEXT, failing)
    return [replace(each, model=name) for name in UGLY for each in (run, text)]


def test_names_come_out_of_every_file_as_text(ugly: list[Run], tmp_path) -> None:
    write_board(make_board(ugly), tmp_path)
    shown = {printable(model) for model in UGLY}
    for name in ("leaderboard.csv", "formats.csv"):
        rows = csv_rows(tmp_path / name)
        assert {row["model"].removeprefix("'") for row in rows} == shown
        for value in (value for row in rows for value in row.values()):
            number = re.fullmatch(r"-?\d+\.\d{4}", value)
            assert number or not value.lstrip().startswith(("=", "+", "-", "@")), value
            assert value.isprintable()
    content = json.loads((tmp_path / "leaderboard.json").read_text("utf-8", "surrogatepass"))
    names = {row["model"].replace("\\ud800", "\ud800") for row in content["rows"]}
    assert names == set(UGLY)
    book = load_workbook(tmp_path / "leaderboard.xlsx")
    place = [cell.value for cell in book["mIoU"][3]].index("model") + 1
    assert {book["mIoU"].cell(row, place).value for row in range(4, 4 + len(UGLY))} == shown
    assert all(cell.data_type != "f" for sheet in book for row in sheet.iter_rows() for cell in row)
    assert all(column.width <= 60 for column in book["mIoU"].column_dimensions.values())


def test_names_are_no_markup(ugly: list[Run]) -> None:
    board = make_board(ugly, ["xyxy_json"])
    page = as_markdown(board)
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert r"\[bold\]not bold" in page
    assert r"\<script\>alert(1)\</script\>\&amp;" in page
    assert not set(page) & {"\u202e", "\u200f", "\x07", "\x1b", "\t", "\ud800"}
    latex = as_latex(board, PaperStyle.FULL)
    assert r"\#1 \textbackslash{}input\{x\} \%\textasciitilde{}\textasciicircum{}\{\}\_" in latex
    assert r"a\$\textbackslash{}foo\{\$" in latex
    for line in latex.splitlines():
        if " & " in line and not line.startswith("%"):
            assert len(re.findall(r"(?<!\\)&", line)) == 3, line
    bare = re.sub(r"\\[{}]", "", latex)
    assert bare.count("{") == bare.count("}")


# --- the terminal ---------------------------------------------------------------------------------


def test_80_columns_show_the_overall_table_and_pipes_all(
    ugly: list[Run], runs: list[Run], capsys, monkeypatch
) -> None:
    """With a mean for every family, as the whole benchmark has."""
    in_pascal = [run for run in runs if run.variant.table == "Pascal"]
    board = make_board([*in_pascal, *ugly], ["xyxy_json"])
    names = (OVERALL, *(family.title for family in Family))
    cells = {(model, name): board.cells[model, OVERALL] for model in board.models for name in names}
    families = [DatasetMean(name, ("Pascal", name)) for name in names[1:]]
    means = (board.means[0], *families)
    board = replace(board, means=means, cells=cells)
    print_board(board)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("rank") for line in lines) == 1
    assert any("name" * 50 in line for line in lines)
    assert any("[bold]not bold[/bold] [/]" in line for line in lines)
    terminal = Console(width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr("vlmeval_findit.cli.printing.console", lambda: terminal)
    print_board(board)
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 80
    assert "low–high: 95 % interval over images." in printed
    (head,) = [re.split(" {2,}", line) for line in lines if line.startswith("rank")]
    assert head == ["rank", "model", OVERALL]
    folded = " ".join(printed.split())
    assert f"{', '.join(names[1:])}: in leaderboard.md" in folded
    # Complete values and intervals at any width; both ends of names.
    overall = board.cells["Good", OVERALL].entries["F1@0.5"]
    assert overall.interval is not None
    assert printed.count(f"{overall.interval.low:.1f}–{overall.interval.high:.1f}") == 1
    assert not re.search(r"…\s", printed)
    assert "[bold]not bo" in printed
    assert "…" in printed
