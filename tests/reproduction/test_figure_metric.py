"""What a published metric counts: the first box, and every reply without one as a miss."""

from __future__ import annotations

import pytest
from reproductions import Box, attempt, dataset_of, figure, predictions, query, reply_with

from vlmeval_findit.benchmarks.findit import F1_FAILED_MISSED
from vlmeval_findit.coords import ORDERS, SPACES, Convention
from vlmeval_findit.data import Conditions
from vlmeval_findit.protocol import FAILED_ANSWER, Reply, ReplyRecord
from vlmeval_findit.reproduction import (
    FIGURE_METRICS,
    Evidence,
    FigureMetricError,
    figure_metric,
    judge_attempt,
)

# An object of 80 x 40 pixels in a picture of 200 x 100, in thousandths
OBJECT = (20.0, 10.0, 100.0, 50.0)
RIGHT = (100, 100, 500, 500)
HALF = (100, 100, 300, 500)  # Its left half
ELSEWHERE = (600, 600, 900, 900)


def value_of(*replies: Reply, metric: str = "acc@0.5", iou: str = "unknown") -> float:
    data = dataset_of([query(reply.index, OBJECT) for reply in replies])
    published = figure(90.0, metric=metric, conditions=Conditions(iou=iou))  # type: ignore[arg-type]
    return attempt(published, predictions(data, replies)).value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        (reply_with(0, RIGHT), 100),
        (reply_with(0, RIGHT, ELSEWHERE), 100),
        (reply_with(0, ELSEWHERE, RIGHT), 0),
        (reply_with(0, ELSEWHERE), 0),
        (reply_with(0), 0),
        (Reply(0, ""), 0),
        (Reply(0, "there is none"), 0),
        (Reply(0, "[100, 100, 500, 500]"), 0),
        (Reply(0, FAILED_ANSWER), 0),
        (Reply(0, "", ReplyRecord(call={"error": "HTTP 500"})), 0),
    ],
)
def test_first_box_decides_and_all_else_misses(reply: Reply, value: float) -> None:
    assert value_of(reply) == value


OTHER = (120.0, 60.0, 180.0, 90.0)  # In thousandths: 600, 600, 900, 900


@pytest.mark.parametrize("objects", [(OBJECT, OTHER), (OTHER, OBJECT)])
def test_of_several_objects_the_nearest_counts(objects: tuple[Box, ...]) -> None:
    data = dataset_of([query(0, *objects)])
    published = figure(90.0, metric="acc@0.5", conditions=Conditions(iou="unknown"))
    assert attempt(published, predictions(data, [reply_with(0, RIGHT)])).value == 100


@pytest.mark.parametrize(("iou", "value"), [("unknown", 100), (">=", 100), (">", 0)])
def test_iou_of_a_half_hits_unless_figure_wants_more(iou: str, value: float) -> None:
    assert value_of(reply_with(0, HALF), iou=iou) == value


def test_other_thresholds() -> None:
    # IoU 0.8: of ten thresholds it passes 0.5, 0.55 … 0.8
    reply = reply_with(0, (100, 100, 420, 500))
    for metric, value in {
        "acc@0.75": 100,
        "acc@0.9": 0,
        "mean of acc@0.5 to acc@0.95": 70,
    }.items():
        assert value_of(reply, metric=metric) == pytest.approx(value)


def test_rejection_is_right_where_there_is_no_object() -> None:
    data = dataset_of([query(0), query(1), query(2)])
    replies = [reply_with(0), reply_with(1, RIGHT), Reply(2, "")]
    tried = attempt(figure(90.0), predictions(data, replies))
    assert tried.hits == {"RefCOCO": {0: 1.0, 1: 0.0, 2: 0.0}}


def test_f1_is_that_of_the_score() -> None:
    replies = [reply_with(0, RIGHT, ELSEWHERE), reply_with(1, RIGHT), Reply(2, FAILED_ANSWER)]
    assert value_of(*replies, metric="F1@0.5") == pytest.approx(100 * 4 / 6)
    assert FIGURE_METRICS["F1@0.5"].metric is F1_FAILED_MISSED


def test_rows_weigh_as_they_do_in_the_metric() -> None:
    data = dataset_of([query(at, OBJECT) for at in range(3)])
    replies = [reply_with(0, RIGHT, ELSEWHERE), reply_with(1, RIGHT), Reply(2, FAILED_ANSWER)]
    tried = attempt(figure(90.0, metric="F1@0.5"), predictions(data, replies))
    assert tried.hits == {"RefCOCO": {0: pytest.approx(2 / 3), 1: 1.0, 2: 0.0}}
    assert tried.weights == {"RefCOCO": {0: 3, 1: 2, 2: 1}}
    shares = [tried.hits["RefCOCO"][at] * tried.weights["RefCOCO"][at] for at in range(3)]
    assert 100 * sum(shares) / 6 == pytest.approx(tried.value)
    assert not attempt(figure(90.0), predictions(data, replies)).weights


@pytest.mark.parametrize(("metric", "value"), [("point in box", 50), ("points in mask", 50)])
def test_points(metric: str, value: float) -> None:
    data = dataset_of([query(0, OBJECT), query(1, OBJECT)], "FindIt_Pascal_point_json_point_2d")
    replies = [Reply(0, '[{"point_2d": [300, 300]}]'), Reply(1, '[{"point_2d": [900, 300]}]')]
    assert attempt(figure(90.0, metric=metric), predictions(data, replies)).value == value


def test_pictures_are_the_unit_and_failed_calls_counted() -> None:
    data = dataset_of([query(at, OBJECT, picture=f"{at // 2}.jpg") for at in range(8)])
    replies = [reply_with(at, RIGHT) for at in range(7)] + [Reply(7, FAILED_ANSWER)]
    tried = attempt(figure(90.0), predictions(data, replies))
    assert (tried.pictures, tried.queries, tried.failed, tried.value) == (4, 8, 1, 87.5)


def test_datasets_weigh_the_same() -> None:
    one = dataset_of([query(at, OBJECT) for at in range(6)])
    other = dataset_of([query(at, OBJECT) for at in range(2)], "FindIt_Probe_xyxy_json_bbox_2d")
    tried = attempt(
        figure(90.0, ("RefCOCO", "Probe")),
        predictions(one, [reply_with(at, RIGHT) for at in range(6)]),
        predictions(other, [reply_with(0, RIGHT), reply_with(1, ELSEWHERE)]),
    )
    assert tried.value == 75.0


def test_same_replies_in_another_convention() -> None:
    data = dataset_of([query(at, OBJECT) for at in range(6)])
    # Pixels, and a deployment that declares thousandths
    replies = [reply_with(at, OBJECT) for at in range(5)] + [reply_with(5, ELSEWHERE)]
    tried = attempt(figure(90.0), predictions(data, replies))
    pixels = Convention(SPACES["pixels"], ORDERS["xyxy"])
    assert tried.value == 0.0
    evidence = Evidence(tried, judge_attempt(tried))
    assert evidence.value_of(evidence.replies_in(pixels)) == pytest.approx(100 * 5 / 6)
    thousandths = pixels._replace(space=SPACES["grid1000"])
    assert evidence.value_of(evidence.replies_in(thousandths)) == 0.0


def test_metric_without_a_measure_is_refused() -> None:
    with pytest.raises(FigureMetricError, match="a set: mIoU is not measured here"):
        figure_metric(figure(40.0, metric="mIoU"))
