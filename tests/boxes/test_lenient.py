"""Lenient parsing of replies that the strict reader refuses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from every_pair import every_pair
from grids import grid_formats
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_time import LENIENT, check_linear
from reply_tables import spelt
from test_reading import LOOPS

from vlmeval_findit.boxes import (
    LONGEST_REPLY,
    BoxToWrite,
    Corners,
    FormatFailure,
    ParsedReply,
    Repair,
    ReplyFormat,
    parse_leniently,
    read,
    values_in,
    write,
)

JSON = ReplyFormat("json", "xyxy", "bbox_2d")
ALL_JSON = ReplyFormat("json", "all", "bbox_2d")
SIZES = ReplyFormat("json", "xywh", "bbox_2d")
NESTED = ReplyFormat("json", "xyxy", "bbox_2d", "nested")
NAMED = ReplyFormat("json", "xyxy", structure="decomposed")
NAMED_SIZES = ReplyFormat("json", "xywh", structure="decomposed")
LABELS = ReplyFormat("json", "xyxy", "bbox_2d", multilabel=True)
CLASSES = ReplyFormat("json", "xyxy", "class_name", multilabel=True)
VIDEO = ReplyFormat("json", "xyxy", "bbox_2d", frames=3)
LABELS_VIDEO = ReplyFormat("json", "xyxy", "bbox_2d", multilabel=True, frames=3)
TEXT = ReplyFormat("text", "xyxy")
TEXT_SIZES = ReplyFormat("text", "xywh")
TEXT_LABELS = ReplyFormat("text", "xyxy", multilabel=True)
TEXT_VIDEO = ReplyFormat("text", "xyxy", frames=3)

A: Corners = (1, 2, 3, 4)
B: Corners = (5, 6, 7, 8)
BOX_A = '{"bbox_2d": [1, 2, 3, 4]}'
BOX_B = '{"bbox_2d": [5, 6, 7, 8]}'


class Ugly(NamedTuple):
    """A reply, why the strict reader refuses it, and what lenient parsing finds."""

    what: str
    reply: str
    why: FormatFailure
    boxes: Sequence[Corners] = ()
    repairs: Sequence[Repair] | None = None  # None: no more than strict reading
    labels: Sequence[str] = ()
    frames: Sequence[int] = ()


def rows(form: ReplyFormat, *table: Ugly) -> list[object]:
    return [pytest.param(form, row, id=f"{spelt(form)}: {row.what}") for row in table]


S, R = Repair, FormatFailure

REPLIES = [
    *rows(
        JSON,
        Ugly("cut off in a box", f'[{BOX_A}, {{"bbox_2d": [5, 6, 7', R.TRUNCATED, [A], [S.CUT_OFF]),
        Ugly("cut off after a box", f"[{BOX_A}", R.TRUNCATED, [A], [S.CUT_OFF]),
        Ugly("cut off before any box", '[{"bbox_2d": [1, 2, 3, 4', R.TRUNCATED),
        Ugly("cut off behind four numbers", '[{"bbox_2d": [1, 2, 3, 4 ', R.TRUNCATED),
        Ugly("cut off in a fence", f"```json\n[{BOX_A},\n", R.TRUNCATED, [A],
            [S.CUT_OFF, S.AROUND]),
        Ugly("single quotes", "[{'bbox_2d': [1, 2, 3, 4]}]", R.NOT_JSON, [A], [S.QUOTES]),
        Ugly("no quotes, a tuple", "[{bbox_2d: (1, 2, 3, 4)}]", R.NOT_JSON, [A], [S.QUOTES]),
        Ugly("Python words", "[{'bbox_2d': [1, 2, 3, 4], 'hidden': False, 'x': None}]", R.NOT_JSON,
            [A], [S.QUOTES]),
        Ugly("a comma too many", f"[{BOX_A},]", R.NOT_JSON, [A], [S.PUNCTUATION]),
        Ugly("a comma missing between objects", f"[{BOX_A} {BOX_B}]", R.NOT_JSON, [A, B],
            [S.PUNCTUATION]),
        Ugly("commas missing between numbers", '[{"bbox_2d": [1 2 3 4]}]', R.NOT_JSON, [A],
            [S.PUNCTUATION]),
        Ugly("a comma missing after a string",
            '[{"label": "dog"\n "bbox_2d": [1, 2, 3, 4]}]', R.NOT_JSON, [A], [S.PUNCTUATION]),
        Ugly("a bracket missing", f'[{{"bbox_2d": [1, 2, 3, 4}}, {BOX_B}]', R.NOT_JSON, [A, B],
            [S.PUNCTUATION]),
        Ugly("a bracket too many", f'[{{"bbox_2d": [1, 2, 3, 4]]}}, {BOX_B}]', R.NOT_JSON, [A, B],
            [S.AROUND, S.PUNCTUATION, S.STRUCTURE]),
        Ugly("comments", f"[{BOX_A}, // the left one\n # and\n /* also */ {BOX_B}]", R.NOT_JSON,
            [A, B], [S.COMMENTS]),
        Ugly("prose before", f"Here: [{BOX_A}]", R.NOT_JSON, [A], [S.AROUND]),
        Ugly("a fence that does not close", f"```json\n[{BOX_A}]", R.NOT_JSON, [A], [S.AROUND]),
        Ugly("stated twice", f"[{BOX_A}] So: [{BOX_A}]", R.NOT_JSON, [A], [S.AROUND]),
        Ugly("a line each", f"{BOX_A}\n{BOX_B}", R.NOT_JSON, [A, B], [S.STRUCTURE]),
        Ugly("another key and the right key", f'[{{"box": [1, 2, 3, 4]}}, {BOX_B}]',
            R.WRONG_KEY, [B, A], [S.KEY]),
        Ugly("no other key says that it is one", '[{"dog": [1, 2, 3, 4]}]', R.WRONG_KEY),
        Ugly("the known key goes before others", '[{"window": [5, 6, 7, 8], "box": [1, 2, 3, 4]}]',
            R.WRONG_KEY, [A], [S.KEY]),
        Ugly("one object", BOX_A, R.NOT_A_LIST, [A], [S.STRUCTURE]),
        Ugly("a list of lists", "[[1, 2, 3, 4], [5, 6, 7, 8]]", R.NOT_AN_OBJECT, [A, B],
            [S.STRUCTURE]),
        Ugly("a list", "[1, 2, 3, 4]", R.NOT_AN_OBJECT, [A], [S.STRUCTURE]),
        Ugly("nested", '[{"bboxes_2d": [[1, 2, 3, 4], [5, 6, 7, 8]]}]', R.WRONG_KEY, [A, B],
            [S.STRUCTURE]),
        Ugly("decomposed", '[{"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}]', R.WRONG_KEY, [A],
            [S.STRUCTURE]),
        Ugly("in an object in an object", '{"objects": [{"box": {"x1": 1, "y1": 2, "x2": 3, '
            '"y2": 4}}]}', R.NOT_A_LIST, [A], [S.KEY, S.STRUCTURE]),
        Ugly("two points", '[{"bbox_2d": [[1, 2], [3, 4]]}]', R.WRONG_SHAPE, [A], [S.NUMBERS]),
        Ugly("numbers in one string", '[{"bbox_2d": "1, 2, 3, 4"}]', R.WRONG_SHAPE, [A],
            [S.NUMBERS]),
        Ugly("percent is another space", '[{"bbox_2d": ["1%", "2%", "3%", "4%"]}]',
            R.NOT_A_NUMBER),
        Ugly("and so is a unit", '[{"bbox_2d": [1px, 2px, 3px, 4px]}]', R.NOT_JSON),
        Ugly("a key that says another order", '[{"bbox_xywh": [1, 2, 3, 4]}]', R.WRONG_KEY),
        Ugly("names of another order", '[{"x": 1, "y": 2, "width": 3, "height": 4}]',
            R.WRONG_KEY),
        Ugly("words that say another order", "As (x, y, width, height): [1, 2, 3, 4]",
            R.NOT_JSON),
        Ugly("three and five numbers", '[{"bbox_2d": [1, 2, 3]}, {"bbox_2d": [1, 2, 3, 4, 5]}]',
            R.WRONG_SHAPE),
        Ugly("not finite", '[{"bbox_2d": [1, 2, 3, 1e999]}]', R.NOT_FINITE),
        Ugly("in prose", "The dog is at [1, 2, 3, 4].", R.NOT_JSON, [A], [S.PROSE]),
        Ugly("in round brackets", "It is at (1, 2, 3, 4).", R.NOT_JSON, [A], [S.PROSE]),
        Ugly("points in prose", "from (1, 2) to (3, 4)", R.NOT_JSON, [A], [S.PROSE]),
        Ugly("between tags", "<box>1 2 3 4</box>", R.NOT_JSON, [A], [S.PROSE]),
        Ugly("Qwen's tokens", "<|box_start|>(1,2),(3,4)<|box_end|>", R.NOT_JSON, [A], [S.PROSE]),
        Ugly("boxed", r"\boxed{[1, 2, 3, 4]}", R.NOT_JSON, [A],
            [S.PUNCTUATION, S.PROSE]),
        Ugly("four numbers alone", "1, 2, 3, 4", R.NOT_JSON, [A], [S.PROSE]),
        Ugly("four numbers among words", "1, 2, 3, 4 dogs", R.NOT_JSON),
        Ugly("an empty list in prose", "The answer is [].", R.NOT_JSON, [], [S.AROUND]),
        Ugly("words", "There is no dog.", R.NOT_JSON),
        Ugly("null", "null", R.NOT_A_LIST),
        Ugly("nothing", " ", R.EMPTY),
    ),
    *rows(
        ALL_JSON,
        Ugly("four points", '[{"bbox_2d": [[1, 2], [3, 2], [3, 4], [1, 4]]}]', R.WRONG_SHAPE,
            [A], [S.NUMBERS]),
        Ugly("four numbers are no corners", "[{'bbox_2d': [1, 2, 3, 4]}]", R.NOT_JSON),
    ),
    *rows(
        SIZES,
        Ugly("points are no sizes", '[{"bbox_2d": [[1, 2], [3, 4]]}]', R.WRONG_SHAPE),
        Ugly("nor are they in prose", "(1, 2), (3, 4)", R.NOT_JSON),
        Ugly("corners by name", '[{"x1": 1, "y1": 2, "x2": 3, "y2": 4}]', R.WRONG_KEY),
        Ugly("sizes by name", '[{"x": 1, "y": 2, "width": 2, "height": 2}]', R.WRONG_KEY, [A],
            [S.STRUCTURE]),
    ),
    *rows(
        NESTED,
        Ugly("one object a box", f"[{BOX_A}, {BOX_B}]", R.WRONG_KEY, [A, B], [S.STRUCTURE]),
        Ugly("cut off", '[{"bboxes_2d": [[1, 2, 3, 4], [5, 6', R.TRUNCATED, [A], [S.CUT_OFF]),
        Ugly("lists", "[[1, 2, 3, 4]]", R.NOT_AN_OBJECT, [A], [S.STRUCTURE]),
    ),
    *rows(
        NAMED,
        Ugly("a list", '[{"bbox": [1, 2, 3, 4]}]', R.WRONG_KEY, [A], [S.STRUCTURE]),
        Ugly("other names", '[{"x_min": 1, "y_min": 2, "x_max": 3, "y_max": 4}]', R.WRONG_KEY,
            [A], [S.KEY]),
        Ugly("cut off", '[{"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4', R.TRUNCATED),
        Ugly("cut off behind it", '[{"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4,', R.TRUNCATED,
            [A], [S.CUT_OFF]),
    ),
    *rows(
        NAMED_SIZES,
        Ugly("w and h", '[{"x": 1, "y": 2, "w": 2, "h": 2}]', R.WRONG_KEY, [A], [S.KEY]),
        Ugly("names of the text format", '[{"x_min": 1, "y_min": 2, "width": 2, "height": 2}]',
            R.WRONG_KEY, [A], [S.KEY]),
    ),
    *rows(
        LABELS,
        Ugly("a key for each label", '{"cat": [1, 2, 3, 4], "dog": [[5, 6, 7, 8]]}', R.NOT_A_LIST,
            [A, B], [S.STRUCTURE], labels=["cat", "dog"]),
        Ugly("the label under another key", "[{'class': 'cat', 'bbox_2d': [1, 2, 3, 4]}]",
            R.NOT_JSON, [A], [S.QUOTES, S.KEY], labels=["cat"]),
        Ugly("text", "cat: [1, 2, 3, 4]", R.NOT_JSON, [A], [S.OTHER_OUTPUT], labels=["cat"]),
        Ugly("prose", "- cat (1, 2, 3, 4)\n- **dog**: (5, 6, 7, 8)", R.NOT_JSON, [A, B],
            [S.PROSE], labels=["cat", "dog"]),
        Ugly("no label in prose", "[1, 2, 3, 4]", R.NOT_AN_OBJECT),
        Ugly("cut off before the label", '[{"bbox_2d": [1, 2, 3, 4], "label": "ca', R.TRUNCATED),
        Ugly("cut off behind the label", '[{"label": "cat", "bbox_2d": [1, 2, 3, 4]', R.TRUNCATED,
            [A], [S.CUT_OFF], labels=["cat"]),
        Ugly("an apostrophe", "[{'label': 'dog's toy', 'bbox_2d': [1, 2, 3, 4]}]", R.NOT_JSON,
            [A], [S.QUOTES], labels=["dog's toy"]),
        Ugly("a missing label is none", f"[{BOX_A},]", R.NOT_JSON),
    ),
    *rows(
        CLASSES,
        Ugly("a key for each label", '{"cat": [1, 2, 3, 4], "dog": [5, 6, 7, 8]}', R.NOT_A_LIST,
            [A, B], [S.STRUCTURE], labels=["cat", "dog"]),
        Ugly("label and box", '[{"label": "cat", "box": [1, 2, 3, 4]}]', R.WRONG_KEY, [A],
            [S.STRUCTURE], labels=["cat"]),
        Ugly("cut off in the second box", '[{"cat": [1, 2, 3, 4]}, {"dog": [5, 6', R.TRUNCATED, [A],
            [S.CUT_OFF], labels=["cat"]),
    ),
    *rows(
        VIDEO,
        Ugly("another key for the frame", '[{"frame": "frame 2", "bbox_2d": [1, 2, 3, 4]}]',
            R.NO_FRAME, [A], [S.KEY], frames=[1]),
        Ugly("frames as keys", '{"1": [[1, 2, 3, 4]], "Frame 3": [5, 6, 7, 8]}', R.NOT_A_LIST,
            [A, B], [S.STRUCTURE], frames=[0, 2]),
        Ugly("text", "Frame 1: [1, 2, 3, 4]", R.NOT_JSON, [A], [S.OTHER_OUTPUT], frames=[0]),
        Ugly("prose", "In frame 2 (1, 2, 3, 4), (5, 6, 7, 8)", R.NOT_JSON, [A, B], [S.PROSE],
            frames=[1, 1]),
        Ugly("no frame", f"[{BOX_A}]", R.NO_FRAME),
        Ugly("cut off", '[{"frame_idx": 2, "bbox_2d": [1, 2, 3, 4]}, {"frame_idx": 3', R.TRUNCATED,
            [A], [S.CUT_OFF], frames=[1]),
        Ugly("an empty list is an answer that does not adhere", "[]", R.NO_FRAME, [], []),
        Ugly("frames would count differently: nothing is added", '[{"frame_idx": 1, "bbox_2d": '
            '[1, 2, 3, 4]}, {"frame": 0, "bbox_2d": [5, 6, 7, 8]}]', R.NO_FRAME, [A], None,
            frames=[0]),
    ),
    *rows(
        LABELS_VIDEO,
        Ugly("labels in frames", '{"1": {"cat": [1, 2, 3, 4]}}', R.NOT_A_LIST, [A],
            [S.STRUCTURE], labels=["cat"], frames=[0]),
    ),
    *rows(
        TEXT,
        Ugly("signs", "[-1, 2, 3, 4]", R.NO_BOX, [(-1, 2, 3, 4)], [S.NUMBERS]),
        Ugly("quoted numbers", '["1", "2", "3", "4"]', R.NO_BOX, [A], [S.NUMBERS]),
        Ugly("round brackets", "It is at (1, 2, 3, 4).", R.NO_BOX, [A], [S.PROSE]),
        Ugly("JSON", '{"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}', R.NO_BOX, [A],
            [S.OTHER_OUTPUT]),
        Ugly("cut off", "[1, 2, 3", R.NO_BOX),
        Ugly("words", "I cannot see any dog.", R.NO_BOX),
    ),
    *rows(
        TEXT_SIZES,
        Ugly("corners by name", '{"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}', R.NO_BOX),
    ),
    *rows(
        TEXT_LABELS,
        Ugly("no colon", "cat [1, 2, 3, 4]", R.NO_BOX, [A], [S.PROSE], labels=["cat"]),
    ),
    *rows(
        TEXT_VIDEO,
        Ugly("JSON", '[{"frame_idx": 1, "bbox_2d": [1, 2, 3, 4]}]', R.NO_BOX, [A],
            [S.OTHER_OUTPUT], frames=[0]),
        Ugly("no colon", "Frame 2 [1, 2, 3, 4]", R.NO_BOX, [A], [S.PROSE], frames=[1]),
        Ugly("an empty list is an answer that does not adhere", "[]", R.NO_BOX, [], []),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("form", "row"), REPLIES)
def test_ugly_replies(form: ReplyFormat, row: Ugly) -> None:
    strict = read(row.reply, form)
    assert strict.reason is row.why
    result = parse_leniently(row.reply, form, strict)
    if row.repairs is None:
        assert result is None
        return
    assert result is not None
    assert result.reading == ParsedReply(
        tuple(row.boxes), tuple(row.labels), tuple(row.frames), row.why
    )
    assert list(result.repairs) == list(row.repairs)


# --- what holds for every reply -------------------------------------------------------------------


@pytest.mark.parametrize("why", [FormatFailure.FAILED_CALL, FormatFailure.TRUNCATED_THINKING, None])
def test_failed_calls_thoughts_and_adherent_replies_are_not_read_again(
    why: FormatFailure | None,
) -> None:
    assert parse_leniently(f"[{BOX_A},]", JSON, ParsedReply((), (), (), why)) is None


FORMATS = st.deferred(lambda: st.sampled_from(grid_formats()))
numbers = st.integers(0, 9999).map(lambda n: n / 10)
labels = st.text("ab\"'\\,:[]{} é\n", min_size=1, max_size=6).filter(lambda s: s.strip() == s)


@settings(deadline=None, max_examples=60)
@given(FORMATS.filter(lambda form: form.output == "json"), st.data())
def test_a_truncated_reply_yields_exactly_its_complete_boxes(
    form: ReplyFormat, data: st.DataObject
) -> None:
    corner = st.tuples(numbers, numbers, numbers, numbers).map(
        lambda n: (min(n[0], n[2]), min(n[1], n[3]), max(n[0], n[2]) + 1, max(n[1], n[3]) + 1)
    )
    some_boxes = data.draw(
        st.lists(st.builds(BoxToWrite, corner, labels, st.integers(0, form.frames - 1)), max_size=3)
    )
    # In the order in which a nested reply has them.
    some_boxes.sort(key=lambda each: (each.frame, each.label))
    reply = write(some_boxes, form)
    whole = read(reply, form)
    # What comes after the last number of the last box, less what shows that the number ends.
    after = {"nested": 3, "decomposed": 1}.get(form.structure, 2)
    ends = [len(write(some_boxes[:n], form)) - after for n in range(1, len(some_boxes) + 1)]
    for cut in range(len(reply)):
        strict = read(reply[:cut], form)
        result = parse_leniently(reply[:cut], form, strict)
        boxes, labels_, frames, _ = result.reading if result is not None else strict
        n = sum(end <= cut for end in ends)
        assert boxes == whole.boxes[:n], reply[:cut]
        assert labels_ == whole.labels[:n] or not n
        assert frames == whole.frames[:n]


PIECES = [
    "[", "]", "{", "}", "(", ")", ",", ":", "'", '"', "1", "2.5", "-3", " ", "\n", "bbox_2d",
    '"bbox_2d": ', "[1, 2, 3, 4]", "label", "frame 2", "cat", "```", "//", "/*", "#", "None", "%",
    "<think>", "</think>", "<box>", "\\", "9" * 400, "nan",
]  # fmt: skip


REPLIES = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=80)


@settings(max_examples=150)
@given(FORMATS, REPLIES)
def test_nothing_raises(form: ReplyFormat, reply: str) -> None:
    strict = read(reply, form)
    result = parse_leniently(reply, form, strict)
    if result is None:
        return
    count = len(result.reading.boxes)
    assert len(result.reading.labels) == count * form.multilabel
    assert len(result.reading.frames) == count * (form.frames > 1)
    assert result.reading.boxes[: len(strict.boxes)] == strict.boxes
    assert (count > len(strict.boxes) and result.repairs) or not count


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=4), st.sampled_from([None, 1]))
def test_json_is_read_strictly_as_json(value: list[object], indent: int | None) -> None:
    [result] = values_in(json.dumps(value, indent=indent))
    assert not result.repairs
    assert _plain(result.value) == value


def _plain(value: object) -> object:
    if hasattr(value, "pairs"):
        return {key: _plain(each) for key, each in value.pairs}
    return [_plain(each) for each in value.items] if hasattr(value, "items") else value


@every_pair("loop, form", LOOPS, [LABELS_VIDEO, TEXT], fast=15)
def test_anything_that_is_long_is_read_in_linear_time(loop: str, form: ReplyFormat) -> None:
    strict = ParsedReply((), (), (), FormatFailure.NOT_JSON)
    check_linear(LOOPS[loop], lambda text: parse_leniently(text, form, strict), LENIENT)


def test_overlong_replies_are_read_up_to_a_limit() -> None:
    long = f"[{BOX_A}, " + " " * LONGEST_REPLY + BOX_B
    result = parse_leniently(long, JSON, read(long, JSON))
    assert result is not None
    assert (result.reading.boxes, result.repairs) == ((A,), (Repair.CUT_OFF,))
