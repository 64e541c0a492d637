"""Annotated pictures, as questions are made of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vlmeval_findit.boxes.representation import Corners
from vlmeval_findit.marks.region import Polygon

Pixels = npt.NDArray[np.uint8]
"""height x width x 3, RGB."""
Rng = np.random.RandomState
"""numpy has promised never to change its streams."""


class Object(NamedTuple):
    """An object of a picture: its class, and its box (x1, y1, x2, y2) in pixels."""

    label: str
    box: Corners


class Seen(NamedTuple):
    """The pixels of a picture, and the outlines of every object (none: boxes are all there is)."""

    pixels: Pixels
    outlines: tuple[tuple[Polygon, ...], ...]


@dataclass(frozen=True, slots=True)
class AnnotatedPicture:
    """A picture and all its objects; boxes are in pixels of what ``read`` gives.

    ``read`` raises ImageFileError where the file cannot be read.
    """

    name: str
    width: int
    height: int
    objects: tuple[Object, ...]
    read: Callable[[], Seen]


class Classes:
    """How often classes are seen, and with which others."""

    def __init__(self, pictures: Iterable[AnnotatedPicture]) -> None:
        self._seen: Counter[str] = Counter()
        self._together: dict[str, Counter[str]] = {}
        for picture in pictures:
            labels = {one.label for one in picture.objects}
            self._seen.update(labels)
            for label in labels:
                self._together.setdefault(label, Counter()).update(labels - {label})

    def __len__(self) -> int:
        return len(self._seen)

    def likely_with(self, label: str) -> list[str]:
        """All other classes: those that are most often seen with this one first."""
        together = self._together.get(label, Counter())
        others = (other for other in self._seen if other != label)
        return sorted(others, key=lambda other: (-together[other], -self._seen[other], other))


def told_apart(label: str, others: Sequence[str]) -> bool:
    """Whether a class shares no word with others: a wheel may be a motorcycle wheel.

    >>> told_apart("wheel", ["motorcycle wheel"]), told_apart("cup", ["spoon", "saucer"])
    (False, True)
    """
    words = _words(label)
    return not any(words & _words(other) for other in others)


def _words(label: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"\w+", label.lower())}
