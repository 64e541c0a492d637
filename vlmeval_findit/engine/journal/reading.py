"""Reading a journal that somebody else may write; no lock is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from ...core.files import open_regular
from .errors import JournalError
from .lines import lines, problem_of_lines, record_in
from .packed import packed_path, unpack


def open_lines(path: Path) -> BinaryIO:
    """The file of a journal; of a compressed one a nameless copy as it was.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read, or is no regular file.
    """
    packed = packed_path(path)
    if path.exists() or not packed.exists():
        return open_regular(path)
    copy: BinaryIO = TemporaryFile()  # noqa: SIM115, closed by who reads
    try:
        unpack(packed, copy)
    except FileNotFoundError:
        return open_regular(path)  # it was unpacked at this moment
    copy.seek(0)
    return copy


def problem_of(path: Path) -> str | None:
    """Why a file is no journal and must not be written to; None if it is one, or is not there."""
    segments = path.with_name(f"{path.name}.d")
    if any(segments.glob("*.jsonl.zst")):
        return (
            f"goes on in {segments}, as version 0.2 kept large journals. Make one file of both: "
            f"zstd -dc {segments}/*.zst | cat - {path} > {path}.whole && mv {path}.whole {path} "
            f"&& rm -r {segments}"
        )
    if not path.exists():
        return None
    if not path.is_file():
        return "is no regular file"
    with path.open("rb") as f:
        return problem_of_lines(f)


def check_journal(path: Path) -> None:
    """Refuse a file that is no journal.

    Raises:
        JournalError: it says why.
    """
    if problem := problem_of(path):
        raise JournalError(f"{path} {problem}")


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a journal that may be in use, in order; what is torn or spoilt is left out.

    Raises:
        JournalError: it is no journal.
        FileNotFoundError: there is none.
    """
    check_journal(path)
    with open_lines(path) as f:
        yield from filter(None, (record_in(raw) for _, raw in lines(f)))
