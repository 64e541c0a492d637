"""Read detection sets of the Hugging Face hub: Parquet with an image a row, and its ``objects``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from ...core import Text, TextError, parse_json, suffix_of, unsafe_name
from ...storage import named_image, parquet_rows
from ..annotated_samples import AnnotationError, BoxForm, Samples
from .annotation_values import IMAGE_SUFFIXES
from .class_rules import check_class_names
from .collector import Collector
from .hf_metadata import LABELS, read_objects
from .node import SIDES_OF_IMAGES, Node
from .parquet_images import ParquetImages
from .reader_options import ReaderOptions
from .splits import chosen_split, names_a_split

_READ = frozenset(("image", "file_name", "objects")).union(*SIDES_OF_IMAGES.values())
_NOT_NEEDED = frozenset(("image_id", "text", "caption", "id"))
_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})")


def read_hf_parquet(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a file, or those of one split below a folder.

    Images are in their rows, or files that a row names.  The names of classes that are numbers are
    in the files, as ``push_to_hub`` writes them; else rules must rename each.

    Raises an AnnotationError for other columns, for missing files of a split, and for numbers
    without names.
    """
    collector = Collector(path, images, options, form=BoxForm.SIDES)
    files = _files_of_split(path, collector)
    names: list[str] = []
    contents: dict[str, str] = {}  # Names that are made of the content, by those of paths
    rows = 0
    for file in files:
        classes = _names_of_classes(file)
        numbered = dict(enumerate(classes))
        check_class_names(numbered, f"{file}, names of classes", collector.ledger)
        for where, row in parquet_rows(file, error=AnnotationError):
            rows += 1
            line = Node(row, where, collector.ledger)
            image = _read_image(line, collector, names, contents)
            if "objects" not in row:
                raise line.error(
                    f"has the columns {', '.join(row)}; should have image and objects (bbox and "
                    "category). Write a JSON line for each image and label instead "
                    "(docs/reference/json-lines.md)"
                )
            read_objects(line.at("objects"), image, collector, classes)
    collector.ledger.read("Parquet files", len(files))
    samples = collector.samples()
    if not names:
        return samples
    if len(names) != rows:
        raise AnnotationError(f"{path}: some images are in their rows, and others are files")
    return replace(samples, images=ParquetImages(tuple(files), (), tuple(names)))


# --- files ----------------------------------------------------------------------------------------


def _files_of_split(path: Path, collector: Collector) -> list[Path]:
    """Return the files to read; the ledger has the others."""
    split = _split_of(path)
    if path.is_file():
        others = [each for each in path.parent.glob("*.parquet") if _split_of(each) == split]
        collector.ledger.leave_out(
            "other Parquet files of this split: name the folder", str(path), len(others) - 1
        )
        return [path]
    splits: dict[str, list[Path]] = {}
    for file in sorted(path.rglob("*.parquet")):
        splits.setdefault(_split_of(file), []).append(file)
    chosen = chosen_split(path, list(splits), collector.options.split)
    collector.split_is_chosen = chosen != ""
    for other, files in splits.items():
        if other != chosen:
            collector.ledger.leave_out(f"files of the split {other}", str(files[0]), len(files))
    _refuse_missing(splits[chosen])
    return splits[chosen]


def _split_of(path: Path) -> str:
    """Return the split of a file: test-00000-of-00002.parquet, test.parquet, test/0000.parquet."""
    shard = _SHARD.fullmatch(path.stem)
    name = shard[1] if shard else path.stem
    return next(filter(names_a_split, (name, path.parent.name)), "")


def _refuse_missing(files: Sequence[Path]) -> None:
    shard = _SHARD.fullmatch(files[0].stem)
    there = {file.name for file in files}
    for number in range(int(shard[3]) if shard else 0):
        name = f"{shard[1]}-{number:05}-of-{shard[3]}.parquet" if shard else ""
        if name not in there:
            raise AnnotationError(
                f"{files[0].parent / name} is missing. Download it, or name the files that are "
                "there one by one"
            )


def _names_of_classes(file: Path) -> list[str]:
    """Return the names of labels that are numbers, of the features in the file; none: no names."""
    import pyarrow
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(file).metadata or {}
    except (pyarrow.ArrowException, OSError) as error:
        raise AnnotationError(f"{file}: not a Parquet file: {error}") from None
    try:
        feature = parse_json(metadata.get(b"huggingface", b"{}"))
    except TextError as error:
        raise AnnotationError(f"{file}: its features are {error}") from None
    for key in ("info", "features", "objects"):
        feature = feature.get(key) if isinstance(feature, dict) else None
    return _names_below(feature, is_label=False)


def _names_below(feature: Any, is_label: bool) -> list[str]:
    """Return the names of the ClassLabel at a key of labels, however lists are nested."""
    if isinstance(feature, list):
        feature = dict(enumerate(feature))
    if not isinstance(feature, dict):
        return []
    if is_label and isinstance(feature.get("names"), list):
        return [str(name) for name in feature["names"]]
    below = (_names_below(each, is_label or key in LABELS) for key, each in feature.items())
    return next(filter(None, below), [])


# --- images ---------------------------------------------------------------------------------------


def _read_image(
    line: Node, collector: Collector, names: list[str], contents: dict[str, str]
) -> str:
    """Note the image of a row, and return its name; add it to ``names`` if the image is packed."""
    splits = line.rest("columns", _READ, _NOT_NEEDED)
    if line.keys.get("file_name"):
        return collector.image(line.get("file_name", Text), line, line.size, splits)
    cell = line.keys.get("image")
    path = cell.get("path") if isinstance(cell, dict) else None
    if isinstance(cell, dict) and cell.get("bytes") is None and isinstance(path, str):
        return collector.image(path, line, line.size, splits)
    try:
        content, _ = named_image(cell)
    except ValueError as error:
        raise line.at("image").error(str(error)) from None
    name = _safe_name(path) if isinstance(path, str) else ""
    # Paths of several folders may end alike.
    if not name or contents.setdefault(name, content) != content:
        name = content
    names.append(name)
    return collector.packed_image(name, line, line.size, splits)


def _safe_name(path: str) -> str:
    """Return the name for the image of a path; "": it is not that of an image."""
    name = PurePosixPath(path).name if unsafe_name(path) else path
    is_image = suffix_of(PurePosixPath(name)) in IMAGE_SUFFIXES
    return name if is_image and not unsafe_name(name) else ""
