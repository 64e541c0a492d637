"""Boxes in words, full-width punctuation and location tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lenient_replies import (
    JSON,
    POINT,
    TEXT,
    TEXT_CENTRES,
    TEXT_CORNERS,
    TEXT_LABELS,
    TEXT_SIZES,
    TEXT_VIDEO,
    TEXT_YX,
    A,
    B,
    leniently,
)

import vlmeval_findit as findit
from vlmeval_findit.boxes import (
    Corners,
    Repair,
    ReplyFormat,
    Space,
    parse_leniently,
    read,
    reply_extent,
)

S = Repair


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
    ("The image has the size (640, 480). The top-left corner is (100, 200). "
        "The bottom-right corner is (300, 400).", [A], [S.PROSE]),
    ("(100, 200), (300, 200), (300, 400), (100, 400)", [A], [S.ORDER, S.PROSE]),
    ("x: [100, 300], y: [200, 400]", [], []),
    # Numbers by name
    ("x_min: 100, y_min: 200, x_max: 300, y_max: 400", [A], [S.PROSE]),
    ("x1=100; y1=200; x2=300; y2=400", [A], [S.PROSE]),
    ("ymax = 400\nxmax = 300\nymin = 200\nxmin = 100", [A], [S.PROSE]),
    ("- **Left**: 100\n- **Top**: 200\n- **Right**: 300\n- **Bottom**: 400", [A], [S.PROSE]),
    ("The left edge is 100, the top edge is 200, the right edge is 300, the bottom edge is 400.",
        [A], [S.PROSE]),
    ("Min X: 100, Min Y: 200, Max X: 300, Max Y: 400", [A], [S.PROSE]),
    ("x_min：100，y_min：200，x_max：300，y_max：400", [A], [S.PROSE]),
    ("Top Left X: 100, Top Left Y: 200, Bottom Right X: 300, Bottom Right Y: 400", [A],
        [S.PROSE]),
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
    ("| dog | 100 | 200 | 300 | 400 |", [], []),
    ("100_200_300_400", [A], [S.PROSE]),
    ("Scores: 100, 200, 300, 400, 500", [], []),
    ("It counts 1, 2, 3, 4 dogs: 1, 2, 3, 4 cats", [], []),
    # The order that was asked for, said again
    ("(top-left, bottom-right): (100, 200, 300, 400)", [A], [S.PROSE]),
    ("As top-left and bottom-right corner: (100, 200, 300, 400)", [A], [S.PROSE]),
    ("(top, left, bottom, right): (100, 200, 300, 400)", [], []),
    # A confidence
    ("[100, 200, 300, 400, 0.98]", [A], [S.CONFIDENCE]),
    ("box (100, 200, 300, 400, 0.98)", [A], [S.CONFIDENCE, S.PROSE]),
    ("[[100, 200, 300, 400, 0.98], [500, 600, 700, 800, .5]]", [A, B],
        [S.NUMBERS, S.CONFIDENCE]),
    ("[100, 200, 300, 400, 0.0]", [A], [S.CONFIDENCE]),
    ("[100, 200, 300, 400, 1.0]", [A], [S.CONFIDENCE]),
    *((f"[100, 200, 300, 400, {number}]", [], []) for number in ("0", "1", "1.01", "-0.5", "5")),
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
    ("坐标：100，200，300，400。", [A], [S.PROSE]),
    ("边界框为 100, 200, 300, 400", [A], [S.PROSE]),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "boxes", "repairs"), WORDS)
def test_a_box_in_words(reply: str, boxes: Sequence[Corners], repairs: Sequence[Repair]) -> None:
    check(reply, TEXT, boxes, repairs)


OTHER_FORMATS: list[tuple[ReplyFormat, str, Sequence[Corners]]] = [
    (TEXT_SIZES, "x: 100, y: 200, width: 200, height: 200", [A]),
    (TEXT_SIZES, "left=100, top=200, w=200, h=200", [A]),
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
    assert reply_extent(space, 640, 480).width > 0


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


# Sides whose language has no word for all four among the names
SIDES = {
    "xmin": ["vänster", "sinistra", "esquerda"],
    "ymin": ["boven", "góra", "haut"],
    "xmax": ["höger", "destra", "direita"],
    "ymax": ["onder", "dół", "bas"],
}


@pytest.mark.parametrize(("name", "word"), [(name, word) for name in SIDES for word in SIDES[name]])
def test_a_side_is_known_by_its_word(name: str, word: str) -> None:
    """Beside plain names, the word stands for one of them."""
    numbers = {"xmin": 100, "ymin": 200, "xmax": 300, "ymax": 400}
    fields = [f'"{word if each == name else each}": {number}' for each, number in numbers.items()]
    check(f"[{{{', '.join(fields)}}}]", JSON, [A], [S.STRUCTURE])


# --- numbers as plain tokens between marks --------------------------------------------------------

MARKS = {
    "LocateAnything": ("<box>", "</box>", 1000),
    "Rex-Omni": ("<|box_start|>", "<|box_end|>", 999),
}


@pytest.mark.parametrize("family", MARKS)
def test_plain_tokens_count_as_the_marks_around_them_say(family: str) -> None:
    opening, closing, steps = MARKS[family]
    extent = reply_extent(Space("file_pixels"), 10 * steps, 20 * steps)
    reply = f"{opening}<100><200><300><400>{closing}"
    result = parse_leniently(reply, JSON, read(reply, JSON), extent)
    assert result is not None
    assert result.reading.boxes[0] == pytest.approx((1000, 4000, 3000, 8000))
    assert list(result.repairs) == [S.TOKENS]
    beyond = f"{opening}<100><200><300><{steps + 1}>{closing}"
    assert parse_leniently(beyond, JSON, read(beyond, JSON), extent) is None


@pytest.mark.parametrize("family", MARKS)
def test_two_plain_tokens_are_a_point_and_no_box(family: str) -> None:
    opening, closing, steps = MARKS[family]
    extent = reply_extent(Space("file_pixels"), 10 * steps, 20 * steps)
    reply = f"<ref>dog</ref>{opening}<100><200>{closing}"
    assert parse_leniently(reply, JSON, read(reply, JSON), extent) is None
    result = parse_leniently(reply, POINT, read(reply, POINT), extent)
    assert result is not None
    assert result.reading.boxes[0] == pytest.approx((1000, 4000, 1000, 4000))
    four = f"{opening}<100><200><300><400>{closing}"
    assert parse_leniently(four, POINT, read(four, POINT), extent) is None


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize(
    ("tag", "points"),
    [
        ('<point x="25" y="50.0">dog</point>', [(250, 1000)]),
        ('<points x1="25" y1="50" x2="75" y2="5">dog</points>', [(250, 1000), (750, 100)]),
        ('<points x1="25" y1="50" x2="750" y2="5">dog</points>', [(25, 50), (750, 5)]),
        ('<points coords="1 1 250 500">dog</points>', [(250, 1000)]),
        ('<points coords="1 1 250 500 2 750 050"/>', [(250, 1000), (750, 100)]),
    ],
)
def test_points_in_tags_have_the_unit_of_the_tag(
    tag: str, points: Sequence[tuple[float, float]], quote: str
) -> None:
    reply = tag.replace('"', quote)
    extent = reply_extent(Space("file_pixels"), 1000, 2000)
    result = parse_leniently(reply, POINT, read(reply, POINT), extent, ("dog",))
    assert result is not None
    assert result.reading.boxes == tuple((x, y, x, y) for x, y in points)


@pytest.mark.parametrize("joint", [";", "\t"])
def test_points_of_several_images_are_apart(joint: str) -> None:
    video = ReplyFormat("json", "point", "point", frames=2)
    reply = f'<points coords="1 1 250 500 2 750 050{joint}2 3 100 100">dog</points>'
    extent = reply_extent(Space("grid1000"), 640, 480)
    result = parse_leniently(reply, video, read(reply, video), extent, ("dog",))
    assert result is not None
    assert result.reading.frames == (0, 0, 1)


# --- four corners ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        '{"quad_2d": [100, 200, 300, 200, 300, 400, 100, 400]}',
        '{"bbox": [[100, 200], [300, 200], [300, 400], [100, 400]]}',
        '{"quad_boxes": [[100, 200, 300, 200, 300, 400, 100, 400]]}',
        "<quad>100 200 300 200 300 400 100 400</quad>",
        "The box has the corners (100, 200, 300, 200, 300, 400, 100, 400).",
    ],
)
def test_four_corners_of_an_upright_box_are_that_box(reply: str) -> None:
    for form, box in ((JSON, A), (ReplyFormat("json", "yxyx"), (200, 100, 400, 300))):
        result = leniently(reply, form)
        assert result is not None
        assert result.reading.boxes == (box,)
    turned = reply.replace("300", "310", 1)
    assert leniently(turned, JSON) is None
    assert leniently(reply, ReplyFormat("json", "xywh")) is None
    denied = f"{reply}\nOrder: (h, w, y, x)"
    assert leniently(denied, JSON) is None


# --- lists ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        "<seg>0,0,0,0;0,1,1,0;0,1,1,0;0,0,0,0</seg>",
        "<mask>[1, 2, 3, 4], [5, 6, 7, 8]</mask>",
        "Confidence scores: (1, 2, 3, 4), (5, 6, 7, 8)",
    ],
)
def test_a_list_is_what_its_first_one_is(reply: str) -> None:
    assert leniently(reply, JSON) is None


def test_rows_may_have_a_number_that_no_column_names() -> None:
    table = "  label  xmin  ymin  xmax  ymax\n0   dog   100   200   300   400"
    check(table, JSON, [A], [S.PROSE])
    check(table.replace("0   dog", "1 2  dog"), JSON, [], [])
    check(table.replace("0   dog", "the dog"), JSON, [], [])


@pytest.mark.parametrize("sign", ["🐶", "→", "✅ ", "— "])
def test_signs_around_a_label_are_none_of_it(sign: str) -> None:
    reply = f"{sign} dog: (100, 200, 300, 400)"
    result = leniently(reply, TEXT_LABELS)
    assert result is not None
    assert result.reading.labels == ("dog",)


# --- forms of other trades ------------------------------------------------------------------------

# What says that they are a box is BOX: a word of these
TRADES: dict[str, tuple[str, str]] = {
    "expression": ("(BOX 100 200 300 400)", "bbox"),
    "nested expression": ('((label "dog") (BOX 100 200 300 400))', "bounding-box"),
    "braces": ("{BOX 100 200 300 400}", "rect"),
    "labelme": (
        '{"label": "dog", "points": [[100, 200], [300, 400]], "shape_type": "BOX"}', "rectangle"
    ),
    "labelme's file": (
        '{"shapes": [{"label": "dog", "points": [[300, 400], [100, 200]], "shape_type": "BOX"}]}',
        "rectangle",
    ),
    "a shape": ('{"type": "BOX", "label": "dog", "vertices": [100, 200, 300, 400]}', "rect"),
    "PostGIS": ("BOX(100 200, 300 400)", "BOX"),
    "Postgres": ("BOX '((300,400),(100,200))'", "box"),
}  # fmt: skip


@pytest.mark.parametrize("form", TRADES)
def test_other_trades_are_read_where_they_say_a_box(form: str) -> None:
    reply, word = TRADES[form]
    for how in (JSON,) if '"' in reply and ":" in reply else (JSON, TEXT):
        result = leniently(reply.replace("BOX", word), how)
        assert result is not None
        assert result.reading.boxes == (A,)
        for other in ("padding", "circle", "polygon", "line", "image_box", "score"):
            assert leniently(reply.replace("BOX", other), how) is None, other
    if form.startswith(("labelme", "Postg")):  # Two corners, no size
        assert leniently(reply.replace("BOX", word), TEXT_SIZES) is None


SHORT = {"ul": "left top", "tl": "left top", "lt": "left top", "lr": "right bottom",
    "br": "right bottom", "rb": "right bottom", "ll": "left bottom", "bl": "left bottom",
    "lb": "left bottom", "ur": "right top", "tr": "right top", "rt": "right top"}  # fmt: skip
SIDES_OF_A = {"left": 100, "top": 200, "right": 300, "bottom": 400}


@pytest.mark.parametrize("first", SHORT)
@pytest.mark.parametrize("second", SHORT)
def test_corners_of_two_letters_are_a_box_if_opposite(first: str, second: str) -> None:
    points = [[SIDES_OF_A[side] for side in SHORT[name].split()] for name in (first, second)]
    are_opposite = set(points[0]).isdisjoint(points[1])
    for reply in (
        f"{first} = ({points[0][0]}, {points[0][1]}), {second} = ({points[1][0]}, {points[1][1]})",
        f"{first.upper()}: {points[0]} {second.upper()}: {points[1]}",
        f'{{"{first}": {points[0]}, "{second}": {points[1]}}}',
        f'{{"label": "dog", "{second}": {points[1]}, "{first}": {points[0]}}}',
    ):
        result = leniently(reply, TEXT)
        assert (result is not None) == (are_opposite and first != second), reply
        assert result is None or result.reading.boxes == (A,)


@pytest.mark.parametrize("key", ["crop", "padding", "image_box", "viewport"])
@pytest.mark.parametrize("names", [("ul", "lr"), ("top_left", "bottom_right")])
def test_corners_below_a_key_of_another_thing_are_no_box(key: str, names: Sequence[str]) -> None:
    first, second = names
    reply = f'{{"KEY": {{"{first}": [100, 200], "{second}": [300, 400]}}}}'
    assert leniently(reply.replace("KEY", key), JSON) is None
    assert leniently(reply.replace("KEY", "dog"), JSON) is not None


@pytest.mark.parametrize("text", ["lr = (0.1, 0.2), wd = (0.3, 0.4)", "tr(1, 2) and br(3, 4)"])
def test_letters_that_leave_a_side_open_are_no_corners(text: str) -> None:
    assert leniently(text, TEXT) is None


SQL = "INSERT INTO found (label, NAMES) VALUES ('dog', NUMBERS), ('cat', 1, 1, 2, 2);"


@pytest.mark.parametrize("words", [SQL, SQL.lower().replace("names", "NAMES").upper()])
@pytest.mark.parametrize(
    ("form", "names", "numbers"),
    [
        (TEXT, "xmin, ymin, xmax, ymax", "100, 200, 300, 400"),
        (TEXT, "y1, x1, y2, x2", "200, 100, 400, 300"),
        (TEXT_YX, "y1, x1, y2, x2", "200, 100, 400, 300"),
        (TEXT_SIZES, "x, y, width, height", "100, 200, 200, 200"),
    ],
)
def test_values_are_read_by_the_columns_that_sql_names(
    form: ReplyFormat, names: str, numbers: str, words: str
) -> None:
    reply = words.replace("NAMES", names).replace("NUMBERS", numbers)
    result = leniently(reply, form)
    assert result is not None
    assert result.reading.boxes[0] == A
    assert len(result.reading.boxes) == 2
    assert leniently(words.replace("NAMES", "a, b, c, d").replace("NUMBERS", numbers), form) is None


@pytest.mark.parametrize("more", ["", ", 4326"])
def test_an_envelope_has_two_corners(more: str) -> None:
    reply = f"SELECT ST_MakeEnvelope(100, 200, 300, 400{more});"
    check(reply, TEXT, [A], [S.PROSE])
    check(reply, TEXT_YX, [A], [S.PROSE])
    check(reply, TEXT_SIZES, [], [])
    check(reply.replace("ST_Make", ""), TEXT, [], [])


def test_a_closed_ring_of_four_corners_is_a_box() -> None:
    ring = "[[100, 200], [300, 200], [300, 400], [100, 400], [100, 200]]"
    reply = f'{{"type": "Polygon", "coordinates": [{ring}]}}'
    result = leniently(reply, JSON)
    assert result is not None
    assert result.reading.boxes == (A,)
    assert leniently(reply.replace("300, 200", "310, 200"), JSON) is None
    assert leniently(reply.replace(", [100, 200]]", ", [100, 201]]"), JSON) is None
