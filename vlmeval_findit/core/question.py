"""What is asked: a :class:`Question` is one way of asking one table, a :class:`Query` one row.

A question's name is what people type after ``--data``. Benchmarks bring classes of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar


class QuestionError(ValueError):
    """A dataset name that cannot be parsed; the message says why and what is nearest."""


class Question(Protocol):
    """One way of asking one table: frozen, hashable, picklable.

    ``name`` is canonical; ``column`` is its dataset on a leaderboard, where runs differ in
    ``format`` alone ("" where there is one). ``images`` is the key of its image folder;
    ``has_references``: images of the object come before the scene; ``frames`` counts the others.
    ``in_boxes``: answers need a coordinate space. ``reply_schema`` constrains decoding (None:
    free); who cannot, refuses.
    """

    @property
    def name(self) -> str: ...
    @property
    def column(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def format_place(self) -> tuple[int, ...]:
        """The place of the format in the benchmark's order of formats; it settles ties."""
        ...

    @property
    def format_cell(self) -> tuple[str, str]:
        """Row and column of the format in a heat map of formats."""
        ...

    @property
    def family_name(self) -> str: ...
    @property
    def table(self) -> str: ...
    @property
    def images(self) -> str: ...
    @property
    def has_references(self) -> bool: ...
    @property
    def frames(self) -> int: ...
    @property
    def max_new_tokens(self) -> int: ...
    @property
    def in_boxes(self) -> bool: ...
    @property
    def reply_schema(self) -> Mapping[str, Any] | None: ...


class Query(Protocol):
    """One row of a table, without the truth.

    ``images`` (scene or frames) and ``support`` (references) are relative to the image folder;
    ``width`` and ``height`` pixels of each scene or frame (0: not stated). Queries of one
    ``cluster``, such as one photograph, are not independent.
    """

    @property
    def index(self) -> int: ...
    @property
    def label(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def images(self) -> tuple[str, ...]: ...
    @property
    def support(self) -> tuple[str, ...]: ...
    @property
    def cluster(self) -> str: ...


def is_index(number: int) -> bool:
    """Whether a row may be numbered so: what journals, sheets and details hold, and read back."""
    return 0 <= number < 10**18


@dataclass(frozen=True, slots=True)
class PlainQuestion:
    """A question of a benchmark that asks in one way, without formats.

    >>> PlainQuestion("Hues_Few", table="HuesFew", images="Hues", family_name="letters").column
    'HuesFew'
    """

    name: str
    table: str
    images: str
    family_name: str
    max_new_tokens: int = 768
    has_references: bool = False
    frames: int = 1
    format: str = ""
    format_place: tuple[int, ...] = ()
    format_cell: tuple[str, str] = ("", "")
    in_boxes: bool = False
    reply_schema: Mapping[str, Any] | None = None

    @property
    def column(self) -> str:
        return self.table


Asked = TypeVar("Asked", bound=Question, covariant=True)
Row = TypeVar("Row", bound=Query, covariant=True)


@dataclass(frozen=True)
class Task(Generic[Asked, Row]):
    """A question over its table: every query by its index, in the table's order."""

    name: str  # As typed, perhaps not the canonical one
    question: Asked
    table: Path
    queries: Mapping[int, Row]
    # What the table leaves open and how it was settled ("mark": "oval-red")
    chosen: Mapping[str, str] = field(default_factory=dict)
    before: Task[Asked, Row] | None = None  # The task before :meth:`.Benchmark.for_model`

    def __post_init__(self) -> None:
        """Refuse rows that a run could not be read back with.

        Raises:
            QuestionError: an index is none.
        """
        wrong = next((index for index in self.queries if not is_index(index)), None)
        if wrong is not None:
            raise QuestionError(
                f"{self.table}, column index: {wrong} is no number of a row: they begin at 0"
            )

    @property
    def of_all(self) -> Task[Asked, Row]:
        """Return the task as all models share it, by which runs of several are compared."""
        return self.before or self


AnyTask = Task[Question, Query]  # A task of whatever benchmark


# --- rows as ranges, in files and messages --------------------------------------------------------


def rows_text(rows: Iterable[int]) -> str:
    """Rows as ranges: "0-3, 7"."""
    ranges: list[list[int]] = []
    for row in sorted(rows):
        if ranges and row == ranges[-1][1] + 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in ranges)


def rows_from(text: str) -> tuple[int, ...]:
    """The rows that a text of ranges says; a ValueError where it says none."""
    rows: list[int] = []
    for part in filter(None, text.split(", ")):
        first, _, last = part.partition("-")
        rows += range(int(first), int(last or first) + 1)
    return tuple(rows)
