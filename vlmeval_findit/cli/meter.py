"""The progress bar of downloads: bytes, speed and time left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from .options import is_quiet
from .printing import console


class Meter:
    """Counts bytes and files; may be told by many threads.

    How many bytes there will be is known of archives; of single files it is guessed from those
    that have come, and from the source's usual size before.
    """

    def __init__(self, bar: Progress, what: str, files: int, typical: int) -> None:
        self._bar = bar
        self._lock = threading.Lock()
        self._files = files
        self._typical = typical
        self._done = 0
        self._bytes = 0
        self._announced = 0
        self._task = bar.add_task(what, total=files * typical, files=f"0/{files}")

    def got(self, count: int) -> None:
        """So many bytes arrived."""
        with self._lock:
            self._bytes += count
            self._show()

    def expect(self, remaining: int) -> None:
        """Note how many bytes of an archive are still to come."""
        with self._lock:
            self._announced = self._bytes + remaining
            self._show()

    def finished(self, name: str) -> None:
        """A file is there, or has failed for good."""
        with self._lock:
            self._done += 1
            self._show()

    def _show(self) -> None:
        mean = self._bytes / self._done if self._done else self._typical
        guess = self._bytes + (self._files - self._done) * mean
        self._bar.update(
            self._task,
            completed=self._bytes,
            total=max(self._bytes, self._announced or guess),
            files=f"{self._done}/{self._files}",
        )


@contextmanager
def meter(what: str, files: int, typical: int) -> Iterator[Meter]:
    """Show a bar on a terminal; ``typical`` is the usual size of a file in bytes."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[files]}"),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    shown = console()
    silent = is_quiet() or not shown.is_terminal
    with Progress(*columns, console=shown, disable=silent) as bar:
        yield Meter(bar, what, files, typical)
