"""What stands in the cells of the authors' files: texts, lists as texts, pictures as texts.

TSV and Parquet have been through data frames: what is missing may be a NaN, and numbers may stand
where texts should.
"""

from __future__ import annotations

import ast
import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any

_MISSING = ("", "nan", "<na>")
_NO_ITEM = ("", "none", "null")

_OUR_SHAPES = {
    "mask": "contour",
    "fill_contour": "mask",
    "circle": "oval",
    "number_label": "tag",
    "alphabet_label": "tag",
    "bbox": "box",
    "bounding_box": "box",
    "rectangle": "box",
    "ellipse": "oval",
}
"""Names of the release by ours: what it calls a mask is drawn as a contour."""

_SUFFIXES = {
    b"\xff\xd8\xff": ".jpg",
    b"\x89PNG\r\n\x1a\n": ".png",
    b"GIF8": ".gif",
    b"BM": ".bmp",
    b"II*\0": ".tif",
    b"MM\0*": ".tif",
}
"""How files of pictures begin."""


def text(value: Any) -> str:
    """A cell as text; "" for what is missing, a whole number without its ``.0``.

    >>> text(3.0), text("3.0"), text(float("nan")), text(None), text(" red ")
    ('3', '3', '', '', 'red')
    """
    said = "" if value is None else str(value).strip()
    if said.lower() in _MISSING:
        return ""
    return re.sub(r"^(-?\d+)\.0+$", r"\1", said)


def items(value: Any) -> tuple[str, ...]:
    """A cell that is a list, or says one: as JSON, Python, an array, or with commas.

    >>> items("['box', 'circle']"), items("box, circle"), items("['box' 'circle']"), items("nan")
    (('box', 'circle'), ('box', 'circle'), ('box', 'circle'), ())
    >>> items({"colour": "red"})
    ('colour: red',)
    """
    if isinstance(value, str):
        value = _said(value)
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        value = [f"{name}: {text(one)}" for name, one in value.items()]
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = [value]
    return tuple(said for one in value if (said := text(one)).lower() not in _NO_ITEM)


_MOST = 10_000
"""Characters of a list that is still one."""


def _said(value: str) -> Any:
    value = value.strip()
    if not value.startswith(("[", "(", "{")) or len(value) > _MOST:
        return value.split(",")
    try:
        found = ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return re.findall(r"[^\s,'\"\[\](){}][^,'\"\[\](){}]*", value)
    # ['box' 'circle'], as arrays are printed, is Python for ['boxcircle'].
    return re.findall(r"'([^']*)'", value) if re.search(r"'\s+'", value) else found


def shapes(value: Any) -> tuple[str, ...]:
    """A cell of shapes, by our names; a name that is none of theirs stays.

    >>> shapes("['mask', 'fill_contour', 'circle']")
    ('contour', 'mask', 'oval')
    """
    keys = (re.sub(r"[\s-]+", "_", name.lower()) for name in items(value))
    return tuple(_OUR_SHAPES.get(key, key) for key in keys)


class NoPictureError(ValueError):
    """A cell in which there should be a picture and is none; the message says what is there."""


def picture(value: Any) -> bytes | None:
    """The bytes of a picture's file; None where the cell is empty.

    Args:
        value: base64, bytes, or both in the object that Hugging Face makes of pictures.

    Raises:
        NoPictureError: there is something else.
    """
    if isinstance(value, Mapping):
        value = value.get("bytes")
    if isinstance(value, bytes):
        return value or None
    said = "".join(value.split()) if isinstance(value, str) else text(value)
    if said.lower() in (*_MISSING, *_NO_ITEM):
        return None
    try:
        return base64.b64decode(said.rpartition("base64,")[2], validate=True)
    except (binascii.Error, ValueError) as error:
        raise NoPictureError(f"no base64 ({error})") from None


def suffix(data: bytes) -> str:
    """The ending of a file's name, from its first bytes.

    Raises:
        NoPictureError: they are of no picture.
    """
    for begin, ending in _SUFFIXES.items():
        if data.startswith(begin):
            return ending
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ".webp"
    raise NoPictureError(f"no picture (begins with {data[:8]!r})")
