"""What policies earn that do not look: less than an honest near miss, in every dense reward."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
from few_fast import every_nth_fast

import vlmeval_findit as findit
from vlmeval_findit.api import RewardMetric

SIDE = 1000  # Of all images: thousandths are pixels
Boxes = Sequence[Sequence[float]]


def make_truths(count: int = 300) -> list[Boxes]:
    """Make images with one to four objects of 4 to 60 percent of a side."""
    random = np.random.default_rng(20261130)
    truths = []
    for _ in range(count):
        objects = random.integers(1, 5)
        sides = random.uniform(40, 600, (objects, 2))
        corners = random.uniform(0, 1, (objects, 2)) * (SIDE - sides)
        truths.append(np.hstack((corners, corners + sides)).round().tolist())
    return truths


def missed(true: Boxes, part: float, seed: int) -> Boxes:
    """Return boxes that lie off by up to a part of their sides."""
    random = np.random.default_rng(seed)
    boxes = np.array(true)
    sides = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
    off = np.tile(random.uniform(-part, part, (len(boxes), 2)), 2)
    return np.clip(boxes + off * sides, 0, SIDE).round().tolist()  # type: ignore[no-any-return]


def grid(steps: int, side: int) -> Boxes:
    places = np.linspace(0, SIDE - side, steps).round().astype(int).tolist()
    return [[x, y, x + side, y + side] for x in places for y in places]


TRUTHS = make_truths()
SPRAY = [*grid(10, 100), *grid(5, 250), *grid(3, 400)]
POLICIES: dict[str, list[Boxes]] = {
    "spray": [SPRAY] * len(TRUTHS),
    "a few for every image": [grid(2, 400)] * len(TRUTHS),
    "one for every image": [[[300, 300, 700, 700]]] * len(TRUTHS),
    "the whole image": [[[0, 0, SIDE, SIDE]]] * len(TRUTHS),
    "the box of the prompt": [[[100, 200, 300, 400]]] * len(TRUTHS),
    "refuse": [[]] * len(TRUTHS),
    "the first, ten times": [[true[0]] * 10 for true in TRUTHS],
    "right and sprayed": [[*true, *SPRAY] for true in TRUTHS],
    "hedge": [
        [box for seed in range(4) for box in missed(true, 0.25, 10 * at + seed)]
        for at, true in enumerate(TRUTHS)
    ],
}
NEAR_MISS = [missed(true, 0.25, at) for at, true in enumerate(TRUTHS)]
BETTER = [missed(true, 0.1, at) for at, true in enumerate(TRUTHS)]


def earned(answers: Sequence[Boxes], by: RewardMetric) -> float:
    replies = [json.dumps([{"bbox_2d": box} for box in boxes]) for boxes in answers]
    rewards = findit.reward(
        replies, TRUTHS, "xyxy_json_bbox_2d", sizes=(SIDE, SIDE), space="grid1000", by=by
    )
    return float(rewards.mean())


@pytest.mark.parametrize("policy", every_nth_fast(POLICIES, 2))
def test_not_looking_earns_less_than_a_near_miss(policy: str) -> None:
    for by in ("f1", "soft_f1"):
        assert earned(POLICIES[policy], by) < 0.75 * earned(NEAR_MISS, by), by  # type: ignore[arg-type]


def test_the_soft_reward_grows_with_every_step() -> None:
    """Where hits at an IoU of 0.5 see no difference."""
    far, near, nearer = (
        earned([missed(true, part, at) for at, true in enumerate(TRUTHS)], "soft_f1")
        for part in (0.6, 0.5, 0.4)
    )
    assert far < near < nearer < earned(NEAR_MISS, "soft_f1") < earned(BETTER, "soft_f1")


def test_what_the_page_says_of_other_rewards() -> None:
    assert earned(POLICIES["spray"], "iou") > 0.3
    assert earned(POLICIES["right and sprayed"], "iou") == pytest.approx(1, abs=0.01)
    assert earned(POLICIES["refuse"], "adherence") == 1
