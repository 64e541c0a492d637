"""Which runs can be compared, and in which format a model is reported."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from boards import JSON, board, runs, world
from scored_runs import World, saying, speaking

from vlmeval_findit.benchmarks.findit import PREFIX
from vlmeval_findit.benchmarks.findit.variant import grid
from vlmeval_findit.leaderboard.board import Board, make_board
from vlmeval_findit.leaderboard.columns import columns_of
from vlmeval_findit.leaderboard.formats import FormatError, choose
from vlmeval_findit.leaderboard.rows import (
    sweep_rows,
)
from vlmeval_findit.leaderboard.text import as_latex, as_markdown
from vlmeval_findit.runs.scored_run import Run, load_runs

__all__ = ["board", "runs", "world"]


def test_column_and_format_make_up_every_name_of_the_grid() -> None:
    seen = set()
    for variant in grid():
        assert f"{PREFIX}{variant.column}_{variant.format}" == variant.name
        seen.add((variant.column, variant.format))
    assert len(seen) == sum(1 for _ in grid())


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
    base = next(run for run in runs if run.question.table == "Pascal")
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
            f: sum(r.figures["F1@0.5"] for r in mine if r.question.format == f)
            for f in ("xyxy_json", "xyxy_text")
        }
        assert means[run.question.format] == max(means.values())


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
    assert rows[0]["F1@0.5 (failed calls as misses) to reported"] < 0
    assert rows[0]["p to reported"] < 0.2
    assert rows[1]["p to reported"] is None


def test_formats_can_be_asked_for(runs: list[Run]) -> None:
    board = make_board(runs, ["xyxy_text", "Good=xyxy_json"])
    found = {model: board.cells[model, "Pascal"].format for model in board.models}
    assert found == {"Good": "xyxy_json", "Poor": "xyxy_text", "Poor2": "xyxy_text"}
    other_name = make_board(runs, ["Good=xyxy_json_bbox"])
    assert other_name.cells["Good", "Pascal"].format == "xyxy_json"
    with pytest.raises(FormatError, match=r"no run of 'God': did you mean Good\?"):
        make_board(runs, ["God=xyxy_json"])
    for name in ("xywh_json", "xyxx_json", "multilabel_xyxy_json"):
        with pytest.raises(FormatError, match="no run has this format: did you mean xyxy_json"):
            make_board(runs, [name])
