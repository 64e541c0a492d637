"""The files of a leaderboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from boards import JSON, LABELS_JSON, METRICS, NOW, TEXT, board, runs, world
from openpyxl import load_workbook
from rich.console import Console
from scored_runs import World, failing, saying, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.cli.leaderboard import print_remarks
from vlmeval_findit.leaderboard import notes
from vlmeval_findit.leaderboard.board import OVERALL, Board, make_board
from vlmeval_findit.leaderboard.board_files import as_latex, as_markdown, write_board
from vlmeval_findit.leaderboard.notes import coordinate_lines, failure_lines, remarks
from vlmeval_findit.report.page import make_page
from vlmeval_findit.runs.scored_run import Run

__all__ = ["board", "runs", "world"]

COMMAND = "vlmeval_findit.cli.leaderboard"


@pytest.fixture
def out(board: Board, tmp_path) -> Path:
    write_board(board, tmp_path / "board", NOW)
    return tmp_path / "board"


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


def test_sheet(board: Board, out: Path) -> None:
    book = load_workbook(out / "leaderboard.xlsx")
    metrics = [name for name in METRICS if name != board.headline.name]
    details = [
        next(metric.title for metric in board.metrics if metric.name == name) for name in metrics
    ]
    others = ["Errors", "Not compared", "All values", "Notes"]
    assert book.sheetnames == ["Scores", "Formats", "What was lost", *details, *others]
    for metric, name in zip(METRICS, ["Scores", *details], strict=True):
        sheet = book[name]
        assert sheet.freeze_panes == "C4"
        head = [sheet.cell(3, at).value for at in (2, 3, 4)]
        assert head == ["model", "formats tried", "Overall"]
        values = {sheet.cell(row, 2).value: sheet.cell(row, 4) for row in (4, 5, 6)}
        best = max(cell.value for cell in values.values())
        for model, cell in values.items():
            assert cell.value == pytest.approx(board.cells[model, OVERALL].entries[metric].value)
            assert cell.number_format == "0.0"
            assert bool(cell.font.bold) == (cell.value == best)
        assert re.fullmatch(r"[\d.]+–[\d.]+( ≈)?", sheet.cell(4, 5).value)
    assert book["Formats"].max_row == 15
    assert book["All values"].freeze_panes == "E4"


def test_markdown_and_latex(world: World, runs: list[Run], tmp_path) -> None:
    evil = world.run("a|b_<c>%&", JSON, speaking(JSON, 0.5))
    other = world.run("Other", JSON, saying("[]"), rows=3)
    board = make_board([*runs, evil, other])
    page = as_markdown(board)
    assert r"a\|b\_\<c\>%\&" in page
    assert "## Not compared: 1 run" in page
    tables = re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    assert len(tables) == 1 + len(METRICS) + 3
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


def test_the_command(world: World, runs: list[Run], tmp_path, capsys) -> None:
    world.predict("Other", JSON, saying("[]"), rows=3)
    out = tmp_path / "out"
    command = ["leaderboard", str(world.runs), "--out", str(out)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "Good" in printed
    assert "Not compared with the rest: 1 run\n" in printed
    assert "other rows: 3 scored, the rest 12" in printed
    assert "\nEach in one format: Good xyxy_text; " in printed
    assert len(list(out.iterdir())) == 8
    world.predict("Other", TEXT, saying("[]"), rows=3)
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "Not compared with the rest: 2 runs\n" in printed
    (line,) = (text for text in printed.splitlines() if "other rows" in text)
    assert line.startswith("  Other ")
    assert ") and 1 more: other rows: 3 scored, the rest 12" in line
    assert main([*command, "--format", "nonsense"]) == 2
    assert "error: --format nonsense: no run has this format" in capsys.readouterr().err
    assert main(["leaderboard", str(tmp_path / "nowhere")]) == 2


@pytest.mark.parametrize("many", [12, 13, 300])
def test_a_terminal_is_not_filled_with_remarks(
    world: World, tmp_path, capsys,
    monkeypatch, many: int
) -> None:  # fmt: skip
    """A terminal shows the first, and names the file with all; a pipe gets all."""
    for name in (JSON, TEXT):
        world.predict("Model", name, saying("[]"))
    remarks = [f"Model{at} failed" for at in range(many)]
    monkeypatch.setattr(f"{COMMAND}.remarks", lambda board: [("Failed calls", remarks)])
    monkeypatch.setattr(f"{COMMAND}.formats_chosen", lambda board: remarks)
    commands = {
        "leaderboard.md": ["leaderboard", str(world.runs), "--out", str(tmp_path / "out")],
        "page.html": ["report", str(world.runs), "--out", str(tmp_path / "page.html")],
    }
    for file, command in commands.items():
        assert main(command) == 0
        lines = capsys.readouterr().out.splitlines()
        assert {f"Failed calls: {line}" for line in remarks} <= {*lines}, file
    terminal = Console(width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr("vlmeval_findit.cli.printing.console", lambda: terminal)
    for file, command in commands.items():
        assert main(command) == 0
        printed = capsys.readouterr().out
        lines = printed.splitlines()
        shown = [x.removeprefix("Failed calls: ") for x in lines if x.startswith("Failed calls: ")]
        assert shown == (remarks if many == 12 else remarks[:11])
        assert (f"\n{many - 11} more in {file}\n" in printed) == (many > 12)
        named = f"Model10 failed; {many - 11} more in formats.csv" in " ".join(printed.split())
        assert named == (many > 12 and command[0] == "leaderboard")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_the_sheet_opens_in_libreoffice(out: Path, tmp_path) -> None:
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless"]
    command += ["--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false"]
    subprocess.run(
        [*command, "--outdir", str(tmp_path), str(out / "leaderboard.xlsx")],
        check=True,
        capture_output=True,
        timeout=120,
    )
    lines = (tmp_path / "leaderboard.csv").read_text(encoding="utf-8").splitlines()
    assert lines[2].startswith("rank,model,formats tried,Overall,95 % interval,")
    assert re.match(r"1,Good,2,9\d\.\d+,[\d.]+–[\d.]+,", lines[3]), lines[3]


def test_notes_are_a_line_for_each_model_and_cause(runs: list[Run]) -> None:
    """That Good answers in another order is noted once for all formats."""

    def doubted(run: Run, doubt: str) -> Run:
        return replace(run, provenance=replace(run.provenance, coords_doubt=doubt))

    def doubt(asked: str, followed: str, agree: int) -> str:
        return f"declared {asked}, but the answers follow {followed} ({agree} of 12 agree)"

    def of(model: str, *doubts: str) -> list[Run]:
        members = [run for run in runs if run.model == model]
        return [doubted(*pair) for pair in zip(members, doubts, strict=False)]

    good = of("Good", doubt("a, xyxy", "a, xywh", 11), doubt("a, yxyx", "a, xywh", 12))
    assert coordinate_lines(make_board(good)) == ["Good (2 runs): answers xywh whatever is asked"]
    [line] = coordinate_lines(make_board(good[:1]))
    assert line == f"Good on {good[0].question.name}: answers xywh where xyxy is asked"
    # Another space is named in full, and the same doubt of two models once.
    other = [run for name in ("Poor", "Poor2") for run in of(name, *[doubt("a, x", "b, x", 9)] * 2)]
    assert coordinate_lines(make_board(other)) == [
        "Poor, Poor2 (2 runs): declared a, x, but the answers follow b, x"
    ]
    mixed = of("Poor", "declared a, x, but 30 % of the answers follow b, x")
    assert coordinate_lines(make_board(mixed))[0].endswith("30 % of the answers follow b, x")


def test_failed_calls_of_several_datasets_are_a_line(world: World) -> None:
    """With the mean over all of them, if there is a mean."""
    failed = [world.run("Fails", name, failing) for name in (JSON, LABELS_JSON)]
    board = make_board(failed)
    cells = [board.cells["Fails", name] for name in ("Pascal", "Pascal_multilabel", OVERALL)]
    failures, queries = (sum(getattr(c, n) for c in cells[:2]) for n in ("failures", "queries"))
    missed = cells[2].entries[board.metrics[0].name].value
    [line] = failure_lines(board)
    assert line.startswith(
        f"Fails, 2 datasets: {failures} of {queries} calls failed; its mean F1@0.5 is {missed:.1f} "
    )


def test_a_cause_of_many_models_is_a_line(world: World, monkeypatch) -> None:
    monkeypatch.setattr(notes, "MOST", 1)
    names = (JSON, "FindIt_Pascal_xyxy_text")
    board = make_board([world.run(model, name, failing) for model in "ABC" for name in names])
    cells = [board.cells[model, "Pascal"] for model in board.models]
    failed, queries = sum(c.failures for c in cells), sum(c.queries for c in cells)
    [line] = failure_lines(board)
    assert line.startswith(f"3 models: {failed} of {queries} calls failed, ")
    (line,) = notes.tried_lines(board)
    assert line.startswith("A and 2 more: one of 2 formats that were tried, ")
    assert notes.formats_chosen(board) == [f"{cells[0].format} (3 models)"]


def test_forced_contradictions_are_in_every_output(
    world: World, runs: list[Run], tmp_path, capsys
) -> None:
    contradictions = ("space: recorded grid1000, given unit", "prompts <hash>")
    first = runs[0]
    forced = replace(first, provenance=replace(first.provenance, forced=contradictions))
    assert "Forced" not in dict(remarks(make_board(runs)))
    board = make_board([forced, *runs[1:]])
    [line] = dict(remarks(board))["Forced"]
    name = f"{first.model} on {first.question.name}"
    assert line == f"{name}: contradicts the record: {'; '.join(contradictions)}"
    assert "## Forced" in as_markdown(board)
    assert r"recorded grid1000, given unit; prompts \<hash\>" in as_markdown(board)
    write_board(board, tmp_path, NOW)
    about = load_workbook(tmp_path / "leaderboard.xlsx")["Notes"]
    assert f"Forced: {line}" in [row[0].value for row in about.iter_rows()]
    page = make_page(board, NOW)
    assert "<h3>Forced</h3>" in page
    assert "given unit; prompts &lt;hash&gt;" in page
    print_remarks(board, "leaderboard.md")
    assert line in capsys.readouterr().out
