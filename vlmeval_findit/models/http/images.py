"""Images as they are sent: each is encoded once for all its prompts, in a thread of its own.

Two rules: what providers are sent is shrunk and encoded as in the paper's runs
(:func:`for_provider`); a server of one's own gets the pixels of the file (:func:`as_they_are`),
which its processor resizes as a local model's would.  The sizes come from :mod:`...boxes.spaces`,
the same arithmetic that scoring uses.

Pixels are those of the file as it is stored: the annotations count them so, and what is sent has no
EXIF orientation by which a provider would turn the image.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ...boxes.spaces import Space, as_sent, reference_size
from ...core.image_files import Size, check, header, orientation
from ...core.messages import Message, PartKind
from ...core.question import Question
from ..scene_cache import CachedScene, encoded

JPEG_FROM = 2048
"""Images with a longer side of at least this many pixels are sent as JPEG, others as PNG."""


@dataclass(frozen=True, slots=True)
class SentImage:
    """One image as it is sent: the file's size, the size that is sent, the bytes in base64."""

    original: Size
    sent: Size
    mime: str
    base64: bytes = field(repr=False)

    @property
    def data(self) -> bytes:
        """The encoded image."""
        return b64decode(self.base64)

    @property
    def url(self) -> str:
        """The image as a data URL."""
        return f"data:{self.mime};base64,{self.base64.decode('ascii')}"

    def as_record(self) -> dict[str, Any]:
        """What a run records of it."""
        return {
            "original": list(self.original),
            "sent": list(self.sent),
            "mime": self.mime,
            "bytes": len(self.base64) // 4 * 3 - self.base64.count(b"=", -2),
        }


ImageRule = Callable[[Path, int | None], SentImage]
"""From a file and the limit in pixels for its longer side (None: none) to what is sent."""


def for_provider(path: Path, limit: int | None = None) -> SentImage:
    """The paper's API rule: at most 4096 pixels, JPEG of quality 95 from 2048 on, else PNG.

    Raises:
        OSError: the file is no image.
    """
    original = header(path).size
    # The space of pixels as sent is this very rule; scoring divides by the same size.
    width, height = reference_size(Space("pixels", scene_max_size=limit), *original)
    size = (int(width), int(height))
    return _sent(path, original, size, "JPEG" if max(size) >= JPEG_FROM else "PNG")


def as_they_are(path: Path, limit: int | None = None) -> SentImage:
    """The file's own bytes where a server reads the same pixels from them, else a PNG of these.

    Raises:
        OSError: the file is no image.
    """
    found = header(path)
    size = as_sent(Space("grid1000", scene_max_size=limit), *found.size)
    plain = found.format in ("JPEG", "PNG") and found.mode == "RGB" and size == found.size
    if plain and orientation(path) == 1:
        check(path)  # a call with half an image is paid for too
        mime = f"image/{found.format.lower()}"
        return SentImage(size, size, mime, b64encode(path.read_bytes()))
    return _sent(path, found.size, size, "PNG")


def _sent(path: Path, original: Size, size: Size, kind: str) -> SentImage:
    data = encoded(CachedScene(path, size, kind), original)
    return SentImage(original, size, f"image/{kind.lower()}", b64encode(data))


class WantedImage(NamedTuple):
    """An image of a message: the rule by which it is sent, its file, the limit of its pixels."""

    rule: ImageRule
    path: Path
    limit: int | None

    def encoded(self) -> SentImage:
        """What is sent.

        Raises:
            OSError: the file is no image.
        """
        return self.rule(self.path, self.limit)


def wanted_images(
    message: Message, question: Question, space: Space, rule: ImageRule
) -> list[WantedImage]:
    """The images of a message in order; the scene limit of the space is not for support shots."""
    paths = [Path(part.value) for part in message if part.kind is PartKind.IMAGE]
    # References come first, so that the scene or the frames are the last ones.
    shots = len(paths) - question.frames if question.has_references else 0
    return [
        WantedImage(rule, path, None if place < shots else space.scene_max_size)
        for place, path in enumerate(paths)
    ]


_THREADS = 4
"""Images that are encoded at a time: a scene of HR-InsDet takes 150 MB meanwhile."""

_KEPT = 64 << 20
"""Bytes of images that are kept for their next prompt."""


class EncodedImages:
    """Encodes each image once, in threads, and keeps what was used last, up to a size."""

    def __init__(self, limit: int = _KEPT) -> None:
        self._limit = limit
        self._size = 0
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="findit-images")
        self._known: OrderedDict[WantedImage, asyncio.Future[SentImage]] = OrderedDict()

    async def all(self, wanted: Sequence[WantedImage]) -> tuple[SentImage, ...]:
        """Images as they are sent, in their order.

        Raises:
            Exception: whatever a broken image makes of its reader.
        """
        return tuple([await self._one(image) for image in wanted])

    async def _one(self, image: WantedImage) -> SentImage:
        made = self._known.get(image)
        if made is not None:
            self._known.move_to_end(image)
            return made.result() if made.done() else await asyncio.shield(made)
        loop = asyncio.get_running_loop()
        made = self._known[image] = loop.run_in_executor(self._threads, image.encoded)
        made.add_done_callback(partial(self._came, image))
        return await asyncio.shield(made)

    def _came(self, image: WantedImage, made: asyncio.Future[SentImage]) -> None:
        if made.cancelled() or made.exception() is not None:
            del self._known[image]
            return
        self._size += len(made.result().base64)
        while self._size > self._limit and (oldest := next(iter(self._known.values()))).done():
            self._known.popitem(last=False)
            self._size -= len(oldest.result().base64)

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
