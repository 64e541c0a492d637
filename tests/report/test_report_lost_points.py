"""Lost points as stacked bars of the report."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
from scored_runs import World, failing, query, saying, speaking, world
from test_report import LABELS
from toy_benchmark import letters

from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.benchmarks.findit.box_drawing import draw
from vlmeval_findit.core.benchmark_protocol import Role
from vlmeval_findit.leaderboard.board import OVERALL, Board, make_board
from vlmeval_findit.report.cards import choose_cards
from vlmeval_findit.report.lost_points import losses_of
from vlmeval_findit.report.transcripts import gather
from vlmeval_findit.runs.run_errors import errors_of
from vlmeval_findit.runs.scored_run import load_runs

__all__ = ["letters", "world"]

JSON = "FindIt_Pascal_xyxy_json"


@pytest.fixture
def board(world: World) -> Board:
    for name in (JSON, LABELS):
        world.predict("Loose", name, speaking(name, 0.7, 30))
        world.predict("Talks", name, saying("I see a cat."))
        world.predict("Fails", name, failing)
    return make_board(load_runs([world.runs]))


def test_bars_are_the_errors_of_the_reported_runs(board: Board) -> None:
    losses = losses_of(board)
    wheres = list(dict.fromkeys(bar.where for bar in losses.bars))
    assert wheres == [OVERALL, "Pascal", "Pascal_multilabel"]
    assert list(dict.fromkeys(bar.model for bar in losses.bars)) == list(board.models)
    for bar in losses.bars:
        assert bar.score + sum(segment.points for segment in bar.segments) == pytest.approx(100)
        if not bar.is_average:
            run = board.cells[bar.model, bar.where].run
            assert run is not None
            assert bar.score == pytest.approx(run.benchmark.with_failures.value(run.sums))
            values = attrgetter("error_type", "events", "points", "interval")
            costs = [cost for cost in errors_of(run) if cost.events or cost.points]
            assert [*map(values, bar.segments)] == [*map(values, costs)]
    lost = {bar.model: {s.error_type.name for s in bar.segments} for bar in losses.bars}
    assert lost["Talks"] & {"not readable", "refused"}
    assert "failed call" in lost["Fails"]


def test_an_average_is_the_mean_of_its_datasets(board: Board) -> None:
    bars = {(bar.model, bar.where): bar for bar in losses_of(board).bars}
    for model in board.models:
        parts = [bars[model, name] for name in ("Pascal", "Pascal_multilabel")]
        over = bars[model, OVERALL]
        assert over.score == pytest.approx(sum(part.score for part in parts) / 2)
        for segment in over.segments:
            same = [s for p in parts for s in p.segments if s.error_type == segment.error_type]
            assert segment.points == pytest.approx(sum(s.points for s in same) / 2)
            assert segment.events == sum(s.events for s in same)


def test_every_error_type_has_cards_if_answers_are_more_than_cards(world: World) -> None:
    """One answer in sixty that cannot be read, among ties of all others, has a card."""
    world.table("Pascal", [query(i, f"{i % 6}.jpg") for i in range(60)])
    right = speaking(JSON, 1.0)

    def mixed(asked: Any, generator: Any) -> str:
        replies = {31: "I see a cat.", 32: '[{"bbox": [900, 900, 950, 990]}]', 33: "[1, 2"}
        return replies.get(asked.index, "[]" if asked.index < 50 else right(asked, generator))

    run = world.run("M", JSON, mixed)
    transcripts, _ = gather([run])
    every = choose_cards(transcripts)
    some = choose_cards(transcripts, 12)
    assert (len(every), len(some)) == (60, 12)
    error_types = {error_type for card in every for error_type in card.error_types}
    assert len(error_types) >= 3
    assert {error_type for card in some for error_type in card.error_types} == error_types


def test_lenient_boxes_have_a_separate_role(world: World) -> None:
    run = world.run("M", LABELS, saying('[{"label": "cat", "bbox": [10, 20, 300, 400]}]'))
    first = load_task(LABELS).queries[0]
    row = run.rows[0]
    answered = row.details["boxes"]
    lenient = {
        "steps": ["closed"],
        "boxes": [*answered, [1.0, 2.0, 30.0, 40.0], [None, 2.0, 3.0, 4.0]],
        "labels": ["cat", "dog", "cow"],
    }
    drawn = draw(first, replace(row, details={**row.details, "lenient": lenient}))
    more = [box for box in drawn.images[0].boxes if box.role is Role.LENIENT]
    assert [(box.box, box.label) for box in more] == [((1.0, 2.0, 30.0, 40.0), "dog")]
    assert len(drawn.images[0].boxes) == len(draw(first, row).images[0].boxes) + 1


def test_a_score_is_rounded_once(board: Board) -> None:
    """98.946 is 98.9 in the terminal: 98.95 on the way to the page would make it 99.0 there."""
    losses = losses_of(board)
    bar = replace(losses.bars[0], score=98.946, segments=())
    assert replace(losses, bars=(bar,)).values([])["bars"][0][4] == 98.946
