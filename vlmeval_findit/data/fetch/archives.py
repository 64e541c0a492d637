"""Read named members out of downloaded archives, and nothing else.

Where a member is written is decided by the name that we asked for, never by the archive: an archive
can only offer content.  Members that try more (absolute paths, ``..``, links, devices) are refused.
"""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from stat import S_IFMT, S_IFREG
from typing import IO, NamedTuple

from ...core.files import unsafe

Store = Callable[[str, IO[bytes]], None]
"""Stores an image: its name, and the content of its member."""


class _Member(NamedTuple):
    path: str
    is_plain: bool  # A file, neither folder nor link nor device
    size: int  # In bytes
    open: Callable[[], IO[bytes] | None]


class ArchiveError(ValueError):
    """An archive that cannot be read to its end: nothing of it can be trusted."""


_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError),
    NotImplementedError,  # Of zipfile: an unknown compression
    RuntimeError,  # Of zipfile: a password
)


def read_members(
    archive: Path, tails: Mapping[str, str], largest: int, store: Store
) -> Mapping[str, str]:
    """Store the named members of a zip or tar archive; return why others are refused, by name.

    Args:
        archive: the file; a tar may be packed by gzip, bzip2 or xz.
        tails: by name, the end of its member's path.
        largest: bytes of the largest member that is read.
        store: stores a member.

    Raises:
        ArchiveError: it is damaged.  gzip has its checksum at the end, so what was stored before
            may be wrong, too.
    """
    left, refused = dict(tails), dict[str, str]()
    with archive.open("rb") as f:
        members = _zip_members if f.read(2) == b"PK" else _tar_members
    find = member_finder(left)
    try:
        for member in members(archive):
            name = find(member.path)
            if name is None:
                continue
            why = refusal(member.path, member.is_plain, member.size, largest)
            content = None if why else member.open()
            if content is None:
                refused[name] = why or "has no content"
                continue
            with content:
                store(name, content)
            refused.pop(name, None)
            del left[name]
    except _DAMAGED as error:
        raise ArchiveError(f"damaged archive: {error}") from None
    except OSError as error:  # Of bzip2 and gzip without a number, else of the disk
        if error.errno is not None:
            raise
        raise ArchiveError(f"damaged archive: {error}") from None
    return refused


def _tar_members(file: Path) -> Iterator[_Member]:
    with tarfile.open(file) as archive:
        for info in archive:
            is_plain = info.isreg() and not info.issparse()
            yield _Member(info.name, is_plain, info.size, partial(archive.extractfile, info))
        # To the end, where gzip has its checksum.
        while archive.fileobj is not None and archive.fileobj.read(1 << 20):
            pass


def _zip_members(file: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            kind = S_IFMT(info.external_attr >> 16)  # 0 if it was not written on Unix
            is_plain = not info.is_dir() and kind in (0, S_IFREG)
            yield _Member(info.orig_filename, is_plain, info.file_size, partial(archive.open, info))


def member_finder(tails: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return a function from a member's path to the name in ``tails`` that it serves, or None.

    >>> find = member_finder({"1": "b/c.jpg"})
    >>> find("./x/b/c.jpg"), find("x/bb/c.jpg")
    ('1', None)
    """
    by_file: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for name, tail in tails.items():
        path = PurePosixPath(tail).parts
        by_file.setdefault(path[-1], []).append((path, name))

    def find(member: str) -> str | None:
        path = PurePosixPath(member.replace("\\", "/")).parts
        near = by_file.get(path[-1], ()) if path else ()
        fits = (name for tail, name in near if path[-len(tail) :] == tail)
        return next((name for name in fits if name in tails), None)

    return find


def refusal(member: str, is_plain: bool, size: int, largest: int) -> str | None:
    """Say why a member is refused, by its path, its kind or its size in bytes, or None."""
    why = unsafe(member) or (None if is_plain else "is not a plain file")
    if why:
        return f"member {member!r} {why}: refused"
    return f"member {member!r} has {size} bytes, more than {largest}" if size > largest else None
