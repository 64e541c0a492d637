"""What a score lost, by cause."""

from __future__ import annotations

import pytest
from scored_runs import World, failing, speaking, world

from vlmeval_findit.runs.anatomy import anatomy_of, compare

__all__ = ["world"]

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"


def test_points_add_up_to_what_the_score_lacks(world: World) -> None:
    run = world.run("Model", NAME, speaking(NAME, 0.6, 12.0))
    found = anatomy_of(run)
    score = run.benchmark.with_failures.value(run.sums)
    assert sum(loss.points for loss in found) == pytest.approx(100 - score)
    assert all(one.interval.low <= one.points <= one.interval.high for one in found if one.interval)


def test_two_runs_are_compared_cause_by_cause(world: World) -> None:
    one = world.run("One", NAME, speaking(NAME, 0.6, 12.0))
    other = world.run("Other", NAME, failing)
    found = compare(one, other)
    assert sum(difference.value for difference in found.values()) == pytest.approx(
        sum(loss.points for loss in anatomy_of(one))
        - sum(loss.points for loss in anatomy_of(other))
    )
