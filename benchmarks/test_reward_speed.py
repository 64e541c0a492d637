"""The speed of rewards: a batch against ``json.loads`` of the same replies, in one run.

``python -m pytest benchmarks --benchmark-enable`` prints the times.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from test_speed import best

import vlmeval_findit as findit

TARGET = 12
"""Most times the duration of ``json.loads`` of the reply."""

ROLLOUTS = 8
"""Replies to a prompt, as trainers draw them: they share their truth."""


def batch(count: int, boxes: int) -> tuple[list[str], list[Any]]:
    """Return replies with a number of boxes each, no two alike, and the truths."""
    generator = np.random.default_rng(3)
    corners = generator.integers(0, 500, (count, boxes, 2))
    answered = np.concatenate(
        [corners, corners + generator.integers(50, 500, corners.shape)], axis=-1
    )
    replies = [json.dumps([{"bbox_2d": box} for box in row]) for row in answered.tolist()]
    truths = (answered[::ROLLOUTS] * [0.64, 0.48, 0.64, 0.48]).tolist()
    return replies, [truths[at // ROLLOUTS] for at in range(count)]


@pytest.mark.parametrize("trainer", [None, "trl"])
@pytest.mark.parametrize("boxes", [1, 4])
def test_a_batch_of_rewards(
    boxes: int, trainer: Any, measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    replies, truths = batch(4096 if measures else 64, boxes)
    name, space = "xyxy_json_bbox_2d", "grid1000"

    columns: dict[str, Any] = {
        "completions": [[{"role": "assistant", "content": reply}] for reply in replies],
        "truth": truths,
        "size": [[640, 480]] * len(replies),
        "format": [name] * len(replies),
        "space": [space] * len(replies),
    }
    function = findit.reward_function(trainer or "trl")

    def rewards() -> np.ndarray:
        if trainer is None:
            values = findit.reward(replies, truths, name, sizes=(640, 480), space=space)
            return np.asarray(values)
        return np.array(function(prompts=None, **columns))

    values = rewards()
    # The first of those that share a truth is right.
    assert (values[::ROLLOUTS] == 1).all()
    assert 0 < values.mean() < 1
    seconds, bare = best(
        rewards, lambda: [json.loads(reply) for reply in replies], rounds=21 if measures else 2
    )
    with capsys.disabled():
        print(
            f"\n{boxes} box(es) a reply{f', as {trainer} calls it' if trainer else ''}: "
            f"{len(replies) / seconds:,.0f} rewards a second, {1e6 * seconds / len(replies):.1f} "
            f"µs each, {seconds / bare:.1f} times json.loads (target: at most {TARGET})"
        )
    assert not measures or seconds <= TARGET * bare
