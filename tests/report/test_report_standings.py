"""The first screen, and the tests of models against the best."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from boards import JSON, LABELS_JSON, NOW, TEXT, board, many, runs
from few_fast import every_nth_fast, few_fast
from report_browser import luminance
from scored_runs import World, failing, grid, query, saying, speaking

from vlmeval_findit.leaderboard import SPACE_IN_DOUBT, Board, make_board, remarks
from vlmeval_findit.report import (
    BEST_STANDING,
    COLOUR_RAMP,
    LOWER_STANDING,
    READ_IN_WHITE,
    UNTESTED_STANDING,
    PageSource,
    charts,
    headlines_of,
    losses_of,
    make_page,
    panels_of,
)
from vlmeval_findit.scoring import Run, load_runs

YXYX = "FindIt_Pascal_yxyx_json"

__all__ = ["board", "many", "runs"]


def headlines(board: Board) -> dict[str, tuple[str, str]]:
    """Return answers and reasons of the first screen by the last word of their questions."""
    lines = headlines_of(board, panels_of(board), losses_of(board))
    return {line.question.rstrip("?").split()[-1]: (line.answer, line.because) for line in lines}


def test_standings_are_tests_against_the_best(many: Board) -> None:
    """Against the best, not against the model above: small steps add up."""
    (panel,) = panels_of(many)
    assert [dot.model for dot in panel.dots] == list(many.models)
    best, *others = panel.dots
    assert (best.standing, others[-1].standing) == (BEST_STANDING, LOWER_STANDING)
    # By the tests, corrected for all models of the panel.
    for dot in others:
        assert dot.to_best is not None
        assert (dot.standing == LOWER_STANDING) == dot.to_best.significant
        assert dot.to_best.corrected is not None
        assert dot.to_best.corrected >= (dot.to_best.p_value or 0)


def test_datasets_that_are_called_alike_have_a_panel_each(many: Board) -> None:
    (panel,) = panels_of(many)
    names = [f"warehouse2026pallets{which}reviewedfinalversion2x" for which in ("", "b", "a")]
    panels = [replace(panel, name=name) for name in names]
    rows = charts.forest(many.headline, many.models, panels)["data"]["values"]
    titles = {row["panel"] for row in rows}
    assert len(titles) == len(names)
    assert max(map(len, titles)) <= charts.AXIS_NAME, "a title is no wider than its panel"
    assert all(any(name in row["text"] for row in rows) for name in names)


def ranked(world: World) -> Board:
    return make_board(load_runs([world.runs]))


def test_the_best_and_a_model_that_is_as_good(world: World) -> None:
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(60)])
    for model in ("Twin", "Other"):
        world.predict(model, JSON, speaking(JSON, 0.9, 2))
    world.predict("Poor", JSON, saying("[]"))
    first = headlines(ranked(world))
    assert first["best"][0] == "Other and Twin"
    assert re.fullmatch(r"F1@0.5 (.+ %) \(95 % .+\), Pascal; next is Poor: 0.0 %", first["best"][1])
    certain = "the same score as Twin, p = 1.000, corrected for all pairs of models of a column"
    assert first["certain"] == ("No, it may be chance", certain)
    assert first["format"] == ("xyxy_json", "the only format asked; for Twin, too")


def test_a_certain_lead_and_its_format(world: World) -> None:
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(60)])
    world.predict("Good", JSON, speaking(JSON, 1.0))
    world.predict("Good", TEXT, speaking(TEXT, 0.5))
    world.predict("Poor", JSON, saying("[]"))
    first = headlines(ranked(world))
    assert first["best"][0] == "Good"
    answer, because = first["certain"]
    assert answer == "Yes"
    assert because.startswith("100.0 points (")
    assert because.endswith(") ahead of Poor, p below 0.001")
    because = "the best of 2 formats for Good; Poor is also reported in it, the only format asked"
    assert first["format"] == ("xyxy_json", because)
    assert first["most"] == ("Nothing", "Good made no error on Pascal")


@pytest.mark.parametrize(
    ("of_good", "of_next", "because"),
    every_nth_fast(
        [
            ([JSON], [JSON], "the only format asked; for Next, too"),
            (
                [JSON],
                [JSON, TEXT, YXYX],
                "the only format asked; Next is also reported in it, the best of 3",
            ),
            (
                [JSON, TEXT],
                [JSON, TEXT, YXYX],
                "the best of 2 formats for Good; Next is also reported in it, the best of 3",
            ),
            ([JSON, TEXT], [JSON, TEXT], "the best of 2 formats for Good; for Next, too"),
            ([JSON], [TEXT], "the only format asked; for Next it is xyxy_text"),
            (
                [JSON, LABELS_JSON, TEXT],
                [JSON, LABELS_JSON],
                "the only format on all its datasets; Next is also reported in it, the only format "
                "asked",
            ),
        ],
        2,
    ),
)
def test_each_model_says_what_its_format_was_compared_with(
    world: World, of_good: list[str], of_next: list[str], because: str
) -> None:
    for name in of_good:
        # The better format in text is on one dataset only: its value decided nothing.
        good = 0.95 if name != TEXT or LABELS_JSON in of_good else 0.3
        world.predict("Good", name, speaking(name, good if name != TEXT else good + 0.05))
    for name in of_next:
        world.predict("Next", name, speaking(name, 0.7 if name == of_next[0] else 0.1))
    board = ranked(world)
    assert board.models[0] == "Good"
    assert headlines(board)["format"] == ("xyxy_json", because)
    tried = str(dict(remarks(board)).get("Formats tried", ""))
    assert ("Good" in tried) == ("Good" in because), "the best of many is optimistic"


def test_lost_points_are_of_the_best_format(world: World) -> None:
    """The first answer shows the value elsewhere: points are lost from the other one."""
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(40)])
    for name in (JSON, TEXT, YXYX):
        world.predict("Many", name, speaking(name, 0.6))
    board = ranked(world)
    entry = board.entry("Many", "Pascal", "F1@0.5")
    lost = f" of the {100 - entry.value:.1f} points lost in its best format"
    assert headlines(board)["most"][1].endswith(lost)
    named = make_board(load_runs([world.runs]), [board.cells["Many", "Pascal"].format])
    assert "best format" not in headlines(named)["most"][1]


def test_the_costliest_error_says_how_often_it_happened(world: World) -> None:
    world.predict("Only", JSON, saying("[]"))
    board = ranked(world)
    first = headlines(board)
    assert first["most"] == (
        "Nothing found",
        "24 times: the answer says that there is no object; 100.0 of the 100.0 points lost",
    )
    # With a single model there is no test.
    assert "certain" not in first

    def answer(query: Any, _: Any) -> str:
        # No box in odd rows; in even rows both boxes, the first four times.
        boxes = json.loads(speaking(JSON, 1.0)(query, np.random.default_rng(0)))
        return "[]" if query.index % 2 else json.dumps([*boxes, *[boxes[0]] * 3])

    world.predict("Only", JSON, answer)
    costliest, because = headlines(ranked(world))["most"]
    assert costliest == "Nothing found"
    assert "duplicate" not in because, "one answer to one question"


def test_models_with_one_value_are_all_named(world: World) -> None:
    for model in ("A", "B", "C"):
        world.predict(model, JSON, speaking(JSON, 1.0))
    world.predict("Poor", JSON, speaking(JSON, 0.3))
    best, because = headlines(ranked(world))["best"]
    assert best == "A and B and C"
    assert "; next is Poor: " in because


def test_too_few_images_are_reported(world: World) -> None:
    world.table("Pascal", [query(i) for i in range(3)])
    world.predict("A", JSON, speaking(JSON, 1.0))
    world.predict("B", JSON, saying("[]"))
    board = ranked(world)
    assert [dot.standing for dot in panels_of(board)[0].dots] == [BEST_STANDING, UNTESTED_STANDING]
    why = "100.0 points between A and B, not tested: fewer than 4 images count"
    assert headlines(board)["certain"] == ("Not known", why)


def test_panels_are_all_datasets_and_each_family(world: World, board: Board) -> None:
    panels = {panel.name: len(panel.datasets) for panel in panels_of(board)}
    assert panels == {"Overall": 2, "Pascal": 1, "Pascal_multilabel": 1}
    # Without a model on all datasets there are panels of each.
    runs = [world.run("A", JSON, speaking(JSON, 1.0))]
    runs.append(world.run("B", LABELS_JSON, speaking(LABELS_JSON, 1.0)))
    board = make_board(runs)
    assert [panel.name for panel in panels_of(board)] == ["Pascal", "Pascal_multilabel"]
    assert headlines(board)["best"][0] == "A"


def test_heat_map_values_are_readable() -> None:
    """WCAG AA: a contrast of 4.5."""
    colours = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in COLOUR_RAMP]
    for share in range(101):
        place = share / 100 * (len(COLOUR_RAMP) - 1)
        low = min(int(place), len(COLOUR_RAMP) - 2)
        pairs = zip(colours[low], colours[low + 1], strict=True)
        light = luminance([a + (b - a) * (place - low) for a, b in pairs])
        white = share / 100 > READ_IN_WHITE
        assert (1.05 / (light + 0.05) if white else (light + 0.05) / 0.05) >= 4.5


@pytest.mark.parametrize("doubts", few_fast([0, 1, 3, 6], 2))
def test_spaces_in_doubt_are_on_the_first_screen(runs: list[Run], doubts: int) -> None:
    """Those of reported formats; nothing is ranked by the others, which are in the notes."""
    changed = []
    for at, run in enumerate(runs):
        doubt = f"declared a, but the answers follow {at}" if at < doubts else None
        changed.append(replace(run, provenance=replace(run.provenance, coords_doubt=doubt)))
    board = make_board(changed)
    shown = headlines(board)
    reported = [row.run for row in board.runs if row.reported]
    doubted = [run for run in reported if run.provenance.coords_doubt]
    assert ("meant" in shown) == bool(doubted)
    every = dict(remarks(board)).get(SPACE_IN_DOUBT, ())
    assert len(every) == min(doubts, len(runs))
    if doubted:
        first, *others = dict(remarks(board, only_reported=True))[SPACE_IN_DOUBT]
        more = f"; {len(others)} more in Notes" if others else ""
        assert shown["meant"] == ("Coordinate space in doubt", f"{first}{more}")


@pytest.mark.parametrize("failing_models", [0, 1, 5])
def test_failed_calls_are_on_the_first_screen(world: World, failing_models: int) -> None:
    """Of all that was asked, in reported formats; the models with the most are named."""
    tables = {JSON: "Pascal", "FindIt_RefCOCO_xyxy_json": "RefCOCO"}
    for table in tables.values():
        world.table(table, [query(at, f"{at}.jpg") for at in range(6)])
    for at in range(6):
        answer = failing if at < failing_models else saying("[]")
        for name in tables:
            world.predict(f"M{at}", name, answer)
    board = ranked(world)
    shown = headlines(board)
    assert ("answered" in shown) == (failing_models > 0)
    assert ("Failed calls" in dict(remarks(board))) == (failing_models > 0)
    if failing_models:
        answer, because = shown["answered"]
        assert answer == f"{4 * failing_models} of 72 calls failed", "rows 0 and 3 of two tables"
        whose = "4 of M0" if failing_models == 1 else "4 of M0, 4 of M1, 4 of M2 and 2 more models"
        assert because.startswith(f"{whose}; they count as misses here")


def test_one_model_is_in_no_contest(world: World) -> None:
    """It is asked what it scores and where it is weak; nothing on the page calls it best."""
    world.predict("M", JSON, speaking(JSON, 0.9))
    world.predict("M", LABELS_JSON, speaking(LABELS_JSON, 0.4))
    board = make_board(load_runs([world.runs]))
    lines = headlines_of(board, panels_of(board), losses_of(board))
    questions = [line.question for line in lines]
    assert questions[:2] == ["What does M score?", "Where is it weak?"]
    assert questions[-1] == "Which error costs M most?"
    weak = board.entry("M", "Pascal_multilabel", board.metrics[0].name)
    assert lines[1].answer == "Pascal_multilabel"
    assert lines[1].because.startswith(f"{weak.tested:.1f} %; best on Pascal: ")
    html = make_page(board, NOW)
    for word in ("Which model is best?", "Who is best, and", "Filled: no model", "Ranks are by"):
        assert word not in html, word
    spec = charts.forest(board.headline, board.models, panels_of(board))
    assert "best" not in spec["description"]
    assert not [row for row in spec["data"]["values"] if "best" in row["text"]]


@pytest.mark.parametrize("models", [1, 2])
def test_a_model_alone_has_the_size_it_misses_most(world: World, models: int) -> None:
    """Sizes are those of its objects in reported runs, over all datasets."""
    small, large = (10.0, 10.0, 20.0, 20.0), (40.0, 0.0, 160.0, 99.0)
    tables = {JSON: "Pascal", "FindIt_RefCOCO_xyxy_json": "RefCOCO"}
    for table in tables.values():
        world.table(table, [query(at, f"{at}.jpg", boxes=[small, large]) for at in range(6)])

    def of_large(asked: object, generator: object) -> str:
        return json.dumps([{"bbox": [*map(round, grid(large))]}])

    for model in ("Only", "Other")[:models]:
        for name in tables:
            world.predict(model, name, of_large)
    source = PageSource(make_board(load_runs([world.runs])))
    html = make_page(source.board, NOW)
    if models > 1:
        assert source.found_by_size() == {}
        assert "Which objects does it miss most?" not in html
        return
    assert source.found_by_size() == {"small": (12, 0), "large": (12, 12)}
    assert "<strong>Small ones</strong>" in html
    assert "found: 0 % of 12 small ones, 100 % of 12 large ones" in html
