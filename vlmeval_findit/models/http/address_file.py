"""Servers whose addresses stand in a file that may grow and shrink while they are asked."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from .endpoint import Endpoint

log = logging.getLogger(__name__)

Stamp = tuple[int, int, int]


class AddressFile:
    """The servers of a file: a base URL a line; empty lines and lines from ``#`` on say nothing.

    A last line without its end is still being written, and is left for later.

    Args:
        path: the file; one that is not there yet names nobody.
        endpoint: makes a server of a base URL.

    Raises:
        ValueError: its folder is not there, or a line of it is no base URL.
    """

    def __init__(self, path: Path, endpoint: Callable[[str], Endpoint]) -> None:
        if not path.absolute().parent.is_dir():
            raise ValueError(f"--endpoints @{path}: no such folder")
        self._path = path
        self._endpoint = endpoint
        self._stamp: Stamp | None = None
        self._found: list[Endpoint] = []
        try:
            self._read()
        except FileNotFoundError:
            log.info("--endpoints @%s: not there yet", path)

    def __call__(self) -> list[Endpoint]:
        """The servers that it names now; those of before where it cannot be read."""
        try:
            self._read()
        except FileNotFoundError:
            self._stamp, self._found = None, []
        except (OSError, ValueError) as error:
            log.warning("%s: the servers of before are asked", error)
        return self._found

    def _read(self) -> None:
        """Read it, if it changed."""
        said = self._path.stat()
        stamp = (said.st_mtime_ns, said.st_size, said.st_ino)
        if stamp == self._stamp:
            return
        self._stamp = stamp  # a line that is no address is complained of once
        found: dict[str, Endpoint] = {}
        text = self._path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(keepends=True), start=1):
            url = line.partition("#")[0].strip()
            if not url or not line.endswith("\n"):
                continue
            try:
                found.setdefault(url, self._endpoint(url))
            except ValueError as error:
                raise ValueError(f"{self._path}, line {number}: {error}") from None
        self._found = list(found.values())
