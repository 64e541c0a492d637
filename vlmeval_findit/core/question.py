"""What is asked: all that models, sweeps and the host need to know of it.

A :class:`Question` is one way of asking one table: "RefCOCO, boxes as JSON".  Its name is what
people type after ``--data``.  A :class:`Query` is one row of that table.  Both are protocols: a
benchmark brings classes of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar


class QuestionError(ValueError):
    """A name that asks nothing; the message says why and what is nearest."""


class Question(Protocol):
    """One way of asking one table.  It is frozen, hashable and can be pickled.

    ``name`` is canonical: two names of the same question become one.  ``column`` is its column of a
    leaderboard (what is asked), ``format`` how the answer is to be written ("" where there is one
    way only); runs of a column differ in their format alone.  ``family`` names the kind of task.
    ``table`` is the name of the annotation table, ``images`` the key of its image folder.
    ``has_references``: whether pictures of the object itself come before the scene; ``frames`` how
    many pictures are no such references.  ``max_new_tokens`` is the longest reply.  ``in_boxes``:
    whether the answer is boxes, so that the coordinate space of its numbers must be known.
    ``reply_schema`` is the JSON schema that decoding is held to (None: the model speaks freely);
    who answers and cannot hold to one refuses the question.
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
    """One row of a table, without what is right.

    ``images`` are the scene or the frames, ``support`` the reference pictures, relative to the
    image folder.  ``width`` and ``height`` are pixels of every scene or frame; 0 where the table
    does not state them.  ``label`` is what is asked, in short.
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


def is_index(number: int) -> bool:
    """Whether a row may be numbered so: what journals, sheets and details hold, and read back.

    >>> is_index(0), is_index(-1), is_index(10**18)
    (True, False, False)
    """
    return 0 <= number < 10**18


@dataclass(frozen=True, slots=True)
class PlainQuestion:
    """A question of a benchmark that asks in one way: there are no formats to choose from.

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
    """A question over its table: every query of it by its index, in the table's order.

    ``name`` is what was typed; it may be another name of the question than its canonical one.
    ``chosen`` is what of the questions the table leaves open, and how it was settled ("mark":
    "oval-red").  ``before`` is the task before it was made that of one model
    (:meth:`.Benchmark.for_model`); None where all models are asked alike.
    """

    name: str
    question: Asked
    table: Path
    queries: Mapping[int, Row]
    chosen: Mapping[str, str] = field(default_factory=dict)
    before: Task[Asked, Row] | None = None

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
        """The task as all models share it: what runs of several are compared by."""
        return self.before or self


AnyTask = Task[Question, Query]
"""A task of whatever benchmark."""
