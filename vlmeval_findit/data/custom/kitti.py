"""Read KITTI's labels: a text file for each image, a type and 14 numbers a line, in pixels."""

from __future__ import annotations

import math
from pathlib import Path

from ...core import suffix_of
from ..annotated_samples import AnnotationError, Samples
from .annotation_values import IMAGE_SUFFIXES, text_of, written_number
from .collected import Collected
from .found_files import files_below
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
    collected = Collected(path, images, options)
    root = path if path.is_dir() else path.parent
    files = [path]
    if path.is_dir():
        below = files_below(path, collected.ledger)
        files = [file for file in below if suffix_of(file) == ".txt"]
        for file in below:
            if file not in files and not file.is_relative_to(images):
                collected.ledger.not_read(f"files {file.suffix} among label files", str(file))
    for file in files:
        name = file.relative_to(root).with_suffix("").as_posix()
        image = collected.image(_with_suffix(images, name), str(file))
        for at, line in enumerate(text_of(file).splitlines(), 1):
            if line.strip():
                _read_line(line, f"{file}, line {at}", image, collected)
    collected.ledger.read("label files", len(files))
    collected.ledger.not_needed("truncated, occluded, angles and sizes in space", str(path))
    return collected.samples()


def _with_suffix(images: Path, name: str) -> str:
    """Return the image of a name without a suffix; the name, if there is none, or several."""
    there = [suffix for suffix in sorted(IMAGE_SUFFIXES) if (images / (name + suffix)).is_file()]
    return name + there[0] if len(there) == 1 else name


def _read_line(line: str, where: str, image: str, collected: Collected) -> None:
    label, numbers = _parts(line)
    if len(numbers) == _NUMBERS + 1 and written_number(numbers[-1], where) != 1:
        raise AnnotationError(f"{where}: has a score: these are results of a model, not labels")
    if not label or len(numbers) not in (_NUMBERS, _NUMBERS + 1):
        raise AnnotationError(
            f"{where}: KITTI's labels have a type and {_NUMBERS} numbers, not {line[:60]!r}"
        )
    x1, y1, x2, y2 = (written_number(word, where) for word in numbers[3:7])
    collected.add(image, label, (x1, y1, x2, y2), where)
