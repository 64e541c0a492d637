"""Annotated images for questions about marks: rendered scenes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from training.questions import SETS, ShownScene, shown_scenes
from training.scenes import scene_and_owners
from vlmeval_findit.boxes import Corners
from vlmeval_findit.data import Owners
from vlmeval_findit.marks import Polygon

Pixels = npt.NDArray[np.uint8]  # Height x width x 3, RGB


class LabelledBox(NamedTuple):
    """An object of an image: its class, and its box (x1, y1, x2, y2) in pixels."""

    label: str
    box: Corners


class OutlinedPixels(NamedTuple):
    """The pixels of an image, and the outlines of every object (none: only boxes are known)."""

    pixels: Pixels
    outlines: tuple[tuple[Polygon, ...], ...]


@dataclass(frozen=True, slots=True)
class AnnotatedImage:
    """An image and all its objects; boxes are in pixels of what ``read`` returns."""

    name: str
    width: int
    height: int
    objects: tuple[LabelledBox, ...]
    read: Callable[[], OutlinedPixels]


class ClassCounts:
    """Numbers of images with a class, and with two classes together."""

    def __init__(self, images: Iterable[AnnotatedImage]) -> None:
        self._counts: Counter[str] = Counter()
        self._together: dict[str, Counter[str]] = {}
        for image in images:
            labels = {target.label for target in image.objects}
            self._counts.update(labels)
            for label in labels:
                self._together.setdefault(label, Counter()).update(labels - {label})

    def likely_with(self, label: str) -> list[str]:
        """Return all other classes, those most often together with this class first."""
        together = self._together.get(label, Counter())
        others = (other for other in self._counts if other != label)
        return sorted(others, key=lambda other: (-together[other], -self._counts[other], other))


def scene_images(name: str, most: int) -> list[AnnotatedImage]:
    """Return the first rendered scenes of a set."""
    return [_scene_image(shown) for shown in islice(shown_scenes(SETS[name]), most)]


def _scene_image(shown: ShownScene) -> AnnotatedImage:
    scene = shown.scene
    objects = tuple(LabelledBox(thing.look.shape, thing.box) for thing in scene.things)

    def read() -> OutlinedPixels:
        return OutlinedPixels(scene.pixels, _scene_outlines(shown.seed, len(objects)))

    return AnnotatedImage(f"scenes/{shown.seed}.png", scene.width, scene.height, objects, read)


@lru_cache(maxsize=4096)
def _scene_outlines(seed: int, count: int) -> tuple[tuple[Polygon, ...], ...]:
    return outlines(scene_and_owners(seed)[1], count)


def outlines(owners: Owners, count: int) -> tuple[tuple[Polygon, ...], ...]:
    """Return the outer outlines of every object's pixels, as polygons."""
    polygons = []
    for i in range(count):
        mask = np.asarray(owners == i, dtype=np.uint8)
        contours = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)[0]
        parts = [part for part in contours if len(part) > 2]
        polygons.append(tuple(tuple(map(float, part.ravel())) for part in parts))
    return tuple(polygons)
