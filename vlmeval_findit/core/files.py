"""Atomic writes, safe file names and checksums."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import NamedTuple, TextIO

from .lock import grants_to_all
from .places import check_as_before, note_written


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error's ``errno`` says that there is no room."""
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class NotRegularError(OSError):
    """A FIFO, a device or a socket, which could be waited for, or read, without end."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "not a regular file", str(path))


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; a NotRegularError for a FIFO, a device or a socket."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # the system refuses folders
        raise NotRegularError(path)
    return path.open("rb")


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file; raises as :func:`open_regular`."""
    with open_regular(path) as f:
        return f.read()


def suffix_of(path: Path | PurePath) -> str:
    """Return a file's suffix in small letters: what kind of file its name says it is.

    >>> suffix_of(Path("Boxes.TSV"))
    '.tsv'
    """
    return path.suffix.lower()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open_regular(path) as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def sha256_of(*contents: bytes) -> str:
    """Return the SHA-256 of joined contents, in hexadecimal."""
    return hashlib.sha256(b"".join(contents)).hexdigest()


def modules_sha256(package: Path, folders: Iterable[str] = ("",)) -> str:
    """Return the SHA-256 of the modules in folders of a package: of their names and texts."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in (package / folder).rglob("*.py")):
        # Git may write the ends of lines as Windows has them.
        text = read_bytes(path).replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(package).as_posix()} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield an empty temporary file next to ``path`` that replaces it at the end of the block.

    After an error the old file stays, and where another command wrote it meanwhile, that one
    (:func:`check_as_before`). Every writer has another temporary file: boltons'
    ``atomic_save`` has one name for all, and ``atomicwrites`` is archived. A pipe or a device is
    written to: in its place a file would be there for every other program, too.
    """
    if _is_stream(path):
        with TemporaryDirectory() as folder:
            temporary = Path(folder) / "stream"
            temporary.touch()
            yield temporary
            with path.open("ab") as stream:
                stream.write(temporary.read_bytes())
        return
    temporary, file = _new_temporary(path)
    try:
        yield temporary
        check_as_before(path, temporary)
        temporary.replace(path)
        note_written(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


def _new_temporary(path: Path) -> tuple[Path, int]:
    """Create a temporary file, and lock it: one without a lock is of a killed writer."""
    while True:
        temporary = waiting_place(path)
        # Not by tempfile, whose files nobody else may read: here the umask decides.
        file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        with suppress(OSError):  # of a disk without locks
            # Who clears the folder just now holds it for a moment, and deletes it.
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return temporary, file
        os.close(file)  # it was deleted before it had its lock


_DESCRIPTORS = (Path("/dev/fd"), Path("/proc/self/fd"))
_STANDARD = (Path("/dev/stdout"), Path("/dev/stderr"))


def _is_stream(path: Path) -> bool:
    """Return whether a path is a pipe or a device, or names what is open already."""
    if path in _STANDARD or path.parent in _DESCRIPTORS:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def waiting_place(path: Path) -> Path:
    """Return a new place where what is to be at a path waits until it is whole."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")


def left_behind(path: Path) -> str | None:
    """Return the name of what a killed writer's temporary file or folder was for; else None."""
    result = re.fullmatch(r"\.(.+)\.[0-9a-f]{8}\.new", path.name, re.DOTALL)
    return result[1] if result else None


def all_left_behind(folder: Path) -> list[Path]:
    """Return the temporary files and folders in a folder, of living and of killed writers."""
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.endswith(".new")]
        return sorted(folder / name for name in names if left_behind(Path(name)) is not None)
    return []


def clear_left_behind(folder: Path) -> None:
    """Delete files that killed writers left in a folder; what others write now is locked.

    On a disk without locks nothing tells the two apart, and it stays.
    """
    for other in all_left_behind(folder):
        with suppress(OSError), other.open("rb") as f:  # folders cannot be opened
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not grants_to_all(f.fileno(), other):
                other.unlink()


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 file for writing that replaces ``path`` at the end of the block.

    What killed writers of any file left in its folder is deleted; writers of many files, as of
    images (:func:`write_once`), do not look.
    """
    clear_left_behind(path.parent)
    # A label may hold a lone surrogate, which UTF-8 cannot: \udXXX is what JSON would write.
    with (
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as f,
    ):
        yield f


def write_text_once(path: Path, text: str) -> None:
    """Write a text by :func:`write_once`, encoded as by :func:`atomic_write`."""
    write_once(path, text.encode("utf-8", "backslashreplace"))


def write_once(path: Path, data: bytes) -> None:
    """Write a file atomically, unless it already holds just this."""
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(data)


# --- names from outside ---------------------------------------------------------------------------


def unsafe_name(name: str) -> str | None:
    """Say why a name must not be joined to a folder; None if it stays below it.

    Backslashes count as slashes and drive letters as absolute on every system.

    >>> unsafe_name("Scenes/easy/1.jpg"), unsafe_name("../1.jpg"), unsafe_name("C:1.jpg")
    (None, 'climbs out of its folder', 'has an absolute path')
    """
    parts = name.replace("\\", "/").split("/")
    # A name that is printable has no such sign, nor a surrogate.
    if not name.isprintable() and any(unicodedata.category(sign) in ("Cc", "Cs") for sign in name):
        return "holds a control character"
    if parts[-1].strip() in ("", "."):
        return "names no file"
    if parts[0] == "" or re.match("[A-Za-z]:", name):
        return "has an absolute path"
    if ".." in parts:
        return "climbs out of its folder"
    return None


# Only files at least this old are remembered: times may not show a change at the moment of reading,
# and the coarsest clock of a file system ticks every two seconds.
SETTLED_NS = 2_000_000_000


class FileState(NamedTuple):
    """What changes when a file changes; times in nanoseconds."""

    size: int
    modified: int
    changed: int
    inode: int

    def is_settled(self, now: int) -> bool:
        """Return whether any change after ``now``, a time in nanoseconds, changes the state."""
        return now - max(self.modified, self.changed) > SETTLED_NS


class HashedFile(NamedTuple):
    """A file's :class:`FileState` when it was read, and its hash: flat, as it is stored."""

    size: int
    modified: int
    changed: int
    inode: int
    sha256: str

    @property
    def state(self) -> FileState:
        return FileState(self.size, self.modified, self.changed, self.inode)


class FileHashes:
    """SHA-256 of files, cached in ``seen`` while size, times and inode stay (as in git's index)."""

    def __init__(self, seen: Mapping[str, HashedFile] | None = None) -> None:
        self.seen = dict(seen or {})

    def known(self, path: Path) -> str | None:
        """Return the cached hash of a file that did not change, else None."""
        before = self.seen.get(os.path.abspath(path))
        if before is None or before.state != file_state(path):
            return None
        return before.sha256

    def __call__(self, path: Path, read: Callable[[Path], str]) -> str:
        """Return the hash of a file, which ``read`` makes."""
        known = self.known(path)
        if known is not None:
            return known
        place = os.path.abspath(path)
        self.seen.pop(place, None)
        now = time.time_ns()
        state = file_state(path)
        sha256 = read(path)
        if state.is_settled(now):
            self.seen[place] = HashedFile(*state, sha256)
        return sha256


def file_state(path: Path) -> FileState:
    """Return the state of a file, without reading the file."""
    stat = path.stat()
    return FileState(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
