"""The results of a batch, on the disk: which stands where, by the id of its request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple


class _Place(NamedTuple):
    start: int
    length: int


class Results:
    """Lines of JSON, in any order, as a service or a program left them.

    They lie in a file, since log-probabilities make them large.  What is no result is left out, of
    several for one request the first counts.
    """

    def __init__(self, file: BinaryIO | None = None) -> None:
        self._file = file or TemporaryFile()  # noqa: SIM115 (closed with this)
        self._places: dict[str, _Place] = {}

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @contextmanager
    def filled(self) -> Iterator[BinaryIO]:
        """Where to write the lines; they are known at the end of the block."""
        try:
            yield self._file
            self._index()
        except BaseException:
            self._file.close()
            raise

    def keys(self) -> Set[str]:
        """The ids of requests that have a result."""
        return self._places.keys()

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of a request, None where it has none."""
        if key not in self._places:
            return None
        self._file.seek(self._places[key].start)
        found: dict[str, Any] = json.loads(self._file.read(self._places[key].length))
        return found

    def _index(self) -> None:
        self._file.seek(0)
        start = 0
        for line in self._file:
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict) and isinstance(found.get("custom_id"), str):
                self._places.setdefault(found["custom_id"], _Place(start, len(line)))
            start += len(line)
