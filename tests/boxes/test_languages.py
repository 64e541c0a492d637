"""Boxes, units and orders are known by their words in every language of the table."""

from __future__ import annotations

import pytest
from few_fast import every_nth_fast

from vlmeval_findit.boxes import ImageExtent, ReplyFormat, parse_leniently, read
from vlmeval_findit.boxes.lenient import languages

FORM = ReplyFormat("json", "xyxy", "bbox_2d")
BOX = (12, 14, 38, 42)
NUMBERS = "[12, 14, 38, 42]"
PIXELS = ImageExtent(640, 480)
THOUSANDTHS = ImageExtent(1000, 1000)
PERCENT = ImageExtent(100, 100)
TABLE = languages.LANGUAGES


def words_of(what: str) -> list[tuple[str, str]]:
    """Return each language's words for a thing."""
    found = []
    for language, words in TABLE.items():
        for word in getattr(words, what).split():
            found.append((language, word.replace("_", " ")))
    return found


def is_read(reply: str, extent: ImageExtent = PIXELS) -> bool:
    strict = read(reply, FORM)
    lenient = parse_leniently(reply, FORM, strict, extent, ("dog",))
    boxes = () if lenient is None else lenient.reading.boxes
    assert boxes in ((), (BOX,))
    return bool(boxes)


def test_the_table_has_the_most_spoken_languages() -> None:
    """English is in the rules; the last three are those in which boxes were once not known."""
    wanted = (
        "Chinese Hindi Spanish French Arabic Bengali Portuguese Russian Urdu German Japanese"
        " Marathi Telugu Turkish Tamil Vietnamese Tagalog Korean Persian Hausa Swahili Javanese"
        " Italian Punjabi Gujarati Thai Kannada Amharic Polish Hungarian Hebrew Finnish"
    )
    assert {*wanted.split(), "Indonesian, Malay"} <= TABLE.keys()
    lacking = [name for name, words in TABLE.items() if not all(words)]
    assert lacking == ["Hausa"]


@pytest.mark.parametrize(
    ("language", "word"), every_nth_fast(words_of("box") + words_of("coordinates"), 3)
)
def test_a_word_for_a_box_says_one(language: str, word: str) -> None:
    for reply in (
        f'{{"{word}": {NUMBERS}}}',
        f'[{{"x": "dog", "{word.replace(" ", "_")}": {NUMBERS}}}]',
        f"{word}: 12, 14, 38, 42",
        f"dog, {word} = (12, 14, 38, 42)",
    ):
        assert is_read(reply), reply
    assert not is_read(f"dogs {word[:-1]}qqq: 12, 14, 38, 42")


@pytest.mark.parametrize(("language", "word"), every_nth_fast(words_of("unit"), 3))
def test_nothing_is_read_past_a_unit_under_its_word(language: str, word: str) -> None:
    key = word.replace(" ", "_")
    for reply in (
        f'{{"{key}": "UNIT", "bbox": {NUMBERS}}}',
        f'{{"box_{key}": "UNIT", "boxes": [{NUMBERS}]}}',
        f"{word}: UNIT\nDog box: {NUMBERS}",
    ):
        assert not is_read(reply.replace("UNIT", "furlongs"))
        assert not is_read(reply.replace("UNIT", "percent"))
        assert is_read(reply.replace("UNIT", "pixel"))
        assert is_read(reply.replace("UNIT", "percent"), PERCENT)


@pytest.mark.parametrize("what", ["pixels", "percent"])
def test_a_unit_is_known_by_its_word(what: str) -> None:
    other, of_run = {"pixels": (THOUSANDTHS, PIXELS), "percent": (PIXELS, PERCENT)}[what]
    for language, word in words_of(what):
        for reply in (
            f'{{"unit": "{word}", "bbox": {NUMBERS}}}',
            f'{{"xyz": "{word}", "bbox": {NUMBERS}}}',
            f'{{"bbox": {NUMBERS}}} // {word}',
            f"Bounding box ({word}): (12, 14, 38, 42)",
            f"Coordinates ({word}): (12, 14, 38, 42)",
        ):
            assert is_read(reply, of_run), (language, reply)
            assert not is_read(reply, other), (language, reply)


@pytest.mark.parametrize(("language", "word"), words_of("order"))
def test_four_names_under_a_word_for_orders_are_one(language: str, word: str) -> None:
    key = word.replace(" ", "_")
    assert not is_read(f'{{"{key}": "aa, bb, cc, dd", "bbox": {NUMBERS}}}')
    assert is_read(f'{{"{key}": "x1, y1, x2, y2", "bbox": {NUMBERS}}}')
    assert not is_read(f'{{"{key}": "y1, x1, y2, x2", "bbox": {NUMBERS}}}')


@pytest.mark.parametrize(
    ("unit", "extent"),
    [("pikseliä", PIXELS), ("piksleid", PIXELS), ("prosenttia", PERCENT), ("protsenti", PERCENT)],
)
def test_pixels_and_percent_are_known_with_other_endings(unit: str, extent: ImageExtent) -> None:
    """In most languages they are the same word, so any key and language will do."""
    reply = f'{{"abcdef": "{unit}", "bbox": {NUMBERS}}}'
    assert is_read(reply, extent)
    assert not is_read(reply, THOUSANDTHS)


@pytest.mark.parametrize("key", ["nimi", "väri", "kulay", "abcdef"])
@pytest.mark.parametrize("value", ["kissa", "punainen", "cm", "vaaksa"])
def test_a_key_in_no_language_of_the_table_says_nothing(key: str, value: str) -> None:
    """A label, a colour or a unit stands there: nothing in the reply says which."""
    assert is_read(f'{{"{key}": "{value}", "bbox": {NUMBERS}}}')


def test_a_pixel_in_a_label_is_no_unit() -> None:
    reply = f'"Google Pixel", "bbox": {NUMBERS}}}, {{"label": "Pixel phone", "bbox": {NUMBERS}}}]'
    assert is_read(reply, THOUSANDTHS)
