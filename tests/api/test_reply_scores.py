"""Replies without a run: their boxes in pixels, and their scores."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scored_runs import World, failing, saying, speaking

import vlmeval_findit as findit
from vlmeval_findit.analysis import run_intervals
from vlmeval_findit.benchmarks.findit import BENCHMARK
from vlmeval_findit.boxes import FormatFailure
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import FAILED_ANSWER, IdentityError, Reply, ReplyRecord

SIZE = (640, 480)
BOX = [[64, 48, 320, 240]]
BOXES = findit.ReplyKind.BOXES
NOT_READABLE = findit.ReplyKind.NOT_READABLE

# --- read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ('[{"bbox": [0, 0, 1000, 500]}]', BOXES, None),
        ('```json\n[{"bbox": [0, 0, 1000, 500]}]\n```', BOXES, None),
        ('[{"bbox": [0, 0, 1000, 500]}, {"box": 3}]', BOXES, FormatFailure.WRONG_KEY),
        ("[]", findit.ReplyKind.NO_BOX, None),
        ("", NOT_READABLE, FormatFailure.EMPTY),
        ("There is no such thing.", NOT_READABLE, FormatFailure.NOT_JSON),
        ('[{"bbox": [0, 0,', NOT_READABLE, FormatFailure.TRUNCATED),
        (None, findit.ReplyKind.FAILED, FormatFailure.FAILED_CALL),
        (f"{FAILED_ANSWER} via API.", findit.ReplyKind.FAILED, FormatFailure.FAILED_CALL),
    ],
)
def test_what_kind_of_answer(
    text: str | None, kind: findit.ReplyKind, reason: FormatFailure | None
) -> None:
    answer = findit.read(text, "xyxy_json", size=SIZE, space="grid1000")
    assert (answer.kind, answer.reason) == (kind, reason)
    assert answer.boxes == (((0.0, 0.0, 640.0, 240.0),) if kind is findit.ReplyKind.BOXES else ())


def test_labels_and_frames() -> None:
    reply = '[{"frame_idx": 2, "label": "cat", "bbox": [0, 0, 500, 500]}]'
    answer = findit.read(reply, "xyxy_json", size=SIZE, space="grid1000", frames=3, multilabel=True)
    assert (answer.labels, answer.frames) == (("cat",), (1,))
    # Over frames the release does not take the empty list for adherent; it is an answer all the
    # same.
    assert findit.read("[]", "xyxy_json", size=SIZE, space="unit", frames=3).kind.value == "no box"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "xyxy_jsn"}, "unknown output format 'jsn': did you mean json"),
        ({"format": "multilabel_xyxy_json"}, "multilabel=True"),
        ({"space": "grid100"}, "did you mean grid1000"),
        ({"space": None}, "not guessed(.|\n)*grid1000"),
        ({"frames": 0}, "frames: 0"),
        ({"text": b"[]"}, "bytes is neither text nor"),
        ({"size": (640.5, 480)}, "whole pixels"),
        ({"size": (0, 480)}, r"size \(0, 480\)"),
    ],
)
def test_what_cannot_be_read(change: dict[str, Any], message: str) -> None:
    asked = {"text": "[]", "format": "xyxy_json", "size": SIZE, "space": "unit"}
    with pytest.raises((ValueError, TypeError), match=message):
        findit.read(**{**asked, **change})


def test_a_recorded_space_is_never_overruled_silently() -> None:
    reply = Reply(7, "[0, 0, 500, 500]", ReplyRecord(space={"kind": "grid1000"}))
    assert findit.read(reply, "xyxy_text", size=SIZE).boxes == ((0.0, 0.0, 320.0, 240.0),)
    with pytest.raises(IdentityError, match="grid1000"):
        findit.read(reply, "xyxy_text", size=SIZE, space="pixels")


# --- score ----------------------------------------------------------------------------------------

NAMES = ("FindIt_Pascal_xyxy_json_bbox_2d", "FindIt_Pascal_multilabel_cxcywh_json_nested")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["speaks", "fails", "talks"])
def test_the_values_are_those_of_the_command(world: World, name: str, kind: str) -> None:
    answer = {"speaks": speaking(name, 0.7, 30), "fails": failing, "talks": saying("no")}[kind]
    run = world.run("Model", name, answer)
    dataset = load_dataset(name)
    variant = dataset.variant
    queries = [dataset.queries[row.index] for row in run.rows]
    result = findit.score(
        [row["prediction"] for row in json.loads(run.path.read_text())],
        [query.truth for query in queries],
        variant.format,
        sizes=[(query.width, query.height) for query in queries],
        space="grid1000",
        multilabel=variant.multilabel,
        images=[query.images[0] for query in queries],
    )
    # To the last digit.
    misses = BENCHMARK.headline_counting_failures
    assert result.metric_values == {**run.metric_values, misses.name: misses.value(run.sums)}
    assert result.failed == run.failed
    expected = run_intervals(run)
    assert {name: result.intervals[name] for name in expected} == expected
    ours, theirs = (
        [(row.sums, row.reason, row.failed, row.details["ious"]) for row in rows]
        for rows in (result.queries, run.rows)
    )
    assert ours == theirs


def test_boxes_in_another_space_are_doubted() -> None:
    generator = np.random.default_rng(1)
    corners = generator.integers(0, 200, (300, 1, 2))
    truths = np.concatenate([corners, corners + generator.integers(60, 240, corners.shape)], -1)
    replies = [str(box.tolist()) for box in truths]
    arguments = {"truths": truths, "format": "xyxy_text", "sizes": SIZE}
    right = findit.score(replies, space="pixels", **arguments)
    assert (right.metric_values["F1@0.5"], right.coords_doubt) == (100, None)
    wrong = findit.score(replies, space="grid1000", **arguments)
    assert "pixels" in str(wrong.coords_doubt)
    nothing = findit.score([], [], "xyxy_json", sizes=[], space="unit")
    assert (nothing.queries, nothing.intervals, nothing.failed) == ((), {}, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truths": []}, "0 truths for 2 replies"),
        ({"sizes": [SIZE]}, "1 sizes for 2 replies"),
        ({"sizes": [SIZE, (640, -1)]}, r"size \(640, -1\)"),
        ({"images": ["a"]}, "1 images for 2"),
        ({"truths": [BOX, [[float("nan"), 0, 1, 1]]]}, "truth 1"),
        ({"truths": [BOX, [64, 48, 320, 240]]}, "truth 1: boxes should be"),
        ({"truths": [BOX, [[320, 48, 64, 240]]]}, "truth 1: .*x1 <= x2"),
        ({"truths": [BOX, findit.truth(BOX, ["cat"])]}, "truth 1: it has labels, but multilabel=F"),
        ({"multilabel": True}, "truth 0: it has no labels"),
        ({"truths": [BOX, findit.truth(BOX, frames=[1])]}, r"truth 1: it is in frames \{1\}"),
    ],
)
def test_what_cannot_be_scored(change: dict[str, Any], message: str) -> None:
    arguments = {"replies": ["[]", "[]"], "truths": [BOX, []], "sizes": SIZE, "space": "grid1000"}
    with pytest.raises(ValueError, match=message):
        findit.score(**{**arguments, "format": "xyxy_text", **change})


def test_nothing_to_score() -> None:
    result = findit.score([], [], "xyxy_json", sizes=[], space="unit")
    assert (result.queries, result.intervals, result.failed) == ((), {}, 0)
