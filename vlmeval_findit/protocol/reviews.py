"""What people decided about labels: reviews, and the decision about each row.

A review never changes a table. It says which answers to a row are right, how the row was drawn, and
whose answers the reviewer saw: scores with reviews stand next to those without.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Annotated, Any

from ..core import (
    Checked,
    Config,
    Count,
    Expected,
    Finite,
    MisplacedError,
    Name,
    Text,
    Whole,
    counted,
    plain_value,
    quoted_value,
    suggestion,
)
from .dataset_variant import Query, is_index

DIGITS = 8  # Of a digest, as scores and boards show it


class ReviewsError(ValueError):
    """Reviews that are not of the rows that they should be of; the message names the line."""


class ReviewVerdict(Enum):
    """What a reviewer says of a row."""

    LABEL = "label"  # The label is right
    MODEL = "model"  # The models' answer is right, the label is wrong
    BOTH = "both"
    EDITED = "edited"  # Neither: the reviewer drew the answer
    EXCLUDE = "exclude"  # The query has no right answer
    UNSURE = "unsure"  # The label stays

    @property
    def keeps_label(self) -> bool:
        """Return whether the label counts as before: it is right, or nobody knows."""
        return self in (ReviewVerdict.LABEL, ReviewVerdict.UNSURE)

    @property
    def is_error(self) -> bool:
        """Return whether the label is wrong; where both are right it is not."""
        return self in (ReviewVerdict.MODEL, ReviewVerdict.EDITED, ReviewVerdict.EXCLUDE)


class RowChoice(Enum):
    """How a row came before a reviewer."""

    LISTED = "listed"  # Its label was doubted
    RANDOM = "random"  # At random, of the rows that were not listed
    PUBLISHED = "published"  # In a list of others


# --- fields -------------------------------------------------------------------------------------


def _one_of(kind: type[Enum], what: str) -> Checked:
    """Check that a value is one of an enumeration's, naming the nearest."""

    def check(value: Any) -> Any:
        known = [each.value for each in kind]
        if isinstance(value, kind) or value in known:
            return value
        raise ValueError(
            f"unknown {what} {quoted_value(value)}{suggestion(plain_value(value), known)}"
        )

    return Checked(check, before=True)


def _row_number(value: int) -> int:
    if not is_index(value):
        raise ValueError(f"{value} is out of range: rows are numbered from 0")
    return value


def _hash(value: str) -> str:
    if re.fullmatch("sha256:[0-9a-f]{64}", value) is None:
        raise ValueError(f"{quoted_value(value)} should be 'sha256:' and 64 digits")
    return value


def _date(value: str) -> str:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{quoted_value(value)} should be a date, as 2026-01-31") from None
    return value


# (x1, y1, x2, y2), pixels of the original image
Box = Annotated[
    tuple[Finite, Finite, Finite, Finite], Expected("a box: four finite numbers, x1, y1, x2, y2")
]
Index = Annotated[Whole, Checked(_row_number)]
Hash = Annotated[Text, Checked(_hash)]
_Number = Annotated[int, Expected("a whole number, at least 0", strict=True, ge=0)]
_Share = Annotated[
    float, Expected("a number from 0 to 1", strict=True, ge=0, le=1, allow_inf_nan=False)
]


# --- records ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer(Config):
    """One right answer to a query."""

    boxes: tuple[Box, ...]
    labels: tuple[Text, ...] = ()  # One a box; empty: the query has no classes

    def __post_init__(self) -> None:
        """Refuse labels that are not one a box."""
        if self.labels and len(self.labels) != len(self.boxes):
            why = f"{counted(len(self.labels), 'label')} for {counted(len(self.boxes), 'box')}"
            raise MisplacedError(why, "labels")

    @property
    def values(self) -> list[list[Any]]:
        """Return ``[label, x1, y1, x2, y2]`` of every box, sorted: in whichever order they are."""
        labels = self.labels or [""] * len(self.boxes)
        return sorted(
            [label, *map(float, box)] for label, box in zip(labels, self.boxes, strict=True)
        )

    def is_like(self, other: Answer) -> bool:
        """Return whether two answers differ no more than two hands do.

        Each box overlaps a box of the same label with an IoU of at least 0.7.
        """
        others = other.values
        for label, *box in self.values:
            ious = [box_iou(box, at) if at_label == label else 0.0 for at_label, *at in others]
            best = max(ious, default=0.0)
            if best < ALIKE:
                return False
            others.pop(ious.index(best))
        return not others


ALIKE = 0.7  # IoU from which two reviewers drew the same box


def box_iou(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the IoU of two boxes; equal boxes without area have 1.

    >>> box_iou((0, 0, 2, 2), (1, 0, 3, 2))
    0.3333333333333333
    """
    if tuple(one) == tuple(other):
        return 1.0
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    both = max(width, 0.0) * max(height, 0.0)
    union = _area(one) + _area(other) - both
    return both / union if union > 0 else 0.0


def _area(box: Sequence[float]) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


@dataclass(frozen=True, slots=True)
class Review(Config):
    """What one reviewer decided about one row: a line of ``reviews.jsonl``."""

    table: Hash  # Of the table's content
    index: Index
    row: Hash  # See :func:`row_hash`
    verdict: Annotated[ReviewVerdict, _one_of(ReviewVerdict, "verdict")]
    accept: tuple[Answer, ...]  # Each right answer: the best counts, for every model
    kind: Text  # What the audit thought wrong ("" for random rows)
    reviewer: Name
    date: Annotated[Text, Checked(_date)]  # ISO 8601
    drawn: Annotated[RowChoice, _one_of(RowChoice, "way to draw a row")]
    p: _Share | None = None  # Posterior that the label is wrong, when listed
    voters: tuple[Name, ...] = ()  # Digests of the runs whose answers were shown

    def __post_init__(self) -> None:
        """Refuse a verdict without the answers that it needs, or with others."""
        has_none = self.verdict in (ReviewVerdict.EXCLUDE, ReviewVerdict.UNSURE)
        if has_none and self.accept:
            why = f"should be empty: the verdict is {self.verdict.value}"
            raise MisplacedError(why, "accept")
        if not has_none and not self.accept:
            why = f"names no answer, but the verdict is {self.verdict.value}"
            raise MisplacedError(why, "accept")

    def agrees_with(self, other: Review) -> bool:
        """Return whether two reviews of a row have the same verdict and like answers."""
        if self.verdict is not other.verdict or len(self.accept) != len(other.accept):
            return False
        left = list(other.accept)
        for answer in self.accept:
            like = [each for each in left if answer.is_like(each)]
            if not like:
                return False
            left.remove(like[0])
        return True


def as_ranges(indices: Iterable[int]) -> str:
    """Write indices of rows in ascending order, neighbours as a range.

    >>> as_ranges([3, 0, 1, 2, 7])
    '0-3, 7'
    """
    parts: list[list[int]] = []
    for index in sorted(indices):
        if parts and index == parts[-1][-1] + 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    texts = (str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
    return ", ".join(texts)


def in_ranges(text: str) -> frozenset[int]:
    """Read what :func:`as_ranges` wrote.

    >>> sorted(in_ranges("0-3, 7"))
    [0, 1, 2, 3, 7]
    """
    if not text:
        return frozenset()
    indices: set[int] = set()
    for part in text.split(", "):
        first, _, last = part.partition("-")
        indices.update(range(int(first), int(last or first) + 1))
    return frozenset(indices)


_RANGES = re.compile(r"(\d{1,9}(-\d{1,9})?(, \d{1,9}(-\d{1,9})?)*)?")


def _ranges(text: str) -> str:
    if _RANGES.fullmatch(text) is None:
        raise ValueError(f"{quoted_value(text)} should be rows and ranges of rows, as '0-23, 30'")
    return text


@dataclass(frozen=True, slots=True)
class AuditRecord(Config):
    """What rows were drawn from: the first line of ``reviews.jsonl``, as ``{"audit": …}``."""

    table: Hash
    rows: Count  # That were judged: listed and unlisted
    listed: tuple[Index, ...]  # Indices of all rows whose label was doubted, shown or not
    unlisted: _Number  # Rows that the random ones were drawn from
    seed: Whole
    voters: tuple[Name, ...]  # Digests of the runs whose answers were compared
    models: tuple[Name, ...] = ()  # Their models, whose errors are correlated in any format
    # The rows that were judged, as ``0-23, 30``; "": not recorded, as of version 1.0
    judged: Annotated[Text, Checked(_ranges)] = ""

    def __post_init__(self) -> None:
        """Refuse numbers of rows that do not add up."""
        judged = in_ranges(self.judged)
        if judged and len(judged) != self.rows:
            raise MisplacedError(f"has {len(judged)} rows, not {self.rows}", "judged")
        if judged and not judged.issuperset(self.listed):
            first = min(frozenset(self.listed) - judged)
            raise MisplacedError(f"lacks row {first}, which is listed", "judged")
        if len(set(self.listed)) != len(self.listed):
            twice, _ = Counter(self.listed).most_common(1)[0]
            raise MisplacedError(f"duplicate {twice}", "listed")
        if len(self.listed) + self.unlisted != self.rows:
            added = f"{len(self.listed)} listed and {self.unlisted} unlisted"
            raise MisplacedError(f"{added} are not {self.rows} rows", "unlisted")


@dataclass(frozen=True, slots=True)
class RowsDrawnFrom:
    """The rows that the random rows of audits of a table were drawn from."""

    listed: frozenset[int]  # By any audit
    rows: int = 0  # That every audit judged, listed ones among them
    unlisted: frozenset[int] | None = None  # None: which they are is not recorded
    why_unknown: str = ""  # Why random rows stand for no others; "": they do

    @property
    def number(self) -> int | None:
        """The number of unlisted rows; None: not known."""
        return None if self.why_unknown else self.rows - len(self.listed)

    def number_in(self, rows: Collection[int]) -> int | None:
        """Return how many rows of a run are unlisted ones; None: not known."""
        if self.number is None:
            return None
        if self.unlisted is not None:
            return len(self.unlisted.intersection(rows))
        return min(len(frozenset(rows) - self.listed), self.number)


def rows_drawn_from(audits: Sequence[AuditRecord]) -> RowsDrawnFrom:
    """Return which rows the random rows of some audits were drawn from.

    Of several audits of the same rows a row is listed if any listed it: the random rows of each
    that are left are random ones of all rows that none listed. Those of audits of different rows
    are no random rows of any.
    """
    listed = frozenset(index for audit in audits for index in audit.listed)
    if not audits:
        return RowsDrawnFrom(listed, why_unknown="no record of an audit says from which rows")
    numbers = sorted({audit.rows for audit in audits})
    judged = {in_ranges(audit.judged) for audit in audits}
    if len(numbers) > 1 or (len(judged) > 1 and frozenset() not in judged):
        each = f"{numbers[0]:,} each"
        if len(numbers) > 1:
            each = " and ".join(f"{number:,}" for number in numbers)
        why = f"the audits drew random rows from different rows ({each}): audit the same rows"
        return RowsDrawnFrom(listed, numbers[-1], why_unknown=why)
    if len(audits) > 1 and frozenset() in judged:
        why = "of several audits it is not recorded whether they judged the same rows: audit again"
        return RowsDrawnFrom(listed, numbers[-1], why_unknown=why)
    (rows,) = judged
    return RowsDrawnFrom(listed, numbers[-1], rows - listed if rows else None)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the reviewers of a row say together: unsure where they disagree."""

    index: int
    row: str
    verdict: ReviewVerdict
    accept: tuple[Answer, ...]
    drawn: RowChoice
    kind: str
    voters: tuple[str, ...]
    reviews: tuple[Review, ...]  # The last of each reviewer

    @property
    def is_disputed(self) -> bool:
        return not _agree(self.reviews)

    @property
    def values(self) -> list[Any]:
        """Return what :attr:`Reviews.digest` is over."""
        answers = sorted(answer.values for answer in self.accept)
        how = [self.drawn.value, list(self.voters)]
        return [self.row, self.index, self.verdict.value, answers, *how]


def _agree(reviews: Sequence[Review]) -> bool:
    return all(review.agrees_with(reviews[0]) for review in reviews[1:])


@dataclass(frozen=True, slots=True)
class TableReviews:
    """The reviews of a table's rows, and those of other rows."""

    table: str  # ``sha256:…`` of its content
    reviews: Reviews
    absent: tuple[Review, ...]  # Of this table, or one that shares rows: it lacks these rows
    elsewhere: tuple[Review, ...]  # Of other tables
    changed: tuple[str, ...]  # A message for each review of a row that has changed
    of_others: tuple[
        Review, ...
    ] = ()  # Of another table at hand, whose row this table has otherwise

    def why_none(self, name: str) -> str:
        """Say why a table has no reviews, but shares rows with a reviewed one at hand; "": it may.

        It is another version of that table: its equal rows alone would be a score of half a review.
        """
        own = self.reviews.reviews
        rows = len({review.index for review in self.of_others})
        if not rows or any(review.table == self.table for review in own):
            return ""
        all_rows = rows + len({review.index for review in own})
        return f"{name} is another table: {rows:,} of {all_rows:,} reviewed rows differ"


@dataclass(frozen=True, slots=True)
class Reviews:
    """Reviews in the order in which they were written: the last of a row and reviewer counts."""

    reviews: tuple[Review, ...]
    audits: tuple[AuditRecord, ...] = ()
    places: tuple[str, ...] = field(default=(), compare=False)  # File and line of each, if known

    def joined(self, later: Reviews) -> Reviews:
        """Return these and later ones; what both have stands once, where it stood first.

        So a copy of a file adds nothing, however often it is joined, and takes nothing back.
        """
        left = Counter(self.reviews)
        new: list[Review] = []
        new_places: list[str] = []
        for review, place in zip(later.reviews, later._all_places, strict=True):
            if left[review]:
                left[review] -= 1
            else:
                new.append(review)
                new_places.append(place)
        audits = tuple(dict.fromkeys((*self.audits, *later.audits)))
        return Reviews((*self.reviews, *new), audits, (*self._all_places, *new_places))

    @property
    def _all_places(self) -> tuple[str, ...]:
        return self.places or tuple(f"review {n}" for n in range(1, len(self.reviews) + 1))

    def of_table(
        self, table: str, rows: Mapping[int, str], name: str, at_hand: Collection[str] = ()
    ) -> TableReviews:
        """Select the reviews of a table as :meth:`match_table`.

        Raises:
            ReviewsError: a reviewed row has changed.
        """
        result = self.match_table(table, rows, name, at_hand)
        if result.changed:
            raise ReviewsError(result.changed[0])
        return result

    def match_table(
        self, table: str, rows: Mapping[int, str], name: str, at_hand: Collection[str] = ()
    ) -> TableReviews:
        """Sort reviews by a table, whose rows are known by index and :func:`row_hash`.

        It may be another table that has some of the reviewed rows, as a subset does, and may have
        numbered them anew. Reviews belong to the table that they name: if it is among those
        ``at_hand`` (hashes), a row that is otherwise here has not changed, and is not reviewed.
        Messages call this table by its ``name``.
        """
        indices = _unique_rows(rows)
        meant = {review.table for review in self.reviews if review.row in indices} | {table}
        selected: list[Review] = []
        places: list[str] = []
        absent: list[Review] = []
        elsewhere: list[Review] = []
        changed: list[str] = []
        of_others: list[Review] = []
        for review, place in zip(self.reviews, self._all_places, strict=True):
            if review.table not in meant:
                elsewhere.append(review)
            elif rows.get(review.index) == review.row:
                selected.append(review)
                places.append(place)
            elif review.table != table and review.row in indices:
                selected.append(replace(review, index=indices[review.row]))
                places.append(place)
            elif review.index not in rows:
                absent.append(review)
            elif review.table != table and review.table in at_hand:
                of_others.append(review)
            else:
                changed.append(
                    f"{place}: row {review.index} of {name} has another image, expression or "
                    "box than the row that was reviewed: review it again"
                )
        # Of another table other rows were drawn.
        audits = tuple(audit for audit in self.audits if audit.table == table)
        reviews = Reviews(tuple(selected), audits, tuple(places))
        return TableReviews(
            table=table,
            reviews=reviews,
            absent=tuple(absent),
            elsewhere=tuple(elsewhere),
            changed=tuple(changed),
            of_others=tuple(of_others),
        )

    def in_force(self) -> dict[int, tuple[Review, ...]]:
        """Return the last review of each reviewer, by index.

        Raises:
            ReviewsError: an index is that of rows of several tables.
        """
        last: dict[int, dict[str, Review]] = {}
        for review, place in zip(self.reviews, self._all_places, strict=True):
            by_reviewer = last.setdefault(review.index, {})
            if any(each.row != review.row for each in by_reviewer.values()):
                why = f"row {review.index} has changed: these are several tables"
                raise ReviewsError(f"{place}: {why}")
            by_reviewer[review.reviewer] = review
        result: dict[int, tuple[Review, ...]] = {}
        for index in sorted(last):
            result[index] = tuple(last[index][name] for name in sorted(last[index]))
        return result

    def decisions(self) -> dict[int, Decision]:
        """Return what is decided about each row, by index; raises as :meth:`in_force`."""
        return {index: decide(reviews) for index, reviews in self.in_force().items()}

    @property
    def digest(self) -> str:
        """Return 8 digits over the decisions; dates and what was taken back do not change it."""
        values = sorted(decision.values for decision in self.decisions().values())
        text = json.dumps(values, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _unique_rows(rows: Mapping[int, str]) -> dict[str, int]:
    """Return the index of each row, without rows that the table has twice."""
    times = Counter(rows.values())
    return {row: index for index, row in rows.items() if times[row] == 1}


# The way of drawing that counts, where reviewers met a row in different ways
_DRAWN_FIRST = (RowChoice.LISTED, RowChoice.RANDOM, RowChoice.PUBLISHED)


def decide(reviews: Sequence[Review]) -> Decision:
    """Join the reviews of one row, the last of each reviewer."""
    first = reviews[0]
    agreed = _agree(reviews)
    accepted: dict[str, Answer] = {}
    voters: set[str] = set()
    for review in reviews:
        voters.update(review.voters)
        for answer in review.accept:
            accepted[json.dumps(answer.values)] = answer
    answers = tuple(accepted[key] for key in sorted(accepted))
    kinds = [review.kind for review in reviews if review.kind]
    return Decision(
        index=first.index,
        row=first.row,
        verdict=first.verdict if agreed else ReviewVerdict.UNSURE,
        accept=answers if agreed else (),
        drawn=min((review.drawn for review in reviews), key=_DRAWN_FIRST.index),
        kind=kinds[0] if kinds else "",
        voters=tuple(sorted(voters)),
        reviews=tuple(reviews),
    )


# --- rows ---------------------------------------------------------------------------------------


def row_hash(query: Query, label: Answer) -> str:
    """Hash what a reviewer judges: images by name, the expression, and the label's boxes.

    It is the same in every table and format that has the row, on every machine, with or without its
    images; formats with marks have other references. ``label`` is that of :meth:`.Benchmark.label`.
    """
    values = [list(query.images), query.label, label.values]
    text = json.dumps(values, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
