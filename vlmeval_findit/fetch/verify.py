"""Whether a file is the image that the annotations are for: decoded to its last row, and its size.

A header alone says nothing: a download that was cut off has a good one.
"""

from __future__ import annotations

import warnings
from pathlib import Path

Size = tuple[int, int]
"""(width, height) in pixels."""


def problem(path: Path, size: Size | None) -> str | None:
    """Why a file cannot be used, or None when it can.

    Args:
        path: the file; its name does not matter.
        size: the size of the image that the annotations are for; None where it is not known.
    """
    if not path.is_file():
        return "is missing"
    page = _page(path)
    if page:
        return page
    from PIL import Image

    try:
        with warnings.catch_warnings(), Image.open(path) as picture:
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            actual = picture.size
            # At an eighth of the size a JPEG is still read to its end, in a third of the time.
            picture.draft(None, (max(1, actual[0] // 8), max(1, actual[1] // 8)))
            picture.load()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        return f"does not decode ({_first_line(error)})"
    except Image.DecompressionBombWarning as error:
        return f"is too large for an image ({_first_line(error)})"
    if size is not None and actual != size:
        return f"is {actual[0]}x{actual[1]}, but its annotations are for {size[0]}x{size[1]}"
    return None


def _page(path: Path) -> str | None:
    """Servers that ask for a login or are out of order answer with a page, and with status 200."""
    with path.open("rb") as f:
        begin = f.read(512).lstrip().lower()
    if not begin:
        return "is empty"
    if begin.startswith((b"<!doctype html", b"<html", b"<?xml", b"<head")):
        return "is a web page, not an image"
    return None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
