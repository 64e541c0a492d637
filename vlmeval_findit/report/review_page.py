"""The page on which a person judges doubtful labels, without knowing which candidate is the label.

It has no network and no server: decisions are kept in the browser and saved as ``reviews.jsonl``.
Neither models' names nor scores are on the page. What is told after a choice (which candidate is
the label, votes, kind) and what only the file needs lie in it as base64, so that nobody reads it
before.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from markupsafe import Markup

from ..core.formatting import printable
from ..protocol.reviews import Answer, AuditRecord, Drawn, Reviews, iou
from ..storage.review_files import review_lines
from .gallery import Numbered, image_values
from .page import joined_script, json_in_html, render

_SCRIPTS = (
    "elements", "theme", "zoom", "review_progress", "review_picture", "review_edit", "review",
)  # fmt: skip
_BUDGET = 40_000_000  # Characters of all images: 400 of 640 pixels
_NEAR = 0.9  # IoU from which two candidates are nearly the same


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A row to be judged: what is asked, and the answers among which a person chooses."""

    index: int
    row: str  # Its :func:`.reviews.row_hash`
    asked: str  # The expression, or the classes
    image: Path
    size: tuple[int, int]  # Of the image in pixels; (0, 0): not stated
    label: Answer
    proposal: Answer | None  # The models' answer; None: they answer as the label says
    drawn: Drawn
    voters: tuple[str, ...]  # Digests of the runs whose answers were compared
    votes: int  # Of these, those that answer as proposed
    kind: str = ""
    p: float | None = None
    references: tuple[Path, ...] = ()  # Images that show what is asked for
    classes: tuple[str, ...] = ()  # That a box may have; none: boxes have no class
    single: bool = False  # A right answer is one box


def make_review_page(
    dataset: str, target: str, audit: AuditRecord, rows: Sequence[ReviewRow], time: datetime
) -> str:
    """Make the page, as HTML.

    Args:
        dataset: its name, the page's title.
        target: in words which boxes answer its queries.
        audit: what the rows were drawn from; the first line of the file that the page saves.
        rows: in the order in which they are judged, see :func:`mix_rows`.
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
    }
    return render(
        "review.html.j2",
        time.strftime("%Y-%m-%d %H:%M UTC"),
        [joined_script(_SCRIPTS)],
        ["report.css", "review.css"],
        dataset=dataset,
        target=target,
        rows=len(rows),
        data=Markup(json_in_html(data)),
    )


def mix_rows(
    listed: Sequence[ReviewRow], random: Sequence[ReviewRow], seed: int
) -> list[ReviewRow]:
    """Put each random row at a random place within its share of the listed ones.

    At regular places (every fifth, say) random rows would be known.
    """
    generator = Random(seed)
    mixed: list[ReviewRow] = []
    for at, row in enumerate(random):
        start, end = (len(listed) * step // len(random) for step in (at, at + 1))
        share = list(listed[start:end])
        share.insert(generator.randint(0, len(share)), row)
        mixed += share
    return mixed or list(listed)


def _entry(row: ReviewRow, seed: int, images: Numbered) -> dict[str, Any]:
    """Return a row for the page's script: candidates in random order, the rest sealed."""
    sources = [("label", row.label)]
    if row.proposal is not None:
        sources.append(("models", row.proposal))
    # By the row alone: it is the same on every page of this audit.
    Random(f"{seed} {row.index}").shuffle(sources)
    answers = [answer for _, answer in sources]
    told = {
        "sources": [source for source, _ in sources],
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
        "near": len(answers) == 2 and are_near(*answers),
        "candidates": [
            {
                "boxes": answer.boxes,
                "labels": answer.labels,
                "differing": differing(answer, [other for other in answers if other is not answer]),
            }
            for answer in answers
        ],
        "sealed": _sealed(json.dumps(told)),
    }


def differing(answer: Answer, others: Sequence[Answer]) -> list[int]:
    """List the places of the boxes that another candidate lacks; of a single candidate, all.

    >>> one = Answer(((0, 0, 5, 5), (8, 8, 9, 9)), ("cat", "dog"))
    >>> differing(one, [Answer(((0, 0, 5, 5), (8, 8, 9, 9)), ("cat", "cow"))])
    [1]
    """
    if not others:
        return list(range(len(answer.boxes)))
    left = [value for other in others for value in _labelled(other)]
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


def are_near(one: Answer, other: Answer) -> bool:
    """Return whether two answers have the same boxes within a few pixels, of the same classes."""
    left = _labelled(other)
    for label, *box in _labelled(one):
        near = [each for each in left if each[0] == label and iou(each[1:], box) >= _NEAR]
        if not near:
            return False
        left.remove(near[0])
    return not left


def _sealed(text: str) -> str:
    return base64.b64encode(text.encode("ascii")).decode("ascii")
