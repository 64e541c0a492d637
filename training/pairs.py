"""Pairs of scenes that differ in one attribute of one object, with a caption of each.

Background, tints and all other objects are the same, pixel by pixel. Objects do not overlap and
none lies where two words for its place would do, so no caption can be doubted. Needs no torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import NamedTuple

from training.samples import ReplySpan, Sample, Turn
from training.scenes import Scene, Thing
from vlmeval_findit.benchmarks.selfretrieval import ImagePair, PairSide, parse
from vlmeval_findit.benchmarks.selfretrieval import benchmark as prompts
from vlmeval_findit.data import (
    COLOURS,
    HALF_SIZES,
    SHAPES,
    TEXTURES,
    Look,
    ObjectPlacement,
    Placed,
    Rng,
    draw_name,
    paint_all,
    pair_stream,
)
from vlmeval_findit.data.rendered import scene_drawing as drawing

# Objects of a scene, two at least: more would not fit into the 64 tokens of a dual encoder.
MOST_THINGS = 4

# Where an object's centre lies, by thirds of the height and of the width
PLACES = (
    ("at the upper left", "at the top", "at the upper right"),
    ("at the left", "in the middle", "at the right"),
    ("at the lower left", "at the bottom", "at the lower right"),
)

# Attributes of an object and their values, in the order of a caption
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "size": tuple(HALF_SIZES),
    "texture": tuple(TEXTURES),
    "colour": tuple(COLOURS),
    "shape": tuple(SHAPES),
    "place": tuple(chain.from_iterable(PLACES)),
}

NO_SHAPE = "shape"  # The noun of an object whose shape a caption leaves out

_MARGIN = 5.0  # Pixels between an object's centre and the next third
_GAP = 3.0  # Pixels between two objects
_TRIES = 50  # Attempts to place objects before starting again


@dataclass(frozen=True, slots=True)
class ScenePair:
    """Two scenes, what they differ in, and a caption of each that is not true of the other.

    The first of ``things`` is the object that differs, in both scenes. ``attribute`` is a key of
    :data:`CHANGES`.  The order of the two is random. ``first`` is the place of that object in the
    left and in the right scene, ``others`` are the places of all others.
    """

    left: Scene
    right: Scene
    attribute: str
    left_caption: str
    right_caption: str
    first: tuple[Placed, Placed]
    others: tuple[Placed, ...]


class _Object(NamedTuple):
    """An object to paint; ``tint`` is the seed of the deviation of its colour."""

    look: Look
    size: str
    place: ObjectPlacement
    tint: int


def scene_pair(seed: int, size: tuple[int, int] | None = None) -> ScenePair:
    """Return the pair of a seed, which is any of :data:`~training.scenes.SPLITS`.

    Both images have ``size``, (width, height) in pixels; None: the size follows from the seed.

    >>> pair = scene_pair(2)
    >>> pair.attribute
    'shape'
    >>> pair.left_caption
    'a large striped red triangle at the lower left; a large striped green triangle at the right'
    >>> pair.right_caption
    'a large striped red ring at the lower left; a large striped green triangle at the right'
    """
    rng, frame = pair_stream(seed)
    attribute = draw_name(rng, CHANGES)
    frame = frame if size is None else size
    background = drawing.background(rng, *frame)
    objects, changed = _objects_and_changed(rng, frame, CHANGES[attribute])
    scenes = [_painted(background, objects), _painted(background, [changed, *objects[1:]])]
    first = [_placed(objects[0]), _placed(changed)]
    if rng.randint(2):
        scenes.reverse()
        first.reverse()
    others = tuple(map(_placed, objects[1:]))
    left, right = scenes
    both = (first[0], first[1])
    return ScenePair(left, right, attribute, caption(left), caption(right), both, others)


def _placed(thing: _Object) -> Placed:
    return (*thing.place, thing.tint)


def attribute_of(seed: int) -> str:
    """Return the attribute in which the pair of a seed differs, without painting it."""
    return draw_name(pair_stream(seed)[0], CHANGES)


# --- captions -------------------------------------------------------------------------------------


def caption(scene: Scene) -> str:
    """Describe every object of a scene, in their order."""
    return "; ".join(described(thing, scene) for thing in scene.things)


def described(thing: Thing, scene: Scene) -> str:
    """Describe an object: ``a small striped red circle at the upper left``."""
    shape, colour, texture = thing.look
    where = place_word(thing.centre, (scene.width, scene.height))
    return f"a {thing.size} {texture} {colour} {shape} {where}"


def place_word(centre: tuple[float, float], frame: tuple[int, int]) -> str:
    """Return the words of :data:`PLACES` for a point (x, y) in a frame (width, height)."""
    x, y = centre
    width, height = frame
    column = min(int(3 * x / width), 2)
    row = min(int(3 * y / height), 2)
    return PLACES[row][column]


def values_of(thing: Thing, scene: Scene) -> dict[str, str]:
    """Return every attribute of an object."""
    where = place_word(thing.centre, (scene.width, scene.height))
    return {**thing.look._asdict(), "size": thing.size, "place": where}


def phrase(values: Mapping[str, str], names: Collection[str]) -> str:
    """Describe an object by some of its attributes."""
    known = {"shape": NO_SHAPE, **{name: values[name] for name in names}}
    words = [known[name] for name in ATTRIBUTES if name in known]
    return f"{'an' if words[0] == 'orange' else 'a'} {' '.join(words)}"


def tells_apart(
    left: Sequence[Mapping[str, str]], right: Sequence[Mapping[str, str]], names: Collection[str]
) -> bool:
    """Return whether no object shares these attributes with the other scene's first object."""

    def shared(first: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> bool:
        return any(all(other[name] == first[name] for name in names) for other in others)

    return not shared(left[0], right) and not shared(right[0], left)


# --- what may differ ------------------------------------------------------------------------------

# Returns an object with another value of an attribute, in a frame of (width, height) pixels.
Change = Callable[[Rng, tuple[int, int], _Object], _Object]


def _another_look(attribute: str, values: Iterable[str]) -> Change:
    def change(rng: Rng, frame: tuple[int, int], old: _Object) -> _Object:
        value = _other(rng, values, getattr(old.look, attribute))
        return old._replace(look=old.look._replace(**{attribute: value}))

    return change


def _another_size(rng: Rng, frame: tuple[int, int], old: _Object) -> _Object:
    size = _other(rng, HALF_SIZES, old.size)
    return old._replace(size=size, place=old.place._replace(half=rng.uniform(*HALF_SIZES[size])))


def _another_place(rng: Rng, frame: tuple[int, int], old: _Object) -> _Object:
    while True:
        place = _anywhere(rng, frame, old.place.half)
        if place_word(place[:2], frame) != place_word(old.place[:2], frame):
            return old._replace(place=place)


# Functions that change an object, by the attribute that they change
CHANGES: dict[str, Change] = {
    "colour": _another_look("colour", COLOURS),
    "shape": _another_look("shape", SHAPES),
    "texture": _another_look("texture", TEXTURES),
    "size": _another_size,
    "place": _another_place,
}


def _other(rng: Rng, names: Iterable[str], old: str) -> str:
    return draw_name(rng, [name for name in names if name != old])


# --- placing and painting -------------------------------------------------------------------------


def _objects_and_changed(
    rng: Rng, frame: tuple[int, int], change: Change
) -> tuple[list[_Object], _Object]:
    """Return objects, and the first as it is in the other scene, all with room around them."""
    count = rng.randint(2, MOST_THINGS + 1)
    while True:
        objects: list[_Object] = []
        for _ in range(_TRIES):
            new = _any_object(rng, frame)
            if _fits(new, objects, frame):
                objects.append(new)
            if len(objects) == count:
                changed = change(rng, frame, objects[0])
                if _fits(changed, objects[1:], frame):
                    return objects, changed
                break


def _any_object(rng: Rng, frame: tuple[int, int]) -> _Object:
    look = Look(draw_name(rng, SHAPES), draw_name(rng, COLOURS), draw_name(rng, TEXTURES))
    size = draw_name(rng, HALF_SIZES)
    place = _anywhere(rng, frame, rng.uniform(*HALF_SIZES[size]))
    return _Object(look, size, place, rng.randint(2**31 - 1))


def _anywhere(rng: Rng, frame: tuple[int, int], half: float) -> ObjectPlacement:
    """Return a random place where an object of ``half`` its size lies in the frame."""
    x, y = (rng.uniform(half + 1, side - half - 1) for side in frame)
    return ObjectPlacement(x, y, half)


def _fits(new: _Object, others: Sequence[_Object], frame: tuple[int, int]) -> bool:
    """Return whether an object lies in the frame, clearly in one third of each side, and alone."""
    *centre, half = new.place
    for at, side in zip(centre, frame, strict=True):
        in_one_third = all(abs(at - side * third / 3) >= _MARGIN for third in (1, 2))
        if not (half + 1 <= at <= side - half - 1 and in_one_third):
            return False
    x, y = centre
    places = [other.place for other in others]
    return all(max(abs(x - a.x), abs(y - a.y)) >= half + a.half + _GAP for a in places)


def _painted(background: drawing.Floats, objects: Sequence[_Object]) -> Scene:
    canvas = background.copy()
    tints = [drawing.tint_colour(Rng(thing.tint), thing.look.colour) for thing in objects]
    boxes = paint_all(canvas, [(thing.look, thing.place) for thing in objects], tints, 0.0)
    # All have a box: they lie in the frame and hide nothing of each other.
    things = [
        Thing(thing.look, thing.size, box)
        for thing, box in zip(objects, boxes, strict=True)
        if box is not None
    ]
    return Scene(drawing.as_pixels(canvas), tuple(things))


# --- samples --------------------------------------------------------------------------------------

ALWAYS = ("colour", "shape")  # Attributes that every caption names

# The message of every pair; its images are named as in other samples.
_MESSAGE = prompts.message(ImagePair(0, "-", ("0", "1")), parse("SelfRetrieval_Scenes"))


def pair_sample(seed: int, size: tuple[int, int]) -> Sample:
    """Return a sample of SelfRetrieval: the two images of a seed's pair, each of ``size``.

    A caption names colour and shape of the object that differs and the attribute in which it
    differs; more only if another object would make it true there.
    """
    pair = scene_pair(seed, size)
    replies = dict(zip((side.key for side in PairSide), shortest_captions(pair), strict=True))
    # The first object differs.
    objects = tuple((i, scene.things[0].box) for i, scene in enumerate((pair.left, pair.right)))
    reply = json.dumps(replies)
    spans: list[ReplySpan] = []
    end = 0
    for number, caption in enumerate(replies.values()):
        start = reply.index(caption, end)
        end = start + len(caption)
        spans.append(ReplySpan(start, end, number))
    turn = Turn(_MESSAGE[-1].value, reply, objects, 0, reply_spans=tuple(spans))
    return Sample((pair.left, pair.right), _MESSAGE[:-1], (turn,))


def shortest_captions(pair: ScenePair) -> tuple[str, str]:
    """Return the shortest captions of the left and of the right scene of a pair.

    >>> shortest_captions(scene_pair(2))
    ('a red triangle', 'a red ring')
    """
    left = [values_of(thing, pair.left) for thing in pair.left.things]
    right = [values_of(thing, pair.right) for thing in pair.right.things]
    names = _fewest_names(left, right, {*ALWAYS, pair.attribute})
    return phrase(left[0], names), phrase(right[0], names)


def _fewest_names(
    left: Sequence[Mapping[str, str]], right: Sequence[Mapping[str, str]], needed: set[str]
) -> set[str]:
    """Return the fewest attributes, some of them needed, that tell the first objects apart."""
    more = [name for name in ATTRIBUTES if name not in needed]
    for count in range(len(more)):
        for extra in combinations(more, count):
            names = needed.union(extra)
            if tells_apart(left, right, names):
                return names
    return set(ATTRIBUTES)
