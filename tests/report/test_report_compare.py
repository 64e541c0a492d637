"""Two runs side by side: choice of pairs, their metrics, and their answers on a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scored_runs import World, failing, query, saying, speaking
from test_report import JSON, LABELS, NOW, TEXT, data_of
from toy_benchmark import guessing, letters

from vlmeval_findit.analysis import ELSEWHERE, compare_errors, compare_runs
from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import OVERALL, Board, boards, make_board
from vlmeval_findit.report import (
    ModelInFormat,
    choose_cards,
    choose_pairs,
    first_pairs,
    gather_transcripts,
    make_page,
    mean_values,
    opening_pair,
    pair_values,
    panels_of,
    sides_of,
)
from vlmeval_findit.scoring import load_runs
from vlmeval_findit.statistics import BestOf

__all__ = ["letters"]

EARLY_LATE = (ModelInFormat("Early", ""), ModelInFormat("Late", ""))


def only(rows: range) -> Callable[[Any, np.random.Generator], str]:
    """Return a model that finds everything in some rows, and answers "nothing" in others."""
    right = speaking(JSON, 1.0)
    return lambda asked, generator: right(asked, generator) if asked.index in rows else "[]"


@pytest.fixture
def board(world: World) -> Board:
    """Rows 0 to 5 are found by Early and Both, 4 to 9 by Late; Both has two formats."""
    world.predict("Early", JSON, only(range(6)))
    world.predict("Late", JSON, only(range(4, 10)))
    world.predict("Both", JSON, speaking(JSON, 1.0))
    world.predict("Both", TEXT, speaking(TEXT, 0.5, 5))
    return make_board(load_runs([world.runs]))


def test_metrics_of_pairs_are_those_of_the_statistics(board: Board) -> None:
    data = data_of(make_page(board, NOW))
    runs = [row.run for row in board.runs]
    assert len(data["pairs"]) == 4
    for pair in data["pairs"]:
        left, right = runs[pair["left"]], runs[pair["right"]]
        # Three models in a column, and two formats of the only model that has several.
        is_formats = left.model == right.model
        tests = compare_runs(left, right, BestOf(2 if is_formats else 3))
        assert pair["family"] == ("FORMATS" if is_formats else "MODELS")
        # Two models are compared elsewhere where a format was chosen: see test_chosen_formats.
        rows = [row for row in pair["metrics"] if not row[0].endswith(ELSEWHERE)]
        assert [row[0] for row in rows][:3] == ["F1@0.5", "mIoU", "Adherence"]
        assert (len(rows) < len(pair["metrics"])) == bool(pair["chosen"])
        for name, of_left, of_right, value, low, high, p, told in rows:
            own = [left.metric_values[name], right.metric_values[name]]
            assert [of_left, of_right] == pytest.approx(own, abs=1e-4)
            bounds = tests[name].interval
            assert value == pytest.approx(tests[name].value, abs=1e-4)
            if name in pair["chosen"]:
                assert (low, high, p, told) == (None, None, None, None)
                continue
            assert (bounds is None) == (p is None)
            assert (low is None) == tests[name].says_nothing
            if low is not None:
                assert [low, high] == pytest.approx([bounds.low, bounds.high], abs=1e-4)
            assert (p, told) == (tests[name].corrected, tests[name].significant)
        names = {each.key: each.name for each in left.benchmark.errors.error_types}
        lost = {names[key]: test.corrected for key, test in compare_errors(left, right).items()}
        assert {numbers[0]: numbers[6] for numbers in pair["losses"]} == lost
        gained = rows[0][3]
        assert sum(numbers[3] for numbers in pair["losses"]) == pytest.approx(-gained, abs=1e-2)


def test_means_of_pairs_are_those_of_the_board(world: World) -> None:
    """By the difference that all outputs state, with chosen formats and without."""
    for model, chance in {"Good": 0.9, "Poor": 0.4, "Half": 0.6, "Fails": 0.0}.items():
        for name in (JSON, LABELS)[: 1 if model == "Half" else 2]:
            world.predict(model, name, speaking(name, chance, 5) if chance else failing)
    fixed = make_board(load_runs([world.runs]))
    world.predict("Poor", TEXT, speaking(TEXT, 0.5, 5))
    for board in (fixed, make_board(load_runs([world.runs]))):
        pairs = choose_pairs(board)
        values = mean_values(pairs, board)
        assert values == data_of(make_page(board, NOW))["means"]
        both = [{each["left"], each["right"]} for each in values]
        expected = [{"Good", "Poor"}, {"Good", "Fails"}, {"Poor", "Fails"}]
        assert sorted(map(sorted, both)) == sorted(map(sorted, expected)), "Half has no mean"
        panel = panels_of(board)[0]
        best, *others = panel.dots
        for dot in others:
            (of_both,) = [
                each for each in values if {each["left"], each["right"]} == {best.model, dot.model}
            ]
            sign = 1 if of_both["left"] == dot.model else -1
            for title, left, right, value, low, high, p, told in of_both["rows"]:
                if OVERALL not in title:
                    continue
                assert "mean of 2" in title
                test = dot.to_best
                assert test is not None
                assert left - right == pytest.approx(value, abs=1e-3)
                assert sign * value == pytest.approx(test.value, abs=1e-3)
                assert (p, told) == (test.corrected, test.significant)
                if test.interval is not None:
                    ends = [sign * low, sign * high]
                    assert sorted(ends) == pytest.approx(
                        [test.interval.low, test.interval.high], abs=1e-3
                    )
    only_one = make_board([row.run for row in fixed.runs if row.dataset == "Pascal"])
    assert mean_values(choose_pairs(only_one), only_one) == []


def test_the_page_opens_with_the_best_two_models(board: Board) -> None:
    runs = [row.run for row in board.runs]
    pairs = pair_values(choose_pairs(board), board, runs)
    # Both and Early, Both and Late, Early and Late, both formats of Both.
    assert [pair["counts"]["differ"] for pair in pairs[:3]] == [6, 6, 8]

    opened = pairs[opening_pair(pairs, runs)]
    sides = [runs[opened[side]] for side in ("left", "right")]
    assert sides == [board.run(model, "Pascal") for model in board.models[:2]]
    of_formats = [pair for pair in pairs if runs[pair["left"]].model == runs[pair["right"]].model]
    assert opening_pair([*of_formats, *pairs], runs) == len(of_formats)
    few = {**of_formats[0], "counts": {"differ": 0}}
    assert opening_pair([few, *of_formats], runs) == 1, "where no two models are compared"
    assert opening_pair([], runs) == 0
    assert data_of(make_page(board, NOW))["opening_pair"] == opening_pair(pairs, runs)
    # Pairs of --compare come first.
    assert data_of(make_page(board, NOW, sides=EARLY_LATE))["opening_pair"] == 0


def test_queries_are_counted_by_who_finds_them(board: Board, world: World) -> None:
    world.predict("Fails", JSON, failing)
    runs = {(run.model, run.variant.name): run for run in load_runs([world.runs])}
    names = [("Early", JSON), ("Late", JSON), ("Fails", JSON)]
    small = make_board([runs[name] for name in names])
    pairs = pair_values(choose_pairs(small), small, [runs[name] for name in names])
    counts = {(pair["left"], pair["right"]): pair["counts"] for pair in pairs}
    assert counts[0, 1] == {
        "queries": 12, "both": 2, "left": 4, "right": 4, "neither": 2, "differ": 8, "answered": 12
    }  # fmt: skip
    # The calls of rows 0, 3, 6 and 9 failed: a failed call is not an answer without boxes.
    assert counts[0, 2] == {
        "queries": 12, "both": 0, "left": 4, "right": 0, "neither": 4, "differ": 4, "answered": 8
    }  # fmt: skip


def test_metrics_over_other_queries_have_no_test(board: Board, world: World) -> None:
    world.predict("Fails", JSON, failing)
    every = make_board(load_runs([world.runs]), ["xyxy_json"])
    runs = [row.run for row in every.runs]
    for pair in pair_values(choose_pairs(every), every, runs):
        models = {runs[pair[side]].model for side in ("left", "right")}
        first, *others = pair["metrics"]
        assert first[6] is not None, "failed calls are misses"
        untested = {row[0] for row in others} if "Fails" in models else set()
        assert {*pair["untested"]} >= untested
        assert bool(pair["untested"]) == bool(untested)
        p_values = [row[6] for row in others]
        assert any(p is not None for p in p_values) == ("Fails" not in models)


def test_pairs_are_two_models_or_two_formats_of_a_model(board: Board) -> None:
    named = [
        tuple((run.model, run.variant.format) for run in (pair.left, pair.right))
        for pair in choose_pairs(board)
    ]
    both, early, late = ((model, "xyxy_json") for model in ("Both", "Early", "Late"))
    assert named == [(both, early), (both, late), (early, late), (both, ("Both", "xyxy_text"))]
    # Pairs of --compare come first, and once.
    asked = choose_pairs(board, EARLY_LATE[::-1])
    assert (asked[0].left.model, asked[0].right.model) == ("Late", "Early")
    assert len(asked) == 4
    assert (
        len(choose_pairs(board, (ModelInFormat("Both", "xyxy_text"), ModelInFormat("Late", ""))))
        == 5
    )
    page = make_page(board, NOW)
    assert "two models in formats that they are not reported in; --compare adds" in page


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("Both=xyxy_text", "Both", (ModelInFormat("Both", "xyxy_text"), ModelInFormat("Both", ""))),
        ("Early", "Lat", "--compare Lat: unknown model: did you mean Late?"),
        ("Early", "Late=xyxy_jsn", "no run has this format: did you mean xyxy_json?"),
        ("Early", "Lte=xyxy_json", "--compare Lte=xyxy_json: no run of 'Lte': did you mean Late?"),
        ("Early=xyxy_json", "Early", "no dataset has two runs of these that can be compared"),
    ],
)
def test_sides_of_compare(board: Board, left: str, right: str, expected: object) -> None:
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=re.escape(expected)):
            sides_of([left, right], [board])
    else:
        assert sides_of([left, right], [board]) == expected


def test_a_short_page_has_the_largest_differences(world: World) -> None:
    world.table("Pascal", [query(i, f"{i % 6}.jpg") for i in range(60)])
    world.predict("Early", JSON, only(range(6)))
    world.predict("Late", JSON, only(range(50, 56)))
    world.predict("None", JSON, saying("[]"))
    board = make_board(load_runs([world.runs]))
    transcripts, _ = gather_transcripts([row.run for row in board.runs])
    different = {*range(6), *range(50, 56)}

    def chosen(limit: int) -> dict[str, set[int]]:
        rows: dict[str, set[int]] = {}
        for card in choose_cards(transcripts, limit, first_pairs(board, EARLY_LATE)):
            rows.setdefault(card.transcript.run.model, set()).add(card.row.index)
        return rows

    asked = chosen(48)
    assert sum(map(len, asked.values())) <= 48
    assert different <= asked["Early"] & asked["Late"]
    assert asked["None"]
    # With fewer cards there are still both answers to a query, or none.
    few = chosen(12)
    assert len(few["Early"] & few["Late"] & different) >= 3


def test_the_command_puts_two_side_by_side(
    board: Board, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    command = ["report", str(world.runs), "--out", str(out)]
    assert main([*command, "--compare", "Late", "Both=xyxy_text"]) == 0
    data = data_of(out.read_text(encoding="utf-8"))
    first = [data["runs"][data["pairs"][0][side]] for side in ("left", "right")]
    named = [(run["model"], run["format"]) for run in first]
    assert named == [("Late", "xyxy_json"), ("Both", "xyxy_text")]
    out.unlink()
    assert main([*command, "--compare", "Late", "Bth"]) == 2
    assert "did you mean Both?" in capsys.readouterr().err
    assert not out.exists()


def test_letters_and_several_benchmarks(letters: World) -> None:
    """A benchmark without boxes has pairs too; a model of one benchmark only is compared there."""
    for model, chance in (("Good", 0.9), ("Poor", 0.4)):
        letters.predict(model, "Letters_Zoo_plain", guessing(chance))
    letters.predict("Good", JSON, speaking(JSON, 1.0))
    by_name = {each.benchmark.name: each for each in boards(load_runs([letters.runs]))}
    sides = sides_of(["Good", "Poor"], list(by_name.values()))
    assert first_pairs(by_name["FindIt"], sides) == []
    page = make_page(by_name["FindIt"], NOW, sides=sides)
    assert data_of(page)["pairs"] == []
    assert 'id="compare"' not in page
    (pair,) = data_of(make_page(by_name["Letters"], NOW, sides=sides))["pairs"]
    assert pair["counts"]["left"] > pair["counts"]["right"]
    assert sum(pair["counts"][key] for key in ("both", "left", "right", "neither")) == 24
    assert [row[0] for row in pair["losses"]] == ["wrong answer"]
