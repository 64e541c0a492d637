"""Points: read, matched, counted, compared with points alone, and shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_tables import edit_cells
from hypothesis import given
from hypothesis import strategies as st
from scored_runs import HEIGHT, WIDTH, World, query, saying, speaking, world

import vlmeval_findit as findit
from vlmeval_findit.benchmarks import benchmark_of, parse
from vlmeval_findit.benchmarks.findit.annotation_tables import (
    TableError,
    load_task,
    read_table,
    write_table,
)
from vlmeval_findit.benchmarks.findit.box_metrics import RANKING
from vlmeval_findit.benchmarks.findit.findit_query import thin, thinned
from vlmeval_findit.benchmarks.findit.variant import VariantError
from vlmeval_findit.boxes import matching
from vlmeval_findit.boxes.lenient import parse_leniently
from vlmeval_findit.boxes.matching import match, points_inside
from vlmeval_findit.boxes.reading import read
from vlmeval_findit.boxes.records import FormatFailure, ParsedReply, Truth
from vlmeval_findit.boxes.representation import MatchRule, ReplyFormat
from vlmeval_findit.boxes.spaces import ToPixels
from vlmeval_findit.boxes.spans import places
from vlmeval_findit.boxes.writing import BoxToWrite, schema_of, write
from vlmeval_findit.core.config import ConfigError
from vlmeval_findit.leaderboard.board import boards
from vlmeval_findit.marks.region import RLEError, packed_mask
from vlmeval_findit.runs.best_format import rule
from vlmeval_findit.sweeps.sweep_file import parse_sweep, stage_questions

__all__ = ["world"]

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

POINT, JSON_NAME = "FindIt_Pascal_point_text", "FindIt_Pascal_point_json"
BOXES = "FindIt_Pascal_xyxy_text"


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
        # A box is no point, in whatever brackets; no two of its numbers are taken for one.
        (TEXT, "[10, 20, 30, 40]", [], FormatFailure.NO_BOX),
        (TEXT, "(10, 20)", [], FormatFailure.NO_BOX),
        (TEXT, '<point x="10.5" y="20.1" alt="cat">cat</point>', [], FormatFailure.NO_BOX),
        (TEXT, "", [], FormatFailure.EMPTY),
        (LABELS, "cat: [1, 2]\ndog: [3, 4]", [(1, 2), (3, 4)], None),
        (VIDEO, "1: [1, 2]\n3: [3, 4]", [(1, 2), (3, 4)], None),
        (JSON, '[{"point": [10, 20]}]', [(10, 20)], None),
        (JSON, '```json\n[{"point": ["10", 2e1], "label": "cat"}]\n```', [(10, 20)], None),
        (JSON, "[]", [], None),
        (JSON, '[{"point": [1, 2]}, {"point": [1, 2, 3, 4]}]', [(1, 2)], FormatFailure.WRONG_SHAPE),
        (JSON, '[{"point": [1]}]', [], FormatFailure.WRONG_SHAPE),
        (JSON, '[{"point": [[1, 2]]}]', [], FormatFailure.WRONG_SHAPE),
        (JSON, '[{"point": {"x": 1, "y": 2}}]', [], FormatFailure.WRONG_SHAPE),
        (JSON, '[{"bbox": [1, 2, 3, 4]}]', [], FormatFailure.WRONG_KEY),
        (JSON, '[{"point_2d": [1, 2]}]', [], FormatFailure.WRONG_KEY),
        (JSON, '{"point": [1, 2]}', [], FormatFailure.NOT_A_LIST),
        (JSON, '[{"point": [1, NaN]}]', [], FormatFailure.NOT_FINITE),
        (JSON, '[{"point": [1, "a"]}]', [], FormatFailure.NOT_A_NUMBER),
        (JSON, '[{"point": [1, 2', [], FormatFailure.TRUNCATED),
        (QWEN, '[{"point_2d": [1, 2]}]', [(1, 2)], None),
        (NESTED, '[{"points": [[1, 2], [3, 4]]}]', [(1, 2), (3, 4)], None),
        (NAMED, '[{"x": 1, "y": 2}]', [(1, 2)], None),
        (NAMED, '[{"x": 1, "y": 2, "width": 5, "height": 6}]', [], FormatFailure.WRONG_SHAPE),
        (NAMED, '[{"x": 1, "y": 2, "w": 5, "h": 6}]', [], FormatFailure.WRONG_SHAPE),
        (NAMED, '[{"x": 1}]', [], FormatFailure.WRONG_KEY),
        (LABELS_JSON, '[{"label": "cat", "point": [1, 2]}]', [(1, 2)], None),
        (CLASSES, '[{"cat": [1, 2]}]', [(1, 2)], None),
        (VIDEO_JSON, '[{"frame_idx": 2, "point": [1, 2]}]', [(1, 2)], None),
    ],
)
def test_what_is_read(
    form: ReplyFormat,
    reply: str,
    points: Sequence[tuple[float, float]],
    reason: FormatFailure | None,
) -> None:
    reading = read(reply, form)
    assert reading.boxes == at(*points)
    assert reading.reason is reason


FORMATS = [
    replace(TEXT, multilabel=labels, frames=frames) for labels in (False, True) for frames in (1, 3)
] + [
    replace(JSON, key=key, structure=structure, multilabel=labels, frames=frames)
    for key in ("point", "point_2d", "coordinates")
    for structure in ("per_box", "nested", "decomposed")
    for labels in (False, True)
    for frames in (1, 3)
    if structure != "decomposed" or key == "point"
]


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_what_is_written_is_read_and_its_places_are_known(form: ReplyFormat) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    box = (10.0, 20.0, 30.0, 40.0)
    last = 2 * (form.frames > 1)
    reply = write([BoxToWrite(box, "cat"), BoxToWrite((1, 2, 4, 9), "dog", last)], form)
    reading = read(reply, form)
    assert reading.boxes == at((20, 30), (2.5, 5.5))  # a box's centre
    assert reading.reason is None
    assert reading.labels == (("cat", "dog") if form.multilabel else ())
    assert reading.frames == ((0, 2) if form.frames > 1 else ())
    if form.output == "json":
        jsonschema.validate(json.loads(reply), schema_of(form))
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(
                json.loads(write([BoxToWrite(box, "cat")], replace(form, representation="all"))),
                schema_of(form),
            ) if form.structure != "decomposed" else jsonschema.validate(
                [{"x": 1}], schema_of(form)
            )
    text = [
        [reply[slice(*span)] for span in place.numbers] for place in places(reply, form, reading)
    ]  # type: ignore[union-attr]
    assert text == [["20.0", "30.0"], ["2.5", "5.5"]]


@pytest.mark.parametrize(
    ("form", "reply", "points"),
    [
        (JSON, "(10, 20)", [(10, 20)]),
        (JSON, "[{'point': [10, 20]}, {'point': [30", [(10, 20)]),
        (JSON, '[{"point_2d": [10, 20]}]', [(10, 20)]),
        (JSON, '{"x": 10, "y": 20}', [(10, 20)]),
        (LABELS_JSON, '[{"label": "cat", "point_2d": [10, 20]}]', [(10, 20)]),
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


def test_a_key_of_points_is_no_label() -> None:
    reply = '[{"point_2d": [10, 20]}]'
    result = parse_leniently(reply, LABELS_JSON, read(reply, LABELS_JSON))
    assert result is not None
    assert result.reading.labels == ("",)


# --- judged ---------------------------------------------------------------------------------------

L_SHAPE = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
L_SHAPE[10:60, 10:20] = 1
L_SHAPE[50:60, 10:50] = 1
BOX = (10.0, 10.0, 50.0, 60.0)
MASKED = Truth((BOX,), (0,), masks=(packed_mask(L_SHAPE),))


def judged(truth: Truth, *points: tuple[float, float], labels: Sequence[str] = ()) -> list[bool]:
    reading = ParsedReply(at(*points), tuple(labels), (), None)  # type: ignore[arg-type]
    (result,) = match([reading], [truth], None, MatchRule.POINT_IN_OBJECT)
    return [*result.hits]


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
def test_a_hit_lies_in_the_mask_or_where_there_is_none_in_the_box(
    x: float, y: float, in_box: bool, in_mask: bool
) -> None:
    assert judged(Truth((BOX,), (0,)), (x, y)) == [in_box]
    assert judged(MASKED, (x, y)) == [in_mask]
    assert judged(replace(MASKED, masks=(None,)), (x, y)) == [in_box]


def test_one_point_finds_one_object_and_as_many_are_found_as_can_be() -> None:
    outer, inner = (0.0, 0.0, 100.0, 90.0), (10.0, 10.0, 20.0, 20.0)
    two = Truth((outer, inner), (0, 0))
    assert sum(judged(two, (15, 15))) == 1
    # The point in both is the inner's, so that the other finds the outer, whatever their order.
    for points in ([(15, 15), (50, 50)], [(50, 50), (15, 15)]):
        assert judged(two, *points) == [True, True]
    assert judged(two, (15, 15), (15, 15)) == [True, True]
    labelled = Truth((outer, inner), (0, 0), ("cat", "dog"))
    assert judged(labelled, (15, 15), labels=["Dog."]) == [False, True]
    assert judged(labelled, (50, 50), labels=["dog"]) == [False, False]


def test_a_batch_is_judged_as_its_queries_are_one_by_one() -> None:
    truths = [MASKED, Truth((BOX,), (0,)), Truth((), ()), MASKED]
    readings = [ParsedReply(at((40, 20), (15, 30)), (), (), None)] * 4  # type: ignore[arg-type]
    maps = [ToPixels(), ToPixels(1, 2), ToPixels(), ToPixels(0.5, 0.5)]
    together = match(readings, truths, maps, MatchRule.POINT_IN_OBJECT)
    apart = [match([r], [t], [s], MatchRule.POINT_IN_OBJECT)[0]
             for r, t, s in zip(readings, truths, maps, strict=True)]  # fmt: skip
    assert together == apart
    assert [each.hits for each in together] == [(True,), (True,), (), (False,)]
    # Boxes are judged as ever, whatever masks there are.
    boxes = [ParsedReply((BOX,), (), (), None)] * 2
    overlap = match(boxes, [MASKED, Truth((BOX,), (0,))])
    assert [each.ious for each in overlap] == [(1.0,), (1.0,)]


@pytest.mark.parametrize("pairs", [1, 2, 5, 100])
def test_points_inside_are_counted_in_parts_of_any_size(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_POINT_PAIRS", pairs)
    points = at((15, 30), (40, 20), (15, 55), (15, 30), (99, 99), (75, 75))
    reading = ParsedReply(points, (), (), None)  # type: ignore[arg-type]
    truth = Truth((BOX, (70.0, 70.0, 80.0, 80.0)), (0, 0), masks=(packed_mask(L_SHAPE), None))
    (matched,) = match([reading], [truth], None, MatchRule.POINT_IN_OBJECT)
    assert points_inside(matched, reading, truth) == 4


masks = st.integers(1, 12).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 1), min_size=width, max_size=width), min_size=1)
)


@given(masks, st.floats(-3, 15), st.floats(-3, 15))
def test_run_lengths_cover_the_pixels_of_the_mask(
    rows: list[list[int]], x: float, y: float
) -> None:
    mask = np.array(rows)
    packed = packed_mask(mask)
    assert packed.runs.mask().tolist() == mask.tolist()
    column, row = int(np.floor(x)), int(np.floor(y))
    inside = 0 <= column < mask.shape[1] and 0 <= row < mask.shape[0] and mask[row, column] == 1
    assert packed.covers(x, y) == inside


# --- counted --------------------------------------------------------------------------------------

TARGET = [[0, 0, 100, 50]]


def metric_values(
    replies: Sequence[str | None], truths: Sequence[Any], **more: Any
) -> dict[str, Any]:
    form = {"sizes": (WIDTH, HEIGHT), "space": "pixels", **more}
    return dict(
        findit.score(replies, truths, form.pop("format", "point_text"), **form).metric_values
    )


def as_screenspot(replies: Sequence[Sequence[tuple[float, float]]], box: Sequence[float]) -> float:
    """ScreenSpot-Pro's: the share of answers whose point lies in the box."""
    x1, y1, x2, y2 = box
    hits = [any(x1 <= x <= x2 and y1 <= y <= y2 for x, y in points) for points in replies]
    return 100 * sum(hits) / len(hits)


def as_refspatial(replies: Sequence[Sequence[tuple[float, float]]], mask: np.ndarray) -> float:
    """RefSpatial-Bench's: the mean of the shares of points in the mask."""
    height, width = mask.shape
    shares = []
    for points in replies:
        inside = [
            bool(mask[int(y), int(x)]) for x, y in points if 0 <= x < width and 0 <= y < height
        ]
        shares.append(sum(inside) / len(points) if points else 0.0)
    return 100 * float(np.mean(shares))


coordinates = st.tuples(st.integers(0, WIDTH), st.integers(0, HEIGHT))
answers = st.lists(st.lists(coordinates, max_size=4), min_size=1, max_size=8)


def text(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"[{x}, {y}]" for x, y in points) or "[]"


@given(answers)
def test_metrics_equal_those_of_published_sets_on_one_target(
    replies: list[list[tuple[int, int]]],
) -> None:
    several = metric_values([*map(text, replies)], [MASKED] * len(replies))
    assert several["Points inside"] == pytest.approx(as_refspatial(replies, L_SHAPE))
    single = [points[:1] for points in replies]
    truths = [Truth((BOX,), (0,))] * len(replies)
    result = metric_values([*map(text, single)], truths)
    assert result["Pointing accuracy"] == pytest.approx(as_screenspot(single, BOX))
    assert result["Points inside"] == pytest.approx(result["Pointing accuracy"])
    masked = metric_values([*map(text, single)], [MASKED] * len(replies))
    assert masked["Pointing accuracy"] == pytest.approx(as_refspatial(single, L_SHAPE))


def test_a_point_too_many_costs_and_so_does_an_object_too_few() -> None:
    two = [[0, 0, 10, 10], [50, 50, 60, 60]]
    assert metric_values(["[5, 5] [55, 55]"], [two])["Pointing accuracy"] == 100
    assert metric_values(["[5, 5]"], [two])["Pointing accuracy"] == 50
    assert metric_values(["[5, 5] [6, 6]"], [two])["Pointing accuracy"] == 50
    everywhere = " ".join(f"[{x}, {y}]" for x in range(0, 100, 10) for y in range(0, 100, 10))
    sprayed = metric_values([everywhere], [two])
    assert sprayed["Pointing accuracy"] == 2
    assert (sprayed["Point recall"], sprayed["Point precision"]) == (100, 2)


def test_nothing_to_find_no_answer_and_no_call_are_three_things() -> None:
    result = metric_values(["[]", "[5, 5]", "what?"], [[], [], []])
    assert result["Rejection accuracy"] == pytest.approx(100 / 3)
    assert result["False-alarm rate"] == pytest.approx(100 / 3)
    assert result["Points inside"] is None  # nothing could be pointed at
    result = metric_values(["[5, 5]", "sorry", None], [TARGET] * 3)
    assert result["Pointing accuracy"] == 50
    assert result["Pointing accuracy (failed calls as misses)"] == pytest.approx(100 / 3)
    assert result["Adherence"] == 50


def test_the_reward_of_points() -> None:
    form = {"sizes": (WIDTH, HEIGHT), "space": "pixels", "by": "pointing"}
    replies = ["[5, 5]", "[5, 5] [150, 90]", "[]", None]
    built = findit.reward(replies, [TARGET] * 4, "point_text", **form)  # type: ignore[call-overload]
    assert built[:3].tolist() == [1, 0.5, 0]
    assert np.isnan(built[3])
    with pytest.raises(ValueError, match=r"point has no f1 \(it has: adherence, pointing\)"):
        findit.reward("[5, 5]", TARGET, "point_text", sizes=(9, 9), space="pixels")
    with pytest.raises(ValueError, match="xyxy has no pointing"):
        findit.reward("[5, 5]", TARGET, "xyxy_text", **form)  # type: ignore[call-overload]


# --- names and the grid ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("FindIt_Pascal_point_json_bbox_2d", "bbox_2d is no key of point (there are: point, poin"),
        ("FindIt_Pascal_xyxy_json_point", "point is no key of xyxy (there are: bbox, bbox_2d"),
        ("FindIt_Pascal_point_json_class_name", "for multi-label queries only"),
        ("FindIt_Pascal_point_json_point_2d_decomposed", "names its own keys"),
        ("FindIt_Pascal_point_text_point_2d", "text replies have neither"),
        ("FindIt_Pascal_points_text", "no representation 'points': did you mean point?"),
        ("FindIt_RefL4Full_val_point_text", "matched by box overlap, point by point in object"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_reason(name: str, why: str) -> None:
    with pytest.raises(VariantError) as error:
        parse(name)
    assert why in str(error.value)


def test_a_sweep_never_compares_boxes_with_points() -> None:
    start = "models: FullImage\ndatasets: Demo\n"
    sweep = parse_sweep(start + "representations: point\nkeys: [point, point_2d]")
    assert [each.format for each in stage_questions(sweep, "FullImage", 0)] == [
        "point_text", "point_json", "point_json_point_2d"
    ]  # fmt: skip
    stages = "stages:\n- {representations: point, keys: [point]}\n- {representations: winner, "
    assert len(parse_sweep(start + stages + "keys: [point, point_2d]}").stages) == 2
    for mixed in (
        "representations: [xyxy, point]",
        "race: true\nrepresentations: [point, xyxy]",
        "stages:\n- representations: point\n- {keys: all}",
        "stages:\n- representations: all\n- representations: point",
    ):
        with pytest.raises(ConfigError, match=r"line [34]: .* have no common best format"):
            parse_sweep(start + mixed)
    for key in ("bbox", "bbox_2d"):
        with pytest.raises(ConfigError, match=f"line 4: keys: {key} fits no cell"):
            parse_sweep(start + f"representations: point\nkeys: [point, {key}]\noutputs: json")


# --- masks in tables ------------------------------------------------------------------------------


def test_masks_go_with_their_frames() -> None:
    left, right = packed_mask(L_SHAPE), packed_mask(np.fliplr(L_SHAPE))
    truth = Truth((BOX,) * 3, (0, 1, 2), masks=(left, None, right))
    video = replace(query(0), images=("a.png", "b.png", "c.png"), truth=truth)
    stored = thinned(video, 2).truth
    assert len(stored.boxes) == len(stored.masks) == 2
    assert [truth.masks[frame] for frame in thin(3, 2)] == [*stored.masks]


def test_masks_go_through_tables(tmp_path: Path) -> None:
    truth = Truth((BOX, (0.0, 0.0, 9.0, 9.0)), (0, 0), masks=(MASKED.masks[0], None))
    rows = [replace(query(0), truth=truth), query(1)]
    table = write_table(tmp_path, "T", rows, {"source": "a test"}).path
    again = read_table(table)
    assert again[1] == rows[1]
    assert again[0].truth.boxes == truth.boxes
    mask, none = again[0].truth.masks
    assert none is None
    assert mask is not None
    assert mask.packed == truth.masks[0].packed  # type: ignore[union-attr]
    assert (mask.covers(15, 30), mask.covers(40, 20)) == (True, False)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("[[null]]", "not one for every box"),
        ('{"a": 1}', "should be a valid array"),
        ("[[7, null]]", "should be a valid string: 7"),
    ],
)
def test_a_damaged_column_of_masks_is_named(tmp_path: Path, cell: str, why: str) -> None:
    write_table(tmp_path, "T", [replace(query(0), truth=two_masks())], {"source": "a test"})
    path = tmp_path / "T.tsv"
    edit_cells(path, masks=cell)
    with pytest.raises(TableError, match=f"line 2, column masks: .*{why}"):
        read_table(path)


def two_masks() -> Truth:
    return Truth((BOX, (0.0, 0.0, 9.0, 9.0)), (0, 0), masks=(MASKED.masks[0], None))


def test_a_mask_that_cannot_be_unpacked_is_refused_before_points_are_asked_for(
    world: World,
) -> None:
    world.table("Pascal", [replace(query(0), truth=two_masks())])
    edit_cells(world.folder / "Pascal.tsv", masks='[["99", null]]')
    assert load_task(BOXES).queries  # boxes need no masks
    with pytest.raises(TableError, match=r"Pascal.tsv, row 0, column masks, box 0: the runs of a"):
        load_task(POINT)
    with pytest.raises(RLEError, match="packs no run lengths"):
        _ = packed_mask(L_SHAPE).__class__(9, 9, "é").runs


# --- runs: boards, reports, exports, coords -------------------------------------------------------


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
    assert cell.entries["Pointing accuracy"].value == points.metric_values["Pointing accuracy"]
    assert (
        points.metric_values["Pointing accuracy"] > in_json.metric_values["Pointing accuracy"] > 0
    )  # type: ignore[operator]
    assert rule(second.benchmark).startswith("highest Pointing accuracy (failed calls as misses)")
    assert benchmark_of(BOXES).ranking == RANKING


def test_every_lost_place_has_one_cause(world: World) -> None:
    replies = iter(
        ["[30, 300] [750, 500]", "[500, 990]", "[]", "sorry", "[900, 990] [950, 990] [980, 990]"]
        * 3
    )
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
    sums = {**run.sums}
    for row in run.rows:
        for name, count in analysis.events(row).items():
            sums[name] = sums.get(name, 0) + count
    points = analysis.points(sums)
    assert sum(points.values()) == pytest.approx(analysis.lost(sums))
    assert not any(key.startswith("lost:") for row in run.rows for key in row.sums)
