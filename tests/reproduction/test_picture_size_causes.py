"""Pictures that were shown in other sizes than published, by records and by tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from reproductions import deployed, figure
from simulated_deployments import PROFILES, Habit, convention, run

from vlmeval_findit.boxes import smart_resize
from vlmeval_findit.coords import AnsweredQuery
from vlmeval_findit.data import Conditions, ImageBounds
from vlmeval_findit.protocol import Reply, ReplyRecord
from vlmeval_findit.reproduction import (
    CauseLook,
    ConditionAgreement,
    ConditionSet,
    Evidence,
    check_picture_sizes,
    judge_attempt,
    shown_tokens,
    tiles_of,
)

RECORDED = Callable[[AnsweredQuery], ReplyRecord]


def checked(
    recorded: RECORDED,
    bounds: ImageBounds | None = None,
    condition: ConditionSet | None = None,
    model: str = "Qwen3-VL",
) -> CauseLook:
    rng = np.random.default_rng(0)
    habit = Habit(miou=0.9, extra=0.0, missed=0.0)
    answers = run(rng, PROFILES["referring"], convention("grid1000/xyxy"), habit, 60)
    told = Conditions(bounds=bounds if bounds is not None else "unknown")

    def change(reply: Reply) -> Reply:
        return Reply(reply.index, reply.text, recorded(answers[reply.index]))

    conditions = [condition] if condition is not None else []
    tried = deployed(
        answers, figure(99.9, conditions=told), change, conditions=conditions, model=model
    )
    return check_picture_sizes(Evidence(tried, judge_attempt(tried)))


# --- records of models in this process ------------------------------------------------------------


def shown_within(**bounds: int) -> RECORDED:
    def record(answer: AnsweredQuery) -> ReplyRecord:
        size = [answer.width, answer.height]
        image: dict[str, Any] = {"original": size, "sent": size, "processed": size}
        return ReplyRecord(images=({**image, "bounds": bounds},))

    return record


def test_recorded_bounds_are_compared_with_the_published() -> None:
    here = shown_within(min_pixels=3136, max_pixels=200704)
    published = ImageBounds(min_pixels=3136, max_pixels=1605632)
    noticed = checked(here, published)
    assert noticed.cause is not None
    assert not noticed.cause.sure
    assert noticed.cause.explains is None
    words = "max_pixels 200704, published min_pixels 3136, max_pixels 1605632"
    assert words in noticed.cause.finding
    assert checked(here, ImageBounds(max_pixels=200704)).cause is None
    assert checked(here).cause is None


def test_tiles_that_were_recorded() -> None:
    noticed = checked(shown_within(patches=12), ImageBounds(patches=6))
    assert noticed.cause is not None
    assert noticed.cause.finding == "Pictures are shown within patches 12, published patches 6"


# --- tokens of prompts ----------------------------------------------------------------------------


def prompts_of(tokens: Callable[[tuple[int, int]], float], overhead: int = 60) -> RECORDED:
    rng = np.random.default_rng(7)

    def record(answer: AnsweredQuery) -> ReplyRecord:
        words = overhead + int(rng.integers(0, 12))
        return ReplyRecord(tokens={"prompt": round(tokens((answer.width, answer.height))) + words})

    return record


def within(least: int, most: int, side: int = 32) -> Callable[[tuple[int, int]], float]:
    def tokens(size: tuple[int, int]) -> float:
        width, height = smart_resize(size, least, most, side)
        return width * height / side**2

    return tokens


@pytest.mark.parametrize("overhead", [30, 60, 120])
def test_pictures_as_they_are_sent_have_the_expected_tokens(overhead: int) -> None:
    noticed = checked(prompts_of(within(65536, 16777216), overhead))
    assert noticed.cause is None
    assert ", 300 as they are sent (one for 32 x 32 pixels)" in noticed.result


def test_pictures_that_a_server_shrinks() -> None:
    noticed = checked(prompts_of(within(1024, 100_000)))
    assert noticed.cause is not None
    assert noticed.cause.finding.startswith("The server shows pictures smaller: about ")
    assert "without a bound on pixels" in noticed.cause.advice


def test_published_bounds_are_what_is_expected() -> None:
    enlarged = within(786_432, 13_107_200)
    published = ImageBounds(min_pixels=786_432, max_pixels=13_107_200)
    condition = ConditionSet(
        "bounds",
        "min_pixels 786432",
        "",
        ConditionAgreement.CANNOT_BE_SET,
        "start the server with them",
    )
    assert checked(prompts_of(enlarged), published, condition).cause is None
    noticed = checked(prompts_of(within(65536, 16777216)), published, condition)
    assert noticed.cause is not None
    assert noticed.cause.advice == "Start the server with them"
    # Larger than sent is no fault where no bounds are told.
    assert checked(prompts_of(enlarged)).cause is None
    noticed = checked(prompts_of(enlarged), ImageBounds(max_pixels=1_605_632))
    assert noticed.cause is not None
    assert noticed.cause.finding.startswith("The server shows pictures larger")


@pytest.mark.parametrize("model", ["Qwen3-VL", "InternVL3-8B"])
def test_servers_that_count_words_only_show_nothing(model: str) -> None:
    noticed = checked(prompts_of(lambda size: 0), ImageBounds(patches=6), model=model)
    assert noticed.cause is None
    assert noticed.result == "the server counts no tokens of pictures"


def test_nothing_is_read_from_few_or_unknown_tokens() -> None:
    assert "are recorded" in checked(lambda answer: ReplyRecord()).result
    assert "not known" in checked(prompts_of(within(1, 10**9)), model="Gemma4-E4B").result


@pytest.mark.parametrize(
    ("shrunk", "overhead", "fewer"),
    [
        (1.0, 0, False),
        (1.0, 300, False),
        (1.0, -120, False),
        (0.5, 0, True),
        (0.5, 60, True),
        (0.9, 0, False),
    ],
)
def test_areas_and_words_are_told_apart(shrunk: float, overhead: int, fewer: bool) -> None:
    areas = np.tile([160.0, 300.0, 400.0], 30)
    shown = shown_tokens(shrunk * areas + 40 + overhead, np.full(90, 40.0), areas)
    assert shown.growth == pytest.approx(shrunk)
    assert shown.are_fewer is fewer


def test_equal_pictures_have_no_growth() -> None:
    areas = np.full(50, 300.0)
    assert shown_tokens(areas * 0.4 + 40, np.full(50, 40.0), areas).growth is None


# --- tiles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "most", "tiles"),
    [((640, 480), 6, 7), ((640, 480), 12, 13), ((480, 640), 6, 7), ((500, 500), 6, 1)],
)
def test_tiles_with_their_thumbnail(size: tuple[int, int], most: int, tiles: int) -> None:
    assert tiles_of(size, most) == tiles


@pytest.mark.parametrize(("here", "is_cause"), [(6, False), (12, True), (1, True)])
def test_tiles_of_a_server(here: int, is_cause: bool) -> None:
    cut = prompts_of(lambda size: 256 * tiles_of(size, here))
    noticed = checked(cut, ImageBounds(patches=6), model="InternVL3-8B")
    assert (noticed.cause is not None) is is_cause
