"""Replies that are kept beside a journal by a process that has not its lock: another process of
torchrun, or one that lost it.

``calls.jsonl.<token>.jsonl`` has the lines of one of them.  Whoever has the journal's lock merges
them into it.  They do not append to the journal itself, as network disks let one writer write over
what another appends.
"""

from __future__ import annotations

import os
import re
from pathlib import Path


def shard_path(journal: Path, token: str) -> Path:
    """The file beside a journal of the writer that has a token: 32 hexadecimal digits."""
    return journal.with_name(f"{journal.name}.{token}.jsonl")


def shards_of(journal: Path) -> list[Path]:
    """The files beside a journal; what was half merged comes before what is new of its writer."""
    name = re.compile(re.escape(journal.name) + r"\.[0-9a-f]{32}\.jsonl(\.taken)?")
    if not journal.parent.is_dir():
        return []
    found = (path for path in journal.parent.iterdir() if name.fullmatch(path.name))
    return sorted(
        found, key=lambda path: (path.name.removesuffix(".taken"), path.suffix == ".jsonl")
    )


def take(shard: Path) -> Path:
    """Rename a shard that is going to be merged: whoever still writes there sees it is too late."""
    return shard.replace(shard.with_name(shard.name.removesuffix(".taken") + ".taken"))


def append_to_shard(journal: Path, token: str, lines: bytes) -> Path:
    """Keep whole lines beside a journal; they are on the disk then, in the file that comes back.

    Raises:
        OSError: there is no room; nothing of them is there.
    """
    path = shard_path(journal, token)
    while True:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            write_whole(file, lines)
            os.fsync(file)
            if _is_named(file, path):
                return path
            # It was merged before these lines were in it: they go into a new one.
        finally:
            os.close(file)


def write_whole(file: int, data: bytes) -> None:
    """Write at the end of a file of our own.

    Raises:
        OSError: there is no room; nothing is written.
    """
    end, left = os.fstat(file).st_size, memoryview(data)
    try:
        while left:
            left = left[os.write(file, left) :]
    except OSError:
        # Not where somebody else wrote meanwhile: that is not ours to cut.
        if os.fstat(file).st_size == end + len(data) - len(left):
            os.ftruncate(file, end)
        raise


def _is_named(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False
