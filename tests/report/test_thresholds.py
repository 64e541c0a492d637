"""Every table that compares an IoU with a threshold agrees with the score, however near it is."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from few_fast import every_nth_fast
from hypothesis import given
from hypothesis import strategies as st
from scored_runs import World, query, two_labels

from vlmeval_findit.analysis import compare_hits, scores_by_index
from vlmeval_findit.benchmarks.findit import IOU_THRESHOLDS, FindItQuery, box_roles, threshold_curve
from vlmeval_findit.boxes import HIT_IOU, BoxAnswer, as_decimal, iou
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import Role
from vlmeval_findit.report import drawn_values, rounded_down
from vlmeval_findit.scoring import Run

SIDE = 2000  # pixels: boxes of four megapixels, where IoUs lie within 1e-6 of each other
NAME = "FindIt_Pascal_xyxy_json_bbox_2d"
LABELS = "FindIt_Pascal_multilabel_xyxy_json"


def near(threshold: float) -> list[float]:
    """Return heights of boxes whose IoU with the whole image is just below, at, and above."""
    return [SIDE * (threshold + step * 1e-7) for step in (-4, -3, -1, 0, 1, 3)]


def whole(asked: FindItQuery) -> FindItQuery:
    """Ask for objects that fill the image."""
    boxes = ((0.0, 0.0, float(SIDE), float(SIDE)),) * len(asked.truth.boxes)
    truth = replace(asked.truth, boxes=boxes)
    return FindItQuery(asked.index, asked.label, SIDE, SIDE, asked.images, truth)


def answered(world: World, name: str, entries: Sequence[Sequence[Any]]) -> Run:
    """Score answers of a query each: boxes of full width by their heights, with labels."""
    ask = two_labels if "multilabel" in name else lambda at, file: query(at, file, boxes=[()])
    table = "Pascal_multilabel" if "multilabel" in name else "Pascal"
    world.table(table, [whole(ask(at, f"{at}.jpg")) for at in range(len(entries))])

    def answer(asked: Any, _: Any) -> str:
        rows = []
        for height, label in entries[asked.index]:
            box = [0, 0, 1000, height * 1000 / SIDE]
            rows.append({"bbox_2d" if name == NAME else "bbox": box, "label": label})
        return json.dumps(rows)

    return world.run("Model", name, answer)


def test_the_curve_is_the_score_at_its_threshold(world: World) -> None:
    run = answered(world, NAME, [[(height, "")] for height in near(0.5)])
    hits = sum(sum(row.details["hits"]) for row in run.rows)
    assert 0 < hits < len(run.rows), "some lie below, some above"
    found = threshold_curve(run.rows)
    half = IOU_THRESHOLDS.index(0.5)
    assert found.f1[half] == pytest.approx(run.metric_values["F1@0.5"])
    assert found.recall[half] == pytest.approx(100 * hits / len(run.rows))


@pytest.mark.parametrize("threshold", every_nth_fast(IOU_THRESHOLDS, 4))
def test_curves_have_the_ious_of_the_match(world: World, threshold: float) -> None:
    """In 32 bits, like the score, at every threshold."""
    heights = near(threshold)
    run = answered(world, NAME, [[(height, "")] for height in heights])
    boxes = np.array([row.details["boxes"][0] for row in run.rows]).astype(np.float32)
    ious = iou(boxes, np.tile(np.float32([0, 0, SIDE, SIDE]), (len(boxes), 1)))
    expected = 100 * (ious >= np.float32(threshold)).mean()
    assert 0 < expected < 100
    recall = threshold_curve(run.rows).recall[IOU_THRESHOLDS.index(threshold)]
    assert recall == pytest.approx(expected)


def test_a_wrong_label_is_one_where_the_errors_say_so(world: World) -> None:
    """Roles of the drawing, types of errors, and the IoU that the page shows."""
    run = answered(world, LABELS, [[(height, "bird")] for height in near(0.5)])
    seen = set()
    for row in run.rows:
        ((role, _),) = box_roles(BoxAnswer.of(row))
        kinds = {each["kind"] for each in row.details["errors"] if each["box"] is not None}
        assert kinds == ({"wrong label"} if role is Role.WRONG_LABEL else {"both"})
        seen.add(role)
    assert seen == {Role.WRONG_LABEL, Role.MISS}


def test_the_page_shows_no_miss_as_a_half(world: World, tmp_path: Any) -> None:
    run = answered(world, NAME, [[(height, "")] for height in near(0.5)])
    for row in run.rows:
        drawing = run.benchmark.draw(load_dataset(run.variant.name), row)
        values = drawn_values(drawing, tmp_path, lambda _: 0)
        ((*_, overlap),) = [box for box in values["frames"][0]["boxes"] if box[0] != "truth"]
        assert (overlap >= HIT_IOU) == row.details["hits"][0]
        assert (values["iou"] >= HIT_IOU) == row.details["hits"][0]


@given(st.floats(0, 1, width=32), st.integers(1, 99))
def test_a_stored_iou_compares_like_the_32_bit_number(iou: float, hundredths: int) -> None:
    threshold = hundredths / 100
    reached = bool(np.float32(iou) >= np.float32(threshold))
    stored = json.loads(json.dumps(as_decimal(iou)))
    assert (stored >= threshold) == reached
    assert bool(np.float32(stored) >= np.float32(threshold)) == reached
    assert np.float32(stored) == np.float32(iou)
    if not reached:
        assert rounded_down(stored) < threshold


@given(st.integers(1, 99), st.integers(-3, 3))
def test_the_numbers_next_to_a_threshold(hundredths: int, steps: int) -> None:
    threshold = hundredths / 100
    number = np.float32(threshold)
    for _ in range(abs(steps)):
        number = np.nextafter(number, np.float32(math.copysign(2, steps)))
    assert (as_decimal(float(number)) >= threshold) == (steps >= 0)
    assert (rounded_down(as_decimal(float(number))) >= threshold) == (steps >= 0)


def test_a_query_just_below_a_half_is_found_nowhere() -> None:
    """Scores of queries with thousands of boxes."""

    class OneQuery:
        rows = (type("Row", (), {"failed": False, "index": 1}),)
        query_scores = (49.96,)

    scores = scores_by_index(OneQuery)  # type: ignore[arg-type]
    assert compare_hits(scores, scores).neither == (1,)
