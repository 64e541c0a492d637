"""Read VisDrone's labels of images: a text file for each, eight numbers a line."""

from __future__ import annotations

import re
from pathlib import Path

from ..annotated_samples import AnnotationError, BoxForm, Samples
from .annotation_values import written_number
from .collector import Collector
from .reader_options import ReaderOptions

# By their numbers; regions to ignore are 0
_CATEGORIES = (
    "",
    "pedestrian",
    "people",
    "bicycle",
    "car",
    "van",
    "truck",
    "tricycle",
    "awning-tricycle",
    "bus",
    "motor",
    "others",
)
# Left, top, width, height, score, category, truncation, occlusion; some lines end with a comma
_OBJECT = re.compile(r"((?:-?\d+,){4})([\d.]+),(\d+),(-1|[01]),(-1|[0-2]),?")


def is_visdrone(line: str) -> bool:
    """Return whether a line of text is one of VisDrone's labels, or of its results.

    >>> is_visdrone("10,20,100,200,1,4,0,0"), is_visdrone("1,1,794,47,71,174,1,1,0.8")
    (True, False)
    """
    fields = _OBJECT.fullmatch(line.replace(" ", ""))
    return fields is not None and int(fields[3]) < len(_CATEGORIES)


def read_visdrone(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a label file, or all below a folder; images are called like their label files.

    In regions of category 0 no answer counts.  Objects with a score of 0 are ignored, and "others"
    left out, as VisDrone does.

    Raises an AnnotationError for other lines, and for results, which have other scores.
    """
    collector = Collector(path, images, options)
    for file in collector.files(path, ".txt", "label file"):
        image = collector.image_of_file(file, [file.stem], "its name", "label file")
        for where, line in collector.lines(file.path):
            _read_line(line.replace(" ", ""), where, image, collector)
    collector.ledger.not_needed("truncation and occlusion", str(path))
    return collector.samples()


def _read_line(line: str, where: str, image: str, collector: Collector) -> None:
    fields = _OBJECT.fullmatch(line)
    if fields is None or int(fields[3]) >= len(_CATEGORIES):
        raise AnnotationError(
            f"{where}: VisDrone's labels are left,top,width,height,score,category,truncation,"
            f"occlusion, not {line:.60}"
        )
    if fields[2] not in ("0", "1"):
        raise AnnotationError(f"{where}: has a score: these are results of a model, not labels")
    x, y, w, h = (written_number(word, where) for word in fields[1].strip(",").split(","))
    corners = BoxForm.SIDES.corners((x, y, w, h))
    category = _CATEGORIES[int(fields[3])]
    if not category:
        collector.add_region(image, corners, where)
    elif category == "others":
        collector.ledger.leave_out('objects of the category "others"', where)
    else:
        collector.add(image, category, corners, where, {"ignored": fields[2] == "0"})
