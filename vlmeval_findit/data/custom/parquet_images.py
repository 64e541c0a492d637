"""Parquet files of the Hugging Face hub with images in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

from ...core import Checked, unsafe_name
from ...storage import parquet_rows
from ..annotated_samples import AnnotationError
from .annotation_values import validated

T = TypeVar("T")


def _image_bytes(cell: Any) -> bytes:
    data = cell.get("bytes") if isinstance(cell, dict) else None
    if not isinstance(data, bytes) or not data:
        raise ValueError("should be an image (a struct with its bytes)")
    return data


ImageBytes = Annotated[bytes, Checked(_image_bytes, before=True)]


@dataclass(frozen=True, slots=True)
class _ImageRow:
    image: ImageBytes


@dataclass(frozen=True, slots=True)
class ParquetImages:
    """The Parquet files of a split, with images in their column ``image``."""

    files: tuple[Path, ...]  # Those that are there, in order
    missing: tuple[str, ...]  # Messages about the others
    names: tuple[str, ...] = ()  # Of the images, by row; "" for an image that is not needed
    repeated: bool = False  # Rows may share an image: it is written once

    def rows(self, kind: type[T]) -> Iterator[tuple[str, T]]:
        """Yield the rows of all files after their places, or raise an AnnotationError."""
        columns = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        for path in self.files:
            for where, cells in parquet_rows(path, columns, error=AnnotationError):
                yield where, validated(kind, cells, where)

    def unpack(self, folder: Path) -> None:
        """Write every image as a file, or raise an AnnotationError for an unsuitable name."""
        seen = {""}
        for (where, row), name in zip(self.rows(_ImageRow), self.names, strict=True):
            if name in seen and (self.repeated or not name):
                continue
            why = unsafe_name(name) or ("is a duplicate" if name in seen else None)
            if why:
                raise AnnotationError(f"{where}, image: the name {name!r} {why}")
            seen.add(name)
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(row.image)


def parquet_images(folder: Path, split: str) -> ParquetImages:
    """Find ``<split>-00000-of-00002.parquet`` … in a folder or its ``data``.

    Raises:
        AnnotationError: there is none.
    """
    for place in (folder / "data", folder):
        files = sorted(place.glob(f"{split}-*.parquet")) or sorted(place.glob(f"{split}.parquet"))
        if files:
            numbered = re.fullmatch(r"(.+)-\d{5}-of-(\d{5})\.parquet", files[0].name)
            count = int(numbered[2]) if numbered else 0
            expected = [f"{split}-{n:05}-of-{count:05}.parquet" for n in range(count)]
            missing = [f"{name} is missing" for name in expected if place / name not in files]
            return ParquetImages(tuple(files), tuple(missing))
    raise AnnotationError(f"{folder}: no {split}-*.parquet there, nor in data")
