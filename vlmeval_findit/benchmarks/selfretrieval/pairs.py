"""Pairs of pictures and their tables: one row a pair, the left picture first.

``uid`` names the pair as its makers do.  The captions are those of the description that the
pictures were rendered from, and ``attribute`` what the two differ in; where nobody knows, the cells
are empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from ...core.paths import unsafe
from ...core.places import find_table
from ...core.question import PlainQuestion, QuestionError, Task
from ...core.spelling import nearest
from ...core.table_files import TableError, read_rows, write_cells
from . import PREFIX

Value = TypeVar("Value", covariant=True)


class Side(Enum):
    """The two pictures of a pair; the value is what files call them."""

    LEFT = "left"
    RIGHT = "right"

    @property
    def key(self) -> str:
        """The key of its caption in a reply."""
        return f"{self.value}_image"

    @property
    def other(self) -> Side:
        return Side.RIGHT if self is Side.LEFT else Side.LEFT


class Both(NamedTuple, Generic[Value]):
    """One value a picture, the left one first."""

    left: Value
    right: Value

    def of(self, side: Side) -> Value:
        return self.left if side is Side.LEFT else self.right


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of a table: two pictures, relative to the image folder.

    ``captions`` are those of their description (None: there is none), ``attribute`` is what they
    differ in ("": nobody says).
    """

    index: int
    uid: str
    images: tuple[str, str]
    captions: Both[str] | None = None
    attribute: str = ""
    support: tuple[str, ...] = ()
    width: int = 0
    height: int = 0

    @property
    def label(self) -> str:
        return f"pair {self.uid}"


PairTask = Task[PlainQuestion, Pair]
"""The question over its table."""


# --- names ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairSet:
    """A table of pairs: the command that makes it, and the encoder that scores it by default.

    ``maker`` names the part of ``data/`` that makes it when it is first asked for.
    """

    name: str
    encoder: str
    how_to_make: str
    maker: str = ""


_RENDERED = "nothing: it is made when it is first asked for"

SETS = {
    row.name: row
    for row in (
        PairSet(PREFIX, "SigLIP", "python run_findit.py prepare --self-retrieval dataset.json"),
        PairSet(f"{PREFIX}_Scenes", "FindIt-Nano-SigLIP", _RENDERED, "rendered"),
        PairSet(f"{PREFIX}_Scenes_mini", "FindIt-Nano-SigLIP", _RENDERED, "rendered"),
    )
}
"""By its name every table, which is the key of its image folder too."""


def parse(name: str) -> PlainQuestion:
    """The question of a name.

    >>> parse("SelfRetrieval").table
    'SelfRetrieval'

    Raises:
        QuestionError: there is none; the message says which is nearest.
    """
    if name not in SETS:
        raise QuestionError(f"{name}: no dataset of self-retrieval{nearest(name, SETS)}")
    return PlainQuestion(name, name, images=name, family_name="self-retrieval", frames=2)


def load_task(name: str) -> PairTask:
    """The question of a name with its pairs.

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

COLUMNS = ("index", "uid", "left", "right", "left_caption", "right_caption", "attribute")


def write_table(folder: Path, name: str, pairs: Sequence[Pair], origin: Mapping[str, Any]) -> Path:
    """Write pairs as ``<folder>/<name>.tsv`` with its ``.meta.json``, both atomically."""
    path = folder / f"{name}.tsv"
    write_cells(path, COLUMNS, map(_cells, pairs), origin, lambda: {"queries": len(pairs)})
    return path


def _cells(pair: Pair) -> Sequence[Any]:
    captions = pair.captions or Both("", "")
    return (pair.index, pair.uid, *pair.images, *captions, pair.attribute)


def read_table(path: Path) -> list[Pair]:
    """The pairs of a table that :func:`write_table` wrote.

    Raises:
        TableError: naming file, line and column; or the table is not the one that its
            ``.meta.json`` describes.
    """
    row = SETS.get(path.stem, SETS[PREFIX])
    return read_rows(path, COLUMNS, _pair, row.how_to_make)


def _pair(path: Path, number: int, cells: Sequence[str]) -> Pair:
    column = "index"
    try:
        row = dict(zip(COLUMNS, cells, strict=True))
        index = int(row["index"])
        for column in ("left", "right"):
            check_picture(row[column])
    except (ValueError, KeyError) as error:
        raise TableError(f"{path}, line {number}, column {column}: {error}") from None
    captions = Both(row["left_caption"], row["right_caption"])
    return Pair(
        index=index,
        uid=row["uid"],
        images=(row["left"], row["right"]),
        captions=captions if all(captions) else None,
        attribute=row["attribute"],
    )


def check_picture(name: str) -> None:
    """Refuse a path that does not stay below its folder.

    Raises:
        ValueError: it does not.
    """
    why = unsafe(name)
    if why:
        raise ValueError(f"{name!r} {why}: images lie below their dataset's folder")
