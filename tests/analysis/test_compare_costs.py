"""Differences of costs between two runs, paired by image."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from costly_runs import costing, partly_failed, with_records
from few_fast import few_fast
from scored_runs import World, failing, saying, speaking

from vlmeval_findit.analysis import CostDifference, compare_costs, shared_costs
from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import cost_comparison_table, legend_of
from vlmeval_findit.protocol import RunCosts
from vlmeval_findit.scoring import RowData, Run, load_run
from vlmeval_findit.statistics import TOO_FEW_IMAGES, Difference

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"

Record = Callable[[int], Mapping[str, Any]]


def run_with(world: World, model: str, record: Record, seconds: Record = lambda index: {}) -> Run:
    """Return a run over 12 queries, of two each on six images."""
    return with_records(world.predict(model, NAME, speaking(NAME, 0.9)), record, seconds)


def tokens(reply: int) -> dict[str, Any]:
    return {"tokens": {"prompt": 500, "reply": reply}}


@pytest.fixture
def pair(world: World) -> tuple[Run, Run]:
    return (
        run_with(world, "A", lambda index: tokens(20 + index), lambda index: {"seconds": 3.0}),
        run_with(world, "B", lambda index: tokens(25)),
    )


def test_a_difference_of_tokens_by_hand(pair: tuple[Run, Run]) -> None:
    """Image k has a mean difference of 2 k - 4.5: 0.5 ± 2.571 × √(14 / 6), Student's t of 5."""
    by_name = {each.name: each for each in compare_costs(*pair)}
    assert list(by_name) == ["tokens in", "tokens out"], "only A has seconds"
    out = by_name["tokens out"]
    assert (out.mean, out.other_mean, out.queries) == (25.5, 25.0, 12)
    assert out.difference.value == pytest.approx(0.5)
    assert out.difference.interval is not None
    reach = 2.5706 * (14 / 6) ** 0.5
    assert out.difference.interval.low == pytest.approx(0.5 - reach, abs=0.01)
    assert out.difference.interval.high == pytest.approx(0.5 + reach, abs=0.01)
    same = by_name["tokens in"].difference
    assert (same.value, same.p_value) == (0.0, 1.0)


def test_the_costs_of_one_run_are_not_tested(pair: tuple[Run, Run]) -> None:
    run, _ = pair
    for each in compare_costs(run, run):
        assert each.mean == each.other_mean
        assert (each.difference.value, each.difference.p_value) == (0.0, None)
        assert each.difference.interval is None


def test_only_queries_that_both_know_count(world: World) -> None:
    """B fails on rows 0, 3, 6 and 9; A knows no price of row 1."""
    left = run_with(world, "A", lambda index: {"call": {"cost": 0.01}} if index != 1 else {})
    path = world.predict("B", NAME, failing)
    right = with_records(path, lambda index: {"call": {"cost": 0.001 * index}})
    (dollars,) = compare_costs(left, right)
    (opposite,) = compare_costs(right, left)
    assert opposite.queries == dollars.queries
    assert opposite.difference.value == -dollars.difference.value
    assert dollars.name == "USD per 1000"
    assert dollars.queries == 7
    assert dollars.mean == pytest.approx(10.0)
    assert dollars.other_mean == pytest.approx((2 + 4 + 5 + 7 + 8 + 10 + 11) / 7)
    assert dollars.difference.value == pytest.approx(10 - 47 / 7)


@pytest.mark.parametrize(("p_value", "sign"), [(0.01, "*"), (0.2, ""), (None, "")])
def test_significant_differences_have_a_star(p_value: float | None, sign: str) -> None:
    difference = Difference(-1.0, None, p_value, p_value)
    compared = [CostDifference("seconds", 1.0, 2.0, difference, 5)]
    table = cost_comparison_table(compared, RunCosts(), RunCosts())
    ((*_, p, _),) = table.cells()
    assert (p[1].value, p[1].sign) == (p_value, sign)
    why = f"–: no test, no interval, as {TOO_FEW_IMAGES}"
    assert (why in legend_of([table])) == (p_value is None)


def test_compare_prints_and_writes_costs(
    pair: tuple[Run, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = (str(run.path) for run in pair)
    out = tmp_path / "out.json"
    assert main(["compare", left, right, "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    lines = printed.split("Costs: means over the queries of which both are known:\n")[1]
    row = lines.splitlines()[2].split()
    assert row[:5] == ["tokens", "out", "25.5", "25", "+0.5"]
    (found,) = json.loads(out.read_text())
    by_name = {row["cost"]: row for row in found["costs"]["rows"]}
    assert by_name["tokens out"]["A - B"]["value"] == pytest.approx(0.5)
    assert by_name["tokens out"]["queries"] == 12


def test_every_cost_of_a_query_is_compared(world: World) -> None:
    def everything(factor: int) -> Run:
        record = {
            "tokens": {"prompt": 500 * factor, "completion": 20 * factor},
            "call": {"cost": 0.001 * factor},
            "images": [{"sent": [30 * factor, 20]}, {"sent": [10 * factor, 10]}],
        }
        time = dict.fromkeys(("seconds", "gpu_seconds", "cpu_seconds"), 1.0 * factor)
        return run_with(world, f"M{factor}", lambda index: record, lambda index: time)

    found = {
        each.name: each.difference.value for each in compare_costs(everything(3), everything(1))
    }
    expected = {
        "seconds": 2.0,
        "tokens in": 1000,
        "tokens out": 40,
        "USD per 1000": 2.0,
        "GPU seconds": 2.0,
        "CPU seconds": 2.0,
        "pixels": 1400,
    }
    assert found == pytest.approx(expected)


def test_compare_tells_batches_and_retries_apart(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batched = {"cost": 0.001, "cost_from": "given prices 1/5", "batch": "b1"}
    left = run_with(world, "A", lambda index: {"call": batched})
    right = run_with(world, "B", lambda index: {"call": {"cost": 0.002, "attempts": 1 + index % 2}})
    out = tmp_path / "out.json"
    assert main(["compare", str(left.path), str(right.path), "--json", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "A: dollars: half of given prices 1/5; 12 of 12 by a batch service." in lines
    assert "B: dollars: stated by the service; 6 of 12 after several attempts." in lines
    (found,) = json.loads(out.read_text())
    assert [note["title"] for note in found["costs"]["notes"]] == ["A", "B", "Signs"]


def test_runs_without_costs_have_no_table_of_them(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [world.predict(model, NAME, speaking(NAME, 0.9)) for model in "AB"]
    assert main(["compare", *map(str, paths)]) == 0
    assert "Costs" not in capsys.readouterr().out


def test_what_is_free_costs_nothing(world: World) -> None:
    free = {"call": {"cost": 0.0}}
    pair = [run_with(world, model, lambda index: free) for model in "AB"]
    (dollars,) = compare_costs(*pair)
    assert (dollars.mean, dollars.other_mean, dollars.difference.value) == (0.0, 0.0, 0.0)


def test_details_are_not_read_without_a_cost_of_both(world: World) -> None:
    left = run_with(world, "A", lambda index: tokens(9))
    right = run_with(world, "B", lambda index: {}, lambda index: {"seconds": 1.0})
    left, right = (load_run(run.files.provenance, RowData.SUMS) for run in (left, right))
    for run in (left, right):
        run.files.details.unlink()
    assert compare_costs(left, right) == []


# --- over the queries that all answered -----------------------------------------------------------


@pytest.mark.parametrize("seed", few_fast(range(6), 2))
def test_costs_are_those_of_queries_that_all_answered(seed: int, world: World) -> None:
    """Whichever calls fail: the means are added up by hand over the shared queries."""
    generator = np.random.default_rng(seed)
    shared = {*range(12)}
    runs = []
    tokens = {}
    for model in ("A", "B", "C"):
        fails = frozenset(np.flatnonzero(generator.random(12) < 0.3).tolist())
        tokens[model] = generator.integers(1, 90, 12).tolist()
        path = world.predict(model, NAME, saying("[]"))
        runs.append(partly_failed(path, fails, tokens[model]))
        shared -= fails
    for run, costs in zip(runs, shared_costs(runs), strict=True):
        assert costs.queries == costs.tokens_out_known == len(shared)
        assert costs.tokens_out == pytest.approx(np.mean([tokens[run.model][at] for at in shared]))


def test_runs_that_answered_the_same_keep_their_costs(world: World) -> None:
    runs = [costing(world.run(model, NAME, saying("[]")), tokens_out=9.0) for model in ("A", "B")]
    assert shared_costs(runs) == [run.provenance.costs for run in runs]


def test_a_run_without_an_answer_takes_nothing_from_others(world: World) -> None:
    paths = [world.predict(model, NAME, saying("[]")) for model in ("A", "B")]
    good = partly_failed(paths[0], (), [9] * 12)
    silent = partly_failed(paths[1], range(12), [])
    assert shared_costs([good, silent])[0].tokens_out == 9.0


def test_a_run_without_costs_takes_nothing_from_others(world: World) -> None:
    """Two complete runs are compared over all their queries, whatever a third one failed on."""
    long = [100 if at % 3 == 0 else 10 for at in range(12)]
    runs = [partly_failed(world.predict("A", NAME, saying("[]")), (), long)]
    runs.append(partly_failed(world.predict("B", NAME, saying("[]")), (), [20] * 12))
    unknown = world.run("C", NAME, failing)
    assert unknown.failed
    costs = shared_costs([*runs, unknown])
    assert [each.tokens_out for each in costs] == [40.0, 20.0, None]
