"""Read DOTA's labels: a text file for each image, four corners, a category and a flag a line."""

from __future__ import annotations

import re
from pathlib import Path

from ..annotated_samples import AnnotationError, Samples
from .annotation_values import written_number
from .collector import Collector
from .reader_options import ReaderOptions
from .upright_boxes import ROTATED, around_points

_HEADER = re.compile(r"(?:imagesource|gsd)\s*:.*", re.IGNORECASE)
_OBJECT = re.compile(r"((?:-?[\d.]+\s+){8})([^\W\d]\S*)(?:\s+(\d))?\s*")


def is_dota(line: str) -> bool:
    """Return whether a line of text is one of DOTA's labels.

    >>> is_dota("gsd:0.1"), is_dota("1.0 2.0 3.0 2.0 3.0 4.0 1.0 4.0 large-vehicle 0")
    (True, True)
    """
    return bool(_HEADER.fullmatch(line) or _OBJECT.fullmatch(line))


def read_dota(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a label file, or all below a folder; images are called like their label files.

    Boxes become the upright boxes around their corners.  Difficult objects do not count.

    Raises an AnnotationError for other lines.
    """
    collector = Collector(path, images, options)
    for file in collector.files(path, ".txt", "label file"):
        image = collector.image_of_file(file, [file.stem], "its name", "label file")
        for where, line in collector.lines(file.path):
            if _HEADER.fullmatch(line):
                collector.ledger.not_needed("source and resolution of images", where)
            else:
                _read_line(line, where, image, collector)
    return collector.samples()


def _read_line(line: str, where: str, image: str, collector: Collector) -> None:
    fields = _OBJECT.fullmatch(line)
    if fields is None:
        raise AnnotationError(
            f"{where}: DOTA's labels are x1 y1 x2 y2 x3 y3 x4 y4 category difficult, not {line:.60}"
        )
    numbers = [written_number(word, where) for word in fields[1].split()]
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    corners = around_points(points)
    x1, y1, x2, y2 = corners
    if {*points} != {(x1, y1), (x2, y1), (x2, y2), (x1, y2)}:
        collector.ledger.note(ROTATED, where)
    collector.add(image, fields[2], corners, where, {"difficult": fields[3]})
