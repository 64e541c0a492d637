"""Images as they are sent: decoded once, RGB, as stored.

FindIt's widths, heights and boxes refer to *stored* pixels (:mod:`...core.image_files`). An image
of another size than its row's is refused before a run (:mod:`...core.image_files`), so annotations
of a rotated file do not go unnoticed.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ...boxes.spaces import chat_resize
from ...core.image_files import decode, header
from ..bounds import Bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PIL import Image


@dataclass(frozen=True, slots=True)
class ModelImage:
    """An image as the processor gets it; sizes are (w, h)."""

    pixels: Image.Image
    original: tuple[int, int]  # of the file
    sent: tuple[int, int]  # after the run's own limits


class RecentPixels:
    """An LRU cache of decoded images, of at most ``most`` bytes (3 per pixel)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, int, int], Image.Image] = OrderedDict()
        self._lock = Lock()

    def get(self, path: str) -> Image.Image:
        """Return the stored pixels of a file as RGB; OSError if it is missing or broken."""
        state = Path(path).stat()
        key = (path, state.st_mtime_ns, state.st_size)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        pixels = decode(path)
        with self._lock:
            self._kept[key] = pixels
            while sum(map(_bytes_of, self._kept.values())) > self._most:
                self._kept.popitem(last=False)
        return pixels


def _bytes_of(pixels: Image.Image) -> int:
    return 3 * pixels.width * pixels.height


_RECENT = RecentPixels(most=512 * 2**20)
"""Three scenes of HR-InsDet, or a thousand photographs of COCO."""


def limited(pixels: Image.Image, bounds: Bounds) -> ModelImage:
    """Apply the run's own limits: the first of two resizes of Qwen's chat interface (bicubic)."""
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
        if path not in self._known:
            self._known[path] = limited(_RECENT.get(path), self._bounds)
        return self._known[path]


def stored_size(path: str) -> tuple[int, int]:
    """Return the size (w, h) in an image's header; (0, 0) if it cannot be read."""
    try:
        return _stored_size(path)
    except OSError:
        return 0, 0


@lru_cache(maxsize=16384)
def _stored_size(path: str) -> tuple[int, int]:
    return header(path).size


_PIXELS_PER_TOKEN = 28 * 28
_CHARACTERS_PER_TOKEN = 4


def expected_length(paths: Sequence[str], texts: Sequence[str], bounds: Bounds) -> float:
    """Estimate a message's tokens without decoding images."""
    length = sum(map(len, texts)) / _CHARACTERS_PER_TOKEN
    for path in paths:
        width, height = stored_size(path)
        area = max(width * height, bounds.min_pixels or 0)
        length += min(area, bounds.max_pixels or area) / _PIXELS_PER_TOKEN
    return length
