"""The content of an image, by which calls, answers and runs are compared.

It is the SHA-256 of the file, and whether it is transparent: FindIt's models are shown a
transparent image on white. Version 1.0 did not do that, so its answers are about another content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..core import FileHashes, open_regular, parse_json, read_text
from .image_files import MOST, ImageFileError, read_image_header, shows_transparency

TRANSPARENT = "+alpha"  # Ends the content of a transparent image

HASH_DIGITS = 16  # Of a hash in prediction files and scores; the journal has all 64
_WHOLE = 64
_JPEG = b"\xff\xd8\xff"

# The contents of the images of a row, short, by their names in the image folder
Shown = Mapping[str, str]


_known = FileHashes()  # Of this process: planning, checks and answers ask for the same files


class ImageChangedError(ImageFileError):
    """An image is not what the run planned to send."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path, "changed during the run")

    def __str__(self) -> str:
        return f"image changed during the run: {self.args[0].removesuffix(f' {self.why}')}"


def content_of(path: Path) -> str:
    """Return the content of an image file, read once unless it changes; an OSError if it cannot."""
    return _known(path, _read_content)


def _read_content(path: Path) -> str:
    with open_regular(path) as f:
        is_jpeg = f.read(len(_JPEG)) == _JPEG
        f.seek(0)
        sha256 = hashlib.file_digest(f, "sha256").hexdigest()
    # Most images are not opened for it: a JPEG has no transparency.
    if is_jpeg or not _is_transparent(path):
        return sha256
    return sha256 + TRANSPARENT


def _is_transparent(path: Path) -> bool:
    try:
        known = read_image_header(path)
        width, height = known.size
        is_usable = known.may_be_transparent and width * height <= MOST
        return is_usable and shows_transparency(path)
    except ImageFileError:
        return False  # The call fails with the reason


def is_other_file(content: str, sha256: str) -> bool:
    """Return whether a file's SHA-256, perhaps only its beginning, contradicts a known content."""
    is_known = len(sha256_in(content)) == _WHOLE
    return is_known and not content.startswith(sha256)


def changed_images(before: Shown, after: Shown) -> list[str]:
    """List the names of images whose contents are known and differ.

    >>> changed_images({"1.png": "aa", "2.png": "bb"}, {"1.png": "ac", "3.png": "dd"})
    ['1.png']
    """
    return [name for name, content in before.items() if after.get(name, content) != content]


def sha256_in(content: str) -> str:
    """Return the SHA-256 of the file in a content."""
    return content.removesuffix(TRANSPARENT)


def is_transparent(content: str) -> bool:
    """Return whether a content, perhaps short, is that of a transparent image."""
    return content.endswith(TRANSPARENT)


# --- the images that a table was imported with ----------------------------------------------------


def contents_path(table: Path) -> Path:
    """Return the file with the contents of the images that a table was imported with."""
    return table.with_name(f"{table.stem.removesuffix('_multilabel')}.images.json")


def imported_contents(table: Path) -> Shown:
    """Return the contents of the images of an imported table; empty for other tables."""
    path = contents_path(table)
    if not path.is_file():
        return {}
    return shown_in(read_text(path))


def replaced_images(expected: Shown, folder: Path) -> list[str]:
    """List the images that are there and are not those of the import."""
    others = []
    for name, content in expected.items():
        with suppress(OSError):
            if content_of(folder / name) != content:
                others.append(name)
    return others


def replaced_note(names: Sequence[str], folder: Path) -> str:
    """Say that images were replaced since they were imported, and what to do."""
    return (
        f"{len(names)} images are not those that were imported, the first: {folder / names[0]}. "
        "Its boxes were drawn on another image: put it back, or import the annotations again "
        "(data import … --replace)"
    )


# --- what a row showed, in prediction files and scores --------------------------------------------


def shown_contents(names: Iterable[str], contents: Iterable[str]) -> Shown:
    """Return what a row showed; empty if it is not known.

    >>> shown_contents(["1.png"], [64 * "a"])
    {'1.png': 'aaaaaaaaaaaaaaaa'}
    """
    return {
        name: short_content(content)
        for name, content in zip(names, contents, strict=False)
        if len(sha256_in(content)) == _WHOLE  # Others say why a file cannot be read
    }


def short_content(content: str) -> str:
    """Shorten a content as prediction files and scores have it."""
    return sha256_in(content)[:HASH_DIGITS] + (TRANSPARENT if is_transparent(content) else "")


def shown_in(value: object) -> dict[str, str]:
    """Read what a row showed, as JSON or parsed; empty for what another program may have put there.

    >>> shown_in('{"1.png": "aaaaaaaaaaaaaaaa"}'), shown_in("-")
    ({'1.png': 'aaaaaaaaaaaaaaaa'}, {})
    """
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return {}
    if not isinstance(value, dict):
        return {}
    return {name: it for name, it in value.items() if isinstance(it, str)}
