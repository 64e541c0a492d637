"""Every place that tests against a best that the tested values chose: 5 % hold for all pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pytest
from boards import JSON, TEXT, many, runs
from scored_runs import World, query, speaking

from vlmeval_findit.leaderboard import (
    Board,
    format_spreads,
    make_board,
    spread_sentence,
    spread_table,
)
from vlmeval_findit.report import panels_of
from vlmeval_findit.scoring import load_runs
from vlmeval_findit.statistics import Difference, corrected_for_pairs

__all__ = ["many", "runs"]


class AgainstBest(NamedTuple):
    """A difference to the best, from how many it was chosen, and how many choices share 5 %."""

    test: Difference | None
    chosen_from: int
    choices: int


def _formats(board: Board) -> Iterator[AgainstBest]:
    for row in board.runs:
        if not row.reported:
            yield AgainstBest(row.to_reported, 3, len(board.models))


def _spreads(board: Board) -> Iterator[AgainstBest]:
    spreads = format_spreads(board)
    for spread in spreads:
        for other in (spread.median, spread.worst):
            yield AgainstBest(other.to_best, spread.formats, len(spreads))


def _standings(board: Board) -> Iterator[AgainstBest]:
    for panel in panels_of(board):
        for dot in panel.dots[1:]:
            yield AgainstBest(dot.to_best, len(panel.dots), 1)


PLACES: Mapping[str, Callable[[Board], Iterator[AgainstBest]]] = {
    "formats.csv, leaderboard.md, what a format costs": _formats,
    "how much the format matters": _spreads,
    "who is best": _standings,
}
"""Checkpoints: test_learning_curve.py."""


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_tests_and_intervals_hold_for_all_pairs(
    place: Callable[[Board], Iterator[AgainstBest]], many: Board
) -> None:
    tested = list(place(many))
    assert len(tested) > 3
    for test, chosen_from, choices in tested:
        assert test is not None
        assert test.p_value is not None
        assert test.interval is not None
        expected = choices * corrected_for_pairs(test.p_value, chosen_from)
        assert test.corrected == pytest.approx(min(1.0, expected))
        assert test.significant == (test.interval.low > 0 or test.interval.high < 0)
    assert any(test.significant for test, *_ in tested if test)


def test_two_formats_have_one_test_whoever_named_one(world: World) -> None:
    """``--format`` may name the best: formats.csv and how much the format matters agree."""
    world.table("Pascal", [query(at, picture=f"{at}.jpg") for at in range(60)])
    labels = JSON.replace("xyxy_json", "xywh_json")
    for name, chance in ((JSON, 0.9), (TEXT, 0.55), (labels, 0.5)):
        world.run("A", name, speaking(name, chance))
    boards = [make_board(load_runs([world.runs]), names) for names in (["xyxy_json"], [])]
    for board in boards:
        (spread,) = format_spreads(board)
        of_row = {row.run.variant.format: row.to_reported for row in board.runs}
        assert spread.worst.to_best == of_row[spread.worst.name] is not None
    of_text = make_board(load_runs([world.runs]), ["xyxy_text"]).runs
    of_json = boards[0].runs
    one = next(r.to_reported for r in of_text if r.run.variant.format == "xyxy_json")
    other = next(r.to_reported for r in of_json if r.run.variant.format == "xyxy_text")
    assert one is not None
    assert other is not None
    assert (one.corrected, one.value) == (other.corrected, -other.value)


def test_what_the_wrong_format_costs_may_be_nothing(world: World) -> None:
    """The table's interval has 0 where no test is significant, and the sentence says so."""
    world.table("Pascal", [query(at, picture=f"{at}.jpg") for at in range(20)])
    for name, chance in ((JSON, 0.6), (TEXT, 0.5)):
        for model in ("A", "B", "C"):
            world.run(model, name, speaking(name, chance))
    board = make_board(load_runs([world.runs]))
    spreads = format_spreads(board)
    rows = spread_table(board, spreads).records()
    assert all(row["to worst high"] >= 0 for row in rows)
    assert "points (not told apart" in spread_sentence(board, spreads)
