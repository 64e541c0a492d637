"""Find the images that annotations name: tools encode names, or leave out folders and suffixes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from os.path import isfile
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from ...core import suffix_of, unsafe_name
from ..annotated_samples import AnnotationError
from ..ledger import Ledger
from .annotation_values import IMAGE_SUFFIXES
from .found_files import files_below


def decode_name(name: str) -> str:
    """Return a name as files have it: tools write percent signs, backslashes, and whole addresses.

    >>> decode_name("/data/local-files/?d=cam%201/a.png"), decode_name("cam\\\\b%20c.png")
    ('cam 1/a.png', 'cam/b c.png')
    >>> decode_name("https://host/x/a.png?sig=1")
    'x/a.png'
    """
    # Label Studio's address of a file on its machine
    stated = name.partition("?d=")[2] or name
    if re.match("[a-z][a-z0-9]+://", stated):
        stated = urlsplit(stated).path.lstrip("/")
    return unquote(stated).replace("\\", "/")


class NameIndex:
    """Names that are there; one is looked up as it stands, then in NFC, then in any letter case.

    Macs write names decomposed, and Windows does not tell letter cases apart.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = dict.fromkeys(names)
        self._alike: tuple[dict[str, list[str]], ...] | None = None

    def like(self, name: str) -> list[str]:
        """Return the names that are meant by a name; several are alike.

        >>> NameIndex(["a.png", "B.PNG", "b.Png"]).like("b.png")
        ['B.PNG', 'b.Png']
        """
        if name in self._names:
            return [name]
        if self._alike is None:
            self._alike = ({}, {})
            for known in self._names:
                for alike, form in zip(self._alike, _FORMS, strict=True):
                    alike.setdefault(form(known), []).append(known)
        for alike, form in zip(self._alike, _FORMS, strict=True):
            if form(name) in alike:
                return alike[form(name)]
        return []


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _without_case(name: str) -> str:
    return _composed(_composed(name).casefold())


_FORMS = (_composed, _without_case)

# Label Studio's uploads: 0f6142fb-a.png
_UPLOAD = re.compile(r"[0-9a-f]{8}-(.+)")

_ENCODED = "whose names are encoded"
_MOVED = "that lie in another folder than their names say"
_ABSOLUTE = "whose names are absolute paths"
_ALIKE = "whose names differ in Unicode or letter case"
_UPLOADED = "whose names have the prefix of Label Studio's uploads"
_SUFFIX = "with another suffix than their names say"


class ImageNames:
    """Finds images by the names that annotations state.

    A name that fits a file is taken as it stands. Else the name without its percent signs, its
    longest end that is a file, names that are alike, and other suffixes are tried, in this order;
    the ledger counts which of these fitted. A name that fits no file stays as it is: checks of
    images will say that it is missing.
    """

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self._folder = folder
        self._ledger = ledger
        # By stated names, which some formats repeat for every object
        self._found: dict[str, tuple[str, str]] = {}
        self._stated_by_name: dict[str, str] = {}
        self._names: dict[Path, NameIndex] = {}
        # Images by their stems, by folder
        self._stems: dict[Path, tuple[NameIndex, dict[str, list[str]]]] = {}

    def find(self, stated: str, where: object) -> str:
        """Return the name of an image, relative to the folder.

        Raises:
            AnnotationError: several images fit, or only one that another name stands for.
        """
        found = self._found.get(stated)
        if found is None:
            found = self._find_file(stated, where)
            before = self._stated_by_name.setdefault(found[0], stated)
            if before != stated:
                raise AnnotationError(
                    f"{where}: {stated!r} and {before!r} would both be {self._folder / found[0]}: "
                    "put the images where the annotations name them, or correct the names"
                )
            self._found[stated] = found
        name, how = found
        if how:
            self._ledger.note(f"images {how}", f"{where}: {stated!r} is {name!r}")
        return name

    def _find_file(self, stated: str, where: object) -> tuple[str, str]:
        if self._is_there(stated):
            return stated, ""
        plain = decode_name(stated)
        ends = list(self._ends(plain))
        for name, how in ends:
            if self._is_there(name):
                return name, how
        names = [stated, *(name for name, _ in ends)]
        for name in names:
            alike = self._alike(name)
            if alike:
                return self._only(stated, alike, where), _ALIKE
        upload = _UPLOAD.fullmatch(PurePosixPath(plain).name)
        if upload and self._is_there(upload[1]):
            return upload[1], _UPLOADED
        for name in names:
            there = self._of_stem(name)
            if there:
                return self._only(stated, there, where), _SUFFIX
        return stated, ""

    def _ends(self, plain: str) -> Iterator[tuple[str, str]]:
        """Yield what may be meant by a decoded name, the longest first, and how."""
        is_absolute = unsafe_name(plain) == "has an absolute path"
        if not is_absolute:
            yield plain, _ENCODED
        elif Path(plain).is_relative_to(self._folder.absolute()):
            yield Path(plain).relative_to(self._folder.absolute()).as_posix(), _ABSOLUTE
        elif Path(plain).is_relative_to(self._folder.resolve()):
            yield Path(plain).relative_to(self._folder.resolve()).as_posix(), _ABSOLUTE
        parts = [part for part in plain.split("/") if part not in ("", ".")]
        for at in range(1, len(parts)):
            yield "/".join(parts[at:]), _MOVED
        if is_absolute and len(parts) == 1:
            yield parts[0], _MOVED

    def _only(self, stated: str, there: list[str], where: object) -> str:
        if len(there) > 1:
            raise AnnotationError(
                f"{where}: no image {stated!r}, but {' and '.join(there)}: which "
                "is meant? Correct the name"
            )
        return there[0]

    def _is_there(self, name: str) -> bool:
        # Not Path.is_file, which takes twice as long: sets have very many images.
        return not unsafe_name(name) and isfile(f"{self._folder}/{name}")

    def _alike(self, name: str) -> list[str]:
        """Return the images whose paths are like a name, a folder after the other."""
        if unsafe_name(name):
            return []
        found = [""]
        for part in PurePosixPath(name).parts:
            found = [
                f"{folder}/{entry}" if folder else entry
                for folder in found
                for entry in self._entries(self._folder / folder).like(part)
            ]
        return [path for path in found if self._is_there(path)]

    def _entries(self, folder: Path) -> NameIndex:
        index = self._names.get(folder)
        if index is None:
            there = (path.name for path in sorted(folder.iterdir())) if folder.is_dir() else ()
            index = self._names[folder] = NameIndex(there)
        return index

    def _of_stem(self, name: str) -> list[str]:
        """Return the images in the folder of a name that have its stem, or are called so."""
        if unsafe_name(name):
            return []
        path = self._folder / name
        if path.parent not in self._stems:
            by_stem: dict[str, list[str]] = {}
            for file in sorted(path.parent.iterdir()) if path.parent.is_dir() else ():
                if suffix_of(file) in IMAGE_SUFFIXES:
                    by_stem.setdefault(file.stem, []).append(file.name)
            self._stems[path.parent] = (NameIndex(by_stem), by_stem)
        index, by_stem = self._stems[path.parent]
        stem = path.stem if suffix_of(path) in IMAGE_SUFFIXES else path.name
        parent = PurePosixPath(name).parent
        files = chain.from_iterable(by_stem[like] for like in index.like(stem))
        return [(parent / file).as_posix() for file in files]


class PairedImages:
    """Finds the image of an annotation file: it is called like the file, and named in it.

    Files and images are renamed and copied together, and what stands inside stays.
    """

    def __init__(self, folder: Path, names: ImageNames, ledger: Ledger) -> None:
        self._folder = folder
        self._names = names
        self._ledger = ledger
        self._by_stem: dict[str, list[str]] = {}
        for path in files_below(folder, ledger) if folder.is_dir() else ():
            if suffix_of(path) in IMAGE_SUFFIXES:
                name = path.relative_to(folder)
                self._by_stem.setdefault(name.with_suffix("").as_posix(), []).append(
                    name.as_posix()
                )
        self._stems = NameIndex(self._by_stem)

    def find(self, stem: str, stated: Sequence[str], where: object, key: str, kind: str) -> str:
        """Return the name of the image of a file.

        Args:
            stem: the path of the file without its suffix, below the folder of all.
            stated: names inside of it that are meant, what is written first; empty: there is none.
            where: the file.
            key: what has the name inside, for messages.
            kind: what the file is: "XML file".

        Raises:
            AnnotationError: both names mean images that are there, and not the same; several images
                are called so; or nothing names one.
        """
        stems = self._stems.like(stem)
        of_stem = list(chain.from_iterable(self._by_stem[each] for each in stems))
        of_name = [name for name in stated if name and (self._folder / name).is_file()]
        written = next(iter(stated), "")
        if of_name and of_stem and not {*of_name} & {*of_stem}:
            raise AnnotationError(
                f"{where}: {key} is {written}, but the file is called like {of_stem[0]}: which "
                f"image is meant? Correct {key}, or rename the file"
            )
        both = [name for name in of_name if name in of_stem] or of_name
        if both:
            return both[0]
        if len(of_stem) > 1:
            raise AnnotationError(
                f"{where}: which image is meant, {' or '.join(of_stem)}? {key} is "
                f"{written or 'empty'}"
            )
        if of_stem:
            if PurePosixPath(written).stem != PurePosixPath(of_stem[0]).stem:
                what = f"images called like their {kind}, not as {key} says"
                self._ledger.note(what, f"{where}: {written or 'empty'}, taken: {of_stem[0]}")
            return of_stem[0]
        if not written:
            raise AnnotationError(f"{where}: no {key}, and no image of this name")
        return self._names.find(written, str(where))
