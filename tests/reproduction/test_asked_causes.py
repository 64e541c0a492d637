"""Causes that are tried on a few pictures: one condition as published, paired with the attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from reproductions import (
    attempt,
    dataset_of,
    deployed,
    figure,
    predictions,
    query,
    reply_with,
)
from simulated_deployments import PROFILES, Habit, convention, run

from vlmeval_findit.coords import AnsweredQuery
from vlmeval_findit.data import Conditions, ImageBounds, PublishedDecoding
from vlmeval_findit.reproduction import (
    CAUSES,
    PICTURES_A_DATASET,
    Attempt,
    ConditionAgreement,
    ConditionSet,
    Evidence,
    Setup,
    check_bounds,
    check_decoding,
    check_prompt,
    find_causes,
    judge_attempt,
    paired_change,
)
from vlmeval_findit.statistics import Interval

TOLD = Conditions(
    prompt="qwen3-vl-1",
    format="xyxy_json_bbox_2d",
    bounds=ImageBounds(min_pixels=786_432, max_pixels=13_107_200),
    decoding=PublishedDecoding(
        temperature=0.7, top_p=0.8, top_k=20, max_tokens=32768, thinking=False
    ),
)


def theirs(name: str) -> ConditionSet:
    return ConditionSet(name, "as the authors", "as the user", ConditionAgreement.YOURS)


@dataclass
class Deployment:
    """Answers most rows wrongly as the user asks, and rightly as ``right`` says."""

    right: float
    queries: int = 120
    asked: list[tuple[Setup, int]] = field(default_factory=list)

    def answers(self, wrong: float, queries: int) -> list[AnsweredQuery]:
        """Return the answers of a model about the same pictures, so many of them wrong."""
        habit = Habit(miou=0.9, wrong=0.0, extra=0.0, missed=0.0)
        rng = np.random.default_rng(3)
        answers = run(rng, PROFILES["referring"], convention("grid1000/xyxy"), habit, queries)
        is_wrong = np.random.default_rng(4).random(queries) < wrong
        return [
            each._replace(numbers=[[at, 0, at + 9, 9]]) if miss else each
            for at, (each, miss) in enumerate(zip(answers, is_wrong, strict=True))
        ]

    def attempt(self, *conditions: ConditionSet, told: Conditions = TOLD) -> Attempt:
        return deployed(
            self.answers(0.3, self.queries), figure(92.0, conditions=told), conditions=conditions
        )

    def ask(self, setup: Setup, pictures: int) -> Attempt:
        self.asked.append((setup, pictures))
        return deployed(self.answers(1 - self.right, self.queries // 2), figure(92.0))


def evidence(tried: Attempt) -> Evidence:
    return Evidence(tried, judge_attempt(tried))


# --- prompt ---------------------------------------------------------------------------------------


def test_published_prompt_is_tried_where_the_user_has_another() -> None:
    deployment = Deployment(right=0.95)
    tried = deployment.attempt(theirs("prompt"))
    entry = replace(tried.setup.entry, system="a.txt", prompt_template="b.txt")
    tried = replace(tried, setup=replace(tried.setup, entry=entry))
    noticed = check_prompt(evidence(tried), deployment.ask)
    ((setup, pictures),) = deployment.asked
    assert pictures == PICTURES_A_DATASET
    assert setup.prompts == "qwen3-vl-1"
    assert setup.variants[0].format == "xyxy_json_bbox_2d"
    assert (setup.entry.system, setup.entry.prompt_template) == (None, None)
    assert noticed.cause is not None
    assert noticed.cause.sure
    assert noticed.cause.finding.startswith("The published prompt (qwen3-vl-1) gives +")
    words = "--prompt-template and --system"
    assert noticed.cause.advice == f"Type the same command without {words}"
    # 26 to 27 points more on the same rows
    assert noticed.cause.explains == pytest.approx(95, abs=4)


def test_published_format_is_tried_without_a_published_prompt() -> None:
    deployment = Deployment(right=0.95)
    told = Conditions(format="xyxy_json")
    noticed = check_prompt(
        evidence(deployment.attempt(theirs("format"), told=told)), deployment.ask
    )
    assert deployment.asked[0][0].variants[0].format == "xyxy_json"
    assert noticed.cause is not None
    assert noticed.cause.finding.startswith("The published format (xyxy_json) gives +")


@pytest.mark.parametrize("right", [0.7, 0.5])
def test_prompt_that_gains_nothing_is_not_blamed(right: float) -> None:
    deployment = Deployment(right=right)
    noticed = check_prompt(evidence(deployment.attempt(theirs("prompt"))), deployment.ask)
    assert noticed.cause is None
    assert "points" in noticed.result


def test_gain_that_may_be_chance_is_not_sure() -> None:
    deployment = Deployment(right=0.95, queries=20)
    tried = deployment.attempt(theirs("prompt"))
    noticed = check_prompt(evidence(tried), deployment.ask)
    assert noticed.cause is not None
    assert not noticed.cause.sure
    assert noticed.cause.finding.endswith("which may be chance")


OBJECT = (20.0, 10.0, 100.0, 50.0)  # Of a picture of 200 x 100
HIT, MISS = (100, 100, 500, 500), (0, 0, 9, 9)


def by_hand(hits: str, published: float = 92.0) -> Attempt:
    """Return an attempt with a picture for each sign: 1 for a hit."""
    data = dataset_of([query(at, OBJECT) for at in range(len(hits))])
    replies = [reply_with(at, HIT if hit == "1" else MISS) for at, hit in enumerate(hits)]
    return attempt(figure(published, conditions=TOLD), predictions(data, replies))


def test_only_rows_that_both_asked_are_compared() -> None:
    change = paired_change(evidence(by_hand("0001111111")), by_hand("11111"))
    assert change is not None
    assert change.value == pytest.approx(60)


def test_one_picture_more_of_six_may_be_chance() -> None:
    tried = by_hand("000111")
    tried = replace(tried, setup=replace(tried.setup, conditions=(theirs("prompt"),)))
    for other, is_sure in {"001111": None, "111111": False}.items():
        better = by_hand(other)
        noticed = check_prompt(evidence(tried), lambda setup, pictures, better=better: better)
        assert (noticed.cause and noticed.cause.sure) is is_sure


def test_a_value_without_a_cause_is_at_most_all() -> None:
    """70 of 100, and 60 points more on the first rows."""
    tried = by_hand("0001111111")
    tried = replace(tried, setup=replace(tried.setup, conditions=(theirs("prompt"),)))
    better = by_hand("11111")
    noticed = check_prompt(evidence(tried), lambda setup, pictures: better)
    assert noticed.cause is not None
    assert noticed.cause.explains == 100.0


@pytest.mark.parametrize(("gain", "closes"), [(1.9, False), (2.0, True), (9.0, True)])
def test_points_close_what_reaches_the_figure(gain: float, closes: bool) -> None:
    """The difference with the tolerance reaches from -6 to -2."""
    tried = evidence(by_hand("0001111111"))
    judged = replace(tried.judgement, difference_interval=Interval(-6.0, -2.0))
    assert replace(tried, judgement=judged).closes(gain) is closes


@pytest.mark.parametrize(
    ("gain", "agrees"), [(1.9, False), (2.0, True), (6.0, True), (6.1, False), (9.0, False)]
)
def test_points_agree_where_they_do_not_exceed_the_figure(gain: float, agrees: bool) -> None:
    """The difference is -3, and its interval reaches from -6 to -2: by three points at most."""
    tried = evidence(by_hand("0001111111"))
    judged = replace(tried.judgement, difference=-3.0, difference_interval=Interval(-6.0, -2.0))
    assert replace(tried, judgement=judged).agrees(gain) is agrees


@pytest.mark.parametrize(
    ("value", "of_rest", "said"),
    [
        (72.0, True, "part"),
        (95.0, True, "sure"),
        (97.0, True, "perhaps"),
        (97.0, False, "sure"),
    ],
)
def test_others_that_exceed_the_figure_prove_nothing(
    value: float, of_rest: bool, said: str
) -> None:
    tried = evidence(by_hand("0001111111"))
    judged = replace(
        tried.judgement,
        measured=70.0,
        difference=-20.0,
        difference_interval=Interval(-26.0, -15.0),
    )
    cause = replace(tried, judgement=judged).cause("format", "", value, "", of_rest=of_rest)
    words = "sure" if cause.sure else "part" if cause.part else "perhaps"
    assert words == said
    assert cause.explains == value


# --- bounds and decoding --------------------------------------------------------------------------


def asked_settings(check: Any, name: str, settings: dict[str, Any]) -> dict[str, Any]:
    deployment = Deployment(right=0.95)
    tried = deployment.attempt(theirs(name))
    entry = replace(tried.setup.entry, settings=settings)
    tried = replace(tried, setup=replace(tried.setup, entry=entry))
    noticed = check(evidence(tried), deployment.ask)
    assert noticed.cause is not None
    assert noticed.cause.name == name
    return dict(deployment.asked[0][0].entry.settings)


def test_published_bounds_replace_those_of_the_user() -> None:
    published = {"min_pixels": 786_432, "max_pixels": 13_107_200}
    asked = asked_settings(check_bounds, "bounds", {"max_pixels": 200_704, "dtype": "half"})
    assert asked == {**published, "dtype": "half"}
    in_request = {"mm_processor_kwargs": {"max_pixels": 200_704}, "temperature": 0.5}
    asked = asked_settings(check_bounds, "bounds", in_request)
    assert asked == {"mm_processor_kwargs": published, "temperature": 0.5}


def test_bounds_of_an_unlisted_model_are_asked_as_published() -> None:
    deployment = Deployment(right=0.95)
    tried = deployment.attempt(theirs("bounds"))
    typed = {"mm_processor_kwargs": {"max_pixels": 200_704}}
    entry = replace(tried.setup.entry, name="mine", like=None, settings=typed)
    tried = replace(tried, setup=replace(tried.setup, entry=entry))
    assert evidence(tried).row is None
    check_bounds(evidence(tried), deployment.ask)
    published = {"min_pixels": 786_432, "max_pixels": 13_107_200}
    assert deployment.asked[0][0].entry.settings == {"mm_processor_kwargs": published}


def test_published_decoding_replaces_that_of_the_user() -> None:
    theirs = {"temperature": 1.0, "max_tokens": 100, "seed": 3, "dtype": "half"}
    asked = asked_settings(check_decoding, "decoding", theirs)
    assert asked == {
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
        "max_new_tokens": 32768,
        "dtype": "half",
    }


# --- when calls are made --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agreement", [ConditionAgreement.AS_PUBLISHED, ConditionAgreement.CANNOT_BE_SET]
)
def test_what_is_as_published_or_cannot_be_set_asks_nothing(agreement: ConditionAgreement) -> None:
    deployment = Deployment(right=0.95)
    names = ("prompt", "bounds", "decoding")
    tried = deployment.attempt(*[replace(theirs(name), agreement=agreement) for name in names])
    looks = list(find_causes(tried, judge_attempt(tried), deployment.ask))
    assert [each.name for each in looks] == list(CAUSES)
    assert not deployment.asked


def test_calls_come_last_and_end_with_the_first_that_explains() -> None:
    deployment = Deployment(right=0.95)
    tried = deployment.attempt(theirs("prompt"), theirs("bounds"), theirs("decoding"))
    looks = [each.name for each in find_causes(tried, judge_attempt(tried), deployment.ask)]
    assert looks[-1] == "prompt"
    assert len(deployment.asked) == 1


def test_possible_cause_is_no_reason_to_stop() -> None:
    deployment = Deployment(right=0.95)
    rng = np.random.default_rng(5)
    lost = []
    for each in deployment.answers(0.0, 120):
        ((left, top, right, bottom),) = each.numbers
        x = round(rng.random() * (1000 - right + left))
        y = round(rng.random() * (1000 - bottom + top))
        lost.append(each._replace(numbers=[[x, y, x + right - left, y + bottom - top]]))
    told = figure(92.0, conditions=TOLD)
    tried = deployed(lost, told, conditions=[theirs("prompt")])
    looks = {each.name: each for each in find_causes(tried, judge_attempt(tried), deployment.ask)}
    possible = looks["engine"].cause
    assert possible is not None
    assert not possible.sure
    assert possible.explains == 100
    assert "prompt" in looks


def test_without_a_way_to_ask_only_replies_are_looked_at() -> None:
    tried = Deployment(right=0.95).attempt(theirs("prompt"))
    names: Sequence[str] = [each.name for each in find_causes(tried, judge_attempt(tried))]
    assert not {"prompt", "bounds", "decoding"} & {*names}
