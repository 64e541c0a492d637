"""Boxes in words, tags, full-width punctuation and location tokens, and the labels beside them."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vlmeval_findit as findit
from vlmeval_findit.boxes.lenient import LenientReply, Repair, parse_leniently
from vlmeval_findit.boxes.lenient.values import values_in
from vlmeval_findit.boxes.reading import read
from vlmeval_findit.boxes.representation import GRID, STRUCTURES, Corners, ReplyFormat
from vlmeval_findit.boxes.spaces import ImageExtent, Space, reference

TEXT = ReplyFormat("text", "xyxy")
TEXT_SIZES = ReplyFormat("text", "xywh")
TEXT_CENTRES = ReplyFormat("text", "cxcywh")
TEXT_YX = ReplyFormat("text", "yxyx")
TEXT_CORNERS = ReplyFormat("text", "all")
TEXT_LABELS = ReplyFormat("text", "xyxy", multilabel=True)
TEXT_VIDEO = ReplyFormat("text", "xyxy", frames=3)
POINT = ReplyFormat("text", "point")
JSON = ReplyFormat("json", "xyxy", "bbox_2d")
JSON_LABELS = ReplyFormat("json", "xyxy", "bbox_2d", multilabel=True)
NESTED = ReplyFormat("json", "xyxy", "bbox_2d", "nested")

A: Corners = (100, 200, 300, 400)
B: Corners = (500, 600, 700, 800)
A_JSON, B_JSON = '{"bbox_2d": [100, 200, 300, 400]}', '{"bbox_2d": [500, 600, 700, 800]}'
GRID1000 = ImageExtent(1000, 1000)
S = Repair


def leniently(reply: str, form: ReplyFormat) -> LenientReply | None:
    return parse_leniently(reply, form, read(reply, form), GRID1000)


def check(
    reply: str,
    form: ReplyFormat,
    boxes: Sequence[Corners],
    repairs: Sequence[Repair],
    labels: Sequence[str] = (),
) -> None:
    result = leniently(reply, form)
    if not boxes:
        assert result is None
        return
    assert result is not None
    assert result.reading.boxes == tuple(boxes)
    assert result.reading.labels == tuple(labels)
    assert list(result.repairs) == list(repairs)


# --- one box in words -----------------------------------------------------------------------------

WORDS: list[tuple[str, Sequence[Corners], Sequence[Repair]]] = [
    # Two corners, in any words and any order
    ("The top-left corner is at (100, 200) and the bottom-right one at (300, 400).", [A],
        [S.PROSE]),
    ("The top-left corner is at (100, 200) and the bottom-right corner at (300, 400).", [A],
        [S.PROSE]),
    ("* **Top left**: (100, 200)\n* **Bottom right**: (300, 400)", [A], [S.PROSE]),
    ("1. Upper-left corner: [100, 200]\n2. Lower-right corner: [300, 400]", [A], [S.PROSE]),
    ("Top-left: 100, 200\nBottom-right: 300, 400", [A], [S.PROSE]),
    ("- Top-left: (x=100, y=200)\n- Bottom-right: (y=400, x=300)", [A], [S.PROSE]),
    ("(100, 200) is the top-left corner and (300, 400) is the bottom-right corner", [A],
        [S.PROSE]),
    ("The upper left and lower right corners are (100, 200) and (300, 400).", [A], [S.PROSE]),
    ("It goes from (100, 200) in the top left to (300, 400) in the bottom right.", [A],
        [S.PROSE]),
    ("Lower left (100, 400), upper right (300, 200)", [A], [S.ORDER, S.PROSE]),
    ("bottom-right: (300, 400), top-left: (100, 200)", [A], [S.ORDER, S.PROSE]),
    ("Top-left (100, 200), top-right (300, 200), bottom-right (300, 400), bottom-left (100, 400)",
        [A], [S.ORDER, S.PROSE]),
    ("左下角（100，400），右上角（300，200）", [A], [S.ORDER, S.PROSE]),
    ("左上角坐标为（100，200），右下角坐标为（300，400）。", [A], [S.PROSE]),
    ("from (300, 400) to (100, 200)", [A], [S.ORDER, S.PROSE]),
    # Numbers that deny the names of their corners, corners of one side, the image's corner
    ("Lower left (100, 200), upper right (300, 400)", [], []),
    ("Top-left (100, 200), top-right (300, 200)", [], []),
    ("The top-left corner of the image is (0, 0). It is in the bottom-right corner (300, 400).",
        [], []),
    ("The first dog is at (100, 200). The second dog is at (300, 400).", [], []),
    # Numbers by name
    ("x_min: 100, y_min: 200, x_max: 300, y_max: 400", [A], [S.PROSE]),
    ("x1=100; y1=200; x2=300; y2=400", [A], [S.PROSE]),
    ("ymax = 400\nxmax = 300\nymin = 200\nxmin = 100", [A], [S.PROSE]),
    ("- **Left**: 100\n- **Top**: 200\n- **Right**: 300\n- **Bottom**: 400", [A], [S.PROSE]),
    ("The left edge is 100, the top edge is 200, the right edge is 300, the bottom edge is 400.",
        [A], [S.PROSE]),
    ("Min X: 100, Min Y: 200, Max X: 300, Max Y: 400", [A], [S.PROSE]),
    ("x_min：100，y_min：200，x_max：300，y_max：400", [A], [S.PROSE]),
    ("x: 100, y: 200, width: 200, height: 200", [], []),
    ("x1: 10%, y1: 20%, x2: 30%, y2: 40%", [], []),
    ("x1: 100px, y1: 200px, x2: 300px, y2: 400px", [], []),
    ("x1: 100 pixels, y1: 200 pixels, x2: 300 pixels, y2: 400 pixels", [], []),
    ('<points x1="100" y1="200" x2="300" y2="400">dogs</points>', [], []),
    # Numbers alone
    ("bbox: 100, 200, 300, 400", [A], [S.PROSE]),
    ("bbox=100 200 300 400", [A], [S.PROSE]),
    ("Bounding box coordinates: **100, 200, 300, 400**.", [A], [S.PROSE]),
    ("The bounding box of the dog is 100, 200, 300, 400.", [A], [S.PROSE]),
    ("100 200 300 400\n500 600 700 800\n", [A, B], [S.PROSE]),
    ("| dog | 100 | 200 | 300 | 400 |", [A], [S.PROSE]),
    ("100_200_300_400", [A], [S.PROSE]),
    ("Scores: 100, 200, 300, 400, 500", [], []),
    ("It counts 1, 2, 3, 4 dogs: 1, 2, 3, 4 cats", [], []),
    # The order that was asked for, said again
    ("(top-left, bottom-right): (100, 200, 300, 400)", [A], [S.PROSE]),
    ("As top-left and bottom-right corner: (100, 200, 300, 400)", [A], [S.PROSE]),
    ("(top, left, bottom, right): (100, 200, 300, 400)", [], []),
    # A confidence
    ("[100, 200, 300, 400, 0.98]", [A], [S.CONFIDENCE]),
    ("dog (100, 200, 300, 400, 0.98)", [A], [S.CONFIDENCE, S.PROSE]),
    ("[[100, 200, 300, 400, 0.98], [500, 600, 700, 800, .5]]", [A, B],
        [S.NUMBERS, S.CONFIDENCE]),
    ("[100, 200, 300, 400, 5]", [], []),
    ("[0, 0.5, 0.5, 0.2, 0.25]", [], []),
    # Signs of other models
    ("<bbox>100 200 300 400</bbox>", [A], [S.PROSE]),
    ("<|box_start|>(100,200),(300,400)<|box_end|>", [A], [S.PROSE]),
    ("[[100,200,300,400;500,600,700,800]]", [A, B], [S.PROSE]),
    (r"\boxed{100, 200, 300, 400}", [A], [S.PROSE]),
    # A reply that says its box twice
    ("- Top-left: (100, 200)\n- Bottom-right: (300, 400)\n\nSo it is 100, 200, 300, 400.", [A],
        [S.PROSE]),
    # Full-width punctuation
    ("[100，200，300，400]", [A], [S.PUNCTUATION]),
    ("【100、200、300、400】", [A], [S.PUNCTUATION]),
    ("（100，200，300，400）", [A], [S.PROSE]),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "boxes", "repairs"), WORDS)
def test_a_box_in_words(reply: str, boxes: Sequence[Corners], repairs: Sequence[Repair]) -> None:
    check(reply, TEXT, boxes, repairs)


OTHER_FORMATS: list[tuple[ReplyFormat, str, Sequence[Corners]]] = [
    (TEXT_SIZES, "x: 100, y: 200, width: 200, height: 200", [A]),
    (TEXT_SIZES, "left=100, top=200, w=200, h=200", []),
    (TEXT_SIZES, "Image width: 640, height: 480. x: 100, y: 200, width: 200, height: 200", [A]),
    (TEXT_SIZES, "x: 100, y: 200 in the image of width: 640, height: 480", []),
    (TEXT_SIZES, "x1: 100, y1: 200, x2: 300, y2: 400", []),
    (TEXT_SIZES, "Top-left (100, 200), bottom-right (300, 400)", []),
    (TEXT_CENTRES, "center x: 200, center y: 300, width: 200, height: 200", [A]),
    (TEXT_YX, "y_min: 200, x_min: 100, y_max: 400, x_max: 300", [A]),
    (TEXT_YX, "top-left (200, 100), bottom-right (400, 300)", [A]),
    (TEXT_YX, "top-left (x=100, y=200), bottom-right (x=300, y=400)", [A]),
    (TEXT_CORNERS, "Top-left (100, 200), bottom-right (300, 400)", [A]),
    (POINT, "x: 100, y: 200", [(100, 200, 100, 200)]),
    (POINT, "x: 100, y: 200, width: 200, height: 200", []),
    (JSON, '{"top_left": [100, 200], "bottom_right": [300, 400]}', [A]),
    (JSON, '{"upper left": {"x": 100, "y": 200}, "lowerRight": {"x": 300, "y": 400}}', [A]),
    (JSON, "x1: 100, y1: 200, x2: 300, y2: 400", [A]),
]


@pytest.mark.parametrize(("form", "reply", "boxes"), OTHER_FORMATS)
def test_numbers_in_words_are_those_of_the_format(
    form: ReplyFormat, reply: str, boxes: Sequence[Corners]
) -> None:
    result = leniently(reply, form)
    assert (result.reading.boxes if result else ()) == tuple(boxes)


def test_frames_stand_before_boxes_in_words() -> None:
    reply = "Frame 1: top-left (100, 200), bottom-right (300, 400)\nFrame 3: x1=500, y1=600, x2=700"
    result = leniently(f"{reply}, y2=800", TEXT_VIDEO)
    assert result is not None
    assert (result.reading.boxes, result.reading.frames) == ((A, B), (0, 2))


corner_numbers = st.integers(2, 900)  # [0, 0, 1, 1, 0.5] may be a class and fractions
boxes_ = st.builds(
    lambda x, y, w, h: (x, y, x + w, y + h),
    corner_numbers, corner_numbers, st.integers(1, 99), st.integers(1, 99),
)  # fmt: skip
STYLES: dict[str, tuple[ReplyFormat, Callable[[Corners], str]]] = {
    "corners in a sentence": (TEXT, lambda b:
        f"The top left corner is at ({b[0]}, {b[1]}) and the lower right at ({b[2]}, {b[3]})"),
    "corners in a list": (TEXT, lambda b:
        f"- **Bottom-left**: ({b[0]}, {b[3]})\n- **Top-right**: ({b[2]}, {b[1]})"),
    "names": (TEXT, lambda b: f"x1={b[0]} y1={b[1]} x2={b[2]} y2={b[3]}"),
    "sizes by name": (TEXT_SIZES, lambda b:
        f"x: {b[0]}\ny: {b[1]}\nwidth: {b[2] - b[0]}\nheight: {b[3] - b[1]}"),
    "numbers alone": (TEXT, lambda b: f"Box: {b[0]}, {b[1]}, {b[2]}, {b[3]}."),
    "full width": (JSON, lambda b: f"［｛“bbox_2d”：［{b[0]}，{b[1]}，{b[2]}，{b[3]}］｝］"),
    "MiniCPM-V": (JSON, lambda b: f"<box>{b[0]} {b[1]} {b[2]} {b[3]}</box>"),
    "CogVLM": (JSON, lambda b: f"[[{b[0]:03},{b[1]:03},{b[2]:03},{b[3]:03}]]"),
    "a confidence": (TEXT, lambda b: f"[{b[0]}, {b[1]}, {b[2]}, {b[3]}, 0.5]"),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=30, deadline=None)
@given(box=boxes_)
def test_what_is_written_in_a_known_style_is_read(style: str, box: Corners) -> None:
    form, written = STYLES[style]
    result = leniently(written(box), form)
    assert result is not None
    assert result.reading.boxes == (box,)
    assert result.repairs


# --- location tokens ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [TEXT, TEXT_SIZES, TEXT_CENTRES, TEXT_YX, TEXT_CORNERS, JSON])
def test_location_tokens_are_fractions_of_the_image_whatever_was_asked(form: ReplyFormat) -> None:
    result = leniently("<loc0256><loc0128><loc0768><loc0512> dog", form)
    assert result is not None
    assert result.reading.boxes == ((125, 250, 500, 750),)
    assert result.repairs == (Repair.TOKENS,)


@pytest.mark.parametrize(
    "space",
    [Space("grid1000"), Space("unit"), Space("pixels"), Space("letterbox", side=640)],
    ids=lambda space: space.kind,
)
def test_location_tokens_are_right_in_every_space(space: Space) -> None:
    scored = findit.score(
        ["<loc0256><loc0128><loc0768><loc0512> dog"],
        [[[80, 120, 320, 360]]],
        "xyxy_text",
        sizes=(640, 480),
        space=space,
    )
    lenient = scored.queries[0].details["lenient"]
    assert lenient["boxes"] == [pytest.approx([80, 120, 320, 360])]
    assert scored.queries[0].details["errors"][0]["kind"] == "recoverable"
    assert reference(space, 640, 480).width > 0


def test_location_tokens_need_the_image_and_are_no_point() -> None:
    reply = "<loc0256><loc0128><loc0768><loc0512>"
    assert parse_leniently(reply, TEXT, read(reply, TEXT)) is None
    assert leniently(reply, POINT) is None


@pytest.mark.parametrize(
    "reply",
    [
        "<loc0256><loc0128><loc0768><loc0512> dog ; <loc0000><loc0000><loc0512><loc0512> cat",
        "<loc0256><loc0128><loc0768><loc0512><seg012><seg003> dog ; "
        "<loc0000><loc0000><loc0512><loc0512> cat<eos>",
    ],
)
def test_labels_of_location_tokens_stand_behind_them(reply: str) -> None:
    result = leniently(reply, TEXT_LABELS)
    assert result is not None
    assert result.reading.labels == ("dog", "cat")


def test_tokens_of_florence_are_thousandths_in_xyxy() -> None:
    result = leniently("dog<loc_100><loc_200><loc_300><loc_400>", TEXT_LABELS)
    assert result is not None
    assert result.reading.boxes == ((100.5, 200.5, 300.5, 400.5),)
    assert result.reading.labels == ("dog",)


# --- labels ---------------------------------------------------------------------------------------

TWO_LABELS = [
    # Grounding tags
    "<ref>dog</ref><box>[[100, 200, 300, 400]]</box>"
    "<ref>cat</ref><box>[[500, 600, 700, 800]]</box>",
    "<ref>dog</ref><box>100 200 300 400</box>\n<ref>cat</ref><box>500 600 700 800</box>",
    "<|ref|>dog<|/ref|><|det|>[[100,200,300,400]]<|/det|>"
    "<|ref|>cat<|/ref|><|det|>[[500,600,700,800]]<|/det|>",
    "<|object_ref_start|>dog<|object_ref_end|><|box_start|>(100,200),(300,400)<|box_end|>"
    "<|object_ref_start|>cat<|object_ref_end|><|box_start|>(500,600),(700,800)<|box_end|>",
    "<p>dog</p> (100, 200, 300, 400) beside a <p>cat</p> (500, 600, 700, 800)",
    "In the image, <ref>dog</ref><box>(100,200),(300,400)</box> is near "
    "<ref>cat</ref><box>(500,600),(700,800)</box>.",
    # Sentences and lists
    "The dog is at (100, 200, 300, 400). The cat is located at (500, 600, 700, 800).",
    "A dog (100, 200, 300, 400) and a cat (500, 600, 700, 800).",
    "Here are the boxes:\n\n1. **dog**: (100, 200), (300, 400)\n2. **cat**: (500, 600), (700, 800)",
    "**dog**\n- Top-left: (100, 200)\n- Bottom-right: (300, 400)\n\n"
    "**cat**\n- Top-left: (500, 600)\n- Bottom-right: (700, 800)",
    "dog:\n  x1: 100\n  y1: 200\n  x2: 300\n  y2: 400\n"
    "cat:\n  x1: 500\n  y1: 600\n  x2: 700\n  y2: 800",
    "Object: dog, box: (100, 200, 300, 400)\nObject: cat, box: (500, 600, 700, 800)",
    "The top-left corner of the dog is at (100, 200), its bottom-right corner at (300, 400). "
    "The top-left corner of the cat is at (500, 600), its bottom-right corner at (700, 800).",
    "(100, 200, 300, 400) dog\n(500, 600, 700, 800) cat",
    "dog: 100, 200, 300, 400\ncat: 500, 600, 700, 800",
    "dog,100,200,300,400\ncat,500,600,700,800",
    "| dog | 100 | 200 | 300 | 400 |\n| cat | 500 | 600 | 700 | 800 |",
    "dog：（100，200，300，400）；cat：（500，600，700，800）",
    # Lists side by side
    "{'<OD>': {'bboxes': [[100,200,300,400],[500,600,700,800]], 'labels': ['dog', 'cat']}}",
    '{"labels": ["dog", "cat"], "boxes": [[100,200,300,400],[500,600,700,800]], '
    '"scores": [0.9, 0.8]}',
    '{"objects": [{"bbox": [100,200,300,400], "type": "object", "name": "dog"}, '
    '{"bbox": [500,600,700,800], "name": "cat"}]}',
]


@pytest.mark.parametrize("form", [TEXT_LABELS, JSON_LABELS], ids=["text", "json"])
@pytest.mark.parametrize("reply", TWO_LABELS)
def test_marks_and_sentences_around_a_label_are_none_of_it(reply: str, form: ReplyFormat) -> None:
    result = leniently(reply, form)
    assert result is not None
    assert result.reading.boxes == (A, B)
    assert result.reading.labels == ("dog", "cat")
    assert result.repairs


KEYS_OF_LABELS = [
    '"Label": "dog"', '" label": "dog"', '"LABEL ": "dog"', "“label”: “dog”", "‘label’: ‘dog’",
    '"labels": ["dog"]', '"label": ["dog"]', '"description": "dog"', '"sub_label": "dog"',
    '"text_content": "dog"', '"class_name": ["dog"]', '"label": "<ref>dog</ref>"',
    '"label": "", "name": "dog"', '"label"： "dog"', "label: dog",
]  # fmt: skip


@pytest.mark.parametrize("pair", KEYS_OF_LABELS)
@pytest.mark.parametrize("end", ["},]", "}", "}]\n```"])
def test_a_label_is_found_under_any_key_of_one_and_the_repair_is_named(pair: str, end: str) -> None:
    result = leniently(f'[{{"bbox_2d": [100, 200, 300, 400], {pair}{end}', JSON_LABELS)
    assert result is not None
    assert (result.reading.boxes, result.reading.labels) == ((A,), ("dog",))
    assert result.repairs


NO_LABEL = [
    "Here: (100, 200, 300, 400)",
    "I can see that it is at (100, 200, 300, 400)",
    '{"boxes": [[100,200,300,400],[500,600,700,800],[1,2,3,4]], "labels": ["dog", "cat"]}',
    '{"detections": [[100, 200, 300, 400]]}',
    "<OD>[100, 200, 300, 400]</OD>",
    "dog: (100, 200), cat: (300, 400)",
]


@pytest.mark.parametrize("reply", NO_LABEL)
def test_a_box_whose_label_cannot_be_told_is_not_read(reply: str) -> None:
    assert leniently(reply, TEXT_LABELS) is None
    assert leniently(reply, JSON_LABELS) is None


@pytest.mark.parametrize("label", ["person on the left", "The Beatles", "7-up", "man in red shirt"])
def test_a_label_of_several_words_stays_whole(label: str) -> None:
    result = leniently(f"{label} (100, 200, 300, 400)", TEXT_LABELS)
    assert result is not None
    assert result.reading.labels == (label,)


def test_a_full_width_comma_in_a_label_stays() -> None:
    result = leniently("狗，大的：（100，200，300，400）", TEXT_LABELS)
    assert result is not None
    assert result.reading.labels == ("狗，大的",)


ADHERENT = [
    (TEXT_LABELS, '[{"bbox_2d": [100, 200, 300, 400], "label": "dog"}, '
        '{"bbox_2d": [500, 600, 700, 800], "label": "cat"}]', Repair.OTHER_OUTPUT),
    (TEXT_LABELS, '```json\n{"dog": [100, 200, 300, 400], "cat": [500, 600, 700, 800]}\n```',
        Repair.OTHER_OUTPUT),
    (TEXT_LABELS, "- label: dog\n  bbox: [100, 200, 300, 400]\n- label: cat\n"
        "  bbox: [500, 600, 700, 800]", Repair.LABEL),
    (TEXT_LABELS, "- bbox: [100, 200, 300, 400]\n  label: dog\n- bbox: [500, 600, 700, 800]\n"
        "  label: cat", Repair.LABEL),
    (TEXT_LABELS, "1. **dog**: [100, 200, 300, 400]\n2. **cat**: [500, 600, 700, 800]",
        Repair.LABEL),
    (TEXT_LABELS, "“dog”: [100, 200, 300, 400]\n“cat”: [500, 600, 700, 800]", Repair.LABEL),
    (JSON_LABELS, '[{"bbox_2d": [100, 200, 300, 400], "Label": "dog"}, '
        '{"bbox_2d": [500, 600, 700, 800], "label": "<ref>cat</ref>"}]', Repair.LABEL),
]  # fmt: skip


@pytest.mark.parametrize(("form", "reply", "repair"), ADHERENT)
def test_lost_labels_of_an_adherent_reply_are_found(
    form: ReplyFormat, reply: str, repair: Repair
) -> None:
    strict = read(reply, form)
    assert strict.reason is None
    assert strict.labels != ("dog", "cat")
    result = leniently(reply, form)
    assert result is not None
    assert result.reading == strict._replace(labels=("dog", "cat"))
    assert repair in result.repairs
    truth = findit.truth([A, B], ["dog", "cat"])
    name = "xyxy_text" if form is TEXT_LABELS else "xyxy_json_bbox_2d"
    scored = findit.score(
        [reply], [truth], name, sizes=(1000, 1000), space="grid1000", multilabel=True
    )
    assert scored.metric_values["F1@0.5"] <= 50
    assert scored.metric_values["F1@0.5 (lenient)"] == 100
    kinds = {event["kind"] for event in scored.queries[0].details["errors"]}
    assert kinds == {"recoverable"}


@pytest.mark.parametrize(
    "reply",
    [
        "traffic light: [100, 200, 300, 400]\n7-up: [500, 600, 700, 800]",
        'the "stop" sign: [100, 200, 300, 400]',
        "dog: [100, 200, 300, 400] Note: {nothing else}",
    ],
)
def test_adherent_replies_with_labels_are_left_alone(reply: str) -> None:
    assert leniently(reply, TEXT_LABELS) is None


def test_a_lost_label_is_no_wrong_label_even_where_nobody_finds_it() -> None:
    def kind(reply: str) -> str:
        truth = findit.truth([A], ["dog"])
        scored = findit.score(
            [reply], [truth], "xyxy_text", sizes=(1000, 1000), space="grid1000", multilabel=True
        )
        (event,) = scored.queries[0].details["errors"]
        assert (event["box"], event["object"]) == (0, 0)
        return str(event["kind"])

    assert kind("cat: [100, 200, 300, 400]") == "wrong label"
    assert kind('[{"bbox_2d": [100, 200, 300, 400], "label": "cat"}]') == "not readable"
    assert kind('[{"bbox_2d": [100, 200, 300, 400]}]') == "not readable"


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
    st.sampled_from([*GRID, "point"]),
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


@settings(max_examples=400, deadline=None)
@given(ugly | inside, formats)
def test_a_lenient_reading_names_a_repair_and_has_no_box_inside_out(
    text: str, form: ReplyFormat
) -> None:
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
    [
        "Perhaps near the fence, but let me look again. " * 200 + "{}",
        '{{"' + "a key that is long " * 500 + '{}": [1, 2, 3, 4]}}',
        "a label that is long " * 400 + "{}: [1, 2, 3, 4]",
        "x (1, 2, 3, 4) " * 600 + "{}",
    ],
    ids=["words", "a key", "a label", "boxes"],
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
    tracemalloc.start()
    try:
        score(1)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(2, 6):
            score(number)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < len(reply)
