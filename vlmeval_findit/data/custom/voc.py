"""Read Pascal VOC XML: a file for each image, boxes as xmin, ymin, xmax, ymax.

The numbers are used as they stand, as in FindIt's Pascal, unless the first pixel is stated to be 1.
Objects marked as difficult are ignored, as in the challenge.  Of several splits one is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

from ...boxes import Corners
from ...core import open_regular, shown, suffix_of
from ...storage import Size
from ..annotated_samples import CROWD, DIFFICULT, IGNORED, AnnotatedBox, AnnotationError, Samples
from ..ledger import Ledger
from .annotation_values import IMAGE_SUFFIXES, text_of, written_number, written_size
from .detection import Detections, detection_samples
from .found_files import files_below
from .image_names import ImageNames
from .reader_options import ReaderOptions
from .splits import chosen_split, names_a_split
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
        "difficult",
        "iscrowd",
        "ignore",
        "ignored",
    )
)
# What says that an object does not count
_FLAGS = {"difficult": DIFFICULT, "iscrowd": CROWD, "ignore": IGNORED, "ignored": IGNORED}
_ATTRIBUTES_NOT_NEEDED = frozenset(("occluded", "truncated", "track_id", "keyframe"))


@dataclass(frozen=True, slots=True)
class _XmlFile:
    """An annotation file, and its path without suffix below the folder of annotations."""

    path: Path
    stem: PurePosixPath


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
    options = options or ReaderOptions()
    ledger = Ledger()
    inner = folder / "Annotations"
    files = _files_of_split(
        folder, _xml_files(inner if inner.is_dir() else folder, ledger), options, ledger
    )
    reader = _Reader(images, options, ledger)
    for file in files:
        reader.read(file)
        options.progress("XML files", 1)
    reader.note_first_pixel()
    ledger.read("XML files", len(files))
    detections = Detections(folder, images, reader.sizes, reader.objects, classes=())
    return detection_samples(detections, options, ledger)


# --- files ----------------------------------------------------------------------------------------


def _xml_files(folder: Path, ledger: Ledger) -> list[_XmlFile]:
    files = []
    for path in files_below(folder, ledger):
        if suffix_of(path) == ".xml":
            stem = PurePosixPath(path.relative_to(folder).with_suffix("").as_posix())
            files.append(_XmlFile(path, stem))
        elif suffix_of(path) not in IMAGE_SUFFIXES:
            kind = path.suffix or "without a suffix"
            ledger.not_read(f"files {kind} among XML files", str(path))
    if not files:
        raise AnnotationError(f"{folder}: no XML files there, nor in Annotations")
    return files


def _files_of_split(
    folder: Path, files: Sequence[_XmlFile], options: ReaderOptions, ledger: Ledger
) -> list[_XmlFile]:
    """Return the files of the chosen split; all of them, where there are no splits."""
    stems = {str(file.stem) for file in files}
    splits = _listed_splits(folder, stems) or _folders_of_splits(files)
    if not splits:
        if options.split is not None:
            raise AnnotationError(f"{folder}: no splits here. Leave --split out")
        return list(files)
    split = chosen_split(folder, splits, options.split)
    wanted = splits[split]
    chosen = [file for file in files if str(file.stem) in wanted]
    for file in files:
        if str(file.stem) not in wanted:
            ledger.leave_out(f"XML files not of the split {split}", str(file.path))
    for name in sorted(wanted - stems):
        ledger.leave_out(f"images of the split {split} without an XML file", name)
    if not chosen:
        raise AnnotationError(f"{folder}: no XML file is of the split {split}")
    return chosen


def _listed_splits(folder: Path, known: Set[str]) -> dict[str, set[str]]:
    """Return the stems that ImageSets/Main lists by split; lists of classes have other names."""
    lists = folder / "ImageSets" / "Main"
    splits = {}
    for path in sorted(lists.glob("*.txt")) if lists.is_dir() else ():
        if names_a_split(path.stem):
            lines = (line.strip() for line in text_of(path).splitlines())
            splits[path.stem] = {_listed_stem(line, known) for line in lines if line}
    return splits


def _listed_stem(line: str, known: Set[str]) -> str:
    """Return the stem that a line names: all of it, or without the 1, 0 or -1 of a class behind it.

    >>> _listed_stem("cam 2/f 1", {"cam 2/f 1"}), _listed_stem("000005  -1", {"000005"})
    ('cam 2/f 1', '000005')
    """
    whole = _without_suffix(line.strip("\"'"))
    if whole in known:
        return whole
    name, _, flag = line.rpartition(" ")
    return _without_suffix(name.strip()) if name and flag in ("1", "0", "-1") else whole


def _without_suffix(name: str) -> str:
    path = PurePosixPath(name)
    return str(path.with_suffix("")) if suffix_of(path) in IMAGE_SUFFIXES else name


def _folders_of_splits(files: Sequence[_XmlFile]) -> dict[str, set[str]]:
    """Return the stems by the split that the first folder is called like, as Roboflow has it."""
    splits: dict[str, set[str]] = {}
    for file in files:
        splits.setdefault(file.stem.parts[0], set()).add(str(file.stem))
    is_split = all(len(file.stem.parts) > 1 for file in files)
    return splits if is_split and any(map(names_a_split, splits)) else {}


# --- one file -------------------------------------------------------------------------------------


class _Reader:
    """Reads XML files one after the other."""

    def __init__(self, images: Path, options: ReaderOptions, ledger: Ledger) -> None:
        self.sizes: dict[str, Size | None] = {}
        self.objects: list[tuple[str, AnnotatedBox]] = []
        self._images = images
        self._names = ImageNames(images, ledger)
        self._by_stem = _images_by_stem(images, ledger)
        self._first_pixel = options.first_pixel
        self._ledger = ledger
        self._least: dict[float, int] = {}  # How often 0 and 1 are the least number of a box

    def read(self, file: _XmlFile) -> None:
        try:
            with open_regular(file.path) as stream:
                root = ElementTree.parse(stream).getroot()
        except (ElementTree.ParseError, ValueError) as error:
            raise AnnotationError(f"{file.path}: not XML: {error}") from None
        where = str(file.path)
        name = self._image_of(file, (root.findtext("filename") or "").strip())
        if name in self.sizes:
            raise AnnotationError(f"{where}: another file is about {name}, too")
        self.sizes[name] = self._size(root, where)
        self._ledger.keys("XML files", _tags(root) - _OF_FILE, frozenset(), where)
        for at, entry in enumerate(root.findall("object")):
            self.objects.append((name, self._box(f"{where}, object {at}", entry)))

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

    def _image_of(self, file: _XmlFile, stated: str) -> str:
        """Return the name of the image of a file: its <filename> and its name must agree."""
        of_stem = self._by_stem.get(str(file.stem), [])
        folder = file.stem.parent.as_posix()
        # <filename> may leave out the folder that the XML file lies in.
        names = [stated, f"{folder}/{stated}"] if folder != "." else [stated]
        of_name = [name for name in names if stated and (self._images / name).is_file()]
        if of_name and of_stem and not {*of_name} & {*of_stem}:
            raise AnnotationError(
                f"{file.path}: <filename> is {stated}, but the file is called like "
                f"{of_stem[0]}: which image is meant? Correct <filename>, or rename the file"
            )
        both = [name for name in of_name if name in of_stem] or of_name
        if both:
            return both[0]
        if len(of_stem) > 1:
            raise AnnotationError(
                f"{file.path}: which image is meant, {' or '.join(of_stem)}? <filename> is "
                f"{stated or 'empty'}"
            )
        if of_stem:
            what = "images called like their XML file, not as <filename> says"
            if PurePosixPath(stated).stem != PurePosixPath(of_stem[0]).stem:
                self._ledger.note(what, f"{file.path}: {stated or 'empty'}, taken: {of_stem[0]}")
            return of_stem[0]
        if not stated:
            raise AnnotationError(f"{file.path}: no <filename>, and no image of this name")
        return self._names.find(stated, str(file.path))

    def _size(self, root: ElementTree.Element, where: str) -> Size | None:
        width = root.findtext("size/width", "").strip()
        height = root.findtext("size/height", "").strip()
        if root.find("size") is None or {width, height} <= {"", "0", "0.0"}:
            self._ledger.note("images without a stated size: they are measured", where)
            return None
        for side, text in (("width", width), ("height", height)):
            if not text:
                raise AnnotationError(f"{where}: no <size/{side}>")
        return written_size(width, height, f"{where}, size")

    def _box(self, where: str, entry: ElementTree.Element) -> AnnotatedBox:
        self._ledger.keys("objects", _tags(entry) - _OF_OBJECT, frozenset(), where)
        label = (entry.findtext("name") or "").strip()
        if not label:
            raise AnnotationError(f"{where}: no <name>")
        corners, problem = self._corners(where, entry)
        reasons = [why for tag, why in _FLAGS.items() if _is_true(entry, tag, where)]
        ignored = reasons[0] if reasons else ""
        return AnnotatedBox(corners, where, label, ignored=ignored, problem=problem)

    def _corners(self, where: str, entry: ElementTree.Element) -> tuple[Corners, str]:
        """Return (x1, y1, x2, y2), and why they cannot be used."""
        texts = [
            (entry.findtext(f"bndbox/{side}") or "").strip()
            for side in ("xmin", "ymin", "xmax", "ymax")
        ]
        if not all(texts):
            kinds = sorted(_tags(entry) & {"robndbox", "polygon", "ellipse", "point", "line"})
            has = f", but <{kinds[0]}>, which is not read" if kinds else ""
            return (math.nan,) * 4, f"no <bndbox> with xmin, ymin, xmax and ymax{has}"
        x1, y1, x2, y2 = (written_number(text, where) for text in texts)
        for number in (x1, y1):
            self._least[number] = self._least.get(number, 0) + 1
        first = self._first_pixel or 0
        corners = (x1 - first, y1 - first, x2, y2)
        angle = self._angle(where, entry)
        if angle:
            self._ledger.note(ROTATED, where)
        return around_turned(corners, angle), ""

    def _angle(self, where: str, entry: ElementTree.Element) -> float:
        """Return the angle in degrees by which CVAT turned a box, clockwise about its centre."""
        attributes = {
            (each.findtext("name") or "").strip(): (each.findtext("value") or "").strip()
            for each in entry.findall("attributes/attribute")
        }
        rest = attributes.keys() - {"rotation"}
        self._ledger.keys("attributes of objects", rest, _ATTRIBUTES_NOT_NEEDED, where)
        angle = written_number(attributes.get("rotation") or "0", f"{where}, rotation")
        return angle % 360


def _images_by_stem(folder: Path, ledger: Ledger) -> Mapping[str, list[str]]:
    """Return the images below a folder by their paths without suffix."""
    by_stem: dict[str, list[str]] = {}
    for path in files_below(folder, ledger) if folder.is_dir() else ():
        if suffix_of(path) in IMAGE_SUFFIXES:
            name = path.relative_to(folder)
            by_stem.setdefault(name.with_suffix("").as_posix(), []).append(name.as_posix())
    return by_stem


def _tags(element: ElementTree.Element) -> set[str]:
    return {child.tag for child in element}


def _is_true(entry: ElementTree.Element, tag: str, where: str) -> bool:
    text = (entry.findtext(tag) or "").strip().lower()
    if text in ("1", "true", "yes"):
        return True
    if text in ("", "0", "false", "no", "unspecified"):
        return False
    raise AnnotationError(f"{where}, {tag}: {shown(text, 40)} should be 0 or 1")
