"""Files of reviews: ``reviews.jsonl``, a review or the record of an audit a line.

Lines are added, never changed: who takes a review back adds a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from ..core import (
    EqualKeysError,
    MisplacedError,
    TextError,
    atomic_write,
    counted,
    file_sha256,
    parse_json,
    quoted_value,
    read_text,
    validate,
)
from ..protocol import AuditRecord, Review, Reviews, ReviewsError

FORMAT = 1
_FORMAT_KEY = "format"
_AUDIT_KEY = "audit"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """What a file holds."""

    reviews: Reviews
    cut: str = ""  # Says that the last line is no whole one; "": it is


def table_hash(table: Path) -> str:
    """Return what reviews know a table by."""
    return f"sha256:{file_sha256(table)}"


def read_reviews(paths: Sequence[Path]) -> Reviews:
    """Read whole files and join them in this order.

    Raises:
        ReviewsError: naming file, line and key; or a last line was cut.
        OSError: a file cannot be read.
    """
    result = Reviews(())
    for path in paths:
        file = read_review_file(path)
        if file.cut:
            whole = path.with_name(f"{path.stem}-whole{path.suffix}")
            names = f"{quote(str(path))} --out {quote(str(whole))}"
            raise ReviewsError(
                f"{file.cut}. Save it again, or go on without this line: "
                f"python run_findit.py data reviews {names}"
            )
        result = result.joined(file.reviews)
    return result


def read_review_file(path: Path) -> ReviewFile:
    """Read a file, without a last line that was cut; raises as :func:`read_reviews`."""
    reviews: list[Review] = []
    places: list[str] = []
    audits: list[AuditRecord] = []
    cut = ""
    try:
        lines = read_text(path).split("\n")
    except TextError as error:
        raise ReviewsError(error.message_for(path)) from None
    for number, line in enumerate(lines, 1):
        place = f"{path}, line {number}"
        if not line.strip():
            continue
        try:
            values = _values(line)
        except EqualKeysError as error:
            raise ReviewsError(f"{place}: {error}") from None
        if values is None and number == len(lines):  # Whole lines end in a line break
            cut = f"{place}: cut off, as by a save that was interrupted"
            continue
        record = _record(values, line, place)
        if isinstance(record, AuditRecord):
            audits.append(record)
        else:
            reviews.append(record)
            places.append(place)
    return ReviewFile(Reviews(tuple(reviews), tuple(audits), tuple(places)), cut)


def _values(line: str) -> Any:
    """Return the JSON of a line; None if it is not JSON, as one that is cut off."""
    try:
        return parse_json(line)
    except EqualKeysError:
        raise
    except TextError:
        return None


def _record(values: Any, line: str, place: str) -> Review | AuditRecord:
    if not isinstance(values, Mapping):
        raise ReviewsError(
            f"{place}: {quoted_value(line)} should be a JSON object: is it a review?"
        )
    stated = dict(values)
    written_in = stated.pop(_FORMAT_KEY, None)
    if written_in != FORMAT or isinstance(written_in, bool):
        what = "is missing" if written_in is None else f"{quoted_value(written_in)} is not known"
        raise ReviewsError(f"{place}: {_FORMAT_KEY}: {what}; reviews have {FORMAT}")
    if _AUDIT_KEY in stated:
        return _validated(AuditRecord, stated.pop(_AUDIT_KEY), place, _AUDIT_KEY)
    return _validated(Review, stated, place)


def _validated(kind: type[T], values: Any, place: str, root: str = "") -> T:
    try:
        return validate(kind, values)
    except MisplacedError as error:
        raise ReviewsError(f"{place}: {error.below(root)}") from None


# --- writing --------------------------------------------------------------------------------------


def write_reviews(path: Path, reviews: Reviews) -> None:
    """Write a file atomically: records of audits, then the reviews in their order.

    Raises:
        ReviewsError: the file is there and has other reviews, which would be lost.
        OSError: it cannot be written.
    """
    if path.exists():
        _refuse_loss(path, reviews)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as f:
        f.writelines(f"{line}\n" for line in review_lines(reviews))


def _refuse_loss(path: Path, reviews: Reviews) -> None:
    before = read_review_file(path).reviews
    everything = reviews.joined(before)
    if everything != reviews:
        more = len(everything.reviews) - len(reviews.reviews)
        what = counted(more, "review") if more else "a record of an audit"
        raise ReviewsError(
            f"{path} has {what} that these files do not have: name it among them, before --out"
        )


def review_lines(reviews: Reviews) -> Iterator[str]:
    """Yield the lines of a file, as JSON."""
    for audit in reviews.audits:
        yield json.dumps({_FORMAT_KEY: FORMAT, _AUDIT_KEY: asdict(audit)})
    for review in reviews.reviews:
        yield json.dumps({_FORMAT_KEY: FORMAT, **_plain(review)})


def _plain(review: Review) -> dict[str, Any]:
    return asdict(review) | {"verdict": review.verdict.value, "drawn": review.drawn.value}
