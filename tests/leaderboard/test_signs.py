"""Every output explains the signs that occur in it, and no others; formats that were named."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from boards import NOW
from few_fast import few_fast
from openpyxl import load_workbook
from scored_runs import CallResult, World, query, small_world, speaking

from vlmeval_findit.cli import main, print_board, printing
from vlmeval_findit.leaderboard import (
    Board,
    FieldType,
    PaperStyle,
    Table,
    as_latex,
    as_markdown,
    cost_table,
    errors_table,
    excluded_table,
    format_spreads,
    formats_tried,
    legend_of,
    lost_table,
    make_board,
    metric_table,
    overall_table,
    range_of,
    remarks,
    slices_tables,
    spread_table,
    sweep_table,
    values_table,
    write_board,
)
from vlmeval_findit.report import headlines_of, losses_of, make_page, panels_of
from vlmeval_findit.scoring import load_runs
from vlmeval_findit.statistics import INTERVALS_ALONE, FamilyOfTests

FORMATS = ("xyxy_json", "xywh_json", "xyxy_text")
SIGNS = (
    "1–3", "#1–3", "?", "? without a value", "†", "elsewhere", "bold", "low–high", "no interval",
    "–",
)  # fmt: skip
_RANKS = re.compile(r"^[^\d#]*\d+(–|--)\d+\W*$")
_MARKS = {*"#?†‡*≈≠"}
_VALUE = r"\d+\.\d"


def finding(name: str, seed: int, rate: float) -> CallResult:
    right = speaking(name, 1.0)
    found = np.random.default_rng(seed).random(1_000) < rate
    return lambda asked, generator: right(asked, generator) if found[asked.index] else "[]"


def board_of(world: World, images: int, tables: tuple[str, ...], *formats: str) -> Board:
    """Return a board of a model in three formats, two equal ones, and a poor one in one table."""
    for table in tables:
        world.table(table, [query(i, picture=f"{i % images}.jpg") for i in range(40)])
        for at, name in enumerate(FORMATS):
            full = f"FindIt_{table}_{name}"
            world.predict("Many", full, finding(full, at, 0.6))
        one = f"FindIt_{table}_{FORMATS[0]}"
        for model in ("One", "Twin"):
            world.predict(model, one, finding(one, 7, 0.55))
    world.predict("Poor", f"FindIt_{tables[0]}_{FORMATS[0]}", lambda asked, generator: "[]")
    return make_board(load_runs([world.runs]), formats)


def with_voters(board: Board) -> Board:
    """Return a board on which reviewers saw the answers of every model."""
    cells = {}
    for place, cell in board.cells.items():
        entries = {name: replace(each, voted=True) for name, each in cell.entries.items()}
        cells[place] = replace(cell, entries=entries)
    return replace(board, cells=cells)


def told_apart(world: World) -> Board:
    """Return a board whose ranks are no ranges."""
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(40)])
    name = "FindIt_Pascal_xyxy_json"
    for model, rate in (("All", 1.1), ("Half", 0.5), ("Poor", -1.0)):
        world.predict(model, name, finding(name, 3, rate))
    return make_board(load_runs([world.runs]))


MADE = {
    "chosen": lambda world: board_of(world, 40, ("Pascal", "SVG")),
    "told apart": told_apart,
    "one table": lambda world: board_of(world, 40, ("Pascal",), "xyxy_json"),
    "named": lambda world: board_of(world, 40, ("Pascal", "SVG"), "Many=xyxy_json"),
    "few images": lambda world: board_of(world, 3, ("Pascal",), "xyxy_json"),
    "not known": lambda world: board_of(world, 6, ("Pascal",)),
    "voters": lambda world: with_voters(board_of(world, 40, ("Pascal",))),
}


@pytest.fixture(scope="module", params=few_fast(MADE, 3))
def board(request, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    with pytest.MonkeyPatch.context() as patch:
        yield MADE[request.param](small_world(tmp_path_factory.mktemp("signs"), patch))


# --- signs, found without the code that explains them ---------------------------------------------


def met(rows: list[list[str]], bold: str, bounds: str) -> set[str]:
    """Return the signs in rows of cells, a head and values; ``bold`` and ``bounds`` are regexes."""
    head, *body = rows
    cells = [cell for row in body for cell in row]
    tested = [at for at, name in enumerate(head) if "elsewhere" in name]
    if not tested:
        tested = [at for at in range(len(head)) if any(re.search(_VALUE, r[at]) for r in body)]
    found = {sign for sign in "?†" if any(sign in cell for cell in cells)}
    found |= {"1–3"} if any(_RANKS.search(cell.strip()) for cell in cells) else set()
    found |= {"#1–3"} if any(re.search(r"#\d", cell) for cell in cells) else set()
    found |= {"elsewhere"} & {name for head_ in head for name in head_.split()}
    missing = [cell for cell in cells if re.match(r"\s*(–|--)(?!\d)", cell)]
    found |= {"–"} if missing else set()
    found |= {"? without a value"} if any("?" in cell for cell in missing) else set()
    found |= {"bold"} if bold and any(re.search(bold, cell) for cell in cells) else set()
    if bounds:
        shown = [row[at] for row in body for at in tested if re.search(_VALUE, row[at])]
        found |= {"low–high"} if any(re.search(bounds, cell) for cell in shown) else set()
        found |= {"no interval"} if not all(re.search(bounds, cell) for cell in shown) else set()
    return found


def explained(text: str) -> set[str]:
    """Return the signs that a text explains: each begins a line, or a part of one."""
    text = text.replace(r"\#", "#").replace("--", "–").replace(r"\|", "|")
    text = re.sub(r"\d+(–\d+)?(?=: the ranks)", "1–3", text)  # Those that are shown
    return {s for s in SIGNS if re.search(rf"(?:^|[;.>] |\n\* ){re.escape(s)}: ", text, re.M)}


def markdown_rows(text: str) -> list[list[list[str]]]:
    tables = re.findall(r"(?:^\|.*\n)+", text, re.M)
    split = [[line.strip("|\n").split("|") for line in t.splitlines()] for t in tables]
    return [[rows[0], *rows[2:]] for rows in split if rows[0][0].strip() == "rank"]


def test_markdown(board: Board) -> None:
    text = as_markdown(board)
    found = [met(rows, r"\*\*", r"<sub>\d") for rows in markdown_rows(text)]
    assert found
    assert explained(text) == set().union(*found)


@pytest.mark.parametrize("style", PaperStyle)
def test_every_caption_of_latex(board: Board, style: PaperStyle) -> None:
    bounds = r"\\scriptsize \d" if style is PaperStyle.FULL else ""
    tables = re.findall(r"\\begin\{table\*\}.*?\\end\{tabular\}", as_latex(board, style), re.S)
    assert tables
    for table in tables:
        caption = re.search(r"\\caption\{(.*)\}\n", table)
        rows = [
            line.removesuffix(r" \\").split(" & ") for line in table.splitlines() if " & " in line
        ]
        rows = [row for row in rows if not row[0].startswith(r"\scriptsize")]
        rows[0] = [re.sub(r"[\\{}]+", " ", name) for name in rows[0]]
        rows[1:] = [[cell.replace(r"\#", "#") for cell in row] for row in rows[1:]]
        assert explained(caption[1]) == met(rows, r"\\textbf", bounds), caption[1]


def test_terminal(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    print_board(board)
    lines = capsys.readouterr().out.splitlines()
    at = next(at for at, line in enumerate(lines) if line.strip().startswith("rank"))
    table = [line for line in lines[at:] if re.match(r" *rank | *[\d–]", line)]
    count = min(len(board.models), len(table) - 1)
    rows = [re.split(r" {2,}", line.strip()) for line in table[: count + 1]]
    widest = max(map(len, rows))
    rows = [row + [""] * (widest - len(row)) for row in rows]
    assert explained("\n".join(lines)) == met(rows, "", r"\(\d")


def test_notes_of_the_sheet(board: Board, tmp_path: Path) -> None:
    write_board(board, tmp_path, NOW)
    book = load_workbook(tmp_path / "leaderboard.xlsx")
    notes = "\n".join(str(row[0].value) for row in book["Notes"].iter_rows())
    notes = notes.replace("Signs: ", "")
    found: set[str] = set()
    for sheet in book:
        if sheet.title == "Notes":
            continue
        for row in sheet.iter_rows(4):
            found |= {sign for cell in row for sign in "?†" if sign in str(cell.value)}
            found |= {sign for cell in row for sign in "?†" if sign in cell.number_format}
            shown = [f"{cell.value} {cell.number_format}" for cell in row]
            found |= {"#1–3"} if any(re.search(r"#\d", text) for text in shown) else set()
            found |= {"bold"} if any(cell.font.bold for cell in row) else set()
        heads = [str(cell.value) for cell in sheet[3]]
        found |= {"elsewhere"} if any("elsewhere" in head for head in heads) else set()
    assert explained(notes) - {"low–high", "no interval", "? without a value"} == found


def test_tables_of_the_report(board: Board) -> None:
    page = make_page(board, NOW)
    section = page.split('<section id="best"')[1].split("</section>")[0]
    found: set[str] = set()
    for table in re.findall(r"<table>.*?</table>", section, re.S):
        rows = [re.findall(r"<t[hd].*?</t[hd]>", row, re.S) for row in table.split("<tr")[1:]]
        rows[0] = [re.sub("<.*?>", " ", name) for name in rows[0]]
        rows[1:] = [
            [re.sub(r'^<t[hd]( scope="row")?', "", cell) for cell in row] for row in rows[1:]
        ]
        bare = [[re.sub(r"^[^>]*>(<span>)?", "", cell) for cell in row] for row in rows[1:]]
        bare = [[re.sub(r"</t[hd]>$", "", cell) for cell in row] for row in bare]
        found |= met([rows[0], *bare], "", r"<small>\d")
        found |= {"bold"} if any(" best" in cell for row in rows[1:] for cell in row) else set()
    assert explained(section.replace('<p class="note">', "\n")) == found


# --- every table ----------------------------------------------------------------------------------


def marks_in(table: Table) -> set[str]:
    """Return the marks behind values, and those that columns of marks have."""
    texts = ""
    for row in table.cells():
        for field, cell in row:
            texts += cell.sign
            texts += str(cell.value) if cell.value in _MARKS else ""
            texts += "#" if cell.ranks is not None and field.kind is not FieldType.RANK else ""
    return _MARKS & {*texts}


def check_legend(table: Table) -> None:
    """See that a legend names the marks of its table and no other, be it in a meaning."""
    assert marks_in(table) == _MARKS & {*"".join(legend_of([table]))}, table.title


def test_ranks_of_a_legend_are_in_its_table(board: Board) -> None:
    for table in (metric_table(board, board.headline.name), overall_table(board)):
        shown = set()
        for row in table.cells():
            for field, cell in row:
                if cell.ranks is not None:
                    sign = "" if field.kind is FieldType.RANK else "#"
                    shown.add(f"{sign}{range_of(cell.ranks)}")
        legend = [line.partition(": the ranks")[0] for line in legend_of([table])]
        assert {each for each in legend if re.fullmatch(r"#?\d+(–\d+)?", each)} <= shown
        assert any("–" in each for each in legend) or not any("–" in each for each in shown)


def test_legends_name_no_mark_that_is_not_there(board: Board) -> None:
    tables = [metric_table(board, metric.name) for metric in board.shown]
    tables += [overall_table(board), values_table(board), sweep_table(board)]
    tables += [cost_table(board), lost_table(board), errors_table(board), excluded_table(board)]
    tables += [*slices_tables(board), spread_table(board, format_spreads(board))]
    for table in tables:
        check_legend(table)
        check_legend(table.first(1))


def test_legends_of_every_table_that_a_command_prints(
    board: Board,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    printed: list[Table] = []

    def seen(tables: list[Table], lacking: Container[str]) -> list[str]:
        printed.extend(tables)
        return legend_of(tables, lacking)

    monkeypatch.setattr(printing, "legend_of", seen)
    files = [str(row.run.path) for row in board.runs]
    commands = [["leaderboard", *files], ["score", *files], ["errors", *files], ["audit", *files]]
    commands += [["errors", each] for each in files[:2]]
    commands += [["errors", *files, "--by", by] for by in ("label", "size")]
    commands += [["compare", files[0], other] for other in files]
    for command in commands:
        main(command)
    assert len(printed) > len(files)
    for table in printed:
        check_legend(table)


def test_scores_that_are_not_ranked_say_so(board: Board, capsys) -> None:
    """What was lost is of the reported format, whose value no rank is of where it was chosen."""
    print_board(board)
    for text in (as_markdown(board), capsys.readouterr().out):
        assert "What was lost" in text
        assert ("score: in the reported format, not elsewhere" in text) == bool(board.elsewhere)


# --- families of tests ----------------------------------------------------------------------------


def test_each_output_says_what_p_values_are_corrected_for(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    board = board_of(world, 40, ("Pascal",))
    page = make_page(board, NOW)
    pairs = page.split('<section id="compare"')[1].split("</section>")[0]
    assert FamilyOfTests.ERRORS.value in pairs
    assert INTERVALS_ALONE in pairs
    assert "two families" in pairs
    for text in (as_markdown(board), as_latex(board), page):
        assert FamilyOfTests.MODELS.value in text
    files = [f"{world.runs}/{model}_FindIt_Pascal_xyxy_json.json" for model in ("Many", "One")]
    assert main(["compare", *files]) == 0
    assert f"p: {FamilyOfTests.PAIR.value}." in capsys.readouterr().out


# --- a format that was named ----------------------------------------------------------------------

# What is said of a format that was chosen, and of no other
CHOSEN = re.compile(r"best of (\d+|many)|in its best format|optimistic|formats tried|elsewhere")


@pytest.mark.parametrize("named", few_fast(["xyxy_json", "Many=xywh_json", "Many=xyxy_text"], 1))
def test_a_named_format_is_the_best_of_none(world: World, named: str, capsys, tmp_path) -> None:
    chosen = board_of(world, 40, ("Pascal", "SVG"))
    board = make_board(load_runs([world.runs]), [named])
    assert formats_tried(chosen)
    assert formats_tried(board) == {}
    outputs: dict[str, Callable[[Board], str]] = {
        "Markdown": as_markdown,
        "LaTeX": as_latex,
        "booktabs": lambda board: as_latex(board, PaperStyle.BOOKTABS),
        "remarks": lambda board: str(remarks(board)),
        "headlines": lambda board: str(headlines_of(board, panels_of(board), losses_of(board))),
    }
    for name, write in outputs.items():
        assert CHOSEN.search(write(chosen)), name
        assert not CHOSEN.search(write(board)), name
    print_board(board)
    assert not CHOSEN.search(capsys.readouterr().out)
    if named == "xyxy_json":
        assert "named beforehand (--format); for " in outputs["headlines"](board)
    assert "Formats named beforehand" in dict(remarks(board))
    assert "Formats named beforehand" not in dict(remarks(chosen))


def test_a_further_format_did_not_choose_a_named_one(world: World) -> None:
    """A search over part of the rows is not compared, and no word says that it chose."""
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(40)])
    for rows, name in ((None, "FindIt_Pascal_xyxy_json"), (20, "FindIt_Pascal_xywh_json")):
        world.predict("Searched", name, finding(name, 3, 0.6), rows=rows)
    runs = load_runs([world.runs])
    assert "Formats tried" in dict(remarks(make_board(runs)))
    assert "Formats tried" not in dict(remarks(make_board(runs, ["xyxy_json"])))
