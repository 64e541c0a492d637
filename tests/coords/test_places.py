"""Evidence is counted by places that differ: boxes about one place are one piece of evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from few_fast import few_fast
from reproductions import deployed, figure
from simulated_deployments import convention

from vlmeval_findit.coords import (
    X_FIRST,
    AnsweredQuery,
    Convention,
    ProbeVerdict,
    diagnose,
    diagnose_points,
    judge_probe,
    run_arrays,
    score_check,
)
from vlmeval_findit.reproduction import FigureVerdict, find_causes, judge_attempt

PIXELS = convention("pixels/xyxy")
Layout = Sequence[tuple[tuple[float, ...], tuple[float, ...]]]  # Places, and where misses are

# Of images of 200 x 150 pixels; each is a convention's map of its place, or any box
LAYOUTS: dict[str, Layout] = {
    "one place": [((10, 10, 50, 50), (60, 62, 90, 95))],
    "one place, misses of its size": [((10, 10, 50, 50), (100, 90, 140, 130))],
    "one place, misses in thousandths": [((40, 30, 100, 90), (200, 200, 500, 600))],
    "two places": [
        ((20, 30, 80, 90), (100, 200, 400, 600)),
        ((120, 15, 180, 60), (600, 100, 900, 400)),
    ],
    "three places": [
        ((20, 30, 80, 90), (30, 20, 90, 80)),
        ((120, 15, 180, 60), (15, 120, 60, 180)),
        ((100, 90, 160, 130), (90, 100, 130, 160)),
    ],
}


def fixed_camera(layout: Layout, jitter: int, declared: Convention = PIXELS) -> list[AnsweredQuery]:
    """Return answers of which half are right and half are the miss of their place."""
    rng = np.random.default_rng(7)
    answers = []
    for at in range(120):
        truth, miss = layout[at % len(layout)]
        stated = truth if at % 2 else miss
        moved = np.array(stated) + rng.integers(-jitter, jitter + 1, 4)
        answers.append(AnsweredQuery(200, 150, f"{at}.png", [truth], [moved.tolist()]))
    return answers


def is_alarmed_by_coords(answers: Sequence[AnsweredQuery]) -> bool:
    return diagnose(run_arrays(answers), PIXELS).verdict.alarms


def is_alarmed_by_probe(answers: Sequence[AnsweredQuery]) -> bool:
    verdict = judge_probe(answers, PIXELS, PIXELS).verdict
    return verdict.is_fault or verdict is ProbeVerdict.NAMED


def is_alarmed_after_scoring(answers: Sequence[AnsweredQuery]) -> bool:
    return score_check.warning_of_boxes(answers, PIXELS) is not None


def is_blamed_by_reproduce(answers: Sequence[AnsweredQuery]) -> bool:
    tried = deployed(answers, figure(95.0), space="pixels")
    judgement = judge_attempt(tried)
    assert judgement.verdict is FigureVerdict.LOWER
    causes = [look.cause for look in find_causes(tried, judgement) if look.cause is not None]
    return bool(causes)


def is_alarmed_by_points(answers: Sequence[AnsweredQuery]) -> bool:
    points = [each._replace(numbers=[2 * box[:2] for box in each.numbers]) for each in answers]
    declared = Convention(PIXELS.space, X_FIRST)
    return diagnose_points(run_arrays(points), declared).verdict.alarms


ASKED = [
    is_alarmed_by_coords,
    is_alarmed_by_probe,
    is_alarmed_after_scoring,
    is_blamed_by_reproduce,
    is_alarmed_by_points,
]


@pytest.mark.parametrize("is_alarmed", ASKED)
@pytest.mark.parametrize("jitter", few_fast([0, 2], 1))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_wrong_answer_often_names_no_convention(
    layout: str, jitter: int, is_alarmed: Callable[[Sequence[AnsweredQuery]], bool]
) -> None:
    assert not is_alarmed(fixed_camera(LAYOUTS[layout], jitter))


def places_that_differ(queries: int) -> list[AnsweredQuery]:
    """Return answers in thousandths about objects anywhere."""
    rng = np.random.default_rng(3)
    answers = []
    for at in range(queries):
        corner = rng.random(2) * (0.6, 0.6)
        share = np.concatenate([corner, corner + 0.1 + 0.3 * rng.random(2)])
        truth = (share * (200, 150, 200, 150)).round()
        numbers = (share * 1000).round().tolist()
        answers.append(AnsweredQuery(200, 150, f"{at}.png", [truth.tolist()], [numbers]))
    return answers


@pytest.mark.parametrize("is_alarmed", ASKED)
def test_a_convention_at_places_that_differ_stays_named(
    is_alarmed: Callable[[Sequence[AnsweredQuery]], bool],
) -> None:
    assert is_alarmed(places_that_differ(60))


def test_how_often_answers_repeat_changes_no_verdict() -> None:
    once = places_that_differ(30)
    often = [each._replace(image=f"{number} {each.image}") for number in range(8) for each in once]
    results = [diagnose(run_arrays(answers), PIXELS) for answers in (once, often)]
    assert results[0].verdict is results[1].verdict
    assert results[0].places == pytest.approx(results[1].places)
    assert results[0].fit.llr == pytest.approx(results[1].fit.llr)


def test_a_box_again_and_again_is_one_answer() -> None:
    answers = [each._replace(numbers=[(250, 250, 750, 750)]) for each in places_that_differ(60)]
    assert run_arrays(answers).places == pytest.approx(1)


def test_objects_of_another_size_are_another_place() -> None:
    answers = places_that_differ(1) * 2
    answers[1] = answers[1]._replace(width=400, height=300)
    assert run_arrays(answers).places > 1
