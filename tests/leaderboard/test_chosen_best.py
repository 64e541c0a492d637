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
from vlmeval_findit.statistics import Difference, correct_by_holm, corrected_for_pairs

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


def test_against_a_named_format_its_own_tests_count(world: World) -> None:
    """``--format`` named it beforehand; the best of a dataset is chosen nevertheless."""
    world.table("Pascal", [query(at, picture=f"{at}.jpg") for at in range(60)])
    labels = JSON.replace("xyxy_json", "xywh_json")
    for name, chance in ((JSON, 0.9), (TEXT, 0.55), (labels, 0.5)):
        world.run("A", name, speaking(name, chance))
    named = make_board(load_runs([world.runs]), ["xyxy_text"])
    tests = [row.to_reported for row in named.runs if row.to_reported is not None]
    assert len(tests) == 2
    assert tests == correct_by_holm(tests)
    chosen = make_board(load_runs([world.runs]))
    worst = [format_spreads(board)[0].worst.to_best for board in (named, chosen)]
    assert worst[0] == worst[1]


def test_what_the_wrong_format_costs_may_be_nothing(world: World) -> None:
    """The interval of the sentence is that of the table, and has 0 where no test is significant."""
    world.table("Pascal", [query(at, picture=f"{at}.jpg") for at in range(20)])
    for name, chance in ((JSON, 0.6), (TEXT, 0.5)):
        for model in ("A", "B", "C"):
            world.run(model, name, speaking(name, chance))
    board = make_board(load_runs([world.runs]))
    spreads = format_spreads(board)
    rows = spread_table(board, spreads).records()
    assert all(row["to worst high"] >= 0 for row in rows)
    assert "points (-" in spread_sentence(board, spreads)
