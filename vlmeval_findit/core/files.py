"""Files that appear whole or not at all, and their checksums."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TextIO

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def is_disk_full(error: BaseException) -> bool:
    """Whether an error says that there is no room, in its ``errno``."""
    return getattr(error, "errno", None) in _FULL


def open_regular(path: Path) -> BufferedReader:
    """Open a file to read it; a queue, whose opening would wait for a writer, is refused.

    Raises:
        OSError: it cannot be read, or is a folder, a queue or a device.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a folder is refused by the system
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.open("rb")


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal.

    Raises:
        OSError: as of :func:`open_regular`.
    """
    with open_regular(path) as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def sha256_of(*contents: bytes) -> str:
    """The SHA-256 of contents, one behind the other, in hexadecimal."""
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    return digest.hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """An empty temporary file beside ``path``, which takes its place at the end of the block.

    What is read at ``path`` is whole, old or new, and after an error the old.  Every writer has a
    temporary file of its own: processes that write at once do not disturb each other.  Ours because
    no kept library does all of it: ``atomicwrites`` is archived, and the temporary file of boltons'
    ``atomic_save`` has one name for all.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    # Made here and not by tempfile, which makes files for their owner alone: the umask decides.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


_TEMPORARY = re.compile(r"\.(.+)\.[a-z0-9_]{8}", re.DOTALL)
"""Versions before 0.2 had letters and an underscore there too."""


def left_behind(path: Path) -> str | None:
    """The name of the file that was being written when a process was killed; None of others."""
    found = _TEMPORARY.fullmatch(path.name)
    return found[1] if found else None


def remove_left_behind(path: Path) -> None:
    """Remove what processes left that were killed while they wrote a file.

    Only who alone may write the file calls this: others may be in the middle of it.
    """
    if path.parent.is_dir():
        for beside in path.parent.iterdir():
            if left_behind(beside) == path.name:
                beside.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIO]:
    """``with atomic_write(path) as f``: a text in UTF-8, there as a whole or not at all.

    A label that a model said may hold half a surrogate pair, which UTF-8 cannot: written as
    \\udXXX it is what JSON itself would write.
    """
    with (
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as f,
    ):
        yield f


def holds_text(path: Path, parts: Iterable[str]) -> bool:
    """Whether a file has just this text, written as :func:`atomic_write` writes it."""
    try:
        with path.open("rb") as f:
            for part in parts:
                wanted = part.encode("utf-8", "backslashreplace")
                if f.read(len(wanted)) != wanted:
                    return False
            return not f.read(1)
    except FileNotFoundError:
        return False


def write_text_once(path: Path, text: str) -> None:
    """:func:`write_once` for a text, written as :func:`atomic_write` writes it."""
    write_once(path, text.encode("utf-8", "backslashreplace"))


def write_once(path: Path, data: bytes) -> None:
    """Leave exactly ``data`` at ``path``; a file that already holds it is not touched."""
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(data)
