"""Image files as they are stored: measured, decoded, and what is wrong with them as one error.

Every picture that the package reads is opened here, in a format of :data:`FORMATS`, whatever its
file is called.

Pixels, sizes and boxes are those of the *stored* picture, as Pillow opens a file: an EXIF
orientation is not applied.  Of an animation, the first frame is the picture.
"""

from __future__ import annotations

import io
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

Size = tuple[int, int]
"""(width, height) in pixels."""

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000", "PPM")
"""What is opened, by Pillow's names: what datasets have, and what is decoded in this process.
JPEG includes MPO, the pictures of cameras with more than one in a file.

Pillow knows more.  To show EPS it starts Ghostscript, which runs the file as a program.
"""

MOST_UNSTATED = 178_956_970
"""Pixels of a picture whose size no annotation states: where Pillow too takes it for a bomb."""

MOST = 1_000_000_000
"""Pixels of any picture: 3 GB once it is decoded.  VLMEvalKit's own limit."""

_ORIENTATION = 0x0112
"""The EXIF tag that says how a viewer should turn the picture."""

_MORE_THAN_8_BITS = ("I", "F")
"""How Pillow's names of modes begin whose numbers do not fit 8 bits."""


class ImageFileError(OSError):
    """A file that is not a picture that can be shown; ``why`` says it without the path."""

    def __init__(self, path: Path | str, why: str) -> None:
        super().__init__(f"{path} {why}")
        self.why = why


@dataclass(frozen=True, slots=True)
class Header:
    """What the beginning of an image file says.  ``mode`` and ``format`` are Pillow's names."""

    size: Size
    mode: str
    format: str


def header(path: Path | str) -> Header:
    """Read the beginning of an image file; nothing is decoded.

    Raises:
        ImageFileError: there is no image that can be opened.
    """
    with _opened(path) as picture:
        return Header(picture.size, picture.mode, picture.format or "")


def check(path: Path | str) -> None:
    """Read an image file to its end, in less time than it takes to decode it.

    Raises:
        ImageFileError: the file is no image, or damaged anywhere.
    """
    width, height = header(path).size
    # At an eighth of the size a JPEG is still read to its end, in a third of the time.
    decode(path, enough=(max(1, width // 8), max(1, height // 8)))


def decode(path: Path | str, enough: Size | None = None) -> Image.Image:
    """The stored pixels as RGB.

    Args:
        path: the file.
        enough: a size from which on detail may be left out: JPEGs are then decoded in less time.

    Raises:
        ImageFileError: the file is no image, or damaged anywhere.
    """
    with _opened(path) as picture:
        if enough is not None:
            picture.draft("RGB", enough)
        return picture.convert("RGB")


def from_bytes(data: bytes) -> Image.Image:
    """Decode an image file that lies in memory, as RGB.

    Raises:
        ImageFileError: the bytes are no image, or damaged anywhere.
    """
    with _opened(io.BytesIO(data)) as picture:
        return picture.convert("RGB")


def rgb(image: Image.Image) -> Image.Image:
    """Copy an image that somebody else opened with Pillow, as RGB.

    Raises:
        ImageFileError: it is a file that was not decoded yet, of a format that is not taken.
    """
    from PIL import ImageFile

    if isinstance(image, ImageFile.ImageFile) and image.format not in (*FORMATS, "MPO"):
        raise ImageFileError(
            str(image.filename or "the image"),
            f"is {image.format}, which is not one of {', '.join(FORMATS)}: where you trust the "
            "file, give image.convert('RGB')",
        )
    return image.convert("RGB") if image.mode != "RGB" else image.copy()


def orientation(path: Path | str) -> int:
    """The EXIF orientation of a file, 1 to 8; 1 (as stored) where it has none that can be read.

    Raises:
        ImageFileError: there is no image that can be opened.
    """
    with _opened(path) as picture:
        try:
            said = picture.getexif().get(_ORIENTATION, 1)
        except Exception:  # damaged metadata; no viewer turns such a picture
            return 1
    return said if isinstance(said, int) and 1 <= said <= 8 else 1


def misfit(found: Header, stated: Size | None) -> str | None:
    """Why a picture cannot be used, going by its header, or None.

    Args:
        found: the header.
        stated: the size that the annotations are for; None where they state none.
    """
    width, height = found.size
    if stated is not None and found.size != stated:
        return f"is {width}x{height}, but its annotations are for {stated[0]}x{stated[1]}"
    most = MOST_UNSTATED if stated is None else MOST
    if width * height > most:
        unless = "" if stated else ", and no annotation states its size"
        return f"is {width}x{height}: more than {most // 10**6} megapixels{unless}"
    if found.mode.startswith(_MORE_THAN_8_BITS):
        return "has more than 8 bits a channel: which of them to show is yours to say; make it 8"
    return None


def problem(path: Path | str, stated: Size | None) -> str | None:
    """Why a file, read to its end, cannot be used, or None; see :func:`misfit` for ``stated``.

    A header alone says nothing: a download that was cut off has a good one.
    """
    try:
        why = misfit(header(path), stated)
        if why is None:
            check(path)
    except ImageFileError as error:
        return error.why
    return why


@contextmanager
def _opened(source: Path | str | io.BytesIO) -> Iterator[Image.Image]:
    file = source if isinstance(source, io.BytesIO) else Path(source)
    name = file if isinstance(file, Path) else "the image"
    try:
        if isinstance(file, Path) and not stat.S_ISREG(file.stat().st_mode):
            # Nobody may ever write into a queue, and opening it would wait until somebody does.
            is_folder = file.is_dir()
            raise ImageFileError(
                name, "is a folder, not an image" if is_folder else "is no regular file"
            )
        with _open(file) as picture:
            yield picture
    except ImageFileError:
        raise
    except FileNotFoundError:
        raise ImageFileError(name, "is missing") from None
    except Exception as error:  # Pillow's readers raise whatever they meet in a damaged file
        raise ImageFileError(name, _why(file, error)) from error


_UNLIMITED = Lock()


def _open(file: Path | io.BytesIO) -> Image.Image:
    """Open a picture of any size: whether it is too large is decided by :func:`misfit`."""
    from PIL import Image

    try:
        return Image.open(file, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        with _UNLIMITED:
            before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
            try:
                return Image.open(file, formats=FORMATS)
            finally:
                Image.MAX_IMAGE_PIXELS = before


def _why(file: Path | io.BytesIO, error: Exception) -> str:
    from PIL import UnidentifiedImageError

    said = (str(error).splitlines() or [""])[0] or type(error).__name__
    if isinstance(error, UnidentifiedImageError):
        return _what_else(file)
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be opened ({error.strerror})"
    return f"does not decode ({said})"


def _what_else(file: Path | io.BytesIO) -> str:
    """Say what a file is that has none of the formats.

    Servers that ask for a login or are out of order answer with a page, and with status 200.
    """
    with file.open("rb") if isinstance(file, Path) else io.BytesIO(file.getvalue()) as f:
        begin = f.read(512).lstrip().lower()
    if not begin:
        return "is empty"
    if b"<svg" in begin:
        return "is an SVG drawing, which has no pixels"
    if begin.startswith((b"<!doctype html", b"<html", b"<?xml", b"<head")):
        return "is a web page, not an image"
    return f"is not an image that can be read ({', '.join(FORMATS)})"
