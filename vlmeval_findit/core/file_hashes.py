"""The SHA-256 of files, without reading those again that did not change since.

As git's index does: a file whose size, times and inode are what they were has the content that it
had.  Times would not tell of a file that was changed in the very moment in which it was read, so
only files that were at least two seconds old are remembered: the coarsest clock of file systems.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from .files import file_sha256

SETTLED_NS = 2_000_000_000


class Seen(NamedTuple):
    """A file as it was when it was read; times in nanoseconds."""

    size: int
    modified: int
    changed: int
    inode: int
    sha256: str


class FileHashes:
    """The SHA-256 of files, in hexadecimal.

    Args:
        seen: what is remembered, by absolute path.
    """

    def __init__(self, seen: Mapping[str, Seen] | None = None) -> None:
        self.seen = dict(seen or {})

    def known(self, path: Path) -> str | None:
        """Return the hash of a file that did not change since it was read, else None.

        Raises:
            OSError: the file is not there.
        """
        before = self.seen.get(os.path.abspath(path))
        return before.sha256 if before is not None and before[:-1] == _state(path) else None

    def __call__(self, path: Path, read: Callable[[Path], str] | None = None) -> str:
        """Return the hash of a file.

        Args:
            path: the file.
            read: what reads and hashes it (default: :func:`.file_sha256`).

        Raises:
            OSError: the file cannot be read.
        """
        known = self.known(path)
        if known is not None:
            return known
        at, now = os.path.abspath(path), time.time_ns()
        self.seen.pop(at, None)
        state = _state(path)
        sha256 = (read or file_sha256)(path)
        if now - max(state[1:3]) > SETTLED_NS:
            self.seen[at] = Seen(*state, sha256)
        return sha256


def _state(path: Path) -> tuple[int, int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
