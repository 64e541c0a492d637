"""Engines that lose positions, and versions of which a fault is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from few_fast import every_nth_fast
from reproductions import attempt, dataset_of, deployed, figure, predictions, query, reply_with
from simulated_deployments import PROFILES, Habit, Rng, convention, objects, run

from vlmeval_findit.reproduction import (
    CauseLook,
    ConditionAgreement,
    ConditionSet,
    Evidence,
    check_engine,
    judge_attempt,
    known_faults,
)

GOOD = Habit(miou=0.9, wrong=0.06, extra=0.0, missed=0.0)
Numbers = Sequence[float]


def checked(
    engine: str = "",
    change: Callable[[Rng, Numbers], Numbers] = lambda rng, box: box,
    model: str = "Qwen3-VL",
) -> CauseLook:
    rng = np.random.default_rng(1)
    answers = run(rng, PROFILES["referring"], convention("grid1000/xyxy"), GOOD, 100)
    changed = [
        each._replace(numbers=[change(rng, box) for box in each.numbers]) for each in answers
    ]
    condition = ConditionSet("engine", "vllm", engine, ConditionAgreement.YOURS)
    tried = deployed(changed, figure(99.9), conditions=[condition], model=model)
    return check_engine(Evidence(tried, judge_attempt(tried)))


def moved(rng: Rng, box: Numbers) -> Numbers:
    """Lose the position: the box lies anywhere in the picture."""
    left, top, right, bottom = box
    x = round(rng.random() * (1000 - right + left))
    y = round(rng.random() * (1000 - bottom + top))
    return [x, y, x + right - left, y + bottom - top]


def anything(rng: Rng, box: Numbers) -> Numbers:
    (other,) = objects(rng, PROFILES["referring"], 1)
    return [round(1000 * side) for side in other.tolist()]


def test_lost_positions_of_a_version_with_the_fault() -> None:
    noticed = checked("sglang 0.5.16", moved, model="Qwen3.5-9B-nothink")
    assert noticed.cause is not None
    assert noticed.cause.sure
    assert "have the sizes of their objects, and lie elsewhere" in noticed.cause.finding
    assert "sglang 0.5.16: the fused rotary kernel" in noticed.cause.finding
    assert noticed.cause.advice.startswith("Install sglang 0.5.19 or later")
    # Every box that is moved to its object hits, unless it means another one
    assert noticed.cause.explains == pytest.approx(95, abs=5)


@pytest.mark.parametrize("engine", ["", "sglang 0.5.10", "sglang"])
def test_lost_positions_alone_are_a_possible_cause(engine: str) -> None:
    noticed = checked(engine, moved, model="Qwen3.5-9B-nothink")
    assert noticed.cause is not None
    assert not noticed.cause.sure


def test_boxes_that_follow_nothing() -> None:
    noticed = checked("vllm 0.14.0", anything)
    assert noticed.cause is not None
    assert not noticed.cause.sure
    assert noticed.cause.explains is None
    assert "follow no object in any convention" in noticed.cause.finding
    assert "vllm 0.14.0" in noticed.cause.advice


def test_the_surest_fault_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed, *_ = known_faults("vllm", "0.8.1", "Qwen2.5-VL")
    assert confirmed.sure == "confirmed"
    reported = replace(confirmed, sure="reported", lost="something else is lost")
    monkeypatch.setattr(
        "vlmeval_findit.reproduction.engine_cause.engine_faults", lambda: (reported, confirmed)
    )
    noticed = checked("vllm 0.8.1", model="Qwen2.5-VL")
    assert noticed.cause is not None
    assert confirmed.lost[1:] in noticed.cause.finding


@pytest.mark.parametrize(
    ("engine", "model", "is_cause", "result"),
    every_nth_fast(
        [
            ("vllm 0.14.0", "Qwen3-VL", False, "vllm 0.14.0; no fault is known"),
            ("", "Qwen3-VL", False, "not told which program answers"),
            # Confirmed and in its range: it may be
            ("vllm 0.8.1", "Qwen2.5-VL", True, "windows of the vision tower"),
            # Reported, and its cause not known; or the version is not told
            ("vllm 0.11.2", "Qwen3-VL", False, "whether it is this is not known"),
            ("vllm", "Qwen2.5-VL", False, "whether it is this is not known"),
        ],
        2,
    ),
)
def test_known_faults_where_boxes_lie_well(
    engine: str, model: str, is_cause: bool, result: str
) -> None:
    noticed = checked(engine, model=model)
    words = noticed.result if noticed.cause is None else noticed.cause.finding
    assert result in words
    assert (noticed.cause is not None) is is_cause
    if noticed.cause is not None:
        assert not noticed.cause.sure


@pytest.mark.parametrize("is_constant", [True, False])
def test_one_box_for_everything_has_lost_no_position(is_constant: bool) -> None:
    """Objects are of one size, as in a grid: the box has theirs and lies elsewhere."""
    rng = np.random.default_rng(2)
    places = rng.integers(0, (160, 80), (60, 2)).tolist()
    dataset = dataset_of([query(row, (x, y, x + 40, y + 20)) for row, (x, y) in enumerate(places)])
    corners = [(400, 400) if is_constant else rng.integers(0, 800, 2).tolist() for _ in places]
    replies = [reply_with(row, (x, y, x + 200, y + 200)) for row, (x, y) in enumerate(corners)]
    tried = attempt(figure(92.2), predictions(dataset, replies))
    noticed = check_engine(Evidence(tried, judge_attempt(tried)))
    assert (noticed.cause is None) == is_constant
