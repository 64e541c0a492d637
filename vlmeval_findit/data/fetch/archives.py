"""Named members out of archives, one by one, and nothing else.

Where a member is written is decided by the name that we asked for, never by the archive: an archive
can only offer content.  Members that try more (absolute paths, ``..``, links, devices) are refused.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from lzma import LZMAError
from math import inf
from pathlib import PurePosixPath
from stat import S_IFMT, S_IFREG
from typing import IO, Any, cast

from ...core.files import unsafe

Keep = Callable[[str, IO[bytes]], None]
"""Takes a name that was asked for and the content that the archive has for it."""


class ArchiveError(ValueError):
    """An archive that cannot be read; the message says where it broke."""


class WantedMembers:
    """The members that are asked for, by the end of their path; those that were found go out.

    Args:
        tails: by the name that we know it by, the end of a member's path.
    """

    def __init__(self, tails: Mapping[str, str]) -> None:
        self._names: dict[str, dict[tuple[str, ...], str]] = {}
        self._left = set(tails)
        self.refused: dict[str, str] = {}
        for name, tail in tails.items():
            parts = PurePosixPath(tail).parts
            self._names.setdefault(parts[-1], {})[parts] = name

    def __bool__(self) -> bool:
        return bool(self._left)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def find(self, member: str) -> str | None:
        """Our name for a member, or None when it is not asked for (any more)."""
        parts = PurePosixPath(member.replace("\\", "/")).parts
        near = self._names.get(parts[-1], {}) if parts else {}
        found = (name for tail, name in near.items() if parts[-len(tail) :] == tail)
        return next((name for name in found if name in self._left), None)

    def refuse(self, name: str, why: str) -> None:
        """Remember why the member of a name was not taken; another may still be good."""
        self.refused[name] = why

    def found(self, name: str) -> None:
        """A name is served: no other member is taken for it."""
        self._left.discard(name)

    def lost(self, names: Iterable[str]) -> None:
        """What was taken for these is not what was packed: they are wanted again."""
        self._left.update(names)


def refused(member: str, is_plain: bool = True, size: int = 0, largest: int = 0) -> str | None:
    """Say why a member is refused, by its path, its kind or its size in bytes, or None."""
    why = unsafe(member) or (None if is_plain else "is not a plain file")
    if why:
        return f"member {member!r} {why}: refused"
    return f"member {member!r} has {size} bytes, more than {largest}" if size > largest else None


def take_tar(
    file: IO[bytes],
    wanted: WantedMembers,
    keep: Keep,
    largest: int,
    settle: Callable[[str], None] = lambda name: None,
) -> None:
    """Read a tar archive (plain, gzip, bzip2 or xz) front to back until all is found.

    One in gzip is read to its end, where its checksum stands: nobody knows before whether what was
    kept is what was packed.  bzip2 and xz have a checksum a block, tar itself has none.

    Args:
        file: the archive; only read, never sought.
        wanted: what to take; what was taken is gone from it afterwards.
        keep: gets every member that is taken, in the archive's order.
        largest: the most bytes that a member may have.
        settle: gets the name of every member that was kept, once its checksum is known to be right,
            where there is one.

    Raises:
        ArchiveError: it is damaged, ends early, or is a bomb; what was settled before is as it
            should be, and what was not is wanted again.
    """
    counted = _Bounded(file, lambda: inf)
    packed = io.BufferedReader(counted)
    begin = packed.peek(6)
    at_the_end = begin.startswith(_GZIP)
    kept: list[str] = []

    def most() -> float:
        return _UNPACKED_AT_LEAST + _MOST_PER_BYTE * counted.count

    try:
        unpacked = _Bounded(_unpacked(packed, begin), most)
        with tarfile.open(fileobj=unpacked, mode="r|", tarinfo=_Member) as archive:
            for member in archive:
                if not wanted:
                    break
                name = wanted.find(member.name)
                if name is None:
                    continue
                is_plain = member.isreg() and not member.issparse()
                why = refused(member.name, is_plain, member.size, largest)
                content = None if why else archive.extractfile(member)
                if content is None:
                    wanted.refuse(name, why or f"member {member.name!r} has no content")
                    continue
                keep(name, content)
                wanted.found(name)
                kept.append(name)
                if not at_the_end:
                    settle(kept.pop())
        while at_the_end and unpacked.read(_PIECE):
            pass
    except BaseException as error:
        wanted.lost(kept)
        if isinstance(error, _DAMAGED):
            raise ArchiveError(f"damaged archive: {error}") from None
        raise
    for name in kept:
        settle(name)


_DAMAGED = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, LZMAError)
_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ"

_PIECE = 1 << 20

_UNPACKED_AT_LEAST = 1 << 27
_MOST_PER_BYTE = 50
"""How much may come out of an archive: so many bytes, and so many a byte of it.  Images hardly
shrink at all; zeros do by a thousand."""

_LONGEST_HEADER = 1 << 20
"""Bytes of the longest name, and of all that is said of one member: they are held in memory."""


def _unpacked(packed: io.BufferedReader[_Bounded], begin: bytes) -> IO[bytes]:
    if begin.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=packed))
    if begin.startswith(_BZIP2):
        return cast(IO[bytes], bz2.BZ2File(packed))
    if begin.startswith(_XZ):
        return cast(IO[bytes], lzma.LZMAFile(packed))
    return packed


class _Bounded(io.RawIOBase):
    """A stream that is counted, and refused when more comes than should."""

    def __init__(self, stream: IO[bytes], most: Callable[[], float]) -> None:
        self._stream = stream
        self._most = most
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        self.count += len(data)
        if self.count > self._most():
            raise ArchiveError(f"a bomb: more than {self._most():,.0f} bytes came out of it")
        buffer[: len(data)] = data
        return len(data)


class _Member(tarfile.TarInfo):
    """A member that cannot fill the memory with what is said of it."""

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        if self.type in _HEADERS and self.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a sparse file")
        return super()._proc_member(archive)  # type: ignore[misc]

    def _proc_gnusparse_10(self, *_: Any) -> None:
        raise tarfile.ReadError("a sparse file")


_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


def take_zip(
    file: IO[bytes],
    wanted: WantedMembers,
    keep: Keep,
    largest: int,
    settle: Callable[[str], None] = lambda name: None,
) -> None:
    """Read the named members of a zip archive; only their bytes are read, in the file's order.

    See :func:`take_tar` for arguments and errors; ``file`` must be seekable.
    """
    try:
        with zipfile.ZipFile(cast(IO[bytes], _BoundedReads(file))) as archive:
            for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
                name = wanted.find(info.filename)
                if name is None:
                    continue
                kind = S_IFMT(info.external_attr >> 16)  # 0 where it was not made on Unix
                is_plain = not info.is_dir() and kind in (0, S_IFREG)
                why = refused(info.orig_filename, is_plain, info.file_size, largest)
                if why:
                    wanted.refuse(name, why)
                    continue
                with archive.open(info) as content:
                    keep(name, content)
                wanted.found(name)
                settle(name)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ArchiveError(f"damaged archive: {error}") from None


_LONGEST_DIRECTORY = 1 << 24
"""Bytes of a zip's central directory, which zipfile reads at once and keeps as objects: room for
150,000 ordinary paths.  The worst one of this length (365,000 entries without names) takes 115 MiB.
"""


class _BoundedReads:
    """A seekable file of which nothing longer than a directory may be is read at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        if size > _LONGEST_DIRECTORY:
            raise ArchiveError(
                f"its central directory has {size:,} bytes, more than {_LONGEST_DIRECTORY:,}"
            )
        return self._file.read(size)
