"""Points: read, written, matched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scored_runs import HEIGHT, WIDTH

from vlmeval_findit.boxes import (
    BoxToWrite,
    MatchResult,
    MatchRule,
    ParsedReply,
    ReplyFormat,
    ToPixels,
    Truth,
    match,
    matching,
    parse_leniently,
    points_inside,
    read,
    schema_of,
    stated_places,
    write,
)
from vlmeval_findit.boxes import FormatFailure as R
from vlmeval_findit.marks import packed_mask

TEXT = ReplyFormat("text", "point", "point")
LABELS = replace(TEXT, multilabel=True)
VIDEO = replace(TEXT, frames=3)
JSON = ReplyFormat("json", "point", "point")
QWEN = replace(JSON, key="point_2d")
NESTED = replace(JSON, structure="nested")
NAMED = replace(JSON, structure="decomposed")
LABELS_JSON = replace(JSON, multilabel=True)
CLASSES = replace(LABELS_JSON, key="class_name")
VIDEO_JSON = replace(JSON, frames=3)


def at(*points: tuple[float, float]) -> tuple[tuple[float, ...], ...]:
    return tuple((float(x), float(y), float(x), float(y)) for x, y in points)


# --- reading, writing, schema, places -------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "reply", "points", "reason"),
    [
        (TEXT, "[10, 20]", [(10, 20)], None),
        (TEXT, "one at [10, 20],\nanother [ 3.5 ,4 ]", [(10, 20), (3.5, 4)], None),
        (TEXT, "[]", [], None),
        (TEXT, "[[1, 2], [3, 4]]", [(1, 2), (3, 4)], None),
        # A box is no point, in whatever brackets; no two of its numbers are read as a point.
        (TEXT, "[10, 20, 30, 40]", [], R.NO_BOX),
        (TEXT, "(10, 20)", [], R.NO_BOX),
        (TEXT, "", [], R.EMPTY),
        (LABELS, "cat: [1, 2]\ndog: [3, 4]", [(1, 2), (3, 4)], None),
        (VIDEO, "1: [1, 2]\n3: [3, 4]", [(1, 2), (3, 4)], None),
        (JSON, '[{"point": [10, 20]}]', [(10, 20)], None),
        (JSON, '```json\n[{"point": ["10", 2e1], "label": "cat"}]\n```', [(10, 20)], None),
        (JSON, "[]", [], None),
        (JSON, '[{"point": [1, 2]}, {"point": [1, 2, 3, 4]}]', [(1, 2)], R.WRONG_SHAPE),
        (JSON, '[{"point": [1]}]', [], R.WRONG_SHAPE),
        (JSON, '[{"bbox": [1, 2, 3, 4]}]', [], R.WRONG_KEY),
        (JSON, '[{"point_2d": [1, 2]}]', [], R.WRONG_KEY),
        (QWEN, '[{"point_2d": [1, 2]}]', [(1, 2)], None),
        (NESTED, '[{"points": [[1, 2], [3, 4]]}]', [(1, 2), (3, 4)], None),
        (NAMED, '[{"x": 1, "y": 2}]', [(1, 2)], None),
        (NAMED, '[{"x": 1, "y": 2, "width": 5, "height": 6}]', [], R.WRONG_SHAPE),
        (NAMED, '[{"x": 1, "y": 2, "w": 5, "h": 6}]', [], R.WRONG_SHAPE),
        (NAMED, '[{"x": 1}]', [], R.WRONG_KEY),
        (LABELS_JSON, '[{"label": "cat", "point": [1, 2]}]', [(1, 2)], None),
        (CLASSES, '[{"cat": [1, 2]}]', [(1, 2)], None),
        (VIDEO_JSON, '[{"frame_idx": 2, "point": [1, 2]}]', [(1, 2)], None),
    ],
)
def test_what_is_read(
    form: ReplyFormat, reply: str, points: Sequence[tuple[float, float]], reason: R | None
) -> None:
    reading = read(reply, form)
    assert reading.boxes == at(*points)
    assert reading.reason is reason


KEYS = [*product(("point", "point_2d", "coordinates"), ("per_box", "nested")),
        ("point", "decomposed")]  # fmt: skip
FORMATS = [
    replace(form, multilabel=labels, frames=frames)
    for form in (TEXT, *(replace(JSON, key=key, structure=structure) for key, structure in KEYS))
    for labels in (False, True)
    for frames in (1, 3)
]


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_what_is_written_is_read_and_its_places_are_known(form: ReplyFormat) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    video = form.frames > 1
    boxes = [BoxToWrite((10, 20, 30, 40), "cat"), BoxToWrite((1, 2, 4, 9), "dog", 2 * video)]
    reply = write(boxes, form)
    reading = read(reply, form)
    assert reading == ParsedReply(
        at((20, 30), (2.5, 5.5)),  # a box's centre
        ("cat", "dog") if form.multilabel else (),
        (0, 2) if video else (),
        None,
    )
    located = stated_places(reply, form, reading)
    text = [[reply[slice(*span)] for span in place.numbers] for place in located]
    assert text == [["20.0", "30.0"], ["2.5", "5.5"]]
    if form.output == "json":
        jsonschema.validate(json.loads(reply), schema_of(form))
        wrong = [{"x": 1}]
        if form.structure != "decomposed":
            wrong = json.loads(write(boxes, replace(form, representation="all")))
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema_of(form))


@pytest.mark.parametrize(
    ("form", "reply", "points"),
    [
        (JSON, "(10, 20)", [(10, 20)]),
        (JSON, "[{'point': [10, 20]}, {'point': [30", [(10, 20)]),
        (JSON, '[{"point_2d": [10, 20]}]', [(10, 20)]),
        (JSON, '{"x": 10, "y": 20}', [(10, 20)]),
        (LABELS_JSON, '[{"label": "cat", "point_2d": [10, 20]}]', [(10, 20)]),
        (LABELS_JSON, '[{"point_2d": [10, 20]}]', None),  # the key is no label
        (TEXT, "It is at (10, 20).", [(10, 20)]),
        # A box stays a box.
        (JSON, '[{"bbox": [1, 2, 3, 4]}]', None),
        (JSON, '[{"x": 1, "y": 2, "width": 3, "height": 4}]', None),
        (JSON, '{"x": 1, "y": 2, "w": 3, "h": 4}', None),
        (JSON, "[1, 2, 3, 4]", None),
        (TEXT, "(1, 2, 3, 4)", None),
    ],
)
def test_what_a_tolerant_reader_takes(
    form: ReplyFormat, reply: str, points: Sequence[tuple[float, float]] | None
) -> None:
    strict = read(reply, form)
    assert strict.reason is not None
    result = parse_leniently(reply, form, strict)
    assert (None if result is None else result.reading.boxes) == (points and at(*points))
    assert result is None or {*result.reading.labels} <= {"", "cat"}


# --- judged ---------------------------------------------------------------------------------------

L_SHAPE = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
L_SHAPE[10:60, 10:20] = 1
L_SHAPE[50:60, 10:50] = 1
BOX = (10.0, 10.0, 50.0, 60.0)
MASKED = Truth((BOX,), (0,), masks=(packed_mask(L_SHAPE),))


def matched(
    truth: Truth, *points: tuple[float, float], labels: Sequence[str] = ()
) -> tuple[ParsedReply, MatchResult]:
    reading = ParsedReply(at(*points), tuple(labels), (), None)
    return reading, match([reading], [truth], None, MatchRule.POINT_IN_OBJECT)[0]


def hits(truth: Truth, *points: tuple[float, float], labels: Sequence[str] = ()) -> list[bool]:
    return [*matched(truth, *points, labels=labels)[1].hits]


@pytest.mark.parametrize(
    ("x", "y", "in_box", "in_mask"),
    [
        (15, 30, True, True),
        (40, 20, True, False),  # in the notch of the L
        (10, 10, True, True),
        (50, 60, True, False),  # the box's last corner is on its edge, and no pixel of it
        (49.9, 59.9, True, True),
        (9.99, 30, False, False),
        (-5, 30, False, False),
        (WIDTH + 1, 30, False, False),
        (1e300, 1e300, False, False),
    ],
)
def test_a_point_hits_the_mask_or_else_the_box(
    x: float, y: float, in_box: bool, in_mask: bool
) -> None:
    assert hits(Truth((BOX,), (0,)), (x, y)) == [in_box]
    assert hits(MASKED, (x, y)) == [in_mask]
    assert hits(replace(MASKED, masks=(None,)), (x, y)) == [in_box]


def test_each_point_hits_one_object_and_hits_are_maximal() -> None:
    outer = (0.0, 0.0, 100.0, 90.0)
    inner = (10.0, 10.0, 20.0, 20.0)
    two = Truth((outer, inner), (0, 0))
    assert sum(hits(two, (15, 15))) == 1
    # The point in both is the inner's, so that the other finds the outer, whatever their order.
    for points in ([(15, 15), (50, 50)], [(50, 50), (15, 15)], [(15, 15), (15, 15)]):
        assert hits(two, *points) == [True, True]
    labelled = replace(two, labels=("cat", "dog"))
    assert hits(labelled, (15, 15), labels=["Dog."]) == [False, True]
    assert hits(labelled, (50, 50), labels=["dog"]) == [False, False]


def test_a_batch_is_judged_as_its_queries() -> None:
    truths = [MASKED, Truth((BOX,), (0,)), Truth((), ()), MASKED]
    reading = ParsedReply(at((40, 20), (15, 30)), (), (), None)
    maps = [ToPixels(), ToPixels(1, 2), ToPixels(), ToPixels(0.5, 0.5)]
    together = match([reading] * 4, truths, maps, MatchRule.POINT_IN_OBJECT)
    for each, truth, scale in zip(together, truths, maps, strict=True):
        assert [each] == match([reading], [truth], [scale], MatchRule.POINT_IN_OBJECT)
    assert [each.hits for each in together] == [(True,), (True,), (), (False,)]
    # Boxes are judged as ever, whatever masks there are.
    overlap = match([ParsedReply((BOX,), (), (), None)] * 2, truths[:2])
    assert [each.ious for each in overlap] == [(1.0,), (1.0,)]


@pytest.mark.parametrize("pairs", [2, 100])
def test_points_inside_are_counted_in_parts_of_any_size(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_POINT_PAIRS", pairs)
    truth = Truth((BOX, (70.0, 70.0, 80.0, 80.0)), (0, 0), masks=(packed_mask(L_SHAPE), None))
    points = [(15, 30), (40, 20), (15, 55), (15, 30), (99, 99), (75, 75)]
    reading, result = matched(truth, *points)
    assert points_inside(result, reading, truth) == 4


masks = st.integers(1, 12).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 1), min_size=width, max_size=width), min_size=1)
)


@given(masks, st.floats(-3, 15), st.floats(-3, 15))
def test_run_lengths_cover_the_pixels_of_the_mask(
    rows: list[list[int]], x: float, y: float
) -> None:
    mask = np.array(rows)
    packed = packed_mask(mask)
    assert packed.mask().tolist() == mask.tolist()
    column, row = int(np.floor(x)), int(np.floor(y))
    inside = 0 <= column < mask.shape[1] and 0 <= row < mask.shape[0] and mask[row, column] == 1
    assert packed.covers(x, y) == inside
