"""The answers elsewhere of one model, of searches and races."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scored_runs import World, query, speaking
from simulated_races import raced, rows_of

from vlmeval_findit.analysis import HeldOutAnswers, elsewhere_of, held_out_answers
from vlmeval_findit.benchmarks.findit import BENCHMARK
from vlmeval_findit.leaderboard import OVERALL, make_board
from vlmeval_findit.protocol import DatasetVariant, ScoredRow, SumKey, Texts, sum_rows
from vlmeval_findit.scoring import RowData, Run, load_runs
from vlmeval_findit.statistics import (
    clustered_sums,
    estimate_metrics,
    join_rows,
    metric_intervals,
    second_half,
    totals_of,
)


def rows_with_slices(count: int) -> list[ScoredRow]:
    kinds = ("small", "large")
    return [
        ScoredRow(
            at,
            f"{at // 2}.jpg",
            {"tp": at % 3, "n_gt": 2},
            slices={"size": kinds[at % 2]} if at % 5 else {},
        )
        for at in range(count)
    ]


def test_sums_of_some_rows_are_their_totals() -> None:
    rows = rows_with_slices(40)
    clustered = clustered_sums(rows, "Pascal")
    some = np.arange(40) % 4 == 1
    expected = sum_rows([row for row in rows if row.index % 4 == 1])
    actual = {key: total for key, total in totals_of(clustered, some).items() if total}
    assert actual == {key: total for key, total in expected.items() if total}
    assert SumKey("tp", "size", "large") in actual


def test_joined_parts_are_a_run_of_their_rows() -> None:
    """Parts may lack images, sums, slices and values of slices that others have."""
    rows = rows_with_slices(40)
    few = [replace(row, sums={**row.sums, "more": 1}, slices={}) for row in rows[:20]]
    parts = [clustered_sums(few, "Pascal"), clustered_sums(rows, "Pascal")]
    masks = [np.arange(20) < 10, np.arange(40) >= 10]
    whole = join_rows(list(zip(parts, masks, strict=True)), parts[1].images)
    expected = clustered_sums([*few[:10], *rows[10:]], "Pascal")
    assert whole.images == expected.images
    assert whole.image.tolist() == expected.image.tolist()
    assert {name: values.tolist() for name, values in whole.sums.items()} == {
        name: values.tolist() for name, values in expected.sums.items()
    }
    known = Texts(whole.slices["size"].values, whole.slices["size"].place).to_list()
    assert known == [row.slices.get("size") for row in [*few[:10], *rows[10:]]]


def test_estimates_of_answers_are_of_all_their_sums(world: World) -> None:
    """Whatever a metric needs: runs as rows, and as tables of which few columns are read."""
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(40)])
    for at, name in enumerate(("xyxy_json", "xyxy_text", "yxyx_text", "xywh_text")):
        full = f"FindIt_Pascal_{name}"
        world.predict("M", full, speaking(full, 0.6 + 0.02 * at, 40))
    (of_rows,) = make_board(load_runs([world.runs])).elsewhere.values()
    (of_tables,) = make_board(load_runs([world.runs], keep=RowData.SUMS)).elsewhere.values()
    assert len(of_rows.answers) > 1
    metrics = of_rows.reported.benchmark.all_metrics
    parts = []
    for each in of_rows.answers:
        clustered = clustered_sums(each.run.rows, each.run.variant.images)
        parts.append((clustered, clustered.of_queries(each.queries)))
    expected = metric_intervals(estimate_metrics(metrics, join_rows(parts, parts[0][0].images)))
    assert metric_intervals(of_rows.estimate(metrics)) == expected
    assert metric_intervals(of_tables.estimate(metrics)) == expected
    for metric in metrics:
        for answers in (of_rows, of_tables):
            alone = metric_intervals(answers.estimate((metric,))).get(metric.name)
            both = [each and (each.low, each.high) for each in (alone, expected.get(metric.name))]
            assert both[0] == pytest.approx(both[1])


# --- a search, as its file has it -----------------------------------------------------------------


def test_search_and_leaderboard_have_the_same_value(world: World) -> None:
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(40)])
    runs = []
    for at, name in enumerate(("xyxy_json", "xyxy_text", "yxyx_text", "xywh_text")):
        full = f"FindIt_Pascal_{name}"
        runs.append(world.run("M", full, speaking(full, 0.6 + 0.02 * at, 40)))
    board = make_board(runs)
    winner = board.run("M", "Pascal")
    assert winner is not None
    estimate = elsewhere_of(winner.variant, runs)
    entry = board.entry("M", OVERALL, "F1@0.5")
    assert entry is not None
    assert estimate.value("F1@0.5") == pytest.approx(entry.tested)
    assert elsewhere_of(winner.variant, [winner]) is None


# --- races ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Provenance:
    rows: frozenset[int]
    reviews: None = None


def _run(variant: DatasetVariant, rows: Sequence[ScoredRow]) -> Run:
    asked = _Provenance(frozenset(row.index for row in rows))
    return Run("M", variant, Path(variant.name), rows, asked)  # type: ignore[arg-type]


METRIC = BENCHMARK.headline_counting_failures


def _race(seed: int, images: int = 60, formats: int = 8) -> tuple[Run, list[Run], float]:
    """Return the winner of a race of equal formats, and the runs of all, as far as each came.

    The number is the mean of all formats over all images.
    """
    rows = rows_of(np.random.default_rng(seed), [0.6] * formats, images)
    race = raced(rows)
    runs = []
    for variant, of in rows.items():
        asked = race.asked_of[variant]
        runs.append(_run(variant, of[:asked]))
    (winner,) = (run for run in runs if run.variant is race.won)
    return winner, runs, float(np.mean([METRIC.value(sum_rows(of)) for of in rows.values()]))


def test_a_race_is_scored_without_its_luck() -> None:
    """Formats that it dropped were asked less: they count as far as they were asked."""
    gains, left = [], []
    for seed in range(20):
        winner, runs, mean = _race(seed)
        (answers,) = held_out_answers({"Scenes": winner}, {"Scenes": runs}).values()
        assert isinstance(answers, HeldOutAnswers)
        everything = np.sort(np.concatenate([each.queries for each in answers.answers]))
        assert everything.tolist() == list(range(60)), "each query is answered once"
        for each in answers.answers:
            halves = second_half(tuple(f"{winner.variant.images}/{q:04d}" for q in each.queries))
            assert len(set(halves.tolist())) == 1
        estimate = answers.estimate((METRIC,))
        gains.append(winner.value(METRIC) - mean)
        left.append(estimate.value(METRIC.name) - mean)
    assert np.mean(gains) > 3
    assert abs(np.mean(left)) < 2
