"""Read Pascal VOC XML: a file for each image, boxes as xmin, ymin, xmax, ymax.

The numbers are used as they stand, as in FindIt's Pascal.  Objects marked as difficult are ignored,
as in the challenge.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from ...core.files import suffix_of
from ...core.image_files import Size
from ..annotated_samples import DIFFICULT, AnnotatedBox, AnnotationError, Samples
from ..ledger import Ledger
from .annotation_values import written_number, written_size
from .detection import Detections, detection_samples
from .reader_options import ReaderOptions


def read_voc(folder: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a folder of XML files, or its ``Annotations``, or raise an AnnotationError."""
    ledger = Ledger()
    inner = folder / "Annotations"
    there = sorted((inner if inner.is_dir() else folder).glob("*"))
    files = [path for path in there if suffix_of(path) == ".xml"]
    if not files:
        raise AnnotationError(f"{folder}: no XML files there, nor in Annotations")
    sizes: dict[str, Size | None] = {}
    objects: list[tuple[str, AnnotatedBox]] = []
    for file in files:
        try:
            root = ElementTree.parse(file).getroot()
        except (ElementTree.ParseError, ValueError) as error:
            raise AnnotationError(f"{file}: {error}") from None
        name = _voc_text(str(file), root, "filename")
        if name in sizes:
            raise AnnotationError(f"{file}: another file too is about {name}")
        sizes[name] = None
        if root.find("size") is not None:
            w, h = (_voc_text(str(file), root, f"size/{side}") for side in ("width", "height"))
            sizes[name] = written_size(w, h, f"{file}, size")
        for at, entry in enumerate(root.iter("object")):
            objects.append((name, _voc_box(f"{file}, object {at}", entry)))
    found = Detections(folder, images, sizes, objects, classes=())
    return detection_samples(found, options or ReaderOptions(), ledger)


def _voc_text(where: str, element: ElementTree.Element, path: str) -> str:
    text = (element.findtext(path) or "").strip()
    if not text:
        raise AnnotationError(f"{where}: no <{path}>")
    return text


def _voc_box(where: str, entry: ElementTree.Element) -> AnnotatedBox:
    x1, y1, x2, y2 = (
        written_number(_voc_text(where, entry, f"bndbox/{side}"), where)
        for side in ("xmin", "ymin", "xmax", "ymax")
    )
    ignored = DIFFICULT if (entry.findtext("difficult") or "").strip() == "1" else ""
    return AnnotatedBox((x1, y1, x2, y2), where, _voc_text(where, entry, "name"), ignored=ignored)
