"""Scenes with their objects, and the seeds of each split."""

from __future__ import annotations

from dataclasses import dataclass

from vlmeval_findit.boxes import Corners
from vlmeval_findit.data import (
    Look,
    Owners,
    PaintedScene,
    Pixels,
    as_pixels,
    compose_scene,
    looks_and_places,
    paint_owners,
)
from vlmeval_findit.data.rendered import scene as rendered

# Seeds by split; no seed is in two splits, so no model is asked about its training scenes.
SPLITS = {"test": range(0, 2**20), "validation": range(2**20, 2**21), "train": range(2**21, 2**32)}


@dataclass(frozen=True, slots=True)
class Thing:
    """An object of a scene: its look, the name of its size, and the box of its visible part.

    ``box`` is (x1, y1, x2, y2) in pixels of the scene, whole numbers, the far sides exclusive.
    """

    look: Look
    size: str
    box: Corners

    @property
    def centre(self) -> tuple[float, float]:
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2


@dataclass(frozen=True, slots=True)
class Scene:
    """Pixels and the objects on them, in the order of their painting (the last is in front)."""

    pixels: Pixels
    things: tuple[Thing, ...]

    @property
    def width(self) -> int:
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        return int(self.pixels.shape[0])


def scene(seed: int, count: tuple[int, int] = (3, 5), size: tuple[int, int] | None = None) -> Scene:
    """Return the scene of a seed; arguments as of :func:`compose_scene`."""
    return _scene(compose_scene(seed, count, size))


def shot(seed: int, look: Look) -> Scene:
    """Return a reference shot of an object."""
    canvas, box = rendered.shot(seed, look)
    return Scene(as_pixels(canvas), (Thing(look, "large", box),))


def clip(
    seed: int, frames: int = 8, count: tuple[int, int] = (2, 4), size: tuple[int, int] | None = None
) -> tuple[Scene, ...]:
    """Return the frames of the clip of a seed."""
    return tuple(_scene(frame) for frame in rendered.clip(seed, frames, count, size))


def _scene(painted: PaintedScene) -> Scene:
    objects = zip(painted.objects, painted.boxes, strict=True)
    things = (Thing(each.look, each.size, box) for each, box in objects if box is not None)
    return Scene(as_pixels(painted.canvas), tuple(things))


def scene_and_owners(
    seed: int, count: tuple[int, int] = (3, 5), size: tuple[int, int] | None = None
) -> tuple[Scene, Owners]:
    """Return the scene of a seed, and the object that is visible at each pixel."""
    painted = compose_scene(seed, count, size)
    shown = _scene(painted)
    black = [(0, 0, 0) for _ in painted.objects]
    return shown, paint_owners(painted.canvas, looks_and_places(painted.objects), black)
