from __future__ import annotations

import csv
import doctest
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openpyxl import load_workbook
from rich.console import Console
from scored_runs import World, failing, query, saying, speaking, world

from vlmeval_findit.benchmarks.findit import PREFIX
from vlmeval_findit.benchmarks.findit.metrics import METRICS
from vlmeval_findit.benchmarks.findit.query import Query
from vlmeval_findit.benchmarks.findit.variant import VariantError, grid
from vlmeval_findit.cli import main
from vlmeval_findit.cli.leaderboard import _board_tables, _print_board, print_remarks
from vlmeval_findit.cli.printing import print_rows
from vlmeval_findit.core.evidence import mean
from vlmeval_findit.core.prediction_reader import check_format
from vlmeval_findit.core.replies import FAILED
from vlmeval_findit.core.statistics import INTERVALS, Difference, correct, figure_intervals
from vlmeval_findit.core.visible import visible
from vlmeval_findit.leaderboard import columns as columns_module
from vlmeval_findit.leaderboard.board import OVERALL, Board, make_board
from vlmeval_findit.leaderboard.columns import column_name, columns_of, format_name
from vlmeval_findit.leaderboard.files import write_board
from vlmeval_findit.leaderboard.formats import FormatError, choose
from vlmeval_findit.leaderboard.openvlm import MetaError, as_openvlm, read_meta
from vlmeval_findit.leaderboard.rows import (
    FORMAT_NOTE,
    NOTE,
    TIED,
    board_rows,
    failure_lines,
    forced_lines,
    sweep_rows,
)
from vlmeval_findit.leaderboard.text import as_latex, as_markdown
from vlmeval_findit.report.gallery import choose_cards, gallery_data
from vlmeval_findit.report.page import make_page
from vlmeval_findit.report.transcripts import gather
from vlmeval_findit.runs.intervals import compare, evidence
from vlmeval_findit.runs.scored_run import Run, RunError, load_runs

__all__ = ["world"]

JSON = "FindIt_Pascal_xyxy_json"
TEXT = "FindIt_Pascal_xyxy_text"
LABELS_JSON = "FindIt_Pascal_multilabel_xyxy_json"
LABELS_TEXT = "FindIt_Pascal_multilabel_xyxy_text"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def runs(world: World) -> list[Run]:
    """Three models; Good is better in text, on average over both datasets."""
    for model, in_json, in_text in (("Good", 0.7, 1.0), ("Poor", 0.2, 0.1), ("Poor2", 0.2, 0.1)):
        for name, chance in (
            (JSON, in_json),
            (TEXT, in_text),
            (LABELS_JSON, in_json),
            (LABELS_TEXT, in_text),
        ):
            world.predict(model, name, speaking(name, chance, 10))
    return load_runs([world.runs])


@pytest.fixture
def board(runs: list[Run]) -> Board:
    return make_board(runs)


# --- columns --------------------------------------------------------------------------------------


def test_examples() -> None:
    assert doctest.testmod(columns_module) == (0, 2)


def test_column_and_format_make_up_every_name_of_the_grid() -> None:
    seen = set()
    for variant in grid():
        column, written = column_name(variant), format_name(variant)
        assert f"{PREFIX}{column}_{written}" == variant.name
        seen.add((column, written))
    assert len(seen) == sum(1 for _ in grid())


def test_formats_are_checked() -> None:
    assert check_format("xyxy_json_bbox") == "xyxy_json"
    assert check_format("xyxy_json_class_name") == "xyxy_json_class_name"
    with pytest.raises(VariantError, match=r"format 'xyxx_json': .*did you mean xyxy"):
        check_format("xyxx_json")


def test_comparable_runs_are_kept(runs: list[Run]) -> None:
    columns, apart = columns_of(runs)
    assert [(c.name, c.family, c.queries, c.sources) for c in columns] == [
        ("Pascal", "objdet", 12, 6),
        ("Pascal_multilabel", "objdet", 5, 5),
    ]
    assert apart == ()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"rows": 8}, r"other rows: 8 scored, the rest 12; rows missing: 4 \(first: 8\)$"),
        (
            {"rows": 8, "change": lambda asked: replace(asked, left_out=(10, 11))},
            r"rows missing: 4 \(first: 8\), 2 of them without a usable image",
        ),
        (
            {"change": lambda asked: replace(asked, prompts="release 4d99", prompt_hash="ab")},
            "^other prompts: release 4d99, the rest findit-own-1$",
        ),
        (
            {"change": lambda asked: replace(asked, prompt_hash="ab" * 32)},
            "^other words under the same name findit-own-1: prompts hash abababababab…, the rest",
        ),
    ],
)
def test_runs_that_must_not_be_compared_are_set_apart(
    world: World, runs: list[Run], how: dict[str, object], reason: str
) -> None:
    other = world.run("Other", JSON, speaking(JSON, 1.0), **how)
    board = make_board([*runs, other])
    assert "Other" not in board.models
    assert not any(model == "Other" for model, _ in board.cells)
    [one] = board.apart
    assert one.run is other
    assert re.search(reason, one.reason), one.reason
    alone = make_board([other])
    assert alone.models == ("Other",)


def test_other_tables_and_unknown_prompts_are_set_apart(world: World, runs: list[Run]) -> None:
    base = next(run for run in runs if run.variant.table == "Pascal")
    table = replace(base, model="T", basis=replace(base.basis, table_sha256="f" * 64))
    unknown = replace(
        base, model="U", basis=replace(base.basis, prompts="unknown", prompt_hash=None)
    )
    more = replace(base, model="M", basis=replace(base.basis, rows=frozenset(range(20))))
    board = make_board([*runs, table, unknown, more])
    reasons = {one.run.model: one.reason for one in board.apart}
    assert reasons["T"].startswith("other subset: Pascal.tsv has SHA-256 ffffffffffff…, the rest")
    assert reasons["U"] == "it did not record its prompts, the rest was asked in findit-own-1"
    assert "rows that the rest lacks: 8 (first: 12)" in reasons["M"]


def test_of_two_runs_of_a_cell_the_newest_counts(world: World, runs: list[Run]) -> None:
    path = world.predict("Good", JSON, speaking(JSON, 0.7, 10), folder="copy")
    [copy] = load_runs([path])
    later = replace(copy, basis=replace(copy.basis, scored_at="2999"))
    board = make_board([*runs, later])
    [one] = board.apart
    assert one.reason == f"the same predictions as {later.path}"
    other = replace(later, basis=replace(later.basis, predictions_sha256="0"))
    [one] = make_board([*runs, other]).apart
    assert one.reason.startswith("another run of this cell, older than")


def test_a_run_without_rows_is_set_apart(world: World) -> None:
    empty = world.run("Empty", JSON, saying("[]"), rows=0)
    board = make_board([empty])
    assert [one.reason for one in board.apart] == ["no row was scored"]
    assert board.models == ()
    assert as_markdown(board)
    assert as_latex(board)


# --- formats --------------------------------------------------------------------------------------


def test_the_best_format_by_average_is_reported(runs: list[Run], board: Board) -> None:
    assert board.cells["Good", "Pascal"].format == "xyxy_text"
    assert board.cells["Good", "Pascal_multilabel"].format == "xyxy_text"
    for run in choose(board.columns).values():
        mine = [r for r in runs if r.model == run.model]
        means = {
            f: sum(r.figures.f1 for r in mine if format_name(r.variant) == f)
            for f in ("xyxy_json", "xyxy_text")
        }
        assert means[format_name(run.variant)] == max(means.values())


def test_formats_of_more_datasets_go_first(world: World, runs: list[Run]) -> None:
    name = "FindIt_Pascal_yxyx_json"
    world.predict("Good", name, speaking(name, 1.0))
    board = make_board(load_runs([world.runs]))
    assert board.cells["Good", "Pascal"].format == "xyxy_text"
    here = {"model": "Good", "dataset": "Pascal"}
    rows = [row for row in sweep_rows(board) if here.items() <= row.items()]
    assert [(row["format"], row["reported"]) for row in rows] == [
        ("xyxy_json", ""),
        ("xyxy_text", "yes"),
        ("yxyx_json", ""),
    ]
    assert rows[0]["F1@0.5 to reported"] < 0
    assert rows[0]["p to reported"] < 0.2
    assert rows[1]["p to reported"] is None


def test_formats_can_be_asked_for(runs: list[Run]) -> None:
    board = make_board(runs, ["xyxy_text", "Good=xyxy_json"])
    found = {model: board.cells[model, "Pascal"].format for model in board.models}
    assert found == {"Good": "xyxy_json", "Poor": "xyxy_text", "Poor2": "xyxy_text"}
    with pytest.raises(FormatError, match=r"no run of 'God': did you mean Good\?"):
        make_board(runs, ["God=xyxy_json"])
    with pytest.raises(FormatError, match="no run has this format: did you mean"):
        make_board(runs, ["xywh_json"])


# --- figures --------------------------------------------------------------------------------------


def test_cells_hold_the_scores_of_their_runs(board: Board) -> None:
    for cell in board.cells.values():
        if cell.run is None:
            continue
        f = cell.run.figures
        values = [cell.entries[metric].value for metric in METRICS]
        assert values == pytest.approx([f.f1, f.miou, f.adherence, f.precision, f.recall])
        for entry in cell.entries.values():
            if entry.interval is not None:
                assert entry.interval.low - 1e-9 <= entry.value <= entry.interval.high + 1e-9
        assert all(cell.entries[metric].interval for metric in ("F1@0.5", "mIoU", "Adherence"))


def test_averages_are_means_of_datasets(board: Board) -> None:
    for name in (OVERALL, "objdet"):
        for model in board.models:
            parts = [board.cells[model, c.name].entries["mIoU"].value for c in board.columns]
            assert board.cells[model, name].entries["mIoU"].value == pytest.approx(sum(parts) / 2)
            assert board.cells[model, name].queries == 17


def test_overall_is_over_families(world: World, tmp_path: Path) -> None:
    """Every file shows the mean of all under Overall, and that of a family under its name."""
    world.table("RefCOCO", [query(i, picture=f"{i}.jpg") for i in range(8)])
    refexp = "FindIt_RefCOCO_xyxy_json"
    world.predict("M", JSON, speaking(JSON, 1.0))
    world.predict("M", refexp, speaking(refexp, 0.3))
    board = make_board(load_runs([world.runs]))
    assert [(a.name, a.columns) for a in board.averages] == [
        (OVERALL, ("Pascal", "RefCOCO")),
        ("objdet", ("Pascal",)),
        ("refexp", ("RefCOCO",)),
    ]
    found = {name: board.cells["M", name].entries["F1@0.5"].value for name in board.names()}
    assert found[OVERALL] == pytest.approx((100 + found["RefCOCO"]) / 2)
    assert (found["objdet"], found["refexp"]) == (100, found["RefCOCO"])
    overall = f"{found[OVERALL]:.1f}"
    page = as_markdown(board)
    assert FORMAT_NOTE in page
    assert f"| 1 | M | **{overall}**" in page.split("## F1@0.5")[0]
    assert f"1 & M & \\textbf{{{overall}}}" in as_latex(board)
    write_board(board, tmp_path, NOW)
    sheet = load_workbook(tmp_path / "leaderboard.xlsx")["F1@0.5"]
    assert [sheet.cell(1, at).value for at in (4, 6, 8)] == [OVERALL, "objdet", "refexp"]
    assert [sheet.cell(3, at).value for at in (4, 6)] == [pytest.approx(found[OVERALL]), 100]
    content = json.loads((tmp_path / "leaderboard.json").read_text())
    assert f"{content['results']['M']['FindIt_average_Overall']['Overall']:.1f}" == overall


def test_a_model_without_a_dataset_has_no_average(world: World, runs: list[Run]) -> None:
    world.predict("Partial", JSON, speaking(JSON, 1.0))
    board = make_board(load_runs([world.runs]))
    assert ("Partial", OVERALL) not in board.cells
    assert board.models[-1] == "Partial"
    assert board.cells["Partial", "Pascal"].entries["F1@0.5"].rank == 1
    assert "| – | Partial |" in as_markdown(board)


def test_ranks_and_ties(board: Board) -> None:
    overall = {model: board.cells[model, OVERALL].entries["F1@0.5"] for model in board.models}
    assert board.models[0] == "Good"
    assert [entry.rank for entry in overall.values()] == [1, 2, 2]
    # Six pictures are too few for two comparisons, however far apart.
    assert [entry.tied for entry in overall.values()] == [False, True, True]
    assert overall["Good"].to_above is None
    adherence = [board.cells[m, "Pascal"].entries["Adherence"] for m in board.models]
    assert [entry.rank for entry in adherence] == [1, 1, 1]


def test_the_same_runs_give_the_same_board(runs: list[Run], board: Board) -> None:
    assert board_rows(make_board(runs)) == board_rows(board)
    assert board_rows(make_board(runs[::-1])) == board_rows(board)


def test_a_column_stands_for_itself(runs: list[Run], board: Board) -> None:
    """Intervals of a dataset do not depend on which other datasets are there."""
    alone = make_board([r for r in runs if r.variant.table == "Pascal"])
    assert alone.cells["Poor", "Pascal"].entries == board.cells["Poor", "Pascal"].entries


def test_averages_count_shared_pictures_once(runs: list[Run]) -> None:
    """Pascal and Pascal_multilabel show the same pictures; in another folder they would not."""
    board = make_board(runs, ["xyxy_json"])
    cells = [board.cells["Good", column.name] for column in board.columns]
    mine = [cell.run for cell in cells if cell.run]
    expected = figure_intervals(mean([evidence(run) for run in mine]))
    found = board.cells["Good", OVERALL].entries
    assert {metric: entry.interval for metric, entry in found.items()} == expected
    elsewhere = replace(
        mine[1], answers=tuple(replace(a, source=f"x{a.source}") for a in mine[1].answers)
    )
    apart = figure_intervals(mean([evidence(mine[0]), evidence(elsewhere)]))
    assert apart["mIoU"] != expected["mIoU"]


def test_failed_calls_are_counted(world: World) -> None:
    run = world.run("Fails", JSON, failing)
    board = make_board([run])
    assert board.cells["Fails", "Pascal"].failures == 4
    [line] = failure_lines(board)
    assert line.startswith("Fails, Pascal: 4 of 12 calls failed and are in none of its figures")
    assert f"* {line}" in as_markdown(board)


def test_figures_leave_failed_calls_out(world: World) -> None:
    """What is shown counts what was answered; the other figure stands where it says so."""

    def half(query: Query, generator: np.random.Generator) -> str:
        said = speaking(JSON, 1.0)(query, generator)
        return f"{FAILED} via API." if query.index % 3 == 0 else said

    run = world.run("Half", JSON, half)
    assert (run.figures.f1, run.figures.f1_failed_missed) == (100, 80)
    board = make_board([run])
    for name in ("Pascal", OVERALL):
        assert board.cells["Half", name].entries["F1@0.5"].value == 100
    [line] = failure_lines(board)
    assert line.endswith(
        "4 of 12 calls failed and are in none of its figures; as misses its F1@0.5 is 80.0"
    )
    [row] = sweep_rows(board)
    assert (row["F1@0.5"], row["F1@0.5 (failed calls as misses)"]) == (100, 80)
    assert "| 1 | Half | **100.0**" in as_markdown(board)


# --- tests between models -------------------------------------------------------------------------


@pytest.fixture
def many(world: World) -> Board:
    """Five models over 60 pictures, each a little worse than the one before."""
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(60)])
    for model, chance in (("A", 0.98), ("B", 0.88), ("C", 0.75), ("D", 0.72), ("E", 0.3)):
        for name in (JSON, TEXT, "FindIt_Pascal_yxyx_text"):
            world.predict(model, name, speaking(name, chance - 0.3 * (name == TEXT), 4))
    return make_board(load_runs([world.runs]))


def test_tests_are_corrected_for_the_comparisons_of_their_column(many: Board) -> None:
    for metric in METRICS:
        entries = [many.cells[model, "Pascal"].entries[metric] for model in many.models]
        found = [e.to_above for e in sorted(entries, key=lambda e: e.rank) if e.to_above]
        assert len(found) == 4
        expected = correct(Difference(one.value, one.p_value, one.p_value) for one in found)
        assert found == expected
    rows = {row["model"]: row for row in board_rows(many) if row["dataset"] == "Pascal"}
    raw = [rows[model]["F1@0.5 p to rank above"] for model in "BCDE"]
    held = [rows[model]["F1@0.5 p to rank above (Holm)"] for model in "BCDE"]
    assert all(h >= r for h, r in zip(held, raw, strict=True))
    assert min(raw) * 4 == pytest.approx(min(held))
    assert rows["A"]["F1@0.5 p to rank above"] is rows["A"]["F1@0.5 p to rank above (Holm)"] is None


def test_marks_follow_the_corrected_test(many: Board, tmp_path: Path) -> None:
    """One difference is significant alone, and not among four: it is marked everywhere."""
    cell = many.cells["B", "Pascal"]
    entry = replace(cell.entries["F1@0.5"], to_above=Difference(-9.0, 0.03, 0.09))
    marked = replace(cell, entries={**cell.entries, "F1@0.5": entry})
    board = replace(many, cells={**many.cells, ("B", "Pascal"): marked})
    assert entry.tied
    for one, tied in ((board, True), (with_p(board, 0.03, 0.03), False)):
        write_board(one, tmp_path, NOW)
        row = next(
            r
            for r in csv_rows(tmp_path / "leaderboard.csv")
            if (r["model"], r["dataset"]) == ("B", "Pascal")
        )
        assert row["F1@0.5 tied"] == (TIED if tied else "")
        assert float(row["F1@0.5 p to rank above"]) == 0.03
        assert float(row["F1@0.5 p to rank above (Holm)"]) == (0.09 if tied else 0.03)
        content = json.loads((tmp_path / "leaderboard.json").read_text())
        assert content["results"]["B"]["FindIt_Pascal"]["F1@0.5 tied with rank above"] is tied
        line = next(x for x in as_markdown(one).split("## F1@0.5")[1].splitlines() if "| B |" in x)
        assert line.split("|")[-2].count(TIED) == tied
        line = next(x for x in as_latex(one).splitlines() if "& B &" in x)
        assert line.split("&")[-1].count("approx") == tied
        sheet = load_workbook(tmp_path / "leaderboard.xlsx")["F1@0.5"]
        at = next(row for row in range(3, 8) if sheet.cell(row, 3).value == "B")
        assert sheet.cell(at, sheet.max_column).value.endswith(TIED) is tied
    assert "corrected after Holm" in NOTE


def with_p(board: Board, p_value: float, corrected: float) -> Board:
    cell = board.cells["B", "Pascal"]
    entry = replace(cell.entries["F1@0.5"], to_above=Difference(-9.0, p_value, corrected))
    return replace(
        board,
        cells={
            **board.cells,
            ("B", "Pascal"): replace(cell, entries={**cell.entries, "F1@0.5": entry}),
        },
    )


def csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def test_formats_are_corrected_for_their_number(many: Board) -> None:
    for model in many.models:
        mine = [one for one in many.sweep if one.run.model == model]
        [reported] = [one for one in mine if one.reported]
        assert reported.to_reported is None
        for one in mine:
            if one is not reported:
                raw = compare(one.run, reported.run)["F1@0.5"]
                assert one.to_reported is not None
                assert one.to_reported.value == pytest.approx(
                    one.run.figures.f1 - reported.run.figures.f1
                )
                assert one.to_reported.p_value == raw.p_value
        found = [one.to_reported for one in mine if one.to_reported]
        assert len(found) == 2
        assert found == correct(Difference(d.value, d.p_value, None) for d in found)
    rows = [row for row in sweep_rows(many) if row["format"] == "xyxy_text" and row["model"] == "B"]
    assert rows[0]["p to reported"] < rows[0]["p to reported (Holm)"] < 0.05


def test_what_was_forced_is_said_everywhere(
    world: World, runs: list[Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ("space: recorded grid1000, given unit", "prompts <hash>")
    first = runs[0]
    forced = replace(first, basis=replace(first.basis, forced=said))
    assert forced_lines(make_board(runs)) == []
    board = make_board([forced, *runs[1:]])
    [line] = forced_lines(board)
    assert line == f"{first.model}, {first.variant.name}: --force went over {'; '.join(said)}"
    assert "## Forced" in as_markdown(board)
    assert r"recorded grid1000, given unit; prompts \<hash\>" in as_markdown(board)
    write_board(board, tmp_path, NOW)
    about = load_workbook(tmp_path / "leaderboard.xlsx")["About"]
    assert line in [row[0].value for row in about.iter_rows()]
    page = make_page(board, NOW)
    assert "<h3>Forced</h3>" in page
    assert "given unit; prompts &lt;hash&gt;" in page
    print_remarks(board)
    assert line in capsys.readouterr().out


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def out(board: Board, tmp_path: Path) -> Path:
    write_board(board, tmp_path / "board", NOW)
    return tmp_path / "board"


def test_csv(board: Board, out: Path) -> None:
    with (out / "leaderboard.csv").open(encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == len(board.cells)
    row = next(r for r in rows if (r["model"], r["dataset"]) == ("Good", "Pascal"))
    value = board.cells["Good", "Pascal"].entries["F1@0.5"].value
    assert float(row["F1@0.5"]) == pytest.approx(value, abs=1e-4)
    assert (row["format"], row["queries"], row["failed calls"]) == ("xyxy_text", "12", "0")
    assert float(row["F1@0.5 low"]) <= float(row["F1@0.5"]) <= float(row["F1@0.5 high"])
    assert rows[0]["dataset"] == "average: Overall"
    assert (out / "not_compared.csv").read_text() == "\n"
    assert len((out / "formats.csv").read_text().splitlines()) == 1 + 12


def test_openvlm_schema(board: Board, out: Path) -> None:
    content = json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))
    assert content["time"] == "260102030405"
    assert list(content["results"]) == list(board.models)
    good = content["results"]["Good"]
    known = "Method|Org|Time|Parameters|Language Model|Vision Model|OpenSource|Verified"
    assert set(good["META"]) >= set(known.split("|"))
    assert good["META"]["Method"] == ["Good", ""]
    entry = board.cells["Good", "Pascal"].entries["F1@0.5"]
    assert good["FindIt_Pascal"]["Overall"] == round(entry.value, 2)
    assert good["FindIt_Pascal"]["Format"] == "xyxy_text"
    assert "FindIt_average_Overall" in good
    for model in content["results"].values():
        assert all("Overall" in value for key, value in model.items() if key != "META")


def test_meta_of_models(board: Board, tmp_path: Path) -> None:
    path = tmp_path / "meta.yaml"
    path.write_text("Good: {Method: [Good, 'https://good'], Parameters: 7B, OpenSource: 'Yes'}\n")
    write_board(board, tmp_path, NOW, read_meta(path))
    content = json.loads((tmp_path / "leaderboard.json").read_text())
    meta = content["results"]["Good"]["META"]
    assert (meta["Method"], meta["Parameters"]) == (["Good", "https://good"], "7B")
    assert content["results"]["Poor"]["META"]["Parameters"] == ""
    for text, why in (
        ("Good: {Parameter: 7B}", r"Good: no field 'Parameter': did you mean Parameters\?"),
        ("Good: 7B", "Good: should be an object"),
        ("[1]", "should be an object, model"),
        ("a: [", "meta.yaml"),
    ):
        path.write_text(text)
        with pytest.raises(MetaError, match=why):
            read_meta(path)


def test_sheet(board: Board, out: Path) -> None:
    book = load_workbook(out / "leaderboard.xlsx")
    assert book.sheetnames == [*METRICS, "All figures", "Formats", "Not compared", "About"]
    for metric in METRICS:
        sheet = book[metric]
        assert sheet.freeze_panes == "D3"
        assert [sheet.cell(1, at).value for at in (3, 4)] == ["Model", "Overall"]
        values = {sheet.cell(row, 3).value: sheet.cell(row, 4) for row in (3, 4, 5)}
        best = max(cell.value for cell in values.values())
        for model, cell in values.items():
            assert cell.value == pytest.approx(board.cells[model, OVERALL].entries[metric].value)
            assert cell.number_format == "0.0"
            assert bool(cell.font.bold) == (cell.value == best)
        assert re.fullmatch(r"[\d.]+–[\d.]+( ≈)?", sheet.cell(3, 5).value)
    assert book["Formats"].max_row == 13
    assert book["All figures"].freeze_panes == "D2"


def test_text_in_a_sheet_is_never_a_formula(world: World, tmp_path: Path) -> None:
    evil = world.run("=1+1", JSON, saying("[]"))
    write_board(make_board([evil]), tmp_path, NOW)
    book = load_workbook(tmp_path / "leaderboard.xlsx")
    cell = book["mIoU"].cell(3, 3)
    assert (cell.value, cell.data_type) == ("=1+1", "s")


def test_markdown_and_latex(world: World, runs: list[Run], tmp_path: Path) -> None:
    evil = world.run("a|b_<c>%&", JSON, speaking(JSON, 0.5))
    other = world.run("Other", JSON, saying("[]"), rows=3)
    board = make_board([*runs, evil, other])
    page = as_markdown(board)
    assert r"a\|b\_\<c\>%\&" in page
    assert "## Not compared: 1 runs" in page
    tables = re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    assert len(tables) == 1 + len(METRICS) + 2
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1
    latex = as_latex(board)
    assert r"a\textbar{}b\_\textless{}c\textgreater{}\%\&" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == len(METRICS)
    bare = re.sub(r"\\[{}]", "", latex)
    assert bare.count("{") == bare.count("}")
    assert "≈" not in latex
    assert r"\textbf{" in latex


def test_the_command(
    world: World, runs: list[Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world.predict("Other", JSON, saying("[]"), rows=3)
    out = tmp_path / "out"
    given = ["leaderboard", str(world.runs), "--out", str(out)]
    assert main(given) == 0
    printed = capsys.readouterr().out
    assert "Good" in printed
    assert "Not compared with the rest: 1 runs" in printed
    assert "other rows: 3 scored, the rest 12" in printed
    assert len(list(out.iterdir())) == 7
    assert main([*given, "--format", "nonsense"]) == 2
    assert "error: format 'nonsense'" in capsys.readouterr().err
    assert main(["leaderboard", str(tmp_path / "nowhere")]) == 2


# --- names ----------------------------------------------------------------------------------------

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
    return [replace(one, model=name) for name in UGLY for one in (run, text)]


def test_names_come_out_of_every_file_as_text(ugly: list[Run], tmp_path: Path) -> None:
    board = make_board(ugly)
    write_board(board, tmp_path, NOW)
    for name in ("leaderboard.csv", "formats.csv"):
        rows = csv_rows(tmp_path / name)
        shown = {visible(model) for model in UGLY}
        assert {row["model"].removeprefix("'") for row in rows} == shown
        for row in rows:
            for value in row.values():
                number = re.fullmatch(r"-?\d+\.\d{4}", value)
                assert number or not value.lstrip().startswith(("=", "+", "-", "@")), value
                assert value.isprintable()
    content = json.loads((tmp_path / "leaderboard.json").read_text("utf-8", "surrogatepass"))
    assert [model.replace("\\ud800", "\ud800") for model in content["results"]] == list(
        board.models
    )
    book = load_workbook(tmp_path / "leaderboard.xlsx")
    found = {book["mIoU"].cell(row, 3).value for row in range(3, 3 + len(UGLY))}
    assert found == {visible(model) for model in UGLY}
    assert all(cell.data_type != "f" for sheet in book for row in sheet.iter_rows() for cell in row)
    assert book["mIoU"].column_dimensions["C"].width <= 60


def test_a_score_file_holds_no_formula(world: World) -> None:
    """It is opened in spreadsheets as the leaderboard is."""
    path = world.predict("=1+1", JSON, speaking(JSON, 0.5))
    [row] = csv_rows(path.with_name(f"{path.stem}_score.csv"))
    assert row["model"] == "'=1+1"
    assert row["dataset"] == JSON
    assert re.fullmatch(r"\d+\.\d{4}", row["F1@0.5"])


def test_printed_scores_show_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"F1@0.5": 1, "mIoU": 2, "Adherence": 3, "scored": 4, "rows": 5, "failed calls": 6}
    print_rows({"dataset": JSON, "model": name, **figures} for name in UGLY)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == len(UGLY)
    for line, name in zip(lines, UGLY, strict=True):
        assert f"  {visible(name)}  " in line.replace(JSON, ""), line
        assert line.split()[-5:] == ["1.0", "2.0", "3.0", "4/5", "6"]


def test_names_are_no_markup(ugly: list[Run]) -> None:
    board = make_board(ugly)
    page = as_markdown(board)
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert r"\[bold\]not bold" in page
    assert r"\<script\>alert(1)\</script\>\&amp;" in page
    assert not set(page) & {"\u202e", "\u200f", "\x07", "\x1b", "\t", "\ud800"}
    latex = as_latex(board)
    assert r"\#1 \textbackslash{}input\{x\} \%\textasciitilde{}\textasciicircum{}\{\}\_" in latex
    assert r"a\$\textbackslash{}foo\{\$" in latex
    for line in latex.splitlines():
        if " & " in line and not line.startswith("%"):
            assert len(re.findall(r"(?<!\\)&", line)) == 4, line


# --- the terminal ---------------------------------------------------------------------------------


def six_averages(board: Board) -> Board:
    """A board with an average for every family, as the whole benchmark has."""
    names = (OVERALL, "insdet", "objdet", "objdet_video", "refexp", "refexp_all")
    averages = tuple(replace(board.averages[0], name=name) for name in names)
    cells = {
        (model, name): replace(board.cells[model, OVERALL], column=name)
        for model in board.models
        for name in names
    }
    return replace(board, averages=averages, cells={**board.cells, **cells})


def test_a_terminal_of_80_columns_is_enough(
    ugly: list[Run],
    runs: list[Run],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "vlmeval_findit.cli.leaderboard.console",
        lambda: Console(width=80, force_terminal=True, color_system=None),
    )
    board = six_averages(
        make_board([*(run for run in runs if run.variant.table == "Pascal"), *ugly])
    )
    _print_board(board)
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 80
    assert f"Intervals: {INTERVALS}." in printed
    heads = [line.split() for line in lines if line.startswith("rank")]
    assert [name for head in heads for name in head[2:]] == [a.name for a in board.averages]
    assert all(head[:2] == ["rank", "model"] for head in heads)
    # Whole figures and intervals, whatever the width; names keep both ends.
    overall = board.cells["Good", OVERALL].entries["F1@0.5"]
    assert overall.interval is not None
    assert printed.count(f"{overall.interval.low:.1f}–{overall.interval.high:.1f}") == 6
    assert "namenamenamenamename…" not in printed
    assert "[bold]not bo" in printed
    assert "…" in printed


@pytest.mark.parametrize("width", range(48, 130, 3))
def test_no_width_cuts_a_figure(board: Board, width: int) -> None:
    """However many tables it takes, each fits, and nothing in it is cut."""
    six = six_averages(board)
    out = Console(width=width, record=True, file=StringIO())
    for table in _board_tables(six, width, 24):
        out.print(table)
    text = out.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    heads = [line.split()[2:] for line in text.splitlines() if line.startswith("rank")]
    assert [name for head in heads for name in head] == [one.name for one in six.averages]
    overall = six.cells["Poor", OVERALL].entries["F1@0.5"].interval
    assert overall is not None
    assert text.count(f"{overall.low:.1f}–{overall.high:.1f}") >= 6


def test_a_pipe_is_never_folded(
    ugly: list[Run], runs: list[Run], capsys: pytest.CaptureFixture[str]
) -> None:
    board = six_averages(
        make_board([*(run for run in runs if run.variant.table == "Pascal"), *ugly])
    )
    _print_board(board)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("rank") for line in lines) == 1
    assert any("name" * 50 in line for line in lines)
    assert any("[bold]not bold[/bold] [/]" in line for line in lines)
    assert len(lines) == 4 + 2 * len(board.models)


# --- files of odd values --------------------------------------------------------------------------

ODD = ("NaN", "Infinity", "null", '"text"', "[]", "{}", "-1", "[null]", '{"a": 1}', "true")


def leaves(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """The places of everything in a JSON value, itself included."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from leaves(value[0], (*path, 0))


def with_value(value: Any, path: tuple[Any, ...], odd: object) -> Any:
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_value(value[path[0]], path[1:], odd)
    return copy


def refusal(world: World) -> str | None:
    """Why the runs of a world cannot be shown; None where they can."""
    try:
        board = make_board(load_runs([world.runs]))
    except RunError as error:
        return str(error)
    assert as_markdown(board)
    assert as_openvlm(board, NOW)
    print_remarks(board)
    found, _ = gather([one.run for one in board.sweep])
    json.dumps(gallery_data(choose_cards(found, 3)), allow_nan=False)
    return None


@pytest.mark.parametrize("odd", ODD)
def test_odd_values_in_a_runs_files_are_named_or_harmless(world: World, odd: str) -> None:
    """Whatever a provenance or details file says, there is a board or one line with its name."""
    path = world.predict("A", LABELS_JSON, speaking(LABELS_JSON, 0.8))
    world.predict("B", LABELS_JSON, speaking(LABELS_JSON, 0.3))
    refused = 0
    for ending in ("provenance.json", "details.jsonl"):
        file = path.with_name(f"{path.stem}_{ending}")
        whole = file.read_text(encoding="utf-8")
        first = whole if ending == "provenance.json" else whole.splitlines()[0]
        rest = whole.splitlines()[1:] if ending != "provenance.json" else []
        for place in leaves(json.loads(first)):
            changed = with_value(json.loads(first), place, json.loads(odd))
            file.write_text("\n".join([json.dumps(changed), *rest]), encoding="utf-8")
            why = refusal(world)
            refused += why is not None
            assert why is None or ("\n" not in why and str(path.with_name(path.stem)) in why), place
        file.write_text(whole, encoding="utf-8")
    assert refused > 10
    assert len(load_runs([world.runs])) == 2


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_the_sheet_opens_in_libreoffice(out: Path, tmp_path: Path) -> None:
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless"]
    command += ["--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false"]
    subprocess.run(
        [*command, "--outdir", str(tmp_path), str(out / "leaderboard.xlsx")],
        check=True,
        capture_output=True,
        timeout=120,
    )
    lines = (tmp_path / "leaderboard.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("Rank,≈,Model,Overall")
    assert re.match(r"1,,Good,9\d\.\d+,[\d.]+–[\d.]+,", lines[2]), lines[2]
