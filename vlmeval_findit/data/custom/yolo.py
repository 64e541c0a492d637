"""A YOLO folder: images, a label file for each, and ``data.yaml`` or ``classes.txt``.

A line of a label file is ``class cx cy width height``, fractions of the image's width and height;
``class x1 y1 x2 y2 x3 y3 …``, an outline or a turned box; or a box with key points.
Labels lie in the folder of the images, or in a folder ``labels`` where the images have ``images``.
Of several splits one is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...boxes import Corners
from ...core import suffix_of
from ..annotated_samples import AnnotationError, Samples, Units
from ..ledger import Ledger
from .annotation_values import IMAGE_SUFFIXES, text_of, written_number
from .class_rules import label_text
from .collector import Collector
from .found_files import files_below
from .image_names import ImageNames, NameIndex, decode_name
from .reader_options import ReaderOptions
from .shapes import around_points
from .splits import chosen_split, names_a_split, split_by_folders
from .yolo_data import DATA_FILES, YoloData, find_yolo_data

# Text files among labels that are none, in lower case
_NO_LABELS = ("notes.txt", "readme.txt", "train.txt", "val.txt", "test.txt")

_OUTLINES = "outlines and turned boxes that became the upright boxes around them"


@dataclass(frozen=True, slots=True)
class _LabelledFolder:
    """A folder of images, and the folder with their labels."""

    images: Path
    labels: Path


def read_yolo(folder: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read the label files of one split of a folder; each needs its image.

    An image without a label file, or with an empty file, shows no object of any class.

    Outlines and turned boxes become the upright boxes around them; of poses the box is read.

    Args:
        folder: has the labels, or splits that have them, and what the classes are called; or the
            data.yaml that says so.
        images: where the images lie, if not where the layout says.
        options: what the files do not tell; its split is read.

    Raises:
        AnnotationError: no classes, no labels, a split that is not clear, another number of
            numbers, outlines that may be poses, or two images that a label file may be about.
    """
    options = options or ReaderOptions()
    ledger = Ledger()
    data = find_yolo_data(folder, ledger)
    if folder.is_file():
        folder = folder.parent
    names = {number: label_text(name) for number, name in data.names.items()}
    pairs, is_split = _pairs(folder, images, data, options, ledger)
    labelled = {image: label for image, label in pairs.items() if label is not None}
    if not labelled:
        raise AnnotationError(f"{folder}: no label files (*.txt)")
    root = _common_folder([images, folder], pairs)
    collector = Collector(folder, root, options, Units.FRACTIONS, ledger=ledger)
    collector.split_is_chosen = is_split
    poses = _PossiblePoses()
    for image, label in pairs.items():
        name = collector.image(Path(os.path.relpath(image, root)).as_posix(), image)
        if label is None:
            ledger.note("images without a label file: nothing to find", str(image))
            continue
        for at, line in enumerate(text_of(label).splitlines(), 1):
            if line.strip():
                where = f"{label}, line {at}"
                number, fields = _read_line(where, line, names)
                corners = _corners(where, fields, data, ledger)
                collector.add(name, names[number], corners, where)
                poses.look_at(where, fields)
        options.progress("label files", 1)
    if data.keypoints is None:
        poses.refuse(data.file)
    ledger.read("label files", len(labelled))
    return collector.samples(classes=list(dict.fromkeys(names.values())))


def _common_folder(roots: Sequence[Path], images: Iterable[Path]) -> Path:
    """Return the first folder that all images lie below."""
    paths = list(images)
    for root in roots:
        if all(path.is_relative_to(root) for path in paths):
            return root
    return Path(os.path.commonpath([path.parent for path in paths]))


# --- images and their labels ----------------------------------------------------------------------


def _pairs(
    folder: Path, images: Path, data: YoloData, options: ReaderOptions, ledger: Ledger
) -> tuple[dict[Path, Path | None], bool]:
    """Return the label file of every image (None: it has none), and whether it is of a split."""
    if data.splits:
        split = chosen_split(data.file, list(data.splits), options.split)
        _refuse_training(data, split, options.split)
        places = [
            _labelled_folder(path, folder, images) for path in data.splits[split] if path.is_dir()
        ]
        listed = [path for path in data.splits[split] if path.is_file()]
        for other in data.splits.keys() - {split}:
            for path in data.splits[other]:
                _leave_out(f"label files of the split {other}", _label_path(path), ledger)
        pairs = _pairs_in_folders(places, ledger)
        for file in listed:
            pairs |= _pairs_of_list(file, folder, ledger)
        return pairs, True
    splits = _folders_of_splits(folder, images, options.split)
    if splits:
        split = chosen_split(folder, splits, options.split)
        for other in splits.keys() - {split}:
            _leave_out(f"label files of the split {other}", splits[other].labels, ledger)
        return _pairs_in_folders([splits[split]], ledger), True
    place = _unsplit_folder(folder, images)
    pairs = _pairs_in_folders([place], ledger)
    names = (image.relative_to(place.images).as_posix() for image in pairs)
    if options.split is not None and not split_by_folders(names):
        raise AnnotationError(f"{folder}: no splits here. Leave --split out")
    return pairs, False


def _leave_out(what: str, path: Path, ledger: Ledger) -> None:
    """Count the label files of a folder, or the images of a list."""
    if path.is_dir():
        count = len(dict(_label_files(path, (), Ledger())))
    elif path.is_file():
        count = len(text_of(path).split())
    else:
        count = 1
    ledger.leave_out(what, str(path), count)


def _refuse_training(data: YoloData, split: str, stated: str | None) -> None:
    """Refuse a validation split that is the training split, unless it was asked for."""
    training = {path.resolve() for path in data.splits.get("train", ())}
    if stated is None and split != "train" and training & {*data.splits[split]}:
        raise AnnotationError(
            f"{data.file}: {split} and train are the same images, which models are trained on; to "
            f"score them, type --split {split}"
        )


def _labelled_folder(images: Path, folder: Path, stated: Path) -> _LabelledFolder:
    """Return the place of a folder of images that data.yaml names."""
    if (images / "images").is_dir() and (images / "labels").is_dir():
        return _LabelledFolder(images / "images", images / "labels")
    labels = _label_path(images)
    if not labels.is_dir():
        labels = images
    root = (folder / "images").resolve()
    if stated != folder / "images" and stated != folder and images.is_relative_to(root):
        # --image-root: the images lie elsewhere, in the same folders.
        return _LabelledFolder(stated / images.relative_to(root), labels)
    return _LabelledFolder(images, labels)


def _label_path(path: Path) -> Path:
    """Return a path with the last folder called images replaced by labels.

    >>> _label_path(Path("a/images/val/images/x.jpg")).as_posix()
    'a/images/val/labels/x.jpg'
    """
    parts = list(path.parts)
    places = [at for at, part in enumerate(parts) if part == "images"]
    if places:
        parts[places[-1]] = "labels"
    return Path(*parts)


def _folders_of_splits(
    folder: Path, images: Path, stated: str | None
) -> dict[str, _LabelledFolder]:
    """Return the splits by the names of folders: labels/val, or val/labels."""
    labels = folder / "labels"
    if labels.is_dir():
        there = {path.name for path in labels.iterdir() if path.is_dir()}
        if any(map(names_a_split, there)) or stated in there:
            return {name: _LabelledFolder(images / name, labels / name) for name in sorted(there)}
        return {}
    inner = [path for path in sorted(folder.iterdir()) if (path / "labels").is_dir()]
    return {path.name: _LabelledFolder(path / "images", path / "labels") for path in inner}


def _unsplit_folder(folder: Path, images: Path) -> _LabelledFolder:
    labels = folder / "labels"
    return _LabelledFolder(images, labels) if labels.is_dir() else _LabelledFolder(folder, folder)


def _pairs_in_folders(places: Sequence[_LabelledFolder], ledger: Ledger) -> dict[Path, Path | None]:
    pairs: dict[Path, Path | None] = {}
    for place in places:
        pairs |= _pairs_in_folder(place, ledger)
    return pairs


def _pairs_in_folder(place: _LabelledFolder, ledger: Ledger) -> dict[Path, Path | None]:
    """Pair the images and the label files of two folders by their paths without suffix."""
    if not place.images.is_dir():
        raise AnnotationError(f"{place.images}: not a folder. Name it: --image-root DIR")
    images: dict[Path, list[Path]] = {}
    for path in files_below(place.images, ledger):
        if suffix_of(path) in IMAGE_SUFFIXES:
            images.setdefault(path.relative_to(place.images).with_suffix(""), []).append(path)
        elif place.images != place.labels:
            ledger.not_read(f"files {path.suffix or 'without a suffix'} among images", str(path))
    files = dict(_label_files(place.labels, images, ledger))
    labels = _labels_by_image(files, images, ledger)
    for stem, label in labels.items():
        there = images.get(stem, [])
        if not there:
            suffixes = ", ".join(sorted(IMAGE_SUFFIXES))
            raise AnnotationError(f"{label}: no image {place.images / stem} ({suffixes})")
        if len(there) > 1:
            raise AnnotationError(
                f"{label}: which image is it about, {' or '.join(path.name for path in there)}? "
                "Rename one, with its labels"
            )
    pairs: dict[Path, Path | None] = {}
    for stem, there in images.items():
        pairs |= dict.fromkeys(there, labels.get(stem))
    return pairs


def _labels_by_image(
    labels: Mapping[Path, Path], images: Mapping[Path, Sequence[Path]], ledger: Ledger
) -> dict[Path, Path]:
    """Return label files by the paths of their images, whose names Label Studio encodes."""
    by_image = dict(labels)
    index = NameIndex(stem.as_posix() for stem in images)
    for stem, label in labels.items():
        if stem in images:
            continue
        plain = Path(decode_name(stem.as_posix()))
        alike = [Path(name) for name in index.like(stem.as_posix())]
        for meant, how in ((plain, "are encoded"), *((name, "differ") for name in alike[:1])):
            if meant in images and meant not in labels and len(alike) < 2:
                more = " in Unicode or letter case" if how == "differ" else ""
                ledger.note(f"images whose names {how}{more}", f"{label}: {meant}")
                by_image[meant] = by_image.pop(stem)
                break
    return by_image


def _label_files(
    folder: Path, images: Collection[Path], ledger: Ledger
) -> Iterator[tuple[Path, Path]]:
    """Yield label files by their paths without suffix.

    A text that is called like an image is its label file; only others may be something else.
    ``images`` are the paths of images without their suffix.
    """
    for path in files_below(folder, ledger):
        stem = path.relative_to(folder).with_suffix("")
        name = path.name.lower()
        is_special = name in (*_NO_LABELS, *DATA_FILES) or name.startswith("readme.")
        if suffix_of(path) != ".txt":
            if suffix_of(path) not in IMAGE_SUFFIXES and path.name not in DATA_FILES:
                kind = path.suffix or "without a suffix"
                ledger.not_read(f"files {kind} among label files", str(path))
        elif is_special and (stem not in images or _lists_something(path)):
            if path.name not in DATA_FILES:  # Those were read before
                ledger.not_needed("texts that are no labels", str(path))
            elif stem in images:
                raise AnnotationError(
                    f"{path}: are these names of classes, or the labels of {stem}? Rename the "
                    "image, or put the names into data.yaml"
                )
        else:
            yield stem, path


def _lists_something(path: Path) -> bool:
    """Return whether a text is no label file: some line has letters, or not five numbers."""
    lines = (line.split() for line in text_of(path).splitlines())
    return any(words and not words[0].replace(".", "", 1).isdigit() for words in lines)


def _pairs_of_list(file: Path, folder: Path, ledger: Ledger) -> dict[Path, Path | None]:
    """Return the images that a text file lists, with their label files."""
    pairs: dict[Path, Path | None] = {}
    names = ImageNames(folder, ledger)
    texts: dict[Path, dict[str, Path]] = {}
    for at, line in enumerate(text_of(file).splitlines(), 1):
        name = line.strip()
        if not name:
            continue
        places = [file.parent / name, folder / name, folder / name.removeprefix("data/")]
        there = [path for path in places if path.is_file()]
        if not there:
            there = [folder / names.find(name, f"{file}, line {at}")]
        if not there[0].is_file():
            raise AnnotationError(f"{file}, line {at}: no image {name}")
        image = there[0].resolve()
        pairs[image] = _label_of(image, texts)
    ledger.read("lists of images")
    return pairs


def _label_of(image: Path, texts: dict[Path, dict[str, Path]]) -> Path | None:
    """Return the label file of an image, whatever the case of its suffix.

    ``texts`` has the texts of folders that were listed before, by their stems.
    """
    base = _label_path(image)
    for folder in dict.fromkeys((base.parent, image.parent)):
        if folder not in texts:
            there = sorted(folder.iterdir(), reverse=True) if folder.is_dir() else []
            texts[folder] = {path.stem: path for path in there if suffix_of(path) == ".txt"}
        if image.stem in texts[folder]:
            return texts[folder][image.stem]
    return None


# --- lines ----------------------------------------------------------------------------------------


def _read_line(where: str, line: str, names: Mapping[str, str]) -> tuple[str, list[float]]:
    """Return the number of the class, and the numbers behind it."""
    number, *fields = line.split()
    if re.fullmatch(r"[0-9]+\.0*", number):
        number = number.partition(".")[0]  # As numpy writes it
    if number not in names:
        raise AnnotationError(f"{where}: unknown class {number} (there are {', '.join(names):.60})")
    return number, [written_number(field, where) for field in fields]


def _corners(where: str, fields: Sequence[float], data: YoloData, ledger: Ledger) -> Corners:
    """Return (x1, y1, x2, y2) of a box, an outline or a pose, or raise an AnnotationError."""
    if data.keypoints and len(fields) == 4 + data.keypoints:
        ledger.not_needed("key points of poses", where)
        return _around_centre(fields)
    if len(fields) == 4:
        return _around_centre(fields)
    if len(fields) >= 6 and len(fields) % 2 == 0 and not data.keypoints:
        ledger.note(_OUTLINES, where)
        return around_points(_points(fields))
    why = f"{len(fields) + 1} numbers, should be class cx cy width height"
    if data.keypoints:
        why += f", and {data.keypoints} numbers of key points, as {data.file} says (kpt_shape)"
    else:
        why += " (outlines: class x1 y1 x2 y2 x3 y3 …)"
    if len(fields) == 5:
        why += " (are these predictions, with confidences?)"
    elif len(fields) > 5 and data.keypoints is None:
        why += ". Of poses, state kpt_shape: [NUMBER, 2 or 3] in data.yaml"
    raise AnnotationError(f"{where}: {why}")


def _around_centre(fields: Sequence[float]) -> Corners:
    cx, cy, w, h = fields[:4]
    return (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)


def _points(fields: Sequence[float]) -> list[tuple[float, float]]:
    return list(zip(fields[::2], fields[1::2], strict=True))


class _PossiblePoses:
    """Tells whether lines that are read as outlines may all be poses of (x, y).

    Poses have one number of points, which lie in the box that the line begins with, or are 0 0.
    """

    def __init__(self) -> None:
        self._place = ""  # The file and the line of the first
        self._counts: set[int] = set()
        self._lie_within = True

    def look_at(self, where: str, fields: Sequence[float]) -> None:
        """Take a line into account."""
        self._place = self._place or where
        self._counts.add(len(fields))
        x1, y1, x2, y2 = _around_centre(fields)
        if len(fields) % 2 == 0:
            for x, y in _points(fields)[2:]:
                self._lie_within &= (x, y) == (0, 0) or (x1 <= x <= x2 and y1 <= y <= y2)

    def refuse(self, data: Path) -> None:
        """Raise an AnnotationError if all lines may be poses; four corners are a turned box."""
        (count, *others) = self._counts or {0}
        if count > 8 and not others and self._lie_within:
            raise AnnotationError(
                f"{self._place}: are these outlines, or boxes with {count // 2 - 2} key points? "
                f"State it in {data.with_name('data.yaml')}: kpt_shape: [{count // 2 - 2}, 2], or "
                "kpt_shape: [0, 2] if they are outlines"
            )
