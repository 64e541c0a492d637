"""Read the files of a score: an error names line and key."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from ..core import (
    MisplacedError,
    Text,
    Values,
    Whole,
    YesNo,
    open_text,
    parse_json,
    parse_lines,
    validate,
)
from ..protocol import ScoredRow


class ScoreFileError(ValueError):
    """A file of a score cannot be read; the message has its name, the line and the key."""


# --- details --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _DetailsLine:
    """The keys of every line; others are details of the benchmark.

    Numbers are checked by :class:`.ScoredRow`.
    """

    index: Whole
    source: Text
    failed: YesNo
    reason: Text | None
    sums: Values
    slices: Mapping[str, Text] = field(default_factory=dict)
    parts: tuple[tuple[Text, Text, Values], ...] = ()


_NO_DETAILS = frozenset(field.name for field in fields(_DetailsLine))


@dataclass(frozen=True, slots=True)
class LineOfSums(_DetailsLine):
    """What a leaderboard reads of a line."""

    sums: Mapping[str, int | float]
    image_sha256: Any = None  # The images of the row; its key is SHOWN


def lines_of_sums(details: bytes) -> list[LineOfSums] | None:
    """Read all lines of a details file, without objects for the details that no board needs.

    None: a line has parts or is damaged; :func:`stored_rows` reads it, or says what is wrong.
    """
    try:
        lines = parse_lines(LineOfSums, details.decode("utf-8-sig"))
    except ValueError:
        return None
    return None if any(line.parts for line in lines) else lines


def stored_rows(path: Path, places: Container[int] | None = None) -> Iterator[ScoredRow]:
    """Yield the rows of a details file, or those at ``places`` (from 0; None: all).

    Raises:
        ScoreFileError: a line is damaged.
        OSError: the file cannot be read.
    """
    place = 0
    try:
        with open_text(path) as lines:
            for place, line in enumerate(lines):
                if places is None or place in places:
                    yield read_details_line(line)
    except MisplacedError as error:
        raise ScoreFileError(f"{path}, line {place + 1}: {error.below()}") from None
    except ValueError as error:
        raise ScoreFileError(f"{path}, line {place + 1}: {error}") from None


def read_details_line(line: str) -> ScoredRow:
    """Read the row of a line that :func:`.details_line` wrote.

    Raises:
        ValueError: it is no JSON, or no row; a MisplacedError has the key.
    """
    values = _parse_line(line)
    known = validate(_DetailsLine, values)
    return ScoredRow(
        known.index,
        known.source,
        known.sums,
        known.failed,
        known.reason,
        known.slices,
        details={name: value for name, value in values.items() if name not in _NO_DETAILS},
        parts={(kind, value): sums for kind, value, sums in known.parts},
    )


def _parse_line(line: str) -> Any:
    try:
        return _fast_parser()(line)
    except ValueError:
        # It knows lone surrogates, too, and says what is wrong.
        return parse_json(line)


@cache
def _fast_parser() -> Callable[[str], Any]:
    """Return a parser that is twice as fast as json; imported when a score is read."""
    from pydantic_core import from_json

    return from_json
