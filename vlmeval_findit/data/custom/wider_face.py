"""Read WIDER FACE's list: the name of an image, a count, and so many faces, a line each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..annotated_samples import AnnotationError, BoxForm, Samples
from .annotation_values import written_number
from .collector import Collector
from .reader_options import ReaderOptions

_FACE = "face"
_NAME = re.compile(r"\S.*\.(?:jpe?g|png)", re.IGNORECASE)
# x y w h, then attributes, of which the fourth says that a face is invalid
_ATTRIBUTES = ("blur", "expression", "illumination", "invalid", "occlusion", "pose")
_ROW = re.compile(rf"-?\d+(?:\s+-?\d+){{{3 + len(_ATTRIBUTES)}}}")


def is_wider(lines: Sequence[str]) -> bool:
    """Return whether a text begins like a list of WIDER FACE.

    >>> is_wider(["0--Parade/a.jpg", "1", "10 20 100 200 0 0 0 0 0 0 "])
    True
    """
    if len(lines) < 3:
        return False
    name, count, row = (line.strip() for line in lines[:3])
    return bool(_NAME.fullmatch(name) and count.isdigit() and _ROW.fullmatch(row))


def read_wider(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a list; invalid faces do not count, and a count of 0 has a row of zeros behind it.

    Raises an AnnotationError for lines in another order.
    """
    collector = Collector(path, images, options)
    lines = collector.lines(path)
    for where, name in lines:
        count = next(lines, (where, ""))[1]
        if not _NAME.fullmatch(name) or not count.isdigit():
            raise AnnotationError(f"{where}: should be the name of an image, and a count below it")
        image = collector.image(name, where)
        for _ in range(max(int(count), 1)):
            there, row = next(lines, (where, "the end of the file"))
            if not _ROW.fullmatch(row):
                wanted = f"x y w h {' '.join(_ATTRIBUTES)}"
                raise AnnotationError(f"{there}: should be {wanted}, not {row:.60}")
            if int(count):
                _read_row(row.split(), there, image, collector)
    others = ", ".join(each for each in _ATTRIBUTES if each != "invalid")
    collector.ledger.not_needed(others, str(path))
    return collector.samples()


def _read_row(words: Sequence[str], where: str, image: str, collector: Collector) -> None:
    x, y, w, h = (written_number(word, where) for word in words[:4])
    flags = dict(zip(_ATTRIBUTES, words[4:], strict=True))
    collector.add(image, _FACE, BoxForm.SIDES.corners((x, y, w, h)), where, flags)
