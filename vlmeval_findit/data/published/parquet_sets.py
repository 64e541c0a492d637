"""GroundingME and RefCOCO-M: Parquet files with images in them, as the Hugging Face hub has them.

**GroundingME** (huggingface.co/datasets/lirang04/GroundingME, arXiv 2512.17495): established from
its card (columns, 1,005 rows of the split ``test``), the authors' README (``bbox`` is
[x1, y1, x2, y2]) and their evaluation (a row whose ``subtask_l1`` is Rejection has no object,
whatever ``bbox`` says).  The authors ask for one box or null; here every object that the expression
describes is asked for, or an empty list.

**RefCOCO-M** (huggingface.co/datasets/moondream/refcoco-m): established from its card (columns,
counts, ``bbox`` as [x, y, width, height] in pixels, masks as COCO's run lengths).  Every expression
of an object is a query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ...benchmarks.findit.findit_datasets import Family
from ...core.files import unsafe
from ...core.formatting import nearest
from ...core.image_files import Size
from ..custom.masks import mask_of
from ..custom.text import CORNERS, SIDES, line_of, numbers, state_size
from ..samples import AnnotatedBox, AnnotationError, Sample, Samples, expression_samples
from ..sources import PublishedPart

_ROWS_AT_ONCE = 16
"""Images may have 50 MB."""

_SUFFIXES = ((b"\xff\xd8\xff", ".jpg"), (b"\x89PNG", ".png"), (b"RIFF", ".webp"))
"""First bytes of image files, and the suffixes of their names."""


class ParquetRow(NamedTuple):
    """A row of a Parquet file.  Its methods raise an AnnotationError for an unsuitable cell."""

    where: str  # The file and the number of the row, for messages
    cells: Mapping[str, Any]  # By column

    def line(self, column: str) -> str:
        """Return a cell's text, on one line and with single blanks."""
        return line_of(self.cells[column], f"{self.where}, column {column}")

    def whole(self, column: str) -> int:
        """Return a cell's whole number."""
        value = self.cells[column]
        if type(value) is not int:
            raise AnnotationError(f"{self.where}, column {column}: {value!r} is no whole number")
        return value

    def image(self, column: str) -> bytes:
        """Return the bytes of a cell's image file."""
        cell = self.cells[column]
        data = cell.get("bytes") if isinstance(cell, Mapping) else None
        if not isinstance(data, bytes) or not data:
            raise AnnotationError(
                f"{self.where}, column {column}: holds no image (a struct with its bytes)"
            )
        return data

    def suffix(self, column: str) -> str:
        """Return the suffix of a cell's image file: .jpg, .png or .webp."""
        data = self.image(column)
        for begin, suffix in _SUFFIXES:
            if data.startswith(begin):
                return suffix
        raise AnnotationError(f"{self.where}, column {column}: is no JPEG, PNG or WebP image")


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """The Parquet files of a split."""

    files: tuple[Path, ...]  # Those that are there, in order
    missing: tuple[str, ...]  # Messages about the others

    def rows(self, columns: Sequence[str]) -> Iterator[ParquetRow]:
        """Yield the rows of all files, or raise an AnnotationError."""
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
                    batches = file.iter_batches(_ROWS_AT_ONCE, columns=list(columns))
                    rows = (cells for batch in batches for cells in batch.to_pylist())
                    for number, cells in enumerate(rows):
                        yield ParquetRow(f"{path}, row {number}", cells)
            except (pyarrow.ArrowException, OSError) as error:
                raise AnnotationError(f"{path}: no Parquet file: {error}") from None


@dataclass(frozen=True, slots=True)
class PackedImages:
    """Images in a column of Parquet files."""

    parquet: ParquetFiles
    column: str
    names: tuple[str, ...]  # Of their files, by row

    @property
    def missing(self) -> Sequence[str]:
        """Messages about files of the split that are not there."""
        return self.parquet.missing

    def unpack(self, folder: Path) -> None:
        """Write every image as a file, or raise an AnnotationError for an unsuitable name."""
        rows: dict[str, str] = {}
        for row, name in zip(self.parquet.rows([self.column]), self.names, strict=True):
            where = f"{row.where}, column {self.column}"
            why = unsafe(name)
            if why:
                raise AnnotationError(f"{where}: the name {name!r} {why}")
            if name in rows:
                raise AnnotationError(f"{where}: {name} is also the name in {rows[name]}")
            rows[name] = row.where
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(row.image(self.column))


def parquet_files(folder: Path, split: str) -> ParquetFiles:
    """Find ``<split>-00000-of-00002.parquet`` … in a folder or its ``data``.

    Raises:
        AnnotationError: there is none.
    """
    for place in (folder / "data", folder):
        files = sorted(place.glob(f"{split}-*.parquet")) or sorted(place.glob(f"{split}.parquet"))
        if files:
            return ParquetFiles(tuple(files), tuple(_missing(files)))
    raise AnnotationError(f"{folder}: no {split}-*.parquet there, nor in data")


def _missing(files: Sequence[Path]) -> Iterator[str]:
    numbered = re.fullmatch(r"(.+)-\d{5}-of-(\d{5})\.parquet", files[0].name)
    if numbered:
        names = {path.name for path in files}
        count = int(numbered[2])
        wanted = (f"{numbered[1]}-{n:05}-of-{count:05}.parquet" for n in range(count))
        yield from (f"{name} is missing" for name in wanted if name not in names)


# --- GroundingME ----------------------------------------------------------------------------------

GROUNDINGME_COLUMNS = (
    *("id", "description", "image", "bbox", "subtask_l1", "subtask_l2", "width", "height"),
)
REJECTION = "Rejection"
SUBTASKS = ("Discriminative", "Spatial", "Limited", REJECTION)
"""Values of ``subtask_l1``."""


def find_groundingme(folder: Path) -> Sequence[PublishedPart]:
    """Return the one part of GroundingME, or raise an AnnotationError."""
    return (PublishedPart("", partial(_read_groundingme, parquet_files(folder, "test"))),)


def _read_groundingme(parquet: ParquetFiles) -> Samples:
    queries: list[Sample] = []
    sizes: dict[str, Size] = {}
    for row in parquet.rows(GROUNDINGME_COLUMNS):
        number = row.whole("id")
        name = f"{number}{row.suffix('image')}"
        if name in sizes:
            raise AnnotationError(f"{row.where}, column id: {number} stands twice")
        sizes[name] = (row.whole("width"), row.whole("height"))
        queries.append(_groundingme_query(row, name))
    images = PackedImages(parquet, "image", tuple(sizes))
    return expression_samples(parquet.files[0], images, Family.REFEXP_ALL, queries, sizes)


def _groundingme_query(row: ParquetRow, image: str) -> Sample:
    subtask = row.line("subtask_l1")
    if subtask not in SUBTASKS:
        why = f"no subtask {subtask!r}{nearest(subtask, SUBTASKS)}"
        raise AnnotationError(f"{row.where}, column subtask_l1: {why}")
    where = f"{row.where}, column bbox"
    boxes: tuple[AnnotatedBox, ...] = ()
    if subtask != REJECTION:
        boxes = (AnnotatedBox(numbers(row.cells["bbox"], where, CORNERS), where),)
    tags = {"subtask": subtask}
    if row.cells["subtask_l2"]:
        tags["aspect"] = row.line("subtask_l2")
    return Sample((image,), row.line("description"), boxes, row.where, tags=tags)


# --- RefCOCO-M ------------------------------------------------------------------------------------


def find_refcoco_m(folder: Path) -> Sequence[PublishedPart]:
    """Return the one part of RefCOCO-M, or raise an AnnotationError."""
    return (PublishedPart("", partial(_read_refcoco_m, parquet_files(folder, "validation"))),)


def _read_refcoco_m(parquet: ParquetFiles) -> Samples:
    queries: list[Sample] = []
    names: list[str] = []
    sizes: dict[str, Size] = {}
    for row in parquet.rows(("file_name", "samples")):
        name = row.line("file_name")
        names.append(name)
        samples = row.cells["samples"]
        if not isinstance(samples, list) or not all(isinstance(sample, dict) for sample in samples):
            raise AnnotationError(f"{row.where}, column samples: is no list of objects")
        for at, sample in enumerate(samples):
            where = f"{row.where}, samples[{at}]"
            queries += _refcoco_m_queries(sample, name, where)
            size = (sample.get("mask") or {}).get("size")
            if size is not None:
                if not isinstance(size, list) or len(size) != 2:
                    raise AnnotationError(f"{where}, mask, size: {size!r} is not [height, width]")
                state_size(sizes, name, (size[1], size[0]), where)
    images = PackedImages(parquet, "image", tuple(names))
    return expression_samples(parquet.files[0], images, Family.REFEXP, queries, sizes)


def _refcoco_m_queries(sample: Mapping[str, Any], image: str, where: str) -> list[Sample]:
    """Return one query an expression of an object."""
    x, y, w, h = numbers(sample.get("bbox"), f"{where}, bbox", SIDES)
    runs = sample.get("mask")
    mask = mask_of(runs, Path(), f"{where}, mask") if runs else None
    box = AnnotatedBox((x, y, x + w, y + h), f"{where}, bbox", mask=mask)
    kinds = ("category", "supercategory")
    tags = {kind: str(sample[kind]) for kind in kinds if sample.get(kind)}
    sentences = sample.get("sentences")
    if not isinstance(sentences, list):
        raise AnnotationError(f"{where}, sentences: {sentences!r} is no list of expressions")
    places = [f"{where}, sentences[{at}]" for at in range(len(sentences))]
    return [
        Sample((image,), line_of(sentence, place), (box,), place, tags=tags)
        for sentence, place in zip(sentences, places, strict=True)
    ]
