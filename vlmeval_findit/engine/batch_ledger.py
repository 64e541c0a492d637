"""Which calls are on their way in batches: a small file beside the journal, only appended to.

What is going to be submitted is written down before, the service's id for it after.  So whatever
kills a run, the next one knows what to look for before it submits anything again.  Who has the
journal has the ledger.  No prompt, no picture and no key of a service is in it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.files import sha256_of
from ..models.http.batch.dialects import BatchKind
from ..models.http.batch.services import Intent
from .journal.errors import JournalError, full_disk


@dataclass(frozen=True, slots=True)
class Route:
    """How calls are asked in a batch: all calls of one are asked alike.

    ``server`` is the service's address without secrets.
    """

    kind: BatchKind
    server: str
    model: str
    confidences: bool


@dataclass(frozen=True, slots=True)
class Noted:
    """A batch as the ledger knows it; ``id`` is empty where nobody noted that it was made.

    ``live`` are the keys of its calls whose results were not collected.
    """

    intent: Intent
    route: Route
    id: str = ""
    live: frozenset[str] = frozenset()


class Ledger:
    """The batches of a journal.

    Args:
        journal: beside which it lies.

    Raises:
        JournalError: it cannot be read.
    """

    def __init__(self, journal: Path) -> None:
        self.path = journal.with_name(f"{journal.name}.batches")
        self._journal = journal
        self._batches: dict[str, Noted] = {}
        for line in self._lines():
            self._take(line)

    def batches(self) -> list[Noted]:
        """All batches, in the order in which they were submitted."""
        return list(self._batches.values())

    @property
    def live(self) -> frozenset[str]:
        """The keys of all calls that are on their way."""
        return frozenset().union(*(one.live for one in self._batches.values()))

    def with_any(self, keys: Set[str]) -> list[Noted]:
        """The batches that some of these calls are on their way in."""
        return [one for one in self._batches.values() if one.live & keys]

    def intend(self, route: Route, keys: Iterable[str]) -> Noted:
        """Note that a batch is going to be submitted."""
        own = frozenset(keys)
        # The number keeps the name of a batch whose calls all failed from coming again.
        said = "\n".join([str(len(self._batches)), *sorted(own)])
        name = sha256_of(said.encode())[:32]
        line = {
            "batch": name,
            "kind": route.kind.value,
            "server": route.server,
            "model": route.model,
            "confidences": route.confidences,
            "at": round(time.time(), 3),
            "keys": sorted(own),
        }
        self._append(line)
        return self._batches[name]

    def made(self, name: str, id: str) -> Noted:
        """Note under which id a batch was made."""
        self._append({"batch": name, "id": id})
        return self._batches[name]

    def collected(self, name: str, keys: Iterable[str]) -> None:
        """Note that results are in the journal."""
        # First the answers, then that they are there, whatever the power does.
        with suppress(FileNotFoundError):
            file = os.open(self._journal, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)
        self._append({"batch": name, "collected": sorted(keys)})

    def ended(self, name: str, why: str) -> None:
        """Note that nothing came of a batch, and nothing will."""
        self._append({"batch": name, "ended": why})

    def _append(self, line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                size = os.fstat(file).st_size
                torn = size and os.pread(file, 1, size - 1) != b"\n"
                left = memoryview(b"\n" + data if torn else data)
                while left:
                    left = left[os.write(file, left) :]
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise full_disk(error, self.path) from None
        self._take(line)

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        with self.path.open("rb") as f:
            for number, raw in enumerate(f, 1):
                try:
                    line = json.loads(raw)
                except ValueError:
                    continue  # torn: what it says was not done yet
                if not isinstance(line, dict) or "batch" not in line:
                    raise JournalError(f"{self.path}, line {number}: this is no ledger of batches")
                yield line

    def _take(self, line: dict[str, Any]) -> None:
        name = line["batch"]
        if "keys" in line:
            keys = frozenset(line["keys"])
            route = Route(
                BatchKind(line["kind"]), line["server"], line["model"], line["confidences"]
            )
            self._batches[name] = Noted(Intent(name, keys, line["at"]), route, live=keys)
            return
        known = self._batches.get(name)
        if known is None:
            return
        if "id" in line:
            known = replace(known, id=line["id"])
        if "ended" in line:
            known = replace(known, live=frozenset())
        self._batches[name] = replace(known, live=known.live.difference(line.get("collected", ())))


def refuse_calls_in_batches(ledger: Ledger, left: Set[str]) -> None:
    """Refuse to ask calls one by one that are on their way in batches: they would be paid twice.

    Raises:
        ValueError: some are.
    """
    for one in ledger.with_any(left):
        raise ValueError(
            f"{len(one.live & left)} of these calls are on their way in {_named(one)}: run with "
            f"--batch {one.route.kind.value} to collect them, or delete {ledger.path} to ask, and "
            "pay, them once more"
        )


def refuse_other_routes(ledger: Ledger, noted: Iterable[Noted], route: Route) -> None:
    """Refuse calls that are on their way in batches of another kind or place.

    Raises:
        ValueError: some are.
    """
    for one in noted:
        if one.route == route:
            continue
        as_said = "with" if one.route.confidences else "without"
        raise ValueError(
            f"{len(one.live)} calls are on their way in {_named(one)}, asked {as_said} "
            f"--confidences: run like this to collect them first, or delete {ledger.path} to ask, "
            "and pay, them once more"
        )


def _named(one: Noted) -> str:
    where = f" at {one.route.server}" if one.route.server else ""
    return f"the batch {one.id or one.intent.name} ({one.route.kind.value}{where})"
