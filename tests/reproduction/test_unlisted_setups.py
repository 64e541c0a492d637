"""Faults that are in no list of the code: no sure cause is wrong, and what is named is right."""

from __future__ import annotations

from dataclasses import replace

import pytest
from few_fast import few_fast
from unlisted_setups import WRONG, Model, attempt, is_right, right, right_models

from vlmeval_findit.reproduction import Attempt, Cause, find_causes, judge_attempt

# A fault of each kind, that fast machines look at in a second
_QUICK = (
    "mirrored",
    "every third call has no picture",
    "a cache by picture",
    "every answer is the one before",
    "answers are late by up to eight rows",
    "a third are answers to any request",
    "four corners",
)


def causes_of(tried: Attempt) -> list[Cause]:
    looks = find_causes(tried, judge_attempt(tried))
    return [look.cause for look in looks if look.cause is not None]


def _slow_but_quick() -> list[object]:
    return [pytest.param(name, marks=() if name in _QUICK else pytest.mark.slow) for name in WRONG]


@pytest.mark.parametrize("name", _slow_but_quick())
def test_no_sure_cause_of_an_unlisted_fault_is_wrong(name: str) -> None:
    wrong = WRONG[name]
    tried = attempt(wrong.fault, writes=wrong.writes)
    causes = causes_of(tried)
    rightly = [cause for cause in causes if is_right(wrong, cause)]
    assert bool(rightly) == bool(wrong.causes)
    assert not [cause for cause in causes if cause.sure and cause not in rightly]
    # What explains nothing prints no value; what is sure agrees with the figure, or is stated.
    assert all(cause.explains is None or cause.explains > tried.value for cause in causes)


@pytest.mark.slow
@pytest.mark.parametrize("at", range(0, 60, 4))
def test_right_setups_of_many_qualities_are_not_blamed(at: int) -> None:
    model, writes, seed = right_models()[at]
    tried = attempt(right, model, seed=seed, writes=writes)
    ends = judge_attempt(replace_figure(tried, tried.value)).difference_interval
    assert ends is not None
    lower = replace_figure(tried, min(100.0, tried.value + ends.high + 0.1))
    assert not causes_of(lower)


def replace_figure(tried: Attempt, value: float) -> Attempt:
    """Return an attempt to reproduce another value."""
    figure = replace(tried.setup.figure, value=value)
    return replace(tried, setup=replace(tried.setup, figure=figure))


_STATED = ["checkpoint", "failed calls", "truncation", "unseen pictures", "other requests"]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("smart_resize 0: factor 32, at least 521460", ["coordinates"]),
        ("a gateway falls back to another model in pixels", []),
    ],
)
def test_what_is_stated_is_always_looked_at(name: str, more: list[str]) -> None:
    tried = attempt(WRONG[name].fault)
    names = [look.name for look in find_causes(tried, judge_attempt(tried))]
    assert names == [*_STATED, *more]


@pytest.mark.parametrize(
    ("name", "words"),
    few_fast(
        [
            ("a fifth are empty", "84 are empty"),
            ("four corners", 'not an object 420; for example "[18, 30, 507, 30'),
            ("a third ends early", "end before their box does"),
            ("a fifth refuse", "have words and no number, as \"I'm sorry"),
            ("decimal commas", 'for example "[0,018; 0,030'),
            ("in words", 'not JSON 420; for example "x from 18 to 507'),
        ],
        3,
    ),
)
def test_boxless_replies_are_told_by_what_they_are(name: str, words: str) -> None:
    wrong = WRONG[name]
    (cause, *_) = causes_of(attempt(wrong.fault, Model()))
    assert words in cause.finding
    assert "Perhaps no picture" not in cause.advice, "prompts have the tokens of pictures"


def test_a_cause_that_explains_nothing_has_no_value() -> None:
    (cause,) = causes_of(attempt(WRONG["decimal commas"].fault))
    assert cause.explains is None
    assert not cause.sure
