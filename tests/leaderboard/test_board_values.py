"""Values, means, ranks and tests of a leaderboard."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from boards import FAILED_MISSED, JSON, LABELS_JSON, METRICS, NOW, TEXT, board, many, runs, world
from scored_runs import World, query, speaking, two_labels

from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery
from vlmeval_findit.cli import main
from vlmeval_findit.core.influences import mean
from vlmeval_findit.core.intervals import correct, metric_intervals
from vlmeval_findit.core.replies import FAILED
from vlmeval_findit.leaderboard.board import OVERALL, TIED, Board, make_board
from vlmeval_findit.leaderboard.board_files import as_latex, as_markdown
from vlmeval_findit.leaderboard.board_tables import sweep_table, values_table
from vlmeval_findit.leaderboard.notes import format_note, remarks
from vlmeval_findit.report.page import make_page
from vlmeval_findit.runs.run_statistics import compare, estimate
from vlmeval_findit.runs.scored_run import Run, load_runs

__all__ = ["board", "many", "runs", "world"]


def test_cells_hold_the_scores_of_their_runs(board: Board) -> None:
    for cell in board.cells.values():
        if cell.run is None:
            continue
        values = [cell.entries[metric].value for metric in METRICS]
        assert values == pytest.approx([cell.run.metric_values[metric] for metric in METRICS])
        assert set(cell.entries) == {FAILED_MISSED, *METRICS}
        for entry in cell.entries.values():
            if entry.interval is not None:
                assert entry.interval.low - 1e-9 <= entry.value <= entry.interval.high + 1e-9
        assert all(cell.entries[metric].interval for metric in ("F1@0.5", "mIoU", "Adherence"))


def test_overall_is_over_families(world: World) -> None:
    """The mean of all is shown as Overall, and that of a family under its name."""
    world.table("RefCOCO", [query(i, picture=f"{i}.jpg") for i in range(8)])
    refexp = "FindIt_RefCOCO_xyxy_json"
    world.predict("M", JSON, speaking(JSON, 1.0))
    world.predict("M", refexp, speaking(refexp, 0.3))
    board = make_board(load_runs([world.runs]))
    assert [(a.name, a.datasets) for a in board.means] == [
        (OVERALL, ("Pascal", "RefCOCO")),
        ("Object detection", ("Pascal",)),
        ("Referring expressions", ("RefCOCO",)),
    ]
    values = {name: board.cells["M", name].entries["F1@0.5"].value for name in board.names()}
    assert values[OVERALL] == pytest.approx((100 + values["RefCOCO"]) / 2)
    assert (values["Object detection"], values["Referring expressions"]) == (100, values["RefCOCO"])
    page = as_markdown(board)
    assert format_note(board) in page
    assert f"| 1 | M | **{values[OVERALL]:.1f}**" in page.split("## F1@0.5")[0]
    assert f"1 & M & \\textbf{{{values[OVERALL]:.1f}}}" in as_latex(board)


def test_a_model_without_a_dataset_has_no_average(world: World, runs: list[Run]) -> None:
    world.predict("Partial", JSON, speaking(JSON, 1.0))
    board = make_board(load_runs([world.runs]))
    assert ("Partial", OVERALL) not in board.cells
    assert board.models[-1] == "Partial"
    assert board.cells["Partial", "Pascal"].entries["F1@0.5"].rank == 1
    assert "| – | Partial |" in as_markdown(board)


def test_ranks_and_ties(board: Board) -> None:
    overall = {model: board.cells[model, OVERALL].entries["F1@0.5"] for model in board.models}
    assert board.models[0] == "Good"
    assert [entry.rank for entry in overall.values()] == [1, 2, 2]
    # Six pictures are too few for two comparisons, however far apart.
    assert [entry.mark == TIED for entry in overall.values()] == [False, True, True]
    assert overall["Good"].to_above is None
    adherence = [board.cells[m, "Pascal"].entries["Adherence"] for m in board.models]
    assert [entry.rank for entry in adherence] == [1, 1, 1]


def test_the_same_runs_give_the_same_board(runs: list[Run], board: Board) -> None:
    assert values_table(make_board(runs)).records() == values_table(board).records()
    assert values_table(make_board(runs[::-1])).records() == values_table(board).records()


def test_a_dataset_does_not_depend_on_others(runs: list[Run], board: Board) -> None:
    """Intervals of a dataset do not depend on which other datasets are there."""
    alone = make_board([r for r in runs if r.question.table == "Pascal"])
    assert alone.cells["Poor", "Pascal"].entries == board.cells["Poor", "Pascal"].entries


def test_averages_count_shared_pictures_once(runs: list[Run]) -> None:
    """Pascal and Pascal_multilabel show the same pictures; in another folder they would not."""
    board = make_board(runs, ["xyxy_json"])
    cells = [board.cells["Good", column.name] for column in board.datasets]
    of_model = [cell.run for cell in cells if cell.run]
    expected = metric_intervals(mean([estimate(run) for run in of_model]))
    entries = board.cells["Good", OVERALL].entries
    assert expected["F1@0.5"] is not None
    assert {m: entries[m].interval for m in expected if expected[m]} == {
        m: interval for m, interval in expected.items() if interval
    }
    elsewhere = replace(
        of_model[1], rows=tuple(replace(a, source=f"x{a.source}") for a in of_model[1].rows)
    )
    apart = metric_intervals(mean([estimate(of_model[0]), estimate(elsewhere)]))
    assert apart["mIoU"] != expected["mIoU"]


def test_failed_calls_lower_a_rank_and_are_in_every_output(world: World, tmp_path, capsys) -> None:
    """A model that fails on two of three rows is not ahead of a model that answers all."""

    def hardly(query: FindItQuery, generator: np.random.Generator) -> str:
        reply = speaking(JSON, 1.0)(query, generator)
        return reply if query.index % 3 == 0 else f"{FAILED} via API."

    world.predict("Hardly", JSON, hardly)
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


@pytest.mark.parametrize(("images", "sign"), [(3, "?"), (12, "≈")])
def test_too_few_images_and_no_difference_have_different_signs(
    world: World, images: int, sign: str
) -> None:
    """Three images cannot be tested; twelve that are alike can, and show no difference."""
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(images)])
    for model, chance in (("Good", 0.9), ("Fair", 0.8)):
        world.predict(model, JSON, speaking(JSON, chance))
    board = make_board(load_runs([world.runs]))
    second = board.models[1]
    assert board.cells[second, "Pascal"].entries["F1@0.5"].mark == sign
    assert f"| 2 {sign} |" in as_markdown(board)
    line = next(x for x in as_latex(board).splitlines() if f"& {second} &" in x)
    assert ("approx" in line) == (images == 12)
    rows = values_table(board).records()
    assert {row["F1@0.5 tied"] for row in rows if row["model"] == second} == {sign}


def test_a_part_of_a_table_is_named(world: World) -> None:
    """As after --limit 6: all runs of a dataset have the same rows, so they are comparable."""
    world.predict("M", JSON, speaking(JSON, 0.9), rows=6)
    world.predict("M", LABELS_JSON, speaking(LABELS_JSON, 0.9))
    lines = dict(remarks(make_board(load_runs([world.runs]))))["Part of a table"]
    assert lines == ["Pascal: 6 of the 12 queries of its table"]


def test_a_mean_with_a_dataset_of_few_images_has_no_interval(world: World) -> None:
    """The other dataset has an interval."""
    world.table("Pascal_multilabel", [two_labels(i, f"{i}.jpg") for i in range(3)])
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(40)])
    for name in (JSON, LABELS_JSON):
        world.predict("M", name, speaking(name, 0.9))
    board = make_board(load_runs([world.runs]))
    parts = {name: board.cells["M", name].entries["F1@0.5"] for name in board.names()}
    assert parts["Pascal_multilabel"].interval is None
    assert parts["Pascal"].interval is not None
    assert parts[OVERALL].interval is None


def test_formats_that_fail_are_not_shown_to_be_better(world: World) -> None:
    """The test against the reported format counts failed calls, as its choice did."""

    def half(query: FindItQuery, generator: np.random.Generator) -> str:
        reply = speaking(TEXT, 1.0)(query, generator)
        return f"{FAILED} via API." if query.index % 2 else reply

    world.predict("M", JSON, speaking(JSON, 0.9))
    world.predict("M", TEXT, half)
    rows = {
        row["format"]: row for row in sweep_table(make_board(load_runs([world.runs]))).records()
    }
    assert rows["xyxy_json"]["reported"] == "yes"
    assert rows["xyxy_text"][f"{FAILED_MISSED} to reported"] < 0


# --- tests between models -------------------------------------------------------------------------


def test_tests_are_corrected_for_the_comparisons_of_their_column(many: Board) -> None:
    for metric in METRICS:
        entries = [many.cells[model, "Pascal"].entries[metric] for model in many.models]
        tests = [e.to_above for e in sorted(entries, key=lambda e: e.rank) if e.to_above]
        assert len(tests) == 4
        expected = correct(replace(test, corrected=test.p_value) for test in tests)
        assert tests == expected
    rows = {row["model"]: row for row in values_table(many).records() if row["dataset"] == "Pascal"}
    raw = [rows[model]["F1@0.5 p to rank above"] for model in "BCDE"]
    held = [rows[model]["F1@0.5 p to rank above (Holm)"] for model in "BCDE"]
    assert all(h >= r for h, r in zip(held, raw, strict=True))
    assert min(raw) * 4 == pytest.approx(min(held))
    assert rows["A"]["F1@0.5 p to rank above"] is rows["A"]["F1@0.5 p to rank above (Holm)"] is None


def test_formats_are_corrected_for_their_number(many: Board) -> None:
    for model in many.models:
        rows = [row for row in many.runs if row.run.model == model]
        [reported] = [row for row in rows if row.reported]
        assert reported.to_reported is None
        for row in rows:
            if row is not reported:
                raw = compare(row.run, reported.run)["F1@0.5"]
                assert row.to_reported is not None
                assert row.to_reported.value == pytest.approx(
                    row.run.metric_values["F1@0.5"] - reported.run.metric_values["F1@0.5"]
                )
                assert row.to_reported.p_value == raw.p_value
        tests = [row.to_reported for row in rows if row.to_reported]
        assert len(tests) == 2
        assert tests == correct(replace(test, corrected=None) for test in tests)
    rows = [
        row
        for row in sweep_table(many).records()
        if row["format"] == "xyxy_text" and row["model"] == "B"
    ]
    assert rows[0]["p to reported"] < rows[0]["p to reported (Holm)"] < 0.05
