"""The files and the notes of a leaderboard."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from boards import JSON, LABELS_JSON, METRICS, NOW, TEXT, board, csv_rows, runs
from openpyxl import load_workbook
from rich.console import Console
from scored_runs import World, failing, saying, speaking

from vlmeval_findit.cli import main, print_remarks
from vlmeval_findit.leaderboard import (
    OVERALL,
    Board,
    as_markdown,
    make_board,
    notes,
    remarks,
    to_openvlm,
    write_board,
)
from vlmeval_findit.protocol import Metric
from vlmeval_findit.report import make_page
from vlmeval_findit.scoring import Run, load_runs

__all__ = ["board", "runs"]

YXYX = "FindIt_Pascal_yxyx_text"
COMMAND = "vlmeval_findit.cli.leaderboard"


def test_openvlm_and_the_sheet(board: Board, tmp_path: Path) -> None:
    write_board(board, tmp_path, NOW)
    content = json.loads((tmp_path / "openvlm.json").read_text(encoding="utf-8"))
    assert content["time"] == "260102030405"
    assert list(content["results"]) == list(board.models)
    good = content["results"]["Good"]
    assert good["META"]["Method"] == ["Good", ""]
    assert {"Org", "Parameters", "Language Model", "Vision Model"} < set(good["META"])
    entry = board.cells["Good", "Pascal"].entries["F1@0.5"]
    assert good["FindIt_Pascal"]["Overall"] == round(entry.value, 2)
    assert good["FindIt_Pascal"]["Format"] == "xyxy_text"
    assert "FindIt_average_Overall" in good
    book = load_workbook(tmp_path / "leaderboard.xlsx")
    for sheet in book:
        assert sheet.sheet_properties.pageSetUpPr.fitToPage != bool(sheet.col_breaks.brk)
    titles = {metric.name: metric.title for metric in board.metrics}
    details = [titles[name] for name in METRICS if name != board.headline.name]
    others = ["Errors", "Not compared", "All values", "Notes"]
    assert book.sheetnames == ["Scores", "Formats", "What was lost", *details, *others]
    for metric, name in zip(METRICS, ["Scores", *details], strict=True):
        rows = [[cell.value for cell in row] for row in book[name].iter_rows(3, 6)]
        place = rows[0].index("model")
        cells = [row[place : place + 4] for row in rows]
        assert cells[0] == ["model", "formats tried", "Overall", "Overall elsewhere"]
        values = {model: value for model, _, value, _ in cells[1:]}
        overall = {model: board.cells[model, OVERALL].entries[metric].value for model in values}
        assert values == pytest.approx(overall)
    assert book["Formats"].max_row == 15


def test_two_decimals_are_those_of_the_authors(world: World) -> None:
    """Values of a dataset; of means over datasets they are ours."""
    board_ = make_board([world.run("Good", JSON, speaking(JSON, 0.9))])

    class Truncated(Metric):
        def printed(self, sums: Any) -> float | None:
            return math.floor(100 * (self.value(sums) or 0)) / 100

    f1 = board_.benchmark.metrics[0]
    of_authors = Truncated(f1.name, f1.part, f1.whole)
    benchmark = SimpleNamespace(all_metrics=(of_authors,))
    (cell,) = [each for each in board_.cells.values() if each.run is not None]
    content = json.loads(to_openvlm(replace(board_, benchmark=benchmark), NOW))
    value = of_authors.value(cell.run.sums)
    written = content["results"]["Good"]
    assert written["FindIt_Pascal"][f1.name] == math.floor(100 * value) / 100
    assert written["FindIt_average_Overall"][f1.name] == round(value, 2)


def test_the_command(world: World, runs: list[Run], tmp_path, capsys) -> None:
    out = tmp_path / "out"
    command = ["leaderboard", str(world.runs), "--out", str(out)]
    world.predict("Other", JSON, saying("[]"), rows=3)
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "Not compared with the rest: 1 run\n" in printed
    assert "other rows: 3 scored, the rest 12" in printed
    assert "\nReported formats: Good xyxy_text; " in printed
    assert len(list(out.iterdir())) == 9
    assert "## Not compared: 1 run" in (out / "leaderboard.md").read_text(encoding="utf-8")
    content = json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))
    assert {row["model"] for row in content["rows"]} == {"Good", "Poor", "Poor2"}
    world.predict("Other", TEXT, saying("[]"), rows=3)
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "Not compared with the rest: 2 runs\n" in printed
    (line,) = (text for text in printed.splitlines() if "other rows" in text)
    assert ") and 1 more: other rows: 3 scored, the rest 12" in line
    assert main([*command, "--format", "nonsense"]) == 2
    assert "error: --format nonsense: no run has this format" in capsys.readouterr().err
    assert main(["leaderboard", str(tmp_path / "nowhere")]) == 2


@pytest.mark.parametrize("count", [12, 13])
def test_a_terminal_is_not_filled_with_remarks(
    world: World, tmp_path, capsys, monkeypatch, count: int
) -> None:
    """A terminal shows the first, and names the file with all; a pipe gets all."""
    world.predict("Model", JSON, saying("[]"))
    many = [f"Model{at} failed" for at in range(count)]
    monkeypatch.setattr(f"{COMMAND}.remarks", lambda board: [("Failed calls", many)])
    monkeypatch.setattr(f"{COMMAND}.formats_chosen", lambda board: many)
    command = ["leaderboard", str(world.runs), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert {f"Failed calls: {x}" for x in many} <= {*capsys.readouterr().out.splitlines()}
    terminal = Console(width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr("vlmeval_findit.cli.printing.console", lambda: terminal)
    assert main(command) == 0
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if line.startswith("Failed calls: ")]
    assert len(lines) == (12 if count == 12 else 11)
    assert (f"\n{count - 11} more in leaderboard.md\n" in printed) == (count > 12)
    named = f"Model10 failed; {count - 11} more in formats.csv" in " ".join(printed.split())
    assert named == (count > 12)


# --- notes ----------------------------------------------------------------------------------------


def test_every_output_shows_the_number_of_tried_formats(world: World, tmp_path, capsys) -> None:
    for name in (JSON, TEXT):
        world.predict("Searched", name, speaking(name, 0.8))
    # A search over a part of the rows is not compared: it counts nowhere, and a line names it.
    world.predict("Searched", YXYX, speaking(YXYX, 0.8), rows=6)
    world.predict("Asked once", JSON, speaking(JSON, 0.7))
    command = ["leaderboard", str(world.runs), "--style", "full", "--out", str(tmp_path)]
    assert main(command) == 0
    board = make_board(load_runs([world.runs]))
    line, further = dict(remarks(board))["Formats tried"]
    assert line.startswith("Searched: one of 2 formats that were tried, on the queries that it is")
    assert further.startswith("Searched: 1 further format that was asked some of its queries and ")
    rows = csv_rows(tmp_path / "leaderboard.csv")
    assert {r["model"]: r["formats tried"] for r in rows} == {"Searched": "2", "Asked once": "1"}
    latex = (tmp_path / "leaderboard.tex").read_text("utf-8")
    page = make_page(board, NOW)
    for text in (capsys.readouterr().out, latex, page):
        assert line in text
        assert further in text
    markdown = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    assert re.search(r"\| 1–2 \? \| Searched \| \S+ \| 2 \|", markdown)
    assert re.search(r"1--2\\,\? & Searched & \S+ & 2 &", latex)
    assert '<th scope="col">formats tried</th>' in page


def test_failed_calls_of_several_datasets_are_a_line(world: World, monkeypatch) -> None:
    """With the mean over all of them, if there is a mean; of many models, the total."""
    failed = [world.run("Fails", name, failing) for name in (JSON, LABELS_JSON)]
    board = make_board(failed)
    cells = [board.cells["Fails", name] for name in ("Pascal", "Pascal_multilabel", OVERALL)]
    failures, queries = (sum(getattr(c, n) for c in cells[:2]) for n in ("failures", "queries"))
    missed = cells[2].entries[board.metrics[0].name].value
    [line] = dict(remarks(board))["Failed calls"]
    assert line.startswith(
        f"Fails, 2 datasets: {failures} of {queries} calls failed; its mean F1@0.5 is {missed:.1f} "
    )
    monkeypatch.setattr(notes, "MOST", 1)
    board = make_board([replace(run, model=model) for model in "ABC" for run in failed])
    assert dict(remarks(board))["Failed calls"][0].startswith(
        f"3 models: {3 * failures} of {3 * queries} calls failed, "
    )
    board = make_board(
        [world.run(model, name, failing) for model in "ABC" for name in (JSON, TEXT)]
    )
    (line,) = dict(remarks(board))["Formats tried"]
    assert line.startswith("all 3 models: one of 2 formats that were tried, ")
    assert notes.formats_chosen(board) == [f"{board.cells['A', 'Pascal'].format} (all 3 models)"]
    board = make_board([*load_runs([world.runs]), world.run("D", JSON, failing)])
    assert dict(remarks(board))["Formats tried"][0].startswith("A and 2 more: one of 2 formats ")


def test_doubts_and_forced_contradictions_are_in_every_output(runs: list[Run], capsys) -> None:
    """Doubts of coordinates are a line for each cause."""
    assert "Forced" not in dict(remarks(make_board(runs)))
    contradictions = ("space: recorded grid1000, given unit", "prompts <hash>")
    doubt = "declared a, x, but the answers follow b, x"
    changed = []
    reported = next(row.run for row in make_board(runs).runs if row.reported)
    for at, run in enumerate(runs):
        provenance = run.provenance
        if run.model != "Good":
            provenance = replace(provenance, coords_doubt=f"{doubt} ({at} of 12 agree)")
        if run is reported:
            provenance = replace(provenance, forced=contradictions)
        changed.append(replace(run, provenance=provenance))
    board = make_board(changed)
    assert f"Poor, Poor2 (4 runs): {doubt}" in dict(remarks(board))["Coordinate space in doubt"]
    [line] = dict(remarks(board))["Forced"]
    name = f"{reported.model} on {reported.variant.name}"
    assert line == f"{name}: contradicts the record: {'; '.join(contradictions)}"
    assert r"recorded grid1000, given unit; prompts \<hash\>" in as_markdown(board)
    assert "given unit; prompts &lt;hash&gt;" in make_page(board, NOW)
    print_remarks(board, "leaderboard.md")
    assert line in capsys.readouterr().out


def test_tables_of_a_board_share_its_notes(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes ask every run; a board of a thousand runs has thirty tables."""
    asked = Mock(wraps=notes.remarks)
    monkeypatch.setattr(notes, "remarks", asked)
    write_board(board, tmp_path, NOW)
    assert asked.call_count == 2, "of all runs, and of the reported ones"
