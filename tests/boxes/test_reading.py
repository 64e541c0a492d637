"""Reading replies: ugly real ones with what must be read from them, and what no reply may do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from few_fast import every_nth_fast
from grids import all_formats
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_time import check_linear, repeated
from reply_tables import (
    ALL_TEXT,
    CLOSE,
    DIGITS,
    FREE_LABELS,
    FREE_TEXT,
    JSON,
    JSON_REPLIES,
    LABELS,
    LABELS_JSON,
    LABELS_VIDEO,
    NESTED,
    OPEN,
    TEXT,
    TEXT_REPLIES,
    VIDEO,
    VIDEO_JSON,
    A,
    B,
    R,
    Row,
    in_frame,
    json_box,
    quoted,
)

from vlmeval_findit.boxes import BoxToWrite, ParsedReply, ReplyFormat, read, write


@pytest.mark.parametrize(("form", "row"), TEXT_REPLIES + JSON_REPLIES)
def test_what_is_read(form: ReplyFormat, row: Row) -> None:
    expected = ParsedReply(tuple(row.boxes), tuple(row.labels), tuple(row.frames), row.reason)
    assert read(row.reply, form) == expected


# --- what no reply may do -------------------------------------------------------------------------

FORMATS = st.deferred(lambda: st.sampled_from(all_formats()))

EXAMPLE = (BoxToWrite(A, "cat", 0), BoxToWrite(B, "dog", 1))

KEYS = st.sampled_from(["bbox", "bbox_2d", "bboxes", "label", "frame_idx", "x", "xmin"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(KEYS, inner),
    max_leaves=12,
)

PIECES = st.sampled_from(
    ["[", "]", "(", ")", "{", "}", ":", ",", " ", "\n", "1", "2.5", "frame ", "<2>", "cat",
     '"bbox"', "```", "```json", OPEN, CLOSE, "null", "NaN", "-", "1e999", "\x00", "٣", "²", DIGITS]
)  # fmt: skip

REPLIES = st.text() | st.lists(PIECES).map("".join) | (VALUES | st.lists(VALUES)).map(json.dumps)


def check(reading: ParsedReply, form: ReplyFormat) -> None:
    """What holds for every reading."""
    assert all(len(box) == 4 for box in reading.boxes)
    assert len(reading.labels) == (len(reading.boxes) if form.multilabel else 0)
    assert len(reading.frames) == (len(reading.boxes) if form.frames > 1 else 0)
    assert all(0 <= frame < form.frames for frame in reading.frames)


@settings(max_examples=200)
@given(FORMATS, REPLIES)
def test_no_reply_raises(form: ReplyFormat, reply: str) -> None:
    check(read(reply, form), form)


def test_no_end_of_a_reply_raises() -> None:
    for form in all_formats():
        reply = write(EXAMPLE, form)
        for end in range(len(reply)):
            reading = read(reply[:end], form)
            check(reading, form)
            if form.output == "json":
                assert reading.reason in (R.EMPTY, R.TRUNCATED), (form, reply[:end])


# --- writing and reading are inverse --------------------------------------------------------------

LABEL_TEXTS = st.from_regex(r"[A-Za-z]([A-Za-z '\"\-]{0,10}[A-Za-z])?", fullmatch=True)
COORDINATES = st.integers(0, 4_000_000).map(lambda n: n / 1000)


@st.composite
def labelled_boxes(draw: st.DrawFn) -> BoxToWrite:
    """A box with a label, in one of eight frames."""
    x, y, width, height = (draw(COORDINATES) for _ in range(4))
    box = (x, y, x + width + 0.01, y + height + 0.01)
    return BoxToWrite(box, draw(LABEL_TEXTS), draw(st.integers(0, 7)))


SOME_BOXES = st.lists(labelled_boxes(), max_size=5)


def said_boxes(drawn: Sequence[BoxToWrite], form: ReplyFormat) -> list[BoxToWrite]:
    """Return boxes as a model could say them in a format, grouped as its structure groups them."""
    boxes = [
        BoxToWrite(each.box, each.label if form.multilabel else "", each.frame % form.frames)
        for each in drawn
    ]
    if form.structure != "nested":
        return boxes
    groups: dict[tuple[int, str], list[BoxToWrite]] = {}
    for each in boxes:
        groups.setdefault((each.frame, each.label), []).append(each)
    return [each for group in groups.values() for each in group]


@settings(max_examples=30, deadline=None)
@given(SOME_BOXES)
def test_what_is_written_is_read_in_every_format(drawn: list[BoxToWrite]) -> None:
    for form in all_formats():
        if form.frames > 1 and not drawn:
            continue  # No box has no frame to say
        boxes = said_boxes(drawn, form)
        reading = read(write(boxes, form, digits=6), form)
        assert reading.reason is None, form
        for box, each in zip(reading.boxes, boxes, strict=True):
            assert max(abs(a - b) for a, b in zip(box, each.box, strict=True)) < 1e-5, form
        labels = tuple(each.label for each in boxes) if form.multilabel else ()
        frames = tuple(each.frame for each in boxes) if form.frames > 1 else ()
        assert (reading.labels, reading.frames) == (labels, frames), form


def test_two_frames_are_a_video_in_every_format() -> None:
    boxes = [BoxToWrite((10, 20, 30, 40), "cat", 1), BoxToWrite((10, 20, 30, 50), "cat", 0)]
    for form in all_formats():
        if form.frames > 1:
            of_two = replace(form, frames=2)
            reading = read(write(boxes, of_two), of_two)
            assert (reading.reason, reading.frames) == (None, (1, 0)), form


# --- reading takes linear time --------------------------------------------------------------------

LOOPED_PIECES = (
    "a",
    "1",
    " ",
    "\n",
    "[",
    "]",
    "(",
    "{",
    ":",
    ",",
    '"',
    "`",
    "```json\n",
    "<",
    ">",
    OPEN,
    CLOSE,
    OPEN + CLOSE,
    OPEN + "[1, 2" + CLOSE,
    '{"a":',
    '[{"bbox":',
    "[1, 2, 3, ",
    "(1, 2, 3, ",
    "(1, 2)",
    "[1",
    "[ ",
    "a: ",
    "1:",
    "frame 1>: ",
    "1,",
    "1.",
    "[1, 2, 3, 4]",
    "1: cat: [1, 2, 3, 4]\n",
    "cat: (1, 2, 3, 4)\n",
    "The dog is at the left. ",
)
LOOPS: dict[str, Callable[[int], str]] = {
    **repeated(LOOPED_PIECES),
    "letters, colon": lambda n: "a" * (n - 1) + ":",
    "letters, blanks, colon": lambda n: "a" * (n // 2) + " " * (n // 2) + ":",
    "letters, box": lambda n: "a" * n + ": [1, 2, 3, 4]",
    "digits, box": lambda n: "1" * n + ": [1, 2, 3, 4]",
    "blanks, box": lambda n: "1:" + " " * n + "[1, 2, 3, 4]",
    "one long number": lambda n: "[" + "1" * n + ", 2, 3, 4]",
    "one long number in JSON": lambda n: json_box("[" + "1" * n + ", 2, 3, 4]"),
    "one long frame number": lambda n: f"[{in_frame(quoted('1' * n))}]",
    "one long string": lambda n: json_box('["' + "1" * n + '", 2, 3, 4]'),
    "an open marker, closed at last": lambda n: OPEN + "[" * n + CLOSE,
}

LOOPED = [
    TEXT, ALL_TEXT, FREE_TEXT, LABELS, FREE_LABELS, VIDEO, LABELS_VIDEO,
    ReplyFormat("text", "all-labelled", frames=3), JSON, NESTED, LABELS_JSON, VIDEO_JSON,
]  # fmt: skip


@pytest.mark.parametrize("loop", every_nth_fast(LOOPS, 3))
def test_long_input_is_read_in_linear_time(loop: str) -> None:
    for form in LOOPED:
        check_linear(LOOPS[loop], lambda text, form=form: check(read(text, form), form))
