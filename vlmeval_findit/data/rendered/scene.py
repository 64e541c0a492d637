"""Scenes, shots and clips from a seed: objects on a background, and the boxes of what is seen.

Boxes are those of the pixels that can be seen, after everything that lies in front was painted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...boxes import Corners
from . import scene_drawing as drawing
from .scene_drawing import COLOURS, SHAPES, TEXTURES, Floats, Look, ObjectPlacement, Rng

# Scenes are of these sizes, (width, height) in pixels; the seed decides which
SCENE_SIZES = ((192, 144), (144, 192), (168, 168))

# Reference shots are of this size, (width, height) in pixels
SHOT_SIZE = (96, 96)

# Half the size of an object in pixels, from and to, by what an expression calls it
HALF_SIZES = {"small": (15.0, 20.0), "large": (26.0, 34.0)}

# Of the smaller of two objects, when they are placed
_MOST_OVERLAP = 0.3
# Share of an object's pixels that must be visible, or all objects are placed again
_LEAST_SEEN = 0.55


# height x width: the place of the object that is seen there, -1 where none is
Owners = npt.NDArray[np.int64]


class Stream(Enum):
    """Purpose of random numbers of a seed: each purpose has a separate stream."""

    SCENE = 0
    SHOT = 1
    CLIP = 2
    QUESTION = 3
    BATCH = 4


def rng_of(stream: Stream, *seeds: int) -> Rng:
    """Return the random numbers of seeds: a stream that numpy has promised never to change."""
    return np.random.RandomState([stream.value, *seeds])


def draw_look(rng: Rng) -> Look:
    """Draw a look."""
    return Look(draw_name(rng, SHAPES), draw_name(rng, COLOURS), draw_name(rng, TEXTURES))


def draw_name(rng: Rng, table: Iterable[str]) -> str:
    """Draw a name of a table, each as likely."""
    names = list(table)
    return names[rng.randint(len(names))]


def shot(seed: int, look: Look) -> tuple[Floats, Corners]:
    """Paint a reference shot of an object: of another size and on another background than a scene.

    Returns:
        The canvas, and the box of the object.
    """
    rng = rng_of(Stream.SHOT, seed)
    width, height = SHOT_SIZE
    canvas = drawing.background(rng, width, height)
    half = rng.uniform(24.0, 40.0)
    room = 48.0 - half
    place = ObjectPlacement(48.0 + rng.uniform(-room, room), 48.0 + rng.uniform(-room, room), half)
    (box,) = paint_all(canvas, [(look, place)], [drawing.tint_colour(rng, look.colour)], 0.0)
    assert box is not None
    return canvas, box


# --- placing and painting -------------------------------------------------------------------------


class PlacedObject(NamedTuple):
    """How an object looks, what its size is called, and where it lies."""

    look: Look
    size: str
    place: ObjectPlacement


class PaintedScene(NamedTuple):
    """A canvas, and the objects on it in the order of their painting: the last is in front.

    Boxes are those of what is seen of each, (x1, y1, x2, y2), whole numbers, the far sides
    exclusive; None where too little is seen.
    """

    canvas: Floats
    objects: list[PlacedObject]
    boxes: list[Corners | None]


def compose_scene(
    seed: int, count: tuple[int, int] = (3, 5), size: tuple[int, int] | None = None
) -> PaintedScene:
    """Paint the scene of a seed.

    Args:
        seed: 0 to 2^32 - 1.
        count: fewest and most objects.
        size: (width, height) in pixels; one of :data:`SIZES` by the seed where it is None.
    """
    rng = rng_of(Stream.SCENE, seed)
    width, height = SCENE_SIZES[rng.randint(len(SCENE_SIZES))] if size is None else size
    while True:
        canvas = drawing.background(rng, width, height)
        objects = _place_objects(rng, width, height, rng.randint(count[0], count[1] + 1))
        if objects is None:
            continue
        colours = [drawing.tint_colour(rng, each.look.colour) for each in objects]
        boxes = paint_all(canvas, looks_and_places(objects), colours, _LEAST_SEEN)
        # Where an object is hidden too much, all are placed again.
        if None not in boxes:
            return PaintedScene(canvas, objects, boxes)


def _place_objects(rng: Rng, width: int, height: int, count: int) -> list[PlacedObject] | None:
    """Place so many objects that overlap little; None if there is no room."""
    done: list[PlacedObject] = []
    for _ in range(count * 12):
        if len(done) == count:
            return done
        new = draw_look(rng)
        if done and rng.randint(2):
            # Something of the same shape, so that a shape alone identifies nothing.
            new = new._replace(shape=done[rng.randint(len(done))].look.shape)
        size = draw_name(rng, HALF_SIZES)
        half = rng.uniform(*HALF_SIZES[size])
        place = ObjectPlacement(
            rng.uniform(half + 1, width - half - 1), rng.uniform(half + 1, height - half - 1), half
        )
        if all(_overlap(place, other.place) <= _MOST_OVERLAP for other in done):
            done.append(PlacedObject(new, size, place))
    return done if len(done) == count else None


def _overlap(a: ObjectPlacement, b: ObjectPlacement) -> float:
    """Return the common part of two squares, as a share of the smaller."""
    across = min(a.x + a.half, b.x + b.half) - max(a.x - a.half, b.x - b.half)
    down = min(a.y + a.half, b.y + b.half) - max(a.y - a.half, b.y - b.half)
    smaller = 2.0 * min(a.half, b.half)
    return max(across, 0.0) * max(down, 0.0) / (smaller * smaller)


def looks_and_places(objects: list[PlacedObject]) -> list[tuple[Look, ObjectPlacement]]:
    """Return objects without their sizes' names."""
    return [(each.look, each.place) for each in objects]


def paint_all(
    canvas: Floats,
    objects: list[tuple[Look, ObjectPlacement]],
    colours: list[drawing.Colour],
    least_seen: float,
) -> list[Corners | None]:
    """Paint objects in order and give the box of what is seen of each.

    None stands for an object of which less than ``least_seen`` of its pixels is seen; an object
    that leaves the canvas loses the pixels outside it.
    """
    owner = paint_owners(canvas, objects, colours)
    return [
        _visible_box(owner == i, _pixel_count(looks, place) * least_seen)
        for i, (looks, place) in enumerate(objects)
    ]


def paint_owners(
    canvas: Floats, objects: list[tuple[Look, ObjectPlacement]], colours: list[drawing.Colour]
) -> Owners:
    """Paint objects in order, and return which is seen at every pixel."""
    height, width, _ = canvas.shape
    owner: Owners = np.full((height, width), -1)
    for i, ((looks, place), colour) in enumerate(zip(objects, colours, strict=True)):
        painted = drawing.paint(canvas, looks, place, colour)
        rows, columns = painted.mask.shape
        part = owner[painted.top : painted.top + rows, painted.left : painted.left + columns]
        part[painted.mask] = i
    return owner


def _pixel_count(looks: Look, place: ObjectPlacement) -> int:
    """Count the pixels of an object that nothing hides."""
    side = int(2 * place.half) + 6
    blank = np.zeros((side, side, 3))
    middle = place._replace(x=side / 2 + place.x % 1.0, y=side / 2 + place.y % 1.0)
    return int(drawing.paint(blank, looks, middle, (0, 0, 0)).mask.sum())


def _visible_box(mask: drawing.Masks, least: float) -> Corners | None:
    if mask.sum() < max(least, 1.0):
        return None
    rows = np.flatnonzero(mask.any(axis=1))
    columns = np.flatnonzero(mask.any(axis=0))
    return (float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))


# --- clips ----------------------------------------------------------------------------------------


_LEAST_SEEN_IN_CLIP = 0.3


def clip(
    seed: int, frames: int = 8, count: tuple[int, int] = (2, 4), size: tuple[int, int] | None = None
) -> Iterator[PaintedScene]:
    """Paint the frames of the clip of a seed.

    Objects move evenly; they may cross each other and leave the frame.  An object of which less
    than 0.3 is seen in a frame has no box there.
    """
    rng = rng_of(Stream.CLIP, seed)
    width, height = SCENE_SIZES[rng.randint(len(SCENE_SIZES))] if size is None else size
    while True:
        still = drawing.background(rng, width, height)
        objects = _place_objects(rng, width, height, rng.randint(count[0], count[1] + 1))
        if objects is not None:
            break
    colours = [drawing.tint_colour(rng, each.look.colour) for each in objects]
    steps = [(rng.uniform(-9.0, 9.0), rng.uniform(-9.0, 9.0)) for _ in objects]
    for frame in range(frames):
        canvas = still.copy()
        now = [
            (look, place._replace(x=place.x + dx * frame, y=place.y + dy * frame))
            for (look, place), (dx, dy) in zip(looks_and_places(objects), steps, strict=True)
        ]
        boxes = paint_all(canvas, now, colours, _LEAST_SEEN_IN_CLIP)
        yield PaintedScene(canvas, objects, boxes)
