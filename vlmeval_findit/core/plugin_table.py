"""A table of ours that plug-ins add rows to (:mod:`.plugins`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from .plugins import (
    Broken,
    Group,
    Later,
    Offer,
    Plugin,
    is_loading,
    lock,
    offered,
    report,
    stamp,
    why,
)

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Added(Generic[Row]):
    """A row that is not ours, and where it comes from."""

    row: Row
    plugin: Plugin


def _nothing() -> Sequence[Offer]:
    return ()


class Table(Mapping[str, Row]):
    """Our rows, and on a miss or when it is listed those of plug-ins behind them.

    A row of a plug-in never takes the place of another: what has the name of one that is there, or
    is no usable row, is reported and left out.  Our own modules must not list a table while they
    are imported, as plug-ins import them.

    >>> table = Table(Group.SPACES, {"a": 1}, int, name=str)
    >>> table["a"], "b" in table, list(table.ours)
    (1, False, ['a'])

    Args:
        group: whose entry points and attributes are looked at.
        ours: our rows, by their names.
        kind: the type that a row must have.
        problem: why a row of that type cannot be used (None: it can); what it raises is a reason
            too.
        name: the name of a row.
        more: rows of yet another origin; the same object as long as nothing changed there.
    """

    def __init__(
        self,
        group: Group,
        ours: Mapping[str, Row],
        kind: type,
        problem: Callable[[Any], str | None] = lambda row: None,
        name: Callable[[Any], str] = attrgetter("name"),
        more: Callable[[], Sequence[Offer]] = _nothing,
    ) -> None:
        self.group = group
        self.ours = ours
        self._kind = kind
        self._problem = problem
        self._name = name
        self._more = more
        self._asked: tuple[object, ...] = ()
        self._added: Mapping[str, Added[Row]] = {}
        self._asking: dict[str, Added[Row]] | None = None

    def __getitem__(self, name: str) -> Row:
        if name in self.ours:
            return self.ours[name]
        if not name:
            raise KeyError(name)  # nothing is named, as where nothing was recorded
        return self.added()[name].row

    def __iter__(self) -> Iterator[str]:
        yield from self.ours
        yield from self.added()

    def __len__(self) -> int:
        return len(self.ours) + len(self.added())

    def plugin_of(self, name: str | None) -> Plugin | None:
        """Where a row that is not ours comes from; None of ours, and where there is none."""
        if name is None or name in self.ours:
            return None
        found = self.added().get(name)
        return found.plugin if found else None

    def added(self) -> Mapping[str, Added[Row]]:
        """The rows of plug-ins by their names, looked for once."""
        with lock:
            if self._asking is not None:
                # A plug-in that is looked at asks for a row: there are those before it.
                return dict(self._asking)
            more = self._more()
            asked = (*stamp(), more)
            if asked == self._asked:
                return self._added
            self._asking = {}
            try:
                for offer in (*offered(self.group), *more):
                    self._take(offer)
                found = self._asking
            finally:
                self._asking = None
            if not is_loading():
                self._asked, self._added = asked, found
            return found

    def _take(self, offer: Offer) -> None:
        assert self._asking is not None
        row, name, reason = offer.row, "", None
        try:
            if isinstance(row, Later):
                row = row.make()
            if not isinstance(row, self._kind):
                reason = f"should be a {self._kind.__name__}, and is {row!r:.60}"
            else:
                name = self._name(row)
                reason = self._no_name(name) or self._problem(row)
        except (Exception, SystemExit) as error:
            reason = why(error)
        if reason is None:
            self._asking[name] = Added(row, offer.plugin)  # type: ignore[arg-type]
        else:
            report(Broken(self.group, offer.plugin, str(name), reason))

    def _no_name(self, name: object) -> str | None:
        """Why a row cannot have this name."""
        assert self._asking is not None
        if not isinstance(name, str) or not name or not name.isprintable() or name != name.strip():
            return f"{name!r} is no name"
        if name in self.ours:
            return f"{name} is a row of vlmeval_findit"
        if name in self._asking:
            return f"{name} is a row of {self._asking[name].plugin}"
        return None
