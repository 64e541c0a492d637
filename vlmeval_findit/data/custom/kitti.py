"""Read KITTI's labels: a text file for each image, a type and 14 numbers a line, in pixels."""

from __future__ import annotations

import math
from pathlib import Path

from ..annotated_samples import AnnotationError, Samples
from .annotation_values import written_number
from .collector import Collector
from .reader_options import ReaderOptions

# Truncated, occluded, alpha, x1, y1, x2, y2, and seven numbers in space
_NUMBERS = 14


def is_kitti(line: str) -> bool:
    """Return whether a line of text is one of KITTI's labels, or of its results.

    >>> is_kitti("Car 0.00 0 1.8 10 10 50 50 1 1 1 1 1 1 1"), is_kitti("0 0.5 0.5 0.1 0.1")
    (True, False)
    """
    label, numbers = _parts(line)
    return (
        bool(label) and len(numbers) in (_NUMBERS, _NUMBERS + 1) and all(map(_is_number, numbers))
    )


def _parts(line: str) -> tuple[str, list[str]]:
    """Return the type, which may have blanks, and the words from the first number on."""
    words = line.split()
    first = next((at for at, word in enumerate(words) if _is_number(word)), len(words))
    return " ".join(words[:first]), words[first:]


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def read_kitti(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a label file, or all below a folder; images are called like their label files.

    Boxes are used, and nothing of space.  DontCare is a class that rules say the meaning of.

    Raises an AnnotationError for other lines, and for results, which have a score (datumaro's
    labels have the score 1).
    """
    collector = Collector(path, images, options)
    files = collector.files(path, ".txt", "label file")
    for file in files:
        image = collector.image_of_file(file, [file.stem], "its name", "label file")
        for where, line in collector.lines(file.path):
            _read_line(line, where, image, collector)
    collector.ledger.read("label files", len(files))
    collector.ledger.not_needed("truncated, occluded, angles and sizes in space", str(path))
    return collector.samples()


def _read_line(line: str, where: str, image: str, collector: Collector) -> None:
    label, numbers = _parts(line)
    if len(numbers) == _NUMBERS + 1 and written_number(numbers[-1], where) != 1:
        raise AnnotationError(f"{where}: has a score: these are results of a model, not labels")
    if not label or len(numbers) not in (_NUMBERS, _NUMBERS + 1):
        raise AnnotationError(
            f"{where}: KITTI's labels have a type and {_NUMBERS} numbers, not {line[:60]!r}"
        )
    x1, y1, x2, y2 = (written_number(word, where) for word in numbers[3:7])
    collector.add(image, label, (x1, y1, x2, y2), where)
