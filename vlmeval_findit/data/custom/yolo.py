"""A YOLO folder: images, a label file for each, and ``data.yaml`` or ``classes.txt``.

A line of a label file is ``class cx cy width height``, fractions of the image's width and height;
``class x1 y1 x2 y2 x3 y3 …``, an outline or a turned box; or a box with key points.
Labels lie in the folder of the images, or in a folder ``labels`` where the images have ``images``.
Of several splits one is read.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...boxes import Corners
from ...core import suffix_of
from ..annotated_samples import AnnotationError, Samples, Units
from ..ledger import Ledger
from .annotation_values import IMAGE_SUFFIXES, written_number
from .class_rules import check_class_names, label_text
from .collector import Collector
from .found_files import files_below, is_readme
from .glimpse import glimpse
from .image_names import ImageNames, NameIndex, decode_name
from .reader_options import ReaderOptions
from .splits import chosen_split, names_a_split, split_by_folders
from .text_encodings import text_of
from .upright_boxes import OUTLINES, around_centre, around_points
from .yolo_data import DATA_FILES, YoloData, find_yolo_data

_STARTS_NUMBER = re.compile(r"[-+]?\.?\d")

# Text files among labels that are none, in lower case
_NO_LABELS = ("notes.txt", "train.txt", "val.txt", "test.txt")


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
    data = find_yolo_data(folder, ledger, options.encoding)
    if folder.is_file():
        folder = folder.parent
    check_class_names(data.names, data.names_at, ledger)
    names = {number: label_text(name) for number, name in data.names.items()}
    pairs, is_split = _pairs(folder, images, data, options, ledger)
    labelled = {image: label for image, label in pairs.items() if label is not None}
    if not labelled:
        raise AnnotationError(f"{folder}: no label files (*.txt)")
    root = _common_folder([images, folder], pairs)
    collector = Collector(folder, root, options, Units.FRACTIONS, ledger=ledger)
    collector.split_is_chosen = is_split
    lines: list[_Line] = []  # That are more than a box
    for image, label in pairs.items():
        name = collector.image(Path(os.path.relpath(image, root)).as_posix(), image)
        if label is None:
            ledger.note("images without a label file: nothing to find", str(image))
            continue
        for where, line in collector.lines(label):
            number, fields = _read_line(where, line, names, ledger)
            corners = _corners(where, fields, data, ledger)
            collector.add(name, names[number], corners, where)
            if len(fields) > 4 and data.keypoints is None:
                lines.append(_Line(where, fields))
        options.progress("label files", 1)
    _refuse_possible_poses(lines, data.file, options.units or Units.FRACTIONS)
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
        pairs = _pairs_in_folders(places, ledger)
        for file in listed:
            pairs |= _pairs_of_list(file, folder, ledger, options.encoding)
        for other in data.splits.keys() - {split}:
            for path in data.splits[other]:
                there = _labels_of_list(path, folder, options.encoding)
                if path.is_dir():
                    there = _labels_in(_labelled_folder(path, folder, images).labels)
                _account_for_split(other, there, pairs, ledger)
        return pairs, True
    splits = _folders_of_splits(folder, images, options.split)
    if splits:
        split = chosen_split(folder, splits, options.split)
        pairs = _pairs_in_folders([splits[split]], ledger)
        for other in splits.keys() - {split}:
            _account_for_split(other, _labels_in(splits[other].labels), pairs, ledger)
        return pairs, True
    place = _unsplit_folder(folder, images)
    pairs = _pairs_in_folders([place], ledger)
    names = (image.relative_to(place.images).as_posix() for image in pairs)
    if options.split is not None and not split_by_folders(names):
        raise AnnotationError(f"{folder}: no splits here. Leave --split out")
    return pairs, False


def _account_for_split(
    other: str, labels: Collection[Path], pairs: Mapping[Path, Path | None], ledger: Ledger
) -> None:
    """Note the label files of another split: those that are not read, and those that are."""
    read = {_label_of_image(image, label).resolve() for image, label in pairs.items()}
    for label in sorted(labels):
        if label.resolve() in read:
            ledger.note(f"label files that are of the split {other}, too", str(label))
        else:
            ledger.leave_out(f"label files of the split {other}", str(label))


def _label_of_image(image: Path, label: Path | None) -> Path:
    """Return the label file of an image, or where it would be."""
    return label or _label_path(image).with_suffix(".txt")


def _labels_in(folder: Path) -> list[Path]:
    return [path for _, path in _label_files(folder, (), Ledger())] if folder.is_dir() else []


def _labels_of_list(file: Path, folder: Path, encoding: str | None) -> list[Path]:
    """Return the label files of the images that a text file lists, wherever those lie."""
    if not file.is_file():
        return []
    texts: dict[Path, dict[str, Path]] = {}
    labels = []
    for line in text_of(file, encoding).splitlines():
        if line.strip():
            there = _listed_images(file, folder, line.strip())
            image = there[0].resolve() if there else file.parent / line.strip()
            labels.append(_label_of_image(image, _label_of(image, texts)))
    return labels


def _listed_images(file: Path, folder: Path, name: str) -> list[Path]:
    places = [file.parent / name, folder / name, folder / name.removeprefix("data/")]
    return [path for path in places if path.is_file()]


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
            raise AnnotationError(
                f"{label}: no image {place.images / stem} ({suffixes}). Put it there, or move the "
                "label file away"
            )
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
        is_special = name in (*_NO_LABELS, *DATA_FILES) or is_readme(path)
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
    lines = (line.split() for line in glimpse(path).lines)
    return any(words and not words[0].replace(".", "", 1).isdigit() for words in lines)


def _pairs_of_list(
    file: Path, folder: Path, ledger: Ledger, encoding: str | None
) -> dict[Path, Path | None]:
    """Return the images that a text file lists, with their label files."""
    pairs: dict[Path, Path | None] = {}
    names = ImageNames(folder, ledger)
    texts: dict[Path, dict[str, Path]] = {}
    for at, line in enumerate(text_of(file, encoding).splitlines(), 1):
        name = line.strip()
        if not name:
            continue
        there = _listed_images(file, folder, name)
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


def _read_line(
    where: str, line: str, names: Mapping[str, str], ledger: Ledger
) -> tuple[str, list[float]]:
    """Return the number of the class, and the numbers behind it."""
    number, *fields = _with_number(line.split(), names, where, ledger)
    if re.fullmatch(r"[0-9]+\.0*", number):
        number = number.partition(".")[0]  # As numpy writes it
    if number not in names:
        raise AnnotationError(f"{where}: unknown class {number} (there are {', '.join(names):.60})")
    return number, [written_number(field, where) for field in fields]


def _with_number(
    words: list[str], names: Mapping[str, str], where: str, ledger: Ledger
) -> list[str]:
    """Return the words of a line, with the number of the class where its name stands."""
    count = next((at for at, word in enumerate(words) if _STARTS_NUMBER.match(word)), len(words))
    if count == 0:
        return words
    name = label_text(" ".join(words[:count]))
    numbers = [number for number, known in names.items() if known == name]
    if not numbers:
        there = ", ".join(names.values())
        raise AnnotationError(f"{where}: unknown class {name} (there are {there:.60})")
    ledger.note("lines that name their class in place of its number", where)
    return [numbers[0], *words[count:]]


def _corners(where: str, fields: Sequence[float], data: YoloData, ledger: Ledger) -> Corners:
    """Return (x1, y1, x2, y2) of a box, an outline or a pose, or raise an AnnotationError."""
    if data.keypoints and len(fields) == 4 + data.keypoints:
        ledger.not_needed("key points of poses", where)
        return around_centre(*fields[:4])
    if len(fields) == 4:
        return around_centre(*fields[:4])
    if len(fields) >= 6 and len(fields) % 2 == 0 and not data.keypoints:
        ledger.note(OUTLINES, where)
        return around_points(_points(fields))
    why = f"{len(fields) + 1} numbers, should be class cx cy width height"
    if data.keypoints:
        why += f", and {data.keypoints} numbers of key points, as {data.file} says (kpt_shape)"
    else:
        why += " (outlines: class x1 y1 x2 y2 x3 y3 …)"
    if len(fields) == 5:
        why += " (are these predictions, with confidences?)"
    elif len(fields) > 5 and data.keypoints is None:
        number = f"{(len(fields) - 4) // 3}, 3" if (len(fields) - 4) % 3 == 0 else "NUMBER, 2 or 3"
        why += f". Of poses, state kpt_shape: [{number}] in {data.file.with_name('data.yaml')}"
    raise AnnotationError(f"{where}: {why}")


def _points(fields: Sequence[float]) -> list[tuple[float, float]]:
    return list(zip(fields[::2], fields[1::2], strict=True))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that is more than a box."""

    where: str  # The file and the place in it
    fields: Sequence[float]  # All numbers behind that of the class


def _refuse_possible_poses(lines: Sequence[_Line], data: Path, units: Units) -> None:
    """Raise an AnnotationError where lines that are read as outlines may be boxes with key points.

    Args:
        lines: all that are more than a box.
        data: the file with the names of the classes.
        units: those of the numbers.
    """
    lengths = {len(line.fields) for line in lines}
    if len(lengths) != 1:
        return
    of_points = lengths.pop() - 4
    dimensions = [
        each for each in (3, 2) if of_points % each == 0 and _are_poses(lines, each, units)
    ]
    if dimensions:
        shape = f"[{of_points // dimensions[0]}, {dimensions[0]}]"
        raise AnnotationError(
            f"{lines[0].where}: are these outlines, or boxes with {of_points // dimensions[0]} key "
            f"points? State it in {data.with_name('data.yaml')}: kpt_shape: {shape}, or kpt_shape: "
            "[0, 2] if they are outlines"
        )


# The share of poses whose points lie in their box: annotators draw some beside it.
_HELD = 0.9
# By which part of its image a point may lie outside of its box
_MARGIN = 0.01


def _are_poses(lines: Sequence[_Line], dimensions: int, units: Units) -> bool:
    """Return whether all lines may be boxes with key points (x, y) or (x, y, visibility)."""
    if dimensions == 3:
        seen = {value for line in lines for value in line.fields[6::3]}
        if not seen <= {0, 1, 2}:
            return False
        if 2 in seen and units is Units.FRACTIONS:  # No outline has such points
            return True
    elif all(_is_parallelogram(line.fields) for line in lines):
        return False  # Turned boxes
    held = sum(_holds_its_points(line.fields, dimensions, units) for line in lines)
    return held >= _HELD * len(lines)


def _holds_its_points(fields: Sequence[float], dimensions: int, units: Units) -> bool:
    """Return whether a line begins with a box in its image that holds its key points, or 0 0."""
    whole = math.inf if units is Units.PIXELS else units.scale
    margin = 1.0 if units is Units.PIXELS else _MARGIN * whole
    x1, y1, x2, y2 = around_centre(*fields[:4])
    if min(x1, y1) < -margin or max(x2, y2) > whole + margin or x2 <= x1 or y2 <= y1:
        return False
    xs, ys = fields[4::dimensions], fields[5::dimensions]
    return all(
        (x, y) == (0, 0) or (x1 - margin <= x <= x2 + margin and y1 - margin <= y <= y2 + margin)
        for x, y in zip(xs, ys, strict=True)
    )


def _is_parallelogram(fields: Sequence[float]) -> bool:
    """Return whether numbers are four corners of which opposite ones have one middle."""
    if len(fields) != 8:
        return False
    margin = 0.01 * max(map(abs, fields))
    return all(
        abs(fields[at] + fields[at + 4] - fields[at + 2] - fields[at + 6]) <= margin
        for at in (0, 1)
    )
