"""Parquet files with images in them, as the Hugging Face hub holds datasets.

A column of images is a struct with ``bytes`` (a whole file) and ``path``.  A split is one file or
several, ``data/<split>-00000-of-00002.parquet``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...core.files import unsafe
from ...core.spelling import nearest
from ..custom.text import line_of
from ..samples import AnnotationError

_AT_A_TIME = 16
"""Rows that are held in memory at once: images may have 50 MB."""

_SUFFIXES = ((b"\xff\xd8\xff", ".jpg"), (b"\x89PNG", ".png"), (b"RIFF", ".webp"))
"""How images begin, and how their files are to end."""


class Row(NamedTuple):
    """One row: the cells by column, and for messages the file and the row's number in it."""

    where: str
    cells: Mapping[str, Any]

    def line(self, column: str) -> str:
        """A cell's text, on one line and with single blanks, or an AnnotationError."""
        return line_of(self.cells[column], f"{self.where}, column {column}")

    def whole(self, column: str) -> int:
        """A cell's whole number, or an AnnotationError."""
        value = self.cells[column]
        if type(value) is not int:
            raise AnnotationError(f"{self.where}, column {column}: {value!r} is no whole number")
        return value

    def picture(self, column: str) -> bytes:
        """Return the bytes of an image, or raise an AnnotationError."""
        cell = self.cells[column]
        data = cell.get("bytes") if isinstance(cell, Mapping) else None
        if not isinstance(data, bytes) or not data:
            raise AnnotationError(
                f"{self.where}, column {column}: holds no image (a struct with its bytes)"
            )
        return data

    def suffix(self, column: str) -> str:
        """How the file of an image is to end: .jpg, .png or .webp, or an AnnotationError."""
        data = self.picture(column)
        for begin, suffix in _SUFFIXES:
            if data.startswith(begin):
                return suffix
        raise AnnotationError(f"{self.where}, column {column}: is no JPEG, PNG or WebP image")


@dataclass(frozen=True, slots=True)
class Shards:
    """The files of a split in their order, and which of them are not there."""

    files: tuple[Path, ...]
    missing: tuple[str, ...]

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Return the rows of all files, one after the other, or raise an AnnotationError."""
        import pyarrow
        import pyarrow.parquet as pq

        for path in self.files:
            try:
                with pq.ParquetFile(path) as file:
                    there = file.schema_arrow.names
                    for name in columns:
                        if name not in there:
                            why = f"no column {name!r}{nearest(name, there)}"
                            raise AnnotationError(f"{path}: {why}")
                    number = 0
                    for batch in file.iter_batches(_AT_A_TIME, columns=list(columns)):
                        for cells in batch.to_pylist():
                            yield Row(f"{path}, row {number}", cells)
                            number += 1
            except (pyarrow.ArrowException, OSError) as error:
                raise AnnotationError(f"{path}: no Parquet file: {error}") from None


@dataclass(frozen=True, slots=True)
class Packed:
    """Images that lie in a column: ``names[i]`` is what that of the i-th row is to be called."""

    shards: Shards
    column: str
    names: tuple[str, ...]

    def unpack(self, folder: Path) -> None:
        """Write every image as a file, byte by byte as it is packed.

        Raises:
            AnnotationError: one is not packed, or its name is none of a file below the folder, or
                that of another.
        """
        seen: dict[str, str] = {}
        for row, name in zip(self.shards.rows([self.column]), self.names, strict=True):
            where = f"{row.where}, column {self.column}"
            why = unsafe(name)
            if why:
                raise AnnotationError(f"{where}: the name {name!r} {why}")
            if name in seen:
                raise AnnotationError(f"{where}: {name} is also what {seen[name]} has")
            seen[name] = row.where
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(row.picture(self.column))


def shards_of(folder: Path, split: str) -> Shards:
    """Find the files of a split in a folder or its ``data``, or raise an AnnotationError."""
    for place in (folder / "data", folder):
        found = sorted(place.glob(f"{split}-*.parquet")) or sorted(place.glob(f"{split}.parquet"))
        if found:
            return Shards(tuple(found), tuple(_missing(found)))
    raise AnnotationError(f"{folder}: no {split}-*.parquet there, nor in data")


def _missing(found: Sequence[Path]) -> Iterator[str]:
    numbered = re.fullmatch(r"(.+)-\d{5}-of-(\d{5})\.parquet", found[0].name)
    if numbered:
        names = {path.name for path in found}
        count = int(numbered[2])
        wanted = (f"{numbered[1]}-{n:05}-of-{count:05}.parquet" for n in range(count))
        yield from (f"{name} is missing" for name in wanted if name not in names)
