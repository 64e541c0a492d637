"""The baselines: models without weights, as plain functions from a message to a reply.

They answer in thousandths of the image, in the format that the variant asks for.  None of them sees
the ground truth: a baseline gets the message, exactly as a model does, and the variant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...boxes.representation import Corners
from ...boxes.writing import Said, write
from ...core.benchmark import Baseline
from ...core.image_files import decode, header
from ...core.messages import Message, PartKind
from ...core.replies import Recorded
from .variant import Variant

if TYPE_CHECKING:
    from .detector import Pixels

SPACE = {"kind": "grid1000"}
"""The space in which the baselines answer, as a run records it."""

_GRID = 1000.0


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """One image of a message: its file and its size in pixels (width, height)."""

    path: Path
    width: int
    height: int

    def in_grid(self, box: Corners) -> Corners:
        """A box in pixels as thousandths of this picture."""
        across, down = _GRID / self.width, _GRID / self.height
        return (box[0] * across, box[1] * down, box[2] * across, box[3] * down)

    def as_record(self) -> dict[str, Any]:
        """The sizes of what was sent, for the record of a run: baselines resize nothing."""
        size = [self.width, self.height]
        return {"original": size, "sent": size}


@dataclass(frozen=True, slots=True)
class Sight:
    """What a baseline is shown: reference shots, then the scene or its frames, and the request."""

    support: tuple[ShownPicture, ...]
    frames: tuple[ShownPicture, ...]
    text: str


Find = Callable[[Sight, Variant], list[Said]]
"""From what is shown to boxes in thousandths."""


def see(message: Message, variant: Variant) -> Sight:
    """Sort the parts of a message: the last images are the scene or frames, others references."""
    pictures = [_picture(part.value) for part in message if part.kind is PartKind.IMAGE]
    texts = [part.value for part in message if part.kind is PartKind.TEXT]
    # A row may have fewer frames than its variant, but then it has no more images than those.
    shots = 0
    if variant.family.has_references:
        shots = max(len(pictures) - variant.frames, min(1, len(pictures) - 1))
    return Sight(tuple(pictures[:shots]), tuple(pictures[shots:]), "\n".join(texts))


@lru_cache(maxsize=4096)
def _picture(path: str) -> ShownPicture:
    return ShownPicture(Path(path), *header(path).size)


def _everything(sight: Sight, variant: Variant) -> list[Said]:
    """One box over everything, in every frame: the floor that every leaderboard needs."""
    everything = (0.0, 0.0, _GRID, _GRID)
    return [Said(everything, "object", frame) for frame in range(len(sight.frames))]


def _detected(sight: Sight, variant: Variant) -> list[Said]:
    """What OpenCV's cascades, HOG detector and Hough circles find of what the request names.

    Raises:
        RuntimeError: the installed OpenCV has no cascades.
    """
    find = _instances if variant.family.has_references else _named
    return [
        Said(picture.in_grid(box), label, frame)
        for frame, picture in enumerate(sight.frames)
        for label, box in find(sight, picture)
    ]


Found = Iterator[tuple[str, Corners]]


def _named(sight: Sight, picture: ShownPicture) -> Found:
    from .detector import detect

    for found in detect(_pixels(picture.path), sight.text):
        yield found.label, found.box


def _instances(sight: Sight, picture: ShownPicture) -> Found:
    from .detector import find_instance

    shots = [_pixels(shot.path) for shot in sight.support]
    for box in find_instance(_pixels(picture.path), shots):
        yield "object", box


@lru_cache(maxsize=16)
def _pixels(path: Path) -> Pixels:
    return np.asarray(decode(path))


# --- as models ------------------------------------------------------------------------------------


def full_image(message: Message, variant: Variant) -> tuple[str, Recorded]:
    """The reply of one box over everything."""
    return _written(_everything, message, variant)


def opencv_detector(message: Message, variant: Variant) -> tuple[str, Recorded]:
    """The reply of what OpenCV finds.

    Raises:
        RuntimeError: the installed OpenCV has no cascades.
    """
    return _written(_detected, message, variant)


def _written(find: Find, message: Message, variant: Variant) -> tuple[str, Recorded]:
    """The boxes in the requested format, and what the run records."""
    sight = see(message, variant)
    reply = write(find(sight, variant), variant.reply)
    images = tuple(picture.as_record() for picture in (*sight.support, *sight.frames))
    return reply, Recorded(space=SPACE, finish_reason="stop", images=images)


BASELINES = {
    "OpenCV-Detector": Baseline(opencv_detector, SPACE),
    "FullImage": Baseline(full_image, SPACE),
}
"""By the names of their models."""
