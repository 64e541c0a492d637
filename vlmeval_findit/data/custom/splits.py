"""Which split a thing is of, and which is read: training images are never scored unasked.

One table of words tells splits apart, wherever they are stated: folders, lists of images, columns
and keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path, PurePosixPath

from ...core import suffix_of, suggestion
from ..annotated_samples import AnnotationError
from .annotation_values import IMAGE_SUFFIXES
from .text_encodings import text_of


class SplitKind(Enum):
    """What a split is for."""

    TRAINING = "training"
    VALIDATION = "validation"
    TEST = "test"


_TAIL = r"(?:sets?|data|split|images|aug)?"
# A word of a name, by what it says; the first or the last word of a name may be it
_WORDS = {
    SplitKind.TRAINING: re.compile(rf"(?:train|training|trainval|trainvaltest|trn){_TAIL}"),
    SplitKind.VALIDATION: re.compile(
        rf"(?:mini)?(?:val|valid|validation|dev|eval|evaluation){_TAIL}"
    ),
    SplitKind.TEST: re.compile(rf"(?:test|tests|testing|testdev){_TAIL}"),
}


@cache
def kind_of_split(name: str) -> SplitKind | None:
    """Return what a split of this name is for; None: the name is not that of a split.

    >>> [str(kind_of_split(name)) for name in ("Training_set", "cat_val", "val2017", "cam1")]
    ['SplitKind.TRAINING', 'SplitKind.VALIDATION', 'SplitKind.VALIDATION', 'None']
    """
    words = re.findall("[a-z]+", name.lower())
    # test-dev is one word in two; else the last or the first word says it: cat_val, val2017.
    for word in dict.fromkeys(("".join(words), *words[-1:], *words[:1])):
        for kind, pattern in _WORDS.items():
            if pattern.fullmatch(word):
                return kind
    return None


def names_a_split(name: str) -> bool:
    """Return whether a folder or list is called as splits are: train, val2017, Validation.

    >>> [names_a_split(name) for name in ("Train", "val2017", "dev", "cam1")]
    [True, True, True, False]
    """
    return kind_of_split(name) is not None


def chosen_split(where: Path, there: Collection[str], stated: str | None) -> str:
    """Return the name of the split to read: the stated one, else the only one for validation.

    Args:
        where: what has the splits, for messages.
        there: their names, at least one.
        stated: what the user says; letter case does not matter, and "val" is Validation, too.

    Raises:
        AnnotationError: the stated one is not there; or none is stated, and not just one split is
            for validation, or the only one is for training.
    """
    if stated is not None:
        return _stated_split(where, there, stated)
    validation = [name for name in there if kind_of_split(name) is SplitKind.VALIDATION]
    if len(validation) == 1:
        return validation[0]
    if len(there) == 1:
        (only,) = there
        if kind_of_split(only) is not SplitKind.TRAINING:
            return only
        raise AnnotationError(
            f"{where}: its only split is {only}, which models are trained on; to score these "
            f"images, type --split {only}"
        )
    flags = " or ".join(f"--split {name}" for name in sorted(there) if name)
    raise AnnotationError(f"{where}: which of its splits is meant? Type {flags}")


def _stated_split(where: Path, there: Collection[str], stated: str) -> str:
    if stated in there:
        return stated
    kind = kind_of_split(stated)
    for fits in (
        [name for name in there if name.lower() == stated.lower()],
        [name for name in there if kind is not None and kind_of_split(name) is kind],
    ):
        if len(fits) == 1:
            return fits[0]
    raise AnnotationError(f"{where}: unknown split {stated!r}{suggestion(stated, sorted(there))}")


# --- where splits are stated ----------------------------------------------------------------------


def split_by_folders(names: Iterable[str]) -> dict[str, str]:
    """Return the split of each name by a folder of it, where folders are called as splits are.

    Empty where no folder is, or where one class may be called so: one such folder beside others.

    >>> split_by_folders(["set/train/a.png", "set/val/a.png"])
    {'set/train/a.png': 'train', 'set/val/a.png': 'val'}
    """
    splits = {}
    for name in names:
        folders = PurePosixPath(name).parts[:-1]
        splits[name] = next(filter(names_a_split, folders), "")
    found = set(splits.values())
    return splits if found - {""} and not (len(found) == 2 and "" in found) else {}


def key_of_splits(columns: Mapping[str, Sequence[str | None]]) -> str | None:
    """Return the key whose values are splits, whatever it is called; None: there is none.

    Args:
        columns: the values of everything at each key; None: it has no such key.

    >>> key_of_splits({"set": ["train", "val"], "weather": ["sun", "rain"]})
    'set'
    """
    for key in sorted(columns, key=lambda key: _NAMED.search(key) is None):
        values = {*columns[key]}
        stated = [value for value in values if value]
        if None in values or not stated:
            continue
        if all(map(names_a_split, stated)):
            return key
        if _NAMED.search(key) and any(map(names_a_split, stated)):
            return key
    return None


# What a key of splits is called
_NAMED = re.compile(r"split|subset", re.IGNORECASE)


def listed_splits(
    places: Sequence[Path], known: Collection[str], encoding: str | None
) -> dict[str, set[str]]:
    """Return the stems that lists of images name, by split: train.txt, ImageSets/Main/val.txt.

    VOC's lists for each class are joined where there are no others.

    Args:
        places: folders in which lists may lie, or in an ``ImageSets`` of theirs.
        known: the stems that there are; a text that names none is no list.
        encoding: of the lists, as the user states it.
    """
    stems = {*known}
    for place in places:
        sets = place / "ImageSets"
        for folder in (sets / "Main", sets, *sorted(sets.glob("*/")), place):
            lists = {}
            for path in sorted(folder.glob("*.txt")) if folder.is_dir() else ():
                listed = _listed_stems(path, stems, encoding) if names_a_split(path.stem) else set()
                if path.stem not in stems and listed & stems:
                    lists[path.stem] = listed
            if lists:
                return _join_lists_of_classes(lists)
    return {}


def _listed_stems(path: Path, known: Collection[str], encoding: str | None) -> set[str]:
    lines = (line.strip() for line in text_of(path, encoding).splitlines())
    return {_listed_stem(line, known) for line in lines if line}


def _join_lists_of_classes(lists: Mapping[str, set[str]]) -> dict[str, set[str]]:
    whole = {name: stems for name, stems in lists.items() if "_" not in name}
    if whole:
        return whole
    joined: dict[str, set[str]] = {}
    for name, stems in lists.items():
        joined.setdefault(name.rpartition("_")[2], set()).update(stems)
    return joined


def _listed_stem(line: str, known: Collection[str]) -> str:
    """Return the stem that a line names: all of it, or without the 1, 0 or -1 of a class behind it.

    PaddleDetection's lines name the image and its annotations, with their folders.

    >>> _listed_stem("cam 2/f 1", {"cam 2/f 1"}), _listed_stem("000005  -1", {"000005"})
    ('cam 2/f 1', '000005')
    >>> _listed_stem("./JPEGImages/a.jpg ./Annotations/a.xml", {"a"})
    'a'
    """
    whole = _without_suffix(line.strip("\"'"))
    if whole in known:
        return whole
    name, _, flag = line.rpartition(" ")
    without = _without_suffix(name.strip()) if name and flag in ("1", "0", "-1") else whole
    first = _without_suffix(line.split()[0].strip("\"'"))
    for stem in (without, first):
        parts = PurePosixPath(stem).parts
        for at in range(len(parts)):
            end = "/".join(parts[at:])
            if end in known:
                return end
    return without


def _without_suffix(name: str) -> str:
    path = PurePosixPath(name)
    return str(path.with_suffix("")) if suffix_of(path) in IMAGE_SUFFIXES else name
