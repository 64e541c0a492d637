"""Images as they are sent.

Pixels are as stored, which is how annotations count them; the sent image has no EXIF orientation.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
from base64 import b64decode, b64encode
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from PIL import Image

from ...boxes import Space, as_sent, reference_size
from ...protocol import Message, PartKind, Reference
from ...storage import (
    ImageBytes,
    ImageChangedError,
    Size,
    decode_image,
    image_bytes,
    is_other_file,
    read_image_header,
    stored_pixels,
)

JPEG_FROM = 2048  # pixels of the longer side from which JPEG is sent, not PNG


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SentImage:
    """One image as it is sent."""

    original: Size  # of the file
    sent: Size
    mime: str
    base64: bytes = field(repr=False)
    sha256: str = ""  # of the file

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


class ChatRequest(NamedTuple):
    """The body of a chat request and its images."""

    body: Mapping[str, Any]
    images: tuple[SentImage, ...]


# Stands for an image in a body, so that bodies stay small.
_MARK = f"image-{token_hex(16)}-"  # random, so that no text contains it
_MARKS = re.compile(f"{_MARK}([0-9]+)-".encode())


def marked_urls(images: Sequence[SentImage]) -> list[str]:
    """Return data URLs with marks for :func:`json_pieces`."""
    return [f"data:{image.mime};base64,{_MARK}{at}-" for at, image in enumerate(images)]


def json_pieces(body: Mapping[str, Any], images: Sequence[SentImage]) -> list[bytes]:
    """Serialise a body with marks as JSON pieces; base64 is inserted without copying."""
    parts = _MARKS.split(json.dumps(body).encode())
    parts[1::2] = [images[int(number)].base64 for number in parts[1::2]]
    return parts


# From a file and the limit of its longer side in pixels (None: none).
ImageRule = Callable[[Path, int | None], SentImage]


def for_provider(path: Path, limit: int | None = None) -> SentImage:
    """Apply the paper's API rule: at most 4096 pixels, JPEG (quality 95) from 2048 on, else PNG."""
    file = image_bytes(path)
    original = read_image_header(file).size
    # Scoring divides by this very size.
    width, height = reference_size(Space("pixels", scene_max_size=limit), *original)
    size = (int(width), int(height))
    return _sent(file, original, size, "JPEG" if max(size) >= JPEG_FROM else "PNG")


def as_they_are(path: Path, limit: int | None = None) -> SentImage:
    """Send the file's bytes if servers decode the same pixels from them, else a PNG.

    The server's processor resizes it as a local one would.
    """
    file = image_bytes(path)
    # It is read to its end: a call with half an image costs money too.
    stored = stored_pixels(file)
    original = stored.header.size
    size = as_sent(Space("grid1000", scene_max_size=limit), *original)
    if stored.are_shown and size == original:
        mime = f"image/{stored.header.format.lower()}"
        return SentImage(size, size, mime, b64encode(file.getbuffer()), file.sha256)
    return _sent(file, original, size, "PNG")


def _sent(file: ImageBytes, original: Size, size: Size, kind: str) -> SentImage:
    """Encode the stored pixels, resized, without profile or orientation; raises OSError."""
    image = decode_image(file)
    if image.size != size:
        image = image.resize(size, Image.Resampling.LANCZOS)
    image.info.clear()
    buffer = io.BytesIO()
    if kind == "JPEG":
        image.save(buffer, kind, quality=95)
    else:
        image.save(buffer, kind)
    mime = f"image/{kind.lower()}"
    return SentImage(original, size, mime, b64encode(buffer.getbuffer()), file.sha256)


def refuse_changed(
    planned: Sequence[str], shown: Sequence[ImageToSend], read: Sequence[SentImage]
) -> None:
    """Raise an ImageChangedError for an image that is not the planned one; it is not sent.

    ``planned`` are the contents of the images, or empty if nothing was planned.
    """
    for content, image, sent in zip(planned, shown, read, strict=False):
        if is_other_file(content, sent.sha256):
            raise ImageChangedError(image.path)


class ImageToSend(NamedTuple):
    """An image of a message."""

    rule: ImageRule
    path: str  # hashed for every call; a Path takes ten times as long
    limit: int | None  # of the longer side, in pixels

    def encoded(self) -> SentImage:
        return self.rule(Path(self.path), self.limit)


def images_to_send(message: Message, space: Space, rule: ImageRule) -> list[ImageToSend]:
    """Return the images of a message in order; reference images have no size limit."""
    return [
        ImageToSend(rule, part.value, None if isinstance(part, Reference) else space.scene_max_size)
        for part in message
        if part.kind is PartKind.IMAGE
    ]


_THREADS = 4  # encoded in parallel: a scene of HR-InsDet takes 150 MB
# Of images that are kept though no call needs them
_LATEST = 64 << 20  # bytes: seven of HR-InsDet
_LATEST_IMAGES = 2000  # what belongs to an image takes 600 bytes beside its own
_IN_FLIGHT = 1 << 30  # bytes of images that servers are asked about at a time


class EncodedImages:
    """Encodes each image once for calls that are made soon after each other, in threads.

    An image stays while a call needs it, and the latest ones a little longer: calls over the same
    images follow each other. Where much is in flight, further images wait until calls have ended:
    memory follows neither the number of calls nor the size of images.
    """

    def __init__(
        self, latest: int = _LATEST, images: int = _LATEST_IMAGES, in_flight: int = _IN_FLIGHT
    ) -> None:
        self._most = latest
        self._most_images = images
        self._size = 0  # bytes of the latest
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="findit-images")
        self._encoding: dict[ImageToSend, asyncio.Future[SentImage]] = {}
        self._needed: WeakValueDictionary[ImageToSend, SentImage] = WeakValueDictionary()
        self._latest: OrderedDict[ImageToSend, SentImage] = OrderedDict()
        self._most_in_flight = in_flight
        self._in_flight = 0
        self._asked: Counter[int] = Counter()  # calls that ask about an image, by its identity
        self._ended = asyncio.Event()  # a call has
        self._beginning = asyncio.Semaphore(_THREADS)

    async def all(self, images: Sequence[ImageToSend]) -> tuple[SentImage, ...]:
        if all(image in self._needed or image in self._encoding for image in images):
            return await self._all(images)
        # A call that began has all its images: those that ask wait for no others.
        async with self._beginning:
            while self._in_flight >= self._most_in_flight:
                self._ended.clear()
                await self._ended.wait()
            return await self._all(images)

    async def _all(self, images: Sequence[ImageToSend]) -> tuple[SentImage, ...]:
        return tuple([await self._encode(image) for image in images])

    @contextmanager
    def asking(self, images: Sequence[SentImage]) -> Iterator[None]:
        """Count images as in flight while a server is asked about them; one image counts once."""
        for image in images:
            self._asked[id(image)] += 1
            if self._asked[id(image)] == 1:
                self._in_flight += len(image.base64)
        try:
            yield
        finally:
            for image in images:
                self._asked[id(image)] -= 1
                if not self._asked[id(image)]:
                    del self._asked[id(image)]
                    self._in_flight -= len(image.base64)
            self._ended.set()

    async def _encode(self, image: ImageToSend) -> SentImage:
        sent = self._needed.get(image)
        if sent is not None:
            self._note_latest(image, sent)
            return sent
        future = self._encoding.get(image)
        if future is None:
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._threads, image.encoded)
            self._encoding[image] = future
            future.add_done_callback(partial(self._note_encoded, image))
        # Other calls await it too.
        return await asyncio.shield(future)

    def _note_encoded(self, image: ImageToSend, future: asyncio.Future[SentImage]) -> None:
        del self._encoding[image]
        if not future.cancelled() and future.exception() is None:
            self._needed[image] = future.result()
            self._note_latest(image, future.result())

    def _note_latest(self, image: ImageToSend, sent: SentImage) -> None:
        """Note that a call needs an image now; forget others that were needed before."""
        if image not in self._latest:
            self._size += len(sent.base64)
        self._latest[image] = sent
        self._latest.move_to_end(image)
        while self._size > self._most or len(self._latest) > self._most_images:
            _, oldest = self._latest.popitem(last=False)
            self._size -= len(oldest.base64)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
