"""Find the images that annotations name: tools encode names, or leave out folders and suffixes."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from ...core import suffix_of, unsafe
from ..annotated_samples import AnnotationError
from ..ledger import Ledger
from .annotation_values import IMAGE_SUFFIXES


def decode_name(name: str) -> str:
    """Return a name as files have it: tools write percent signs, backslashes, and whole addresses.

    >>> decode_name("/data/local-files/?d=cam%201/a.png"), decode_name("cam\\\\b%20c.png")
    ('cam 1/a.png', 'cam/b c.png')
    """
    # Label Studio's address of a file on its machine
    stated = name.partition("?d=")[2] or name
    return unquote(stated).replace("\\", "/")


class ImageNames:
    """Finds images by the names that annotations state.

    A name that fits a file is taken as it stands. Else the name without its percent signs, without
    its folders, and with another suffix are tried, in this order; the ledger counts which
    of these fitted. A name that fits no file stays as it is: checks of images will say that it is
    missing.
    """

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self._folder = folder
        self._ledger = ledger
        self._stated_by_name: dict[str, str] = {}
        self._suffixes: dict[Path, dict[str, list[str]]] = {}

    def find(self, stated: str, where: str) -> str:
        """Return the name of an image, relative to the folder.

        Raises:
            AnnotationError: several images fit, or only one that another name stands for.
        """
        name, how = self._find_file(stated, where)
        before = self._stated_by_name.setdefault(name, stated)
        if before != stated:
            raise AnnotationError(
                f"{where}: {stated!r} and {before!r} would both be {self._folder / name}: put "
                "the images where the annotations name them, or correct the names"
            )
        if how:
            self._ledger.note(f"images {how}", f"{where}: {stated!r} is {name!r}")
        return name

    def _find_file(self, stated: str, where: str) -> tuple[str, str]:
        if self._is_there(stated):
            return stated, ""
        plain = decode_name(stated)
        base = PurePosixPath(plain).name
        for name, how in (
            (plain, "whose names are encoded"),
            (base, "that lie in another folder than their names say"),
        ):
            if self._is_there(name):
                return name, how
        for name in (stated, plain, base):
            there = self._of_stem(name)
            if len(there) > 1:
                raise AnnotationError(
                    f"{where}: no image {stated!r}, but {' and '.join(there)}: which "
                    "is meant? Correct the name"
                )
            if there:
                return there[0], "with another suffix than their names say"
        return stated, ""

    def _is_there(self, name: str) -> bool:
        return not unsafe(name) and (self._folder / name).is_file()

    def _of_stem(self, name: str) -> list[str]:
        """Return the images in the folder of a name that have its stem, or are called so."""
        if unsafe(name):
            return []
        path = self._folder / name
        by_stem = self._suffixes.get(path.parent)
        if by_stem is None:
            by_stem = {}
            if path.parent.is_dir():
                for file in sorted(path.parent.iterdir()):
                    if suffix_of(file) in IMAGE_SUFFIXES:
                        by_stem.setdefault(file.stem, []).append(file.name)
            self._suffixes[path.parent] = by_stem
        stem = path.stem if suffix_of(path) in IMAGE_SUFFIXES else path.name
        parent = PurePosixPath(name).parent
        return [(parent / file).as_posix() for file in by_stem.get(stem, ())]
