"""What the first screen says, and who is told apart from the best."""

from __future__ import annotations

import re

import pytest
from boards import JSON, LABELS_JSON, TEXT, board, many, runs, world
from report_browser import luminance
from scored_runs import World, query, saying, speaking, two_labels

from vlmeval_findit.leaderboard.board import Board, make_board
from vlmeval_findit.report import standings
from vlmeval_findit.report.charts import RAMP, READ_IN_WHITE
from vlmeval_findit.report.losses import losses_of
from vlmeval_findit.report.standings import (
    BEST,
    LOWER,
    UNTESTED,
    headlines_of,
    panels_of,
)
from vlmeval_findit.runs.scored_run import load_runs

__all__ = ["board", "many", "runs", "world"]


def said(board: Board) -> dict[str, tuple[str, str]]:
    """The first screen: answers and reasons by the last word of their questions."""
    made = headlines_of(board, panels_of(board), losses_of(board))
    return {one.question.rstrip("?").split()[-1]: (one.answer, one.because) for one in made}


def test_models_stand_as_they_are_told_apart_from_the_best(many: Board) -> None:
    """From the best, not from the one above: small steps add up."""
    (panel,) = panels_of(many)
    standings = [one.standing for one in panel.dots]
    assert [one.model for one in panel.dots] == list(many.models)
    assert standings[0] == BEST
    assert standings[-1] == LOWER
    # As the tests say, corrected for all of the panel.
    for one, standing in zip(panel.dots[1:], standings[1:], strict=True):
        assert one.to_best is not None
        assert (standing == LOWER) == one.to_best.significant
        assert one.to_best.corrected is not None
        assert one.to_best.corrected >= (one.to_best.p_value or 0)


def test_panels_are_all_datasets_and_each_family(board: Board) -> None:
    panels = panels_of(board)
    assert [panel.name for panel in panels] == ["Overall", "Pascal", "Pascal_multilabel"]
    assert [len(panel.datasets) for panel in panels] == [2, 1, 1]


def test_all_panels_draw_the_same_models_and_whoever_is_best(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each panel with its own first models left most rows of a chart empty."""
    chances = {"A": (0.9, 0.6), "B": (0.8, 0.5), "C": (0.2, 0.1), "D": (0.0, 0.9)}
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(30)])
    world.table("Pascal_multilabel", [two_labels(i, f"{i}.jpg") for i in range(30)])
    for model, of in chances.items():
        for name, chance in zip((JSON, LABELS_JSON), of, strict=True):
            world.predict(model, name, speaking(name, chance, 3))
    monkeypatch.setattr(standings, "MODELS", 2)
    made = make_board(load_runs([world.runs]))
    assert made.models[:2] == ("A", "B")
    drawn = {panel.name: {one.model for one in panel.dots} for panel in panels_of(made)}
    assert drawn == {
        "Overall": {"A", "B"}, "Pascal": {"A", "B"}, "Pascal_multilabel": {"A", "B", "D"}
    }  # fmt: skip


def test_the_best_and_those_that_are_as_good(world: World) -> None:
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(60)])
    for model in ("Twin", "Other"):
        world.predict(model, JSON, speaking(JSON, 0.9, 2))
    world.predict("Poor", JSON, saying("[]"))
    first = said(make_board(load_runs([world.runs])))
    assert first["best"][0] == "Other"
    assert re.fullmatch(r"F1@0.5 (.+ %) \(95 % .+\), Pascal; next is Twin: \1", first["best"][1])
    assert first["certain"] == ("No, it may be chance", "the same score as Twin, p = 1.000")
    assert first["format"] == ("xyxy_json", "the only format asked; for Twin, too")


def test_how_many_may_be_as_good(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of models that are not tested some may be, too."""
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(60)])
    for model in "ABCD":
        world.predict(model, JSON, speaking(JSON, 0.9, 2))
    made = make_board(load_runs([world.runs]))
    assert said(made)["certain"][1].endswith("p = 1.000; 3 models may be as good")
    monkeypatch.setattr(standings, "MODELS", 3)
    assert said(made)["certain"][1].endswith("; at least 2 models may be as good")


def test_a_certain_lead_and_its_format(world: World) -> None:
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(60)])
    world.predict("Good", JSON, speaking(JSON, 1.0))
    world.predict("Good", TEXT, speaking(TEXT, 0.5))
    world.predict("Poor", JSON, saying("[]"))
    first = said(make_board(load_runs([world.runs])))
    assert first["best"][0] == "Good"
    answer, because = first["certain"]
    assert answer == "Yes"
    assert because.startswith("100.0 points (")
    assert because.endswith(") ahead of Poor, p below 0.001")
    assert first["format"] == (
        "xyxy_json",
        "the best of 2 formats for Good; for Poor, too",
    )
    assert first["most"] == ("Nothing", "Good made no error on Pascal")


def test_what_costs_the_best_most(world: World) -> None:
    world.predict("Only", JSON, saying("[]"))
    first = said(make_board(load_runs([world.runs])))
    assert first["most"][0] == "Refused"
    assert first["most"][1].startswith("100.0 of the 100.0 points that it lost: ")
    # With one model nothing is to be told apart.
    assert "certain" not in first


def test_too_few_images_are_said(world: World) -> None:
    world.table("Pascal", [query(i) for i in range(3)])
    world.predict("A", JSON, speaking(JSON, 1.0))
    world.predict("B", JSON, saying("[]"))
    made = make_board(load_runs([world.runs]))
    assert [one.standing for one in panels_of(made)[0].dots] == [BEST, UNTESTED]
    assert said(made)["certain"][0] == "Not known"


def test_without_a_model_on_all_datasets_there_are_panels_of_each(world: World) -> None:
    world.predict("A", JSON, speaking(JSON, 1.0))
    world.predict("B", LABELS_JSON, speaking(LABELS_JSON, 1.0))
    made = make_board(load_runs([world.runs]))
    assert [panel.name for panel in panels_of(made)] == ["Pascal", "Pascal_multilabel"]
    assert said(made)["best"][0] == "A"


def test_values_can_be_read_on_the_colours_of_a_heat_map() -> None:
    """WCAG AA: a contrast of 4.5."""
    colours = [[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in RAMP]
    for share in range(101):
        place = share / 100 * (len(RAMP) - 1)
        low = min(int(place), len(RAMP) - 2)
        pairs = zip(colours[low], colours[low + 1], strict=True)
        light = luminance([a + (b - a) * (place - low) for a, b in pairs])
        white = share / 100 > READ_IN_WHITE
        assert (1.05 / (light + 0.05) if white else (light + 0.05) / 0.05) >= 4.5
