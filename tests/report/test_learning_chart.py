"""The checkpoints of a training in the report."""

from __future__ import annotations

from datetime import UTC, datetime

from scored_runs import World, speaking, world

from vlmeval_findit.leaderboard.board import boards
from vlmeval_findit.leaderboard.learning_curve import learning_curves
from vlmeval_findit.report.curve_charts import learning_chart
from vlmeval_findit.report.page import make_page

__all__ = ["world"]

DATA = "FindIt_Pascal_xyxy_json_bbox_2d"
TITLE = "<summary>Checkpoints</summary>"


def test_a_training_is_drawn_by_step_and_its_best_named(world: World) -> None:
    chances = {30: 0.9, 4: 0.2}
    runs = [
        world.run(f"ft-step-{n}", DATA, speaking(DATA, chance)) for n, chance in chances.items()
    ]
    curves = learning_curves(runs)
    spec = learning_chart(curves)
    points = spec["data"]["values"]
    assert [(point["step"], point["best"]) for point in points] == [(4, False), (30, True)]
    assert all(point["low"] <= point["value"] <= point["high"] for point in points)
    assert spec["title"]["text"] == [f"ft: {curves[0].verdict}"]
    (board,) = boards(runs)
    assert TITLE in make_page(board, datetime.now(UTC))


def test_a_single_checkpoint_is_no_curve(world: World) -> None:
    (board,) = boards([world.run("ft-step-30", DATA, speaking(DATA, 0.9))])
    assert TITLE not in make_page(board, datetime.now(UTC))
