"""Pairs of scenes: one difference, the same everywhere, captions that tell the two apart."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.pairs import (
    MOST_THINGS,
    place_word,
    scene_pair,
)
from training.scenes import SPLITS, Scene, Thing
from vlmeval_findit.core.stored_png import png

PAIRS = {seed: scene_pair(seed) for seed in range(200)}
SEEDS = st.sampled_from(list(SPLITS.values())).flatmap(
    lambda split: st.integers(split.start, split.stop - 1)
)


def attributes(thing: Thing, scene: Scene) -> dict[str, str]:
    """What can be said of an object, by the attribute's name."""
    where = place_word(thing.centre, (scene.width, scene.height))
    return {**thing.look._asdict(), "size": thing.size, "place": where}


@pytest.mark.parametrize(
    ("seed", "expected"),
    [(0, "3ab1629fe0319a23"), (3, "e12955386d64bf81"), (5, "158e747cb9acc8f8")],
)
def test_a_seed_is_the_same_pair_everywhere(seed: int, expected: str) -> None:
    pair = PAIRS[seed]
    pixels = png(pair.left.pixels) + png(pair.right.pixels)
    assert hashlib.sha256(pixels).hexdigest()[:16] == expected


@given(SEEDS)
def test_one_attribute_of_one_object_differs(seed: int) -> None:
    pair = scene_pair(seed)
    (left, *others), (right, *same) = pair.left.things, pair.right.things
    assert others == same
    actual, reference_ = attributes(left, pair.left), attributes(right, pair.right)
    assert [name for name in actual if actual[name] != reference_[name]] == [pair.attribute]


@given(SEEDS)
def test_pixels_differ_where_the_object_lies_and_nowhere_else(seed: int) -> None:
    pair = scene_pair(seed)
    differ = (pair.left.pixels != pair.right.pixels).any(axis=2)
    assert differ.any()
    for shown in (pair.left, pair.right):
        x1, y1, x2, y2 = (int(v) for v in shown.things[0].box)
        # A smooth edge, and the thin tip of a triangle, reach further than the box.
        differ[max(y1 - 3, 0) : y2 + 3, max(x1 - 3, 0) : x2 + 3] = False
    assert not differ.any()


@given(SEEDS)
def test_a_caption_names_every_object_the_difference_first(seed: int) -> None:
    pair = scene_pair(seed)
    for shown, reply in ((pair.left, pair.left_caption), (pair.right, pair.right_caption)):
        phrases = reply.split("; ")
        assert 2 <= len(phrases) == len(shown.things) <= MOST_THINGS
        for phrase, thing in zip(phrases, shown.things, strict=True):
            assert all(word in phrase for word in attributes(thing, shown).values())
    assert pair.left_caption.split("; ")[0] != pair.right_caption.split("; ")[0]
    assert pair.left_caption.split("; ")[1:] == pair.right_caption.split("; ")[1:]


@given(SEEDS)
def test_nobody_can_doubt_a_place(seed: int) -> None:
    pair = scene_pair(seed)
    for shown in (pair.left, pair.right):
        frame = shown.width, shown.height
        for thing in shown.things:
            x, y = thing.centre
            words = {place_word((x + dx, y + dy), frame) for dx in (-3, 3) for dy in (-3, 3)}
            assert len(words) == 1
