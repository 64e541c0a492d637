"""Reading replies: ugly real ones with what must be read from them, and what no reply may do."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from grids import grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vlmeval_findit.boxes.reading import read
from vlmeval_findit.boxes.records import FormatFailure, ParsedReply
from vlmeval_findit.boxes.representation import (
    DEFAULT_KEY,
    DEFAULT_STRUCTURE,
    NO_RECTANGLE,
    Corners,
    ReplyFormat,
)
from vlmeval_findit.boxes.writing import BoxToWrite, write
from vlmeval_findit.models.model_table import MODELS

R = FormatFailure
TEXT = ReplyFormat("text", "xyxy")
ALL_TEXT = ReplyFormat("text", "all")
FREE_TEXT = ReplyFormat("text", "unconstrained")
LABELS = ReplyFormat("text", "xyxy", multilabel=True)
FREE_LABELS = ReplyFormat("text", "unconstrained", multilabel=True)
VIDEO = ReplyFormat("text", "xyxy", frames=3)
LABELS_VIDEO = ReplyFormat("text", "xyxy", multilabel=True, frames=3)
JSON = ReplyFormat("json", "xyxy")
ALL_JSON = ReplyFormat("json", "all")
NESTED = ReplyFormat("json", "xyxy", structure="nested")
NAMED = ReplyFormat("json", "xywh", structure="decomposed")
LABELS_JSON = ReplyFormat("json", "xyxy", multilabel=True)
CLASSES = ReplyFormat("json", "xyxy", key="class_name", multilabel=True)
NESTED_CLASSES = ReplyFormat("json", "xyxy", "class_name", "nested", multilabel=True)
VIDEO_JSON = ReplyFormat("json", "xyxy", frames=3)
LABELS_VIDEO_JSON = ReplyFormat("json", "xyxy", multilabel=True, frames=3)

A: Corners = (1, 2, 3, 4)
B: Corners = (5, 6, 7, 8)
C: Corners = (0.5, 0.25, 9, 10)


class Row(NamedTuple):
    """One reply and what is read from it."""

    what: str
    reply: str
    boxes: Sequence[Corners] = ()
    reason: FormatFailure | None = None
    labels: Sequence[str] = ()
    frames: Sequence[int] = ()


def spelt(form: ReplyFormat) -> str:
    """A format as the id of a test."""
    words = [form.output, form.representation]
    words += [form.key] * (form.key != DEFAULT_KEY)
    words += [form.structure] * (form.structure != DEFAULT_STRUCTURE)
    words += ["labels"] * form.multilabel + [f"f{form.frames}"] * (form.frames > 1)
    return " ".join(words)


def rows(form: ReplyFormat, *table: Row) -> list[object]:
    return [pytest.param(form, row, id=f"{spelt(form)}: {row.what}") for row in table]


OPEN, CLOSE = "<|begin_of_box|>", "<|end_of_box|>"
DIGITS = "9" * 5000

TEXT_REPLIES = [
    *rows(
        TEXT,
        Row("a box", "[1, 2, 3, 4]", [A]),
        Row("no blanks", "[1,2,3,4]", [A]),
        Row("blanks and line ends anywhere", "[ 1 ,\n2\t,3 , 4\n]", [A]),
        Row("prose around", "Sure! The dog is at [1, 2, 3, 4]. The cat: [5, 6, 7, 8]!", [A, B]),
        Row("fractions", "[0.5, 0.25, 9, 10]", [C]),
        Row("a fraction needs digits on both sides", "[1., .2, 3, 4]", reason=R.NO_BOX),
        Row("no sign", "[-1, 2, 3, 4]", reason=R.NO_BOX),
        Row("no exponent", "[1e0, 2, 3, 4]", reason=R.NO_BOX),
        Row("leading zeros", "[01, 002, 3, 4.0]", [A]),
        Row("a JSON list of lists", "[[1, 2, 3, 4], [5, 6, 7, 8]]", [A, B]),
        Row("JSON objects", '[{"bbox": [1, 2, 3, 4]}]', [A]),
        Row("a fence changes nothing", "```json\n[1, 2, 3, 4]\n``` or [5, 6, 7, 8]", [A, B]),
        Row("swapped corners stay", "[3, 4, 1, 2]", [(3, 4, 1, 2)]),
        Row("three and five numbers", "[1, 2, 3] [1, 2, 3, 4, 5]", reason=R.NO_BOX),
        Row("separators other than commas", "[1 2 3 4] [1; 2; 3; 4]", reason=R.NO_BOX),
        Row("quoted numbers", '["1", "2", "3", "4"]', reason=R.NO_BOX),
        Row("full-width digits are digits", "[１, ２, ３, ４]", [A]),
        Row("full-width brackets are none", "［1, 2, 3, 4］", reason=R.NO_BOX),
        Row("html", "<p>[1, 2, 3, 4]<br>[5, 6, 7, 8]</p>", [A, B]),
        Row("html entities", "&#91;1, 2, 3, 4&#93;", reason=R.NO_BOX),
        Row("round brackets", "(1, 2, 3, 4)", reason=R.NO_BOX),
        Row("an empty list", "[]"),
        Row("an empty list in prose", "There is none: [ \n ]."),
        Row("an empty list beside a box", "[] [1, 2, 3, 4]", [A]),
        Row("nothing", "", reason=R.EMPTY),
        Row("blanks", " \n\t", reason=R.EMPTY),
        Row("a refusal", "I cannot see any dog.", reason=R.NO_BOX),
        Row("cut off", "[1, 2, 3", reason=R.NO_BOX),
        Row("a number of 5,000 digits", f"[{DIGITS}, 2, 3, 4]", reason=R.NOT_FINITE),
        Row("... beside a box", f"[{DIGITS}, 2, 3, 4] [1, 2, 3, 4]", [A], R.NOT_FINITE),
        Row("... beside an empty list", f"[{DIGITS}, 2, 3, 4] []", reason=R.NOT_FINITE),
        Row("GLM: only the first block", f"[5, 6, 7, 8] {OPEN}[1, 2, 3, 4]{CLOSE} {OPEN}[]{CLOSE}",
            [A]),
        Row("GLM: an empty first block", f"{OPEN}{CLOSE}[1, 2, 3, 4]", reason=R.EMPTY),
        Row("GLM: an open marker alone", f"{OPEN}[1, 2, 3, 4]", [A]),
        Row("GLM: markers the wrong way round", f"{CLOSE}[1, 2, 3, 4]{OPEN}", [A]),
    ),
    *rows(
        ReplyFormat("text", "cxcywh"),
        Row("centre and size", "[2, 3, 2, 2]", [A]),
    ),
    *rows(
        ReplyFormat("text", "yxhw"),
        Row("y first", "[2, 1, 2, 2]", [A]),
    ),
    *rows(
        ALL_TEXT,
        Row("four corners", "[1, 2, 3, 2, 3, 4, 1, 4]", [A]),
        Row("no rectangle matches nothing", "[1, 2, 3, 2, 3, 4, 1, 5]", [NO_RECTANGLE]),
        Row("four numbers are no box", "[1, 2, 3, 4]", reason=R.NO_BOX),
        Row("pairs are no box", "[(1, 2), (3, 2), (3, 4), (1, 4)]", reason=R.NO_BOX),
    ),
    *rows(
        FREE_TEXT,
        Row("square brackets", "[1, 2, 3, 4]", [A]),
        Row("round brackets", "(1, 2, 3, 4)", [A]),
        Row("a pair of pairs", "from (1, 2) to (3, 4)", [A]),
        Row("a pair of pairs over lines", "top left: (1, 2)\nbottom right: (3, 4)", [A]),
        Row("three pairs are one box", "(1, 2) (3, 4) (5, 6)", [A]),
        Row("four pairs are two boxes", "(1, 2) (3, 4) (5, 6) (7, 8)", [A, B]),
        Row("one pair", "at (1, 2)", reason=R.NO_BOX),
        Row("order: square, pairs, round", "(0.5, 0.25, 9, 10) (5, 6)-(7, 8) [1, 2, 3, 4]",
            [A, B, C]),
        Row("an empty list", "[]"),
        Row("empty round brackets", "()", reason=R.NO_BOX),
    ),
    *rows(
        LABELS,
        Row("a label", "cat: [1, 2, 3, 4]", [A], labels=["cat"]),
        Row("lines", "cat: [1, 2, 3, 4]\ndog: [5, 6, 7, 8]", [A, B], labels=["cat", "dog"]),
        Row("the label is all of the prose", "I see a big cat : [1, 2, 3, 4]", [A],
            labels=["I see a big cat"]),
        Row("... back to a colon", "Answer: cat: [1, 2, 3, 4]", [A], labels=["cat"]),
        Row("... back to an opening bracket", "[cat: [1, 2, 3, 4]]", [A], labels=["cat"]),
        Row("... back to a closing bracket", "[a] cat: [1, 2, 3, 4]", [A], labels=["cat"]),
        Row("... back to the previous match", "cat: [1, 2, 3, 4], dog: [5, 6, 7, 8]", [A, B],
            labels=["cat", ", dog"]),
        Row("a label over lines", "big\ncat:\n[1, 2, 3, 4]", [A], labels=["big\ncat"]),
        Row("a label of blanks", " : [1, 2, 3, 4]", [A], labels=[""]),
        Row("no label", ": [1, 2, 3, 4]", reason=R.NO_BOX),
        Row("no colon", "cat [1, 2, 3, 4]", reason=R.NO_BOX),
        Row("one label, two boxes", "cat: [1, 2, 3, 4], [5, 6, 7, 8]", [A], labels=["cat"]),
        Row("two colons", "cat:: [1, 2, 3, 4]", reason=R.NO_BOX),
        Row("a box as a label", "cat: [1, 2, 3, 4]: [5, 6, 7, 8]", [A], labels=["cat"]),
        Row("quotes stay", '"cat": [1, 2, 3, 4]', [A], labels=['"cat"']),
        Row("unicode", "猫 🐈: [1, 2, 3, 4]", [A], labels=["猫 🐈"]),
        Row("not finite", f"cat: [{DIGITS}, 2, 3, 4] dog: [1, 2, 3, 4]", [A], R.NOT_FINITE,
            labels=["dog"]),
        Row("an empty list", "[]"),
        Row("a label with an empty list", "cat: []"),
        Row("nothing", "", reason=R.EMPTY),
        Row("GLM", f"dog: {OPEN}cat: [1, 2, 3, 4]{CLOSE}", [A], labels=["cat"]),
    ),
    *rows(
        FREE_LABELS,
        Row("round brackets come after", "cat: (1, 2, 3, 4)\ndog: [5, 6, 7, 8]", [B, A],
            labels=["(1, 2, 3, 4)\ndog", "cat"]),
        Row("a label has no parentheses before (…)", "(a) cat: (1, 2, 3, 4)", [A], labels=["cat"]),
        Row("... but may before […]", "(a) cat: [1, 2, 3, 4]", [A], labels=["(a) cat"]),
        Row("pairs are no box", "cat: (1, 2) (3, 4)", reason=R.NO_BOX),
    ),
    *rows(
        VIDEO,
        Row("from 1", "1: [1, 2, 3, 4]\n3: [5, 6, 7, 8]", [A, B], frames=[0, 2]),
        Row("from 0", "0: [1, 2, 3, 4]\n2: [5, 6, 7, 8]", [A, B], frames=[0, 2]),
        Row("the last frame alone", "3: [1, 2, 3, 4]", [A], frames=[2]),
        Row("the smallest decides, wherever it stands", "1: [1, 2, 3, 4] 0: [5, 6, 7, 8]", [A, B],
            frames=[1, 0]),
        Row("with the word", "Frame 1: [1, 2, 3, 4]\nFRAME 2: [5, 6, 7, 8]", [A, B],
            frames=[0, 1]),
        Row("angle brackets", "<1>: [1, 2, 3, 4] <frame 2>: [5, 6, 7, 8]", [A, B], frames=[0, 1]),
        Row("blanks before the colon", "2 : [1, 2, 3, 4] < 3 > :[5, 6, 7, 8]", [A, B],
            frames=[1, 2]),
        Row("two boxes in a frame", "1: [1, 2, 3, 4]\n1: [5, 6, 7, 8]", [A, B], frames=[0, 0]),
        Row("out of range above", "1: [1, 2, 3, 4] 4: [5, 6, 7, 8]", [A],
            R.FRAME_OUT_OF_RANGE, frames=[0]),
        Row("out of range when counted from 0", "0: [1, 2, 3, 4] 3: [5, 6, 7, 8]", [A],
            R.FRAME_OUT_OF_RANGE, frames=[0]),
        Row("a frame of 5,000 digits", f"1: [1, 2, 3, 4] {DIGITS}: [5, 6, 7, 8]", [A],
            R.FRAME_OUT_OF_RANGE, frames=[0]),
        Row("leading zeros", "01: [1, 2, 3, 4]", [A], frames=[0]),
        Row("no index", "[1, 2, 3, 4]", reason=R.NO_BOX),
        Row("a word as index", "first: [1, 2, 3, 4]", reason=R.NO_BOX),
        Row("an empty list is no answer", "[]", reason=R.NO_BOX),
        Row("nothing", "", reason=R.EMPTY),
        Row("only frames without a box", "1: []", reason=R.NO_BOX),
    ),
    *rows(
        LABELS_VIDEO,
        Row("index, label, box", "1: cat: [1, 2, 3, 4]\nFrame 3: dog: [5, 6, 7, 8]", [A, B],
            labels=["cat", "dog"], frames=[0, 2]),
        Row("no label", "1: [1, 2, 3, 4]", reason=R.NO_BOX),
        Row("no index", "cat: [1, 2, 3, 4]", reason=R.NO_BOX),
    ),
]  # fmt: skip

JSON_REPLIES = [
    *rows(
        JSON,
        Row("a list of objects", '[{"bbox": [1, 2, 3, 4]}, {"bbox": [5, 6, 7, 8]}]', [A, B]),
        Row("other keys do not matter", '[{"bbox": [1, 2, 3, 4], "label": "x", "score": 1}]', [A]),
        Row("an empty list", "[]"),
        Row("an empty list in a fence", "```json\n[]\n```"),
        Row("a fence", '```json\n[{"bbox": [1, 2, 3, 4]}]\n```', [A]),
        Row("a fence with prose", 'Here:\n```JSON\n[{"bbox": [1, 2, 3, 4]}]\n```\nDone.', [A]),
        Row("a fence without json", '```\n[{"bbox": [1, 2, 3, 4]}]\n```', [A]),
        Row("a fence in one line", '```json[{"bbox": [1, 2, 3, 4]}]```', [A]),
        Row("a fence of another language", '```python\n[{"bbox": [1, 2, 3, 4]}]\n```',
            reason=R.NOT_JSON),
        Row("only the first fence", '```json\n[]\n```\n```json\n[{"bbox": [1, 2, 3, 4]}]\n```'),
        Row("a fence that does not close", '```json\n[{"bbox": [1, 2, 3, 4]}]\n',
            reason=R.NOT_JSON),
        Row("prose around", 'Here: [{"bbox": [1, 2, 3, 4]}]', reason=R.NOT_JSON),
        Row("prose after", '[{"bbox": [1, 2, 3, 4]}] Done.', reason=R.NOT_JSON),
        Row("GLM markers", f'Thus {OPEN}[{{"bbox": [1, 2, 3, 4]}}]{CLOSE}.', [A]),
        Row("GLM: the first block that parses", f"{OPEN}a dog{CLOSE} {OPEN}[]{CLOSE}"),
        Row("GLM: no block parses", f"{OPEN}a dog{CLOSE}", reason=R.NOT_JSON),
        Row("GLM in a fence", f'```json\n{OPEN}[{{"bbox": [1, 2, 3, 4]}}]{CLOSE}\n```', [A]),
        Row("GLM: markers inside a string of valid JSON",
            f'[{{"bbox": [1, 2, 3, 4], "label": "{OPEN}x{CLOSE}"}}]', [A]),
        Row("a bare object", '{"bbox": [1, 2, 3, 4]}', reason=R.NOT_A_LIST),
        Row("a bare number", "7", reason=R.NOT_A_LIST),
        Row("null", "null", reason=R.NOT_A_LIST),
        Row("a string", '"[1, 2, 3, 4]"', reason=R.NOT_A_LIST),
        Row("lists, not objects", "[[1, 2, 3, 4]]", reason=R.NOT_AN_OBJECT),
        Row("a bare box", "[1, 2, 3, 4]", reason=R.NOT_AN_OBJECT),
        Row("null among objects", '[null, {"bbox": [1, 2, 3, 4]}]', [A], R.NOT_AN_OBJECT),
        Row("another key", '[{"box": [1, 2, 3, 4]}, {"bbox": [1, 2, 3, 4]}]', [A],
            R.WRONG_KEY),
        Row("the key in capitals", '[{"BBOX": [1, 2, 3, 4]}]', reason=R.WRONG_KEY),
        Row("the plural key", '[{"bboxes": [[1, 2, 3, 4]]}]', reason=R.WRONG_KEY),
        Row("an empty object", "[{}]", reason=R.WRONG_KEY),
        Row("three numbers", '[{"bbox": [1, 2, 3]}]', reason=R.WRONG_SHAPE),
        Row("five numbers", '[{"bbox": [1, 2, 3, 4, 5]}]', reason=R.WRONG_SHAPE),
        Row("no numbers", '[{"bbox": []}]', reason=R.WRONG_SHAPE),
        Row("a nested list", '[{"bbox": [[1, 2, 3, 4]]}]', reason=R.WRONG_SHAPE),
        Row("pairs", '[{"bbox": [[1, 2], [3, 4], [1, 2], [3, 4]]}]', reason=R.NOT_A_NUMBER),
        Row("an object for a box", '[{"bbox": {"x": 1}}]', reason=R.WRONG_SHAPE),
        Row("a string for a box", '[{"bbox": "1, 2, 3, 4"}]', reason=R.WRONG_SHAPE),
        Row("a string of four digits", '[{"bbox": "1234"}]', reason=R.WRONG_SHAPE),
        Row("null for a box", '[{"bbox": null}]', reason=R.WRONG_SHAPE),
        Row("strings as numbers", '[{"bbox": ["1", " 2 ", "3.0", "4e0"]}]', [A]),
        Row("words as numbers", '[{"bbox": ["1", "2", "3", "four"]}]', reason=R.NOT_A_NUMBER),
        Row("null among numbers", '[{"bbox": [1, 2, null, 4]}]', reason=R.NOT_A_NUMBER),
        Row("booleans are 0 and 1", '[{"bbox": [false, true, 3, 4]}]', [(0, 1, 3, 4)]),
        Row("negative numbers", '[{"bbox": [-1, 2, 3, 4]}]', [(-1, 2, 3, 4)]),
        Row("NaN", '[{"bbox": [NaN, 2, 3, 4]}]', reason=R.NOT_FINITE),
        Row("Infinity", '[{"bbox": [1, 2, Infinity, 4]}]', reason=R.NOT_FINITE),
        Row("NaN as a string", '[{"bbox": ["nan", 2, 3, 4]}]', reason=R.NOT_FINITE),
        Row("1e999", '[{"bbox": [1, 2, 1e999, 4]}]', reason=R.NOT_FINITE),
        Row("both infinities", '[{"bbox": [-Infinity, 2, Infinity, 4]}]',
            reason=R.NOT_FINITE),
        Row("large and finite", '[{"bbox": [1e308, 2, 1e308, 4]}]', [(1e308, 2, 1e308, 4)]),
        Row("an integer of 400 digits", f'[{{"bbox": [{"9" * 400}, 2, 3, 4]}}]',
            reason=R.NOT_FINITE),
        Row("an integer of 5,000 digits", f'[{{"bbox": [{DIGITS}, 2, 3, 4]}}]',
            reason=R.NOT_FINITE),
        Row("... beside a box", f'[{{"bbox": [{DIGITS}, 2, 3, 4]}}, {{"bbox": [1, 2, 3, 4]}}]',
            [A], R.NOT_FINITE),
        Row("a leading zero is no JSON", '[{"bbox": [01, 2, 3, 4]}]', reason=R.NOT_JSON),
        Row("a duplicated key: the last counts", '[{"bbox": [5, 6, 7, 8], "bbox": [1, 2, 3, 4]}]',
            [A]),
        Row("a trailing comma", '[{"bbox": [1, 2, 3, 4]},]', reason=R.NOT_JSON),
        Row("single quotes", "[{'bbox': [1, 2, 3, 4]}]", reason=R.NOT_JSON),
        Row("a comment", '[{"bbox": [1, 2, 3, 4]} // dog\n]', reason=R.NOT_JSON),
        Row("two lists", '[{"bbox": [1, 2, 3, 4]}][]', reason=R.NOT_JSON),
        Row("lines of objects", '{"bbox": [1, 2, 3, 4]}\n{"bbox": [1, 2, 3, 4]}',
            reason=R.NOT_JSON),
        Row("cut off in a number", '[{"bbox": [1, 2, 3, 4]}, {"bbox": [5, 6', (),
            R.TRUNCATED),
        Row("cut off in a fraction", '[{"bbox": [1, 2.', (), R.TRUNCATED),
        Row("cut off in an exponent", '[{"bbox": [1, 2e-', (), R.TRUNCATED),
        Row("cut off after a minus", '[{"bbox": [1, -', (), R.TRUNCATED),
        Row("cut off in null", '[{"bbox": nul', (), R.TRUNCATED),
        Row("a word that is cut off was never JSON", "[dog", (), R.NOT_JSON),
        Row("cut off in a string", '[{"bbox": [1, 2, 3, 4]}, {"bb', (), R.TRUNCATED),
        Row("cut off after an object", '[{"bbox": [1, 2, 3, 4]}', (), R.TRUNCATED),
        Row("cut off in a fence", '```json\n[{"bbox": [1, 2, 3, 4]}, ', (), R.TRUNCATED),
        Row("nothing", "", reason=R.EMPTY),
        Row("blanks", "\n ", reason=R.EMPTY),
        Row("a refusal", "There is no dog.", reason=R.NOT_JSON),
        Row("html", "<ul><li>1, 2, 3, 4</li></ul>", reason=R.NOT_JSON),
        Row("a byte order mark", "\ufeff[]", reason=R.NOT_JSON),
        Row("brackets without end", "[" * 100_000, reason=R.NOT_JSON),
        Row("the first reason counts", '[7, {"box": 1}, {"bbox": [1]}]',
            reason=R.NOT_AN_OBJECT),
    ),
    *rows(
        ReplyFormat("json", "unconstrained", key="bbox_2d"),
        Row("xyxy under the cell's key", '[{"bbox_2d": [1, 2, 3, 4]}]', [A]),
        Row("not under another", '[{"bbox": [1, 2, 3, 4]}]', reason=R.WRONG_KEY),
    ),
    *rows(
        ALL_JSON,
        Row("four corners", '[{"bbox": [1, 2, 3, 2, 3, 4, 1, 4]}]', [A]),
        Row("four numbers", '[{"bbox": [1, 2, 3, 4]}]', reason=R.WRONG_SHAPE),
        Row("null among them", '[{"bbox": [1, 2, 3, 2, 3, 4, 1, null]}]',
            reason=R.NOT_A_NUMBER),
        Row("NaN among them", '[{"bbox": [1, 2, 3, 2, 3, 4, 1, NaN]}]', reason=R.NOT_FINITE),
        Row("no rectangle matches nothing", '[{"bbox": [1, 2, 3, 2, 3, 4, 1, 5]}]',
            [NO_RECTANGLE]),
        Row("strings are equal as numbers", '[{"bbox": ["1", 2, 3, "2.0", 3, 4, 1.0, 4]}]', [A]),
    ),
    *rows(
        NESTED,
        Row("one object", '[{"bboxes": [[1, 2, 3, 4], [5, 6, 7, 8]]}]', [A, B]),
        Row("one bare object", '{"bboxes": [[1, 2, 3, 4]]}', [A]),
        Row("two objects", '[{"bboxes": [[1, 2, 3, 4]]}, {"bboxes": [[5, 6, 7, 8]]}]', [A, B]),
        Row("no boxes", '[{"bboxes": []}]'),
        Row("an empty list", "[]"),
        Row("the singular key", '[{"bbox": [[1, 2, 3, 4]]}]', reason=R.WRONG_KEY),
        Row("a box, not a list of them", '[{"bboxes": [1, 2, 3, 4]}]', reason=R.WRONG_SHAPE),
        Row("one bad box", '[{"bboxes": [[1, 2, 3, 4], [1, 2], [5, 6, 7, 8]]}]', [A, B],
            R.WRONG_SHAPE),
    ),
    *rows(
        NAMED,
        Row("one key a number", '[{"x": 1, "y": 2, "width": 2, "height": 2}]', [A]),
        Row("any order, more keys", '[{"height": 2, "width": 2, "y": 2, "x": 1, "z": 0}]', [A]),
        Row("a missing key", '[{"x": 1, "y": 2, "width": 2}]', reason=R.WRONG_KEY),
        Row("other names", '[{"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}]',
            reason=R.WRONG_KEY),
        Row("null", '[{"x": null, "y": 2, "width": 2, "height": 2}]', reason=R.NOT_A_NUMBER),
        Row("a string", '[{"x": "1", "y": 2, "width": 2, "height": 2}]', [A]),
        Row("a list", '[{"x": [1], "y": 2, "width": 2, "height": 2}]',
            reason=R.NOT_A_NUMBER),
    ),
    *rows(
        LABELS_JSON,
        Row("labels", '[{"label": "cat", "bbox": [1, 2, 3, 4]}]', [A], labels=["cat"]),
        Row("stripped", '[{"label": "\\n cat ", "bbox": [1, 2, 3, 4]}]', [A], labels=["cat"]),
        Row("missing", '[{"bbox": [1, 2, 3, 4]}]', [A], labels=[""]),
        Row("null", '[{"label": null, "bbox": [1, 2, 3, 4]}]', [A], labels=["None"]),
        Row("a number", '[{"label": 7, "bbox": [1, 2, 3, 4]}]', [A], labels=["7"]),
        Row("a list", '[{"label": ["cat"], "bbox": [1, 2, 3, 4]}]', [A], labels=["['cat']"]),
        Row("a skipped box has no label", '[{"label": "dog", "bbox": [1]}, '
            '{"label": "cat", "bbox": [1, 2, 3, 4]}]', [A], R.WRONG_SHAPE, labels=["cat"]),
        Row("half a surrogate pair", '[{"label": "\\ud83d", "bbox": [1, 2, 3, 4]}]', [A],
            labels=["\ud83d"]),
        Row("an empty list", "[]"),
    ),
    *rows(
        CLASSES,
        Row("the key is the label", '[{" cat ": [1, 2, 3, 4]}, {"dog": [5, 6, 7, 8]}]', [A, B],
            labels=["cat", "dog"]),
        Row("two keys", '[{"cat": [1, 2, 3, 4], "dog": [5, 6, 7, 8]}]', reason=R.WRONG_KEY),
        Row("no key", "[{}]", reason=R.WRONG_KEY),
        Row("label and bbox", '[{"label": "cat", "bbox": [1, 2, 3, 4]}]', reason=R.WRONG_KEY),
        Row("an empty key", '[{"": [1, 2, 3, 4]}]', [A], labels=[""]),
    ),
    *rows(
        NESTED_CLASSES,
        Row("one object a class",
            '[{"cat": [[1, 2, 3, 4], [5, 6, 7, 8]]}, {"dog": [[1, 2, 3, 4]]}]',
            [A, B, A], labels=["cat", "cat", "dog"]),
    ),
    *rows(
        ReplyFormat("json", "xyxy", "bounding_box", "nested", multilabel=True),
        Row("label and plural key", '[{"label": "cat", "bounding_boxes": [[1, 2, 3, 4]]}]', [A],
            labels=["cat"]),
    ),
    *rows(
        ReplyFormat("json", "yxyx", structure="decomposed", multilabel=True),
        Row("label beside the numbers",
            '[{"label": "cat", "ymin": 2, "xmin": 1, "ymax": 4, "xmax": 3}]', [A], labels=["cat"]),
    ),
    *rows(
        VIDEO_JSON,
        Row("from 1", '[{"frame_idx": 1, "bbox": [1, 2, 3, 4]}, {"frame_idx": 3, "bbox": '
            "[5, 6, 7, 8]}]", [A, B], frames=[0, 2]),
        Row("from 0", '[{"frame_idx": 0, "bbox": [1, 2, 3, 4]}, {"frame_idx": 2, "bbox": '
            "[5, 6, 7, 8]}]", [A, B], frames=[0, 2]),
        Row("2", '[{"frame_idx": 2, "bbox": [1, 2, 3, 4]}]', [A], frames=[1]),
        Row('"2"', '[{"frame_idx": "2", "bbox": [1, 2, 3, 4]}]', [A], frames=[1]),
        Row('" 2\\n"', '[{"frame_idx": " 2\\n", "bbox": [1, 2, 3, 4]}]', [A], frames=[1]),
        Row("1.5 is 1", '[{"frame_idx": 1.5, "bbox": [1, 2, 3, 4]}]', [A], frames=[0]),
        Row("0.9 is 0", '[{"frame_idx": 0.9, "bbox": [1, 2, 3, 4]}]', [A], frames=[0]),
        Row("true is 1", '[{"frame_idx": true, "bbox": [1, 2, 3, 4]}]', [A], frames=[0]),
        Row('"1.5" is none', '[{"frame_idx": "1.5", "bbox": [1, 2, 3, 4]}]',
            reason=R.NO_FRAME),
        Row("a word", '[{"frame_idx": "frame 2", "bbox": [1, 2, 3, 4]}]', reason=R.NO_FRAME),
        Row("null", '[{"frame_idx": null, "bbox": [1, 2, 3, 4]}]', reason=R.NO_FRAME),
        Row("a list", '[{"frame_idx": [2], "bbox": [1, 2, 3, 4]}]', reason=R.NO_FRAME),
        Row("NaN", '[{"frame_idx": NaN, "bbox": [1, 2, 3, 4]}]', reason=R.NO_FRAME),
        Row("Infinity", '[{"frame_idx": Infinity, "bbox": [1, 2, 3, 4]}]', reason=R.NO_FRAME),
        Row("5,000 digits", f'[{{"frame_idx": "{DIGITS}", "bbox": [1, 2, 3, 4]}}]',
            reason=R.FRAME_OUT_OF_RANGE),
        Row("missing", '[{"bbox": [1, 2, 3, 4]}]', reason=R.NO_FRAME),
        Row("another name", '[{"frame": 1, "bbox": [1, 2, 3, 4]}]', reason=R.NO_FRAME),
        Row("one missing", '[{"bbox": [1, 2, 3, 4]}, {"frame_idx": 1, "bbox": [5, 6, 7, 8]}]',
            [B], R.NO_FRAME, frames=[0]),
        Row("out of range above", '[{"frame_idx": 4, "bbox": [1, 2, 3, 4]}]',
            reason=R.FRAME_OUT_OF_RANGE),
        Row("out of range below", '[{"frame_idx": -1, "bbox": [1, 2, 3, 4]}, {"frame_idx": 1, '
            '"bbox": [5, 6, 7, 8]}]', [B], R.FRAME_OUT_OF_RANGE, frames=[0]),
        Row("a malformed entry decides how frames count", '[{"frame_idx": 0, "bbox": null}, '
            '{"frame_idx": 1, "bbox": [1, 2, 3, 4]}]', [A], R.WRONG_SHAPE, frames=[1]),
        Row("three numbers", '[{"frame_idx": 1, "bbox": [1, 2, 3]}]', reason=R.WRONG_SHAPE),
        Row("an empty list is no answer", "[]", reason=R.NO_FRAME),
        Row("a bare object", '{"frame_idx": 1, "bbox": [1, 2, 3, 4]}', reason=R.NOT_A_LIST),
        Row("no object", "[7]", reason=R.NOT_AN_OBJECT),
        Row("GLM: a block", f'{OPEN}[{{"frame_idx": 1, "bbox": [1, 2, 3, 4]}}]{CLOSE}', [A],
            frames=[0]),
        Row("GLM: the first block that parses",
            f'{OPEN}?{CLOSE}{OPEN}[{{"frame_idx": 1, "bbox": [1, 2, 3, 4]}}]{CLOSE}', [A],
            frames=[0]),
        Row("GLM: text before the marker is the answer",
            f'So: {OPEN}[{{"frame_idx": 1, "bbox": [1, 2, 3, 4]}}]{CLOSE}',
            reason=R.NOT_JSON),
        Row("GLM: JSON before the marker",
            f'[{{"frame_idx": 2, "bbox": [1, 2, 3, 4]}}] {OPEN}[]{CLOSE}', [A], frames=[1]),
        Row("nothing", "", reason=R.EMPTY),
    ),
    *rows(
        LABELS_VIDEO_JSON,
        Row("labels and frames",
            '[{"frame_idx": 2, "label": "cat", "bbox": [1, 2, 3, 4]}]', [A], labels=["cat"],
            frames=[1]),
    ),
    *rows(
        ReplyFormat("json", "xyxy", "class_name", multilabel=True, frames=3),
        Row("the class beside the frame", '[{"frame_idx": 2, "cat": [1, 2, 3, 4]}]', [A],
            labels=["cat"], frames=[1]),
    ),
    *rows(
        ReplyFormat("json", "all", frames=3),
        Row("four corners", '[{"frame_idx": 2, "bbox": [1, 2, 3, 2, 3, 4, 1, 4]}]', [A],
            frames=[1]),
    ),
    *rows(
        ReplyFormat("json", "xyxy", structure="nested", frames=3),
        Row("one object a frame", '[{"frame_idx": 2, "bboxes": [[1, 2, 3, 4], [5, 6, 7, 8]]}]',
            [A, B], frames=[1, 1]),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("form", "row"), TEXT_REPLIES + JSON_REPLIES)
def test_what_is_read(form: ReplyFormat, row: Row) -> None:
    expected = ParsedReply(tuple(row.boxes), tuple(row.labels), tuple(row.frames), row.reason)
    assert read(row.reply, form) == expected


# --- what no reply may do -------------------------------------------------------------------------

FORMATS = sorted(
    {v.reply for v in grid() if v.frames in (1, 8)}
    | {
        row.reads(v.reply)
        for v in grid()
        if v.representation == "unconstrained" and v.frames in (1, 8)
        for row in MODELS.values()
    },
    key=repr,
)
"""All reply formats: those of the grid, and those of models without a requested format."""

EXAMPLE = (BoxToWrite(A, "cat", 0), BoxToWrite(B, "dog", 1))

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=9)
        | st.dictionaries(
            st.sampled_from(["bbox", "bbox_2d", "bboxes", "label", "frame_idx", "x", "xmin"]), inner
        )
    ),
    max_leaves=12,
)

PIECES = st.sampled_from(
    ["[", "]", "(", ")", "{", "}", ":", ",", " ", "\n", "1", "2.5", "frame ", "<2>", "cat",
     '"bbox"', "```", "```json", OPEN, CLOSE, "null", "NaN", "-", "1e999", "\x00", "٣", "²", DIGITS]
)  # fmt: skip


def check(reading: ParsedReply, form: ReplyFormat) -> None:
    """What holds for every reading."""
    assert all(len(box) == 4 for box in reading.boxes)
    assert len(reading.labels) == (len(reading.boxes) if form.multilabel else 0)
    assert len(reading.frames) == (len(reading.boxes) if form.frames > 1 else 0)
    assert all(0 <= frame < form.frames for frame in reading.frames)


@given(st.sampled_from(FORMATS), st.text() | st.lists(PIECES).map("".join))
def test_no_text_raises(form: ReplyFormat, reply: str) -> None:
    check(read(reply, form), form)


@given(st.sampled_from(FORMATS), VALUES)
def test_no_json_raises(form: ReplyFormat, value: object) -> None:
    check(read(json.dumps(value), form), form)
    check(read(json.dumps([value]), form), form)


@given(st.sampled_from(FORMATS), st.integers(0, 200), st.integers(0, 9), PIECES)
def test_no_spoilt_reply_raises(form: ReplyFormat, at: int, deleted: int, piece: str) -> None:
    reply = write(EXAMPLE[: 1 + (form.frames > 1)], form)
    spoilt = reply[:at] + piece + reply[at + deleted :]
    check(read(spoilt, form), form)


@pytest.mark.parametrize("form", FORMATS, ids=spelt)
def test_no_end_of_a_reply_raises(form: ReplyFormat) -> None:
    reply = write(EXAMPLE, form)
    for end in range(len(reply)):
        reading = read(reply[:end], form)
        check(reading, form)
        if form.output == "json":
            assert reading.reason in (R.EMPTY, R.TRUNCATED)


# --- writing and reading are inverse --------------------------------------------------------------

LABEL_TEXTS = st.from_regex(r"[A-Za-z]([A-Za-z '\"\-]{0,10}[A-Za-z])?", fullmatch=True)
COORDINATES = st.integers(0, 4_000_000).map(lambda n: n / 1000)


@st.composite
def some_boxes(draw: st.DrawFn, form: ReplyFormat, min_size: int = 0) -> list[BoxToWrite]:
    """Boxes that a model could say in a format, grouped as its structure groups them."""
    boxes = []
    for _ in range(draw(st.integers(max(min_size, int(form.frames > 1)), 5))):
        x, y, width, height = (draw(COORDINATES) for _ in range(4))
        boxes.append(
            BoxToWrite(
                (x, y, x + width + 0.01, y + height + 0.01),
                draw(LABEL_TEXTS) if form.multilabel else "",
                draw(st.integers(0, form.frames - 1)),
            )
        )
    return boxes if form.structure != "nested" else grouped(boxes)


def grouped(boxes: list[BoxToWrite]) -> list[BoxToWrite]:
    """In the order in which the nested structure says them: by first appearance of the group."""
    groups: dict[tuple[int, str], list[BoxToWrite]] = {}
    for each in boxes:
        groups.setdefault((each.frame, each.label), []).append(each)
    return [each for group in groups.values() for each in group]


def assert_reads_as(
    reading: ParsedReply, boxes: list[BoxToWrite], form: ReplyFormat, tolerance: float
) -> None:
    assert reading.reason is None
    assert len(reading.boxes) == len(boxes)
    for box, each in zip(reading.boxes, boxes, strict=True):
        assert box == pytest.approx(each.box, abs=tolerance)
    assert reading.labels == (tuple(each.label for each in boxes) if form.multilabel else ())
    assert reading.frames == (tuple(each.frame for each in boxes) if form.frames > 1 else ())


@pytest.mark.parametrize("form", FORMATS, ids=spelt)
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_is_written_is_read(form: ReplyFormat, data: st.DataObject) -> None:
    boxes = data.draw(some_boxes(form))
    assert_reads_as(read(write(boxes, form, digits=6), form), boxes, form, 1e-5)


def test_nothing_is_written_as_an_empty_list() -> None:
    for form in FORMATS:
        assert write([], form) == "[]"


# --- reading takes linear time --------------------------------------------------------------------

LONG = 500_000


def repeated(piece: str) -> str:
    return (piece * (LONG // len(piece) + 1))[:LONG]


LOOPS = {
    **{
        name: repeated(piece)
        for name, piece in {
            "letters": "a",
            "digits": "1",
            "blanks": " ",
            "line ends": "\n",
            "square open": "[",
            "square close": "]",
            "round open": "(",
            "curly open": "{",
            "colons": ":",
            "commas": ",",
            "quotes": '"',
            "backticks": "`",
            "fences": "```json\n",
            "angle": "<",
            "angle close": ">",
            "open markers": OPEN,
            "close markers": CLOSE,
            "marker pairs": OPEN + CLOSE,
            "bad marker blocks": OPEN + "[1, 2" + CLOSE,
            "nested objects": '{"a":',
            "nested lists of objects": '[{"bbox":',
            "half boxes": "[1, 2, 3, ",
            "half round boxes": "(1, 2, 3, ",
            "pairs": "(1, 2)",
            "opened numbers": "[1",
            "blanks in brackets": "[ ",
            "label colons": "a: ",
            "number colons": "1:",
            "frames": "frame 1>: ",
            "commas and digits": "1,",
            "points": "1.",
            "boxes": "[1, 2, 3, 4]",
            "labelled boxes": "1: cat: [1, 2, 3, 4]\n",
            "round labelled boxes": "cat: (1, 2, 3, 4)\n",
            "text": "The dog is at the left. ",
        }.items()
    },
    "letters, colon": "a" * (LONG - 1) + ":",
    "letters, blanks, colon": "a" * (LONG // 2) + " " * (LONG // 2) + ":",
    "letters, box": "a" * LONG + ": [1, 2, 3, 4]",
    "digits, box": "1" * LONG + ": [1, 2, 3, 4]",
    "blanks, box": "1:" + " " * LONG + "[1, 2, 3, 4]",
    "one long number": "[" + "1" * LONG + ", 2, 3, 4]",
    "one long number in JSON": '[{"bbox": [' + "1" * LONG + ", 2, 3, 4]}]",
    "one long frame number": '[{"frame_idx": "' + "1" * LONG + '", "bbox": [1, 2, 3, 4]}]',
    "one long string": '[{"bbox": ["' + "1" * LONG + '", 2, 3, 4]}]',
    "an open marker, closed at last": OPEN + "[" * LONG + CLOSE,
}
"""What a model that loops could say; what looks back at every letter takes minutes."""

LOOPED = [
    TEXT, ALL_TEXT, FREE_TEXT, LABELS, FREE_LABELS, VIDEO, LABELS_VIDEO,
    ReplyFormat("text", "all-labelled", frames=3), JSON, NESTED, LABELS_JSON, VIDEO_JSON,
]  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
def test_anything_that_is_long_is_read_in_a_second_or_two(loop: str) -> None:
    for form in LOOPED:
        start = time.process_time()
        check(read(LOOPS[loop], form), form)
        took = time.process_time() - start
        assert took < 2, f"{form} took {took:.1f} s"
