"""Lost points as stacked bars of the report, and the answers that have a card."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from few_fast import few_fast
from scored_runs import World, failing, query, saying, speaking
from test_report import JSON, LABELS, TEXT

from vlmeval_findit.analysis import errors_of
from vlmeval_findit.benchmarks import benchmarks
from vlmeval_findit.benchmarks.findit import draw
from vlmeval_findit.data import load_dataset
from vlmeval_findit.leaderboard import OVERALL, make_board
from vlmeval_findit.protocol import ErrorGroup, Role
from vlmeval_findit.report import choose_cards, gather_transcripts, losses_of
from vlmeval_findit.scoring import load_runs


def test_bars_show_the_errors_of_reported_runs(world: World) -> None:
    for name in (JSON, LABELS):
        world.predict("Loose", name, speaking(name, 0.7, 30))
        world.predict("Talks", name, saying("I see a cat."))
        world.predict("Fails", name, failing)
    board = make_board(load_runs([world.runs]))
    losses = losses_of(board)
    bars = {(bar.where, bar.model): bar for bar in losses.bars}
    datasets = ["Pascal", "Pascal_multilabel"]
    assert [*bars] == [(where, m) for where in (OVERALL, *datasets) for m in board.models]
    assert "failed call" in {s.error_type.name for s in bars["Pascal", "Fails"].segments}
    for (where, model), bar in bars.items():
        assert bar.score + sum(segment.points for segment in bar.segments) == pytest.approx(100)
        if (run := board.run(model, where)) is not None:
            assert bar.score == pytest.approx(
                run.benchmark.headline_counting_failures.value(run.sums)
            )
            values = attrgetter("error_type", "events", "points", "interval")
            costs = [cost for cost in errors_of(run) if cost.events or cost.points]
            assert [*map(values, bar.segments)] == [*map(values, costs)]
            continue
        parts = [bars[name, model] for name in datasets]
        assert bar.score == pytest.approx(sum(part.score for part in parts) / 2)
        for segment in bar.segments:
            same = [s for p in parts for s in p.segments if s.error_type == segment.error_type]
            assert segment.points == pytest.approx(sum(s.points for s in same) / 2)
            assert segment.events == sum(s.events for s in same)
    # A score is rounded once: 98.946 is 98.9 in the terminal; 98.95 would be 99.0 on the page.
    bar = replace(losses.bars[0], score=98.946, segments=())
    assert replace(losses, bars=(bar,)).values([])["bars"][0][4] == 98.946


def test_no_benchmark_has_more_than_four_groups() -> None:
    for benchmark in benchmarks():
        groups = {error_type.group for error_type in benchmark.errors.error_types}
        assert ErrorGroup.NO_ANSWER in groups, benchmark.name
        assert len(groups) <= 4, benchmark.name


def test_every_run_and_error_type_has_cards(world: World) -> None:
    """One answer in sixty that cannot be read, among ties of all others, has a card."""
    world.table("Pascal", [query(i, f"{i % 6}.jpg") for i in range(60)])
    right = speaking(JSON, 1.0)

    def mixed(asked: Any, generator: Any) -> str:
        replies = {31: "I see a cat.", 32: '[{"bbox": [900, 900, 950, 990]}]', 33: "[1, 2"}
        return replies.get(asked.index, "[]" if asked.index < 50 else right(asked, generator))

    runs = [world.run("M", JSON, mixed), world.run("Loose", JSON, speaking(JSON, 0.5, 20))]
    transcripts, _ = gather_transcripts(runs)
    every = choose_cards(transcripts)
    some = choose_cards(transcripts, 24)
    assert (len(every), len(some)) == (120, 24)
    for limit in (1, 2, 3, 4, 5, 7, 60, 119, 120, 500):
        assert len(choose_cards(transcripts, limit)) == min(limit, 120)
    error_types = {error_type for card in every for error_type in card.error_types}
    assert len(error_types) >= 3
    assert {error_type for card in some for error_type in card.error_types} == error_types
    # Both ends of every run
    for transcript in transcripts:
        scores, shown = (
            [card.score for card in cards if card.transcript is transcript]
            for cards in (every, some)
        )
        assert (min(shown), max(shown)) == (min(scores), max(scores))


@pytest.mark.parametrize("limit", few_fast([24, 60, 119, 240], 2))
def test_some_queries_have_the_answers_of_all_models(world: World, limit: int) -> None:
    """Of four models, those on which they are furthest apart, whatever each run's worst are."""
    world.table("Pascal", [query(i, f"{i % 6}.jpg") for i in range(60)])
    runs = []
    for model, chance in {"A": 0.9, "B": 0.7, "C": 0.5, "D": 0.3}.items():
        runs.append(world.run(model, JSON, speaking(JSON, chance)))
    runs.append(world.run("A", TEXT, speaking(TEXT, 0.2)))
    transcripts, _ = gather_transcripts(runs)
    cards = choose_cards(transcripts, limit, reported=runs[:4])
    assert len(cards) == limit
    models: dict[int, set[str]] = {}
    for card in cards:
        if card.transcript.run is not runs[4]:
            models.setdefault(card.row.index, set()).add(card.transcript.run.model)
    of_all = {index for index, names in models.items() if len(names) == 4}
    scores = np.array([run.query_scores for run in runs[:4]])
    apart = scores.max(0) - scores.min(0)
    order = np.argsort(-apart, kind="stable")
    assert of_all >= set(order[: limit // 16].tolist())


def test_lenient_boxes_have_a_separate_role(world: World) -> None:
    run = world.run("M", LABELS, saying('[{"label": "cat", "bbox": [10, 20, 300, 400]}]'))
    first = load_dataset(LABELS).queries[0]
    row = run.rows[0]
    lenient = {
        "repairs": ["cut off"],
        "recoverable": [],
        "boxes": [*row.details["boxes"], [1.0, 2.0, 30.0, 40.0], [None, 2.0, 3.0, 4.0]],
        "labels": ["cat", "dog", "cow"],
    }
    drawn = draw(first, replace(row, details={**row.details, "lenient": lenient}))
    more = [box for box in drawn.images[0].boxes if box.role is Role.LENIENT]
    assert [(box.box, box.label) for box in more] == [((1.0, 2.0, 30.0, 40.0), "dog")]
    assert len(drawn.images[0].boxes) == len(draw(first, row).images[0].boxes) + 1
