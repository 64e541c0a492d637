"""What answers cost, of a query and of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import pytest
from costly_runs import with_records
from hypothesis import given
from hypothesis import strategies as st
from scored_runs import World, failing, speaking

from vlmeval_findit.protocol import (
    COST_KEY,
    COST_KINDS,
    COSTS,
    CallTime,
    QueryCost,
    Reply,
    ReplyRecord,
    RunCosts,
    cost_in,
    cost_values,
    mean_costs,
    sum_up,
)
from vlmeval_findit.scoring import load_run

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"


def cost_of(**recorded: Any) -> QueryCost:
    reply = Reply(0, "[]", ReplyRecord(**recorded))
    details = {"tokens": dict(reply.recorded.tokens), "images": list(reply.recorded.images)}
    return cost_in({**details, COST_KEY: cost_values(reply.recorded.call, reply.time)})


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ({}, QueryCost()),
        (
            {"call": {"cost": 0.002, "attempts": 1}},
            QueryCost(usd=0.002, usd_source="stated by the service"),
        ),
        (
            {"call": {"cost": 0.002, "cost_from": "prices of November 2026"}},
            QueryCost(usd=0.002, usd_source="prices of November 2026"),
        ),
        (
            {"call": {"cost": 0.001, "cost_from": "given prices 1/5", "batch": "b1"}},
            QueryCost(usd=0.001, usd_source="half of given prices 1/5", is_batched=True),
        ),
        ({"call": {"cost": 0.0}}, QueryCost(usd=0.0, usd_source="stated by the service")),
        ({"call": {"attempts": 3}}, QueryCost(is_retried=True)),
        (
            {"call": {"cost": 0.5, "cost_guessed": 0.25}},
            QueryCost(usd=0.5, usd_source="stated by the service", is_guessed=True),
        ),
        (
            {"tokens": {"prompt": 900, "cached": 512, "completion": 40, "reasoning": 30}},
            QueryCost(tokens_in=900, tokens_out=40, is_cached=True),
        ),
        ({"tokens": {"prompt": 700, "reply": 9}}, QueryCost(tokens_in=700, tokens_out=9)),
        ({"tokens": {"prompt": 0, "completion": 0}}, QueryCost()),
        ({"tokens": {"prompt": 700, "reply": 0}}, QueryCost(tokens_in=700, tokens_out=0)),
        (
            {"images": ({"original": [800, 600], "sent": [400, 300]},)},
            QueryCost(sizes=((400, 300),)),
        ),
        ({"images": ({"sent": [400, 300]}, {"sha256": "ab"})}, QueryCost()),
    ],
    ids=[
        "nothing",
        "stated",
        "table",
        "batch",
        "free",
        "retried",
        "guessed",
        "cached",
        "local",
        "zeros",
        "nothing answered",
        "size as sent",
        "a size missing",
    ],
)
def test_the_cost_of_a_reply(recorded: Mapping[str, Any], expected: QueryCost) -> None:
    assert cost_of(**recorded) == expected


def test_the_costs_of_a_run_by_hand() -> None:
    costs = sum_up(
        [
            QueryCost(
                CallTime(1.0), tokens_in=100, tokens_out=10, usd=0.001, usd_source="given prices"
            ),
            QueryCost(CallTime(2.0), tokens_in=200, tokens_out=30, is_cached=True),
            QueryCost(CallTime(6.0), tokens_in=300, is_retried=True, sizes=((30, 20), (30, 20))),
            QueryCost(
                usd=0.002, usd_source="half of given prices", is_batched=True, sizes=((100, 10),)
            ),
        ]
    )
    assert costs == RunCosts(
        queries=4,
        seconds_known=3,
        seconds_median=2.0,
        seconds_p95=5.6,  # at place 1.9 of 1, 2, 6
        tokens_in_known=3,
        tokens_in=200.0,
        tokens_out_known=2,
        tokens_out=20.0,
        usd_known=2,
        usd_per_1000=1.5,
        usd_source="given prices, half of given prices",
        pixels_known=2,
        pixels=(2 * 600 + 1000) / 2,
        image_size="30 x 20",
        cached=1,
        retried=1,
        batched=1,
    )


def test_of_equally_common_sizes_the_largest_is_named() -> None:
    costs = [QueryCost(sizes=((10, 100), (50, 50))), QueryCost(sizes=((10, 100), (50, 50)))]
    assert sum_up(costs).image_size == "50 x 50"
    assert sum_up([*costs, QueryCost(sizes=((10, 100),))]).image_size == "10 x 100"


def test_nothing_known_stays_empty() -> None:
    nothing = RunCosts(queries=2)
    assert sum_up([QueryCost(), QueryCost()]) == nothing
    assert {value for value in asdict(nothing).values() if value} == {2}


@pytest.mark.parametrize("tokens", [{}, {"prompt": 900, "completion": 9}])
def test_details_say_how_a_reply_ended(tokens: Mapping[str, int], world: World) -> None:
    path = world.predict("A", NAME, speaking(NAME, 0.9))
    run = with_records(path, lambda index: {"finish_reason": "length", "tokens": tokens})
    assert {row.details["finish_reason"] for row in run.rows} == {"length"}
    assert run.rows[0].details.get("tokens", {}) == tokens


def test_costs_of_a_run_leave_out_failed_calls(world: World) -> None:
    path = world.predict("A", NAME, failing)  # rows 0, 3, 6 and 9
    run = with_records(path, lambda index: {"call": {"cost": 0.001 * index}})
    costs = run.provenance.costs
    assert (costs.queries, costs.usd_known) == (8, 8)
    assert costs.usd_per_1000 == pytest.approx((1 + 2 + 4 + 5 + 7 + 8 + 10 + 11) / 8)


def test_provenances_without_costs_are_read_from_details(world: World) -> None:
    path = world.predict("A", NAME, speaking(NAME, 0.9))
    run = with_records(path, lambda index: {"tokens": {"prompt": 100, "reply": index}})
    provenance = run.files.provenance
    stored = json.loads(provenance.read_text())
    assert stored.pop("costs")["tokens_in"] == 100
    provenance.write_text(json.dumps(stored))
    assert load_run(provenance).provenance.costs == run.provenance.costs
    assert run.provenance.costs.tokens_out == 5.5


def test_each_cost_of_a_run_is_of_a_row() -> None:
    """What a run costs is summed up, averaged and shown from the rows; four keys are no costs."""
    of_rows = [summary.key for cost in COSTS for summary in cost.summaries]
    of_rows += [cost.known_key for cost in COSTS] + [kind.key for kind in COST_KINDS]
    others = ["queries", "calls_at_once", "usd_source", "image_size"]
    assert sorted([*of_rows, *others]) == sorted(field.name for field in fields(RunCosts))


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_mean_of_costs_is_known_if_all_are(runs: list[list[int]]) -> None:
    each = [sum_up([QueryCost(tokens_out=n or None) for n in tokens]) for tokens in runs]
    mean = mean_costs(each)
    assert mean.queries == sum(map(len, runs))
    assert mean.tokens_out_known == sum(n > 0 for tokens in runs for n in tokens)
    assert (mean.tokens_out is None) == any(costs.tokens_out is None for costs in each)
    assert mean.seconds_median is None
