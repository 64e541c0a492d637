"""Which calls are on their way in batches: events of the journal.

What is going to be submitted is written down before, the service's ids for it after.  So whatever
kills a run, the next one knows what to look for before it submits anything again.  No prompt, no
image and no key of a service is in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from ..core.files import sha256_of
from ..models.http.batch.records import Batch, BatchKind, Route
from .journal.writer import Journal


class Ledger:
    """The batches of a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._batches: dict[str, Batch] = {}
        for event in journal.events():
            self._take(event)

    @property
    def open(self) -> frozenset[str]:
        """The keys of all calls that are on their way."""
        return frozenset().union(*(one.open for one in self._batches.values()))

    @property
    def ids(self) -> frozenset[str]:
        """The services' ids of all batches that were made."""
        return frozenset(one.id for one in self._batches.values())

    def with_any(self, keys: Set[str]) -> list[Batch]:
        """The batches that some of these calls are on their way in, as they were submitted."""
        return [one for one in self._batches.values() if one.open & keys]

    def intend(self, route: Route, keys: Iterable[str]) -> Batch:
        """Note that a batch is going to be submitted."""
        own = sorted(keys)
        # The number keeps the name of a batch whose calls all failed from coming again.
        name = sha256_of("\n".join([str(len(self._batches)), *own]).encode())[:32]
        how = {**route._asdict(), "kind": route.kind.value}
        return self._note({"batch": name, **how, "at": round(time.time(), 3), "keys": own})

    def note(self, batch: Batch, **step: Any) -> Batch:
        """Note what became of a batch: its requests were ``uploaded`` as a file, it was made under
        an ``id``, the results of some keys were ``collected``, or nothing comes of it (``ended``).
        """
        return self._note({"batch": batch.name, **step})

    def refuse_open(self, keys: Set[str], route: Route | None = None) -> None:
        """Refuse to ask calls that are on their way: they would be paid twice.

        Args:
            keys: of the calls.
            route: in batches of this kind and place they may be (None: in none).

        Raises:
            ValueError: some are.
        """
        for one in self.with_any(keys):
            if one.route != route:
                as_said = "with" if one.route.confidences else "without"
                raise ValueError(
                    f"{len(one.open & keys)} of these calls are on their way in {one}, asked "
                    f"{as_said} --confidences: run with --batch {one.route.kind.value}, and like "
                    "this, to collect them first, or name another --journal to ask, and pay, them "
                    "once more"
                )

    def _note(self, event: Mapping[str, Any]) -> Batch:
        self._journal.note(event)
        self._take(event)
        return self._batches[event["batch"]]

    def _take(self, event: Mapping[str, Any]) -> None:
        name = event.get("batch", "")
        if "keys" in event:
            keys, kind = frozenset(event["keys"]), BatchKind(event["kind"])
            route = Route(kind, event["server"], event["model"], event["confidences"])
            self._batches[name] = Batch(name, route, event["at"], keys, keys)
        elif (known := self._batches.get(name)) is not None:
            gone = known.open if "ended" in event else event.get("collected", ())
            ids = {step: event[step] for step in ("uploaded", "id") if step in event}
            self._batches[name] = replace(known, open=known.open.difference(gone), **ids)
