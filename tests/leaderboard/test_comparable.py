"""Runs that can be compared, and the reported format of a model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from boards import JSON, board, runs
from few_fast import every_nth_fast
from scored_runs import World, saying, speaking, with_facts

from vlmeval_findit.leaderboard import (
    Board,
    FormatError,
    as_latex,
    as_markdown,
    choose_reported,
    make_board,
    sweep_table,
)
from vlmeval_findit.protocol import Answering, merge_for_resume
from vlmeval_findit.scoring import Run, load_runs

__all__ = ["board", "runs"]


@pytest.mark.parametrize(
    ("change", "reason"),
    every_nth_fast(
        [
            (
                {"rows": frozenset(range(8))},
                r"^other rows: 8 scored, the rest 12; rows missing: 4 \(first: 8\)$",
            ),
            ({"rows": frozenset(range(20))}, r"; rows that the rest lacks: 8 \(first: 12\)$"),
            ({"prompts": "release 4d99"}, "^other prompts: release 4d99, the rest findit-own-1$"),
            (
                {"prompts": None, "prompt_hash": None},
                "^it did not record its prompts, the rest was asked in findit-own-1$",
            ),
            (
                {"prompt_hash": "ab" * 32},
                "^other words under the same name findit-own-1: prompts hash "
                "abababababab…, the rest",
            ),
            (
                {"table_sha256": "f" * 64},
                "^other subset: Pascal.tsv has SHA-256 ffffffffffff…, the rest",
            ),
            ({"plugins": {"mine": "2"}}, "^the plug-in mine is 2, for the rest 1$"),
        ],
        3,
    ),
)
def test_runs_that_cannot_be_compared_are_excluded(
    runs: list[Run], change: dict[str, Any], reason: str
) -> None:
    rest = [replace(r, provenance=replace(r.provenance, plugins={"mine": "1"})) for r in runs]
    base = next(run for run in rest if run.variant.name == JSON)
    other = replace(with_facts(base, **change), model="Other")
    board = make_board([*rest, other])
    assert "Other" not in board.models
    assert not any(model == "Other" for model, _ in board.cells)
    [excluded] = board.excluded
    assert excluded.run is other
    assert re.search(reason, excluded.reason), excluded.reason
    assert make_board([other]).models == ("Other",)


def test_a_run_without_rows_is_excluded(world: World) -> None:
    board = make_board([world.run("Empty", JSON, saying("[]"), rows=0)])
    assert [each.reason for each in board.excluded] == ["no row was scored"]
    assert board.models == ()
    assert as_markdown(board)
    assert as_latex(board)


# --- several runs of a model in a format ----------------------------------------------------------

JANUARY = "2026-01-05T00:00:00+00:00"
NOVEMBER = "2026-11-05T00:00:00+00:00"


def asked(world: World, when: str | None, chance: float, folder: str, **change: Any) -> Run:
    """Make a run of a model, asked at a time, with changes of its identity."""
    return world.run(
        "Good",
        JSON,
        speaking(JSON, chance, 10),
        change=lambda run: replace(run, asked_at=when, **change),
        folder=folder,
    )


def scored(run: Run, when: str) -> Run:
    return replace(run, provenance=replace(run.provenance, scored_at=when))


def test_of_two_runs_of_a_cell_the_last_asked_counts(world: World, tmp_path) -> None:
    """Scoring an old run again does not make it the newest, and resuming keeps its time."""
    old = scored(asked(world, JANUARY, 0.2, "old"), "2999")
    new = scored(asked(world, NOVEMBER, 0.9, "new"), "2026")
    board = make_board([old, new])
    assert board.cells["Good", "Pascal"].run is new
    [excluded] = board.excluded
    assert excluded.run is old
    assert excluded.reason == f"another run of this cell, older than {new.path}"
    first = old.provenance.identity
    assert first is not None
    now = replace(first, asked_at=NOVEMBER)
    assert merge_for_resume(first, now, False, tmp_path).asked_at == JANUARY
    assert merge_for_resume(None, now, False, tmp_path).asked_at == NOVEMBER
    assert now.digest == first.digest


def test_of_the_same_predictions_the_last_score_counts(world: World) -> None:
    first, copy = (asked(world, None, 0.7, folder) for folder in ("here", "copy"))
    later = scored(first, "2999")
    board = make_board([later, copy])
    assert board.cells["Good", "Pascal"].run is later
    assert [each.reason for each in board.excluded] == [f"the same predictions as {later.path}"]


def test_of_runs_without_a_recorded_time_none_counts(world: World) -> None:
    runs = [asked(world, None, 0.2, "old"), asked(world, NOVEMBER, 0.9, "new")]
    board = make_board([*runs, world.run("Poor", JSON, speaking(JSON, 0.1))])
    assert board.models == ("Poor",)
    assert {each.run.path: each.reason for each in board.excluded} == {
        run.path: f"it is not recorded whether {other.path} was asked later; "
        "name the files of the right run in place of their folder"
        for run, other in (runs, runs[::-1])
    }


@pytest.mark.parametrize(
    ("change", "conflict"),
    [
        ({"space": {"kind": "pixels"}}, 'coordinate space (here {"kind": "grid1000"}, there'),
        (
            {"answering": Answering("Test", revision="f-1", settings={"temperature": 1.0})},
            "setting temperature (here not set, there 1.0)",
        ),
        ({"answering": Answering("Test", revision="f-2")}, "revision (here f-1, there f-2)"),
    ],
)
def test_contradicting_runs_of_one_name_are_both_excluded(
    world: World, change: dict[str, Any], conflict: str
) -> None:
    """Another space or other settings: none replaces the other silently."""
    first = {"answering": Answering("Test", revision="f-1")}
    runs = [
        asked(world, JANUARY, 0.9, "old", **first),
        asked(world, NOVEMBER, 0.9, "new", **{**first, **change}),
    ]
    board = make_board([*runs, world.run("Poor", JSON, speaking(JSON, 0.1))])
    assert board.models == ("Poor",)
    reasons = {each.run.path: each.reason for each in board.excluded}
    assert reasons.keys() == {run.path for run in runs}
    why = f"another run under one name: {runs[1].path} differs in {conflict}"
    assert why in reasons[runs[0].path]
    assert all(reason.endswith("in place of their folder") for reason in reasons.values())
    # As the reason says: with the files of one run there is no contradiction.
    assert make_board(load_runs([runs[1].path])).models == ("Good",)


def test_a_run_in_two_spaces_contradicts_itself(world: World) -> None:
    run, copy = (asked(world, JANUARY, 0.9, folder) for folder in ("a", "b"))
    other = replace(
        copy, provenance=replace(copy.provenance, spaces=({"kind": "pixels", "source": "setting"},))
    )
    board = make_board([run, other])
    assert board.models == ()
    assert "coordinate space (here grid1000, there pixels)" in board.excluded[0].reason


# --- formats --------------------------------------------------------------------------------------


def test_the_best_format_by_average_is_reported(
    world: World, runs: list[Run], board: Board
) -> None:
    reported = choose_reported(board.datasets)
    formats = {model: run.variant.format for (model, _), run in reported.items()}
    assert formats == {"Good": "xyxy_text", "Poor": "xyxy_json", "Poor2": "xyxy_json"}
    for model, best in formats.items():
        totals = dict.fromkeys(("xyxy_json", "xyxy_text"), 0.0)
        for run in (run for run in runs if run.model == model):
            totals[run.variant.format] += run.metric_values["F1@0.5"] or 0
        assert totals[best] == max(totals.values())
    # Formats of more datasets go first.
    name = "FindIt_Pascal_yxyx_json"
    world.predict("Good", name, speaking(name, 1.0))
    board = make_board(load_runs([world.runs]))
    here = {"model": "Good", "dataset": "Pascal"}
    rows = [row for row in sweep_table(board).records() if here.items() <= row.items()]
    shown = {row["format"]: row["reported"] for row in rows}
    assert shown == {"xyxy_json": "", "xyxy_text": "yes", "yxyx_json": ""}
    assert rows[0]["F1@0.5 (failed calls as misses) to reported"] < 0
    assert rows[0]["p to reported"] < 0.3
    assert rows[1]["p to reported"] is None


def test_the_reported_format_can_be_set(runs: list[Run]) -> None:
    board = make_board(runs, ["xyxy_text", "Good=xyxy_json"])
    formats = {model: board.cells[model, "Pascal"].format for model in board.models}
    assert formats == {"Good": "xyxy_json", "Poor": "xyxy_text", "Poor2": "xyxy_text"}
    with pytest.raises(FormatError, match=r"no run of 'God': did you mean Good\?"):
        make_board(runs, ["God=xyxy_json"])
    for name in ("xywh_json", "multilabel_xyxy_json"):
        with pytest.raises(FormatError, match="no run has this format: did you mean xyxy_json"):
            make_board(runs, [name])


@pytest.mark.parametrize("named", ["", "Good="])
def test_a_format_that_is_not_compared_is_not_called_unknown(runs: list[Run], named: str) -> None:
    run = next(run for run in runs if run.model == "Good" and run.variant.format == "xyxy_json")
    scored_with = {**run.provenance.scored_with, "code": "ab" * 32}
    older = replace(run, provenance=replace(run.provenance, scored_with=scored_with))
    others = [each for each in runs if each.variant.format == "xyxy_text"]
    says = rf"{re.escape(str(run.path))} exists, but is not compared: scored by "
    with pytest.raises(FormatError, match=says):
        make_board([older, *others], [f"{named}xyxy_json"])
