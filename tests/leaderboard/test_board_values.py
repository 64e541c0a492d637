"""Values, means, ranks and tests of a leaderboard."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from boards import FAILED_MISSED, JSON, LABELS_JSON, METRICS, NOW, TEXT, board, many, runs
from scored_runs import World, query, speaking, two_labels
from toy_benchmark import LETTERS, guessing, letters

from vlmeval_findit.analysis import compare_runs, estimate_run
from vlmeval_findit.benchmarks.findit import FindItQuery
from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import (
    OVERALL,
    Board,
    as_latex,
    as_markdown,
    format_note,
    make_board,
    remarks,
    sweep_table,
    values_table,
)
from vlmeval_findit.protocol import FAILED_ANSWER, Better
from vlmeval_findit.report import make_page
from vlmeval_findit.scoring import Run, load_runs
from vlmeval_findit.statistics import (
    RankRange,
    corrected_for_pairs,
    mean_of_estimates,
    metric_intervals,
)

__all__ = ["board", "letters", "many", "runs"]


def some_fail(name: str, every: int) -> Any:
    """Return a model that answers each ``every`` row without an error, and fails on the others."""

    def answer(query: FindItQuery, generator: np.random.Generator) -> str:
        reply = speaking(name, 1.0)(query, generator)
        return f"{FAILED_ANSWER} via API." if query.index % every else reply

    return answer


def test_cells_hold_the_scores_of_their_runs(runs: list[Run], board: Board) -> None:
    for cell in board.cells.values():
        if cell.run is None:
            continue
        values = {name: entry.value for name, entry in cell.entries.items()}
        own = {name: cell.run.metric_values[name] for name in METRICS}
        assert values == pytest.approx({FAILED_MISSED: own["F1@0.5"], **own})
        for entry in cell.entries.values():
            if entry.interval is not None:
                assert entry.interval.low - 1e-9 <= entry.value <= entry.interval.high + 1e-9
        for metric in ("F1@0.5", "mIoU", "Adherence"):
            # The best of two formats has no interval.
            assert cell.entries[metric].interval is None
    named = make_board(runs, ["xyxy_json"])
    assert all(entry.interval for entry in named.cells["Good", "Pascal"].entries.values())
    # The order of runs does not matter, and a dataset does not depend on others.
    assert values_table(make_board(runs[::-1])).records() == values_table(board).records()
    alone = make_board([r for r in runs if r.variant.table == "Pascal"])
    assert alone.cells["Poor", "Pascal"].entries == board.cells["Poor", "Pascal"].entries


def test_overall_is_over_families(world: World) -> None:
    """The mean of all is shown as Overall, and that of a family under its name."""
    world.table("RefCOCO", [query(i, picture=f"{i}.jpg") for i in range(8)])
    refexp = "FindIt_RefCOCO_xyxy_json"
    world.predict("M", JSON, speaking(JSON, 1.0))
    world.predict("M", refexp, speaking(refexp, 0.3))
    # A model that lacks a dataset of a mean is not in it.
    world.predict("Partial", JSON, speaking(JSON, 1.0))
    board = make_board(load_runs([world.runs]))
    assert [(a.name, a.datasets) for a in board.means] == [
        (OVERALL, ("Pascal", "RefCOCO")),
        ("Object detection", ("Pascal",)),
        ("Referring expressions", ("RefCOCO",)),
    ]
    values = {name: board.cells["M", name].entries["F1@0.5"].value for name in board.names()}
    assert values[OVERALL] == pytest.approx((100 + values["RefCOCO"]) / 2)
    assert (values["Object detection"], values["Referring expressions"]) == (100, values["RefCOCO"])
    assert ("Partial", OVERALL) not in board.cells
    assert board.models == ("M", "Partial")
    assert board.cells["Partial", "Pascal"].entries["F1@0.5"].rank == 1
    page = as_markdown(board)
    assert format_note(board) in page
    # One alone in a column is in no contest: it is not bold.
    assert f"| 1 | M | xyxy\\_json | {values[OVERALL]:.1f} " in page.split("## F1@0.5")[0]
    assert "| – | Partial |" in page
    assert f"1 & M & xyxy\\_json & {values[OVERALL]:.1f}" in as_latex(board)


def test_ranks_and_ties(runs: list[Run], board: Board) -> None:
    # Six pictures are too few for two comparisons, however far apart.
    named = make_board(runs, ["xyxy_json"])
    overall = [named.cells[model, OVERALL].entries["F1@0.5"] for model in named.models]
    assert [entry.ranks for entry in overall] == [RankRange(1, 3)] * 3
    overall = [board.cells[model, OVERALL].entries["F1@0.5"] for model in board.models]
    assert board.models[0] == "Good"
    assert [entry.rank for entry in overall] == [1, 2, 2]
    # Six pictures have no two halves that could choose a format.
    untested = [entry.ranks == RankRange(1, 3, untested=True) for entry in overall]
    assert untested == [entry.elsewhere is not None for entry in overall]
    assert overall[0].to_above is None
    adherence = [board.cells[m, "Pascal"].entries["Adherence"] for m in board.models]
    assert [entry.rank for entry in adherence] == [1, 1, 1]


def test_a_lower_is_better_headline_ranks_the_lowest_first(letters: World, monkeypatch) -> None:
    wrong = replace(LETTERS.headline_counting_failures, better=Better.LOWER)
    monkeypatch.setattr(type(LETTERS), "headline_counting_failures", wrong)
    runs = [letters.run(f"M{n}", "Letters_Zoo_plain", guessing(n / 10)) for n in (8, 2)]
    board = make_board(runs)
    assert board.models == ("M2", "M8")
    assert [board.cells[m, OVERALL].entries[wrong.name].rank for m in board.models] == [1, 2]


def test_averages_count_shared_pictures_once(runs: list[Run]) -> None:
    """Pascal and Pascal_multilabel show the same pictures; in another folder they would not."""
    board = make_board(runs, ["xyxy_json"])
    first, second = (run for column in board.datasets if (run := board.run("Good", column.name)))
    expected = metric_intervals(mean_of_estimates([estimate_run(first), estimate_run(second)]))
    entries = board.cells["Good", OVERALL].entries
    assert expected["F1@0.5"] is not None
    known = {name: interval for name, interval in expected.items() if interval}
    assert {name: entries[name].interval for name in known} == known
    elsewhere = replace(second, rows=tuple(replace(a, source=f"x{a.source}") for a in second.rows))
    apart = metric_intervals(mean_of_estimates([estimate_run(first), estimate_run(elsewhere)]))
    assert apart["mIoU"] != expected["mIoU"]


def test_failed_calls_lower_a_rank_and_are_in_every_output(world: World, tmp_path, capsys) -> None:
    """A model that fails on two of three rows is not ahead of a model that answers all."""
    world.predict("Hardly", JSON, some_fail(JSON, 3))
    world.predict("Whole", JSON, speaking(JSON, 0.9))
    assert main(["leaderboard", str(world.runs), "--out", str(tmp_path)]) == 0
    board = make_board(load_runs([world.runs]))
    cells = {model: board.cells[model, "Pascal"].entries for model in board.models}
    assert cells["Hardly"]["F1@0.5"].value > cells["Whole"]["F1@0.5"].value
    assert board.models == ("Whole", "Hardly")
    for name in ("Pascal", OVERALL):
        for metric in (FAILED_MISSED, *METRICS):
            ranks = {m: board.cells[m, name].entries[metric].rank for m in board.models}
            # Values over answered calls only give no rank.
            assert ranks == {"Whole": 1, "Hardly": 2 if metric == FAILED_MISSED else None}
    [line] = dict(remarks(board))["Failed calls"]
    outputs = [(tmp_path / f"leaderboard.{end}").read_text("utf-8") for end in ("md", "tex")]
    printed = capsys.readouterr().out
    assert all(line in text for text in (*outputs, printed, make_page(board, NOW)))
    assert printed.index("   1  Whole") < printed.index("   2") < printed.index("Hardly")
    rows = {(r["model"], r["dataset"]): r for r in values_table(board).records()}
    row = rows["Hardly", "Pascal"]
    assert (row["failed calls"], row[f"{FAILED_MISSED} rank"]) == (8, 2)
    assert (row["F1@0.5"], row["F1@0.5 rank"]) == (100, None)


@pytest.mark.parametrize(("images", "sign"), [(3, " ?"), (12, "")])
def test_too_few_images_and_no_difference_have_different_signs(
    world: World, images: int, sign: str
) -> None:
    """Three images cannot be tested; twelve that are alike can, and show no difference."""
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(images)])
    for model, chance in (("Good", 0.9), ("Fair", 0.8)):
        world.predict(model, JSON, speaking(JSON, chance))
    board = make_board(load_runs([world.runs]))
    second = board.models[1]
    ranks = board.cells[second, "Pascal"].entries["F1@0.5"].ranks
    assert ranks == RankRange(1, 2, untested=images == 3)
    assert f"| 1–2{sign} |" in as_markdown(board)
    line = next(x for x in as_latex(board).splitlines() if f"& {second} &" in x)
    assert line.startswith("1--2" + sign.replace(" ", r"\,"))
    of_second = [row for row in values_table(board).records() if row["model"] == second]
    ends = {(row["F1@0.5 best rank"], row["F1@0.5 worst rank"]) for row in of_second}
    assert ends == {(1, 2)}
    tested = {row["F1@0.5 p to rank above"] is not None for row in of_second}
    assert tested == {images == 12}


def test_a_mean_over_a_small_dataset_has_no_interval(world: World) -> None:
    """The other dataset has an interval, and a note says that only a part was asked."""
    world.table("Pascal_multilabel", [two_labels(i, f"{i}.jpg") for i in range(3)])
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(40)])
    world.predict("M", JSON, speaking(JSON, 0.9), rows=36)
    world.predict("M", LABELS_JSON, speaking(LABELS_JSON, 0.9))
    board = make_board(load_runs([world.runs]))
    intervals = {name: board.cells["M", name].entries["F1@0.5"].interval for name in board.names()}
    assert {name for name, interval in intervals.items() if interval} == {"Pascal"}
    lines = dict(remarks(board))["Part of a table"]
    assert lines == ["Pascal: 36 of the 40 queries of its table"]


def test_formats_that_fail_are_not_shown_to_be_better(world: World) -> None:
    """The test against the reported format counts failed calls, as its choice did."""
    world.predict("M", JSON, speaking(JSON, 0.9))
    world.predict("M", TEXT, some_fail(TEXT, 2))
    records = sweep_table(make_board(load_runs([world.runs]))).records()
    rows = {row["format"]: row for row in records}
    assert rows["xyxy_json"]["reported"] == "yes"
    assert rows["xyxy_text"][f"{FAILED_MISSED} to reported"] < 0


# --- tests between models -------------------------------------------------------------------------


def test_tests_are_corrected_for_the_comparisons_of_their_column(many: Board) -> None:
    for metric in METRICS:
        entries = [many.cells[model, "Pascal"].entries[metric] for model in many.models]
        tests = [e.to_above for e in sorted(entries, key=lambda e: e.rank or 0) if e.to_above]
        assert len(tests) == 4
        for test in tests:
            assert test.p_value is not None
            assert test.corrected == corrected_for_pairs(test.p_value, 5)
    rows = {row["model"]: row for row in values_table(many).records() if row["dataset"] == "Pascal"}
    raw = [rows[model]["F1@0.5 p to rank above"] for model in "BCDE"]
    held = [rows[model]["F1@0.5 p to rank above (corrected)"] for model in "BCDE"]
    assert all(h >= r for h, r in zip(held, raw, strict=True))
    assert (
        rows["A"]["F1@0.5 p to rank above"]
        is rows["A"]["F1@0.5 p to rank above (corrected)"]
        is None
    )


def test_formats_are_tested_against_the_reported_one(many: Board) -> None:
    for model in many.models:
        rows = [row for row in many.runs if row.run.model == model]
        [reported] = [row.run for row in rows if row.reported]
        for row in rows:
            if row.run is reported:
                assert row.to_reported is None
                continue
            raw = compare_runs(row.run, reported)["F1@0.5"]
            test = row.to_reported
            assert test is not None
            assert (test.value, test.p_value) == (pytest.approx(raw.value), raw.p_value)
    of_b = {row["format"]: row for row in sweep_table(many).records() if row["model"] == "B"}
    assert (
        of_b["xyxy_text"]["p to reported"] < of_b["xyxy_text"]["p to reported (corrected)"] < 0.05
    )
