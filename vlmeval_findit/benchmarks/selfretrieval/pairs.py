"""Tables of image pairs: one row a pair, the left image first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from ...core import table_files
from ...core.places import find_table
from ...core.question import PlainQuestion, QuestionError, Task
from ...core.spelling import nearest
from ...core.table_files import ImagePath
from . import PREFIX

Value = TypeVar("Value", covariant=True)


class Side(Enum):
    """The two images of a pair; the value is their name in files."""

    LEFT = "left"
    RIGHT = "right"

    @property
    def key(self) -> str:
        return f"{self.value}_image"

    @property
    def other(self) -> Side:
        return Side.RIGHT if self is Side.LEFT else Side.LEFT


class Both(NamedTuple, Generic[Value]):
    """One value an image, the left one first."""

    left: Value
    right: Value

    def of(self, side: Side) -> Value:
        return self.left if side is Side.LEFT else self.right


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of a table: two images, relative to the image folder."""

    index: int
    uid: str  # as its makers name it
    images: tuple[ImagePath, ImagePath]
    captions: Both[str] | None = None  # of the images' description; None: unknown
    attribute: str = ""  # what the two differ in; "": unknown
    support: ClassVar[tuple[str, ...]] = ()
    width: ClassVar[int] = 0
    height: ClassVar[int] = 0

    @property
    def label(self) -> str:
        return f"pair {self.uid}"

    @property
    def cluster(self) -> str:
        return self.uid


PairTask = Task[PlainQuestion, Pair]  # the question over its table


# --- names ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairSet:
    """A table of pairs: the command that makes it, and its default encoder."""

    name: str
    encoder: str
    how_to_make: str
    maker: str = ""  # the part of data/ that makes the table when it is first asked for


_RENDERED = "nothing: it is made when it is first asked for"

SETS = {  # table by name, also the key of its image folder
    row.name: row
    for row in (
        PairSet(PREFIX, "SigLIP", "python run_findit.py prepare --self-retrieval dataset.json"),
        PairSet(f"{PREFIX}_Scenes", "FindIt-Nano-SigLIP", _RENDERED, "rendered"),
        PairSet(f"{PREFIX}_Scenes_mini", "FindIt-Nano-SigLIP", _RENDERED, "rendered"),
    )
}


def parse(name: str) -> PlainQuestion:
    """Parse a name.

    >>> parse("SelfRetrieval").table
    'SelfRetrieval'

    Raises:
        QuestionError: there is none; the message says which is nearest.
    """
    if name not in SETS:
        raise QuestionError(f"{name}: no dataset of self-retrieval{nearest(name, SETS)}")
    return PlainQuestion(name, name, images=name, family_name="self-retrieval", frames=2)


def load_task(name: str) -> PairTask:
    """Load a table's task with its pairs.

    Raises:
        QuestionError: there is none of this name.
        FileNotFoundError: its table is nowhere.
        TableError: its table cannot be read.
    """
    question = parse(name)
    row = SETS[name]
    if row.maker:
        import_module(f"vlmeval_findit.data.{row.maker}.pair_tables").ensure(name)
    table = find_table(name, row.how_to_make)
    return Task(name, question, table, {pair.index: pair for pair in read_table(table)})


# --- tables ---------------------------------------------------------------------------------------


def write_table(folder: Path, name: str, pairs: Sequence[Pair], origin: Mapping[str, Any]) -> Path:
    """Write pairs as ``<folder>/<name>.tsv`` with its ``.meta.json``, both atomically."""
    path = folder / f"{name}.tsv"
    table_files.write_table(path, Pair, pairs, {**origin, "queries": len(pairs)})
    return path


def read_table(path: Path) -> list[Pair]:
    """Read a table's pairs; see :func:`.table_files.read_table`."""
    row = SETS.get(path.stem, SETS[PREFIX])
    return table_files.read_table(path, Pair, row.how_to_make)
