"""What became of everything that an import was given: read, left out, or not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import Enum


class Fate(Enum):
    """What became of a thing in a file or folder."""

    READ = "read"
    LEFT_OUT = "left out"  # It could have counted; the entry says why it does not
    NOT_READ = "not read"  # No reader knows it: an unknown key, column or file
    NOT_NEEDED = "not needed"  # Known, and it changes no query: a licence, a camera
    NOTED = "note"  # It counts, and the user should know how


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """How many things had one fate, and where the first of them stands."""

    fate: Fate
    what: str  # In the plural, with the reason: "boxes without an area"
    count: int
    first: str  # File and place; empty: there is none to name
    # Whether pycocotools has another value over the file itself: its objects, or what counts
    unlike_file: bool = False

    def __str__(self) -> str:
        """Say it in one line.

        >>> print(LedgerEntry(Fate.LEFT_OUT, "boxes without an area", 2, "a.json, annotations[3]"))
        left out: boxes without an area (2), the first: a.json, annotations[3]
        """
        first = f", the first: {self.first}" if self.first else ""
        return f"{self.fate.value}: {self.what} ({self.count:,}){first}"


class Ledger:
    """Collects what became of everything; equal things are counted, and the first is named.

    >>> ledger = Ledger()
    >>> ledger.read("images", 2)
    >>> ledger.read("boxes", 3)
    >>> ledger.leave_out("boxes without an area", "a.json, annotations[3]")
    >>> ledger.not_read("images: split", "a.json, images[0]")
    >>> ledger.not_read("images: split", "a.json, images[1]")
    >>> print(*ledger.lines(), sep="\\n")
    read: images (2), boxes (3)
    left out: boxes without an area (1), the first: a.json, annotations[3]
    not read: images: split (2), the first: a.json, images[0]
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[Fate, str], int] = {}
        self._firsts: dict[tuple[Fate, str], str] = {}
        self._unlike_file: set[tuple[Fate, str]] = set()

    def __iter__(self) -> Iterator[LedgerEntry]:
        """Yield the entries, what was read first."""
        order = list(Fate)
        for fate, what in sorted(self._counts, key=lambda key: order.index(key[0])):
            key = (fate, what)
            unlike_file = key in self._unlike_file
            yield LedgerEntry(fate, what, self._counts[key], self._firsts[key], unlike_file)

    def read(self, what: str, count: int = 1) -> None:
        """Count what was read: files, images, boxes."""
        self._add(Fate.READ, what, "", count)

    def leave_out(
        self, what: str, where: str, count: int = 1, *, unlike_file: bool = False
    ) -> None:
        """Count what does not count, though it could; ``what`` says why."""
        self._add(Fate.LEFT_OUT, what, where, count, unlike_file)

    def not_read(self, what: str, where: str, count: int = 1) -> None:
        """Count what no reader knows."""
        self._add(Fate.NOT_READ, what, where, count)

    def not_needed(self, what: str, where: str, count: int = 1) -> None:
        """Count what is known, and changes no query."""
        self._add(Fate.NOT_NEEDED, what, where, count)

    def note(self, what: str, where: str, count: int = 1, *, unlike_file: bool = False) -> None:
        """Count what counts in a way that the user should know."""
        self._add(Fate.NOTED, what, where, count, unlike_file)

    def keys(
        self,
        kind: str,
        keys: Iterable[str],
        not_needed: frozenset[str],
        where: str,
        count: int = 1,
    ) -> None:
        """Count the keys (or columns) of a record that its reader does not use.

        Args:
            kind: what has them, in the plural: "annotations".
            keys: those that are not used.
            not_needed: those that are known, and change no query.
            where: the file and the place of the first such record.
            count: how many records have these keys.
        """
        for key in keys:
            if key in not_needed:
                self.not_needed(f"{kind}: {key}", where, count)
            else:
                self.not_read(f"{kind}: {key}", where, count)

    def count(self, fate: Fate) -> int:
        """Return how many things had a fate."""
        return sum(entry.count for entry in self if entry.fate is fate)

    def lines(self) -> list[str]:
        """Return a line for each entry; all that was read shares one, and what is not needed."""
        entries = list(self)
        read = [f"{entry.what} ({entry.count:,})" for entry in entries if entry.fate is Fate.READ]
        known = [entry.what for entry in entries if entry.fate is Fate.NOT_NEEDED]
        lines = [f"read: {', '.join(read)}"] if read else []
        shared = (Fate.READ, Fate.NOT_NEEDED)
        lines += [str(entry) for entry in entries if entry.fate not in shared]
        if known:
            lines.append(f"not needed: {', '.join(known)}")
        return lines

    def as_json(self) -> list[dict[str, object]]:
        """Return every entry as an object of JSON, for ``.meta.json``."""
        entries = []
        for entry in self:
            values = {**asdict(entry), "fate": entry.fate.value}
            if not entry.unlike_file:
                del values["unlike_file"]
            entries.append(values)
        return entries

    def _add(
        self, fate: Fate, what: str, where: str, count: int, unlike_file: bool = False
    ) -> None:
        if count == 0:
            return
        # Called for keys of every object: a record is made when somebody asks.
        key = (fate, what)
        self._counts[key] = self._counts.get(key, 0) + count
        self._firsts.setdefault(key, where)
        if unlike_file:
            self._unlike_file.add(key)
