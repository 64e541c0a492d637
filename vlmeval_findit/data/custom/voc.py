"""Read Pascal VOC XML: a file for each image, boxes as xmin, ymin, xmax, ymax.

The numbers are used as they stand, as in FindIt's Pascal, unless the first pixel is stated to be 1.
Objects marked as difficult are ignored, as in the challenge.  Of several splits one is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from ...boxes import Corners
from ...storage import Size
from ..annotated_samples import AnnotationError, Samples
from .annotation_values import written_number, written_size
from .collector import Collector, ListedFile, listed_files
from .reader_options import ReaderOptions
from .text_encodings import only_text, refuse_attributes_twice
from .uncounted_objects import meaning_of_flag
from .upright_boxes import ROTATED, around_turned

_OF_FILE = frozenset(
    ("folder", "filename", "path", "source", "owner", "size", "segmented", "object", "filetype")
)
_OF_OBJECT = frozenset(
    (
        "name",
        "pose",
        "truncated",
        "occluded",
        "bndbox",
        "attributes",
        "id",
        "color",
    )
)
_SIDES = ("xmin", "ymin", "xmax", "ymax")
_ATTRIBUTES_NOT_NEEDED = frozenset(("occluded", "truncated", "track_id", "keyframe"))


def read_voc(folder: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read XML files: those below ``Annotations``, or those among the images.

    Args:
        folder: has ``Annotations`` and perhaps ``ImageSets/Main``; or XML files among images.
        images: the folder that image names are relative to.
        options: what the files do not tell; its split is read.

    Raises:
        AnnotationError: there are no files, one cannot be used, it is not clear which split or
            which image is meant.
    """
    collector = Collector(folder, images, options)
    inner = folder / "Annotations"
    place = inner if inner.is_dir() else folder
    there = listed_files(place, ".xml", collector.ledger, "XML file")
    if not there:
        raise AnnotationError(f"{place}: no XML files there, nor in Annotations")
    files = collector.files_of_split(folder, there, "XML file")
    reader = _Reader(images, collector)
    for file in files:
        reader.read(file)
        collector.options.progress("XML files", 1)
    reader.note_first_pixel()
    collector.ledger.read("XML files", len(files))
    return collector.samples()


# --- one file -------------------------------------------------------------------------------------


class _Reader:
    """Reads XML files one after the other."""

    def __init__(self, images: Path, collector: Collector) -> None:
        self._images = images
        self._collector = collector
        self._ledger = collector.ledger
        self._first_pixel = collector.options.first_pixel
        self._least: dict[float, int] = {}  # How often 0 and 1 are the least number of a box

    def read(self, file: ListedFile) -> None:
        root = self._collector.xml(file.path)
        where = str(file.path)
        # <filename> may leave out the folder that the XML file lies in.
        stated = only_text(root, "filename", where)
        folder = file.stem.rpartition("/")[0]
        names = [stated, f"{folder}/{stated}"] if folder else [stated]
        size = self._size(root, where)
        name = self._collector.image_of_file(file, names, "<filename>", "XML file", size)
        self._ledger.keys("XML files", _tags(root) - _OF_FILE, frozenset(), where)
        for at, entry in enumerate(root.findall("object")):
            self._read_object(name, f"{where}, object {at}", entry)

    def note_first_pixel(self) -> None:
        """Note files that look as if they count pixels from 1."""
        ones = self._least.get(1.0, 0)
        zeros = self._least.get(0.0, 0)
        if self._first_pixel is None and ones and not zeros:
            self._ledger.note(
                "boxes at pixel 1 and none at 0: do the files count from 1? --voc-from 1 takes 1 "
                "off xmin and ymin",
                str(self._images),
                ones,
            )

    def _size(self, root: Element, where: str) -> Size | None:
        width = only_text(root, "size/width", where)
        height = only_text(root, "size/height", where)
        if root.find("size") is None or {width, height} <= {"", "0", "0.0"}:
            self._ledger.note("images without a stated size: they are measured", where)
            return None
        for side, text in (("width", width), ("height", height)):
            if not text:
                raise AnnotationError(f"{where}: no <size/{side}>")
        return written_size(width, height, f"{where}, size")

    def _read_object(self, image: str, where: str, entry: Element) -> None:
        tags = _tags(entry)
        flags = {tag: only_text(entry, tag, where) for tag in tags if meaning_of_flag(tag)}
        self._ledger.keys("objects", tags - _OF_OBJECT - flags.keys(), frozenset(), where)
        label = only_text(entry, "name", where)
        if not label:
            raise AnnotationError(f"{where}: no <name>")
        attributes = _attributes(entry, where)
        inner = {name: value for name, value in attributes.items() if meaning_of_flag(name)}
        rest = attributes.keys() - {"rotation", *inner}
        self._ledger.keys("attributes of objects", rest, _ATTRIBUTES_NOT_NEEDED, where)
        texts = [only_text(entry, f"bndbox/{side}", where) for side in _SIDES]
        if not all(texts):
            kinds = sorted(tags & {"robndbox", "polygon", "ellipse", "point", "line"})
            has = f", but <{kinds[0]}>, which is not read" if kinds else ""
            why = f"no <bndbox> with xmin, ymin, xmax and ymax{has}"
            self._collector.add_boxless(image, label, why, where)
            return
        corners = self._corners(texts, attributes.get("rotation") or "0", where)
        self._collector.add(image, label, corners, where, flags | inner)

    def _corners(self, texts: Sequence[str], rotation: str, where: str) -> Corners:
        """Return (x1, y1, x2, y2); CVAT turns boxes by degrees, clockwise about their centre."""
        x1, y1, x2, y2 = (written_number(text, where) for text in texts)
        for number in (x1, y1):
            self._least[number] = self._least.get(number, 0) + 1
        first = self._first_pixel or 0
        angle = written_number(rotation, f"{where}, rotation") % 360
        if angle:
            self._ledger.note(ROTATED, where)
        return around_turned((x1 - first, y1 - first, x2, y2), angle)


def _attributes(entry: Element, where: str) -> dict[str, str]:
    """Return the attributes of an object, as CVAT writes them, by their names."""
    stated = entry.findall("attributes/attribute")
    names = [only_text(each, "name", where) for each in stated]
    refuse_attributes_twice(names, where)
    return {name: only_text(each, "value", where) for name, each in zip(names, stated, strict=True)}


def _tags(element: Element) -> set[str]:
    return {child.tag for child in element}
