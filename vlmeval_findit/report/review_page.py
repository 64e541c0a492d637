"""The page on which a person judges doubtful labels, without knowing which candidate is the label.

It has no network and no server: decisions are stored in the browser and saved as ``reviews.jsonl``.
Neither models' names nor scores are on the page. What is told after a choice (which candidate is
the label, votes, kind) and what only the file needs lie in it as base64, so that nobody reads it
before.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from random import Random
from typing import Any

from markupsafe import Markup

from ..core import printable
from ..protocol import Answer, AuditRecord, Reviews
from ..storage import review_lines
from .gallery import Numbered, image_values
from .rendering import joined_script, json_in_html, render, short_names
from .review_rows import ReviewRow, Source

_SCRIPTS = (
    "elements", "theme", "zoom", "review_progress", "review_picture", "review_edit", "review",
)  # fmt: skip
_BUDGET = 40_000_000  # Characters of all images: 400 of 640 pixels


def make_review_page(
    dataset: str, audit: AuditRecord, rows: Sequence[ReviewRow], time: datetime
) -> str:
    """Make the page, as HTML.

    Args:
        dataset: its name, the page's title.
        audit: what the rows were drawn from; the first line of the file that the page saves.
        rows: in the order in which they are judged.
        time: written on the page.
    """
    images = Numbered()
    entries = [_entry(row, audit.seed, images) for row in rows]
    (header,) = review_lines(Reviews((), (audit,)))
    shown = header + json.dumps(entries)
    digest = hashlib.sha256(shown.encode()).hexdigest()[:16]
    data = {
        "key": f"findit-review {audit.table} {digest}",
        "table": audit.table,
        "header": _sealed(header),
        "rows": entries,
        "images": image_values(images.values, _BUDGET),
        "short_names": short_names(name for row in rows for name in row.classes),
    }
    return render(
        "review.html.j2",
        time.strftime("%Y-%m-%d %H:%M UTC"),
        [joined_script(_SCRIPTS)],
        ["report.css", "review.css"],
        dataset=dataset,
        single=all(row.single for row in rows),
        rows=len(rows),
        data=Markup(json_in_html(data)),
    )


def _entry(row: ReviewRow, seed: int, images: Numbered) -> dict[str, Any]:
    """Return a row for the page's script: candidates in random order, the rest sealed."""
    sources = [(Source.LABEL, row.label)]
    if row.other is not None:
        sources.append((row.source, row.other))
    # By the row alone: it is the same on every page of this audit.
    Random(f"{seed} {row.index}").shuffle(sources)
    answers: list[Answer] = [answer for _, answer in sources]
    others: list[Answer | None] = [*reversed(answers)] if len(answers) == 2 else [None]
    told = {
        "sources": [source.value for source, _ in sources],
        "voters": row.voters,
        "votes": row.votes,
        "kind": row.kind,
        "p": row.p,
        "drawn": row.drawn.value,
    }
    return {
        "index": row.index,
        "row": row.row,
        "asked": printable(row.asked),
        "image": images.place((row.image, *row.size)),
        "shots": [images.place((path, 0, 0)) for path in row.references],
        "classes": row.classes,
        "single": row.single,
        "candidates": [
            {
                "boxes": answer.boxes,
                "labels": answer.labels,
                "differing": differing_boxes(answer, other),
            }
            for answer, other in zip(answers, others, strict=True)
        ],
        "sealed": _sealed(json.dumps(told)),
    }


def differing_boxes(answer: Answer, other: Answer | None) -> list[int]:
    """List the places of the boxes that the other candidate lacks; all, if there is no other.

    >>> one = Answer(((0, 0, 5, 5), (8, 8, 9, 9)), ("cat", "dog"))
    >>> differing_boxes(one, Answer(((0, 0, 5, 5), (8, 8, 9, 9)), ("cat", "cow")))
    [1]
    """
    left = [] if other is None else _labelled(other)
    places = []
    for place, value in enumerate(_labelled(answer)):
        if value in left:
            left.remove(value)
        else:
            places.append(place)
    return places


def _labelled(answer: Answer) -> list[tuple[Any, ...]]:
    labels = answer.labels or ("",) * len(answer.boxes)
    return [(label, *box) for label, box in zip(labels, answer.boxes, strict=True)]


def _sealed(text: str) -> str:
    return base64.b64encode(text.encode("ascii")).decode("ascii")
