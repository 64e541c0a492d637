"""The images of a training set: files in which a trainer sees what the answers are about.

A trainer decodes a file by its own rules: it turns it as EXIF says, and lays what is transparent on
black. Its processor resizes, too, so answers in pixels hold only for a file that already has their
size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..boxes import PIXELS, SPACE_KINDS, Space, reply_extent
from ..core import counted
from ..storage import Size, image_bytes, stored_pixels
from .image_copies import IMAGES, ImageCopies


@dataclass(slots=True)
class TrainingImages:
    """The images that samples name: files of the run, or copies."""

    copies: ImageCopies
    sizes: dict[Size, None] = field(default_factory=dict)  # Of images that may not be resized
    placings: dict[str, None] = field(default_factory=dict)  # Spaces of which it is not known

    def name(self, path: Path, space: Space) -> str:
        """Return the file that a sample names for an image, with answers in a space.

        Raises:
            OSError: the image cannot be read.
        """
        stored = stored_pixels(image_bytes(path))
        size = stored.header.size
        seen = size_of_answers(space, size)
        if seen is not None:
            self.sizes[seen] = None
        elif not SPACE_KINDS[space.kind].unit:
            settings = space.as_dict()
            self.placings[f"{settings.pop('kind')} {settings or ''}".rstrip()] = None
        if stored.are_shown and seen in (None, size):
            return str(path)
        return self.copies.add(path, seen or size)

    def _are_multiples(self, step: int) -> bool:
        return all(width % step == height % step == 0 for width, height in self.sizes)

    def notes(self, trainer: str) -> list[str]:
        """Say in sentences what of the images a user must know to train on them."""
        notes = []
        if self.copies:
            notes.append(
                f"{counted(len(self.copies), 'image')} copied to `{IMAGES}/`: of the originals a "
                "trainer may see other pixels."
            )
        if self.sizes:
            pixels = sorted(width * height for width, height in self.sizes)
            least, most = _SETTINGS[trainer]
            notes.append(
                "Answers count pixels of these images, so the trainer must not resize them: "
                f"{most} at least {pixels[-1]:,}, {least} at most {pixels[0]:,}."
            )
            if not any(map(self._are_multiples, _STEPS)):
                notes.append(
                    "Qwen's processors resize them all the same, to multiples of 28 or 32 pixels: "
                    "train such a model on a run in its own space (smart_resize)."
                )
        for space in self.placings:
            notes.append(
                f"Answers are in the space {space}, so the trainer must place images in it as "
                "the model of the run did."
            )
        return notes


_STEPS = (28, 32)  # Of Qwen's processors

# What bounds the pixels of an image, in the words of each trainer: the least, and the most
_SETTINGS = {
    "trl": ("the processor's `min_pixels`", "the processor's `max_pixels`"),
    "llama-factory": ("`image_min_pixels`", "`image_max_pixels`"),
    "ms-swift": ("`MIN_PIXELS`", "`MAX_PIXELS`"),
}


def size_of_answers(space: Space, size: Size) -> Size | None:
    """Return the size of an image in whose pixels answers are; None if they are parts of any size.

    >>> size_of_answers(Space("grid1000"), (5000, 3000)) is None
    True
    >>> size_of_answers(Space("pixels"), (5000, 3000))
    (4096, 2457)
    """
    if SPACE_KINDS[space.kind].unit != PIXELS:
        return None
    extent = reply_extent(space, *size)
    return round(extent.width), round(extent.height)
