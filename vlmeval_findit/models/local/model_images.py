"""Images as they are sent: read and decoded once, RGB, as stored.

FindIt's widths, heights and boxes refer to *stored* pixels (:mod:`...storage.image_files`). An
image of another size than its row's is refused before a run, so annotations of a rotated file do
not go unnoticed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ...boxes import chat_resize
from ...protocol import Message, PartKind
from ...storage import decode_image, image_bytes, read_image_header
from .layout import Bounds, ModelImage

if TYPE_CHECKING:
    from PIL import Image

_PIXELS_PER_TOKEN = 28 * 28
_CHARACTERS_PER_TOKEN = 4


def limit_size(pixels: Image.Image, bounds: Bounds, sha256: str = "") -> ModelImage:
    """Apply the run's limits: the first of two resizes of Qwen's chat interface (bicubic).

    ``sha256`` is of the image's file.
    """
    original = pixels.size
    if bounds.two_step and (size := chat_resize(original)) != original:
        pixels = pixels.resize(size)
    return ModelImage(pixels, original, pixels.size, sha256)


class ImageSet:
    """The images of a group of queries within a run's bounds, each file decoded once."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._known: dict[str, ModelImage] = {}

    def get(self, path: str) -> ModelImage:
        """Return the image of a file; OSError if it is missing or broken."""
        if path not in self._known:
            file = image_bytes(path)
            self._known[path] = limit_size(decode_image(file), self.bounds, file.sha256)
        return self._known[path]


def expected_length(message: Message, bounds: Bounds) -> float:
    """Estimate a message's tokens without decoding images; an unreadable image counts least."""
    length = 0.0
    for part in message:
        if part.kind is PartKind.TEXT:
            length += len(part.value) / _CHARACTERS_PER_TOKEN
        elif part.kind is PartKind.IMAGE:
            area = 0
            with suppress(OSError):
                width, height = read_image_header(part.value).size
                area = width * height
            area = max(area, bounds.min_pixels or 0)
            length += min(area, bounds.max_pixels or area) / _PIXELS_PER_TOKEN
    return length
