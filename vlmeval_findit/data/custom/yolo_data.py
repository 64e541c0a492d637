"""What comes with YOLO's labels: names of classes, and which images are of which split."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...core import TextError, YamlTexts, find_twice, parse_yaml, quoted_value
from ..annotated_samples import AnnotationError
from ..ledger import Ledger
from .found_files import files_below
from .splits import names_a_split
from .text_encodings import text_of

_YAML = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
_DARKNET = "obj.data"
_LISTS = (
    "classes.txt",
    "obj.names",
    "classes.names",
    "predefined_classes.txt",
    "_darknet.labels",
    "labels.txt",
    "names.txt",
    "class_names.txt",
)
_SPLITS = ("train", "val", "valid", "test")
# Files that say what the classes and splits are
DATA_FILES = (*_YAML, _DARKNET, *_LISTS)
# Those that a folder of YOLO alone has
FILES_OF_SPLITS = ("data.yaml", "data.yml", _DARKNET)

_READ = frozenset((*_SPLITS, "names", "path", "kpt_shape"))
_NOT_NEEDED = frozenset(("nc", "download", "roboflow", "flip_idx", "kpt_names"))


@dataclass(frozen=True, slots=True)
class YoloData:
    """What ``data.yaml`` or ``classes.txt`` says."""

    file: Path
    names: Mapping[str, str]  # Of classes, by their numbers
    names_at: str  # The file and the place in it that has them
    # Folders of images and lists of them, by split, that are there
    splits: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    keypoints: int | None = None  # Numbers of key points behind each box; None: not stated


def find_yolo_data(folder: Path, ledger: Ledger, encoding: str | None) -> YoloData:
    """Read the file with the classes' names: in the folder, among its labels, or one level above.

    ``folder`` may be that file; ``encoding`` is that of texts, as the user states it.

    Raises an AnnotationError if there is none, or it cannot be used.
    """
    if folder.is_file():
        return _read_yaml(folder, ledger, encoding)
    places = [folder, folder / "labels"]
    if names_a_split(folder.absolute().name):
        places.append(folder.absolute().parent)
    for place in places:
        for name in _YAML:
            if (place / name).is_file():
                data = _read_yaml(place / name, ledger, encoding)
                # A folder within the set is the split that is meant.
                is_within = place == folder.absolute().parent
                return replace(data, splits={}) if is_within else data
    if (folder / _DARKNET).is_file():
        return _read_darknet(folder / _DARKNET, ledger, encoding)
    for place in places:
        for name in _LISTS:
            if (place / name).is_file():
                file = place / name
                return YoloData(file, _listed_names(file, encoding), f"{file}, classes")
    others = sorted(folder.glob("*.y*ml"))
    if len(others) == 1:
        return _read_yaml(others[0], ledger, encoding)
    below = [path for path in files_below(folder, Ledger()) if path.name in _LISTS]
    if below:
        return _only_names(below, encoding)
    raise AnnotationError(
        f"{folder}: no names of classes: put data.yaml (names: [cat, dog]) "
        "or classes.txt (a name on each line) there"
    )


def _only_names(files: Sequence[Path], encoding: str | None) -> YoloData:
    """Read lists of classes that lie anywhere, or raise an AnnotationError where they differ."""
    first = _listed_names(files[0], encoding)
    for other in files[1:]:
        if _listed_names(other, encoding) != first:
            raise AnnotationError(
                f"{other}: has other names of classes than {files[0]}: which are meant? Move one "
                "away, or put both into a data.yaml (names: [cat, dog])"
            )
    return YoloData(files[0], first, f"{files[0]}, classes")


def _listed_names(file: Path, encoding: str | None) -> dict[str, str]:
    lines = text_of(file, encoding).splitlines()
    return {str(at): line.strip() for at, line in enumerate(lines)}


def _read_darknet(file: Path, ledger: Ledger, encoding: str | None) -> YoloData:
    """Read obj.data, a line ``key = value`` each, as Darknet, CVAT and datumaro write it."""
    values: dict[str, str] = {}
    for line in text_of(file, encoding).splitlines():
        key, equals, value = line.partition("=")
        if not equals:
            continue
        if key.strip() in values:
            raise AnnotationError(
                f"{file}: duplicate key {quoted_value(key.strip())}: leave one of them out"
            )
        values[key.strip()] = value.strip()
    names = _resolved(file, None, values.get("names", "obj.names"))
    if names is None:
        raise AnnotationError(f"{file}: no file {values.get('names', 'obj.names')} with the names")
    not_needed = frozenset(("classes", "backup", "eval"))
    ledger.keys(file.name, values.keys() - _READ, not_needed, str(file))
    listed = _listed_names(names, encoding)
    return YoloData(file, listed, f"{names}, classes", _splits(file, values))


def _read_yaml(file: Path, ledger: Ledger, encoding: str | None) -> YoloData:
    try:
        # Every scalar stays the text that it is: no, 007 and 1e3 are names.
        values, _ = parse_yaml(text_of(file, encoding), YamlTexts)
    except TextError as error:
        raise AnnotationError(error.message_for(file)) from None
    names = values.get("names") if isinstance(values, dict) else None
    names_at = f"{file}, names"
    if isinstance(values, dict) and names is None:
        lists = [file.with_name(name) for name in _LISTS if file.with_name(name).is_file()]
        if lists:
            names = _listed_names(lists[0], encoding)
            names_at = f"{lists[0]}, classes"
    if isinstance(names, list):
        names = {str(at): name for at, name in enumerate(names)}
    if not isinstance(names, dict) or not names:
        raise AnnotationError(f"{file}: 'names' should be a list or a mapping of classes")
    for key, name in names.items():
        if not re.fullmatch("[0-9]+", str(key)) or not isinstance(name, str):
            # Not written out: a few aliases make a list of millions of entries.
            shown = repr(name)[:40] if isinstance(name, str) else f"a {type(name).__name__}"
            raise AnnotationError(
                f"{file}, names: {str(key)[:40]}: {shown} is not a name of a class"
            )
    numbers = [str(int(key)) for key in names]
    twice = find_twice(numbers)
    if twice is not None:
        raise AnnotationError(f"{file}, names: duplicate class {twice.name}: leave one of them out")
    ledger.keys(file.name, values.keys() - _READ, _NOT_NEEDED, str(file))
    return YoloData(
        file,
        dict(zip(numbers, names.values(), strict=True)),
        names_at,
        _splits(file, values),
        _keypoints(file, values.get("kpt_shape")),
    )


def _keypoints(file: Path, stated: Any) -> int | None:
    """Return how many numbers the key points of a box have: those of ``kpt_shape``, multiplied."""
    if stated is None:
        return None
    texts = stated if isinstance(stated, list) else []
    if len(texts) != 2 or not all(re.fullmatch("[0-9]+", str(text)) for text in texts):
        raise AnnotationError(f"{file}, kpt_shape: should be [number of key points, 2 or 3]")
    number, each = map(int, texts)
    return number * each


def _splits(file: Path, values: Mapping[str, Any]) -> dict[str, list[Path]]:
    """Return what of the splits' folders and lists is there; paths of other machines are not."""
    splits = {}
    for split in _SPLITS:
        stated = values.get(split) or []
        entries = stated if isinstance(stated, list) else [stated]
        there = []
        for entry in entries:
            if not isinstance(entry, str):
                raise AnnotationError(f"{file}, {split}: a {type(entry).__name__} is not a path")
            path = _resolved(file, values.get("path"), entry)
            if path is not None:
                there.append(path)
        if there and len(there) < len(entries):
            missing = next(e for e in entries if _resolved(file, values.get("path"), e) is None)
            raise AnnotationError(f"{file}, {split}: {missing} does not exist, but {there[0]} does")
        if there:
            splits[split] = there
    return splits


def _resolved(file: Path, root: Any, entry: str) -> Path | None:
    """Return where a path of data.yaml leads; None if nowhere here."""
    bases = [file.parent]
    if isinstance(root, str) and root:
        bases.insert(0, file.parent / root)
    # Roboflow writes ../valid/images for valid/images, Darknet's tools data/val.txt for val.txt.
    for name in (entry, entry.removeprefix("../"), entry.removeprefix("data/")):
        for base in bases:
            if (base / name).exists():
                return (base / name).resolve()
    return None
