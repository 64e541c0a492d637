"""A reply that states a box to any reader is never "no box", and is never rewarded for it."""

from __future__ import annotations

from typing import Any

import pytest
from few_fast import every_nth_fast
from hypothesis import given, settings
from hypothesis import strategies as st

import vlmeval_findit as findit
from benchmarks.changed_readings import asked_as, name_of, of_corpora, random_replies
from vlmeval_findit.boxes import (
    JSON_KEYS,
    PAPER_REPRESENTATIONS,
    STRUCTURES,
    AnswerKind,
    ImageExtent,
    ReplyFormat,
    answer_kind,
    parse_leniently,
    reader,
)

REPRESENTATIONS = (*PAPER_REPRESENTATIONS, "point")


def kind(text: str, how: ReplyFormat) -> AnswerKind:
    strict = reader(how)(text)
    return answer_kind(text, strict, parse_leniently(text, how, strict))


def states_box(text: str, how: ReplyFormat) -> bool:
    """Whether the strict or the lenient reader of a format finds a box."""
    strict = reader(how)(text)
    lenient = parse_leniently(text, how, strict)
    return bool(strict.boxes or (lenient is not None and lenient.reading.boxes))


@st.composite
def formats(draw: Any) -> ReplyFormat:
    return ReplyFormat(
        output=draw(st.sampled_from(["text", "json"])),
        representation=draw(st.sampled_from(REPRESENTATIONS)),
        key=draw(st.sampled_from(JSON_KEYS)),
        structure=draw(st.sampled_from(STRUCTURES)),
        multilabel=draw(st.booleans()),
        frames=draw(st.sampled_from([1, 3])),
    )


NUMBERS = ["1", "097", "100.", ".5", "+100", "1_00", "-3", '"4"', "1e2", "１２", "0"]
WORDS = ["dog", "the", "xmin", "bbox", "frame 1", "none", "<box>", "top-left", "and", "\xa0"]
KEYED = [
    f'"{key}":' for key in (*JSON_KEYS, "bboxes", "x", "y", "width", "height", "frame_idx", "dog")
]
MARKS = ["[", "]", "{", "}", "(", ")", ",", ":", ";", "\n", " ", "```", "```json", "'", '"']
WHOLE = [
    "[]", "{}", '{"bboxes": []}', "[1, 2, 3, 4]", "(1, 2, 3, 4)", "(1, 2) to (3, 4)", "[[]]",
    '[{"bbox": [097, 514, 283, 996]}]', '[{"BBOX": [1, 2, 3, 4]}];', "<|begin_of_box|>",
    "<|end_of_box|>", '[{"label": "the "Exit" sign", "bbox": [1, 2, 3, 4]}]', "dog: [5, 6]",
    '{"x": 1, "y": 2, "width": 3, "height": 4}', '{"x1": 1, "y1": 2, "x2": 3, "y2": 4}',
    '[{"bbox_2d": [1, 2, 3, 4], "label": "stop\nsign"}]', "[1, 2, 3, 4, 5, 6, 7, 8]",
]  # fmt: skip
texts = st.lists(st.sampled_from([*NUMBERS, *WORDS, *KEYED, *MARKS, *WHOLE, *WHOLE]), max_size=9)


@settings(max_examples=600, deadline=None)
@given(texts.map("".join) | texts.map(" ".join), formats(), formats())
def test_whatever_states_a_box_to_any_reader_is_no_rejection(
    text: str, asked: ReplyFormat, other: ReplyFormat
) -> None:
    if states_box(text, asked) or states_box(text, other):
        assert kind(text, asked) is not AnswerKind.NO_BOX


SIZE, SPACE = (1000, 1000), "grid1000"
STATED = {
    "one list a box": '[{"bbox": [1, 2, 3, 4]}]\n[{"bbox": [5, 6, 7, 8]}]',
    "a bare quote": '[{"bbox": [1, 2, 3, 4], "label": "5" tall"}]',
    "a tab in a string": '[{"bbox": [1, 2, 3, 4], "label": "stop\tsign"}]',
    "a bad escape": '[{"bbox": [1, 2, 3, 4], "label": "a\\x62"}]',
    "a key with a blank": '[{" bbox ": [1, 2, 3, 4]}]',
    "padded": '[{"bbox": [012, 034, 560, 780]}]',
    "no digit before the point": '[{"bbox": [.5, 0, 999, 999]}]',
    "a sign": '[{"bbox": [+1, +2, +3, +4]}]',
    "underscores": '[{"bbox": [1_0, 2_0, 3_0, 4_0]}]',
    "full-width digits": '[{"bbox": [１, ２, ３, ４]}]',
    "a no-break space": '[{"bbox": [1, 2, 3,\xa04]}]',
    "an empty list first": '[]\n[{"bbox": [1, 2, 3, 4]}]',
    "an empty list in a fence, a box behind": '```json\n[]\n```\n[{"bbox": [1, 2, 3, 4]}]',
    "an empty list between marks": '<|begin_of_box|>[]<|end_of_box|> [{"bbox": [1, 2, 3, 4]}]',
    "an empty list, then round brackets": "[] or rather (100, 200, 300, 400)",
    "an empty list, then two points": "[] (100, 200) to (300, 400)",
    "an empty list, then names": '[] {"x1": 1, "y1": 2, "x2": 3, "y2": 4}',
    "a label": "[] dog: (1, 2, 3, 4)",
}
ASKED = [
    ("xyxy_json", {}), ("xywh_json_bbox_2d", {}), ("cxcywh_json_nested", {}), ("xyxy_text", {}),
    ("yxyx_json_decomposed", {}), ("all_text", {}), ("unconstrained_text", {}), ("point_json", {}),
    ("xyxy_json_class_name", {"multilabel": True}), ("xyxy_text", {"multilabel": True}),
    ("xyxy_json", {"frames": 2}), ("xyxy_text", {"frames": 2}), ("point_text", {}),
]  # fmt: skip


@pytest.mark.parametrize(("how", "options"), every_nth_fast(ASKED, 3))
def test_read_score_and_reward_agree_on_stated_boxes(how: str, options: dict[str, Any]) -> None:
    replies = [*STATED.values(), "[]"]
    by: Any = "pointing" if how.startswith("point") else "f1"
    shown = {"sizes": SIZE, "space": SPACE, **options}
    rewards = findit.reward(replies, [[]] * len(replies), how, by=by, **shown)
    scored = findit.score(replies, [[]] * len(replies), how, **shown)
    for text, reward, row in zip(replies, rewards, scored.queries, strict=True):
        got = findit.read(text, how, size=SIZE, space=SPACE, **options).kind
        is_rejection = text == "[]"
        assert (got is findit.ReplyKind.NO_BOX) == is_rejection, text
        assert row.sums.get("negatives_rejected", 0) == is_rejection, text
        assert reward == is_rejection, text


BOX = [[100, 200, 300, 400]]
TYPES = [
    ("xyxy_text", "[]", "nothing found"),
    ("xyxy_json", "[]", "nothing found"),
    ("xyxy_json", "```json\n[]\n```", "nothing found"),
    ("xyxy_json_nested", '{"bboxes": []}', "nothing found"),
    ("cxcywh_json_decomposed", "[]", "nothing found"),
    ("xyxy_text", "The box is [100, 200, 300, 400, 0.98]", "recoverable"),
    ("xyxy_text", "The dog is at 100 from the left and 200 from above.", "not readable"),
    ("xyxy_text", "476_496_698_728", "not readable"),
    ("xyxy_json", "somewhere near 476 and 496", "not readable"),
    ("xyxy_text", "(600, 600, 700, 700)", "not readable"),  # Lenient parsing reads another place
    ("xyxy_text", "(100, 200, 300, 400)", "recoverable"),
    ("xyxy_json", "[{'bbox': [100, 200, 300, 400]}]", "recoverable"),
    ("xyxy_text", "I see no dog.", "refused"),
    ("xyxy_json", "I'm sorry, I can't help with that.", "refused"),
    ("xyxy_json_nested", "Ich sehe keinen Hund.", "refused"),
    ("xyxy_text", "我看不到狗。", "refused"),
    ("xyxy_json", "The box is [x, y].", "not readable"),
    ("xyxy_text", "…", "not readable"),
    ("xyxy_text", "", "not readable"),
    ("xyxy_text", "[0, 0, 9, 9]", "missed"),
]


@pytest.mark.parametrize(("how", "text", "expected"), TYPES)
def test_an_error_type_says_what_happened(how: str, text: str, expected: str) -> None:
    row = findit.score([text], [BOX], how, sizes=SIZE, space=SPACE).queries[0]
    assert expected in {event["kind"] for event in row.details["errors"]}
    assert row.sums[f"lost: {expected}"] == 1


@pytest.mark.parametrize(("options"), [{"frames": 2}, {"frames": 2, "multilabel": True}])
@pytest.mark.parametrize("how", ["xyxy_json", "xyxy_text"])
def test_an_empty_list_over_frames_is_nothing_found(how: str, options: dict[str, Any]) -> None:
    labels = {"labels": ["dog"]} if "multilabel" in options else {}
    truth = findit.truth(BOX, frames=[1], **labels)
    row = findit.score(["[]"], [truth], how, sizes=SIZE, space=SPACE, **options).queries[0]
    assert [event["kind"] for event in row.details["errors"]] == ["nothing found"]


def test_an_answer_about_nothing_is_one_of_six_kinds() -> None:
    by_form: dict[ReplyFormat, list[str | None]] = {}
    for asked in (*of_corpora(), *random_replies(300)):
        by_form.setdefault(asked.form, [None, "", "<think>a"]).append(asked.reply)
    seen = set()
    for form, replies in by_form.items():
        if form.key == "box_2d" or (form.key == "bbox_2d" and form.structure == "decomposed"):
            continue  # No name asks for these
        truths = [findit.truth([])] * len(replies)
        scored = findit.score(replies, truths, name_of(form), **asked_as(form))
        for text, row in zip(replies, scored.queries, strict=True):
            kinds = {name: n for name, n in row.sums.items() if name.startswith("negatives_")}
            assert list(kinds.values()) == [1], (text, kinds)
            seen |= kinds.keys()
    assert len(seen) == 6


def test_labels_do_not_decide_the_kind_of_a_reply() -> None:
    """``findit.read`` knows no labels, a score does: both say the same of a reply."""
    for asked in (*of_corpora(), *random_replies(1000)):
        strict = reader(asked.form)(asked.reply)
        kinds = {
            answer_kind(
                asked.reply,
                strict,
                parse_leniently(asked.reply, asked.form, strict, ImageExtent(1000, 1000), labels),
            )
            for labels in ((), asked.labels)
        }
        assert len(kinds) == 1, asked
