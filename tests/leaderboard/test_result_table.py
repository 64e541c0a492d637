"""Tables of results: the same cells in every output, and notes that no output loses."""

from __future__ import annotations

import csv
import json
import random
import re
from io import StringIO
from itertools import product

import pytest
from few_fast import every_nth_fast
from openpyxl import load_workbook
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable

from vlmeval_findit.leaderboard import (
    Field,
    FieldType,
    Note,
    Table,
    TableCell,
    markdown_page,
    text_of,
    to_csv,
    to_html,
    to_json,
    to_latex,
    to_markdown,
    to_terminal,
    write_sheets,
)
from vlmeval_findit.statistics import Interval, RankRange

NOTES = (Note("", ["How to read it."]), Note("Failed calls", ["A & B: 3 of 12", "C: 1 of 12"]))
B_OVERALL = TableCell(60.0, Interval(50, 69), "†", ranks=RankRange(2, 2))
TABLE = Table(
    "F1 & more",
    [
        Field("rank", FieldType.RANK),
        Field("model"),
        Field("Overall", FieldType.VALUE, "mean of 2", interval=True, is_mean=True),
        Field("A - B", FieldType.DIFFERENCE, interval=True),
        Field("p", FieldType.P),
        Field("queries", FieldType.COUNT),
    ],
    [
        [TableCell(1), "A<b>", TableCell(61.25, Interval(52.0, 70.1), best=True), 1.5, 4e-4, 1200],
        [TableCell(2, sign="?", ranks=RankRange(1, 3)), "=B", B_OVERALL, -1.5, 0.25, 12],
        ["published", "C|c", 58.0, None, None, None],
    ],
    NOTES,
    quoted=1,
)


def test_rows_for_programs_have_intervals_as_columns() -> None:
    rows = list(csv.DictReader(StringIO(to_csv(TABLE))))
    assert list(rows[0]) == TABLE.header
    assert rows[0]["Overall low"] == "52.0000"
    assert rows[0]["A - B high"] == rows[2]["Overall high"] == ""
    assert rows[1]["model"] == "'=B"
    assert TABLE.frame()["Overall high"][0] == 70.1
    assert to_csv(Table("", TABLE.fields, [])).strip() == ",".join(TABLE.header)


def test_json_has_rows_as_objects_and_notes() -> None:
    nan = float("nan")
    odd = [None, "D", TableCell(nan, Interval(nan, float("inf"))), "", nan, ""]
    values = to_json(Table(TABLE.title, TABLE.fields, [*TABLE.rows, odd], NOTES))
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    first, second, third, last = values["rows"]
    assert first["Overall"] == {"value": 61.25, "low": 52.0, "high": 70.1}
    assert (first["p"], first["queries"], first["model"]) == (0.0004, 1200, "A<b>")
    assert second["rank"] == {"value": 2, "best rank": 1, "worst rank": 3, "sign": "?"}
    assert second["Overall"]["best rank"] == second["Overall"]["worst rank"] == 2
    assert third["A - B"] == {"value": None, "low": None, "high": None}
    assert last["Overall"] == {"value": None, "low": None, "high": None}
    assert last["A - B"]["value"] is last["p"] is last["queries"] is None
    assert values["title"] == "F1 & more"
    assert values["notes"][0] == {"title": "", "lines": ["How to read it."]}


def test_markdown_escapes_names_and_marks_the_best() -> None:
    header, _, first, second, last = to_markdown(TABLE).splitlines()
    assert header == "| rank | model | Overall <sub>mean of 2</sub> | A - B | p | queries |"
    assert first == r"| 1 | A\<b\> | **61.2** <sub>52.0–70.1</sub> | +1.5 | \<0.001 | 1,200 |"
    assert second.startswith("| 1–3 ? | =B | 60.0 #2 † <sub>50.0–69.0</sub> | -1.5 | 0.250 |")
    assert last.startswith(r"| *published* | *C\|c* | 58.0 |")


def test_every_output_has_all_notes(tmp_path) -> None:
    page = markdown_page("Title", [TABLE, TABLE.first(1)])
    assert page.count("How to read it.") == page.count("* C: 1 of 12") == 1
    assert "## Failed calls" in page
    latex = to_latex(TABLE)
    assert r"Failed calls: A \& B: 3 of 12; C: 1 of 12." in latex
    places = [latex.index(x) for x in (r"\end{tabular}", "Failed calls", r"\end{table*}")]
    assert places == sorted(places)
    write_sheets({"F1": TABLE, "more": TABLE}, tmp_path / "book.xlsx")
    book = load_workbook(tmp_path / "book.xlsx")
    notes = [cell.value for cell in book["Notes"]["A"]]
    assert notes == ["How to read it.", "Failed calls: A & B: 3 of 12", "Failed calls: C: 1 of 12"]


def test_a_sheet(tmp_path) -> None:
    write_sheets({"F1": TABLE, "none": Table("None", TABLE.fields, [])}, tmp_path / "book.xlsx")
    book = load_workbook(tmp_path / "book.xlsx")
    sheet = book["F1"]
    assert (sheet["A1"].value, sheet["D2"].value) == (TABLE.title, "mean of 2")
    names = ["model", "Overall", "95 % interval", "A - B", "95 % interval", "p", "queries"]
    assert [cell.value for cell in sheet[3]] == ["best rank", "worst rank", *names]
    assert [cell.value for cell in book["none"][3]] == ["rank", *names]
    assert [cell.value for cell in sheet[5]] == [
        1, 3, "=B", 60, "50.0–69.0 #2 †", -1.5, None, 0.25, 12
    ]  # fmt: skip
    assert [cell.value for cell in sheet["A"][3:]] == [1, 1, "published"]
    assert [cell.value for cell in sheet["B"][3:]] == [1, 3, None], "ranks are numbers"
    assert (sheet["A5"].number_format, sheet["B5"].number_format) == ("General", 'General" ?"')
    assert sheet["C5"].data_type == "s"
    assert (sheet["D4"].font.bold, sheet["D6"].font.italic) == (True, True)
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("D4", "A3:I6")


@pytest.mark.parametrize(("columns", "pages"), [(1, 1), (7, 1), (8, 2), (24, 4), (96, 14)])
def test_a_sheet_is_printed_on_pages_that_can_be_read(tmp_path, columns: int, pages: int) -> None:
    """Each page has the heads of its columns and names of its rows, and intervals by values."""
    fields = [Field("model")]
    for at in range(columns):
        fields.append(Field(f"set {at}", FieldType.VALUE, interval=True))
    row = ["A model of a long name", *[50.0] * columns]
    write_sheets({"F1": Table("F1", fields, [row])}, tmp_path / "book.xlsx")
    sheet = load_workbook(tmp_path / "book.xlsx")["F1"]
    ends = [each.id for each in sheet.col_breaks.brk]
    assert len(ends) + 1 == pages
    assert all(sheet.cell(3, end).value == "95 % interval" for end in ends)
    assert sheet.sheet_properties.pageSetUpPr.fitToPage == (pages == 1)
    assert (sheet.print_title_rows, sheet.print_title_cols) == ("$1:$3", "$A:$A")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("F1@0.5 (lenient)", "F1@0.5 (lenient)"),
        ("False-alarm rate (lower is better)", "False-alarm rate"),
        ("A name of very many words without any remark", "A name of very many words witho"),
    ],
)
def test_no_name_of_a_sheet_ends_in_a_remark(tmp_path, name: str, shown: str) -> None:
    write_sheets({name: TABLE}, tmp_path / "book.xlsx")
    assert load_workbook(tmp_path / "book.xlsx").sheetnames == [shown, "Notes"]


def test_amounts_in_a_sheet_have_three_digits(tmp_path) -> None:
    amounts = (1_000_003.75, 45.25, 1.4583333333, 0.000123, 1.38e-7, 0, None)
    table = Table("Cost", [Field("tokens", FieldType.AMOUNT)], [[each] for each in amounts])
    write_sheets({"Cost": table}, tmp_path / "book.xlsx")
    sheet = load_workbook(tmp_path / "book.xlsx")["Cost"]
    formats = [sheet.cell(row, 1).number_format for row in range(4, 4 + len(amounts))]
    assert formats == ["#,##0", "0.0", "0.00", "0.000000", "0.00E+00", "0", "General"]
    assert sheet.column_dimensions["A"].width > len("1,000,004")


@pytest.mark.parametrize("letters", [4, 18, 19, 25, 40, 80])
@pytest.mark.parametrize("kind", [FieldType.VALUE, FieldType.COUNT, FieldType.AMOUNT])
def test_a_head_of_a_sheet_breaks_between_words(tmp_path, kind: FieldType, letters: int) -> None:
    """Programs break a word inside where its column is narrower; none is wider than a page."""
    word = f"Set_{'M' * (letters - 4)}"
    table = Table("Scores", [Field(f"{word} elsewhere", kind)], [[1.0]])
    write_sheets({"Scores": table}, tmp_path / "book.xlsx")
    width = load_workbook(tmp_path / "book.xlsx")["Scores"].column_dimensions["A"].width
    assert width <= 60
    assert width == 60 or width > 1.2 * max(letters, len("elsewhere"))


def test_some_rows_keep_what_is_published() -> None:
    """The rows below are, of three here the last; of the first two none is."""
    assert [TABLE.first(most).quoted for most in (1, 2, 3, 9)] == [0, 0, 1, 1]
    assert [TABLE.rows_from(start, 2).quoted for start in (0, 1, 2)] == [0, 1, 1]
    assert [len(TABLE.rows_from(start, 2).rows) for start in (0, 1, 2)] == [2, 2, 1]


def test_html_escapes_names() -> None:
    page = to_html(TABLE)
    assert '<th scope="row"><span>A&lt;b&gt;</span></th>' in page
    assert '<td class="figure average best">61.2<small>52.0–70.1</small></td>' in page
    assert page.count('<tr class="published">') == 1


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_terminal_cuts_no_value(width: int) -> None:
    # Without names there is nothing to shorten, however narrow.
    assert list(
        to_terminal(Table("", [Field("Overall", FieldType.VALUE, interval=True)], [[61.25]]), 3)
    )
    long = Table("", TABLE.fields, [[1, "name" * 20, *TABLE.rows[0][2:]], *TABLE.rows])
    out = Console(width=width, file=StringIO(), record=True)
    for part in to_terminal(long, width):
        out.print(part)
    text = out.export_text()
    assert max(map(cell_len, text.splitlines())) <= width
    assert text.count("52.0–70.1") >= 2
    assert ("name" * 20 in text) == (width == 200)
    assert ("(52.0–70.1)" in text) == (width == 200)


@pytest.mark.parametrize("width", [40, 50, 60, 80])
def test_no_two_models_have_one_name_in_a_terminal(width: int) -> None:
    models = [
        f"Qwen3-VL-8B-Instruct-sft-refcoco-lr{rate}e5-step{step}000-merged"
        for rate in (1, 2)
        for step in (1, 2)
    ]
    names = ("F1@0.5", "mIoU")
    fields = [Field("dataset"), Field("model")]
    fields += [Field(name, FieldType.VALUE, interval=True) for name in names]
    rows = [["FindIt_Scenes_mini_xyxy_json", model, 5.2, 7.2] for model in models]
    for shown in shown_in(Table("", fields, rows), "model", width):
        assert len({*shown}) == len(models)


def shown_in(table: Table, name: str, width: int) -> list[list[str]]:
    """Return the texts of a column in each of the tables that a terminal gets."""
    shown: list[list[str]] = []
    for part in tables_in(table, width):
        for column in part.columns:
            if str(column.header) == name:
                if part.show_header:
                    shown.append([])
                shown[-1] += map(str, column.cells)
    return shown


def tables_in(table: Table, width: int) -> list[RichTable]:
    parts = [getattr(part, "renderable", part) for part in to_terminal(table, width)]
    return [part for part in parts if isinstance(part, RichTable)]


def lines_of(table: Table, width: int) -> list[str]:
    """Return the lines of a table on a terminal."""
    out = Console(width=width, file=StringIO(), record=True)
    for part in to_terminal(table, width):
        out.print(part)
    return out.export_text().splitlines()


KINDS_OF_NAMES = {
    "short": ["a", "b", "c"],
    "alike": [f"Qwen3-VL-8B-Instruct-sft-refcoco-lr1e5-step{at}000-merged" for at in range(9)],
    "alike at the end": [f"{at}-checkpoint-of-a-very-long-training-run" for at in range(30)],
    "without blanks": ["x" * 70, "x" * 71],
    "wide": ["数据集名称很长很长很长很长一", "数据集名称很长很长很长很长二"],
}
SENTENCE = "its reply was not read because neither a box nor a point stands in it"


@pytest.mark.parametrize("width", [31, 50, 60, 80])
def test_sentences_beside_names_are_folded_not_cut(width: int) -> None:
    fields = [Field("model"), Field("why")]
    rows = [["m" * 60, SENTENCE], ["n" * 60, f"{SENTENCE}, nor a word"]]
    table = Table("", fields, rows)
    assert max(map(cell_len, lines_of(table, width))) <= width
    (shown,) = shown_in(table, "why", width)
    assert shown == [why for _, why in rows]


@pytest.mark.parametrize("width", every_nth_fast([31, 50, 60, 80, 120], 3))
@pytest.mark.parametrize("names", KINDS_OF_NAMES.values(), ids=KINDS_OF_NAMES)
@pytest.mark.parametrize("keys", [1, 2])
def test_nothing_is_cut_at_any_width(keys: int, names: list[str], width: int) -> None:
    fields = [Field("dataset"), Field("model")][:keys]
    fields += [Field("F1@0.5", FieldType.VALUE, interval=True), Field("why"), Field("file")]
    path = "/".join(["a_folder_of_runs"] * 5)
    rows = []
    for name in names:
        value = TableCell(61.25, Interval(52.0, 70.125))
        rows.append([*["FindIt_Scenes_mini_xyxy_json"] * (keys - 1), name, value, SENTENCE, path])
    lines = lines_of(Table("", fields, rows), width)
    assert max(map(cell_len, lines)) <= width
    text = "".join(lines)
    assert text.count("61.2") == text.count("52.0–70.1") == len(names)
    for shown in shown_in(Table("", fields, rows), str(fields[keys - 1].name), width):
        assert len({*shown}) == len(names), "names that differ are told apart"
    for part in tables_in(Table("", fields, rows), width):
        for column in part.columns:
            assert column.overflow == "fold"
            assert not column.no_wrap


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("seed", range(12))
def test_names_that_have_room_stand_whole(seed: int, width: int) -> None:
    """Beside its values, or above them: each row is found by all of its names."""
    draw = random.Random(seed)
    keys = draw.choice([2, 2, 3])
    columns = [
        [
            f"{'name-of-a-'[: draw.randrange(11)]}{draw.choice('abc')}{at}_{key}"
            for at in range(draw.choice([1, 2, 3]))
        ]
        for key in range(keys)
    ]
    columns = [[f"{name:-<{draw.randrange(5, 31)}}|" for name in names] for names in columns]
    places = [*product(*columns)]
    if draw.random() < 0.5:
        draw.shuffle(places)
    fields = [Field(f"key{key}") for key in range(keys)]
    fields += [Field("F1@0.5", FieldType.VALUE)] * 3
    rows = [[*names, 100.0 + at, 1.0, 1.0] for at, names in enumerate(places)]
    lines = lines_of(Table("", fields, rows), width)
    above: list[str] = []
    rows_before = True
    found = 0
    for line in lines:
        known = re.search(r" 1(\d\d)\.0 ", line)
        if known is None:
            above = [line] if rows_before else [*above, line]
            rows_before = False
            continue
        assert all(name in " ".join([*above, line]) for name in places[int(known[1])]), lines
        rows_before = True
        found += 1
    assert found == len(rows)


@pytest.mark.parametrize(
    ("number", "text"), [(8, "8"), (8.0, "8"), (1200.0, "1,200"), (8 / 3, "2.7"), (-0.25, "-0.2")]
)
def test_weighted_counts_have_one_decimal(number: float, text: str) -> None:
    (row,) = Table("", [Field("events", FieldType.COUNT)], [[number]]).cells()
    assert [text_of(field, cell) for field, cell in row] == [text]


def test_a_second_column_of_one_name_loses_nothing() -> None:
    """Columns of models have the names that users gave them."""
    fields = [
        Field("dataset"),
        Field("dataset", FieldType.VALUE, interval=True),
        Field("dataset low", FieldType.VALUE, interval=True),
    ]
    table = Table("", fields, [["Pascal", TableCell(5.0, Interval(4.0, 6.0)), 7.0]])
    (row,) = table.records()
    assert list(row) == table.header
    assert len({*table.header}) == 1 + 3 + 3
    assert list(row.values()) == ["Pascal", 5.0, 4.0, 6.0, 7.0, None, None]
    assert table.frame().iloc[0].tolist()[:5] == ["Pascal", 5.0, 4.0, 6.0, 7.0]
