"""Files that appear whole or not at all, and their checksums."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def sha256_of(*contents: bytes) -> str:
    """The SHA-256 of contents, one behind the other, in hexadecimal."""
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    return digest.hexdigest()


def write_text_once(path: Path, text: str) -> None:
    """:func:`write_once` for a text in UTF-8.

    A label that a model said may hold half a surrogate pair, which UTF-8 cannot: written as
    \\udXXX it is what JSON itself would write.
    """
    write_once(path, text.encode("utf-8", "backslashreplace"))


def write_once(path: Path, data: bytes) -> None:
    """Leave exactly ``data`` at ``path``, so that no reader ever sees half a file.

    A file that already holds ``data`` is not touched. Otherwise the data goes to a temporary
    file next to it which then takes its place: processes that build at once do not disturb
    each other.
    """
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # mkstemp makes files for their owner alone; these are data for everybody.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class atomic_write:  # noqa: N801 (used as a function)
    """``with atomic_write(path) as f``: the file appears whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Any:
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        self._temporary = Path(name)
        # A label that a model said may hold half a surrogate pair, which UTF-8 cannot: written as
        # \\udXXX it is what JSON itself would write.
        self._file = os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="")
        return self._file

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        self._file.close()
        if kind is None:
            umask = os.umask(0)
            os.umask(umask)
            self._temporary.chmod(0o666 & ~umask)
            self._temporary.replace(self._path)
        else:
            self._temporary.unlink()
