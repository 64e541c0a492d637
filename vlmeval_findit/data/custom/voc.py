"""Pascal VOC XML: one file an image, boxes as xmin, ymin, xmax, ymax.

The numbers are used as they stand, as in FindIt's Pascal.  Objects marked as difficult are ignored,
as the challenge ignores them: to find one is neither right nor wrong.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from ...core.image_files import Size
from ..annotated_samples import DIFFICULT, AnnotatedBox, AnnotationError, Samples, detection_samples
from .text import written_number, written_size


def read_voc(folder: Path, images: Path) -> Samples:
    """Read a folder of XML files, or its ``Annotations``, or raise an AnnotationError."""
    inner = folder / "Annotations"
    files = sorted((inner if inner.is_dir() else folder).glob("*.xml"))
    if not files:
        raise AnnotationError(f"{folder}: no XML files there, nor in Annotations")
    sizes: dict[str, Size | None] = {}
    objects: list[tuple[str, AnnotatedBox]] = []
    for file in files:
        root = _root(file)
        name = _text(str(file), root, "filename")
        if name in sizes:
            raise AnnotationError(f"{file}: another file too is about {name}")
        sizes[name] = _size(file, root)
        for at, entry in enumerate(root.iter("object")):
            objects.append((name, _box(f"{file}, object {at}", entry)))
    return detection_samples(folder, images, sizes, objects)


def _root(file: Path) -> ElementTree.Element:
    text = file.read_bytes()
    if b"\0" in text:
        raise AnnotationError(f"{file}: holds zero bytes (UTF-16?): save it as UTF-8")
    if b"<!ENTITY" in text:
        # An entity may stand for more text than memory holds.
        raise AnnotationError(f"{file}: declares entities, which annotations have no use for")
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise AnnotationError(f"{file}: {error}") from None


def _text(where: str, element: ElementTree.Element, path: str) -> str:
    text = (element.findtext(path) or "").strip()
    if not text:
        raise AnnotationError(f"{where}: no <{path}>")
    return text


def _size(file: Path, root: ElementTree.Element) -> Size | None:
    if root.find("size") is None:
        return None
    width, height = (_text(str(file), root, f"size/{side}") for side in ("width", "height"))
    return written_size(width, height, f"{file}, size")


def _box(where: str, entry: ElementTree.Element) -> AnnotatedBox:
    x1, y1, x2, y2 = (
        written_number(_text(where, entry, f"bndbox/{side}"), where)
        for side in ("xmin", "ymin", "xmax", "ymax")
    )
    is_difficult = (entry.findtext("difficult") or "0").strip() == "1"
    ignored = DIFFICULT if is_difficult else ""
    return AnnotatedBox((x1, y1, x2, y2), where, _text(where, entry, "name"), ignored=ignored)
