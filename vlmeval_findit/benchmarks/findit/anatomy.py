"""The anatomy of an F1: events as sums of a row and in its details, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...boxes.error_kinds import CAUSES, Event, Kind, Lacks, usually
from ...boxes.f1_prices import prices
from ...boxes.records import Matched, Reading, Truth
from ...core.anatomy import LABEL, Anatomy
from ...core.metric import Sums
from ...core.scored_row import ScoredRow
from .metrics import F1_FAILED_MISSED

SIZE, OBJECTS = "size", "objects"
"""Parts beside slices: by the size of the object (without one: the box), by how many there are."""

LOSSES = "losses"
"""Where the details of a row list its events."""

_SMALL, _LARGE = 32.0**2, 96.0**2
"""COCO's bounds in pixels: an object is small below the first and large from the second on."""


class F1Anatomy(Anatomy):
    """What the F1 with failed calls as misses lost."""

    causes = tuple(CAUSES.values())
    score = F1_FAILED_MISSED
    cuts = (SIZE, OBJECTS, LABEL)

    def events(self, row: ScoredRow) -> Mapping[str, float]:
        return {name: count for name, count in row.sums.items() if name in _KEYS}

    def points(self, sums: Sums) -> Mapping[str, Any]:
        true = sums.get("n_gt", 0) + sums.get("n_gt_failed", 0)
        price = prices(sums.get("tp", 0), sums.get("n_pred", 0), true)
        each = {Lacks.PAIR: price.pair, Lacks.BOX: price.box, Lacks.OBJECT: price.object}
        each[Lacks.NOTHING] = 0 * price.box
        return {
            CAUSES[kind].key: 100 * sum(_count(sums, kind, how) * each[how] for how in Lacks)
            for kind in Kind
        }

    def parts(self, row: ScoredRow, by: str) -> Iterator[tuple[str, Mapping[str, float]]]:
        if by == OBJECTS:
            yield str(row.details["n_gt"]), self.events(row)
        elif by in row.slices or by not in (SIZE, LABEL):
            yield from super().parts(row, by)
        else:
            parts: dict[str, list[Event]] = {}
            for one in row.details.get(LOSSES, ()):
                part = one.get(by, row.details[LABEL] if by == LABEL else None)
                if part is not None:
                    parts.setdefault(part, []).append(_event(one))
            for part, events in parts.items():
                yield part, event_sums(events)


def event_sums(events: Iterable[Event]) -> dict[str, float]:
    """The sums of a row's events: of kinds that it has none of there is no sum."""
    total: dict[str, float] = {}
    for event in events:
        key, lacks = CAUSES[event.kind].key, event.lacks
        total[key] = total.get(key, 0) + 1
        if lacks is not usually(event.kind):
            key = _unusual(event.kind, lacks)
            total[key] = total.get(key, 0) + 1
    return total


def _unusual(kind: Kind, lacks: Lacks) -> str:
    """The sum of a kind's events that leave out something else than usual."""
    return f"{CAUSES[kind].key} ({lacks.value})"


def _count(sums: Sums, kind: Kind, lacks: Lacks) -> Any:
    """How many events of a kind leave that out."""
    if lacks is not usually(kind):
        return sums.get(_unusual(kind, lacks), 0)
    others = sum(sums.get(_unusual(kind, other), 0) for other in Lacks if other is not lacks)
    return sums.get(CAUSES[kind].key, 0) - others


_KEYS = {
    *(one.key for one in CAUSES.values()),
    *(_unusual(kind, lacks) for kind in Kind for lacks in Lacks),
}


# --- in the details -------------------------------------------------------------------------------


def details_of(
    events: Sequence[Event], matched: Matched, reading: Reading, truth: Truth
) -> list[dict[str, Any]]:
    """Events as the details of a row list them.

    ``box`` and ``object`` are places among the boxes read and the objects (null: it has none),
    ``size`` is the object's, else the box's; ``label`` likewise, where boxes have labels.
    """
    made = []
    for event in events:
        one: dict[str, Any] = {"kind": event.kind.value, "box": event.box, "object": event.object}
        if event.object is not None:
            one[SIZE] = size_of(truth.boxes[event.object])
            label = truth.labels[event.object] if truth.labels else None
        elif event.box is not None:
            one[SIZE] = size_of(matched.boxes[event.box])
            label = reading.labels[event.box] if reading.labels else None
        else:
            label = None
        if label is not None:
            one[LABEL] = label
        made.append(one)
    return made


def _event(values: Mapping[str, Any]) -> Event:
    return Event(Kind(values["kind"]), values["box"], values["object"])


def size_of(box: Sequence[float]) -> str:
    """COCO's size of a box in pixels.

    >>> size_of((0, 0, 31, 31)), size_of((0, 0, 32, 32)), size_of((0, 0, 96, 96))
    ('small', 'medium', 'large')
    """
    x1, y1, x2, y2 = box
    if not (x1 < x2 and y1 < y2):
        return "no area"
    area = (x2 - x1) * (y2 - y1)
    if area < _SMALL:
        return "small"
    return "medium" if area < _LARGE else "large"
