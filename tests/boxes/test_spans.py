"""Where a reply says its boxes: in every format, in ugly replies, and never a guess."""

from __future__ import annotations

import json

import pytest
from few_fast import every_nth_fast
from grids import all_formats
from hypothesis import given, settings
from linear_time import check_linear, repeated
from reply_tables import (
    CLASSES,
    CLOSE,
    DIGITS,
    FREE_TEXT,
    JSON,
    JSON_REPLIES,
    LABELS,
    LABELS_JSON,
    LABELS_VIDEO,
    LABELS_VIDEO_JSON,
    NAMED,
    NESTED_CLASSES,
    OPEN,
    TEXT,
    TEXT_REPLIES,
    Row,
)
from test_reading import SOME_BOXES, said_boxes

from vlmeval_findit.boxes import (
    CLASS_KEY,
    BoxToWrite,
    ReplyFormat,
    Span,
    read,
    stated_places,
    write,
)


def at(reply: str, span: Span | None) -> str | None:
    return None if span is None else reply[slice(*span)]


@settings(max_examples=10, deadline=None)
@given(SOME_BOXES)
def test_what_is_written_is_located_in_every_format(drawn: list[BoxToWrite]) -> None:
    """The places of a box hold the very numbers and the label that were written for it."""
    for form in all_formats():
        if form.frames == 1 or drawn:  # No box has no frame to say
            check_places(said_boxes(drawn, form), form)


def check_places(boxes: list[BoxToWrite], form: ReplyFormat) -> None:
    reply = write(boxes, form, digits=3)
    locations = stated_places(reply, form, read(reply, form))
    for each, location in zip(boxes, locations, strict=True):
        written = [round(n, 3) for n in form.numbers.from_corners(each.box)]
        assert [float(reply[slice(*span)]) for span in location.numbers] == written, form
        label = at(reply, location.label)
        if not form.multilabel or (form.key == CLASS_KEY and form.structure == "decomposed"):
            assert label in (None, each.label), form
        elif form.output == "json":
            # A label that is the name of a key is not told from it.
            assert label is None or json.loads(f'"{label}"') == each.label, form
        else:
            assert label == each.label, form
    numbers = [span for each in locations for span in each.numbers]
    assert len(set(numbers)) == len(numbers), "no number makes two boxes"


@pytest.mark.parametrize(("form", "row"), every_nth_fast(TEXT_REPLIES + JSON_REPLIES, 3))
def test_boxes_of_ugly_replies_are_located(form: ReplyFormat, row: Row) -> None:
    reading = read(row.reply, form)
    for box, each in zip(reading.boxes, stated_places(row.reply, form, reading), strict=True):
        if each is None:
            assert row.what == "booleans are 0 and 1", "only these numbers are no numbers"
            continue
        numbers = [float(row.reply[slice(*span)]) for span in each.numbers]
        assert form.numbers.to_corners(numbers) == box


A = '"bbox": [1, 2, 3, 4]'
B = '"bbox": [5, 6, 7, 8]'
TWICE = '[{"bbox": [1, 1, 1, 1]}, {"bbox": [1, 1, 1, 1]}]'


@pytest.mark.parametrize(
    ("form", "reply", "expected"),
    [
        (TEXT, "[1, 2, 3, 4]\n[5, 6, 7, 8]", [("1 2 3 4", None, "["), ("5 6 7 8", None, "]\n[")]),
        (TEXT, "In 2026, at 1, 2, 3:\n[1, 2, 3, 4]", [("1 2 3 4", None, "[")]),
        (TEXT, f"[1, 2, 3, 4] {OPEN}[1, 2, 3, 4]{CLOSE}",
         [("1 2 3 4", None, f"[1, 2, 3, 4] {OPEN}[")]),
        (FREE_TEXT, "(5, 6)-(7, 8) [1, 2, 3, 4]",
         [("1 2 3 4", None, ") ["), ("5 6 7 8", None, "(")]),
        (LABELS, "cat 2: [1, 2, 3, 4]\ndog: [5, 6, 7, 8]",
         [("1 2 3 4", "cat 2", ""), ("5 6 7 8", "dog", "]\n")]),
        (LABELS, " : [1, 2, 3, 4]", [("1 2 3 4", None, " : [")]),
        (LABELS_VIDEO, "1: 1: [1, 1, 1, 1]\n2: 2: [2, 2, 2, 2]",
         [("1 1 1 1", "1", "1: "), ("2 2 2 2", "2", "]\n2: ")]),
        (JSON, f"Here: [7]\n```json\n[{{{A}}}, {{{B}}}]\n```",
         [("1 2 3 4", None, '[{"bbox": ['), ("5 6 7 8", None, ']}, {"bbox": [')]),
        (JSON, TWICE, [("1 1 1 1", None, '[{"bbox": ['), ("1 1 1 1", None, ']}, {"bbox": [')]),
        (JSON, f'[{{"bbox": [9], "bbox": [{DIGITS}, 1, 2, 3]}}, {{{A}}}]',
         [("1 2 3 4", None, '{"bbox": [')]),
        (JSON, '[{"bbox": ["1", " 2 ", "3.0", 4e0]}]', [("1 2 3.0 4e0", None, '[{"bbox": ["')]),
        (JSON, '[{"bbox": [true, 2, 3, 4]}]', [None]),
        (JSON, '[{"bbox": ["1_0", 2, 3, 4]}]', [None]),
        (JSON, f'[{{"bbox": [true, 2, 3, 4]}}, {{{B}}}]', [None, ("5 6 7 8", None, None)]),
        (JSON, f"{OPEN}[{{\"bbox\": [01, 2, 3, 4]}}]{CLOSE}{OPEN}[{{{A}}}]{CLOSE}",
         [("1 2 3 4", None, '[{"bbox": [')]),
        (LABELS_JSON, f'[{{"label": "cat", {A}}}, {{{B}, "label": "a \\"dog\\""}}]',
         [("1 2 3 4", "cat", '[{"label": "'),
          ("5 6 7 8", 'a \\"dog\\"', ']}, {"bbox": [')]),
        (LABELS_JSON, f'[{{{A}, "label": "cat"}}, {{{B}, "label": "cat"}}]',
         [("1 2 3 4", "cat", '[{"bbox": ['), ("5 6 7 8", "cat", '"}, {"bbox": [')]),
        (LABELS_JSON, f'[{{"label": 7, {A}}}]', [("1 2 3 4", "7", '[{"label": ')]),
        (LABELS_JSON, f'[{{"label": "7", {A}}}]', [("1 2 3 4", "7", '[{"label": "')]),
        (LABELS_JSON, f'[{{"label": "bbox", {A}}}]',
         [("1 2 3 4", None, '[{"label": "bbox", "bbox": [')]),
        (CLASSES, '[{"7": [1, 2, 3, 4]}, {"cat": [5, 6, 7, 8]}]',
         [("1 2 3 4", "7", '[{"'), ("5 6 7 8", "cat", ']}, {"')]),
        (NESTED_CLASSES, '[{"cat": [[1, 2, 3, 4], [5, 6, 7, 8]]}, {"dog": [[1, 2, 3, 4]]}]',
         [("1 2 3 4", "cat", '[{"'), ("5 6 7 8", "cat", "], ["), ("1 2 3 4", "dog", ']]}, {"')]),
        (NAMED, '[{"height": 2, "width": 3, "y": 4, "x": 5}]',
         [("5 4 3 2", None, '[{"height": ')]),
        (LABELS_VIDEO_JSON, f'[{{"frame_idx": "1", "label": "cat", {A}}}]',
         [("1 2 3 4", "cat", '[{"frame_idx": "1", "label": "')]),
        # Two keys that are alike: told apart they read as two keys, so they have no place.
        (CLASSES, '[{"cat": [1, 2, 3, 4], "cat": [1, 2, 3, 4]}]', [None]),
        # An odd quotation mark in prose.
        (JSON, f'5" tall:\n```json\n[{{{A}}}]\n```', [("1 2 3 4", None, '[{"bbox": [')]),
    ],
)  # fmt: skip
def test_where_it_stands(
    form: ReplyFormat, reply: str, expected: list[tuple[str, str | None, str | None] | None]
) -> None:
    """The texts of the numbers of each box, of its label, and of what stands before it."""
    actual = [
        each and (" ".join(at(reply, span) for span in each.numbers),
                  at(reply, each.label), at(reply, each.before))
        for each in stated_places(reply, form, read(reply, form))
    ]  # fmt: skip
    assert actual == expected


LOOPS = repeated(["1", "[ ", '"', "1,", "[1, 2, 3, 4]", "1:", '\\"'])


@pytest.mark.parametrize("loop", every_nth_fast(LOOPS, 3))
def test_looking_for_places_takes_linear_time(loop: str) -> None:
    for form, beginning in ((FREE_TEXT, "[1, 2, 3, 4]"), (JSON, f"```json\n[{{{A}}}]\n```")):

        def find(piece: str, form: ReplyFormat = form, beginning: str = beginning) -> None:
            reply = beginning + piece
            assert stated_places(reply, form, read(reply, form))[0] is not None

        check_linear(LOOPS[loop], find)
