"""Which cause is named where a figure is missed, and what it explains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from few_fast import every_nth_fast, few_fast
from reproductions import attempt as hand_made
from reproductions import dataset_of, deployed, figure, predictions, query
from simulated_deployments import PROFILES, Fault, Habit, Rng, convention, run

from vlmeval_findit.coords import Convention
from vlmeval_findit.data import Conditions, PublishedDecoding
from vlmeval_findit.protocol import Reply, ReplyRecord
from vlmeval_findit.reproduction import (
    CAUSES,
    Attempt,
    Cause,
    CauseLook,
    ConditionAgreement,
    ConditionSet,
    Evidence,
    FigureVerdict,
    find_causes,
    judge_attempt,
)

GOOD = Habit(miou=0.9, wrong=0.06, extra=0.0, missed=0.0)
RIGHT = convention("grid1000/xyxy")
PUBLISHED = 92.0
FAILED = ReplyRecord(call={"error": "HTTP 500"})
CUT = ReplyRecord(finish_reason="length")


def attempt(
    says: Callable[[Rng], Convention] | Convention = RIGHT,
    change: Callable[[Reply], Reply] = lambda reply: reply,
    published: float = PUBLISHED,
    queries: int = 80,
    fault: Fault | None = None,
    conditions: Sequence[ConditionSet] = (),
    told: Conditions | None = None,
) -> Attempt:
    """Return the attempt of a model of 92 % on COCO's sizes, through a deployment."""
    rng = np.random.default_rng(1)
    answers = run(rng, PROFILES["referring"], says, GOOD, queries, fault)
    return deployed(answers, figure(published, conditions=told), change, conditions=conditions)


def checked(tried: Attempt) -> list[CauseLook]:
    judgement = judge_attempt(tried)
    assert judgement.verdict is FigureVerdict.LOWER
    return list(find_causes(tried, judgement))


def cause(tried: Attempt) -> Cause:
    """Return the only cause that is named."""
    (noticed,) = [each.cause for each in checked(tried) if each.cause is not None]
    return noticed


@cache
def right_value() -> float:
    return attempt().value


def on_rows(share: float, change: Callable[[Reply], Reply]) -> Callable[[Reply], Reply]:
    """Change a share of the replies, spread evenly."""
    every = round(1 / share)
    return lambda reply: change(reply) if reply.index % every == 0 else reply


# --- nothing is blamed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("published", "queries", "verdict"),
    [
        (92.0, 250, FigureVerdict.AGREES),
        (70.0, 80, FigureVerdict.HIGHER),
        (92.0, 30, FigureVerdict.CANNOT_BE_TOLD),
    ],
)
def test_nothing_is_looked_for_unless_lower(
    published: float, queries: int, verdict: FigureVerdict
) -> None:
    tried = attempt(published=published, queries=queries)
    judgement = judge_attempt(tried)
    assert judgement.verdict is verdict
    assert not list(find_causes(tried, judgement))


def test_of_a_right_setup_every_look_finds_nothing() -> None:
    noticed = checked(attempt(published=99.9))
    assert [each.name for each in noticed] == [name for name, row in CAUSES.items() if row.look]
    assert not any(each.cause for each in noticed)


def test_a_new_cause_is_a_check_and_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    luck = Cause("luck", "The draw was unlucky", None, "Ask all pictures", sure=False)

    def check_luck(evidence: Evidence) -> CauseLook:
        return CauseLook("luck", f"{evidence.attempt.pictures} pictures", luck)

    row = replace(CAUSES["space"], name="luck", look=check_luck)
    monkeypatch.setitem(CAUSES, "luck", row)
    *_, last = checked(attempt(published=99.9))
    assert (last.name, last.cause) == ("luck", luck)


# --- coordinates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("says", "finding", "advice"),
    every_nth_fast(
        [
            ("pixels/xyxy", "The replies are pixels of the image", "--space pixels"),
            (
                "smart_200704_1605632/xyxy",
                "are pixels after smart_resize (200704 to 1605632)",
                """--space '{"kind": "smart_resize", "min_pixels": 200704, """
                """"max_pixels": 1605632}'""",
            ),
            (
                "grid1000/yxyx",
                "The replies are yxyx, and are read as xyxy",
                "--format yxyx_json_bbox",
            ),
            (
                "letterbox1000/xyxy",
                "thousandths of the image padded to a square",
                "without padding them to a square",
            ),
            (
                "longer1000/xyxy",
                "thousandths of the longer side",
                "No --space reads thousandths of the longer side",
            ),
        ],
        3,
    ),
)
def test_other_convention_is_named_with_its_figure(says: str, finding: str, advice: str) -> None:
    noticed = cause(attempt(convention(says)))
    assert noticed.name == "coordinates"
    assert noticed.sure
    assert finding in noticed.finding
    assert advice in noticed.advice
    assert noticed.explains == pytest.approx(right_value(), abs=2)


def test_scale_and_offset_are_named() -> None:
    noticed = cause(attempt(fault=Fault((0.7, 0.8), (0.1, 0.0))))
    assert noticed.finding.startswith("The boxes are scaled by 0.70 across and 0.80 down")
    assert noticed.explains == pytest.approx(right_value(), abs=2)


def test_boxes_drawn_to_the_middle_may_be_a_habit() -> None:
    noticed = cause(attempt(published=96.0, fault=Fault((0.9, 0.9), (0.05, 0.05))))
    assert noticed.finding.startswith("The boxes are scaled by 0.9")
    assert not noticed.sure


def test_two_conventions_are_named() -> None:
    pixels = convention("pixels/xyxy")
    noticed = cause(attempt(lambda rng: pixels if rng.random() < 0.4 else RIGHT))
    assert "% of the replies are pixels of the image" in noticed.finding
    assert noticed.explains == pytest.approx(right_value(), abs=3)


def test_twenty_pictures_show_a_wrong_space() -> None:
    noticed = cause(attempt(convention("pixels/xyxy"), queries=20))
    assert noticed.sure
    assert "--space pixels" in noticed.advice


def test_points_in_another_space_are_named() -> None:
    rng = np.random.default_rng(2)
    queries = []
    replies = []
    for at in range(40):
        left, top = rng.random(2) * (500, 350)
        queries.append(query(at, (left, top, left + 80, top + 60), size=(640, 480)))
        x, y = round(left + 40), round(top + 30)
        replies.append(Reply(at, f'[{{"point_2d": [{x}, {y}]}}]'))
    data = dataset_of(queries, "FindIt_Pascal_point_json_point_2d")
    noticed = cause(hand_made(figure(90.0, metric="point in box"), predictions(data, replies)))
    assert noticed.name == "coordinates"
    assert noticed.explains == 100
    assert noticed.advice == "Type the same command with --space pixels"


def test_what_explains_all_ends_the_looks() -> None:
    stated = [name for name, row in CAUSES.items() if row.stated]
    looks = [each.name for each in checked(attempt(convention("pixels/xyxy")))]
    assert looks == [*stated, "coordinates"]


# --- replies --------------------------------------------------------------------------------------


def test_failed_calls_are_left_out() -> None:
    tried = attempt(change=on_rows(0.2, lambda reply: Reply(reply.index, "", FAILED)))
    noticed = cause(tried)
    assert noticed.name == "failed calls"
    assert noticed.finding == "16 of 80 calls failed, and count as misses"
    assert noticed.explains == pytest.approx(tried.value / 0.8)
    assert noticed.advice.startswith("Type the same command again")


def test_unreadable_answers_are_read_leniently() -> None:
    prose = on_rows(0.25, lambda reply: Reply(reply.index, f"Here it is: {reply.text} Bye."))
    noticed = cause(attempt(change=prose))
    assert noticed.name == "format"
    words = "20 of 80 replies are not in the format asked for: not JSON 20; for example"
    assert noticed.finding.startswith(f'{words} "Here it is: ')
    assert noticed.explains == pytest.approx(right_value())


def test_another_format_is_named() -> None:
    other = on_rows(1, lambda reply: Reply(reply.index, reply.text.replace("bbox_2d", "bbox")))
    assert "--format xyxy_json" in cause(attempt(change=other)).advice


def test_format_after_words_of_the_user() -> None:
    words = ConditionSet("prompt", "qwen3-vl-1", "your words: a.txt", ConditionAgreement.YOURS)
    prose = on_rows(0.25, lambda reply: Reply(reply.index, f"Here it is: {reply.text} Bye."))
    noticed = cause(attempt(change=prose, conditions=[words]))
    assert noticed.advice.startswith("Type the same command without --prompts (and FINDIT_PROMPTS)")


def test_answers_in_thoughts_are_read_there() -> None:
    def swapped(reply: Reply) -> Reply:
        return Reply(reply.index, "", ReplyRecord(thought=reply.text, finish_reason="stop"))

    noticed = cause(attempt(change=on_rows(0.5, swapped)))
    assert noticed.name == "format"
    assert noticed.finding == "40 of 80 replies are empty, and their thoughts are the answers"
    assert noticed.explains == pytest.approx(right_value())
    assert "--reasoning-parser" in noticed.advice
    assert noticed.sure


@pytest.mark.parametrize(
    ("text", "words", "is_sure"),
    every_nth_fast(
        [
            ("[]", 'state an empty list, as "[]"', False),
            ("", "are empty", True),
            ("I see no picture.", 'have words and no number, as "I see no picture."', True),
            ('[{"bbox_2d": []}]', "state an empty list", False),
            ("1 or 2", 'are in a form that nobody reads, as "1 or 2"', False),
        ],
        2,
    ),
)
def test_answers_without_a_box_are_left_out(text: str, words: str, is_sure: bool) -> None:
    tried = attempt(change=on_rows(0.5, lambda reply: Reply(reply.index, text)))
    (noticed,) = (each.cause for each in checked(tried) if each.cause)
    assert noticed.name == "format"
    assert noticed.finding.startswith(f"40 of 80 replies have no box: 40 {words}")
    assert noticed.explains == pytest.approx(2 * tried.value)
    assert noticed.sure is is_sure
    silent = attempt(change=lambda reply: Reply(reply.index, text))
    (noticed,) = (each.cause for each in checked(silent) if each.cause)
    assert (noticed.name, noticed.explains) == ("format", None)


_CORNER = '{"bbox_2d": [0, 0, 20, 20]}'


def test_another_box_of_a_reply_may_fit() -> None:
    def longer(reply: Reply) -> Reply:
        if reply.index == 5:
            return Reply(reply.index, f"[{', '.join([_CORNER, _CORNER])}]")
        return Reply(reply.index, f"[{_CORNER}, {reply.text[1:]}")

    (noticed,) = (each.cause for each in checked(attempt(change=longer)) if each.cause)
    assert noticed.name == "several boxes"
    assert noticed.finding.startswith("80 of 80 replies have several boxes, of which the first")
    # No box of one reply fits.
    assert noticed.explains == pytest.approx(right_value() - 100 / 80)
    assert not noticed.sure


def cut(reply: Reply) -> Reply:
    return Reply(reply.index, reply.text[:-6], CUT)


@pytest.mark.parametrize(
    ("told", "advice"),
    [
        (None, "--max-tokens 6144"),
        (
            Conditions(decoding=PublishedDecoding(max_tokens=32768)),
            "--max-tokens 32768, as published",
        ),
        (Conditions(decoding=PublishedDecoding(max_tokens=100)), "--max-tokens 6144"),
    ],
)
def test_cut_replies_count_as_the_whole_ones(told: Conditions | None, advice: str) -> None:
    tried = attempt(change=on_rows(0.25, cut), told=told)
    noticed = cause(tried)
    assert noticed.name == "truncation"
    assert noticed.finding == "20 of 80 replies were cut off at their limit of tokens"
    assert noticed.explains == pytest.approx(tried.value * 80 / 60)
    assert advice in noticed.advice


def test_thoughts_without_an_end_are_told() -> None:
    endless = ReplyRecord(finish_reason="length", ends_in_thought=True, thought="hm")
    thinking = on_rows(0.25, lambda reply: Reply(reply.index, "", endless))
    noticed = cause(attempt(change=thinking))
    assert noticed.finding.endswith("limit of tokens, 20 of them while thinking")
    assert "not to think" in noticed.advice


def test_many_cut_replies_are_told_beside_a_worse_fault() -> None:
    """Without them the figure is as low: the others are wrong, too."""
    tried = attempt(convention("grid1000/yxyx"), on_rows(0.25, cut))
    found = {each.name: each.cause for each in checked(tried)}
    assert found["truncation"] is not None
    assert found["coordinates"] is not None


def test_all_replies_cut_have_no_figure() -> None:
    noticed = cause(attempt(change=cut))
    assert (noticed.name, noticed.explains) == ("truncation", None)


def test_two_faults_explain_together() -> None:
    def both(reply: Reply) -> Reply:
        if reply.index % 8 == 0:
            return Reply(reply.index, "", FAILED)
        return cut(reply) if reply.index % 8 == 1 else reply

    noticed = checked(attempt(change=both))
    assert [each.name for each in noticed if each.cause] == ["failed calls", "truncation"]
    assert all(CAUSES[each.name].stated for each in noticed)


def test_few_odd_replies_are_told_but_not_blamed() -> None:
    tried = attempt(change=on_rows(0.02, cut), published=99.9)
    noticed = {each.name: each for each in checked(tried)}
    assert noticed["truncation"].result == "2 of 80 cut off"
    assert noticed["truncation"].cause is None


# --- space ----------------------------------------------------------------------------------------


def test_space_of_the_user_is_compared_with_the_published() -> None:
    # Too few boxes for the coordinate check
    theirs = ConditionSet("space", "grid1000", "pixels", ConditionAgreement.YOURS)
    rng = np.random.default_rng(1)
    alone = replace(PROFILES["referring"], queries_a_picture=1.0)
    answers = run(rng, alone, RIGHT, replace(GOOD, wrong=0.0), 7)
    noticed = cause(deployed(answers, figure(PUBLISHED), space="pixels", conditions=[theirs]))
    assert noticed.name == "space"
    assert noticed.finding == "The replies are read as pixels, published grid1000"
    assert noticed.advice == "Type the same command without --space"
    assert noticed.explains == 100


@pytest.mark.parametrize(
    ("published", "agreement", "advice"),
    few_fast(
        [
            # What the user typed hides what would be the default.
            ("grid1000", ConditionAgreement.YOURS, "Type the same command without --space"),
            ("unknown", ConditionAgreement.NOT_TOLD, "Type the same command without --space"),
            # The figure itself is of another space.
            (
                "pixels",
                ConditionAgreement.AS_PUBLISHED,
                "Type the same command with --space grid1000",
            ),
        ],
        1,
    ),
)
def test_advice_where_a_space_was_typed(
    published: str, agreement: ConditionAgreement, advice: str
) -> None:
    theirs = ConditionSet("space", published, "pixels", agreement)
    rng = np.random.default_rng(1)
    answers = run(rng, PROFILES["referring"], RIGHT, GOOD, 60)
    told = figure(PUBLISHED, conditions=Conditions(space=published))
    tried = deployed(answers, told, space="pixels", conditions=[theirs])
    entry = replace(tried.setup.entry, space="pixels")
    assert cause(replace(tried, setup=replace(tried.setup, entry=entry))).advice == advice
