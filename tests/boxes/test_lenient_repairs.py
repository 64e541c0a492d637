"""Every repair has a name, whatever the reply, and nothing of a reply stays in memory."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from itertools import pairwise, product

import pytest
from every_pair import every_pair
from few_fast import few_fast
from hypothesis import given, settings
from hypothesis import strategies as st
from lenient_replies import (
    A_JSON,
    B_JSON,
    GRID1000,
    JSON,
    NESTED,
    POINT,
    TEXT_LABELS,
    A,
    leniently,
)
from linear_time import LENIENT, check_linear, repeated

import vlmeval_findit as findit
from vlmeval_findit.boxes import (
    PAPER_REPRESENTATIONS,
    STRUCTURES,
    FormatFailure,
    ParsedReply,
    Repair,
    ReplyFormat,
    parse_leniently,
    read,
    values_in,
)

# --- every repair has a name ----------------------------------------------------------------------

NAMED: list[tuple[ReplyFormat, str, Repair]] = [
    *[
        (JSON, f'[{{"bbox_2d": [{n}, 200, 300, 400]}}]', Repair.NUMBERS)
        for n in ("0100", "100.", ".5", "+100", "1_00", "-01", "１００", "١٠٠", "1.e2")
    ],
    (JSON, '[{"bbox_2d": [100, 200, 300, 400], "x": "a\\x41"}]', Repair.SPELLING),
    (JSON, '[{"bbox_2d": [100, 200, 300, 400], "x": "a\\u12"}]', Repair.SPELLING),
    (JSON, '[{"bbox_2d": [100, 200, 300, 400], "x": "stop\nsign"}]', Repair.SPELLING),
    (JSON, '[{"bbox_2d": [100, 200, 300, 400], "x": "stop\tsign"}]', Repair.SPELLING),
    (JSON, '[{"bbox_2d": [100,\xa0200, 300, 400]}]', Repair.SPELLING),
    (JSON, '[{"bbox_2d": [100,\u3000200, 300, 400]}]', Repair.SPELLING),
    (JSON, '[{\u200b"bbox_2d": [100, 200, 300, 400]}]', Repair.SPELLING),
    (JSON, '[{"bbox_2d": [100, 200, 300, 400], "x": "the "exit" sign"}]', Repair.QUOTES),
    (JSON, '[{"BBox_2D": [100, 200, 300, 400]}]', Repair.KEY),
    (JSON, '[{" bbox_2d ": [100, 200, 300, 400]}]', Repair.KEY),
    (JSON, '[{"bboxes_2d": [100, 200, 300, 400]}]', Repair.STRUCTURE),
    (JSON, f"[{A_JSON}]; [{B_JSON}]", Repair.STRUCTURE),
    (JSON, f"[{A_JSON}]\n[{B_JSON}]", Repair.STRUCTURE),
    (JSON, f"[{A_JSON}],", Repair.PUNCTUATION),
    (JSON, f"\ufeff[{A_JSON}]", Repair.AROUND),
    (JSON, '[{"bbox_2d": [100, 200, 300, 400], "label"}]', Repair.PUNCTUATION),
    (JSON, '[{"bbox_2d": [100, 200, 300, 400], "a" "b": 1}]', Repair.PUNCTUATION),
    (JSON, '[{"bbox_2d": [300, 400, 100, 200]},]', Repair.ORDER),
    (NESTED, '{"bboxes_2d": [[100, 200, 300, 400]]}, {"bboxes_2d": [[5, 6, 7, 8]]}',
        Repair.STRUCTURE),
]  # fmt: skip


@pytest.mark.parametrize(("form", "reply", "repair"), NAMED)
def test_the_repair_is_named(form: ReplyFormat, reply: str, repair: Repair) -> None:
    assert not read(reply, form).boxes
    result = leniently(reply, form)
    assert result is not None
    assert result.reading.boxes
    assert repair in result.repairs


PIECES = [
    "[", "]", "{", "}", "(", ")", ",", ":", ";", "'", '"', "1", "2.5", "-3", "012", ".5", "5.",
    "+1", "1_0", "١", "１", "NaN", " ", "\n", "\t", "\xa0", "\u200b", "\u3000", "\ufeff", "bbox_2d",
    '"bbox_2d": [1, 2, 3, 4]', "[1, 2, 3, 4]", "[4, 3, 2, 1]", "[1, 2, 3, 4, 0.5]",
    '"label": "cat"',
    '"Label": "dog"', '"labels": ["cat", "dog"]', "frame 2", '"frame_idx": 1', "cat", "```",
    "```json", "//", "#", "None", "null", "true", "%", "px", "<box>", "</ref>", "\\", "\\x41",
    "，", "：", "［", "］", "｛", "｝", "【", "】", "“", "”", "’", "、", "<loc0001>", "<loc_12>",
    "top-left", "bottom-right", "左上角", "(1, 2)", "(3, 4)", "(4, 3)", "x1: 1", "y1=2",
    "x2: 3", "y2 = 4", "left: 1", "w: 3", "h: 4", "is", "bbox: 1, 2, 3, 4", "<|begin_of_box|>",
    "<|end_of_box|>", "_",
    "|", "- ", "1. ", "**", '{"bbox_2d": [1, 2, 3, 4], "label": "cat"}',
    '[{"bbox_2d": [1, 2, 3, 4]}]', '{"bbox": [5, 6, 7, 8]}', '"bboxes_2d": [[1, 2, 3, 4]]',
    '{"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}', "cat: [1, 2, 3, 4]", "dog: (5, 6, 7, 8)",
]  # fmt: skip
ugly = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
inside = ugly.map(lambda text: f'[{{"bbox_2d": [1, 2, 3, 4], {text}}}]')
formats = st.builds(
    ReplyFormat,
    st.sampled_from(["text", "json"]),
    st.sampled_from([*PAPER_REPRESENTATIONS, "point"]),
    st.sampled_from(["bbox_2d", "class_name"]),
    st.sampled_from(STRUCTURES),
    st.booleans(),
    st.sampled_from([1, 3]),
)


@settings(max_examples=400, deadline=None)
@given(ugly | inside)
def test_what_json_refuses_is_a_named_repair(text: str) -> None:
    for value in values_in(text):
        try:
            json.loads(text[value.start : value.end])
        except ValueError:
            assert value.repairs, text[value.start : value.end]


@pytest.mark.parametrize("text", ["[1, 2}]", '{"a": 1)}', "[1)]", "[[1]}]", "[}]"])
def test_a_bracket_that_nothing_opened_is_a_repair(text: str) -> None:
    (value,) = values_in(text)
    assert (value.start, value.end) == (0, len(text))
    assert value.repairs == {Repair.PUNCTUATION}


# Values with a repair each, and one without
REPAIRED = (
    '{"a": [1, 2]}',
    "{'a': [1, 2]}",
    '{"a": [1, 2] /* here */}',
    '{"a": [1, 2],}',
    '{"a": ０}',
)


def test_a_value_is_repaired_as_if_it_stood_alone() -> None:
    alone = {text: [value.repairs for value in values_in(text)] for text in REPAIRED}
    assert len({repairs for (repairs,) in alone.values()}) == len(REPAIRED)
    for first, second in product(REPAIRED, REPAIRED):
        found = [value.repairs for value in values_in(f"{first} and {second}")]
        assert found == alone[first] + alone[second]


@settings(max_examples=400, deadline=None)
@given(ugly | inside, formats)
def test_a_lenient_reading_names_repairs_and_orders_corners(text: str, form: ReplyFormat) -> None:
    strict = read(text, form)
    result = leniently(text, form)
    if result is None or not result.reading.boxes:
        return
    reading = result.reading
    assert result.repairs
    assert reading.boxes[: len(strict.boxes)] == strict.boxes
    assert len(reading.labels) == len(reading.boxes) * form.multilabel
    assert strict.reason is not None or form.multilabel
    for x1, y1, x2, y2 in reading.boxes[len(strict.boxes) :]:
        assert x1 <= x2
        assert y1 <= y2


# --- nothing stays --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    few_fast(
        [
            "a label that is long " * 400 + "{}: [1, 2, 3, 4]",
            "Perhaps near the fence, but let me look again. " * 200 + "{}",
            '{{"' + "a key that is long " * 500 + '{}": [1, 2, 3, 4]}}',
            "x (1, 2, 3, 4) " * 600 + "{}",
        ],
        1,
    ),
    ids=["a label", "words", "a key", "boxes"],
)
def test_nothing_of_a_reply_stays_after_it_was_read(reply: str) -> None:
    options = {"sizes": (640, 480), "space": "grid1000", "multilabel": True}
    truth = findit.truth([A], ["dog"])

    def score(number: int) -> None:
        # Of the text only what the caller keeps, which is nothing
        text = reply.replace("{}", str(number)).replace("{{", "{").replace("}}", "}")
        for form in ("xyxy_text", "xyxy_json_bbox_2d"):
            findit.reward([text], [truth], form, **options)
            findit.score([text], [truth], form, **options)

    score(0)
    gc.freeze()  # Looking at the objects of other tests takes half a second
    tracemalloc.start()
    try:
        score(1)
        kept = [_traced()]
        for number in range(2, 5):
            score(number)
            kept.append(_traced())
    finally:
        tracemalloc.stop()
    # What is kept of a reply is kept of each; other threads allocate now and then.
    assert min(after - before for before, after in pairwise(kept)) < len(reply) / 2


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


# --- loops ----------------------------------------------------------------------------------------

LOOPED = [
    "top-left ", "(1, 2) ", "top-left (1, 2) ", "x1: 1 ", "x1=1, y1=2, x2=3, y2=4 ", "<loc0001>",
    "<ref>", "<ref>dog</ref><box>[[1,2,3,4]]</box>", "dog: ", "bbox: 1, 2, 3, 4\n", "1_", "is ",
    "：", "“", "“a”：", "dog (1,2,3,4) ", "| 1 ", "image ", "a. ", "a, ", "[1,2,3,4,0.5] ", "\n",
    "| a | x1 | y1 |\n", "a,x1,y1,x2,y2\n", "<12>", "<x_0.1><y_0.2>", '<points coords="1 1 2 3',
    "x: 1 → 2, ", "x, y, w, h, ", "(x1, y1) = (1, 2) ", "0,25; ", "array([", "scores of the ",
    '{"columns": ["x"], ', "&quot;", "if ", "640x480 image ", "no dog ", "</box>", "starts at (",
    "corner of the ", "label: dog\n", "the ", "[1,2],", '"label": "', "{{1,", "x: [1, 2] ",
    "Coordinates (", "box in a ", "unit: ", "<box><1>", "centre and ", "] (",
]  # fmt: skip
LOOPS: dict[str, Callable[[int], str]] = {
    **repeated(LOOPED),
    "a name and blanks": lambda n: "x1 :" + " " * n + "1",
    "a long line": lambda n: "a" * n + " 1 2 3 4",
    "a long tag": lambda n: "<" + "a" * n,
    "corners far apart": lambda n: ("top" + " " * 50) * (n // 53),
}


LOOPED_FORMATS = [ReplyFormat("json", "xyxy", multilabel=True, frames=3), TEXT_LABELS, POINT]


@every_pair("loop, form", LOOPS, LOOPED_FORMATS, fast=8)
def test_a_loop_of_words_is_read_in_linear_time(loop: str, form: ReplyFormat) -> None:
    strict = ParsedReply((), (), (), FormatFailure.NOT_JSON)
    check_linear(LOOPS[loop], lambda text: parse_leniently(text, form, strict, GRID1000), LENIENT)
