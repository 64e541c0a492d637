"""List the files below a folder, through links, and tell which are of no use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..annotated_samples import AnnotationError
from ..ledger import Ledger

_OF_SYSTEMS = ("__MACOSX", "Thumbs.db", "desktop.ini")


def is_of_systems(path: Path) -> bool:
    """Return whether a file or folder is hidden, or one that systems write."""
    return path.name.startswith(".") or path.name in _OF_SYSTEMS


def is_readme(path: Path) -> bool:
    """Return whether a file is called README, whatever its suffix."""
    return path.name.lower().startswith("readme.")


def files_below(folder: Path, ledger: Ledger) -> list[Path]:
    """Return the files below a folder, sorted; linked folders are entered, hidden files left out.

    Raises an AnnotationError if links lead back to a folder that they lie in.
    """
    return sorted(_walk(folder, ledger, (folder.resolve(),)))


def _walk(folder: Path, ledger: Ledger, above: tuple[Path, ...]) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        there = sorted(entries, key=lambda entry: entry.name)
    for entry in there:
        path = folder / entry.name
        if is_of_systems(path):
            ledger.not_needed("hidden files and those of the system", str(path))
        elif entry.is_dir():
            target = path.resolve()
            if target in above:
                raise AnnotationError(f"{path}: the link leads back to {target}: remove it")
            yield from _walk(path, ledger, (*above, target))
        elif entry.is_file():
            yield path
        else:
            ledger.leave_out("links to nothing, and what is no file", str(path))
