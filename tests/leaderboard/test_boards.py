"""Several benchmarks in a folder: a board, files and a page of each; slices; published rows."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from boards import csv_rows
from openpyxl import load_workbook
from rich.console import Console
from scored_runs import World, saying, speaking
from toy_benchmark import guessing, letters, zoo

from vlmeval_findit.cli import main, print_rows
from vlmeval_findit.leaderboard import (
    OVERALL,
    Board,
    FormatError,
    PaperStyle,
    as_latex,
    as_markdown,
    boards,
    make_board,
    metric_table,
    remarks,
    slices_table,
    sweep_table,
    values_table,
    write_board,
)
from vlmeval_findit.protocol import FAILED_ANSWER
from vlmeval_findit.report import make_page
from vlmeval_findit.scoring import load_runs, score_file, score_row

__all__ = ["letters"]

PASCAL = "FindIt_Pascal_xyxy_json"
PLAIN = "Letters_Zoo_plain"
JSON = "Letters_Zoo_json"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def house(letters: World) -> World:
    """Two models over FindIt and letters, letters in two formats."""
    for model, chance in (("Good", 0.9), ("Poor", 0.4)):
        letters.predict(model, PASCAL, speaking(PASCAL, chance))
        letters.predict(model, PLAIN, guessing(chance))
        letters.predict(model, JSON, guessing(chance - 0.2))
    return letters


@pytest.fixture
def board(house: World) -> Board:
    by_name = {each.benchmark.name: each for each in boards(load_runs([house.runs]))}
    return by_name["Letters"]


def test_metrics_and_formats_are_those_of_the_benchmark(board: Board) -> None:
    cell = board.cells["Good", "Zoo"]
    assert cell.format == "plain"
    # No row shows a giant: a ratio without a whole has no value.
    assert list(cell.entries)[1:] == ["Accuracy", "Animal accuracy", "Readable"]
    assert cell.run is not None
    for metric in ("Accuracy", "Animal accuracy"):
        assert cell.entries[metric].value == cell.run.metric_values[metric]
        assert cell.entries[metric].interval is None, "the format was chosen"
    good_zoo = {"model": "Good", "dataset": "Zoo", "family": "Letters"}
    [row] = [row for row in values_table(board).records() if good_zoo.items() <= row.items()]
    assert row["Giants"] is row["Giants low"] is row["Giants rank"] is None
    rows = {row["format"]: row for row in sweep_table(board).records() if row["model"] == "Good"}
    assert rows["json"]["Accuracy (failed calls as wrong) to reported"] < 0
    assert rows["plain"]["Accuracy (failed calls as wrong)"] == rows["plain"]["Accuracy"]


def test_a_metric_that_some_lack_ranks_the_others(letters: World) -> None:
    """Giants are in one of two tables: there is no mean, and a rank among those that have it."""
    zoo(letters, table="Giants", sizes="giant small")
    for model, chance in (("Good", 0.9), ("Poor", 0.4)):
        letters.predict(model, PLAIN, guessing(chance))
        letters.predict(model, "Letters_Giants_plain", guessing(chance))
    letters.predict("Fails", "Letters_Giants_plain", saying(f"{FAILED_ANSWER} via API."))
    board = make_board(load_runs([letters.runs]))
    assert "Giants" not in board.cells["Good", OVERALL].entries
    giants = {model: board.entry(model, "Giants", "Giants") for model in board.models}
    ranks = {model: entry.rank for model, entry in giants.items() if entry}
    assert ranks == {"Good": 1, "Poor": 2}
    assert [each.run.model for each in board.excluded] == ["Fails"]
    assert "Failed calls" not in dict(remarks(board)), "its calls are behind no value"
    for text in (as_markdown(board), as_latex(board), make_page(board, NOW)):
        assert not re.search(r"[>\s&|]nan[<\s&|]", text)


def test_each_benchmark_has_a_board_of_its_own(house: World, tmp_path, capsys) -> None:
    """FindIt's files lie in the folder, the others below; a format applies where it is known."""
    runs = load_runs([house.runs])
    findit, toy = boards(runs[::-1], ["json", "Poor=xyxy_json"])
    assert [each.benchmark.name for each in (findit, toy)] == ["FindIt", "Letters"]
    assert [each.datasets[0].name for each in (findit, toy)] == ["Pascal", "Zoo"]
    assert {cell.format for cell in toy.cells.values() if cell.run} == {"json"}
    assert {cell.format for cell in findit.cells.values() if cell.run} == {"xyxy_json"}
    alone = make_board([run for run in runs if run.variant.name == PASCAL])
    assert values_table(alone).records() == values_table(findit).records()
    with pytest.raises(FormatError, match="--format jsn: no run has this format: did you mean"):
        boards(runs, ["jsn"])
    out = tmp_path / "board"
    assert main(["leaderboard", str(house.runs), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert printed.index("FindIt:\nF1@0.5 in percent") < printed.index("Letters:\nAccuracy in per")
    assert f"{out}/: leaderboard.xlsx" in printed
    assert f"{out / 'Letters'}/: leaderboard.xlsx" in printed
    findit_files = {path.name for path in out.iterdir() if path.is_file()}
    letters_files = {path.name for path in (out / "Letters").iterdir()}
    assert letters_files - findit_files == {"slices.csv"}
    assert {row["dataset"] for row in csv_rows(out / "leaderboard.csv")} >= {"Pascal"}
    assert (out / "Letters" / "leaderboard.md").read_text().startswith("# Letters leaderboard")


def test_slices_are_the_plain_ratios_of_their_rows(board: Board) -> None:
    rows = slices_table(board).records()
    assert len(rows) == 2 * 2 * (3 + 2)
    assert "Animal accuracy" not in rows[0]
    [run] = [row.run for row in board.runs if row.run.model == "Poor" and row.reported]
    for name in ("cat", "dog", "cow"):
        of_animal = [row for row in run.rows if row.slices["animal"] == name]
        key = {"model": "Poor", "reported": "yes", "slice": "animal", "value": name}
        [of_slice] = [row for row in rows if key.items() <= row.items()]
        right = sum(row.sums["right"] for row in of_animal)
        assert of_slice["Accuracy"] == pytest.approx(100 * right / len(of_animal))
        assert (of_slice["rows"], of_slice["Giants"]) == (len(of_animal), None)


def test_published_rows_stand_below_and_have_no_rank(board: Board, tmp_path) -> None:
    assert "Big-Model" not in board.models
    table = metric_table(board, "Accuracy")
    assert table.quoted == 2
    # Nothing is known of published values elsewhere.
    assert table.rows[-2] == ["published", "Big-Model", "", 88.25, None]
    readable = metric_table(board, "Readable")
    assert [row[1] for row in readable.rows[-readable.quoted :]] == ["Small_Model"]
    assert metric_table(board, "Animal accuracy").quoted == 0
    page = as_markdown(board)
    table = page.split("## Accuracy\n")[1].split("##")[0].strip().splitlines()
    assert table[-2] == "| *published* | *Big-Model* |  |  | 88.2 | – |"
    assert "* A paper, table 2: Big-Model, Small\\_Model" in page
    assert "Another paper" not in page
    [row] = [row for row in values_table(board).records() if row["model"] == "Big-Model"]
    assert (row["Accuracy"], row["Accuracy rank"]) == (88.25, None)
    assert row["published in"] == "A paper, table 2"
    write_board(board, tmp_path)
    sheet = load_workbook(tmp_path / "leaderboard.xlsx")["Scores"]
    last = 3 + len(board.models) + 2
    shown = [sheet.cell(last, at).value for at in (1, 2, 3, 5)]
    assert shown == ["published", None, "Small_Model", 31]
    latex = as_latex(board, PaperStyle.FULL)
    assert r" & \textit{Small\_Model} &  &  & 31.0 & -- \\" in latex
    assert "Published values, not ranked: A paper, table 2" in latex


def test_scores_are_printed_as_a_table_for_each_benchmark(house: World, capsys) -> None:
    """A score without a value has a dash."""
    paths = [house.runs / f"Good_{name}.json" for name in (PASCAL, PLAIN)]
    paths.append(house.predict("Fails", PLAIN, saying(f"{FAILED_ANSWER} via API.")))
    print_rows([score_row(score_file(path)) for path in paths])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["dataset", "model", "F1@0.5", "mIoU", "Adherence", "scored", "failed"]
    assert lines[2] == ["dataset", "model", "Accuracy", "Animal", "accuracy", "scored", "failed"]
    assert lines[3][:2] == [PLAIN, "Good"]
    assert lines[4][2:] == ["–", "–", "24/24", "24"]


@pytest.mark.parametrize("width", [80, 200, None])
@pytest.mark.parametrize("equal", [(), ("model",), ("dataset",), ("dataset", "model")])
def test_a_narrow_terminal_states_equal_names_once(
    equal: tuple[str, ...], width: int | None, capsys, monkeypatch
) -> None:
    """Or above several rows; a pipe and a wide terminal have a column of each."""
    metrics = {"F1@0.5": 1.0, "mIoU": 2.0, "Adherence": 3.0, "scored": 1, "rows": 1}
    rows = []
    for letter in "ab":
        names = {}
        for key, long in (("model", "Model"), ("dataset", "FindIt_Pascal_xyxy_json")):
            names[key] = long if key in equal else f"{long}_{letter}"
            names[key] += "_long" * 6 if key == "model" else ""
        rows.append({**names, **metrics, "failed calls": 0})
    if width is not None:
        terminal = Console(width=width, force_terminal=True, color_system=None)
        monkeypatch.setattr("vlmeval_findit.cli.printing.console", lambda: terminal)
    print_rows(rows)
    text = capsys.readouterr().out
    for row in rows:
        assert row["model"] in text
        assert row["dataset"] in text
    lines = text.splitlines()
    if width == 80:
        assert len(lines) == 4 + 2 * (not equal)
        assert all(text.count(rows[0][name]) == 1 for name in equal[:1])
        return
    assert lines[0].split()[:2] == ["dataset", "model"]
    assert [line.split()[:2] for line in lines[1:]] == [
        [row["dataset"], row["model"]] for row in rows
    ]


def test_a_mean_over_one_dataset_is_shown_once(house: World) -> None:
    """In every table for people it is that dataset; programs find it by its name."""
    board = make_board(load_runs([house.runs / f"Good_{PASCAL}_provenance.json"]))
    assert [mean.name for mean in board.means] == [OVERALL, board.datasets[0].family]
    assert board.places() == ["Pascal"]
    assert board.mean_names() == [OVERALL]
    table = metric_table(board, board.headline.name)
    assert [field.name for field in table.fields] == ["rank", "model", "Pascal"]
    # Rows begin with the ranks of this column.
    assert all(row[-1].ranks is None for row in table.rows)
    assert f"mean: {OVERALL}" in {row["dataset"] for row in values_table(board).records()}
