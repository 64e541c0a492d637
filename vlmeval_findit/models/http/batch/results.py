"""The results of a batch, on the disk: which stands where, by the id of its request."""

from __future__ import annotations

import json
from collections.abc import Set
from typing import Any, BinaryIO


class Results:
    """Lines of JSON in a file, in any order, as a service or a program left them.

    They stay on the disk, since log-probabilities make them large.  What is no result is left out,
    of several for one request the first counts.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._places: dict[str, tuple[int, int]] = {}
        file.seek(0)
        start = 0
        for line in file:
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict) and isinstance(found.get("custom_id"), str):
                self._places.setdefault(found["custom_id"], (start, len(line)))
            start += len(line)

    def keys(self) -> Set[str]:
        """The ids of requests that have a result."""
        return self._places.keys()

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of a request, None where it has none."""
        if key not in self._places:
            return None
        start, length = self._places[key]
        self._file.seek(start)
        found: dict[str, Any] = json.loads(self._file.read(length))
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()
