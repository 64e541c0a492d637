"""An order or unit that a reply states decides whether it is read, wherever it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest
from every_pair import every_pair

import vlmeval_findit as findit
from benchmarks.changed_readings import random_replies
from vlmeval_findit.boxes import ImageExtent, ReplyFormat, parse_leniently, read

JSON = ReplyFormat("json", "xyxy", "bbox_2d")
TEXT = ReplyFormat("text", "xyxy")


def boxes_in(reply: str, form: ReplyFormat, extent: ImageExtent) -> tuple[object, ...]:
    """Return the boxes that only lenient parsing reads."""
    strict = read(reply, form)
    assert not strict.boxes
    lenient = parse_leniently(reply, form, strict, extent, ("dog",))
    return () if lenient is None else tuple(lenient.reading.boxes)


# --- units ----------------------------------------------------------------------------------------

# One box in each unit, and where the image lies in it
UNITS: dict[str, tuple[list[float], ImageExtent]] = {
    "pixels": ([112, 64, 388, 420], ImageExtent(640, 480)),
    "thousandths": ([175, 133, 606, 875], ImageExtent(1000, 1000)),
    "percent": ([17.5, 13.3, 60.6, 87.5], ImageExtent(100, 100)),
    "fractions": ([0.175, 0.133, 0.606, 0.875], ImageExtent(1, 1)),
}
WORDS = {
    "pixels": ["pixels", "px", "absolute pixels", "pixel coordinates", "in image pixels"],
    "thousandths": [
        "0-1000", "thousandths", "normalized to 0-1000", "scaled to [0, 1000]",
        "on a 1000x1000 grid", "per mille", "normalised to [0, 999]", "in 1/1000", "scaled to 1000",
    ],
    "percent": [
        "percent", "%", "percentages of the image size", "per cent of width and height",
        "0-100 scale", "em porcentagem", "in percentuale", "procent", "yüzde", "in Prozent",
        "dalam persen",
    ],
    "fractions": [
        "normalized", "fractions of the image", "relative coordinates", "normalised to 0-1",
        "range 0..1", "ratio of image width and height", "normiert", "normalisées", "normalizadas",
    ],
}  # fmt: skip
KEYS = {
    "pixels": ["bbox_px", "box_pixels", "bboxPixels", "abs_bbox"],
    "thousandths": ["bbox_1000", "bbox_norm1000", "box_0_1000"],
    "percent": ["bbox_percent", "bboxPct", "percent_box"],
    "fractions": ["normalized_bbox", "bbox_norm", "relBox", "bbox_relative"],
}


def replies_in_unit(words: str, box: Sequence[float]) -> Iterator[tuple[ReplyFormat, str]]:
    """Yield replies that state a unit at every place."""
    numbers = ", ".join(map(str, box))
    x1, y1, x2, y2 = box
    yield JSON, f'{{"bbox_2d": [{numbers}], "unit": "{words}"}}'
    yield JSON, f'{{"coordinate_system": "{words}", "objects": [{{"bbox_2d": [{numbers}]}}]}}'
    yield JSON, f'Boxes ({words}):\n{{"bbox_2d": [{numbers}]}}'
    yield JSON, f'{{"bbox_2d": [{numbers}]}}\nCoordinates are {words}.'
    yield JSON, f'{{"bbox_2d": [{numbers}]}} // {words}'
    yield JSON, f'{{"note": "boxes in {words}", "x1": {x1}, "y1": {y1}, "x2": {x2}, "y2": {y2}}}'
    yield TEXT, f"The bounding box in {words} is ({numbers})."
    yield TEXT, f"Dog box: ({numbers}) ({words})"
    yield TEXT, f"Units: {words}\nx_min: {x1}\ny_min: {y1}\nx_max: {x2}\ny_max: {y2}"
    yield TEXT, f"| label | box ({words}) |\n|---|---|\n| dog | ({numbers}) |"


@every_pair("run, unit, words", UNITS, [(unit, each) for unit in WORDS for each in WORDS[unit]])
def test_a_box_is_read_only_in_its_stated_unit(unit: str, words: str, run: str) -> None:
    for form, reply in replies_in_unit(words, UNITS[unit][0]):
        assert bool(boxes_in(reply, form, UNITS[run][1])) == (unit == run), reply


@pytest.mark.parametrize("run", UNITS)
@pytest.mark.parametrize(("unit", "key"), [(unit, key) for unit in KEYS for key in KEYS[unit]])
def test_a_key_that_names_a_unit_states_it(unit: str, key: str, run: str) -> None:
    reply = f'{{"{key}": {UNITS[unit][0]}}}'
    assert bool(boxes_in(reply, JSON, UNITS[run][1])) == (unit == run)


@pytest.mark.parametrize("name", ["coco", "yolo", "COCO", "YOLO"])
def test_the_name_of_a_set_states_its_order(name: str) -> None:
    for reply in (
        f'{{"format": "{name}", "bbox": [112, 64, 388, 420]}}',
        f'In {name} format:\n[{{"bbox": [112, 64, 388, 420]}}]',
        f"Bounding box in the {name} order: (112, 64, 388, 420)",
        f"By {name} convention, the bounding box is (112, 64, 388, 420)",
        f"Bounding box ({name} format): (112, 64, 388, 420)",
    ):
        assert not boxes_in(reply, JSON, ImageExtent(640, 480))
    label = f'[{{"label": "{name} logo", "bbox": [112, 64, 388, 420]}}]'
    assert boxes_in(label, JSON, ImageExtent(640, 480))


@pytest.mark.parametrize("words", ["y first", "y-first", "with y before x", "y and then x"])
def test_y_first_is_an_order(words: str) -> None:
    reply = f"The bounding box, {words}, is (112, 64, 388, 420)."
    assert not boxes_in(reply, TEXT, ImageExtent(640, 480))
    assert boxes_in(reply, ReplyFormat("text", "yxyx"), ImageExtent(640, 480))


@pytest.mark.parametrize("names", ["pu, wai, hema, raro", "a b c d", "juu; kushoto; chini; kulia"])
@pytest.mark.parametrize(
    "key", ["format", "bbox_order", "coordinate_format", "convention", "box_mode", "layout"]
)
def test_four_unknown_names_are_another_order(key: str, names: str) -> None:
    reply = f'{{"{key}": "{names}", "bbox": [112, 64, 388, 420]}}'
    assert not boxes_in(reply, JSON, ImageExtent(640, 480))
    known = reply.replace(names, "x_min, y_min, x_max, y_max")
    assert boxes_in(known, JSON, ImageExtent(640, 480))


@pytest.mark.parametrize(
    "key",
    ["unit", "box_units", "Einheit", "unité", "unidad", "unidades", "unità", "eenheid", "jednostka",
     "единица", "birim", "单位", "単位", "단위"],
)  # fmt: skip
def test_a_key_for_units_is_known_in_languages(key: str) -> None:
    numbers, extent = UNITS["pixels"]
    assert not boxes_in(f'{{"{key}": "furlongs", "bbox_2d": {numbers}}}', JSON, extent)
    assert not boxes_in(f"{key}: furlongs\nDog box: {numbers}", JSON, extent)
    assert boxes_in(f'{{"{key}": "pixels", "bbox_2d": {numbers}}}', JSON, extent)


@pytest.mark.parametrize("run", UNITS)
def test_an_unknown_unit_is_another_one(run: str) -> None:
    numbers, extent = UNITS[run]
    assert not boxes_in(f'{{"units": "furlongs", "bbox_2d": {numbers}}}', JSON, extent)


# --- words that are none of our units -------------------------------------------------------------

NUMBERS = "112, 64, 388, 420"
# What stands in the place of X is a unit
PLACES = {
    "brackets behind coordinates": f"Coordinates (X): ({NUMBERS})",
    "brackets behind a box": f"Bounding box [X] = ({NUMBERS})",
    "before a colon": f"Coordinates X: ({NUMBERS})",
    "behind in": f"The coordinates are given in X: ({NUMBERS})",
    "behind in, of a box": f"The bounding box in X is ({NUMBERS}).",
    "in brackets": f"The dog is at ({NUMBERS}) (in X).",
    "behind the numbers": f"Dog: ({NUMBERS}) (X)",
    "behind the numbers, in": f"Dog: ({NUMBERS}) in X.",
    "behind unit": f"Unit: X\nDog box: ({NUMBERS})",
    "in a comment": f'{{"bbox_2d": [{NUMBERS}]}} // in X',
    "in a value": f'{{"bbox_2d": [{NUMBERS}], "note": "values in X"}}',
    "in a key": f'{{"bbox (X)": [{NUMBERS}]}}',
    "in a heading of a table": f"| label | box (X) |\n|---|---|\n| dog | ({NUMBERS}) |",
    "behind each number": "x_min: 112 X, y_min: 64 X, x_max: 388 X, y_max: 420 X",
    "behind each side": "left: 112 X and top: 64 X, right: 388 X, bottom: 420 X",
}
FOREIGN = ["em", "pt", "cm", "degrees", "tiles", "furlongs", "dp"]


def lenient_boxes(reply: str, asked: Sequence[str] = ("dog",)) -> tuple[object, ...]:
    strict = read(reply, JSON)
    lenient = parse_leniently(reply, JSON, strict, ImageExtent(640, 480), asked)
    return () if lenient is None else tuple(lenient.reading.boxes)


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_read_past_a_unit_that_nobody_knows(place: str) -> None:
    for unit in FOREIGN:
        assert not lenient_boxes(PLACES[place].replace("X", unit)), unit


@pytest.mark.parametrize("place", PLACES)
def test_the_run_s_unit_in_the_same_place_is_read(place: str) -> None:
    assert lenient_boxes(PLACES[place].replace("X", "pixels")) == ((112, 64, 388, 420),)


@pytest.mark.parametrize("words", ["grid cells", "map tiles", "screen units"])
@pytest.mark.parametrize("place", [name for name in PLACES if not name.startswith("behind each")])
def test_a_unit_may_have_two_words(place: str, words: str) -> None:
    is_screen = words == "screen units"  # "screen" is a word for the image
    assert is_screen or not lenient_boxes(PLACES[place].replace("X", words))


@pytest.mark.parametrize(
    "words",
    ["azimuth and elevation", "azimuth, elevation", "range, azimuth, and elevation",
     "rho / theta", "Azimut und Elevation", "pixels and degrees", "latitude then longitude"],
)  # fmt: skip
@pytest.mark.parametrize(
    "reply",
    [
        f"Boxes in X: ({NUMBERS})",
        f"Here is the bounding box in X ({NUMBERS})",
        f"The coordinates are given in X.\nDog box: ({NUMBERS})",
        f"Koordinaten in X: ({NUMBERS})",
        f"Cajas y coordenadas en X: ({NUMBERS})",
        f'{{"bbox_2d": [{NUMBERS}], "note": "coordinates in X"}}',
        f'{{"bbox_2d": [{NUMBERS}]}}\nThe boxes in X are above.',
    ],
)
def test_a_list_behind_in_is_what_the_numbers_are(reply: str, words: str) -> None:
    assert not lenient_boxes(reply.replace("X", words))
    for known in ("x and y", "pixels", "pixels and px"):
        assert lenient_boxes(reply.replace("X", known)) == ((112, 64, 388, 420),), known


@pytest.mark.parametrize(
    "words", ["red and blue", "black and white", "question, then", "dogs and cats", "total, sorted"]
)
def test_a_list_of_colours_or_labels_is_no_unit(words: str) -> None:
    assert lenient_boxes(f"Bounding boxes in {words}: ({NUMBERS})")


@pytest.mark.parametrize(
    "key", ["bbox_em", "box_cm", "bboxInches", "bbox_mm", "degrees_box", "x_min_cm"]
)
def test_a_key_that_names_a_length_states_it(key: str) -> None:
    reply = f'{{"{key}": [{NUMBERS}]}}'
    if key.startswith("x_"):
        reply = '{"x_min_cm": 112, "y_min_cm": 64, "x_max_cm": 388, "y_max_cm": 420}'
    assert not lenient_boxes(reply)


# Words around boxes that state neither a unit nor an order
ORDINARY = [
    f"Coordinates of the cat: ({NUMBERS})",
    f"Bounding box (dog): ({NUMBERS})",
    f"Bounding boxes (dogs): ({NUMBERS})",
    f"Bounding box (mug): ({NUMBERS})",
    f"Bounding box (red dress): ({NUMBERS})",
    f"Bounding box(es): ({NUMBERS})",
    f"Bounding box (approximate): ({NUMBERS})",
    f"Bounding box (the dog on the left): ({NUMBERS})",
    f"Bounding box (top-left, bottom-right): ({NUMBERS})",
    f"Box (upper left corner and lower right corner): ({NUMBERS})",
    f"Box (min, max): ({NUMBERS})",
    f"Coordinates (x1, y1, x2, y2): ({NUMBERS})",
    f"Coordinates (left, top, right, bottom): ({NUMBERS})",
    f"Coordinates (estimated): ({NUMBERS})",
    f"Coordinates (rounded to integers): ({NUMBERS})",
    f"Coordinates dog: ({NUMBERS})",
    f"Coordinates: ({NUMBERS}) (approx.)",
    f"Coordinates in JSON format:\n({NUMBERS})",
    f"Location (kitchen): ({NUMBERS})",
    f"The box in the image: ({NUMBERS})",
    f"The bounding box in question is ({NUMBERS}).",
    f"The bounding box of the dog in black is ({NUMBERS}).",
    f"The dog is at ({NUMBERS}) in the foreground.",
    f"The coordinates are as follows: ({NUMBERS})",
    "left: 112 px, top: 64 px, right: 388 px, bottom: 420 px",
    "left: 112, top: 64, right: 388 and bottom: 420",
    "x from 112 to 388 and y from 64 to 420",
    f'{{"bbox (dog)": [{NUMBERS}]}}',
    f'{{"bbox_2d": [{NUMBERS}], "note": "found in one of two cases"}}',
]


@pytest.mark.parametrize("reply", ORDINARY)
def test_ordinary_words_in_the_place_of_a_unit_are_none(reply: str) -> None:
    assert lenient_boxes(reply) == ((112, 64, 388, 420),)


def test_an_unknown_unit_leaves_converted_tokens() -> None:
    reply = "Coordinates (tiles): <loc0128><loc0256><loc0640><loc0768>"
    assert lenient_boxes(reply) == ((160, 60, 480, 300),)


@pytest.mark.parametrize("run", UNITS)
@pytest.mark.parametrize(
    ("unit", "word"),
    [("pixels", "px"), ("pixels", "Pixels"), ("percent", "Pct"), ("percent", "percent"),
     ("thousandths", "1000"), ("fractions", "norm"), ("fractions", "relative")],
)  # fmt: skip
def test_the_key_of_a_number_states_its_unit(unit: str, word: str, run: str) -> None:
    numbers, extent = UNITS[unit][0], UNITS[run][1]
    joint = "" if word[0].isupper() else "_"
    for names in (("x_min", "y_min", "x_max", "y_max"), ("left", "top", "right", "bottom")):
        fields = {f"{name}{joint}{word}": n for name, n in zip(names, numbers, strict=True)}
        for reply in (json.dumps({"box": fields}), json.dumps([{"label": "dog", **fields}])):
            assert bool(boxes_in(reply, JSON, extent)) == (unit == run), reply


@pytest.mark.parametrize("words", ["map tile", "kitchen counter", "mug"])
def test_a_name_behind_a_word_for_boxes_is_no_unit(words: str) -> None:
    assert lenient_boxes(f"Bounding box ({words}): ({NUMBERS})")


# --- where y begins -------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["bottom-left", "bottom left", "the lower left", "the centre"])
@pytest.mark.parametrize(
    "reply",
    [
        f"The bounding box is ({NUMBERS}). The origin is at X.",
        f'{{"bbox": [{NUMBERS}], "origin": "X"}}',
        f'{{"bbox": [{NUMBERS}]}} // origin in X',
        f'{{"bbox": [{NUMBERS}], "coord_origin": "X"}}',
    ],
)
def test_nothing_is_read_past_another_origin(reply: str, origin: str) -> None:
    assert not lenient_boxes(reply.replace("X", origin))
    assert lenient_boxes(reply.replace("X", "the top left"))


@pytest.mark.parametrize("words", ["y goes up", "the y-axis points upwards", "y increases upward"])
def test_nothing_is_read_past_a_y_that_goes_up(words: str) -> None:
    assert not lenient_boxes(f"The bounding box is ({NUMBERS}), where {words}.")
    assert lenient_boxes(f"The bounding box is ({NUMBERS}), where y goes down.")


@pytest.mark.parametrize("sides", ["ltrb", "lrtb", "btlr"])
def test_sides_by_letter_are_names(sides: str) -> None:
    numbers = dict(zip("ltrb", (112, 64, 388, 420), strict=True))
    reply = json.dumps({"bbox": {side: numbers[side] for side in sides}})
    assert lenient_boxes(reply) == ((112, 64, 388, 420),)
    assert not lenient_boxes(reply.replace('"l"', '"m"'))


SIZES = [
    f'{{"KEY": [1280, 960], "objects": [{{"bbox": [{NUMBERS}]}}]}}',
    f'{{"bbox": [{NUMBERS}], "KEY": {{"width": 1280, "height": 960}}}}',
]


@pytest.mark.parametrize(
    "key",
    ["scaled_size", "input_size", "resized_shape", "frame_size", "video_resolution", "canvas_size",
     "screenshot_size", "original_dimensions", "image_size"],
)  # fmt: skip
@pytest.mark.parametrize("reply", SIZES)
def test_the_size_of_another_picture_is_another_unit(reply: str, key: str) -> None:
    reply = reply.replace("KEY", key)
    assert not lenient_boxes(reply)
    assert lenient_boxes(reply.replace("1280", "640").replace("960", "480"))
    assert lenient_boxes(reply.replace(key, "size_of_the_dog"))


# --- orders ---------------------------------------------------------------------------------------

# One box in each order
ORDERS = {
    "xyxy": [112, 64, 388, 420],
    "yxyx": [64, 112, 420, 388],
    "xywh": [112, 64, 276, 356],
    "cxcywh": [250, 242, 276, 356],
    "yxhw": [64, 112, 356, 276],
}
NAMES = {
    "xyxy": [
        "x1, y1, x2, y2", "x_min, y_min, x_max, y_max", "left, top, right, bottom",
        "xmin ymin xmax ymax", "xyxy", "ltrb", "xminyminxmaxymax", "x0,y0,x1,y1",
        "left/top/right/bottom", "links, oben, rechts, unten", "gauche, haut, droite, bas",
        "izquierda, arriba, derecha, abajo", "左、上、右、下", "左，上，右，下",
        "왼쪽, 위, 오른쪽, 아래", "лево, верх, право, низ", "слева, сверху, справа, снизу",
        "links, boven, rechts, onder",
    ],
    "yxyx": [
        "y1, x1, y2, x2", "ymin, xmin, ymax, xmax", "top, left, bottom, right", "yxyx",
        "y0,x0,y1,x1", "y_min x_min y_max x_max", "Y1X1Y2X2", "oben, links, unten, rechts",
        "haut, gauche, bas, droite", "arriba, izquierda, abajo, derecha", "上、左、下、右",
        "위, 왼쪽, 아래, 오른쪽", "верх, лево, низ, право", "cima, esquerda, baixo, direita",
    ],
    "xywh": [
        "x, y, w, h", "x, y, width, height", "left, top, width, height", "xywh", "ltwh", "x y w h",
        "x, y, Breite, Höhe", "左、上、宽、高", "x、y、幅、高さ", "x, y, 너비, 높이",
        "x, y, genişlik, yükseklik", "x, y, szerokość, wysokość", "x, y, breedte, hoogte",
        "x, y, larghezza, altezza", "x, y, bredd, höjd", "x, y, lebar, tinggi",
        "x, y, šířka, výška",
        "coco-style",
    ],
    "cxcywh": [
        "cx, cy, w, h", "center_x, center_y, width, height", "cxcywh", "xc, yc, w, h",
        "centre x, centre y, width, height", "YOLO-style",
    ],
    "yxhw": ["y, x, h, w", "top, left, height, width", "yxhw"],
}  # fmt: skip


def replies_in_order(names: str, box: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Yield replies that state an order at every place, each with its output."""
    numbers = ", ".join(map(str, box))
    yield "json", f'{{"bbox": [{numbers}], "format": "{names}"}}'
    yield "json", f'{{"bbox_format": "{names}", "objects": [{{"bbox": [{numbers}]}}]}}'
    yield "json", f'Boxes as ({names}):\n[{{"bbox": [{numbers}],}}]'
    yield "json", f'{{"bbox": [{numbers}]}}\nThe coordinates are in the order {names}.'
    yield "json", f'{{"bbox": [{numbers}]}} // {names}'
    yield "json", f'# {names}\n{{"bbox": [{numbers}]}}'
    yield "json", f'{{"bbox ({names})": [{numbers}]}}'
    yield "text", f"The bounding box ({names}) is ({numbers})."
    yield "text", f"Dog box: ({numbers}) [{names}]"
    yield "text", f"Format: {names}\nDog: ({numbers})"
    yield "text", f"| label | box ({names}) |\n|---|---|\n| dog | ({numbers}) |"
    if names.count(", ") == 3:
        columns = ", ".join(f'"{name}"' for name in names.split(", "))
        yield "json", f'{{"columns": [{columns}], "bbox": [{numbers}]}}'
        yield "json", f'{{"order": [{columns}], "boxes": [[{numbers}]]}}'


@every_pair(
    "asked, order, names", ORDERS, [(order, names) for order in NAMES for names in NAMES[order]]
)
def test_a_box_is_read_only_in_its_stated_order(order: str, names: str, asked: str) -> None:
    for output, reply in replies_in_order(names, ORDERS[order]):
        form = ReplyFormat(output, asked)
        if read(reply, form).boxes:
            continue  # Strictly in the requested syntax
        boxes = boxes_in(reply, form, ImageExtent(640, 480))
        assert boxes == (((112, 64, 388, 420),) if order == asked else ()), reply


PLACES_OF_ORDERS = [
    f"Bounding box (X): ({NUMBERS})",
    f"Boxes [X]: ({NUMBERS})",
    f"Coordinates (X) = ({NUMBERS})",
    f'{{"bbox (X)": [{NUMBERS}]}}',
    f"| label | box (X) |\n|---|---|\n| dog | ({NUMBERS}) |",
]


@pytest.mark.parametrize("reply", PLACES_OF_ORDERS)
@pytest.mark.parametrize(
    "words",
    ["centre, size", "origin and size", "south, north, west, east", "first vertex, diagonal",
     "anchor + extent", "pu, wai, hema, raro", "N/W/S/E"],
)  # fmt: skip
def test_nothing_is_read_past_an_order_that_nobody_knows(reply: str, words: str) -> None:
    assert not lenient_boxes(reply.replace("X", words))


@pytest.mark.parametrize("words", ["dogs, cats", "dog and cat", "cat / dog"])
def test_a_list_of_labels_asked_for_is_no_order(words: str) -> None:
    assert lenient_boxes(f"Bounding boxes ({words}): ({NUMBERS})", ("dog", "cat"))


@pytest.mark.parametrize(
    ("words", "order"),
    [("centre and size", "cxcywh"), ("center, size", "cxcywh"), ("centre then extent", "cxcywh"),
     ("origin and size", "xywh"), ("top-left corner and size", "xywh"),
     ("upper left, dimensions", "xywh"), ("center_size", "cxcywh")],
)  # fmt: skip
def test_a_place_and_a_size_are_an_order(words: str, order: str) -> None:
    for output, reply in replies_in_order(words, ORDERS[order]):
        for asked in ORDERS:
            form = ReplyFormat(output, asked)
            boxes = (
                boxes_in(reply, form, ImageExtent(640, 480)) if not read(reply, form).boxes else ()
            )
            assert boxes == (((112, 64, 388, 420),) if asked == order else ()), reply


@pytest.mark.parametrize("asked", ORDERS)
def test_corners_and_sides_that_look_alike_are_no_order(asked: str) -> None:
    """A list of four sides and two corners are written the same."""
    for reply in (
        f"Bounding box (top left bottom right): ({NUMBERS})",
        f"Order: top left bottom right\nDog box: ({NUMBERS})",
        f'{{"format": "top left bottom right", "bbox": [{NUMBERS}]}}',
    ):
        assert not boxes_in(reply, ReplyFormat("json", asked), ImageExtent(640, 480))
    for words in ("top-left bottom-right", "top left, bottom right", "top left and bottom right"):
        reply = f"Bounding box ({words}): ({NUMBERS})"
        boxes = boxes_in(reply, ReplyFormat("json", asked), ImageExtent(640, 480))
        assert bool(boxes) == (asked in ("xyxy", "yxyx"))


# --- whatever a reply states ----------------------------------------------------------------------


def test_random_replies_are_read_and_keep_their_boxes() -> None:
    for asked in random_replies(3000):
        strict = read(asked.reply, asked.form)
        extent = ImageExtent(1000, 1000)
        lenient = parse_leniently(asked.reply, asked.form, strict, extent, asked.labels)
        if lenient is not None:
            assert lenient.reading.boxes[: len(strict.boxes)] == strict.boxes
            assert lenient.reading.reason is strict.reason


# --- pixels, and pictures whose numbers are the same in another unit ------------------------------

SIDES = (100, 640, 1000, 1024)


@pytest.mark.parametrize("words", ["in pixels", "in thousandths", "in percent"])
@pytest.mark.parametrize("space", ["pixels", "grid1000", "percent"])
@pytest.mark.parametrize("side", SIDES)
def test_a_square_picture_decides_no_unit(side: int, space: str, words: str) -> None:
    unit = {"pixels": "pixels", "grid1000": "thousandths", "percent": "percent"}[space]
    reply = f"The bounding box {words} is (10, 20, 30, 40)."
    extent = {"pixels": side, "grid1000": 1000, "percent": 100}[space]
    full = {"in pixels": side, "in thousandths": 1000, "in percent": 100}[words]
    scored = findit.score([reply], [[[0, 0, 9, 9]]], "xyxy_text", sizes=(side, side), space=space)
    lenient = scored.queries[0].details.get("lenient")
    # Of a picture of 1000 x 1000 pixels a pixel is a thousandth.
    is_of_run = words == f"in {unit}" or (extent == full and unit == "pixels")
    assert (lenient is not None) == is_of_run
