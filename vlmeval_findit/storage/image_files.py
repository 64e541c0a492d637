"""Image files: sizes, decoding, errors. Every image is opened here.

Pixels and boxes are those of the *stored* image: EXIF orientation is not applied (but for TIFF,
whose pixels Pillow turns), and of an animation the first frame counts. What is transparent is laid
on white (:mod:`.transparency`).
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO

from ..core import FileState, NotRegularError, file_state, open_regular, write_once
from ..protocol import Query
from .folders import Folder, FolderError
from .jpeg_structure import without_pixels
from .transparency import as_rgb, is_transparent, may_be_transparent

if TYPE_CHECKING:
    from PIL import Image

log = logging.getLogger(__name__)
Size = tuple[int, int]  # (width, height) in pixels

# Pillow's names; JPEG includes MPO. Not EPS: Pillow would run the file in Ghostscript.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000", "PPM")

MOST_UNSTATED = 178_956_970  # Pixels of an image without a stated size; Pillow's limit, too
MOST = 1_000_000_000  # Pixels of any image (3 GB decoded); VLMEvalKit's limit
MOST_BYTES = 4 << 30  # Of a file: those of as many pixels, uncompressed
_LARGE = 1 << 20  # Bytes of a file whose header is looked at before it is read
_LOOKED_AT = 512  # Bytes that say whether a file is a web page
_ORIENTATION = 0x0112  # The EXIF tag
_MORE_THAN_8_BITS = ("I", "F")  # Beginnings of Pillow's modes with more than 8 bits


class ImageFileError(OSError):
    """A file that cannot be used as an image; ``why`` is without the path."""

    def __init__(self, path: Path | str, why: str) -> None:
        super().__init__(f"{path} {why}")
        self.why = why


class ImageBytes(io.BytesIO):
    """The bytes of an image file, read once: what is hashed is what is shown."""

    def __init__(self, path: Path | str, data: bytes) -> None:
        super().__init__(data)
        self.path = path

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.getbuffer()).hexdigest()


Source = Path | str | io.BytesIO


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """What the beginning of an image file says."""

    size: Size
    mode: str  # Pillow's name
    format: str  # Pillow's name
    may_be_transparent: bool = False  # It has an alpha channel or a transparent colour


def image_bytes(path: Path | str) -> ImageBytes:
    """Read an image file; an ImageFileError if there is none.

    A file of less than a megabyte is looked at only when its image is opened.
    """
    with _explained(path), open_regular(Path(path)) as f:
        if os.fstat(f.fileno()).st_size >= _LARGE:
            read_image_header(path)  # A large file that is no image is not read
        return ImageBytes(path, f.read())


def read_image_header(source: Source) -> ImageHeader:
    """Read the beginning of an image file, or of an image in memory, without decoding it."""
    with _opened(source) as image:
        return _header_of(image)


def _header_of(image: Image.Image) -> ImageHeader:
    return ImageHeader(image.size, image.mode, image.format or "", may_be_transparent(image))


def known_header(path: Path) -> ImageHeader:
    """Read a header as :func:`read_image_header` does, once unless the file changes."""
    now = time.time_ns()
    with _explained(path):
        state = file_state(path)
    return _header_in(path, state) if state.is_settled(now) else read_image_header(path)


@lru_cache(maxsize=1 << 14)
def _header_in(path: Path, _state: FileState) -> ImageHeader:
    return read_image_header(path)


def check_image(source: Source) -> None:
    """Read an image file to its end, faster than by decoding it."""
    with _opened(source) as image:
        _draft(image)
        as_rgb(image)


@dataclass(frozen=True, slots=True)
class StoredPixels:
    """What a file says of the pixels that it stores."""

    header: ImageHeader
    are_shown: bool  # Viewers show just these: the file is whole, neither turned nor transparent


def stored_pixels(file: ImageBytes) -> StoredPixels:
    """Open an image once for its header and, of an RGB JPEG or PNG, to read it to its end.

    Other images are not shown as stored by every viewer. Raises as :func:`decode_image`.
    """
    head = without_pixels(file.getbuffer())
    with _opened(file if head is None else ImageBytes(file.path, head)) as image:
        header = _header_of(image)
        is_plain = header.format in ("JPEG", "PNG") and header.mode == "RGB"
        if not is_plain or is_transparent(image):
            return StoredPixels(header, are_shown=False)
        _draft(image)
        image.load()
        return StoredPixels(header, are_shown=_orientation(image).of_decoded == 1)


def _draft(image: Image.Image) -> None:
    """Let a JPEG be decoded at an eighth of its size: to its end, in a third of the time."""
    width, height = image.size
    image.draft("RGB", (max(1, width // 8), max(1, height // 8)))


def decode_image(source: Source, enough: Size | None = None) -> Image.Image:
    """Decode the stored pixels as RGB, on white where they are transparent.

    Detail beyond the size ``enough`` may be left out.
    """
    with _opened(source) as image:
        if enough is not None:
            image.draft("RGB", enough)
        return as_rgb(image)


def decode_values(source: Source) -> Image.Image:
    """Decode the stored numbers as RGB, whatever their transparency: masks are no pictures."""
    with _opened(source) as image:
        return image.convert("RGB")


def shows_transparency(source: Source) -> bool:
    """Return whether any pixel of an image is transparent; most files are not decoded for it."""
    with _opened(source) as image:
        return is_transparent(image)


@dataclass(frozen=True, slots=True)
class Orientation:
    """How a viewer turns the stored pixels of a file."""

    value: int  # EXIF's, 1 to 8; 1: not at all
    is_decoded: bool  # Whether decoded pixels are turned already: Pillow turns those of TIFF

    @property
    def of_decoded(self) -> int:
        """How a viewer turns what :func:`decode_image` returns."""
        return 1 if self.is_decoded else self.value


def orientation(source: Source) -> Orientation:
    """Return the orientation of a file; 1 (as stored) if it cannot be read."""
    with _opened(source) as image:
        return _orientation(image)


def _orientation(image: Image.Image) -> Orientation:
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # damaged metadata: viewers ignore it
        value = 1
    is_valid = isinstance(value, int) and 1 <= value <= 8
    return Orientation(value if is_valid else 1, is_decoded=image.format == "TIFF")


def header_problem(header: ImageHeader, stated: Size | None) -> str | None:
    """Say why an image cannot be used, by its header and the size that annotations state."""
    width, height = header.size
    if stated is not None and header.size != stated:
        return f"is {width}x{height}, but its annotations are for {stated[0]}x{stated[1]}"
    most = MOST_UNSTATED if stated is None else MOST
    if width * height > most:
        unless = "" if stated else ", and no annotation states its size"
        return f"is {width}x{height}: more than {most // 10**6} megapixels{unless}"
    if header.mode.startswith(_MORE_THAN_8_BITS):
        return "has more than 8 bits a channel: which of them to show is yours to say; make it 8"
    return None


def image_problem(path: Path | str, stated: Size | None) -> str | None:
    """Say why a file, read to its end, cannot be used: a partial download has a good header."""
    try:
        why = header_problem(read_image_header(path), stated)
        if why is None:
            check_image(path)
    except ImageFileError as error:
        return error.why
    return why


@contextmanager
def _opened(source: Source) -> Iterator[Image.Image]:
    if isinstance(source, io.BytesIO):
        with _explained(source), _open(source) as image:
            yield image
        return
    with _explained(source), open_regular(Path(source)) as file, _open(file) as image:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            why = f"is larger than {MOST_BYTES >> 30} GiB: {size:,} bytes"
            raise ImageFileError(source, why)
        yield image


@contextmanager
def _explained(file: Source) -> Iterator[None]:
    """Raise whatever goes wrong with an image as an ImageFileError that names its file."""
    name = file.path if isinstance(file, ImageBytes) else file
    if isinstance(name, io.BytesIO):
        name = "the image"
    try:
        yield
    except ImageFileError:
        raise
    except FileNotFoundError:
        raise ImageFileError(name, "is missing") from None
    except NotRegularError:
        raise ImageFileError(name, "is not a regular file") from None
    except IsADirectoryError:
        raise ImageFileError(name, "is a folder, not an image") from None
    except Exception as error:  # Pillow raises anything on damaged files
        raise ImageFileError(name, _why(file, error)) from error


_UNLIMITED = Lock()


def _open(file: BinaryIO) -> Image.Image:
    """Open an image of any size; :func:`header_problem` decides whether it is too large."""
    from PIL import Image

    try:
        return Image.open(file, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        with _UNLIMITED:
            before = Image.MAX_IMAGE_PIXELS
            Image.MAX_IMAGE_PIXELS = None
            try:
                return Image.open(file, formats=FORMATS)
            finally:
                Image.MAX_IMAGE_PIXELS = before


def _beginning(file: Source) -> bytes:
    if isinstance(file, io.BytesIO):
        return bytes(file.getbuffer()[:_LOOKED_AT])
    with open_regular(Path(file)) as f:
        return f.read(_LOOKED_AT)


def _why(file: Source, error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        # Servers send error pages with status 200.
        if _beginning(file).lstrip().lower().startswith((b"<!doctype html", b"<html", b"<?xml")):
            return "is a web page, not an image"
        return f"is not an image that can be read ({', '.join(FORMATS)})"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be opened ({error.strerror})"
    line = (str(error).splitlines() or [""])[0] or type(error).__name__
    return f"does not decode ({line})"


# --- a dataset's images, checked before the first call --------------------------------------------


def draw_missing(folder: Folder, drawings: Mapping[str, Callable[[], bytes]]) -> None:
    """Write images made of others, by name, unless they are there, or raise FolderError.

    A source that cannot be read is warned of, once for all.
    """
    unread = []
    for name, draw in drawings.items():
        path = folder.path / name
        if path.is_file():
            continue
        try:
            write_once(path, draw())
            os.utime(path)  # newer than its source, even if unchanged
        except ImageFileError as error:
            unread.append(error)
        except OSError as error:
            raise FolderError(
                f"{path} cannot be written ({error.strerror}): marked images are stored below the "
                f"image folder, which comes from {folder.source}. Make it writable, or name a "
                f"copy: images.{folder.key} in configs/datasets.yaml, or run_findit.py "
                f"--image-root {folder.key}=DIR, or FINDIT_IMAGES={folder.key}=DIR"
            ) from None
    if unread:
        log.warning("%d images cannot be marked; the first: %s", len(unread), unread[0])


class ImageError(ValueError):
    """Images are missing, or not those of the table; the message says what to set."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """A row whose images cannot be sent."""

    index: int
    path: Path
    why: str


# Threads wait together for a network disk. For files at hand they would wait for each other, and
# take three times as long.
_THREADS = 8
_WAITED = 0.0005  # Seconds; a disk is waited for if the quickest of several headers takes longer
_AT_A_TIME = 16  # Images; to hand over a single one costs as much as to read its header


def unusable_rows(queries: Collection[Query], folder: Path) -> list[Unusable]:
    """List the rows with an image that is missing, unreadable, too large, or of another size."""
    # Only headers are read. In an image of another size, boxes would be in wrong pixels.
    stated: list[list[tuple[str, Size | None]]] = []
    for query in queries:
        size = (query.width, query.height) if query.width and query.height else None
        references = [(name, None) for name in query.support]
        stated.append([*references, *((name, size) for name in query.images)])
    # Rows may state several sizes for one image: each is checked.
    images = list(dict.fromkeys(chain.from_iterable(stated)))
    problems = _problems(images, folder)
    bad = []
    for query, shown in zip(queries, stated, strict=True):
        wrong = next((each for each in shown if problems[each]), None)
        if wrong is not None:
            bad.append(Unusable(query.index, folder / wrong[0], str(problems[wrong])))
    return bad


def _problems(
    images: Sequence[tuple[str, Size | None]], folder: Path
) -> dict[tuple[str, Size | None], str | None]:
    """Say why each image cannot be used, by name and stated size; None: it can."""
    problems: dict[tuple[str, Size | None], str | None] = {}
    seconds = []
    for image in images[:_AT_A_TIME]:
        began = time.perf_counter()
        problems[image] = _problem(folder, *image)
        seconds.append(time.perf_counter() - began)
    rest = images[_AT_A_TIME:]
    parts = [rest[at : at + _AT_A_TIME] for at in range(0, len(rest), _AT_A_TIME)]
    if min(seconds, default=0.0) <= _WAITED:
        problems.update((image, _problem(folder, *image)) for image in rest)
        return problems
    with ThreadPoolExecutor(_THREADS) as pool:
        whys = pool.map(lambda part: [_problem(folder, *image) for image in part], parts)
        problems.update(zip(rest, chain.from_iterable(whys), strict=True))
    return problems


def rows_to_leave_out(
    queries: Collection[Query], folder: Folder, skip: bool, limit: int | None = None
) -> frozenset[int]:
    """Return the rows whose images cannot be sent; an ImageError without ``skip`` or other rows.

    No image is looked at behind the first ``limit`` usable rows (None: all are wanted).
    """
    bad: list[Unusable] = []
    seen = 0
    wanted = limit
    waiting = iter(queries)
    while part := list(islice(waiting, wanted)):
        wrong = unusable_rows(part, folder.path)
        bad += wrong
        seen += len(part)
        if wrong and not skip:
            break
        if wanted is not None:
            wanted -= len(part) - len(wrong)
    if bad and (not skip or len(bad) == len(queries)):
        raise unusable_images_error(bad, seen, folder)
    return frozenset(row.index for row in bad)


def _problem(folder: Path, name: str, size: Size | None) -> str | None:
    try:
        return header_problem(known_header(folder / name), size)
    except ImageFileError as error:
        return error.why


def unusable_images_error(bad: list[Unusable], rows: int, folder: Folder) -> ImageError:
    """Make the error for rows whose images cannot be sent."""
    first = bad[0]
    return ImageError(
        f"{len(bad)} of {rows} rows have no usable image; the first is row {first.index}: "
        f"{first.path} {first.why}.\n"
        f"The folder comes from {folder.source}. Set images.{folder.key} in configs/datasets.yaml, "
        f"or run_findit.py --image-root {folder.key}=DIR, or FINDIT_IMAGES={folder.key}=DIR.\n"
        "To leave these rows out (the result says so): --skip-missing-images, or "
        "FINDIT_SKIP_MISSING=1."
    )
