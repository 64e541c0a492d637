"""Rewards: the score of each query alone, of arguments in many types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vlmeval_findit as findit
from vlmeval_findit.api import RewardMetric
from vlmeval_findit.benchmarks.findit import BENCHMARK
from vlmeval_findit.boxes import BoxToWrite, ReplyFormat, write
from vlmeval_findit.protocol import FAILED_ANSWER

SIZE = (640, 480)
BOX = [[64, 48, 320, 240]]
HIT = "[[100, 100, 500, 500]]"
OPTIONS: dict[str, Any] = {"sizes": SIZE, "space": "grid1000"}

FORMAT = ReplyFormat("json", "xyxy", "bbox_2d")
corner = st.tuples(st.integers(0, 300), st.integers(0, 200))
side = st.tuples(st.integers(20, 300), st.integers(20, 200))
boxes = st.lists(st.builds(lambda a, b: (*a, a[0] + b[0], a[1] + b[1]), corner, side), max_size=3)
noise = st.sampled_from([None, "", "[]", "no", '[{"bbox_2d": [1, 2]}]', f"{FAILED_ANSWER} x"])
written = boxes.map(lambda many: write([BoxToWrite(box, "", 0) for box in many], FORMAT))

OF_BOXES: tuple[RewardMetric, ...] = ("f1", "iou", "adherence")


@given(st.lists(st.tuples(written | noise, boxes), min_size=1, max_size=6))
def test_a_reward_is_the_score_of_the_query_alone(pairs: list[tuple[str | None, Any]]) -> None:
    replies = [reply for reply, _ in pairs]
    truths = [true for _, true in pairs]
    options: dict[str, Any] = {"sizes": SIZE, "space": "pixels"}
    name = "xyxy_json_bbox_2d"
    scored = findit.score(replies, truths, name, **options)
    batch = {by: findit.reward(replies, truths, name, by=by, **options) for by in OF_BOXES}
    for at, row in enumerate(scored.queries):
        alone = {
            by: findit.reward(replies[at], truths[at], name, by=by, **options) for by in OF_BOXES
        }
        for by, value in alone.items():
            np.testing.assert_equal(value, batch[by][at])
        if row.failed:
            assert all(map(np.isnan, alone.values()))
            continue
        assert alone["adherence"] == row.sums["adherent"]
        if truths[at]:
            assert alone["f1"] == pytest.approx(BENCHMARK.query_score(row) / 100)
            assert alone["iou"] == pytest.approx(row.sums["iou_sum"] / row.sums["n_gt"])
        else:
            assert alone["f1"] == alone["iou"] == row.sums.get("negatives_rejected", 0)


class Tensor:
    """What a tensor of another library has, and a list has not."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def tolist(self) -> Any:
        return self.values.tolist()


def test_sizes_and_truths_may_be_tensors_and_arrays() -> None:
    replies = ["[0, 0, 500, 500]"] * 2
    boxes = [[0, 0, 50, 100]]
    for sizes in (
        Tensor([100, 200]),
        Tensor([[100, 200], [100, 200]]),
        np.array([[100, 200]] * 2),
        [Tensor([100, 200])] * 2,
        [Tensor(100), Tensor(200)],
    ):
        for truth in (boxes, Tensor(boxes), [Tensor(boxes[0])]):
            options: Any = {"sizes": sizes, "space": "grid1000"}
            assert findit.reward(replies, [truth] * 2, "xyxy_text", **options).tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"should be .width, height. in whole pixels"):
        findit.reward(replies, [boxes] * 2, "xyxy_text", sizes=Tensor([0.5, 1]), space="grid1000")
    # The rows of an array are new objects at every access.
    truths = np.array([BOX, [[0, 0, 9, 9]], BOX, [[5, 5, 9, 9]]])
    rewards = findit.reward([HIT] * 4, truths, "xyxy_text", **OPTIONS)
    assert rewards.tolist() == [1, 0, 1, 0]
    assert (rewards.dtype, rewards.shape) == (np.float64, (4,))
    assert findit.reward([], [], "xyxy_text", **OPTIONS).shape == (0,)
    with pytest.raises(ValueError, match="1 truths for 2"):
        findit.reward([HIT, HIT], [BOX], "xyxy_text", **OPTIONS)


def in_chat(text: Any) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}]


def test_completions_of_a_chat_are_replies() -> None:
    """As trainers give them to rewards: a list of messages each."""
    right, boxes = "[0, 0, 500, 500]", [[0, 0, 50, 100]]
    options: Any = {"format": "xyxy_text", "sizes": (100, 200), "space": "grid1000"}
    many = [
        in_chat(right),
        in_chat([{"type": "text", "text": right}]),
        [{"role": "user", "content": right}, *in_chat("no"), *in_chat(right)],
        in_chat(None),
    ]
    assert findit.reward(many, [boxes] * 4, **options).tolist() == [1, 1, 1, 0]
    assert findit.score(many, [boxes] * 4, **options).metric_values["Recall"] == 75
    messages = [message for (message,) in many[:2]]
    assert findit.reward(messages, [boxes] * 2, **options).tolist() == [1, 1]
    for reply in (many[0], many[0][0], many[2]):
        assert findit.reward(reply, boxes, **options) == 1
    with pytest.raises(TypeError, match="reply 0: none of the 1 messages is the assistant's"):
        findit.reward([[{"role": "user", "content": right}]], [boxes], **options)
    with pytest.raises(TypeError, match="reply 1: int is neither text nor messages"):
        findit.reward([right, 3], [boxes] * 2, **options)
