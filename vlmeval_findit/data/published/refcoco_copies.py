"""RefCOCO, RefCOCO+ and RefCOCOg whole: every expression of a published split, of any copy.

Published figures are of UNC's splits (RefCOCOg: UMD's), an expression a query.  The counts of
expressions and images are those of the catalogue of TensorFlow Datasets (``ref_coco``) and of the
hub's viewer of jxu124/refcoco-benchmark.  UNC and UMD divide images, Google divides objects.

What people have, established from cards and from programs that read it:

* Qwen-VL's lines, which InternVL's README links: ``refcoco+_testA.jsonl``, an expression a line,
  ``bbox`` as corners in pixels;
* the authors' ``refs(unc).p`` (a pickle of Python 2) with COCO's ``instances.json``;
* jxu124/refcoco of the hub: an object a row, ``bbox`` as corners; testA is called ``test``;
* jxu124/refcoco-benchmark: an image a row, with providers apart;
* lmms-lab/RefCOCO (RefCOCOplus, RefCOCOg): an object a row, ``answer`` has its expressions,
  ``bbox`` is [x, y, width, height].  ``val`` has 8,811 objects (RefCOCOg: 7,573): those of UNC's
  val and 5,000 more, which is the size of Google's (lmms-eval#1066).  ``test`` is no split of UNC;
* Kangheng/refcoco (refcocop, refcocog): an expression a row, ``question``, with its image; ``bbox``
  is a text of JSON, corners in pixels;
* VLM-R1's ``refcocop_testA.json``: a list of expressions, ``normal_caption``, with corners in
  pixels as ``solution``;
* VLMEvalKit's ``RefCOCO.tsv``: all splits, the question has InternVL's prompt around the
  expression, the answer is in fractions, and expressions can have lost a blank (VLMEvalKit#1330).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ...benchmarks.vpbench.stage1_release import named_image, tsv_rows
from ...boxes.representation import Corners
from ...core.validation import Count, Text, Whole
from ...storage.table_files import TableError
from ..annotated_samples import AnnotationError, Samples, Units
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
from ..sources import PublishedPart
from .parquet_images import ImageBytes, ParquetImages, parquet_images
from .plain_pickle import read_plain_pickle
from .refcoco_splits import (
    SET_NAMES,
    SPLITS,
    CopiedSplit,
    Split,
    coco_name,
    corners_of,
    needed_train2014,
    train2014,
)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the three sets, as people have it."""

    name: str  # In messages
    differs: str  # From the authors' annotations
    files: Callable[[Path, Split], Sequence[Path]]  # That it has of a split; none: no such copy
    read: Callable[[Path, Split, Sequence[Path]], CopiedSplit]
    has_images: bool = False


def find_refcoco(folder: Path, stem: str) -> Sequence[PublishedPart]:
    """Return the splits of a set (refcoco, refcoco+, refcocog) that a folder has in any copy.

    Raises:
        AnnotationError: it has none.
    """
    parts = []
    for name in SPLITS[stem]:
        split = Split(stem, name)
        there = [copy for copy in COPIES if copy.files(folder, split)]
        if there:
            parts.append(PublishedPart(name, partial(_read, folder, split, there)))
    if not parts:
        raise AnnotationError(f"{folder}: no split of {stem} in any copy that is known")
    return parts


def _read(folder: Path, split: Split, there: Sequence[Copy]) -> Samples:
    """Read the first copy that has its images, and say which it is and how it differs."""
    at_hand = train2014(folder) is not None
    ready = [copy for copy in there if copy.has_images or at_hand]
    copy = (ready or there)[0]
    files = copy.files(folder, split)
    copied = copy.read(folder, split, files)
    copied.ledger.note(f"this copy is {copy.name}: {copy.differs}", str(files[0]))
    for other in there:
        if other is not copy:
            place = str(other.files(folder, split)[0])
            copied.ledger.not_read(f"another copy of the split: {other.name}", place)
    return copied.samples()


def _image_of(cell: str | bytes, where: str) -> tuple[str, bytes]:
    """Return the name of an image without one, made of its content, and its bytes."""
    try:
        return named_image(cell)
    except ValueError as error:
        raise AnnotationError(f"{where}, image: {error}") from None


# --- Qwen-VL's lines ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    image: Text
    sent: Text
    bbox: CornersOfJson
    width: Count
    height: Count


def _line_files(folder: Path, split: Split) -> Sequence[Path]:
    name = f"{split.stem}_{split.name}.jsonl"
    places = (folder / name, folder / "refcoco" / name, folder / split.stem / name)
    return [place for place in places if place.is_file()][:1]


def _read_lines(folder: Path, split: Split, files: Sequence[Path]) -> CopiedSplit:
    (path,) = files
    copied = CopiedSplit(path, needed_train2014(folder))
    for where, value in lines_of(path):
        line: _Line = validated(_Line, value, where)
        image = coco_name(line.image, where)
        state_size(copied.sizes, image, (line.width, line.height), where)
        copied.add(image, [line.sent], line.bbox, where)
    return copied


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


# --- the authors' pickle --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sentence:
    sent: Text


@dataclass(frozen=True, slots=True)
class _Ref:
    ref_id: Whole
    image_id: Whole
    ann_id: Whole
    sentences: list[_Sentence]


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


def _refs_file(folder: Path, split: Split) -> Path | None:
    name = f"refs({split.provider}).p"
    places = (folder / split.stem / name, folder / name)
    return next((place for place in places if place.is_file()), None)


def _refs_files(folder: Path, split: Split) -> Sequence[Path]:
    refs = _refs_file(folder, split)
    if refs is None or not (refs.parent / "instances.json").is_file():
        return []
    return [refs, refs.parent / "instances.json"]


def _refs_of(path: Path, split: Split) -> Iterator[tuple[str, _Ref]]:
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
    for where, ref in _refs_of(path, split):
        thing = objects.get(ref.ann_id)
        if thing is None or thing.image_id not in images:
            raise AnnotationError(f"{where}: {instances} has no object {ref.ann_id} with its image")
        stated = images[thing.image_id]
        image = coco_name(stated.file_name, str(instances))
        state_size(copied.sizes, image, (stated.width, stated.height), where)
        copied.add(image, [each.sent for each in ref.sentences], corners_of(thing.bbox), where)
    return copied


# --- the hub --------------------------------------------------------------------------------------


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
    sentences: list[_Sentence]


def _object_files(folder: Path, split: Split) -> Sequence[Path]:
    name = {"val": "validation", "testA": "test"}.get(split.name, split.name)
    return _parquet(folder, name, "raw_image_info")


def _read_objects(folder: Path, split: Split, files: Sequence[Path]) -> CopiedSplit:
    copied = CopiedSplit(files[0], needed_train2014(folder))
    for where, row in ParquetImages(tuple(files), ()).rows(_ObjectRow):
        image = coco_name(row.image_path, where)
        copied.add(image, [each.sent for each in row.sentences], row.bbox, where)
    return copied


@dataclass(frozen=True, slots=True)
class _RefInfo:
    sentences: list[_Sentence]


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
        image, _ = _image_of(row.image, where)
        names.append(image)
        state_size(copied.sizes, image, row.image_size, where)
        place = f"{where}, bbox"
        corners = validated(CornersOfJson, json_of(row.bbox, place), place)
        copied.add(image, [row.question], corners, where)
    copied.images = replace(parquet, names=tuple(names), repeated=True)
    return copied


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
    published = _images_beside(folder, split) if is_mixed else set()
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


def _images_beside(folder: Path, split: Split) -> set[str]:
    """Return the images of a split by the annotations beside a copy that mixes two splits.

    Raises:
        AnnotationError: there are none.
    """
    lines = _line_files(folder, split)
    refs = _refs_file(folder, split)
    if lines:
        rows = ((where, validated(_Line, value, where)) for where, value in lines_of(lines[0]))
        return {coco_name(line.image, where) for where, line in rows}
    if refs is not None:
        return {f"COCO_train2014_{ref.image_id:012}.jpg" for _, ref in _refs_of(refs, split)}
    rest = ",".join(name for name in SPLITS[split.stem] if name != "val")
    name = f"refs({split.provider}).p"
    raise AnnotationError(
        f"{folder}: val of this copy (lmms-lab's) holds {split.provider.upper()}'s val and 5,000 "
        f"objects more, and nothing in it tells which. Put the authors' {name} or "
        f"{split.stem}_val.jsonl beside it: then only the images that it names are taken. "
        f"Without: data import {folder} --set {SET_NAMES[split.stem]} --only {rest}"
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
            name, data = _image_of(cells["image"], where)
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
        image, _ = _image_of(cells["image"], where)
        copied.add(image, [asked[1]], corners, where)
    if not copied.expressions:
        raise AnnotationError(f"{path}: no row has the category of {split.stem} {split.name}")
    return copied


# --- the copies, the most exact first -------------------------------------------------------------

COPIES = (
    Copy(
        "Qwen-VL's JSON lines",
        "an expression a line, as the authors have them",
        _line_files,
        _read_lines,
    ),
    Copy(
        "the authors' refs(…).p with instances.json",
        "nothing differs, these are the annotations",
        _refs_files,
        _read_refs,
    ),
    Copy(
        "VLM-R1's lists",
        "an expression an entry, with a prompt of its own, which is not asked",
        _list_files,
        _read_list,
    ),
    Copy(
        "jxu124/refcoco of the hub",
        "an object a row; testA is called test",
        _object_files,
        _read_objects,
    ),
    Copy(
        "jxu124/refcoco-benchmark of the hub",
        "an image a row, the splits of others are apart",
        _image_row_files,
        _read_image_rows,
        has_images=True,
    ),
    Copy(
        "Kangheng's of the hub",
        "an expression a row; images have no names, ours are made of their content",
        _expression_files,
        _read_expressions,
        has_images=True,
    ),
    Copy(
        "lmms-lab's of the hub",
        "an object a row; its val holds 5,000 objects more, its test is none of UNC's",
        _answer_files,
        _read_answers,
        has_images=True,
    ),
    Copy(
        "VLMEvalKit's RefCOCO.tsv",
        "boxes are rounded fractions, and an expression can have lost a blank (VLMEvalKit#1330)",
        _tsv_files,
        _read_tsv,
        has_images=True,
    ),
)
