"""How much the format matters: best, median, worst and commonest format of each model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from scored_runs import World, failing, query, speaking

from vlmeval_findit.leaderboard import (
    Board,
    format_spreads,
    make_board,
    spread_sentence,
    spread_table,
)
from vlmeval_findit.report import make_page
from vlmeval_findit.scoring import load_runs

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def name(format_: str) -> str:
    return f"FindIt_Pascal_{format_}"


def board_of(world: World, chances: Mapping[str, Mapping[str, float]]) -> Board:
    """Run models in formats, in which they find their share of the objects."""
    for model, by_format in chances.items():
        for format_, chance in by_format.items():
            world.run(model, name(format_), speaking(name(format_), chance))
    return make_board(load_runs([world.runs]))


FOUR = {"xyxy_text": 1.0, "xywh_text": 0.8, "xyxy_json": 0.6, "xywh_json": 0.0}


def test_the_spread_of_a_model_with_four_formats(world: World) -> None:
    (spread,) = format_spreads(board_of(world, {"A": FOUR, "B": {"xyxy_json": 0.9}}))
    assert (spread.model, spread.dataset, spread.formats) == ("A", "Pascal", 4)
    assert spread.best.run.variant.format == "xyxy_text"
    assert spread.median.name == "xyxy_json"
    assert spread.worst.name == "xywh_json"
    assert spread.commonest is not None
    assert spread.commonest.name == "xyxy_json"


def test_the_best_of_a_dataset_may_not_be_reported(world: World) -> None:
    """JSON is best on average; on one of two datasets text is."""
    of_tables = {"": {"text": 1.0, "json": 0.4}, "_multilabel": {"text": 0.0, "json": 1.0}}
    for table, chances in of_tables.items():
        for format_, chance in chances.items():
            dataset = f"FindIt_Pascal{table}_xyxy_{format_}"
            world.run("A", dataset, speaking(dataset, chance))
    board = make_board(load_runs([world.runs]))
    assert {row.run.variant.format for row in board.runs if row.reported} == {"xyxy_json"}
    by_dataset = {
        row["dataset"]: row for row in spread_table(board, format_spreads(board)).records()
    }
    pascal = by_dataset["Pascal"]
    assert (pascal["best"], pascal["worst"]) == ("xyxy_text", "xyxy_json")
    values = [row.run.value(board.headline) for row in board.runs if row.dataset == "Pascal"]
    assert pascal["F1@0.5"] == max(values) == 100.0
    assert pascal["to worst"] == pytest.approx(min(values) - max(values))
    assert pascal["to worst low"] < pascal["to worst"] < pascal["to worst high"]
    assert by_dataset["Pascal_multilabel"]["best"] == "xyxy_json"


@pytest.mark.parametrize(
    ("chances", "says"),
    [
        ({"A": FOUR, "B": {"xyxy_json": 0.9}}, "In xyxy_json, in which most models were asked, A"),
        ({"A": FOUR, "B": {"xyxy_text": 0.9}}, "In xyxy_text, in which most models were asked, no"),
        ({"A": FOUR, "B": {"cxcywh_json": 1}, "C": {"cxcywh_json": 1}}, "loses 100.0 points"),
        ({"A": FOUR, "B": {"xywh_json": 1.0}}, "on Pascal; most models were asked in it."),
        ({"A": {"xyxy_text": 1.0}, "B": {"xyxy_json": 0.9}}, ""),
    ],
    ids=["commonest costs", "is best", "not asked in it", "is the worst", "one format each"],
)
def test_a_sentence_says_what_the_wrong_format_costs(
    chances: Mapping[str, Mapping[str, float]], says: str, world: World
) -> None:
    board = board_of(world, chances)
    sentence = spread_sentence(board, format_spreads(board))
    assert says in sentence
    if says:
        assert sentence.startswith("In its worst of 4 formats, xywh_json, A loses 100.0 points (")
        assert sentence.endswith(".")
    else:
        assert sentence == ""


IMAGES = (1, 3, 4, 5, 7, 12, 40)
BOUNDS = re.compile(r"loses [\d.]+ points(?: \(([\d.-]+) to ([\d.-]+)\)| \((not [^)]+)\))")


@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize("poor", [0.0, 0.8])
def test_an_interval_of_a_loss_is_one_of_losses(images: int, poor: float, world: World) -> None:
    """Where a difference may be chance, words say so: no interval of a loss goes below 0."""
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(images)])
    chances = {"xyxy_text": 1.0, "xyxy_json": poor, "xywh_json": poor}
    board = board_of(world, {"A": chances, "B": {"xyxy_json": 0.9}})
    spreads = format_spreads(board)
    sentence = spread_sentence(board, spreads)
    found = BOUNDS.findall(sentence)
    assert len(found) == sentence.count("loses") - sentence.count("none loses")
    for low, high, words in found:
        assert words or 0 < float(low) <= float(high) <= 100
    (spread,) = spreads
    assert spread.worst.to_best is not None
    assert bool(found[0][2]) != spread.worst.to_best.significant


def test_the_table_has_differences_to_the_best_format(world: World) -> None:
    board = board_of(world, {"A": FOUR, "B": {"xyxy_json": 0.9, "xyxy_text": 0.8}})
    table = spread_table(board, format_spreads(board))
    first, second = table.records()
    assert (first["model"], first["best"], first["worst"]) == ("A", "xyxy_text", "xywh_json")
    assert first["to worst"] == -100.0
    assert first["to worst low"] <= -100.0 <= first["to worst high"]
    assert second["model"] == "B"
    # Two formats were asked as often: the benchmark's first.
    assert (second["best"], second["commonest"]) == ("xyxy_json", "xyxy_text")
    assert second["to commonest"] == second["to worst"] < 0


def test_failed_calls_are_misses_in_a_format(world: World) -> None:
    world.run("A", name("xyxy_text"), speaking(name("xyxy_text"), 0.5))
    world.run("A", name("xyxy_json"), failing)
    (spread,) = format_spreads(make_board(load_runs([world.runs])))
    assert spread.worst.name == "xyxy_json"


@pytest.mark.parametrize(("more", "shown"), [(FOUR, True), ({"xyxy_json": 0.5}, False)])
def test_the_report_shows_how_much_the_format_matters(
    more: Mapping[str, float], shown: bool, world: World
) -> None:
    page = make_page(board_of(world, {"A": more, "B": {"xyxy_json": 0.9}}), NOW)
    assert ("In its worst of 4 formats, xywh_json, A loses 100.0 points (" in page) == shown
    assert ("How much the format matters" in page) == shown
