"""Tables for a paper: whoever pastes one publishes numbers that can be repeated."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from boards import JSON, LABELS_JSON, TEXT
from many_runs import FORMATS, make_runs
from scored_runs import World, query, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import (
    Board,
    Field,
    FieldType,
    PaperStyle,
    Table,
    as_latex,
    as_markdown,
    asked_with,
    make_board,
    to_booktabs,
)
from vlmeval_findit.scoring import Run, load_runs


@pytest.fixture
def runs(world: World) -> list[Run]:
    chosen = [world.run("Best-in-text", name, speaking(name, 0.2)) for name in (JSON, LABELS_JSON)]
    chosen.append(world.run("Best-in-text", TEXT, speaking(TEXT, 1.0)))
    chosen += [world.run("Best_in_JSON", name, speaking(name, 0.9)) for name in (JSON, LABELS_JSON)]
    return chosen


def tables_of(latex: str) -> list[str]:
    return re.findall(r"\\begin\{table\*\}.*?\\end\{table\*\}", latex, re.DOTALL)


@pytest.mark.parametrize("style", PaperStyle)
def test_every_table_names_formats_prompts_and_dates(runs: list[Run], style: PaperStyle) -> None:
    board = make_board(runs)
    (prompts,) = {run.provenance.prompts for run in runs}
    for table in tables_of(as_latex(board, style)):
        assert r"xyxy\_json" in table
        assert f"Prompts: {prompts}. Asked: 20" in table
    page = as_markdown(board)
    assert f"Prompts: {prompts}. Asked: 20" in page
    for heading in ("Overall", "F1@0.5", "mIoU"):
        table = page.split(f"## {heading}\n")[1].split("\n## ")[0]
        assert r"| xyxy\_json |" in table, heading


@pytest.mark.parametrize("style", PaperStyle)
def test_notes_stand_once_and_of_reported_runs_only(runs: list[Run], style: PaperStyle) -> None:
    board = make_board(runs)
    reported = {id(row.run): row.reported for row in board.runs}
    assert set(reported.values()) == {True, False}
    doubted = []
    for run in runs:
        doubt = f"doubt of {'a reported' if reported[id(run)] else 'another'} run"
        doubted.append(replace(run, provenance=replace(run.provenance, coords_doubt=doubt)))
    latex = as_latex(make_board(doubted), style)
    assert latex.count("Values in percent.") == 1
    assert "doubt of a reported run" in latex
    assert "doubt of another run" not in latex
    assert "doubt of another run" not in as_markdown(make_board(doubted))


@pytest.mark.parametrize("style", PaperStyle)
def test_a_board_without_comparable_runs_has_no_values(runs: list[Run], style: PaperStyle) -> None:
    board = make_board([replace(run, rows=[]) for run in runs])
    assert not board.models
    assert asked_with(board) == ""
    assert (r"\toprule" in as_latex(board, style)) == (style is PaperStyle.FULL)


def test_a_paper_needs_no_package_but_booktabs_unless_asked(
    world: World, runs: list[Run], tmp_path: Path
) -> None:
    assert main(["leaderboard", str(world.runs), "--out", str(tmp_path)]) == 0
    latex = (tmp_path / "leaderboard.tex").read_text(encoding="utf-8")
    assert latex == as_latex(board_of(world), PaperStyle.BOOKTABS)
    assert latex.startswith("% needs \\usepackage{booktabs}\n")
    commands = set(re.findall(r"\\([a-z]+)", "".join(tables_of(latex))))
    assert not commands & {"resizebox", "makecell", "multirow", "rowcolor", "cmidrule"}
    assert r"\scriptsize" in latex, "formats below the names of models"


def test_long_names_of_columns_do_not_widen_a_table() -> None:
    """Six families of FindIt leave the page by 5 cm where each has its name on one line."""
    table = Table(
        "F1@0.5",
        [Field("the model"), Field("Detection in video", FieldType.VALUE, interval=True)],
        [["A", 97.4]],
    )
    latex = to_booktabs(table)
    assert r"the model & \shortstack[r]{Detection\\in\\video} \\" in latex


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")
@pytest.mark.parametrize("columns", ["onecolumn", "twocolumn"])
@pytest.mark.parametrize("style", PaperStyle)
def test_tables_compile_within_the_page(
    world: World, runs: list[Run], style: PaperStyle, columns: str, tmp_path: Path
) -> None:
    status = main(
        ["leaderboard", str(world.runs), "--style", style.value, "--out", str(tmp_path / "board")]
    )
    assert status == 0
    latex = (tmp_path / "board" / "leaderboard.tex").read_text(encoding="utf-8")
    assert latex == as_latex(board_of(world), style)
    check_pages(latex, columns, tmp_path)


# NeurIPS's text, and one of two columns
_SIZES = {"onecolumn": "5.5in,9in", "twocolumn": "6.875in,8.875in"}


def check_pages(latex: str, columns: str, folder: Path) -> None:
    """Compile tables; none is wider or higher than the text."""
    packages = re.search(r"usepackage\{(.*)\}", latex)
    assert packages
    (folder / "paper.tex").write_text(
        rf"\documentclass[10pt,{columns}]{{article}}\usepackage[utf8]{{inputenc}}"
        rf"\usepackage[text={{{_SIZES[columns]}}}]{{geometry}}"
        rf"\usepackage{{{packages[1]}}}\begin{{document}}" + latex + r"\end{document}",
        encoding="utf-8",
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    assert "Float too large" not in done.stdout


@pytest.fixture(scope="module")
def fifty(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Fifty models in two formats, of which many calls failed."""
    return make_board(
        load_runs([make_runs(tmp_path_factory.mktemp("fifty"), 100, 12, FORMATS[:2])])
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")
@pytest.mark.parametrize("columns", _SIZES)
def test_fifty_models_compile_within_the_pages(fifty: Board, columns: str, tmp_path: Path) -> None:
    check_pages(as_latex(fifty), columns, tmp_path)


def test_long_tables_for_papers_are_split_by_rows(fifty: Board) -> None:
    """Each model has one row, all notes stand below the last table."""
    tables = tables_of(as_latex(fifty))
    rows = [re.findall(r"& (Model\d+) &", table) for table in tables]
    assert sorted(name for names in rows for name in names) == sorted(fifty.models)
    assert max(map(len, rows)) <= 40
    assert ["continued" in table for table in tables] == [False, True]
    assert ["Values in percent" in table for table in tables] == [False, True]


MANY = (*(f"Model-{at}" for at in range(8)), "a-checkpoint-of-a-training-step-1000")


@pytest.fixture
def many(world: World) -> Board:
    """Nine models on three tables in two formats."""
    for table in ("RefCOCO", "SVG"):
        world.table(table, [query(at, picture=f"{at}.jpg") for at in range(12)])
    for model in MANY:
        for table in ("Pascal", "RefCOCO", "SVG"):
            for format_ in ("xyxy_json", "xyxy_text"):
                name = f"FindIt_{table}_{format_}"
                world.predict(model, name, speaking(name, 0.7))
    return board_of(world)


def test_wide_tables_for_papers_are_split_by_columns(many: Board) -> None:
    """Nothing is lost: every model and dataset has its value once, beside its value elsewhere."""
    tables = tables_of(as_latex(many))
    by_dataset = [table for table in tables if "by dataset" in table]
    assert len(by_dataset) > 1
    assert ["continued" in table for table in by_dataset] == [False, *[True] * len(by_dataset[1:])]
    heads = []
    for table in by_dataset:
        lines = [line for line in table.splitlines() if " & " in line]
        assert max(map(len, lines[1:])) < 110
        head, *rows = lines
        heads += head.removesuffix(r" \\").split(" & ")[1:]
        assert {row.split(" & ")[0] for row in rows if row[0].isalpha()} == {*MANY}
    assert [name for name in heads if name in ("Pascal", "RefCOCO", "SVG")] == [
        dataset.name for dataset in many.datasets
    ]
    assert sum("elsewhere" in name for name in heads) == 3


def test_few_models_are_the_columns_of_a_paper(runs: list[Run]) -> None:
    latex = as_latex(make_board(runs))
    assert "dataset & Best" in latex
    assert "continued" not in latex


def board_of(world: World) -> Board:
    return make_board(load_runs([world.runs]))
