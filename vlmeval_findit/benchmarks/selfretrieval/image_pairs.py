"""Tables of image pairs: a row per pair, the left image first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from ...core import file_sha256, quoted_value, read_json, suggestion, unsafe_name
from ...protocol import DatasetNameError, LoadedDataset, PlainVariant
from ...storage import (
    UNLIKE_PUBLISHED,
    ImagePath,
    TableError,
    WrittenTable,
    find_table,
    made_table,
    table_files,
)
from . import PREFIX

Value = TypeVar("Value", covariant=True)


class PairSide(Enum):
    """The two images of a pair; the value is their name in files."""

    LEFT = "left"
    RIGHT = "right"

    @property
    def key(self) -> str:
        return f"{self.value}_image"

    @property
    def other(self) -> PairSide:
        return PairSide.RIGHT if self is PairSide.LEFT else PairSide.LEFT


class PerSide(NamedTuple, Generic[Value]):
    """One value per image."""

    left: Value
    right: Value

    def value(self, side: PairSide) -> Value:
        return self.left if side is PairSide.LEFT else self.right


@dataclass(frozen=True, slots=True)
class ImagePair:
    """One row of a table: two images, relative to the image folder."""

    index: int
    uid: str  # the authors' name
    images: tuple[ImagePath, ImagePath]
    captions: PerSide[str] | None = None  # from descriptions of the images; None: unknown
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


LoadedPairs = LoadedDataset[PlainVariant, ImagePair]  # a table's pairs by index


RENDERED = (f"{PREFIX}_Scenes", f"{PREFIX}_Scenes_mini")  # made on first use

# The default encoder by table; also the keys of their image folders
PAIR_SETS = {PREFIX: "SigLIP", **dict.fromkeys(RENDERED, "FindIt-Nano-SigLIP")}


def how_to_make(table: str) -> str:
    """Return the command that makes a table."""
    if table in RENDERED:
        return f"deleting {table}.tsv (the next run makes it again)"
    return "python run_findit.py data get SelfRetrieval --from dataset.json"


def parse(name: str) -> PlainVariant:
    """Parse a name, or raise a DatasetNameError with the nearest name.

    >>> parse("SelfRetrieval").table
    'SelfRetrieval'
    """
    if name not in PAIR_SETS:
        raise DatasetNameError(
            f"unknown dataset of self-retrieval {name!r}{suggestion(name, PAIR_SETS)}"
        )
    return PlainVariant(name, name, images=name, family_name="Self-retrieval", frames=2)


def load_pairs(name: str) -> LoadedPairs:
    """Load a table that is there, or raise DatasetNameError, FileNotFoundError or TableError."""
    variant = parse(name)
    table = made_table(name) if name in RENDERED else find_table(name, how_to_make(name))
    return LoadedDataset(name, variant, table, {pair.index: pair for pair in read_table(table)})


def write_table(
    folder: Path, name: str, pairs: Sequence[ImagePair], origin: Mapping[str, Any]
) -> Path:
    """Write pairs to ``<folder>/<name>.tsv`` and its ``.meta.json``, both atomically."""
    path = folder / f"{name}.tsv"
    table_files.write_table(path, ImagePair, pairs, {**origin, "queries": len(pairs)})
    return path


def read_table(path: Path) -> list[ImagePair]:
    """Read a table's pairs; see :func:`.table_files.read_table`."""
    return table_files.read_table(path, ImagePair, how_to_make(path.stem))


PAIR_COUNT = 247  # published pairs: uids 0 to 246, each of 494 images once


def prepare(path: Path, out: Path, force: bool) -> WrittenTable:
    """Make the table of ``dataset.json``, {uid: {"left": path, "right": path}}.

    A TableError if it is damaged or, unless by ``force``, its pairs are not as published.
    """
    try:
        values = read_json(path)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from None
    if not isinstance(values, dict) or not values:
        raise TableError(f"{path}: should be an object {{uid: {{left, right}}}}")
    images = (_images(row, f"{path}, uid {uid!r}") for uid, row in values.items())
    pairs = list(map(ImagePair, range(len(values)), values, images))
    unlike = list(_unlike(pairs))
    if unlike and not force:
        raise TableError(
            f"{path}: {'; '.join(unlike)}. Scores on other pairs are not those of "
            "D3 self-retrieval; to make the table all the same: --force"
        )
    facts = {"source": path.name, "source_sha256": file_sha256(path)}
    if unlike:
        facts[UNLIKE_PUBLISHED] = "; ".join(unlike)
    notes = tuple(f"not the authors' pairs: {why}" for why in unlike)
    return WrittenTable(write_table(out, PREFIX, pairs, facts), len(pairs), notes)


def _images(row: object, where: str) -> tuple[str, str]:
    values = row if isinstance(row, dict) else {}
    return _image(values, PairSide.LEFT, where), _image(values, PairSide.RIGHT, where)


def _image(values: Mapping[str, object], side: PairSide, where: str) -> str:
    path = values.get(side.value)
    if not isinstance(path, str):
        raise TableError(f"{where}, key {side.value!r}: {quoted_value(path, 40)} is not a path")
    why = unsafe_name(path)
    if why:
        raise TableError(f"{where}, key {side.value!r}: {quoted_value(path, 40)} {why}")
    return path


def _unlike(pairs: Sequence[ImagePair]) -> Iterator[str]:
    if len(pairs) != PAIR_COUNT:
        yield f"{len(pairs)} pairs, published are {PAIR_COUNT}"
    elif {pair.uid for pair in pairs} != {str(number) for number in range(PAIR_COUNT)}:
        yield f"uids are not 0 to {PAIR_COUNT - 1}"
    ((image, most),) = Counter(chain.from_iterable(pair.images for pair in pairs)).most_common(1)
    if most > 1:
        yield f"{image} stands in several places"
