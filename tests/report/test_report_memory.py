"""A page of runs whose details are read again: the same to the byte, one run after the other."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from scored_runs import World, speaking, world
from test_row_table import NOW, PASCAL, TEXT, runs
from toy_benchmark import letters

from vlmeval_findit.benchmarks.findit.benchmark import FindIt
from vlmeval_findit.cli import main
from vlmeval_findit.cli import report as command
from vlmeval_findit.core.run_files import run_of
from vlmeval_findit.core.scored_row import RowTable, ScoredRow
from vlmeval_findit.leaderboard.board import Board, boards, make_board
from vlmeval_findit.report import cards, differences, transcripts
from vlmeval_findit.report.assets import write_page
from vlmeval_findit.report.cards import Choice
from vlmeval_findit.report.differences import pair_values
from vlmeval_findit.report.page import make_page
from vlmeval_findit.report.pairs import Side, pair_runs
from vlmeval_findit.report.transcripts import gather
from vlmeval_findit.runs import scored_run
from vlmeval_findit.runs.scored_run import RowData, Run, RunError, load_runs, read_details

__all__ = ["letters", "runs", "world"]

GOOD_AND_POOR = (Side("Good", ""), Side("Poor", ""))


def board_of(folder: Path, keep: RowData = RowData.QUERY_SCORES) -> Board:
    return boards(load_runs([folder], keep=keep))[0]


@pytest.mark.parametrize(
    ("most", "sides", "limit"),
    [(4_000, (), 30_000_000), (24, GOOD_AND_POOR, 30_000_000), (4_000, (), 1_000), (24, (), 1_000)],
)
def test_pages_are_those_of_whole_rows(
    runs: World, tmp_path: Path, most: int, sides: Sequence[Side], limit: int
) -> None:
    """With all answers, with a choice of them, in one file and beside it."""
    made: dict[RowData, dict[str, bytes]] = {}
    for keep in (RowData.DETAILS, RowData.QUERY_SCORES):
        for board in boards(load_runs([runs.runs], keep=keep)):
            path = tmp_path / keep.name / board.benchmark.name / "report.html"
            path.parent.mkdir(parents=True)
            write_page(path, board, NOW, most, sides, limit)
        folder = tmp_path / keep.name
        files = (file for file in folder.rglob("*") if file.is_file())
        made[keep] = {str(file.relative_to(folder)): file.read_bytes() for file in files}
    assert made[RowData.QUERY_SCORES] == made[RowData.DETAILS]
    assert {"FindIt/report.html", "Letters/report.html"} <= set(made[RowData.DETAILS])


def test_rows_are_read_again_with_their_details(runs: World) -> None:
    whole, few = (
        load_runs([runs.runs], keep=keep) for keep in (RowData.DETAILS, RowData.QUERY_SCORES)
    )
    for ours, theirs in zip(whole, few, strict=True):
        assert isinstance(theirs.rows, RowTable)
        assert list(read_details(theirs)) == list(ours.rows) == list(read_details(ours))
        some = [0, len(ours.rows) - 1]
        assert (
            read_details(theirs, some) == read_details(ours, some) == [ours.rows[at] for at in some]
        )
        assert read_details(theirs, []) == []
        assert theirs.query_scores == ours.query_scores


def test_a_goodness_that_needs_details_has_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.predict("A", PASCAL, speaking(PASCAL, 0.7))
    monkeypatch.setattr(FindIt, "query_score", lambda self, row: 10.0 * len(row.details["boxes"]))
    pages = [
        make_page(board_of(world.runs, keep), NOW)
        for keep in (RowData.QUERY_SCORES, RowData.DETAILS)
    ]
    assert pages[0] == pages[1]


def test_the_details_of_one_run_are_held_at_a_time(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model in "ABCDE":
        world.predict(model, PASCAL, speaking(PASCAL, 0.5))
    held: list[int] = []
    met: list[Run] = []

    def counting(run: Run, places: Sequence[int] | None = None) -> Sequence[ScoredRow]:
        met.append(run)
        found = read_details(run, places)
        gc.collect()
        rows = (one for one in gc.get_objects() if isinstance(one, ScoredRow))
        held.append(sum(bool(row.details) for row in rows))
        return found

    monkeypatch.setattr(transcripts, "detailed", counting)
    monkeypatch.setattr(cards, "detailed", counting)
    out = tmp_path / "report.html"
    assert main(["report", str(world.runs), "--out", str(out), "--cards", "15"]) == 0
    assert len(held) == len(met) == 2 * 5
    assert all(isinstance(run.rows, RowTable) for run in met)
    # All of a run that is looked at; the chosen of two where one follows on the other.
    assert held[:5] == [12] * 5
    assert max(held[5:]) <= 6


def test_of_the_answers_that_are_not_shown_no_line_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.predict("A", PASCAL, speaking(PASCAL, 0.5))
    world.predict("B", PASCAL, speaking(PASCAL, 0.5, 20))
    found, _ = gather(load_runs([world.runs], keep=RowData.QUERY_SCORES))
    choice = Choice.among(found, 8)
    read: list[str] = []
    row_of = scored_run.row_of
    monkeypatch.setattr(scored_run, "row_of", lambda line: read.append(line) or row_of(line))
    assert [len(choice.cards(one)) for one in found] == [4, 4]
    assert len(read) == 8


@pytest.mark.parametrize("models", [1, 20])
def test_pairs_are_the_same_however_few_runs_are_held(
    runs: World, monkeypatch: pytest.MonkeyPatch, models: int
) -> None:
    board = board_of(runs.runs, RowData.DETAILS)
    known = [one.run for one in board.runs]
    wanted = pair_values(pair_runs(board), board.shown, known)
    monkeypatch.setattr(differences, "MODELS", models)
    assert pair_values(pair_runs(board)[::-1], board.shown, known) == wanted[::-1]


# --- what changes while a page is made ------------------------------------------------------------


def gone(details: Path) -> None:
    details.unlink()


def other(details: Path) -> None:
    lines = details.read_text("utf-8").splitlines(True)
    details.write_text("".join([*lines[1:], lines[0]]), "utf-8")


def longer(details: Path) -> None:
    lines = details.read_text("utf-8").splitlines(True)
    details.write_text("".join([*lines, lines[0]]), "utf-8")


@pytest.mark.parametrize(
    ("change", "why"), [(gone, "is missing"), (other, "changed after"), (longer, "changed after")]
)
def test_a_run_that_changes_meanwhile_is_refused_and_the_old_page_stays(
    world: World, tmp_path: Path, change: Callable[[Path], None], why: str
) -> None:
    details = run_of(world.predict("A", PASCAL, speaking(PASCAL, 0.5))).details
    world.predict("A", TEXT, speaking(TEXT, 0.5))
    board, out = (
        make_board(load_runs([world.runs], keep=RowData.QUERY_SCORES)),
        tmp_path / "report.html",
    )
    write_page(out, board, NOW)
    before = out.read_bytes()
    change(details)
    with pytest.raises(RunError, match=f"{details.name}.*{why}"):
        write_page(out, board, NOW)
    assert out.read_bytes() == before


def test_the_command_says_which_run_changed(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    details = run_of(world.predict("A", PASCAL, speaking(PASCAL, 0.5))).details

    def late(*given: Any) -> Any:
        gone(details)
        return write_page(*given)

    monkeypatch.setattr(command, "write_page", late)
    assert main(["report", str(world.runs), "--out", str(tmp_path / "report.html")]) == 2
    assert f"{details} is missing" in capsys.readouterr().err
