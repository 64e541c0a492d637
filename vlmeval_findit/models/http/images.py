"""Images as they are sent.  Pixels are those of the file as it is stored: the annotations count
them so, and what is sent has no EXIF orientation by which a provider would turn the image.
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

from ...boxes.spaces import Space, as_sent, reference_size
from ...core.image_files import Size, check, header, orientation
from ...core.messages import Message, PartKind
from ...core.question import Question
from ..scene_cache import CachedScene, encoded

JPEG_FROM = 2048  # pixels of the longer side from which an image is sent as JPEG, not as PNG


@dataclass(frozen=True, slots=True)
class SentImage:
    """One image as it is sent."""

    original: Size  # of the file
    sent: Size
    mime: str
    base64: bytes = field(repr=False)

    @property
    def data(self) -> bytes:
        return b64decode(self.base64)

    @property
    def url(self) -> str:
        return f"data:{self.mime};base64,{self.base64.decode('ascii')}"

    def as_record(self) -> dict[str, Any]:
        return {
            "original": list(self.original),
            "sent": list(self.sent),
            "mime": self.mime,
            "bytes": len(self.base64) // 4 * 3 - self.base64.count(b"=", -2),
        }


class Request(NamedTuple):
    """The body of a chat request and the images in it."""

    body: Mapping[str, Any]
    images: tuple[SentImage, ...]


# Stands for an image in a body, which so is small to write and to translate.
_MARK = f"image-{token_hex(16)}-"  # what no text has: it is drawn when the program starts
_MARKS = re.compile(f"{_MARK}([0-9]+)-".encode())


def marked_urls(images: Sequence[SentImage]) -> list[str]:
    """Data URLs with marks for :func:`pieces`."""
    return [f"data:{image.mime};base64,{_MARK}{at}-" for at, image in enumerate(images)]


def pieces(body: Mapping[str, Any], images: Sequence[SentImage]) -> list[bytes]:
    """A body with marks as JSON in pieces; the images' base64, between them, is not copied."""
    parts = _MARKS.split(json.dumps(body).encode())
    parts[1::2] = [images[int(number)].base64 for number in parts[1::2]]
    return parts


# From a file and the limit in pixels for its longer side (None: none) to what is sent.
ImageRule = Callable[[Path, int | None], SentImage]


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
    """The file's own bytes where a server reads the same pixels from them, else a PNG of these: the
    server's processor resizes them as a local model's would.

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
    """An image of a message."""

    rule: ImageRule
    path: str  # for every call one is hashed, and a Path takes ten times as long
    limit: int | None  # in pixels, for its longer side

    def encoded(self) -> SentImage:
        """What is sent, or OSError where the file is no image."""
        return self.rule(Path(self.path), self.limit)


def wanted_images(
    message: Message, question: Question, space: Space, rule: ImageRule
) -> list[WantedImage]:
    """The images of a message in order; the scene limit of the space is not for support shots."""
    paths = [part.value for part in message if part.kind is PartKind.IMAGE]
    # References come first, so that the scene or the frames are the last ones.
    shots = len(paths) - question.frames if question.has_references else 0
    return [
        WantedImage(rule, path, None if place < shots else space.scene_max_size)
        for place, path in enumerate(paths)
    ]


_THREADS = 4  # images that are encoded at a time: a scene of HR-InsDet takes 150 MB meanwhile
_KEPT = 64 << 20  # bytes of images that are kept for their next prompt


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
        return await asyncio.shield(made)  # others wait for it too

    def _came(self, image: WantedImage, made: asyncio.Future[SentImage]) -> None:
        if made.cancelled() or made.exception() is not None:
            del self._known[image]
            return
        self._size += len(made.result().base64)
        while self._size > self._limit and (oldest := next(iter(self._known.values()))).done():
            self._known.popitem(last=False)
            self._size -= len(oldest.result().base64)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
