"""What questions are made of: rendered scenes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from training.scene_tables import SETS, Shown, shown_scenes
from training.vp_questions.annotated import AnnotatedPicture, Object, Seen
from vlmeval_findit.data.rendered.scene import Owners, scene_and_owners
from vlmeval_findit.marks.region import Polygon
from vlmeval_findit.marks.style import Shape


@dataclass(frozen=True, slots=True)
class Source:
    """Annotated pictures, and the shapes that can be drawn on them."""

    name: str
    pictures: tuple[AnnotatedPicture, ...]
    shapes: tuple[Shape, ...]


def source_of(name: str, most: int) -> Source:
    """The pictures of rendered scenes, so many will do."""
    shown = islice(shown_scenes(SETS[name]), most)
    return Source(name, tuple(map(_scene, shown)), tuple(Shape))


def _scene(shown: Shown) -> AnnotatedPicture:
    scene = shown.scene
    objects = tuple(Object(thing.look.shape, thing.box) for thing in scene.things)

    def read() -> Seen:
        return Seen(scene.pixels, _scene_outlines(shown.seed, len(objects)))

    return AnnotatedPicture(f"scenes/{shown.seed}.png", scene.width, scene.height, objects, read)


@lru_cache(maxsize=4096)
def _scene_outlines(seed: int, count: int) -> tuple[tuple[Polygon, ...], ...]:
    return outlines(scene_and_owners(seed)[1], count)


def outlines(owners: Owners, count: int) -> tuple[tuple[Polygon, ...], ...]:
    """The outer outlines of every object's pixels, as polygons."""
    import cv2

    found = []
    for i in range(count):
        mask = np.asarray(owners == i, dtype=np.uint8)
        parts, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        found.append(tuple(tuple(map(float, part.ravel())) for part in parts if len(part) > 2))
    return tuple(found)
