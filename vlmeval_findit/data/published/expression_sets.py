"""GroundingME, RefCOCO-M, ScreenSpot-Pro and RefSpatial-Bench: expressions about images.

The first two are Parquet files with images in them, as the Hugging Face hub has them, the others
JSON files with lists of questions, and folders of images.

**GroundingME** (huggingface.co/datasets/lirang04/GroundingME, arXiv 2512.17495): established from
its card (columns, 1,005 rows of the split ``test``), the authors' README (``bbox`` is
[x1, y1, x2, y2]) and their evaluation (a row whose ``subtask_l1`` is Rejection has no object,
whatever ``bbox`` says).  The authors ask for one box or null; here every object that the expression
describes is asked for, or an empty list.

**RefCOCO-M** (huggingface.co/datasets/moondream/refcoco-m): established from its card (columns,
counts, ``bbox`` as [x, y, width, height] in pixels, masks as COCO's run lengths).  Every expression
of an object is a query.

**ScreenSpot-Pro** (huggingface.co/datasets/likaixin/ScreenSpot-Pro, arXiv 2504.07981): established
from its card, its list of files, and the authors' evaluation (``bbox`` is [x1, y1, x2, y2] in
pixels).  The English instructions are asked.  The authors' score is the share of instructions whose
point lies in ``bbox``: the pointing accuracy of ``point``, where a reply has at most one point.

**RefSpatial-Bench** (huggingface.co/datasets/BAAI/RefSpatial-Bench, arXiv 2506.04308): established
from its card, its list of files, programs of others that read them, and the authors' evaluation
(github.com/Zhoues/RoboRefer: what is not 0 in the first channel of a mask is inside).  Asked is
``object``; ``prompt`` says the same as an order, with a format that is not ours.  The truth is the
mask, and for boxes the box around it.  The authors' score is the metric ``Points inside``, except
that they cut coordinates to whole pixels, so that -0.5 is inside the image.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...benchmarks.findit.findit_datasets import Family
from ...core.files import unsafe
from ...core.formatting import nearest
from ...core.image_files import Size
from ...marks.region import packed_mask
from ..annotated_samples import AnnotatedBox, AnnotationError, Sample, Samples, expression_samples
from ..custom.annotation_values import (
    CORNERS,
    SIDES,
    json_of,
    line_of,
    mask_of,
    mask_pixels,
    numbers,
    state_size,
    text_of,
)
from ..sources import PublishedPart

_ROWS_AT_ONCE = 16
"""Images may have 50 MB."""

_SUFFIXES = ((b"\xff\xd8\xff", ".jpg"), (b"\x89PNG", ".png"), (b"RIFF", ".webp"))
"""First bytes of image files, and the suffixes of their names."""


class PublishedRow(NamedTuple):
    """A row of a file.  Its methods raise an AnnotationError for an unsuitable value."""

    where: str  # The file and the number of the row, for messages
    cells: Mapping[str, Any]  # By column or key

    def at(self, key: str) -> str:
        """Return the place of a value, for messages."""
        return f"{self.where}, {key}"

    def line(self, key: str) -> str:
        """Return a text, on one line and with single blanks."""
        return line_of(self.cells[key], self.at(key))

    def corners(self, key: str) -> AnnotatedBox:
        """Return a box that is written as [x1, y1, x2, y2]."""
        return AnnotatedBox(numbers(self.cells[key], self.at(key), CORNERS), self.at(key))

    def tags(self, kinds: Sequence[str]) -> dict[str, str]:
        """Return the values of those kinds that are stated, as texts on one line."""
        known = {kind: self.cells.get(kind) for kind in kinds}
        stated = {kind: str(value) for kind, value in known.items() if value not in (None, "")}
        return {kind: line_of(value, self.at(kind)) for kind, value in stated.items()}

    def whole(self, key: str) -> int:
        """Return a whole number."""
        value = self.cells[key]
        if type(value) is not int:
            raise AnnotationError(f"{self.at(key)}: {value!r} is no whole number")
        return value

    def image(self, key: str) -> bytes:
        """Return the bytes of an image file."""
        cell = self.cells[key]
        data = cell.get("bytes") if isinstance(cell, Mapping) else None
        if not isinstance(data, bytes) or not data:
            raise AnnotationError(f"{self.at(key)}: holds no image (a struct with its bytes)")
        return data

    def suffix(self, key: str) -> str:
        """Return the suffix of an image file: .jpg, .png or .webp."""
        data = self.image(key)
        for begin, suffix in _SUFFIXES:
            if data.startswith(begin):
                return suffix
        raise AnnotationError(f"{self.at(key)}: is no JPEG, PNG or WebP image")


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """The Parquet files of a split."""

    files: tuple[Path, ...]  # Those that are there, in order
    missing: tuple[str, ...]  # Messages about the others

    def rows(self, columns: Sequence[str]) -> Iterator[PublishedRow]:
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
                        yield PublishedRow(f"{path}, row {number}", cells)
            except (pyarrow.ArrowException, OSError) as error:
                raise AnnotationError(f"{path}: no Parquet file: {error}") from None


@dataclass(frozen=True, slots=True)
class ParquetImages:
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
            where = row.at(self.column)
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
        expected = (f"{numbered[1]}-{n:05}-of-{count:05}.parquet" for n in range(count))
        yield from (f"{name} is missing" for name in expected if name not in names)


def _rows(path: Path, keys: Sequence[str]) -> Iterator[PublishedRow]:
    """Yield the objects of a JSON file with a list of them."""
    rows = json_of(text_of(path), str(path), "a list of questions")
    if not isinstance(rows, list):
        raise AnnotationError(f"{path}: is no list of questions")
    for at, row in enumerate(rows):
        where = f"{path}, [{at}]"
        if not isinstance(row, dict):
            raise AnnotationError(f"{where}: {reprlib.repr(row)} is no object")
        for key in keys:
            if key not in row:
                raise AnnotationError(f"{where}: no key {key!r}")
        yield PublishedRow(f"{where} ({row['id']})", row)


# --- GroundingME ----------------------------------------------------------------------------------

GROUNDINGME_COLUMNS = (
    *("id", "description", "image", "bbox", "subtask_l1", "subtask_l2", "width", "height"),
)
REJECTION = "Rejection"
SUBTASKS = ("Discriminative", "Spatial", "Limited", REJECTION)
"""Values of ``subtask_l1``."""


def find_groundingme(folder: Path) -> Sequence[PublishedPart]:
    """Return the part of GroundingME, or raise an AnnotationError."""
    return (PublishedPart("", partial(_read_groundingme, parquet_files(folder, "test"))),)


def _read_groundingme(parquet: ParquetFiles) -> Samples:
    queries: list[Sample] = []
    sizes: dict[str, Size] = {}
    for row in parquet.rows(GROUNDINGME_COLUMNS):
        number = row.whole("id")
        name = f"{number}{row.suffix('image')}"
        if name in sizes:
            raise AnnotationError(f"{row.at('id')}: {number} stands twice")
        sizes[name] = (row.whole("width"), row.whole("height"))
        queries.append(_groundingme_query(row, name))
    images = ParquetImages(parquet, "image", tuple(sizes))
    return expression_samples(parquet.files[0], images, Family.REFEXP_ALL, queries, sizes)


def _groundingme_query(row: PublishedRow, image: str) -> Sample:
    subtask = row.line("subtask_l1")
    if subtask not in SUBTASKS:
        why = f"no subtask {subtask!r}{nearest(subtask, SUBTASKS)}"
        raise AnnotationError(f"{row.at('subtask_l1')}: {why}")
    boxes = () if subtask == REJECTION else (row.corners("bbox"),)
    tags = {"subtask": subtask}
    if row.cells["subtask_l2"]:
        tags["aspect"] = row.line("subtask_l2")
    return Sample((image,), row.line("description"), boxes, row.where, tags=tags)


# --- RefCOCO-M ------------------------------------------------------------------------------------


def find_refcoco_m(folder: Path) -> Sequence[PublishedPart]:
    """Return the part of RefCOCO-M, or raise an AnnotationError."""
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
            raise AnnotationError(f"{row.at('samples')}: is no list of objects")
        for at, sample in enumerate(samples):
            where = f"{row.where}, samples[{at}]"
            queries += _refcoco_m_queries(sample, name, where)
            size = (sample.get("mask") or {}).get("size")
            if size is not None:
                if not isinstance(size, list) or len(size) != 2:
                    raise AnnotationError(f"{where}, mask, size: {size!r} is not [height, width]")
                state_size(sizes, name, (size[1], size[0]), where)
    images = ParquetImages(parquet, "image", tuple(names))
    return expression_samples(parquet.files[0], images, Family.REFEXP, queries, sizes)


def _refcoco_m_queries(sample: Mapping[str, Any], image: str, where: str) -> list[Sample]:
    x, y, w, h = numbers(sample.get("bbox"), f"{where}, bbox", SIDES)
    runs = sample.get("mask")
    mask = mask_of(runs, Path(), f"{where}, mask") if runs else None
    box = AnnotatedBox((x, y, x + w, y + h), f"{where}, bbox", mask=mask)
    tags = PublishedRow(where, sample).tags(("category", "supercategory"))
    sentences = sample.get("sentences")
    if not isinstance(sentences, list):
        raise AnnotationError(f"{where}, sentences: {sentences!r} is no list of expressions")
    places = [f"{where}, sentences[{at}]" for at in range(len(sentences))]
    return [
        Sample((image,), line_of(sentence, place), (box,), place, tags=tags)
        for sentence, place in zip(sentences, places, strict=True)
    ]


# --- ScreenSpot-Pro -------------------------------------------------------------------------------


def find_screenspot_pro(folder: Path) -> Sequence[PublishedPart]:
    """Return the part of ScreenSpot-Pro, or raise an AnnotationError."""
    files = sorted((folder / "annotations").glob("*.json"))
    if not files:
        raise AnnotationError(f"{folder}: no annotations/*.json")
    return (PublishedPart("", partial(_read_screenspot_pro, folder, files)),)


def _read_screenspot_pro(folder: Path, files: Sequence[Path]) -> Samples:
    queries: list[Sample] = []
    sizes: dict[str, Size] = {}
    for path in files:
        for row in _rows(path, ("img_filename", "img_size", "bbox", "instruction", "id")):
            image = row.line("img_filename")
            size = row.cells["img_size"]
            if not isinstance(size, list) or [type(side) for side in size] != [int, int]:
                why = f"{reprlib.repr(size)} is not [width, height]"
                raise AnnotationError(f"{row.at('img_size')}: {why}")
            state_size(sizes, image, (size[0], size[1]), row.at("img_size"))
            instruction, box = row.line("instruction"), row.corners("bbox")
            tags = row.tags(("ui_type", "group", "application", "platform"))
            queries.append(Sample((image,), instruction, (box,), row.where, tags=tags))
    source, images = folder / "annotations", folder / "images"
    return expression_samples(source, images, Family.REFEXP, queries, sizes)


# --- RefSpatial-Bench -----------------------------------------------------------------------------

REFSPATIAL_PARTS = ("Location", "Placement", "Unseen")


def find_refspatial(folder: Path) -> Sequence[PublishedPart]:
    """Return the parts of RefSpatial-Bench that are there, or raise an AnnotationError."""
    there = [name for name in REFSPATIAL_PARTS if (folder / name / "question.json").is_file()]
    if not there:
        raise AnnotationError(f"{folder}: no {', '.join(REFSPATIAL_PARTS)} with a question.json")
    return tuple(PublishedPart(name, partial(_read_refspatial, folder / name)) for name in there)


def _read_refspatial(folder: Path) -> Samples:
    path = folder / "question.json"
    queries = []
    for row in _rows(path, ("id", "object", "rgb_path", "mask_path")):
        image, label = row.line("rgb_path"), row.line("object")
        box = _box_around_mask(folder, row.line("mask_path"), row.at("mask_path"))
        tags = row.tags(("category", "step"))
        queries.append(Sample((image,), label, (box,), row.where, tags=tags))
    return expression_samples(path, folder, Family.REFEXP, queries, {})


def _box_around_mask(folder: Path, name: str, where: str) -> AnnotatedBox:
    inside = mask_pixels(folder, name, where)
    columns, rows = np.flatnonzero(inside.any(axis=0)), np.flatnonzero(inside.any(axis=1))
    x1, y1, x2, y2 = map(float, (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))
    return AnnotatedBox((x1, y1, x2, y2), where, mask=packed_mask(inside))
