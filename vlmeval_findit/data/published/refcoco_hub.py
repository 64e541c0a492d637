"""Parquet files of the hub that hold a split of RefCOCO, most of them with its images.

:mod:`.refcoco_copies` says where their layouts are known from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...boxes import Corners
from ...core import Count, Text
from ..annotated_samples import AnnotationError
from ..custom.annotation_values import CornersOfJson, SidesOfJson, json_of, state_size, validated
from ..custom.jsonl import lines_of
from .parquet_images import ImageBytes, ParquetImages, parquet_images
from .refcoco_files import Line, Sentence, line_files, refs_file, refs_of
from .refcoco_splits import (
    SET_NAMES,
    SPLITS,
    CopiedSplit,
    Copy,
    Split,
    coco_name,
    corners_of,
    image_of,
    needed_train2014,
)


def _parquet(folder: Path, name: str, column: str) -> Sequence[Path]:
    """Return the Parquet files of a split that have a column."""
    import pyarrow
    import pyarrow.parquet as pq

    try:
        files = parquet_images(folder, name).files
        return files if column in pq.read_schema(files[0]).names else []
    except AnnotationError:
        return []
    except (pyarrow.ArrowException, OSError) as error:
        raise AnnotationError(f"{folder}: {name}: not a Parquet file: {error}") from None


@dataclass(frozen=True, slots=True)
class _ObjectRow:
    image_path: Text
    bbox: CornersOfJson
    sentences: list[Sentence]


def _object_files(folder: Path, split: Split) -> Sequence[Path]:
    name = {"val": "validation", "testA": "test"}.get(split.name, split.name)
    return _parquet(folder, name, "raw_image_info")


def _read_objects(folder: Path, split: Split, files: Sequence[Path]) -> CopiedSplit:
    copied = CopiedSplit(files[0], needed_train2014(folder))
    for where, row in ParquetImages(tuple(files), ()).rows(_ObjectRow):
        image = coco_name(row.image_path, where)
        copied.add(image, [each.sent for each in row.sentences], row.bbox, where)
    return copied


JXU124 = Copy(
    "jxu124/refcoco of the hub",
    "an object a row; testA is called test",
    _object_files,
    _read_objects,
)


@dataclass(frozen=True, slots=True)
class _RefInfo:
    sentences: list[Sentence]


@dataclass(frozen=True, slots=True)
class _AnnInfo:
    bbox: SidesOfJson


@dataclass(frozen=True, slots=True)
class _RefOfImage:
    ann_info: _AnnInfo
    ref_info: _RefInfo


@dataclass(frozen=True, slots=True)
class _ImageInfo:
    file_name: Text
    width: Count
    height: Count


@dataclass(frozen=True, slots=True)
class _ImageRow:
    ref_list: list[_RefOfImage]
    image_info: _ImageInfo


def _image_row_name(split: Split) -> str:
    stem = split.stem.replace("+", "_plus")
    return f"{stem}_{split.provider}_{split.name}"


def _image_row_files(folder: Path, split: Split) -> Sequence[Path]:
    return _parquet(folder, _image_row_name(split), "ref_list")


def _read_image_rows(folder: Path, split: Split, files: Sequence[Path]) -> CopiedSplit:
    parquet = parquet_images(folder, _image_row_name(split))
    copied = CopiedSplit(files[0], parquet)
    names = []
    for in_file, row in parquet.rows(_ImageRow):
        info = row.image_info
        image = coco_name(info.file_name, in_file)
        names.append(image)
        state_size(copied.sizes, image, (info.width, info.height), in_file)
        for at, ref in enumerate(row.ref_list):
            texts = [each.sent for each in ref.ref_info.sentences]
            copied.add(image, texts, corners_of(ref.ann_info.bbox), f"{in_file}, ref_list[{at}]")
    copied.images = replace(parquet, names=tuple(names))
    return copied


JXU124_BENCHMARK = Copy(
    "jxu124/refcoco-benchmark of the hub",
    "an image a row, the splits of others are apart",
    _image_row_files,
    _read_image_rows,
    has_images=True,
)


@dataclass(frozen=True, slots=True)
class _ExpressionRow:
    image: ImageBytes
    question: Text
    bbox: Text
    image_size: tuple[Count, Count]


def _expression_files(folder: Path, split: Split) -> Sequence[Path]:
    return _parquet(folder, split.name, "image_size")


def _read_expressions(folder: Path, split: Split, files: Sequence[Path]) -> CopiedSplit:
    parquet = parquet_images(folder, split.name)
    copied = CopiedSplit(files[0], parquet)
    names = []
    for where, row in parquet.rows(_ExpressionRow):
        image, _ = image_of(row.image, where)
        names.append(image)
        state_size(copied.sizes, image, row.image_size, where)
        place = f"{where}, bbox"
        corners = validated(CornersOfJson, json_of(row.bbox, place), place)
        copied.add(image, [row.question], corners, where)
    copied.images = replace(parquet, names=tuple(names), repeated=True)
    return copied


KANGHENG = Copy(
    "Kangheng's of the hub",
    "an expression a row; images have no names, ours are made of their content",
    _expression_files,
    _read_expressions,
    has_images=True,
)


@dataclass(frozen=True, slots=True)
class _AnswerRow:
    file_name: Text
    bbox: SidesOfJson
    answer: list[Text]


def _answer_files(folder: Path, split: Split) -> Sequence[Path]:
    return _parquet(folder, split.name, "answer")


def _read_answers(folder: Path, split: Split, files: Sequence[Path]) -> CopiedSplit:
    parquet = parquet_images(folder, split.name)
    copied = CopiedSplit(files[0], parquet)
    is_mixed = split.name == "val"
    published = _published_images(folder, split) if is_mixed else set()
    seen: set[tuple[str, Corners, tuple[str, ...]]] = set()
    names = []
    for where, row in parquet.rows(_AnswerRow):
        image = coco_name(row.file_name, where)
        corners = corners_of(row.bbox)
        same = (image, corners, tuple(row.answer))
        if is_mixed and image not in published:
            names.append("")
            copied.ledger.leave_out("objects in images that are not of the published val", where)
        elif is_mixed and same in seen:
            names.append("")
            copied.ledger.leave_out("objects that another row has", where)
        else:
            names.append(image)
            seen.add(same)
            copied.add(image, row.answer, corners, where)
    if _answer_files(folder, replace(split, name="test")) and split.stem != "refcocog":
        copied.ledger.not_read("the split test, which is none of UNC's", str(files[0].parent))
    copied.images = replace(parquet, names=tuple(names), repeated=True)
    return copied


def _published_images(folder: Path, split: Split) -> set[str]:
    """Return the images of a split by the annotations next to a copy that mixes two splits.

    Raises:
        AnnotationError: there are none.
    """
    lines = line_files(folder, split)
    refs = refs_file(folder, split)
    if lines:
        rows = ((where, validated(Line, value, where)) for where, value in lines_of(lines[0]))
        return {coco_name(line.image, where) for where, line in rows}
    if refs is not None:
        return {f"COCO_train2014_{ref.image_id:012}.jpg" for _, ref in refs_of(refs, split)}
    rest = ",".join(name for name in SPLITS[split.stem] if name != "val")
    name = f"refs({split.provider}).p"
    raise AnnotationError(
        f"{folder}: val of this copy (lmms-lab's) holds {split.provider.upper()}'s val and 5,000 "
        f"objects more, and nothing in it tells which. Put the authors' {name} or "
        f"{split.stem}_val.jsonl next to it: then only the images that it names are taken. "
        f"Without: data import {folder} --set {SET_NAMES[split.stem]} --only {rest}"
    )


LMMS_LAB = Copy(
    "lmms-lab's of the hub",
    "an object a row; its val holds 5,000 objects more, its test is none of UNC's",
    _answer_files,
    _read_answers,
    has_images=True,
)
