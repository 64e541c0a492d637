"""Objects that count neither way: COCO's crowds and VOC's difficult ones, matched last."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import custom_data
import numpy as np
import pytest
from scored_runs import World, grid, query, saying, world

import vlmeval_findit as findit
from vlmeval_findit.benchmarks.findit.annotation_tables import find_table, read_table, write_table
from vlmeval_findit.benchmarks.findit.box_drawing import draw, roles
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery, thinned
from vlmeval_findit.boxes.box_records import Ignored, Matched, ParsedReply, Truth
from vlmeval_findit.boxes.error_types import BoxError, MatchedQuery, classify_errors
from vlmeval_findit.boxes.matching import match
from vlmeval_findit.boxes.representation import MatchRule
from vlmeval_findit.cli import main
from vlmeval_findit.core.benchmark_protocol import Role
from vlmeval_findit.core.scored_row import ScoredRow
from vlmeval_findit.core.table_files import TableError, meta_path
from vlmeval_findit.data.custom.annotation_values import mask_of_coco
from vlmeval_findit.marks.region import packed_mask
from vlmeval_findit.runs.coco_boxes import boxes_of_rows

assert world  # a fixture

REAL = (0.0, 0.0, 10.0, 10.0)
CROWD = Ignored((20.0, 0.0, 60.0, 40.0), crowd=True)
DIFFICULT = Ignored((20.0, 0.0, 60.0, 40.0))
IN_CROWD = (30.0, 10.0, 40.0, 20.0)
HALF_IN = (10.0, 0.0, 30.0, 10.0)
LARGE = (18.0, 0.0, 62.0, 42.0)
ELSEWHERE = (80.0, 80.0, 90.0, 90.0)


def matched(
    boxes: list[Any], truth: Truth, match_rule: MatchRule = MatchRule.BOX_OVERLAP, **more: Any
) -> Matched:
    reading = ParsedReply(boxes, more.get("labels", []), more.get("frames", []), None)
    return match([reading], [truth], None, match_rule)[0]


@pytest.mark.parametrize(
    ("other", "box", "is_ignored"),
    [
        (CROWD, IN_CROWD, True),
        (CROWD, HALF_IN, True),
        (CROWD, (9.0, 0.0, 29.0, 10.0), False),
        (CROWD, LARGE, True),
        (DIFFICULT, IN_CROWD, False),
        (DIFFICULT, LARGE, True),
        (DIFFICULT, ELSEWHERE, False),
        (CROWD, (30.0, 10.0, 30.0, 10.0), False),
        (CROWD, (float("nan"), 10.0, 30.0, 10.0), False),
    ],
)
def test_what_finds_an_ignored_object(other: Ignored, box: Any, is_ignored: bool) -> None:
    """Of crowds half of the box itself must lie inside, of others the IoU is 0.5."""
    result = matched([REAL, box], Truth((REAL,), (0,), ignored=(other,)))
    assert result.hits == (True,)
    assert result.ignored == ((1,) if is_ignored else ())
    assert result.counted == (1 if is_ignored else 2)


def test_real_objects_come_first() -> None:
    """A box on a real object and on a crowd is a hit; another of the same is not counted."""
    truth = Truth((IN_CROWD,), (0,), ignored=(CROWD,))
    assert matched([IN_CROWD], truth).ignored == ()
    twice = matched([IN_CROWD, IN_CROWD], truth)
    assert (twice.tp, twice.counted, len(twice.ignored)) == (1, 1, 1)


def test_labels_and_frames_are_the_same() -> None:
    labelled = Truth((REAL,), (0,), ("cat",), ignored=(CROWD._replace(label="Dog."),))
    result = matched([REAL, IN_CROWD, IN_CROWD], labelled, labels=["cat", "dog", "cat"])
    assert result.ignored == (1,)
    later = Truth((REAL,), (0,), ignored=(CROWD._replace(frame=1),))
    assert matched([REAL, IN_CROWD, IN_CROWD], later, frames=[0, 0, 1]).ignored == (2,)


def test_points_are_ignored_in_the_mask_if_known() -> None:
    pixels = np.zeros((100, 100))
    pixels[10, 30] = 1
    masked = CROWD._replace(mask=packed_mask(pixels))
    points = [(5.0, 5.0, 5.0, 5.0), (30.5, 10.5, 30.5, 10.5), (50.0, 30.0, 50.0, 30.0)]
    by = MatchRule.POINT_IN_OBJECT
    assert matched(points, Truth((REAL,), (0,), ignored=(masked,)), by).ignored == (1,)
    assert matched(points, Truth((REAL,), (0,), ignored=(CROWD,)), by).ignored == (1, 2)


def test_they_are_no_errors() -> None:
    truth = Truth((REAL, ELSEWHERE), (0, 0), ignored=(CROWD,))
    boxes = [REAL, IN_CROWD, (70.0, 0.0, 75.0, 5.0)]
    reading = ParsedReply(boxes, [], [], None)
    (events,) = classify_errors([MatchedQuery(matched(boxes, truth), reading, truth)])
    assert [(each.kind, each.box) for each in events] == [
        (BoxError.BACKGROUND, 2),
        (BoxError.MISSED, None),
    ]
    whole = [REAL, ELSEWHERE, IN_CROWD]
    right = MatchedQuery(matched(whole, truth), ParsedReply(whole, [], [], None), truth)
    assert classify_errors([right]) == [[]]


# --- scores ---------------------------------------------------------------------------------------


def test_a_reply_that_boxes_the_crowd_too_is_not_wrong() -> None:
    truth = findit.truth([REAL], ignored=[CROWD])
    options: Any = {"sizes": (100, 100), "space": "pixels"}
    output = f"[{list(REAL)}, {list(IN_CROWD)}]"
    result = findit.score([output], [truth], "xyxy_text", **options)
    assert result.metric_values["Precision"] == result.metric_values["F1@0.5"] == 100
    assert result.metric_values["mIoU"] == 100
    assert result.queries[0].details["ignored"] == [1]
    assert result.queries[0].details["n_pred"] == 1
    assert findit.reward(output, truth, "xyxy_text", **options) == 1
    alone = findit.score([output], [[REAL]], "xyxy_text", **options)
    assert alone.metric_values["Precision"] == 50
    assert "ignored" not in alone.queries[0].details


@pytest.mark.parametrize(
    ("output", "reward"), [("[]", 1), (f"[{list(IN_CROWD)}]", 1), (f"[{list(ELSEWHERE)}]", 0)]
)
def test_where_there_is_nothing_else_to_find(output: str, reward: float) -> None:
    options: Any = {"sizes": (100, 100), "space": "pixels"}
    truth = findit.truth([], ignored=[CROWD])
    assert findit.reward(output, truth, "xyxy_text", **options) == reward
    result = findit.score([output], [truth], "xyxy_text", **options)
    # What is not to be counted is no answer that says that there is nothing, and no false alarm.
    alarms = None if output == f"[{list(IN_CROWD)}]" else 100 * (1 - reward)
    assert result.metric_values["False-alarm rate"] == alarms


def with_crowd(each: FindItQuery) -> FindItQuery:
    crowd = Ignored((0.0, 60.0, 100.0, 100.0), crowd=True)
    return replace(each, truth=replace(each.truth, ignored=(crowd,)))


def test_calibration_leaves_their_boxes_out() -> None:
    details = {
        "boxes": [list(REAL), list(IN_CROWD), list(ELSEWHERE)],
        "assigned": [0],
        "hits": [True],
        "confidences": {"mean": [0.9, 0.8, 0.7]},
    }
    row = ScoredRow(0, "a.jpg", {}, details=details)
    assert boxes_of_rows([row], "mean").confidence.tolist() == [0.9, 0.8, 0.7]
    result = boxes_of_rows([replace(row, details=details | {"ignored": [1]})], "mean")
    assert result.confidence.tolist() == [0.9, 0.7]
    assert result.hit.tolist() == [True, False]
    assert result.image.tolist() == [0, 0]


def test_they_are_drawn_apart(world: World) -> None:
    world.table("Pascal", [with_crowd(query(0))])
    name = "FindIt_Pascal_xyxy_text"
    path = world.predict("Boxes", name, saying(f"[{list(grid((10, 70, 30, 90)))}]"))
    (line,) = path.with_name(f"{path.stem}_details.jsonl").read_text().splitlines()
    from vlmeval_findit.runs.score_files import read_details_line

    row = read_details_line(line)
    assert roles(row) == [(Role.UNCOUNTED, None)]
    (asked,) = read_table(find_table("Pascal"))
    (picture,) = draw(asked, row).images
    drawn = [box.role for box in picture.boxes]
    assert drawn == [Role.IGNORED, Role.TRUTH, Role.TRUTH, Role.UNCOUNTED]


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ('""frame"":0', '""frame"":1', "frame 1 is none of the 1"),
        ('""crowd"":true', '""crowd"":1', r"\[crowd\] should be a valid boolean: 1"),
    ],
)
def test_a_bad_cell_is_named(tmp_path: Path, was: str, now: str, why: str) -> None:
    each = replace(query(0), truth=replace(query(0).truth, ignored=(CROWD,)))
    path = write_table(tmp_path, "T", [each], {}).path
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, now))
    meta_path(path).unlink()
    with pytest.raises(TableError, match=rf"T\.tsv, line 2, column ignored: .*{why}"):
        read_table(path)


def test_thinning_takes_them_along() -> None:
    ignored = tuple(CROWD._replace(frame=at) for at in range(3))
    video = replace(query(0), images=("a", "b", "c"), truth=Truth((), (), ignored=ignored))
    assert [each.frame for each in thinned(video, 2).truth.ignored] == [0, 1]


# --- imports --------------------------------------------------------------------------------------


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    custom_data.data_folder(tmp_path, monkeypatch)
    return custom_data.make_images(tmp_path / "pictures")


@pytest.mark.parametrize("kind", ["polygon", "run lengths"])
def test_masks_of_coco_judge_points(tmp_path: Path, images: Path, kind: str) -> None:
    """The first cat is an L of two rectangles; its box's lower right corner is none of it."""
    values = custom_data.coco_values()
    corner = [10, 5, 40, 5, 40, 10, 15, 10, 15, 25, 10, 25]
    pixels = np.zeros((80, 120))
    pixels[5:10, 10:40] = pixels[5:25, 10:15] = 1
    packed = {"size": [80, 120], "counts": packed_mask(pixels).packed}
    values["annotations"][0]["segmentation"] = {
        "polygon": [corner, [1, 1, 2, 2]],
        "run lengths": packed,
    }[kind]
    path = custom_data.write_coco(tmp_path, values)
    assert main(["data", "import", str(path), "--image-root", str(images), "--name", "MyData"]) == 0
    cat = next(q for q in read_table(find_table("MyData")) if q.label == "cat")
    mask, other = cat.truth.masks
    assert mask is not None
    assert other is None
    inside = [(12.0, 20.0), (35.0, 7.0), (10.5, 5.5), (14.4, 24.4)]
    outside = [(35.0, 20.0), (9.4, 12.0), (41.0, 7.0), (12.0, 26.0)]
    assert [mask.covers(*at) for at in (*inside, *outside)] == [True] * 4 + [False] * 4


def test_polygons_are_filled_as_coco_fills_them(tmp_path: Path) -> None:
    tools = pytest.importorskip("pycocotools.mask")
    random = np.random.default_rng(0)
    for _ in range(20):
        angles = np.sort(random.uniform(0, 2 * np.pi, 12))
        far = random.uniform(20, 45, 12)
        polygon = np.stack([60 + far * np.cos(angles), 50 + far * np.sin(angles)], axis=1)
        flat = polygon.ravel().tolist()
        mask = mask_of_coco([flat], (120, 100), "here")
        assert mask is not None
        expected = tools.decode(tools.frPyObjects([flat], 100, 120))[:, :, 0]
        actual = mask.mask()
        assert (actual & expected).sum() / (actual | expected).sum() > 0.97


@pytest.mark.parametrize("output", [7, [[1, 2, 3]], {"size": [1, 1]}])
def test_a_segmentation_that_is_none(
    tmp_path: Path, images: Path, output: object, capsys: pytest.CaptureFixture[str]
) -> None:
    values = custom_data.coco_values()
    values["annotations"][0]["segmentation"] = output
    path = custom_data.write_coco(tmp_path, values)
    assert main(["data", "import", str(path), "--image-root", str(images), "--name", "MyData"]) == 2
    assert "annotations[0], segmentation: " in capsys.readouterr().err


def test_crowds_come_out_again(tmp_path: Path, images: Path) -> None:
    values = custom_data.coco_values()
    values["annotations"][0]["iscrowd"] = 1
    path = custom_data.write_coco(tmp_path, values)
    assert main(["data", "import", str(path), "--image-root", str(images), "--name", "MyData"]) == 0
    name = "FindIt_MyData_xyxy_text"
    run = Path(f"Model_{name}.json")
    inside = [15.0, 10.0, 25.0, 20.0]
    cat = next(q for q in read_table(find_table("MyData")) if q.label == "cat")
    output = [{"index": q.index, "prediction": "[]"} for q in read_table(find_table("MyData"))]
    output[cat.index]["prediction"] = f"[{inside}, {list(cat.truth.boxes[0])}]"
    run.write_text(json.dumps(output))
    assert main(["score", "--space", "pixels", str(run)]) == 0
    assert main(["export", str(run), "--to", "coco", "--out", "coco"]) == 0
    truth = json.loads(Path(f"coco/{run.stem}_coco_truth.json").read_text())
    assert sorted(each["iscrowd"] for each in truth["annotations"]) == [0, 0, 0, 1]
    (crowd,) = [each for each in truth["annotations"] if each["iscrowd"]]
    assert crowd["bbox"] == [10.0, 5.0, 30.5, 20.25]
    pytest.importorskip("pycocotools")
    from vlmeval_findit.core.settings import Settings
    from vlmeval_findit.runs.average_precision import Evaluator
    from vlmeval_findit.runs.coco_boxes import CocoBoxes
    from vlmeval_findit.runs.run_score import score_file

    scored = score_file(run, Settings(space="pixels", force=True))
    boxes = CocoBoxes(scored.task, scored.rows)
    result = Evaluator(boxes).precision([1.0] * len(boxes.results))
    # The cat is hit and the box in the crowd costs nothing; the two traffic lights are missed.
    assert result.ap50.tolist() == pytest.approx([0.5])
