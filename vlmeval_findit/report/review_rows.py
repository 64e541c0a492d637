"""Choose the rows of an audit that a person judges, and their candidates, for the review page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random
from typing import TypeVar

from ..analysis import RANDOM_ROWS_SEED, AuditedRow, DrawnRow, LabelAudit, draw_rows
from ..protocol import Answer, Box, RowChoice, box_iou, row_hash
from ..storage import image_folder

RowT = TypeVar("RowT")

MOST_REVIEW_ROWS = 100  # Listed rows of a page: an hour's work is saved well before its end
_OTHER = 0.3  # IoU below which a box is of another object


class Source(Enum):
    """Whose answer a candidate is."""

    LABEL = "label"
    MODELS = "models"
    DECOY = "decoy"  # Nobody's: a row that nothing doubts looks like the others


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A row to be judged: what is asked, and the answers among which a person chooses."""

    index: int
    row: str  # Its :func:`.reviews.row_hash`
    asked: str  # The expression, or the classes
    image: Path
    size: tuple[int, int]  # Of the image in pixels; (0, 0): not stated
    label: Answer
    other: Answer | None  # The second candidate; None: there is none
    source: Source  # Of the second candidate
    drawn: RowChoice
    voters: tuple[str, ...]  # Digests of the runs whose answer is shown, or a similar answer
    votes: int  # Of these, those whose answer is shown
    kind: str = ""
    p: float | None = None
    references: tuple[Path, ...] = ()  # Images that show what is asked for
    classes: tuple[str, ...] = ()  # That a box may have; none: boxes have no class
    single: bool = False  # A right answer is one box


def rows_to_review(
    audit: LabelAudit, listed: Sequence[AuditedRow], most: int = MOST_REVIEW_ROWS
) -> list[ReviewRow]:
    """Return the rows of a page: of those not yet decided the first listed ones, and random ones.

    Args:
        audit: with the reviews that are there already.
        listed: all rows whose label is doubted, the most doubtful first.
        most: listed rows of the page.
    """
    drawn = draw_rows(audit, listed)
    doubted = [each for each in drawn if each.drawn is RowChoice.LISTED]
    others = [each for each in drawn if each.drawn is RowChoice.RANDOM]
    mixed = mix_rows(doubted, others, RANDOM_ROWS_SEED)
    left = [each for each in mixed if each.row.index not in audit.decided]
    boxes = _boxes_of_images(audit)
    single = audit.asks_for_one
    return [
        _review_row(audit, each, single, boxes[_images(audit, each.row)])
        for each in _first(left, most)
    ]


def _first(rows: Iterable[DrawnRow], most: int) -> Iterator[DrawnRow]:
    """Yield rows until one more than ``most`` would be a listed one."""
    listed = 0
    for each in rows:
        listed += each.drawn is RowChoice.LISTED
        if listed > most:
            return
        yield each


def mix_rows(listed: Sequence[RowT], random: Sequence[RowT], seed: int) -> list[RowT]:
    """Put each random row at a random place within its share of the listed ones.

    At regular places (every fifth, say) random rows would be known.
    """
    generator = Random(seed)
    mixed: list[RowT] = []
    for at, row in enumerate(random):
        start, end = (len(listed) * step // len(random) for step in (at, at + 1))
        share = list(listed[start:end])
        share.insert(generator.randint(0, len(share)), row)
        mixed += share
    return mixed or list(listed)


def _images(audit: LabelAudit, row: AuditedRow) -> tuple[str, ...]:
    return audit.dataset.queries[row.index].images


def _review_row(
    audit: LabelAudit, drawn: DrawnRow, single: bool, boxes: Sequence[Box]
) -> ReviewRow:
    """Make a row of the page; ``boxes`` are all labelled ones of its image."""
    row = drawn.row
    query = audit.dataset.queries[row.index]
    folder = image_folder(audit.dataset.variant.images).path
    is_listed = drawn.drawn is RowChoice.LISTED
    other: Answer | None = row.proposal
    source = Source.MODELS if row.agreeing else Source.DECOY
    if not is_listed and row.proposal.is_like(row.label):
        # As exact as the label: to choose between both would say nothing about the label.
        other = decoy_answer(row.label, single, boxes, Random(row.index))
        source = Source.DECOY
    return ReviewRow(
        index=row.index,
        row=row_hash(query, row.label),
        asked=query.label,
        image=folder / query.images[0],
        size=(query.width, query.height),
        label=row.label,
        other=other,
        source=source,
        drawn=drawn.drawn,
        voters=row.voters if source is Source.MODELS else (),
        votes=row.agreeing,
        kind=row.fault.value if is_listed and row.fault is not None else "",
        p=row.p if is_listed else None,
        references=tuple(folder / path for path in query.support),
        classes=_classes(query.label, row),
        single=single,
    )


def _classes(asked: str, row: AuditedRow) -> tuple[str, ...]:
    """Return the classes that are asked for, and those of the candidates; none without classes."""
    named = (*row.label.labels, *row.proposal.labels)
    if not named:
        return ()
    return tuple(dict.fromkeys((*asked.split(", "), *named)))


# --- decoys ---------------------------------------------------------------------------------------


def _boxes_of_images(audit: LabelAudit) -> dict[tuple[str, ...], list[Box]]:
    """Return the labelled boxes of each image, whatever they are labels of."""
    boxes: dict[tuple[str, ...], list[Box]] = {}
    for row in audit.rows:
        boxes.setdefault(_images(audit, row), []).extend(row.label.boxes)
    return boxes


def decoy_answer(
    label: Answer, single: bool, boxes: Sequence[Box], random: Random
) -> Answer | None:
    """Return an answer that looks like a doubt about a label: another object, or one too few.

    Args:
        label: of the row.
        single: a right answer is one box.
        boxes: labelled boxes of the same image.
        random: chooses.

    Returns:
        None if the label has no box, or the image no other object.
    """
    if not label.boxes:
        return None
    if not single and len(label.boxes) > 1:
        return _without(label, random.randrange(len(label.boxes)))
    others = [
        box for box in boxes if all(box_iou(box, labelled) < _OTHER for labelled in label.boxes)
    ]
    if not others:
        return None
    other = random.choice(sorted(set(others)))
    if single:
        return Answer((other,), label.labels)
    return Answer((*label.boxes, other), label.labels * 2)


def _without(answer: Answer, place: int) -> Answer:
    """Return an answer without one of its boxes."""
    boxes = answer.boxes[:place] + answer.boxes[place + 1 :]
    return Answer(boxes, answer.labels[:place] + answer.labels[place + 1 :])
