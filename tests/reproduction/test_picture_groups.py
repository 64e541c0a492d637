"""Losses that lie in some pictures only, and pictures that are harder than others by nature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from every_pair import every_pair
from reproductions import deployed, figure
from simulated_deployments import PROFILES, Habit, convention, run

from vlmeval_findit.coords import AnsweredQuery
from vlmeval_findit.reproduction import CAUSES, Attempt, Cause, Evidence, judge_attempt

GRID = convention("grid1000/xyxy")
WEAK = Habit(miou=0.5, wrong=0.1, extra=0.0, missed=0.0)
GOOD = Habit(miou=0.9, wrong=0.05, extra=0.0, missed=0.0)
BAD = Habit(miou=0.9, wrong=0.95, extra=0.0, missed=0.0)

REFERRING = PROFILES["referring"]
MANY_SIZES = replace(
    REFERRING, sizes=tuple((400 + 7 * at, 300 + 11 * at % 97, 1.0) for at in range(97))
)


def cause_of(tried: Attempt) -> Cause | None:
    look = CAUSES["some pictures"].look
    assert look is not None
    return look(Evidence(tried, judge_attempt(tried))).cause


def cause_of_right(answers: Sequence[AnsweredQuery]) -> Cause | None:
    """Return the cause that is named of a right setup whose figure is just too high for it."""
    tried = deployed(answers, figure(50.0))
    ends = judge_attempt(published(tried, tried.value)).difference_interval
    assert ends is not None
    lower = published(tried, min(100.0, tried.value + ends.high + 0.1))
    return cause_of(lower)


def published(tried: Attempt, value: float) -> Attempt:
    """Return the attempt to reproduce another value."""
    return replace(
        tried, setup=replace(tried.setup, figure=replace(tried.setup.figure, value=value))
    )


def with_suffixes(answers: Sequence[AnsweredQuery], suffixes: Sequence[str]) -> list[AnsweredQuery]:
    renamed = []
    for each in answers:
        number = int(each.image.split()[-1])
        renamed.append(each._replace(image=each.image + suffixes[number % len(suffixes)]))
    return renamed


SIZES = {"some sizes": REFERRING, "many sizes": MANY_SIZES}


@every_pair(
    "suffixes, sizes, seed", ["", ".jpg", ".jpg .png .webp"], list(product(SIZES, range(3)))
)
def test_groups_that_are_low_by_chance_are_not_blamed(suffixes: str, sizes: str, seed: int) -> None:
    """However many: those that are low were chosen for being low."""
    answers = run(np.random.default_rng(seed), SIZES[sizes], GRID, WEAK, 200)
    assert cause_of_right(with_suffixes(answers, suffixes.split(" "))) is None


def _of_shapes(wide: Habit, others: Habit) -> list[AnsweredQuery]:
    rng = np.random.default_rng(7)
    answers = []
    for at, habit in enumerate((wide, others)):
        width, height = (640, 480) if habit is wide else (480, 640)
        profile = replace(REFERRING, sizes=((width, height, 1.0),))
        part = run(rng, profile, GRID, habit, 150)
        answers += [each._replace(image=f"{at} {each.image}") for each in part]
    return answers


def test_pictures_that_are_harder_by_nature_are_not_blamed() -> None:
    """Without them the others would be far above the figure, which has them, too."""
    assert cause_of_right(_of_shapes(BAD, GOOD)) is None


def test_pictures_that_lost_what_others_have_are_named() -> None:
    tried = published(deployed(_of_shapes(BAD, GOOD), figure(50.0)), 94.0)
    cause = cause_of(tried)
    assert cause is not None
    assert "about wide pictures" in cause.finding
    # Groups that were chosen for being low prove nothing
    assert not cause.sure
    assert not cause.part
