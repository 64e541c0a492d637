"""Forms that people write and no family of models: what each kind states, and what it does not."""

from __future__ import annotations

import pytest

from vlmeval_findit.boxes import ImageExtent, ReplyFormat, parse_leniently, read
from vlmeval_findit.boxes.lenient import languages

JSON = ReplyFormat("json", "xyxy", key="bbox_2d")
SEVERAL = ReplyFormat("json", "xyxy", key="bbox_2d", multilabel=True)
TEXT = ReplyFormat("text", "xyxy")
BOX = ((21.0, 32.0, 43.0, 54.0),)
PER_MILLE = ImageExtent(1000, 1000)


def boxes_of(
    reply: str, fmt: ReplyFormat = JSON, extent: ImageExtent = PER_MILLE, asked: str = "dog"
) -> tuple[tuple[float, ...], ...]:
    strict = read(reply, fmt)
    lenient = parse_leniently(reply, fmt, strict, extent, asked.split(","))
    return strict.boxes if lenient is None else lenient.reading.boxes


def labelled(reply: str) -> list[tuple[tuple[float, ...], str]]:
    strict = read(reply, SEVERAL)
    lenient = parse_leniently(reply, SEVERAL, strict, PER_MILLE, ("dog", "red cat"))
    reading = strict if lenient is None else lenient.reading
    return list(zip(reading.boxes, reading.labels, strict=True))


# --- what states a box ----------------------------------------------------------------------------


@pytest.mark.parametrize("language", languages.SIDES)
def test_sides_are_known_in_each_language(language: str) -> None:
    sides = [names.split("/") for names in languages.SIDES[language].split()]
    for place, names in enumerate(sides):
        for name in names:
            words = [each[0] for each in sides]
            words[place] = name
            left, top, right, bottom = words
            assert boxes_of(f"{left} 21, {top} 32, {right} 43, {bottom} 54") == BOX
            assert boxes_of(f"{bottom}: 54\n{right}: 43\n{top}: 32\n{left}: 21") == BOX
            assert boxes_of(f"{left} 21, {top} 32, {right} 43") == ()
            assert boxes_of(f"{left} 21 cm, {top} 32 cm, {right} 43 cm, {bottom} 54 cm") == ()


@pytest.mark.parametrize(
    "reply",
    [
        "Le chien va de x = 21 et x = 43, y = 32 et y = 54.",
        "Собака: x от 21 до 43, y от 32 до 54",
        "x entre 21 et 43, y entre 32 et 54",
        '<area alt="dog" shape="rect" coords="21, 32, 43, 54">',
        "<map name='rooms'><area shape=rect coords='21,32,43,54' alt='a hall'/></map>",
        "$box = { x1 => 21, y1 => 32, x2 => 43, y2 => 54 };",
        "(≈ 21, ≈32) - (≈43, ≈ 54)",
        "box: [≈21, ≈32, ≈43, ≈54]",
        "|  | dog |\n|---|---|\n| ymax | 54 |\n| xmax | 43 |\n| ymin | 32 |\n| xmin | 21 |",
        "<TABLE>\n<tr>\n<th>xmin</th><th>ymin</th>\n<th>xmax</th><th>ymax</th></tr>\n"
        "<tr><td>21</td><td>32</td><td>43</td><td>54</td>\n</tr></TABLE>",
        "Der Hund beginnt links oben bei (21, 32) und reicht bis rechts unten (43, 54).",
    ],
)
def test_a_form_with_names_states_its_box(reply: str) -> None:
    assert boxes_of(reply) == BOX


@pytest.mark.parametrize(
    "reply",
    [
        "<table><tr><td>21</td><td>32</td><td>43</td><td>54</td></tr></table>",
        "<table><tr><th>w</th><th>h</th></tr><tr><td>43</td><td>54</td></tr></table>",
        "|  | dog |\n|---|---|\n| xmin | 21 |\n| ymin | 32 |\n| legs | 4 |",
        "|  | dog |\n|---|---|\n| x | 21 |\n| y | 32 |\n| width | 43 |\n| height | 54 |",
    ],
)
def test_a_form_without_four_sides_states_none(reply: str) -> None:
    assert boxes_of(reply) == ()


@pytest.mark.parametrize("assign", [":", " =", "_out ="])
def test_lists_side_by_side_are_labels_and_boxes(assign: str) -> None:
    lists = f'label{assign} ["dog", "red cat"]\nbox{assign} [[1, 2, 3, 4], [5, 6, 7, 8]]'
    first, second = lists.split("\n")
    wanted = [((1.0, 2.0, 3.0, 4.0), "dog"), ((5.0, 6.0, 7.0, 8.0), "red cat")]
    assert labelled(lists) == wanted
    assert labelled(f"{second}\n{first}") == wanted
    assert labelled(lists.replace("]\n", ', "dog"]\n')) == []
    assert labelled(lists.replace("box", "padding")) == []


def test_the_only_other_text_of_a_row_is_its_label() -> None:
    table = "| Ding | xmin | ymin | xmax | ymax |\n|-|-|-|-|-|\n| Hund | 21 | 32 | 43 | 54 |"
    assert labelled(table) == [(BOX[0], "Hund")]
    assert labelled(table.replace("Hund", "7")) == []


# --- what states none -----------------------------------------------------------------------------

OBJECT = '{"bbox_2d": [21, 32, 43, 54], "label": "dog"}'


@pytest.mark.parametrize(
    "reply",
    [
        '<points coords="21 32 43 54">dog</points>',
        '<point x1="21" y1="32" x2="43" y2="54" alt="dog">dog</point>',
        '{"bbox_2d": [21, 32, 43, 54], "label": "dog", "status": "not visible"}',
        f"{OBJECT} - scratch that, it is a fox.",
        f"{OBJECT}\nPlease disregard the above.",
        f"Sample reply, e.g. an example output: {OBJECT}",
        f"I would respond something like {OBJECT}",
        "top-down margins (left, top, right, bottom) = (21, 32, 43, 54)",
        '{"name": "zoom_in", "parameters": {"bbox_2d": [21, 32, 43, 54]}}!',
    ],
)
def test_what_is_no_answer_has_no_box(reply: str) -> None:
    assert boxes_of(reply) == ()


@pytest.mark.parametrize(
    "reply",
    [
        f"I ignored the shadow. {OBJECT}",
        f"Ignore the first attempt. {OBJECT}",
        '{"bbox_2d": [21, 32, 43, 54], "label": "dog", "status": "visible"}.',
        '{"name": "draw_box", "parameters": {"bbox_2d": [21, 32, 43, 54]}}.',
        "The box without margins is (left, top, right, bottom) = (21, 32, 43, 54)",
        f"Example output: [[1, 2, 3, 4]]. Answer: {OBJECT}",
    ],
)
def test_what_only_sounds_like_it_has_its_box(reply: str) -> None:
    assert boxes_of(reply) == BOX


def test_a_scale_beside_a_box_is_its_unit() -> None:
    unit = ImageExtent(1, 1)
    reply = '{"bbox_2d": [0.1, 0.2, 0.3, 0.4], "scale": %d}.'
    assert boxes_of(reply % 1, extent=unit) == ((0.1, 0.2, 0.3, 0.4),)
    assert boxes_of(reply % 1000, extent=unit) == ()
    assert boxes_of('{"bbox_2d": [21, 32, 43, 54], "scale": 1000}.') == BOX


def test_per_mille_is_the_unit_of_thousandths_alone() -> None:
    reply = "box: 21‰, 32‰, 43‰, 54‰"
    assert boxes_of(reply) == BOX
    assert boxes_of(reply, extent=ImageExtent(640, 480)) == ()
