"""Points: counted, compared with points alone, in tables, on boards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_tables import edit_cells
from scored_runs import HEIGHT, WIDTH, World, query, saying, speaking

import vlmeval_findit as findit
from vlmeval_findit.analysis import ranking_rule
from vlmeval_findit.benchmarks import benchmark_of
from vlmeval_findit.benchmarks.findit import (
    RANKING,
    kept_frames,
    read_table,
    thinned_query,
    write_table,
)
from vlmeval_findit.boxes import Truth
from vlmeval_findit.core import ConfigError
from vlmeval_findit.leaderboard import boards
from vlmeval_findit.marks import packed_mask
from vlmeval_findit.protocol import add_up
from vlmeval_findit.storage import TableError
from vlmeval_findit.sweeps import parse_sweep, stage_variants

POINT = "FindIt_Pascal_point_text"
JSON_NAME = "FindIt_Pascal_point_json"
BOXES = "FindIt_Pascal_xyxy_text"

L_SHAPE = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
L_SHAPE[10:60, 10:20] = L_SHAPE[50:60, 10:50] = 1
BOX = (10.0, 10.0, 50.0, 60.0)
MASKED = Truth((BOX,), (0,), masks=(packed_mask(L_SHAPE),))

TARGET = [[0, 0, 100, 50]]
FORM: Any = {"sizes": (WIDTH, HEIGHT), "space": "pixels"}


def metric_values(replies: Sequence[str | None], truths: Sequence[Any]) -> dict[str, Any]:
    return dict(findit.score(replies, truths, "point_text", **FORM).metric_values)


def test_surplus_points_and_missed_objects_cost() -> None:
    two = [[0, 0, 10, 10], [50, 50, 60, 60]]
    for reply, value in (("[5, 5] [55, 55]", 100), ("[5, 5]", 50), ("[5, 5] [6, 6]", 50)):
        assert metric_values([reply], [two])["Pointing accuracy"] == value
    # In the notch of the L, and in it: its box holds both.
    masked = metric_values(["[40, 20] [15, 30]", "[15, 30]"], [MASKED] * 2)
    assert (masked["Points inside"], masked["Pointing accuracy"]) == (75, pytest.approx(200 / 3))
    everywhere = " ".join(f"[{x}, {y}]" for x in range(0, 100, 10) for y in range(0, 100, 10))
    sprayed = metric_values([everywhere], [two])
    assert sprayed["Pointing accuracy"] == 2
    assert (sprayed["Point recall"], sprayed["Point precision"]) == (100, 2)
    two_points = "[{'point': [5, 5]}, {'point': [150, 90]}"
    lenient = findit.score([two_points], [TARGET], "point_json", **FORM).metric_values
    assert lenient["Pointing accuracy (lenient)"] == 50
    replies = ["[5, 5]", "[5, 5] [150, 90]", "[]", None]
    rewards = findit.reward(replies, [TARGET] * 4, "point_text", by="pointing", **FORM)
    assert rewards[:3].tolist() == [1, 0.5, 0]
    assert np.isnan(rewards[3])


def test_no_object_no_answer_and_no_call_differ() -> None:
    result = metric_values(["[]", "[5, 5]", "what?"], [[], [], []])
    assert result["Rejection accuracy"] == pytest.approx(100 / 3)
    assert result["False-alarm rate"] == pytest.approx(100 / 3)
    assert result["Points inside"] is None  # nothing could be pointed at
    result = metric_values(["[5, 5]", "sorry", None], [TARGET] * 3)
    assert result["Pointing accuracy"] == 50
    assert result["Pointing accuracy (failed calls as misses)"] == pytest.approx(100 / 3)
    assert result["Adherence"] == 50


def test_a_sweep_never_compares_boxes_with_points() -> None:
    start = "models: FullImage\ndatasets: Demo\n"
    sweep = parse_sweep(start + "representations: point\nkeys: [point, point_2d]")
    assert [each.format for each in stage_variants(sweep, "FullImage", 0)] == [
        "point_text", "point_json", "point_json_point_2d"
    ]  # fmt: skip
    for mixed in (
        "representations: [xyxy, point]",
        "stages:\n- representations: point\n- {keys: all}",
    ):
        with pytest.raises(ConfigError, match=r"line [34]: .* have no common best format"):
            parse_sweep(start + mixed)
    with pytest.raises(ConfigError, match="line 4: keys: no cell of this sweep has bbox"):
        parse_sweep(start + "representations: point\nkeys: [point, bbox]\noutputs: json")


def test_masks_go_with_their_frames_and_through_tables(tmp_path: Path) -> None:
    left = packed_mask(L_SHAPE)
    right = packed_mask(np.fliplr(L_SHAPE))
    truth = Truth((BOX,) * 3, (0, 1, 2), masks=(left, None, right))
    video = replace(query(0), images=("a.png", "b.png", "c.png"), truth=truth)
    stored = thinned_query(video, 2).truth
    assert len(stored.boxes) == 2
    assert stored.masks == tuple(truth.masks[frame] for frame in kept_frames(3, 2))
    table = write_table(tmp_path, "T", [video, query(1)], {}).path
    assert [each.truth for each in read_table(table)] == [truth, query(1).truth]
    with pytest.raises(
        TableError, match=r"line 2, column masks: .*should have an entry for every box"
    ):
        read_table(edit_cells(table, masks="[[null]]"))


def test_points_have_a_separate_board(world: World) -> None:
    boxes = world.run("Good", BOXES, speaking(BOXES, 0.9, 5))
    points = world.run("Good", POINT, speaking(POINT, 0.7))
    in_json = world.run("Good", JSON_NAME, speaking(JSON_NAME, 0.5))
    silent = world.run("Silent", POINT, saying("no idea"))
    first, second = boards([boxes, points, in_json, silent])
    assert (first.benchmark.name, second.benchmark.name) == ("FindIt", "FindIt-points")
    assert first.models == ("Good",)
    assert second.models == ("Good", "Silent")
    assert second.headline.name == "Pointing accuracy"
    assert not {"F1@0.5", "mIoU"} & {each.name for each in second.shown}
    (column,) = second.datasets
    cell = second.cells["Good", column.name]
    assert cell.format == "point_text"  # chosen among points, by their figure
    value, of_json = (each.metric_values["Pointing accuracy"] or 0 for each in (points, in_json))
    assert cell.entries["Pointing accuracy"].value == value > of_json > 0
    assert ranking_rule(second.benchmark).startswith(
        "highest Pointing accuracy (failed calls as misses)"
    )
    assert benchmark_of(BOXES).ranking == RANKING


def test_every_lost_place_has_a_single_error_type(world: World) -> None:
    three = "[900, 990] [950, 990] [980, 990]"
    replies = cycle(["[30, 300] [750, 500]", "[500, 990]", "[]", "sorry", three])
    run = world.run("M", POINT, lambda query, random: next(replies))
    analysis = run.benchmark.errors
    events = [dict(analysis.events(row)) for row in run.rows[:5]]
    assert events == [
        {"lost: off target": 1},
        {"lost: off target": 1, "lost: missed": 1},
        {"lost: missed": 2},
        {"lost: no box": 2},
        {"lost: off target": 2, "lost: too many": 1},
    ]
    sums = add_up([run.sums, *map(analysis.events, run.rows)])
    points = analysis.points(sums)
    assert sum(points.values()) == pytest.approx(analysis.lost(sums))
    assert not any(key.startswith("lost:") for row in run.rows for key in row.sums)
