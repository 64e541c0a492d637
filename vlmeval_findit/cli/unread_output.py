"""Output that nobody reads any more: the command goes on (``findit … | head -1``).

What a command writes to files, and what it has paid for, does not depend on who reads the screen.
A command that ends by itself asks nothing here; one that never does asks :func:`is_unread`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO


class _Output(io.FileIO):
    """A pipe, or a file, that takes what is written after its reader has ended."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "wb", closefd=False)
        self.is_unread = False

    def write(self, text: Any) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            self.is_unread = True
            # Programs that are started from now on write there, too.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(text)


@contextmanager
def unread_output() -> Iterator[None]:
    """Go on within this block when the reader of stdout or stderr ends; write any sign there.

    A terminal that lacks a sign (LANG of a cluster's node) must not end a command either.
    """
    before = (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = _going_on(sys.stdout), _going_on(sys.stderr)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _going_on(stream: TextIO | None) -> TextIO:
    if stream is None:  # Closed by who started the command (`>&-`)
        return Path(os.devnull).open("w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):
        return stream  # Of a notebook
    stream.reconfigure(errors="replace")
    file = _file_of(stream)
    if not isinstance(file, io.FileIO) or stream.isatty():
        return stream
    stream.flush()
    output = _Output(file.fileno())
    return io.TextIOWrapper(
        output if file is stream.buffer else io.BufferedWriter(output),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _file_of(stream: object) -> object:
    """Return the file below a stream: of ``python -u`` there is no buffer between the two."""
    buffer = getattr(stream, "buffer", None)
    return getattr(buffer, "raw", buffer)


def is_unread() -> bool:
    """Write what is not yet written to stdout, and tell whether it has lost its reader."""
    sys.stdout.flush()
    file = _file_of(sys.stdout)
    return isinstance(file, _Output) and file.is_unread
