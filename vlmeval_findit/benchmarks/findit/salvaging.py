"""What a tolerant reader would find beside the score, as sums and details (protocol section 5).

Adherent replies cost nothing here, and no sum of the score depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any, NamedTuple

from ...boxes.matching import match
from ...boxes.records import Matched, Reading, Truth
from ...boxes.reply_format import ReplyFormat
from ...boxes.representation import Judging
from ...boxes.salvage import Salvaged, salvage

FOUND_MORE = "salvaged_tp"
"""The sum of objects found by the salvaged reading, less those found by the strict one."""

SAID_MORE = "salvaged_pred"
"""The sum of boxes that the salvaged reading has beside the strict one."""

POINTED_MORE, PLACES_MORE = "salvaged_pointed", "salvaged_places"
"""What it has beside the strict one in the sums ``pointed`` and ``places`` of points."""


class SalvagedMatch(NamedTuple):
    """A salvaged reading against the ground truth."""

    salvaged: Salvaged
    matched: Matched


def salvaged_matches(
    replies: Sequence[str],
    formats: Sequence[ReplyFormat],
    readings: Sequence[Reading],
    truths: Sequence[Truth],
    scales: Sequence[tuple[float, float]],
    judged: Judging = Judging.BY_OVERLAP,
) -> dict[int, SalvagedMatch]:
    """The salvaged readings of replies, matched, by the places of those that have one."""
    found = {
        place: salvaged
        for place, reading in enumerate(readings)
        if reading.reason is not None
        and (salvaged := salvage(replies[place], formats[place], reading)) is not None
    }
    matched = match(
        [salvaged.reading for salvaged in found.values()],
        [truths[place] for place in found],
        [scales[place] for place in found],
        judged,
    )
    return dict(zip(found, map(SalvagedMatch, found.values(), matched), strict=True))


def newly_found(strict: Matched, salvaged: SalvagedMatch) -> tuple[int, ...]:
    """The places of the objects that only the salvaged reading finds."""
    both = zip(salvaged.matched.hits, strict.hits, strict=True)
    return tuple(j for j, (now, before) in enumerate(both) if now and not before)


def salvaged_sums(strict: Matched, salvaged: SalvagedMatch) -> dict[str, float]:
    """The sums of one query, where they are not 0.

    More boxes may be assigned otherwise, so hits can become fewer too.
    """
    return _not_0(
        {
            FOUND_MORE: salvaged.matched.tp - strict.tp,
            SAID_MORE: salvaged.matched.counted - strict.counted,
        }
    )


def salvaged_point_sums(strict: Matched, salvaged: SalvagedMatch) -> dict[str, float]:
    """The same of one query that is answered with points."""
    objects = len(strict.hits)
    places = [max(objects, one.counted) for one in (salvaged.matched, strict)]
    return _not_0(
        {POINTED_MORE: salvaged.matched.tp - strict.tp, PLACES_MORE: places[0] - places[1]}
    )


def _not_0(sums: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in sums.items() if value}


SALVAGED_SUMS: Mapping[Judging, Callable[[Matched, SalvagedMatch], dict[str, float]]] = {
    Judging.BY_OVERLAP: salvaged_sums,
    Judging.BY_LYING_INSIDE: salvaged_point_sums,
}
"""What a tolerant reading changes in the sums of one query, by how its answers are judged."""


def salvaged_details(strict: Matched, salvaged: SalvagedMatch) -> dict[str, Any]:
    """As the details file holds it: boxes in pixels, first those of the strict reading."""
    reading, matched = salvaged.salvaged.reading, salvaged.matched
    found: dict[str, Any] = {
        "steps": [step.value for step in salvaged.salvaged.steps],
        "boxes": finite(matched.boxes),
        "hits": matched.hits,
        "recoverable": list(newly_found(strict, salvaged)),
    }
    if reading.labels:
        found["labels"] = reading.labels
    if reading.frames:
        found["frames"] = reading.frames
    return found


def finite(boxes: list[list[float]]) -> list[list[float]] | list[list[float | None]]:
    """Boxes as JSON may have them: null for what is no finite number."""
    if all(map(isfinite, chain.from_iterable(boxes))):
        return boxes
    return [[n if isfinite(n) else None for n in box] for box in boxes]
