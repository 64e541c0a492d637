"""Ugly real replies with what must be read from them, and replies of models that loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from vlmeval_findit.boxes import (
    DEFAULT_KEY,
    DEFAULT_STRUCTURE,
    NO_RECTANGLE,
    Corners,
    FormatFailure,
    ReplyFormat,
)

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


def refused(reason: FormatFailure, *replies: str) -> list[Row]:
    """Replies without a usable box."""
    return [Row(repr(reply[:40]), reply, reason=reason) for reply in replies]


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
        Row("leading zeros", "[01, 002, 3, 4.0]", [A]),
        Row("a JSON list of lists", "[[1, 2, 3, 4], [5, 6, 7, 8]]", [A, B]),
        Row("JSON objects", '[{"bbox": [1, 2, 3, 4]}]', [A]),
        Row("a fence changes nothing", "```json\n[1, 2, 3, 4]\n``` or [5, 6, 7, 8]", [A, B]),
        Row("swapped corners stay", "[3, 4, 1, 2]", [(3, 4, 1, 2)]),
        Row("full-width digits are digits", "[１, ２, ３, ４]", [A]),
        Row("html", "<p>[1, 2, 3, 4]<br>[5, 6, 7, 8]</p>", [A, B]),
        *refused(
            R.NO_BOX, "[1., .2, 3, 4]", "[-1, 2, 3, 4]", "[1e0, 2, 3, 4]", "(1, 2, 3, 4)",
            "[1, 2, 3] [1, 2, 3, 4, 5]", "[1 2 3 4] [1; 2; 3; 4]", '["1", "2", "3", "4"]',
            "［1, 2, 3, 4］", "&#91;1, 2, 3, 4&#93;", "I cannot see any dog.", "[1, 2, 3",
        ),
        Row("an empty list", "[]"),
        Row("an empty list in prose", "There is none: [ \n ]."),
        Row("an empty list and a box", "[] [1, 2, 3, 4]", [A]),
        *refused(R.EMPTY, "", " \n\t"),
        *refused(R.NOT_FINITE, f"[{DIGITS}, 2, 3, 4]", f"[{DIGITS}, 2, 3, 4] []"),
        Row("infinity and a box", f"[{DIGITS}, 2, 3, 4] [1, 2, 3, 4]", [A], R.NOT_FINITE),
        Row("GLM: only the first block", f"[5, 6, 7, 8] {OPEN}[1, 2, 3, 4]{CLOSE} {OPEN}[]{CLOSE}",
            [A]),
        Row("GLM: an empty first block", f"{OPEN}{CLOSE}[1, 2, 3, 4]", reason=R.EMPTY),
        Row("GLM: an open marker alone", f"{OPEN}[1, 2, 3, 4]", [A]),
        Row("GLM: markers the wrong way round", f"{CLOSE}[1, 2, 3, 4]{OPEN}", [A]),
    ),
    *rows(ReplyFormat("text", "cxcywh"), Row("centre and size", "[2, 3, 2, 2]", [A])),
    *rows(ReplyFormat("text", "yxhw"), Row("y first", "[2, 1, 2, 2]", [A])),
    *rows(
        ALL_TEXT,
        Row("four corners", "[1, 2, 3, 2, 3, 4, 1, 4]", [A]),
        Row("no rectangle matches nothing", "[1, 2, 3, 2, 3, 4, 1, 5]", [NO_RECTANGLE]),
        *refused(R.NO_BOX, "[1, 2, 3, 4]", "[(1, 2), (3, 2), (3, 4), (1, 4)]"),
    ),
    *rows(
        FREE_TEXT,
        Row("square brackets", "[1, 2, 3, 4]", [A]),
        Row("round brackets", "(1, 2, 3, 4)", [A]),
        Row("a pair of pairs", "from (1, 2) to (3, 4)", [A]),
        Row("a pair of pairs over lines", "top left: (1, 2)\nbottom right: (3, 4)", [A]),
        Row("three pairs are one box", "(1, 2) (3, 4) (5, 6)", [A]),
        Row("four pairs are two boxes", "(1, 2) (3, 4) (5, 6) (7, 8)", [A, B]),
        Row("order: square, pairs, round", "(0.5, 0.25, 9, 10) (5, 6)-(7, 8) [1, 2, 3, 4]",
            [A, B, C]),
        Row("an empty list", "[]"),
        *refused(R.NO_BOX, "at (1, 2)", "()"),
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
        Row("one label, two boxes", "cat: [1, 2, 3, 4], [5, 6, 7, 8]", [A], labels=["cat"]),
        Row("a box as a label", "cat: [1, 2, 3, 4]: [5, 6, 7, 8]", [A], labels=["cat"]),
        Row("quotes stay", '"cat": [1, 2, 3, 4]', [A], labels=['"cat"']),
        Row("unicode", "猫 🐈: [1, 2, 3, 4]", [A], labels=["猫 🐈"]),
        Row("not finite", f"cat: [{DIGITS}, 2, 3, 4] dog: [1, 2, 3, 4]", [A], R.NOT_FINITE,
            labels=["dog"]),
        *refused(R.NO_BOX, ": [1, 2, 3, 4]", "cat [1, 2, 3, 4]", "cat:: [1, 2, 3, 4]"),
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
        Row("leading zeros", "01: [1, 2, 3, 4]", [A], frames=[0]),
        *(
            Row(f"out of range: {reply[:30]}", reply, [A], R.FRAME_OUT_OF_RANGE, frames=[0])
            for reply in (
                "1: [1, 2, 3, 4] 4: [5, 6, 7, 8]", "0: [1, 2, 3, 4] 3: [5, 6, 7, 8]",
                f"1: [1, 2, 3, 4] {DIGITS}: [5, 6, 7, 8]",
            )
        ),
        # An empty list does not adhere over frames.
        *refused(R.NO_BOX, "[1, 2, 3, 4]", "first: [1, 2, 3, 4]", "[]", "1: []"),
        Row("nothing", "", reason=R.EMPTY),
    ),
    *rows(
        LABELS_VIDEO,
        Row("index, label, box", "1: cat: [1, 2, 3, 4]\nFrame 3: dog: [5, 6, 7, 8]", [A, B],
            labels=["cat", "dog"], frames=[0, 2]),
        *refused(R.NO_BOX, "1: [1, 2, 3, 4]", "cat: [1, 2, 3, 4]"),
    ),
]  # fmt: skip

BOX_A = '{"bbox": [1, 2, 3, 4]}'
BOX_B = '{"bbox": [5, 6, 7, 8]}'


def json_box(numbers: str) -> str:
    return f'[{{"bbox": {numbers}}}]'


def quoted(digits: str) -> str:
    return f'"{digits}"'


def in_frame(index: str, numbers: str = "[1, 2, 3, 4]") -> str:
    return f'{{"frame_idx": {index}, "bbox": {numbers}}}'


JSON_REPLIES = [
    *rows(
        JSON,
        Row("a list of objects", f"[{BOX_A}, {BOX_B}]", [A, B]),
        Row("other keys do not matter", '[{"bbox": [1, 2, 3, 4], "label": "x", "score": 1}]', [A]),
        Row("an empty list", "[]"),
        Row("an empty list in a fence", "```json\n[]\n```"),
        Row("a fence", f"```json\n[{BOX_A}]\n```", [A]),
        Row("a fence with prose", f"Here:\n```JSON\n[{BOX_A}]\n```\nDone.", [A]),
        Row("a fence without json", f"```\n[{BOX_A}]\n```", [A]),
        Row("a fence in one line", f"```json[{BOX_A}]```", [A]),
        Row("only the first fence", f"```json\n[]\n```\n```json\n[{BOX_A}]\n```"),
        *refused(
            R.NOT_JSON, f"```python\n[{BOX_A}]\n```", f"```json\n[{BOX_A}]\n", f"Here: [{BOX_A}]",
            f"[{BOX_A}] Done.", f"{OPEN}a dog{CLOSE}", f"[{BOX_A},]", "[{'bbox': [1, 2, 3, 4]}]",
            f"[{BOX_A} // dog\n]", f"[{BOX_A}][]", f"{BOX_A}\n{BOX_A}", "[dog", "There is no dog.",
            "<ul><li>1, 2, 3, 4</li></ul>", "\ufeff[]", "[" * 100_000, json_box("[01, 2, 3, 4]"),
            json_box(f"[{DIGITS}, two]"), f"[{DIGITS}] Done.",
        ),
        Row("GLM markers", f"Thus {OPEN}[{BOX_A}]{CLOSE}.", [A]),
        Row("GLM: the first block that parses", f"{OPEN}a dog{CLOSE} {OPEN}[]{CLOSE}"),
        Row("GLM in a fence", f"```json\n{OPEN}[{BOX_A}]{CLOSE}\n```", [A]),
        Row("GLM: markers inside a string of valid JSON",
            f'[{{"bbox": [1, 2, 3, 4], "label": "{OPEN}x{CLOSE}"}}]', [A]),
        *refused(R.NOT_A_LIST, BOX_A, "7", "null", '"[1, 2, 3, 4]"'),
        *refused(R.NOT_AN_OBJECT, "[[1, 2, 3, 4]]", "[1, 2, 3, 4]"),
        Row("null among objects", f"[null, {BOX_A}]", [A], R.NOT_AN_OBJECT),
        Row("another key", f'[{{"box": [1, 2, 3, 4]}}, {BOX_A}]', [A], R.WRONG_KEY),
        *refused(R.WRONG_KEY, '[{"BBOX": [1, 2, 3, 4]}]', '[{"bboxes": [[1, 2, 3, 4]]}]', "[{}]"),
        *refused(R.WRONG_SHAPE, *map(json_box, (
            "[1, 2, 3]", "[1, 2, 3, 4, 5]", "[]", "[[1, 2, 3, 4]]", '{"x": 1}', '"1, 2, 3, 4"',
            '"1234"', "null",
        ))),
        *refused(R.NOT_A_NUMBER, *map(json_box, (
            "[[1, 2], [3, 4], [1, 2], [3, 4]]", '["1", "2", "3", "four"]', "[1, 2, null, 4]",
        ))),
        *refused(R.NOT_FINITE, *map(json_box, (
            "[NaN, 2, 3, 4]", "[1, 2, Infinity, 4]", '["nan", 2, 3, 4]', "[1, 2, 1e999, 4]",
            "[-Infinity, 2, Infinity, 4]", f"[{DIGITS[:400]}, 2, 3, 4]", f"[{DIGITS}, 2, 3, 4]",
        ))),
        Row("strings as numbers", json_box('["1", " 2 ", "3.0", "4e0"]'), [A]),
        Row("booleans are 0 and 1", json_box("[false, true, 3, 4]"), [(0, 1, 3, 4)]),
        Row("negative numbers", json_box("[-1, 2, 3, 4]"), [(-1, 2, 3, 4)]),
        Row("large and finite", json_box("[1e308, 2, 1e308, 4]"), [(1e308, 2, 1e308, 4)]),
        Row("... and a box", f'[{{"bbox": [{DIGITS}, 2, 3, 4]}}, {BOX_A}]', [A], R.NOT_FINITE),
        Row("a duplicated key: the last counts", '[{"bbox": [5, 6, 7, 8], "bbox": [1, 2, 3, 4]}]',
            [A]),
        *refused(
            R.TRUNCATED, f'[{BOX_A}, {{"bbox": [5, 6', '[{"bbox": [1, 2.', '[{"bbox": [1, 2e-',
            '[{"bbox": [1, -', '[{"bbox": nul', f'[{BOX_A}, {{"bb', f"[{BOX_A}",
            f"```json\n[{BOX_A}, ", f"[{BOX_A}, {DIGITS}", f'[{BOX_A}, {{"bbox": [{DIGITS}, 2',
        ),
        *refused(R.EMPTY, "", "\n "),
        Row("the first reason counts", '[7, {"box": 1}, {"bbox": [1]}]',
            reason=R.NOT_AN_OBJECT),
    ),
    *rows(
        ReplyFormat("json", "unconstrained", key="bbox_2d"),
        Row("xyxy under the cell's key", '[{"bbox_2d": [1, 2, 3, 4]}]', [A]),
        Row("not under another", f"[{BOX_A}]", reason=R.WRONG_KEY),
    ),
    *rows(
        ALL_JSON,
        Row("four corners", json_box("[1, 2, 3, 2, 3, 4, 1, 4]"), [A]),
        Row("four numbers", f"[{BOX_A}]", reason=R.WRONG_SHAPE),
        Row("null", json_box("[1, 2, 3, 2, 3, 4, 1, null]"), reason=R.NOT_A_NUMBER),
        Row("NaN", json_box("[1, 2, 3, 2, 3, 4, 1, NaN]"), reason=R.NOT_FINITE),
        Row("no rectangle matches nothing", json_box("[1, 2, 3, 2, 3, 4, 1, 5]"), [NO_RECTANGLE]),
        Row("strings are equal as numbers", json_box('["1", 2, 3, "2.0", 3, 4, 1.0, 4]'), [A]),
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
        Row("a string", '[{"x": "1", "y": 2, "width": 2, "height": 2}]', [A]),
        *refused(R.WRONG_KEY, '[{"x": 1, "y": 2, "width": 2}]',
                 '[{"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}]'),
        *refused(R.NOT_A_NUMBER, '[{"x": null, "y": 2, "width": 2, "height": 2}]',
                 '[{"x": [1], "y": 2, "width": 2, "height": 2}]'),
    ),
    *rows(
        LABELS_JSON,
        *(
            Row(f"label {label}", f'[{{"label": {label}, "bbox": [1, 2, 3, 4]}}]', [A],
                labels=[read_as])
            for label, read_as in (
                ('"cat"', "cat"), ('"\\n cat "', "cat"), ("null", "None"), ("7", "7"),
                ('["cat"]', "['cat']"), ('"\\ud83d"', "\ud83d"),
            )
        ),
        Row("missing", f"[{BOX_A}]", [A], labels=[""]),
        Row("a skipped box has no label", '[{"label": "dog", "bbox": [1]}, '
            '{"label": "cat", "bbox": [1, 2, 3, 4]}]', [A], R.WRONG_SHAPE, labels=["cat"]),
        Row("an empty list", "[]"),
    ),
    *rows(
        CLASSES,
        Row("the key is the label", '[{" cat ": [1, 2, 3, 4]}, {"dog": [5, 6, 7, 8]}]', [A, B],
            labels=["cat", "dog"]),
        Row("an empty key", '[{"": [1, 2, 3, 4]}]', [A], labels=[""]),
        *refused(R.WRONG_KEY, '[{"cat": [1, 2, 3, 4], "dog": [5, 6, 7, 8]}]', "[{}]",
                 '[{"label": "cat", "bbox": [1, 2, 3, 4]}]'),
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
        Row("label and numbers",
            '[{"label": "cat", "ymin": 2, "xmin": 1, "ymax": 4, "xmax": 3}]', [A], labels=["cat"]),
    ),
    *rows(
        VIDEO_JSON,
        Row("from 1", f"[{in_frame('1')}, {in_frame('3', '[5, 6, 7, 8]')}]", [A, B], frames=[0, 2]),
        Row("from 0", f"[{in_frame('0')}, {in_frame('2', '[5, 6, 7, 8]')}]", [A, B], frames=[0, 2]),
        *(
            Row(f"frame {index}", f"[{in_frame(index)}]", [A], frames=[frame])
            for index, frame in (
                ("2", 1), ('"2"', 1), ('" 2\\n"', 1), ("1.5", 0), ("0.9", 0), ("true", 0),
            )
        ),
        *refused(
            R.NO_FRAME, f"[{BOX_A}]", '[{"frame": 1, "bbox": [1, 2, 3, 4]}]',
            *(f"[{in_frame(index)}]"
              for index in ('"1.5"', '"frame 2"', "null", "[2]", "NaN", "Infinity")),
        ),
        *refused(R.FRAME_OUT_OF_RANGE, f"[{in_frame('4')}]", f"[{in_frame(quoted(DIGITS))}]"),
        Row("one missing", f"[{BOX_B}, {in_frame('1')}]", [A], R.NO_FRAME, frames=[0]),
        Row("out of range below", f"[{in_frame('-1')}, {in_frame('1', '[5, 6, 7, 8]')}]", [B],
            R.FRAME_OUT_OF_RANGE, frames=[0]),
        Row("a malformed entry decides how frames count",
            f"[{in_frame('0', 'null')}, {in_frame('1')}]", [A], R.WRONG_SHAPE, frames=[1]),
        Row("three numbers", f"[{in_frame('1', '[1, 2, 3]')}]", reason=R.WRONG_SHAPE),
        Row("an empty list is no answer", "[]", reason=R.NO_FRAME),
        Row("a bare object", in_frame("1"), reason=R.NOT_A_LIST),
        Row("no object", "[7]", reason=R.NOT_AN_OBJECT),
        Row("GLM: a block", f"{OPEN}[{in_frame('1')}]{CLOSE}", [A], frames=[0]),
        Row("GLM: the first block that parses", f"{OPEN}?{CLOSE}{OPEN}[{in_frame('1')}]{CLOSE}",
            [A], frames=[0]),
        Row("GLM: text before the marker is the answer", f"So: {OPEN}[{in_frame('1')}]{CLOSE}",
            reason=R.NOT_JSON),
        Row("GLM: JSON before the marker", f"[{in_frame('2')}] {OPEN}[]{CLOSE}", [A], frames=[1]),
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
        Row("class and frame", '[{"frame_idx": 2, "cat": [1, 2, 3, 4]}]', [A],
            labels=["cat"], frames=[1]),
    ),
    *rows(
        ReplyFormat("json", "all", frames=3),
        Row("four corners", f"[{in_frame('2', '[1, 2, 3, 2, 3, 4, 1, 4]')}]", [A], frames=[1]),
    ),
    *rows(
        ReplyFormat("json", "xyxy", structure="nested", frames=3),
        Row("one object a frame", '[{"frame_idx": 2, "bboxes": [[1, 2, 3, 4], [5, 6, 7, 8]]}]',
            [A, B], frames=[1, 1]),
    ),
]  # fmt: skip
