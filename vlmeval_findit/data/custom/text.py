"""Read text, JSON and numbers of annotations strictly: every refusal names the place."""

from __future__ import annotations

import json
import reprlib
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from ...core.image_files import Size
from ..annotated_samples import AnnotatedBox, AnnotationError, Units

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


# --- numbers --------------------------------------------------------------------------------------


def number(value: object, where: str) -> float:
    """Return a coordinate of JSON, or raise an AnnotationError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is not a number")
    try:
        coordinate = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        coordinate = float("inf")
    if not isfinite(coordinate):
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is not finite")
    return coordinate


def numbers(value: object, where: str, what: str) -> tuple[float, float, float, float]:
    """Return four coordinates of JSON, or raise an AnnotationError that says ``what`` they are."""
    if not isinstance(value, list) or len(value) != 4:
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is not {what}")
    a, b, c, d = (number(item, where) for item in value)
    return a, b, c, d


CORNERS, SIDES = "[x1, y1, x2, y2]", "[x, y, width, height]"


def line_of(value: object, where: str) -> str:
    """Return a text of JSON, on one line and with single blanks, or raise an AnnotationError."""
    if not isinstance(value, str) or not value.strip():
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is no text")
    return " ".join(value.split())


def written_number(text: str, where: str) -> float:
    """Return a coordinate that is written as text, or raise an AnnotationError."""
    try:
        # Python reads 1_0 as 10.
        return number(float(text.replace("_", "x")), where)
    except AnnotationError:
        raise
    except ValueError:
        raise AnnotationError(f"{where}: {reprlib.repr(text)} is not a number") from None


def written_size(width: str, height: str, where: str) -> Size:
    """Return a size in pixels that is written as text, or raise an AnnotationError."""
    sides = [written_number(side, where) for side in (width, height)]
    if not all(side.is_integer() and side >= 1 for side in sides):
        raise AnnotationError(f"{where}: {width}x{height} is not a size in pixels")
    return (int(sides[0]), int(sides[1]))


def state_size(sizes: dict[str, Size], image: str, size: Size, where: str) -> None:
    """Note the stated size of an image, or raise an AnnotationError if it has two."""
    before = sizes.setdefault(image, size)
    if before != size:
        raise AnnotationError(
            f"{where}: {image} is {size[0]}x{size[1]} here, {before[0]}x{before[1]} before"
        )


def units_of(source: Path, boxes: Sequence[AnnotatedBox], stated: Units | None) -> Units:
    """Return the units of boxes in a file that does not tell them.

    Raises an AnnotationError if they are not stated and no number is above 1.
    """
    if stated is not None:
        return stated
    if not boxes or any(abs(n) > 1 for box in boxes for n in box.corners):
        return Units.PIXELS
    raise AnnotationError(
        f"{source}: none of the {len(boxes)} boxes has a number above 1: fractions of the "
        "images, or pixels? Say --units fractions or --units pixels"
    )


# --- files ----------------------------------------------------------------------------------------


def text_of(path: Path) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark.

    Raises:
        AnnotationError: it is a folder, or not such a text; the message names the line.
        OSError: it cannot be opened.
    """
    return "".join(lines_of(path))


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file with their ends; see :func:`text_of`."""
    if path.is_dir():
        raise AnnotationError(f"{path}: is a folder, not a file")
    with path.open("rb") as f:
        for number, line in enumerate(f, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                bad = line.find(b"\0")
            except UnicodeDecodeError as error:
                bad = error.start
            if bad >= 0:
                raise AnnotationError(
                    f"{path}, line {number}: byte {line[bad]:#04x} is no text in UTF-8: save it so"
                )
            yield text


def json_of(text: str, where: str, what: str) -> Any:
    """Parse JSON in which no key stands twice, or raise an AnnotationError.

    ``what`` it should be is for messages.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            key = next(key for key, count in counts.items() if count > 1)
            known = {name: values[name] for name in ("id", "file_name", "name") if name in values}
            which = f" ({known})" if known else ""
            raise AnnotationError(f"{where}: key {key!r} stands twice in an object{which}")
        return values

    try:
        return json.loads(text, object_pairs_hook=unique)
    except AnnotationError:
        raise
    except RecursionError:
        raise AnnotationError(f"{where}: is nested too deeply for {what}") from None
    except ValueError as error:
        raise AnnotationError(f"{where}: not JSON: {error}") from None
