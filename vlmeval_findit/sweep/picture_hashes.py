"""The hashes of pictures that did not change since they were read last, without reading them.

As git's index does: a picture whose size, times and inode are what they were has the content that
it had.  Of one that was changed in the very moment in which it was read, times would not tell; so
what is remembered was at least two seconds old when it was read, which is the coarsest clock that
file systems have.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .calls import ImageHashes, unread

SETTLED_NS = 2_000_000_000


class Seen(NamedTuple):
    """A picture as it was when it was read; times in nanoseconds."""

    size: int
    modified: int
    changed: int
    inode: int
    sha256: str


class PictureHashes(ImageHashes):
    """The SHA-256 of pictures, of those that did not change since from memory.

    Args:
        before: what is remembered, by absolute path.
    """

    def __init__(self, before: Mapping[str, Seen] | None = None) -> None:
        super().__init__()
        self.seen = dict(before or {})

    def _read(self, path: Path) -> str:
        now = time.time_ns()
        try:
            found = path.stat()
        except OSError:
            return super()._read(path)
        state = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        at = os.path.abspath(path)
        before = self.seen.get(at)
        if before is not None and before[:-1] == state:
            return before.sha256
        sha256 = super()._read(path)
        self.seen.pop(at, None)
        if unread(sha256) is None and now - max(state[1:3]) > SETTLED_NS:
            self.seen[at] = Seen(*state, sha256)
        return sha256
