"""Images that an import unpacked below VLMEvalKit's data folder: which there are the import's own.

A record beside the table has their content. A file that it does not have, or that was changed
since, is the user's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from filecmp import cmp
from pathlib import Path

from ..core import (
    FileSet,
    TextError,
    file_sha256,
    read_json,
    unsafe_name,
    validate,
    write_text_once,
)
from ..storage import lmu_data_root
from .annotated_samples import AnnotationError


def unpacked_folder(name: str) -> Path:
    """Return the folder in which an import of a name puts the images that it unpacks."""
    return lmu_data_root() / "images" / name


def unpacked_path(name: str) -> Path:
    """Return the record of the images that imports of a name unpacked."""
    return lmu_data_root() / f"{name}.unpacked.json"


def _recorded(name: str) -> dict[str, str]:
    """Return the SHA-256 of every image that imports of a name unpacked, by its name."""
    path = unpacked_path(name)
    if not path.is_file():
        return {}
    try:
        recorded: dict[str, str] = validate(dict[str, str], read_json(path))
    except TextError as error:
        raise AnnotationError(f"{error.message_for(path)}. Delete it: its images stay") from None
    except ValueError as error:
        raise AnnotationError(f"{path}: {error}. Delete it: its images stay") from None
    return recorded


def unpacked_by_import(name: str) -> list[Path]:
    """Return the images that imports of a name unpacked, as far as they are there, unchanged."""
    folder = unpacked_folder(name)
    images = []
    for image, content in _recorded(name).items():
        path = folder / image
        if not unsafe_name(image) and path.is_file() and file_sha256(path) == content:
            images.append(path)
    return images


def contents_to_move(name: str, now: Path) -> dict[str, str]:
    """Return the SHA-256 of images, by name, that were unpacked and are not in their place.

    Args:
        name: that of the dataset.
        now: the folder that they were unpacked into.

    Raises:
        AnnotationError: the user has another image in the place of one.
    """
    recorded = _recorded(name)
    contents = {}
    for path in sorted(path for path in now.rglob("*") if path.is_file()):
        image = path.relative_to(now).as_posix()
        target = unpacked_folder(name) / image
        if target.is_file():
            if cmp(path, target, shallow=False):
                continue
            if recorded.get(image) != file_sha256(target):
                raise AnnotationError(
                    f"{target} is there, and no import wrote it. Move it away, or import under "
                    "another name"
                )
        contents[image] = file_sha256(path)
    return contents


def add_unpacked(name: str, now: Path, contents: Mapping[str, str], files: FileSet) -> None:
    """Add unpacked images to the files of a dataset, with the record of them."""
    if contents:
        record = json.dumps(_recorded(name) | dict(contents))
        write_text_once(files.folder / unpacked_path(name).name, record)
    for image in contents:
        files.move(now / image, unpacked_folder(name) / image)
