"""What a format costs: points against tokens out, for the formats of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from costly_runs import partly_failed, with_records
from openpyxl import load_workbook
from scored_runs import World, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import (
    Board,
    cheapest_formats,
    cheapest_sentence,
    cheapest_table,
    is_as_good,
    make_board,
    write_board,
)
from vlmeval_findit.scoring import load_runs
from vlmeval_findit.statistics import Difference

# By format: the share of objects that are found, and tokens out (None: not known)
Formats = Mapping[str, tuple[float, int | None]]


def board_of(world: World, formats: Formats, model: str = "A") -> Board:
    for format_, (chance, tokens) in formats.items():
        name = f"FindIt_Pascal_{format_}"
        path = world.predict(model, name, speaking(name, chance))
        if tokens is not None:
            record = {"tokens": {"prompt": 900, "completion": tokens}}
            with_records(path, lambda index, record=record: record)
    return make_board(load_runs([world.runs]))


@pytest.mark.parametrize(
    ("formats", "expected"),
    [
        # Of equal scores the text is reported; the cheapest finds nothing.
        (
            {"xyxy_text": (1.0, 50), "xyxy_json": (1.0, 10), "xywh_json": (0.0, 5)},
            ("xyxy_json", 40.0, 80.0),
        ),
        ({"xyxy_text": (1.0, 10), "xyxy_json": (0.0, 5)}, ("xyxy_text", 0.0, 0.0)),
        ({"xyxy_text": (1.0, 10), "xyxy_json": (1.0, 10)}, ("xyxy_text", 0.0, 0.0)),
        ({"xyxy_text": (1.0, 0), "xyxy_json": (1.0, 0)}, ("xyxy_text", 0.0, None)),
    ],
    ids=["as good for less", "cheaper but worse", "equal tokens", "no tokens"],
)
def test_the_cheapest_format_as_good(
    formats: Formats, expected: tuple[str, float, float | None], world: World
) -> None:
    (found,) = cheapest_formats(board_of(world, formats))
    assert found.formats == len(formats)
    assert (found.cheapest.name, found.saved, found.saved_share) == expected


def test_formats_are_set_against_each_other_over_shared_queries(world: World) -> None:
    """A format whose long answers failed has no fewer tokens: each query has as many in both."""
    long = [10] * 11 + [100]
    for format_, fails in (("xyxy_text", ()), ("xyxy_json", (11,))):
        name = f"FindIt_Pascal_{format_}"
        partly_failed(world.predict("A", name, speaking(name, 1.0)), fails, long)
    board = make_board(load_runs([world.runs]))
    means = {row.run.variant.format: row.run.provenance.costs.tokens_out for row in board.runs}
    assert means["xyxy_json"] == 10.0
    assert means["xyxy_text"] == pytest.approx(17.5)
    (found,) = cheapest_formats(board)
    assert (found.reported.tokens_out, found.saved) == (10.0, 0.0)


@pytest.mark.parametrize(
    "formats",
    [
        {"xyxy_json": (1.0, 50)},
        {"xyxy_json": (1.0, None), "xyxy_text": (0.0, 10)},
        {"xyxy_json": (1.0, 50), "xyxy_text": (0.0, None)},
    ],
    ids=["one format", "reported without tokens", "the other without"],
)
def test_formats_that_cannot_be_set_against_each_other(formats: Formats, world: World) -> None:
    board = board_of(world, formats)
    assert cheapest_formats(board) == []
    table = cheapest_table(board, [])
    assert not table.rows
    assert not table.notes, "no note on what is not shown"
    assert cheapest_sentence(board, []) == ""


def test_many_tokens_are_written_in_full(world: World) -> None:
    board = board_of(world, {"xyxy_text": (1.0, 31_250), "xyxy_json": (1.0, 1_234)})
    sentence = cheapest_sentence(board, cheapest_formats(board))
    assert sentence.endswith(", for 1,234 instead of 31,250 tokens out a query.")


# A writes sentences where it is asked for text
CLOSE: Formats = {"xyxy_text": (1.0, 50), "xyxy_json": (1.0, 10)}


def test_table_and_sentence_have_points_and_tokens(world: World) -> None:
    board = board_of(world, CLOSE)
    formats = cheapest_formats(board)
    table = cheapest_table(board, formats)
    assert "at most 1 point worse" in table.notes[0].text
    (row,) = table.records()
    assert (row["reported"], row["cheapest as good"]) == ("xyxy_text", "xyxy_json")
    assert (row["tokens out"], row["its tokens out"], row["saved in %"]) == (50.0, 10.0, 80.0)
    assert row["to reported low"] < row["to reported"] == 0 < row["to reported high"]
    sentence = cheapest_sentence(board, formats)
    assert sentence.startswith("A on Pascal: xyxy_json is about as good as xyxy_text (+0.0 points,")
    assert sentence.endswith(", for 10 instead of 50 tokens out a query.")


def test_files_and_command_show_what_a_format_costs(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = board_of(world, CLOSE)
    write_board(board, tmp_path)
    assert "## What a format costs" in (tmp_path / "leaderboard.md").read_text()
    assert "Cost of formats" in load_workbook(tmp_path / "leaderboard.xlsx").sheetnames
    assert main(["leaderboard", str(world.runs), "--out", str(tmp_path / "out")]) == 0
    assert "xyxy_json is about as good as xyxy_text" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lost", "corrected", "is_good"),
    [
        (0.9, 0.5, True),
        (1.1, 0.5, False),
        (0.9, 0.01, False),
        (-3.0, 0.01, True),
        (0.0, None, False),
    ],
    ids=["close", "a point worse", "surely worse", "better", "not tested"],
)
def test_what_is_as_good(lost: float, corrected: float | None, is_good: bool, world: World) -> None:
    row = next(row for row in board_of(world, CLOSE).runs if not row.reported)
    row = replace(row, to_reported=Difference(-lost, None, corrected, corrected))
    metric = row.run.benchmark.metrics[0]
    assert is_as_good(row, metric, 80.0) == is_good


@pytest.mark.parametrize(("lost", "is_good"), [(1.9, True), (2.1, False)])
def test_what_is_no_share_may_be_a_hundredth_worse(
    lost: float, is_good: bool, world: World
) -> None:
    row = next(row for row in board_of(world, CLOSE).runs if not row.reported)
    row = replace(row, to_reported=Difference(-lost, None, 1.0, 1.0))
    distance = replace(row.run.benchmark.metrics[0], unit="mm")
    assert not distance.share
    assert is_as_good(row, distance, 200.0) == is_good


def test_the_reported_format_may_be_the_cheapest(world: World) -> None:
    board = board_of(world, {"xyxy_text": (1.0, 10), "xyxy_json": (0.0, 5)})
    (row,) = cheapest_table(board, cheapest_formats(board)).records()
    assert (row["cheapest as good"], row["to reported"]) == ("xyxy_text", 0.0)


def test_tokens_of_other_queries_are_not_set_against_each_other(world: World) -> None:
    """Long and short answers alternate: whoever knows a part of them has another mean."""
    name = "FindIt_Pascal_{}"

    def counts(index: int) -> Mapping[str, Any]:
        return {"tokens": {"prompt": 900, "completion": 20 if index < 3 else 200}}

    def few(index: int) -> Mapping[str, Any]:
        return counts(index) if index < 3 else {}

    for partly_known in ("xyxy_text", "xyxy_json"):
        for format_ in ("xyxy_text", "xyxy_json", "xywh_json"):
            of = name.format(format_)
            path = world.predict("A", of, speaking(of, 1.0), folder=partly_known)
            with_records(path, few if format_ == partly_known else counts)
        board = make_board(load_runs([world.runs / partly_known]))
        for each in cheapest_formats(board):
            assert partly_known not in (each.reported.name, each.cheapest.name)
            assert each.saved == 0
        assert cheapest_sentence(board, cheapest_formats(board)) == ""
