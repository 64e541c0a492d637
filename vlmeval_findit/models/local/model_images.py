"""Images as they are sent: decoded once, RGB, as stored.

FindIt's widths, heights and boxes refer to *stored* pixels (:mod:`...core.image_files`). An image
of another size than its row's is refused before a run, so annotations of a rotated file do not go
unnoticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...boxes.spaces import chat_resize
from ...core.image_files import decode, header
from .layout import Bounds, ModelImage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PIL import Image


def limited(pixels: Image.Image, bounds: Bounds) -> ModelImage:
    """Apply the run's limits: the first of two resizes of Qwen's chat interface (bicubic)."""
    original = pixels.size
    if bounds.two_step:
        size = chat_resize(original)
        if size != original:
            pixels = pixels.resize(size)
    return ModelImage(pixels, original, pixels.size)


class ImageSet:
    """The images of a group of queries within a run's bounds, each file decoded once."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._known: dict[str, ModelImage] = {}

    def get(self, path: str) -> ModelImage:
        """Return the image of a file; OSError if it is missing or broken."""
        if path not in self._known:
            self._known[path] = limited(decode(path), self._bounds)
        return self._known[path]


def _stored_size(path: str) -> tuple[int, int]:
    """Return the size (w, h) in an image's header; (0, 0) if it cannot be read."""
    try:
        return header(path).size
    except OSError:
        return 0, 0


_PIXELS_PER_TOKEN = 28 * 28
_CHARACTERS_PER_TOKEN = 4


def expected_length(paths: Sequence[str], texts: Sequence[str], bounds: Bounds) -> float:
    """Estimate a message's tokens without decoding images."""
    length = sum(map(len, texts)) / _CHARACTERS_PER_TOKEN
    for path in paths:
        width, height = _stored_size(path)
        area = max(width * height, bounds.min_pixels or 0)
        length += min(area, bounds.max_pixels or area) / _PIXELS_PER_TOKEN
    return length
