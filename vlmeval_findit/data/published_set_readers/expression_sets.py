"""GroundingME, RefCOCO-M, the three ScreenSpots and RefSpatial-Bench: expressions about images.

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

**ScreenSpot** (github.com/njucckevin/SeeClick, arXiv 2401.10935) and **ScreenSpot-V2**
(huggingface.co/datasets/OS-Copilot/ScreenSpot-v2, arXiv 2410.23218): established from the list of
files, and programs of others that read them (``bbox`` is [x, y, width, height] in pixels; 1,272
instructions each).  The copy of ScreenSpot at huggingface.co/datasets/rootsautomation/ScreenSpot
has corners in parts of the image's width and height; its card says so.

**RefSpatial-Bench** (huggingface.co/datasets/BAAI/RefSpatial-Bench, arXiv 2506.04308): established
from its card, its list of files, programs of others that read them, and the authors' evaluation
(github.com/Zhoues/RoboRefer: what is not 0 in the first channel of a mask is inside).  Asked is
``object``; ``prompt`` says the same as an order, with a format that is not ours.  The truth is the
mask, and for boxes the box around it.  The authors' score is the metric ``Points inside``, except
that they cut coordinates to whole pixels, so that -0.5 is inside the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np

from ...benchmarks.findit import Family
from ...core import Count, Expected, Whole
from ...marks import packed_mask
from ...storage import Size, named_image
from ..annotated_samples import (
    AnnotatedBox,
    AnnotationError,
    Sample,
    Samples,
    Units,
    expression_samples,
)
from ..custom.annotation_values import (
    CornersOfJson,
    OneLine,
    SidesOfJson,
    json_of,
    mask_of,
    mask_pixels,
    published_text_of,
    state_size,
    validated,
)
from ..custom.parquet_images import ImageBytes, ParquetImages, parquet_images
from ..sources import PublishedPart

T = TypeVar("T")


def _tags(row: Any, *kinds: str) -> dict[str, str]:
    """Return the values of those kinds that a row states, as texts on one line."""
    stated = {kind: getattr(row, kind) for kind in kinds}
    texts = {k: " ".join(str(v).split()) for k, v in stated.items() if v is not None}
    return {kind: text for kind, text in texts.items() if text}


def _questions(path: Path, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield the objects of a JSON file with a list of them, after their places."""
    rows = validated(list[kind], json_of(published_text_of(path), str(path)), str(path))  # type: ignore[valid-type]
    for at, row in enumerate(rows):
        named = f" ({row.id})" if hasattr(row, "id") else ""
        yield f"{path}[{at}]{named}", row


# --- GroundingME ----------------------------------------------------------------------------------

REJECTION = "Rejection"


@dataclass(frozen=True, slots=True)
class _GroundingMERow:
    id: Whole
    description: OneLine
    image: ImageBytes
    bbox: Any
    subtask_l1: Literal["Discriminative", "Spatial", "Limited", "Rejection"]
    subtask_l2: Any
    width: Count
    height: Count


# First bytes of image files, and the suffixes of their names
_SUFFIXES = ((b"\xff\xd8\xff", ".jpg"), (b"\x89PNG", ".png"), (b"RIFF", ".webp"))


def find_groundingme(folder: Path) -> Sequence[PublishedPart]:
    """Return the part of GroundingME, or raise an AnnotationError."""
    return (PublishedPart("", partial(_read_groundingme, parquet_images(folder, "test"))),)


def _read_groundingme(parquet: ParquetImages) -> Samples:
    queries: list[Sample] = []
    sizes: dict[str, Size] = {}
    for where, row in parquet.rows(_GroundingMERow):
        suffixes = (suffix for begin, suffix in _SUFFIXES if row.image.startswith(begin))
        suffix = next(suffixes, None)
        if suffix is None:
            raise AnnotationError(f"{where}, image: is not a JPEG, PNG or WebP image")
        name = f"{row.id}{suffix}"
        sizes[name] = (row.width, row.height)
        place = f"{where}, bbox"
        boxes = []
        if row.subtask_l1 != REJECTION:
            boxes = [AnnotatedBox(validated(CornersOfJson, row.bbox, place), place)]
        names = {"subtask_l1": "subtask", "subtask_l2": "aspect"}
        tags = {names[kind]: text for kind, text in _tags(row, *names).items()}
        queries.append(Sample((name,), row.description, tuple(boxes), where, tags=tags))
    images = replace(parquet, names=tuple(query.images[0] for query in queries))
    return expression_samples(parquet.files[0], images, Family.REFEXP_ALL, queries, sizes)


# --- RefCOCO-M ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RefCOCOMObject:
    bbox: SidesOfJson
    sentences: list[OneLine]
    mask: Any = None
    category: Any = None
    supercategory: Any = None


@dataclass(frozen=True, slots=True)
class _RefCOCOMRow:
    file_name: OneLine
    samples: list[_RefCOCOMObject]


def find_refcoco_m(folder: Path) -> Sequence[PublishedPart]:
    """Return the part of RefCOCO-M, or raise an AnnotationError."""
    return (PublishedPart("", partial(_read_refcoco_m, parquet_images(folder, "validation"))),)


def _read_refcoco_m(parquet: ParquetImages) -> Samples:
    queries: list[Sample] = []
    names: list[str] = []
    sizes: dict[str, Size] = {}
    for in_file, row in parquet.rows(_RefCOCOMRow):
        name = row.file_name
        names.append(name)
        for at, thing in enumerate(row.samples):
            where = f"{in_file}, samples[{at}]"
            mask = mask_of(thing.mask, Path(), f"{where}, mask") if thing.mask else None
            if mask is not None:
                state_size(sizes, name, (mask.width, mask.height), where)
            x, y, w, h = thing.bbox
            box = AnnotatedBox((x, y, x + w, y + h), f"{where}, bbox", mask=mask)
            tags = _tags(thing, "category", "supercategory")
            queries += [
                Sample((name,), words, (box,), f"{where}, sentences[{number}]", tags=tags)
                for number, words in enumerate(thing.sentences)
            ]
    images = replace(parquet, names=tuple(names))
    return expression_samples(parquet.files[0], images, Family.REFEXP, queries, sizes)


# --- ScreenSpot-Pro -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Instruction:
    id: Any
    img_filename: OneLine
    img_size: Annotated[tuple[Count, Count], Expected("[width, height]")]
    bbox: CornersOfJson
    instruction: OneLine
    ui_type: Any = None
    group: Any = None
    application: Any = None
    platform: Any = None


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
        for where, row in _questions(path, _Instruction):
            state_size(sizes, row.img_filename, row.img_size, where)
            box = AnnotatedBox(row.bbox, f"{where}, bbox")
            tags = _tags(row, "ui_type", "group", "application", "platform")
            queries.append(Sample((row.img_filename,), row.instruction, (box,), where, tags=tags))
    source = folder / "annotations"
    images = folder / "images"
    return expression_samples(source, images, Family.REFEXP, queries, sizes)


# --- ScreenSpot, ScreenSpot-V2 --------------------------------------------------------------------

SCREENS = ("desktop", "mobile", "web")


@dataclass(frozen=True, slots=True)
class _Click:
    img_filename: OneLine
    bbox: SidesOfJson
    instruction: OneLine
    data_type: Any = None
    data_source: Any = None


@dataclass(frozen=True, slots=True)
class _ClickRow:
    image: ImageBytes
    bbox: CornersOfJson
    instruction: OneLine
    data_type: Any
    data_source: Any


# How files and the folder of images are called
_SCREENSPOTS = {"1": ("", "screenspot_imgs"), "2": ("_v2", "screenspotv2_image")}


def find_screenspot(folder: Path, version: str) -> Sequence[PublishedPart]:
    """Return the part of ScreenSpot (version 1 or 2), or raise an AnnotationError."""
    end, images = _SCREENSPOTS[version]
    files = [folder / f"screenspot_{screen}{end}.json" for screen in SCREENS]
    there = [path for path in files if path.is_file()]
    if there:
        read = partial(_read_screenspot, there, folder / images)
    elif version == "1":
        read = partial(_read_screenspot_rows, parquet_images(folder, "test"))
    else:
        raise AnnotationError(f"{folder}: no {files[0].name}, {files[1].name} nor {files[2].name}")
    return (PublishedPart("", read),)


def _read_screenspot(files: Sequence[Path], images: Path) -> Samples:
    if not images.is_dir():
        raise AnnotationError(f"{images} is missing: the folder of the screenshots")
    queries: list[Sample] = []
    for path in files:
        screen = path.stem.removesuffix("_v2").removeprefix("screenspot_")
        for where, row in _questions(path, _Click):
            x, y, w, h = row.bbox
            box = AnnotatedBox((x, y, x + w, y + h), f"{where}, bbox")
            tags = {"screen": screen, **_tags(row, "data_type", "data_source")}
            queries.append(Sample((row.img_filename,), row.instruction, (box,), where, tags=tags))
    return expression_samples(files[0].parent, images, Family.REFEXP, queries, {})


def _read_screenspot_rows(parquet: ParquetImages) -> Samples:
    """Read the copy of the hub, whose boxes are corners in parts of width and height."""
    queries: list[Sample] = []
    for where, row in parquet.rows(_ClickRow):
        try:
            name, _ = named_image(row.image)
        except ValueError as error:
            raise AnnotationError(f"{where}, image: {error}") from None
        box = AnnotatedBox(row.bbox, f"{where}, bbox")
        tags = _tags(row, "data_type", "data_source")
        queries.append(Sample((name,), row.instruction, (box,), where, tags=tags))
    names = tuple(query.images[0] for query in queries)
    images = replace(parquet, names=names, repeated=True)
    samples = expression_samples(parquet.files[0], images, Family.REFEXP, queries, {})
    return replace(samples, units=Units.FRACTIONS, units_stated=True)


# --- RefSpatial-Bench -----------------------------------------------------------------------------

REFSPATIAL_PARTS = ("Location", "Placement", "Unseen")


@dataclass(frozen=True, slots=True)
class _Question:
    id: Any
    object: OneLine
    rgb_path: OneLine
    mask_path: OneLine
    category: Any = None
    step: Any = None


def find_refspatial(folder: Path) -> Sequence[PublishedPart]:
    """Return the parts of RefSpatial-Bench that are there, or raise an AnnotationError."""
    there = [name for name in REFSPATIAL_PARTS if (folder / name / "question.json").is_file()]
    if not there:
        raise AnnotationError(f"{folder}: no {', '.join(REFSPATIAL_PARTS)} with a question.json")
    return tuple(PublishedPart(name, partial(_read_refspatial, folder / name)) for name in there)


def _read_refspatial(folder: Path) -> Samples:
    path = folder / "question.json"
    queries = []
    for where, row in _questions(path, _Question):
        place = f"{where}, mask_path"
        inside = mask_pixels(folder, row.mask_path, place)
        columns = np.flatnonzero(inside.any(axis=0))
        rows = np.flatnonzero(inside.any(axis=1))
        corners = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
        x1, y1, x2, y2 = map(float, corners)
        box = AnnotatedBox((x1, y1, x2, y2), place, mask=packed_mask(inside))
        tags = _tags(row, "category", "step")
        queries.append(Sample((row.rgb_path,), row.object, (box,), where, tags=tags))
    return expression_samples(path, folder, Family.REFEXP, queries, {})
