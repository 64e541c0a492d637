"""What is asked: a :class:`DatasetVariant` is a table in a format, a :class:`Query` one row.

A variant's name is what users type after ``--data``. Each benchmark has a class. A model gets a
:data:`Message` for each query.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Generic, NamedTuple, Protocol, TypeVar

from ..core import Checked, quoted_value


class DatasetNameError(ValueError):
    """A dataset name cannot be parsed; the message says why, with the nearest valid name."""


class DatasetVariant(Protocol):
    """One way of asking one table: frozen, hashable, picklable."""

    @property
    def name(self) -> str: ...  # Canonical
    @property
    def board_dataset(self) -> str: ...  # Its dataset on a leaderboard
    @property
    def format(self) -> str: ...  # In which runs of a column differ; "": no formats
    @property
    def format_place(self) -> tuple[int, ...]: ...  # In the order of formats; settles ties
    @property
    def format_cell(self) -> tuple[str, str]: ...  # Row and column in a heat map of formats
    @property
    def axes(self) -> Mapping[str, str | int]: ...  # How its table is asked; what it has not is out
    @property
    def family_name(self) -> str: ...  # For people; a leaderboard averages over each family
    @property
    def table(self) -> str: ...
    @property
    def images(self) -> str: ...  # Key of its image folder
    @property
    def has_references(self) -> bool: ...  # Images of the object come before the scene
    @property
    def frames(self) -> int: ...  # Number of images without references
    @property
    def max_new_tokens(self) -> int: ...
    @property
    def in_boxes(self) -> bool: ...  # Answers need a coordinate space
    @property
    def reply_schema(self) -> Mapping[str, Any] | None: ...  # Backends must enforce it or refuse


class Query(Protocol):
    """One row of a table, without the truth; images are relative to the image folder."""

    @property
    def index(self) -> int: ...
    @property
    def label(self) -> str: ...
    @property
    def width(self) -> int: ...  # Of each scene or frame in pixels; 0: not stated
    @property
    def height(self) -> int: ...
    @property
    def images(self) -> tuple[str, ...]: ...  # Scene or frames
    @property
    def support(self) -> tuple[str, ...]: ...  # References
    @property
    def cluster(self) -> str: ...  # Queries of a cluster (a photograph, say) are not independent


def is_index(number: int) -> bool:
    """Return whether a number may be an index: journals, sheets and details can hold it."""
    return 0 <= number < 10**18


@dataclass(frozen=True, slots=True)
class PlainVariant:
    """A variant without formats.

    >>> variant = PlainVariant("Hues_Few", table="HuesFew", images="Hues", family_name="Letters")
    >>> variant.board_dataset
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
    # A schema cannot be hashed, and variants are keys.
    reply_schema: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def board_dataset(self) -> str:
        return self.table

    @property
    def axes(self) -> Mapping[str, str | int]:
        return {}


VariantT = TypeVar("VariantT", bound=DatasetVariant, covariant=True)
QueryT = TypeVar("QueryT", bound=Query, covariant=True)


@dataclass(frozen=True)
class LoadedDataset(Generic[VariantT, QueryT]):
    """A variant over its table: every query by its index, in the table's order."""

    name: str  # As typed, perhaps not canonical
    variant: VariantT
    table: Path
    queries: Mapping[int, QueryT]
    # Settled options ("mark": "oval-red")
    resolved_options: Mapping[str, str] = field(default_factory=dict)
    # The dataset before :meth:`.Benchmark.for_model`
    base_dataset: LoadedDataset[VariantT, QueryT] | None = None

    def __post_init__(self) -> None:
        """Refuse an invalid index with a DatasetNameError."""
        for index in self.queries:
            if not is_index(index):
                why = f"{index} is not the number of a row: they begin at 0"
                raise DatasetNameError(f"{self.table}, column index: {why}")

    @property
    def shared_dataset(self) -> LoadedDataset[VariantT, QueryT]:
        """Return the dataset that all models share, by which runs are compared."""
        return self.base_dataset or self


AnyDataset = LoadedDataset[DatasetVariant, Query]  # Of any benchmark


# --- rows as ranges, in files and messages --------------------------------------------------------


def rows_text(rows: Iterable[int]) -> str:
    """Format rows as ranges: "0-3, 7"."""
    ranges: list[list[int]] = []
    for row in sorted(rows):
        if ranges and row == ranges[-1][1] + 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in ranges)


def rows_from(text: str) -> tuple[int, ...]:
    """Parse :func:`rows_text`; a ValueError where that fails."""
    rows: list[int] = []
    for part in filter(None, text.split(", ")):
        first, _, last = part.partition("-")
        between = range(int(first), int(last or first) + 1)
        if len(rows) + len(between) > _MOST_ROWS:
            raise ValueError(f"{quoted_value(text)} has more than {_MOST_ROWS:,} rows")
        rows += between
    return tuple(rows)


_MOST_ROWS = 10_000_000  # More than any table has: a damaged range must not fill the memory


def _rows_in_file(value: object) -> tuple[int, ...]:
    try:
        if isinstance(value, str):
            return rows_from(value)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{quoted_value(value)} should be rows and ranges of rows, as '0-3, 7'")


# Rows that a file has as :func:`rows_text`
StoredRows = Annotated[tuple[int, ...], Checked(_rows_in_file, before=True)]


# --- messages: texts and images in the order in which a model sees them ---------------------------


class PartKind(Enum):
    """Kinds of message parts, by VLMEvalKit's names; it has none of a system text."""

    IMAGE = "image"
    TEXT = "text"
    SYSTEM = "system"


class Part(NamedTuple):
    """Text, or an image's path: below the image folder until :func:`located` makes it a file."""

    kind: PartKind
    value: str


class Reference(Part):
    """The part of an image that shows the object that is asked for, outside the scene."""

    __slots__ = ()


Message = tuple[Part, ...]  # A prompt: texts and images in the order in which the model gets them


def text(value: str) -> Part:
    """Make a text part."""
    return Part(PartKind.TEXT, value)


def system(value: str) -> Part:
    """Make a system text: the first part of a message."""
    return Part(PartKind.SYSTEM, value)


def image(path: str) -> Part:
    """Make an image part."""
    return Part(PartKind.IMAGE, path)


def reference(path: str) -> Part:
    """Make the part of a reference image."""
    return Reference(PartKind.IMAGE, path)


def split_system(message: Message) -> tuple[str | None, Message]:
    """Return the system text of a message (None: it has none) and the rest."""
    if message and message[0].kind is PartKind.SYSTEM:
        return message[0].value, message[1:]
    return None, message


def image_paths(message: Message) -> tuple[str, ...]:
    """Return the paths of a message's images, in order.

    >>> image_paths((image("a.png"), text("Find it in"), image("b.png")))
    ('a.png', 'b.png')
    """
    return tuple(part.value for part in message if part.kind is PartKind.IMAGE)


def located(message: Message, folder: Path) -> Message:
    """Return a message whose images are files below a folder, as models are asked."""
    base = str(folder)
    return tuple(
        part._replace(value=os.path.join(base, part.value)) if part.kind is PartKind.IMAGE else part
        for part in message
    )


class PromptDigest:
    """Hashes everything that is asked: texts and paths of images, in order."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, message: Message) -> None:
        written = [f"[{_KINDS[kind]}, {json_text(value)}]" for kind, value in message]
        self._digest.update(f"[{', '.join(written)}]\n".encode())

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def prompt_hash(messages: Iterable[Message]) -> str:
    """Hash messages (:class:`PromptDigest`)."""
    digest = PromptDigest()
    for message in messages:
        digest.add(message)
    return digest.hexdigest()


# Encode a string as JSON: twice as fast as encoding lists of strings
json_text = json.encoder.encode_basestring_ascii

_KINDS = {kind: json_text(kind.value) for kind in PartKind}
