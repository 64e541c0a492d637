"""Lenient reading of the corpus of reply forms, as they are and with one thing exchanged."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from benchmarks.reply_corpus import FIRST, SECOND, Entry, compare, entries_of, reading_of
from vlmeval_findit.boxes import Corners, FormatFailure, ParsedReply, read
from vlmeval_findit.protocol import Reply

OWN = FIRST.with_name("own.jsonl")  # Written with the rules, so their agreement is no figure
ENTRIES = {entry.name: entry for half in (FIRST, SECOND) for entry in entries_of(half)}
# The same without thoughts, in which nothing that is exchanged would matter
ANSWERS = {
    name: replace(entry, reply=Reply(0, entry.reply).answer) for name, entry in ENTRIES.items()
}

# What the protocol decides otherwise than the author of the corpus, who was in doubt
DECIDED = {
    "ocr-invoice": "a label asked for as a key is a label",
    "fr-timestamp-text": "the strict reading has these boxes",
    "second-zoom": "a call's box is a box; what the tool does is not asked",
    "second-poly": "vertices are no word for a box",
    "second-lab-unknown": "a text that is a label asked for is the label",
    "second-lab-num": "a label with a number is none of those asked for",
}


@pytest.mark.parametrize("name", [name for name in ENTRIES if name not in DECIDED])
def test_a_reply_of_the_corpus_is_read_as_it_states(name: str) -> None:
    entry = ENTRIES[name]
    result = compare(entry, reading_of(entry))
    assert result.agrees, (entry.reply, result.missing, result.surplus)


@pytest.mark.parametrize("entry", entries_of(OWN), ids=lambda entry: entry.name)
def test_a_form_of_our_own_is_read_as_it_states(entry: Entry) -> None:
    result = compare(entry, reading_of(entry))
    assert result.agrees, (entry.reply, result.missing, result.surplus)


@pytest.mark.parametrize("name", DECIDED)
def test_doubts_were_decided_in_the_protocol(name: str) -> None:
    entry = ENTRIES[name]
    assert entry.in_doubt
    assert not compare(entry, reading_of(entry)).agrees


def test_the_corpus_has_two_halves_of_other_forms() -> None:
    first, second = ([entry.reply for entry in entries_of(half)] for half in (FIRST, SECOND))
    assert len(first) + len(second) >= 400
    assert len(ENTRIES) == len(first) + len(second)
    assert not {*first} & {*second}


# --- one thing exchanged --------------------------------------------------------------------------


def is_lenient(entry: Entry) -> bool:
    """Return whether only lenient reading has the boxes of a reply."""
    return bool(entry.states) and not read(entry.reply, entry.form).boxes


NAMES_OR_TOKENS = re.compile(
    r"[xy][ _]?(?:min|max|[0-2₁₂]|tl)\b|topX|<[|xy]?_?loc|<\|LOC|patch_index|<points?\b|<\d+><|<x_"
    r"|\{\\min|left|upper|supérieur|center at"
    r"|tabular|\| width \||oben|superior|상자|左上|\"?x\"?\s?[:=]|\{\"x\"",
    re.IGNORECASE,
)
LENIENT = [name for name, entry in ANSWERS.items() if is_lenient(entry)]
# Nothing names their numbers or fixes the unit
IN_ORDER = [name for name in LENIENT if not NAMES_OR_TOKENS.search(ANSWERS[name].reply)]
TOKENS = re.compile(r"<loc|<\|LOC|patch_index|<points?\b|<\d+><|<x_", re.IGNORECASE)


def read_again(entry: Entry, reply: str) -> ParsedReply:
    return reading_of(replace(entry, reply=reply))


@pytest.mark.parametrize("words", ["All boxes are (h, w, y, x).", "Order: hwyx"])
@pytest.mark.parametrize("name", IN_ORDER)
def test_another_order_beside_the_numbers_leaves_none(name: str, words: str) -> None:
    entry = ANSWERS[name]
    assert not read_again(entry, f"{words}\n{entry.reply}").boxes


@pytest.mark.parametrize("words", ["All numbers are given in inches.", "Measured on a 77x77 grid."])
@pytest.mark.parametrize(
    "name", [name for name in LENIENT if not TOKENS.search(ANSWERS[name].reply)]
)
def test_another_unit_beside_the_numbers_leaves_none(name: str, words: str) -> None:
    entry = ANSWERS[name]
    assert not read_again(entry, f"{words}\n{entry.reply}").boxes


BOX_KEY = re.compile(
    r"""(["'])(?:bbx_2d|bbox_2d|bboxes_2d|bbox|bboxes|box_2d|box|boxes|bounding_box)\1\s?:"""
)
KEYED = [
    name
    for name in IN_ORDER
    if BOX_KEY.search(ANSWERS[name].reply) and "<bbox>" not in ANSWERS[name].reply
]


@pytest.mark.parametrize("key", ["padding", "scores", "rgba", "image_size"])
@pytest.mark.parametrize("name", KEYED)
def test_under_a_key_of_another_thing_there_is_none(name: str, key: str) -> None:
    entry = ANSWERS[name]
    reply = BOX_KEY.sub(lambda match: f"{match[1]}{key}{match[1]}:", entry.reply)
    if not BOX_KEY.search(reply) and "<|box_start|>" not in reply and "located" not in reply:
        assert not read_again(entry, reply).boxes


def exchanged(text: str, first: str, second: str) -> str:
    words = {first: second, second: first}
    pattern = rf"(?<!\w)(?:{re.escape(first)}|{re.escape(second)})(?!\w)"
    return re.sub(pattern, lambda match: words[match[0]], text)


TWO_LABELS = [
    name
    for name, entry in ANSWERS.items()
    if entry.form.multilabel
    and len(entry.asked) == 2
    and entry.states
    and name not in DECIDED
    and "<class_" not in entry.reply  # A label within a token
]


@pytest.mark.parametrize("name", TWO_LABELS)
def test_exchanged_labels_exchange_the_labels_of_boxes(name: str) -> None:
    entry = ANSWERS[name]
    first, second = entry.asked
    before = reading_of(entry)
    after = read_again(entry, exchanged(entry.reply, first, second))
    assert after.boxes == before.boxes
    labels = [exchanged(label, first, second) for label in before.labels]
    assert [*after.labels] == labels


def other_number(number: str) -> str:
    """Return a number but for its last digit: 7 for 6, 6 for 7."""
    return number[:-1] + str(int(number[-1]) ^ 1)


def corners_again(box: Corners, written: dict[float, float]) -> Corners:
    x1, y1, x2, y2 = (written.get(number, number) for number in box)
    return (x1, y1, x2, y2)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, entry in ANSWERS.items()
        if is_lenient(entry)
        and entry.form.representation in ("xyxy", "point", "unconstrained")
        and not TOKENS.search(entry.reply)
    ],
)
def test_another_number_changes_that_number_alone(name: str) -> None:
    entry = ANSWERS[name]
    before = reading_of(entry)
    numbers = {number for box in before.boxes for number in box}
    for number in sorted(numbers):
        places = re.findall(rf"(?<![\d.,٫]){number:g}(?![\d.,]?\d|\w)", entry.reply)
        if number < 10 or number != int(number) or len(places) != 1:
            continue
        changed = other_number(f"{number:g}")
        reply = re.sub(rf"(?<![\d.,٫]){number:g}(?![\d.,]?\d|\w)", changed, entry.reply)
        after = read_again(entry, reply)
        wanted = tuple(corners_again(box, {number: float(changed)}) for box in before.boxes)
        assert after.boxes == wanted, reply
        assert after.labels == before.labels


@pytest.mark.parametrize("name", [name for name in LENIENT if name not in DECIDED])
def test_a_cut_reply_has_no_other_box(name: str) -> None:
    entry = ANSWERS[name]
    whole = {*reading_of(entry).boxes}
    for cut in range(0, len(entry.reply), 7):
        cut_entry = replace(entry, reply=entry.reply[:cut])
        strict = read(cut_entry.reply, entry.form)
        if strict.reason is FormatFailure.TRUNCATED:
            assert {*reading_of(cut_entry).boxes} <= whole, cut_entry.reply
