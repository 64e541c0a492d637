"""What a replica keeps beside the journal, until the driver merges it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..journal.lines import Record, stored
from ..journal.reading import records_of
from ..journal.shards import append_to_shard, shard_path


class Side:
    """The records of one replica; an actor that takes its place goes on with them."""

    def __init__(self, journal: Path, token: str) -> None:
        self._journal, self._token = journal, token
        self._answered: set[str] = set()
        path = shard_path(journal, token)
        if path.exists():
            with path.open("rb") as f:
                self._answered = {one["key"] for one in records_of(f) if not one["error"]}

    def answered(self, key: str) -> bool:
        return key in self._answered

    def append(self, records: Iterable[Record]) -> None:
        made = [stored(record) for record in records]
        append_to_shard(self._journal, self._token, b"".join(line for _, line in made))
        self._answered.update(record["key"] for record, _ in made if not record["error"])
