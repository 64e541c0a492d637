"""Objects that count neither way: COCO's crowds and VOC's difficult ones, matched last."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import custom_data
import numpy as np
import pytest
from scored_runs import query

import vlmeval_findit as findit
from vlmeval_findit.analysis import CocoBoxes, CocoEvaluator, boxes_of_rows
from vlmeval_findit.benchmarks.findit import (
    FindItQuery,
    box_roles,
    draw,
    find_table,
    read_table,
    thinned_query,
    write_table,
)
from vlmeval_findit.boxes import (
    AnswerKind,
    BoxAnswer,
    BoxError,
    Ignored,
    JudgedAnswer,
    MatchResult,
    MatchRule,
    ParsedReply,
    Truth,
    classify_errors,
    match,
)
from vlmeval_findit.cli import main
from vlmeval_findit.data import mask_of_coco
from vlmeval_findit.marks import packed_mask
from vlmeval_findit.protocol import Role, ScoredRow, Settings
from vlmeval_findit.scoring import score_file
from vlmeval_findit.storage import TableError

REAL = (0.0, 0.0, 10.0, 10.0)
CROWD = Ignored((20.0, 0.0, 60.0, 40.0), crowd=True)
DIFFICULT = Ignored((20.0, 0.0, 60.0, 40.0))
IN_CROWD = (30.0, 10.0, 40.0, 20.0)
HALF_IN = (10.0, 0.0, 30.0, 10.0)
LARGE = (18.0, 0.0, 62.0, 42.0)
ELSEWHERE = (80.0, 80.0, 90.0, 90.0)


def matched(
    boxes: Any, truth: Truth, labels: Any = (), frames: Any = (), **rule: Any
) -> MatchResult:
    return match([ParsedReply(boxes, labels, frames, None)], [truth], None, **rule)[0]


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


def test_real_objects_come_first_and_labels_and_frames_agree() -> None:
    """A box on a real object and on a crowd is a hit; another of the same is not counted."""
    truth = Truth((IN_CROWD,), (0,), ignored=(CROWD,))
    assert matched([IN_CROWD], truth).ignored == ()
    twice = matched([IN_CROWD, IN_CROWD], truth)
    assert (twice.tp, twice.counted, len(twice.ignored)) == (1, 1, 1)
    labelled = Truth((REAL,), (0,), ("cat",), ignored=(CROWD._replace(label="Dog."),))
    boxes = [REAL, IN_CROWD, IN_CROWD]
    assert matched(boxes, labelled, labels=["cat", "dog", "cat"]).ignored == (1,)
    later = Truth((REAL,), (0,), ignored=(CROWD._replace(frame=1),))
    assert matched(boxes, later, frames=[0, 0, 1]).ignored == (2,)


def test_points_are_ignored_in_the_mask_if_known() -> None:
    pixels = np.zeros((100, 100))
    pixels[10, 30] = 1
    masked = CROWD._replace(mask=packed_mask(pixels))
    points = [(5.0, 5.0, 5.0, 5.0), (30.5, 10.5, 30.5, 10.5), (50.0, 30.0, 50.0, 30.0)]
    for crowd, ignored in ((masked, (1,)), (CROWD, (1, 2))):
        truth = Truth((REAL,), (0,), ignored=(crowd,))
        result = matched(points, truth, match_rule=MatchRule.POINT_IN_OBJECT)
        assert result.ignored == ignored


def test_they_are_no_errors() -> None:
    truth = Truth((REAL, ELSEWHERE), (0, 0), ignored=(CROWD,))
    boxes = [REAL, IN_CROWD, (70.0, 0.0, 75.0, 5.0)]
    reading = ParsedReply(boxes, [], [], None)
    query = JudgedAnswer(matched(boxes, truth), reading, truth, AnswerKind.BOXES)
    (events,) = classify_errors([query])
    kinds = [(each.kind, each.box) for each in events]
    assert kinds == [(BoxError.BACKGROUND, 2), (BoxError.MISSED, None)]


OPTIONS: Any = {"sizes": (100, 100), "space": "pixels"}


def test_a_reply_that_boxes_the_crowd_too_is_not_wrong() -> None:
    truth = findit.truth([REAL], ignored=[CROWD])
    output = f"[{list(REAL)}, {list(IN_CROWD)}]"
    result = findit.score([output], [truth], "xyxy_text", **OPTIONS)
    assert result.metric_values["Precision"] == result.metric_values["F1@0.5"] == 100
    assert result.metric_values["mIoU"] == 100
    assert result.queries[0].details["ignored"] == [1]
    assert result.queries[0].details["n_pred"] == 1
    assert findit.reward(output, truth, "xyxy_text", **OPTIONS) == 1
    alone = findit.score([output], [[REAL]], "xyxy_text", **OPTIONS)
    assert alone.metric_values["Precision"] == 50
    assert "ignored" not in alone.queries[0].details


@pytest.mark.parametrize(
    ("boxes", "reward", "counted"), [([], 1, 0), ([IN_CROWD], 1, 0), ([ELSEWHERE], 0, 1)]
)
def test_where_there_is_nothing_else_to_find(boxes: list[Any], reward: float, counted: int) -> None:
    """No answer is a rejection or a false alarm; a box elsewhere is still a wrong one."""
    truth = findit.truth([], ignored=[CROWD])
    output = str([list(box) for box in boxes])
    assert findit.reward(output, truth, "xyxy_text", **OPTIONS) == reward
    result = findit.score([output], [truth], "xyxy_text", **OPTIONS)
    assert result.metric_values["False-alarm rate"] is None
    assert result.metric_values["Rejection accuracy"] is None
    assert result.queries[0].sums["n_pred"] == counted


def test_calibration_leaves_their_boxes_out() -> None:
    details: dict[str, Any] = {"boxes": [list(REAL), list(IN_CROWD), list(ELSEWHERE)]}
    details |= {"assigned": [0], "hits": [True], "confidences": {"mean": [0.9, 0.8, 0.7]}}
    row = ScoredRow(0, "a.jpg", {}, details=details)
    assert boxes_of_rows([row], "mean").confidence.tolist() == [0.9, 0.8, 0.7]
    result = boxes_of_rows([replace(row, details=details | {"ignored": [1]})], "mean")
    assert result.confidence.tolist() == [0.9, 0.7]
    assert result.hit.tolist() == [True, False]
    assert result.image.tolist() == [0, 0]


def test_they_are_drawn_apart() -> None:
    truth = Truth((REAL,), (0,), ignored=(CROWD,))
    details = {"boxes": [list(IN_CROWD)], "assigned": [None], "hits": [False], "ious": [0.0]}
    row = ScoredRow(0, "a.jpg", {}, details=details | {"ignored": [0]})
    assert box_roles(BoxAnswer.of(row)) == [(Role.UNCOUNTED, None)]
    (picture,) = draw(replace(query(0), truth=truth), row).images
    assert [box.role for box in picture.boxes] == [Role.IGNORED, Role.TRUTH, Role.UNCOUNTED]


def test_a_bad_cell_is_named(tmp_path: Path) -> None:
    each = replace(query(0), truth=replace(query(0).truth, ignored=(CROWD,)))
    text = write_table(tmp_path, "T", [each], {}).path.read_text()
    path = tmp_path / "U.tsv"
    for was, now, why in (
        ('""frame"":0', '""frame"":1', "frame 1 is out of range 0..0"),
        ('""crowd"":true', '""crowd"":1', r"\[crowd\] should be a valid boolean: 1"),
    ):
        assert was in text
        path.write_text(text.replace(was, now))
        with pytest.raises(TableError, match=rf"U\.tsv, line 2, column ignored: .*{why}"):
            read_table(path)


def test_thinning_takes_them_along() -> None:
    ignored = tuple(CROWD._replace(frame=at) for at in range(3))
    video = replace(query(0), images=("a", "b", "c"), truth=Truth((), (), ignored=ignored))
    assert [each.frame for each in thinned_query(video, 2).truth.ignored] == [0, 1]


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Imports COCO's annotations with the first one changed."""
    custom_data.data_folder(tmp_path, monkeypatch)
    images = custom_data.make_images(tmp_path / "pictures")

    def run(**change: object) -> int:
        values = custom_data.coco_values()
        values["annotations"][0] |= change
        path = custom_data.write_coco(tmp_path, values)
        words = ["--image-root", str(images), "--name", "MyData", "--replace"]
        return main(["data", "import", str(path), *words])

    return run


def cat() -> FindItQuery:
    return next(q for q in read_table(find_table("MyData")) if q.label == "cat")


def test_masks_of_coco_judge_points(
    imported: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The first cat is an L of two rectangles; its box's lower right corner is none of it."""
    pixels = np.zeros((80, 120))
    pixels[5:10, 10:40] = pixels[5:25, 10:15] = 1
    polygon = [[10, 5, 40, 5, 40, 10, 15, 10, 15, 25, 10, 25], [1, 1, 2, 2]]
    packed = {"size": [80, 120], "counts": packed_mask(pixels).packed}
    inside = [(12.0, 20.0), (35.0, 7.0), (10.5, 5.5), (14.4, 24.4)]
    outside = [(35.0, 20.0), (9.4, 12.0), (41.0, 7.0), (12.0, 26.0)]
    for segmentation in (polygon, packed):
        assert imported(segmentation=segmentation) == 0
        mask, other = cat().truth.masks
        assert mask is not None
        assert other is None
        assert [mask.covers(*at) for at in (*inside, *outside)] == [True] * 4 + [False] * 4
    for wrong in (7, [[1, 2, 3]], {"size": [1, 1]}):
        assert imported(segmentation=wrong) == 2
        assert "annotations[0], segmentation: " in capsys.readouterr().err


def test_polygons_are_filled_as_coco_fills_them() -> None:
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


def test_crowds_come_out_again(imported: Callable[..., int]) -> None:
    assert imported(iscrowd=1) == 0
    run = Path("Model_FindIt_MyData_xyxy_text.json")
    boxes = [[15.0, 10.0, 25.0, 20.0], list(cat().truth.boxes[0])]
    output = [
        {"index": q.index, "prediction": str(boxes) if q.label == "cat" else "[]"}
        for q in read_table(find_table("MyData"))
    ]
    run.write_text(json.dumps(output))
    assert main(["score", "--space", "pixels", str(run)]) == 0
    assert main(["export", str(run), "--to", "coco", "--out", "coco"]) == 0
    truth = json.loads(Path(f"coco/{run.stem}_coco_truth.json").read_text())
    assert sorted(each["iscrowd"] for each in truth["annotations"]) == [0, 0, 0, 1]
    (crowd,) = [each for each in truth["annotations"] if each["iscrowd"]]
    assert crowd["bbox"] == [10.0, 5.0, 30.5, 20.25]
    pytest.importorskip("pycocotools")
    scored = score_file(run, Settings(space="pixels", force=True))
    coco = CocoBoxes(scored.dataset, scored.rows)
    result = CocoEvaluator(coco).precision([1.0] * len(coco.results))
    # The cat is hit and the box in the crowd costs nothing; the two traffic lights are missed.
    assert result.ap50.tolist() == pytest.approx([0.5])
