"""Files that hold a split of RefCOCO: lines, lists, the authors' pickle, and VLMEvalKit's table.

:mod:`.refcoco_copies` says where their layouts are known from.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ...benchmarks.vpbench import tsv_rows
from ...core import Count, Text, Whole, read_bytes
from ...storage import TableError
from ..annotated_samples import AnnotationError, Units
from ..custom.annotation_values import (
    CornersOfJson,
    ObjectOfJson,
    SidesOfJson,
    json_of,
    state_size,
    text_of,
    validated,
)
from ..custom.jsonl import lines_of
from .refcoco_splits import (
    CopiedSplit,
    Copy,
    Split,
    coco_name,
    corners_of,
    image_of,
    needed_train2014,
)


class _PlainUnpickler(pickle.Unpickler):
    """Refuses everything that a pickle names: functions, classes, and objects stored elsewhere."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for the object {pid!r} of another file")


def read_plain_pickle(path: Path) -> Any:
    """Return the plain values of a pickle, also of Python 2, whose texts are UTF-8 or Latin-1.

    Raises:
        AnnotationError: it holds anything else, or is damaged.
        OSError: it cannot be opened.
    """
    data = read_bytes(path)
    try:
        try:
            return _PlainUnpickler(io.BytesIO(data), encoding="utf-8").load()
        except UnicodeDecodeError:
            return _PlainUnpickler(io.BytesIO(data), encoding="latin-1").load()
    except Exception as error:  # A damaged pickle can raise any
        raise AnnotationError(
            f"{path}: not a pickle of lists, texts and numbers, so nothing of it is used: "
            f"{type(error).__name__}: {error}"
        ) from None


# --- Qwen-VL's lines ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """A line of Qwen-VL's."""

    image: Text
    sent: Text
    bbox: CornersOfJson
    width: Count
    height: Count


def line_files(folder: Path, split: Split) -> Sequence[Path]:
    """Return the file of a split's lines, if it is there."""
    name = f"{split.stem}_{split.name}.jsonl"
    places = (folder / name, folder / "refcoco" / name, folder / split.stem / name)
    return [place for place in places if place.is_file()][:1]


def _read_lines(folder: Path, split: Split, files: Sequence[Path]) -> CopiedSplit:
    (path,) = files
    copied = CopiedSplit(path, needed_train2014(folder))
    for where, value in lines_of(path):
        line: Line = validated(Line, value, where)
        image = coco_name(line.image, where)
        state_size(copied.sizes, image, (line.width, line.height), where)
        copied.add(image, [line.sent], line.bbox, where)
    return copied


QWEN_VL = Copy(
    "Qwen-VL's JSON lines",
    "an expression a line, as the authors have them",
    line_files,
    _read_lines,
)


# --- VLM-R1's lists -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    image: Text
    normal_caption: Text
    solution: CornersOfJson


def _list_files(folder: Path, split: Split) -> Sequence[Path]:
    name = f"{split.stem.replace('+', 'p')}_{split.name}.json"
    places = (folder / name, folder / "rec_jsons_processed" / name)
    return [place for place in places if place.is_file()][:1]


def _read_list(folder: Path, split: Split, files: Sequence[Path]) -> CopiedSplit:
    (path,) = files
    copied = CopiedSplit(path, needed_train2014(folder))
    entries = validated(list[_Entry], json_of(text_of(path), str(path)), str(path))
    for at, entry in enumerate(entries):
        where = f"{path}[{at}]"
        image = coco_name(entry.image, where)
        copied.add(image, [entry.normal_caption], entry.solution, where)
    return copied


VLM_R1 = Copy(
    "VLM-R1's lists",
    "an expression an entry, with a prompt, which is not asked",
    _list_files,
    _read_list,
)


# --- the authors' pickle --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sentence:
    """An expression, as its authors cleaned it."""

    sent: Text


@dataclass(frozen=True, slots=True)
class _Ref:
    ref_id: Whole
    image_id: Whole
    ann_id: Whole
    sentences: list[Sentence]


@dataclass(frozen=True, slots=True)
class _CocoImage:
    id: Whole
    file_name: Text
    width: Count
    height: Count


@dataclass(frozen=True, slots=True)
class _CocoObject:
    id: Whole
    image_id: Whole
    bbox: SidesOfJson


@dataclass(frozen=True, slots=True)
class _Instances:
    images: list[_CocoImage]
    annotations: list[_CocoObject]


def refs_file(folder: Path, split: Split) -> Path | None:
    """Return the authors' pickle, with or without instances.json; None if it is not there."""
    name = f"refs({split.provider}).p"
    places = (folder / split.stem / name, folder / name)
    return next((place for place in places if place.is_file()), None)


def _refs_files(folder: Path, split: Split) -> Sequence[Path]:
    refs = refs_file(folder, split)
    if refs is None or not (refs.parent / "instances.json").is_file():
        return []
    return [refs, refs.parent / "instances.json"]


def refs_of(path: Path, split: Split) -> Iterator[tuple[str, _Ref]]:
    """Yield the objects of a split, after their places."""
    for at, ref in enumerate(validated(list[ObjectOfJson], read_plain_pickle(path), str(path))):
        if ref.get("split") == split.name:
            where = f"{path}[{at}]"
            yield where, validated(_Ref, ref, where)


def _read_refs(folder: Path, split: Split, files: Sequence[Path]) -> CopiedSplit:
    path, instances = files
    copied = CopiedSplit(path, needed_train2014(folder))
    coco: _Instances = validated(
        _Instances, json_of(text_of(instances), str(instances)), str(instances)
    )
    images = {image.id: image for image in coco.images}
    objects = {thing.id: thing for thing in coco.annotations}
    for where, ref in refs_of(path, split):
        thing = objects.get(ref.ann_id)
        if thing is None or thing.image_id not in images:
            raise AnnotationError(f"{where}: {instances} has no object {ref.ann_id} with its image")
        stated = images[thing.image_id]
        image = coco_name(stated.file_name, str(instances))
        state_size(copied.sizes, image, (stated.width, stated.height), where)
        copied.add(image, [each.sent for each in ref.sentences], corners_of(thing.bbox), where)
    return copied


AUTHORS = Copy(
    "the authors' refs(…).p with instances.json",
    "nothing differs, these are the annotations",
    _refs_files,
    _read_refs,
)


# --- VLMEvalKit's table ---------------------------------------------------------------------------

_COLUMNS = ("image", "question", "answer", "category")


@dataclass(frozen=True, slots=True)
class _TsvImages:
    """Images in base64 in a table; a name is made of the content."""

    path: Path
    split: Split
    missing: tuple[str, ...] = ()

    def unpack(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for where, cells in _tsv_rows(self.path, self.split):
            name, data = image_of(cells["image"], where)
            if not (folder / name).exists():
                (folder / name).write_bytes(data)


def _tsv_files(folder: Path, split: Split) -> Sequence[Path]:
    path = folder / "RefCOCO.tsv"
    return [path] if path.is_file() else []


def _tsv_rows(path: Path, split: Split) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the rows of a split, after their places."""
    wanted = f"{split.stem}{split.name}".lower()
    try:
        for where, cells in tsv_rows(path, _COLUMNS):
            if re.sub(r"[\s_-]", "", cells["category"]).lower() == wanted:
                yield where, cells
    except TableError as error:
        raise AnnotationError(f"{error} (expected is VLMEvalKit's RefCOCO.tsv)") from None


def _read_tsv(folder: Path, split: Split, files: Sequence[Path]) -> CopiedSplit:
    (path,) = files
    copied = CopiedSplit(path, _TsvImages(path, split), Units.FRACTIONS)
    for where, cells in _tsv_rows(path, split):
        asked = re.search(r"<ref>(.*)</ref>", cells["question"], re.DOTALL)
        if asked is None:
            raise AnnotationError(f"{where}, question: no expression between <ref> and </ref>")
        place = f"{where}, answer"
        corners = validated(CornersOfJson, json_of(cells["answer"], place), place)
        image, _ = image_of(cells["image"], where)
        copied.add(image, [asked[1]], corners, where)
    if not copied.expressions:
        raise AnnotationError(f"{path}: no row has the category of {split.stem} {split.name}")
    return copied


VLMEVALKIT = Copy(
    "VLMEvalKit's RefCOCO.tsv",
    "boxes are rounded fractions, and an expression can have lost a blank (VLMEvalKit#1330)",
    _tsv_files,
    _read_tsv,
    has_images=True,
)
