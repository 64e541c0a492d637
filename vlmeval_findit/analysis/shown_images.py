"""Whether two runs showed the same images, by what both recorded.

What a run did not record contradicts nothing: scores need no images on disk, and files of other
programs can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..scoring import Provenance
from ..storage import changed, is_transparent


def other_images(its: Provenance, others: Provenance) -> str:
    """Say that a run showed other images than another run; "" if that is not known."""
    if its.shown is others.shown:
        return ""
    if rows := list(_changed_rows(its, others)):
        return f"other images: {len(rows)} of {len(its.rows)} rows (first: row {min(rows)})"
    for older, newer in ((its, others), (others, its)):
        if not _did_not_lay_on_white(older):
            continue
        if rows := [row for row in transparent_rows(newer) if row in older.rows]:
            return (
                f"other images: {len(rows)} of {len(its.rows)} rows (first: row {min(rows)}) are "
                "transparent, which version 1.0 did not lay on white, and one of both was asked by "
                "it"
            )
    return ""


def transparent_rows(provenance: Provenance) -> list[int]:
    """List the rows that showed a transparent image."""
    return [
        row for row, shown in provenance.shown.items() if any(map(is_transparent, shown.values()))
    ]


def _changed_rows(its: Provenance, others: Provenance) -> Iterator[int]:
    for row, shown in its.shown.items():
        if changed(shown, others.shown.get(row, {})):
            yield row


def _did_not_lay_on_white(provenance: Provenance) -> bool:
    """Return whether FindIt's version 1.0 showed the images; it recorded none of them."""
    run = provenance.identity
    return run is not None and not provenance.shown and not run.answering.in_vlmevalkit
