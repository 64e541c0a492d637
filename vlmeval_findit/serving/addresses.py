"""Follow a file of server addresses that changes during a run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class AddressFile(Generic[T]):
    """The servers of a file: one base URL per line, comments after ``#``.

    An unterminated last line is still being written, and ignored. The file may be created later;
    ValueError if its folder is missing or a line is no base URL.
    """

    def __init__(self, path: Path, endpoint: Callable[[str], T]) -> None:
        if not path.absolute().parent.is_dir():
            raise ValueError(f"--base-url @{path}: no such folder")
        self._path = path
        self._endpoint = endpoint
        self._stamp: tuple[int, ...] = ()
        self._found: list[T] = []
        self._read()

    def __call__(self) -> list[T]:
        """Return the current servers, or the previous ones if the file cannot be read."""
        try:
            self._read()
        except (OSError, ValueError) as error:
            log.warning("%s: the servers of before are asked", error)
        return self._found

    def _read(self) -> None:
        try:
            stat = self._path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp == self._stamp:
                return
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self._stamp, self._found = (), []
            return
        self._stamp = stamp  # a bad line is reported once
        by_url: dict[str, T] = {}
        for number, line in enumerate(text.splitlines(keepends=True), start=1):
            url = line.partition("#")[0].strip()
            if not url or not line.endswith("\n"):
                continue
            try:
                by_url.setdefault(url, self._endpoint(url))
            except ValueError as error:
                raise ValueError(f"{self._path}, line {number}: {error}") from None
        self._found = list(by_url.values())
