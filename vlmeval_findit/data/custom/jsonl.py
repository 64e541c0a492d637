"""JSON lines: one query a line, with its images, what to find, and where it is.

``image`` or ``images`` (the frames of a video in order); one of ``label``, ``labels``,
``expression`` and ``references``; ``boxes``; optional ``caption`` and ``tags``.  A box is
[x1, y1, x2, y2], or an object: {"box": [x1, y1, x2, y2], "label": "…", "mask": …, "ignore": true}.
The label is needed where a line has several.  A mask is COCO's run lengths, or the name of an
image, relative to the file.  An ignored box counts neither way.  For ``images`` there is a list of
boxes a frame.  A key that is null is as if it were not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from msgspec import structs

from ...benchmarks.findit import Family
from ...core import Checked, Config, Expected, Text, YesNo, quoted_value, suggestion
from ...storage import Size
from ..annotated_samples import (
    IGNORED,
    AnnotatedBox,
    AnnotationError,
    BoxForm,
    Sample,
    Samples,
    Units,
)
from ..ledger import Ledger
from .annotation_values import CornersOfJson, json_of, mask_of, validated
from .class_rules import label_at, label_text
from .image_names import ImageNames
from .reader_options import ReaderOptions
from .splits import chosen_split, names_a_split, split_by_folders
from .text_encodings import text_of

IMAGES = ("image", "images")
TARGETS = ("label", "labels", "expression", "references")

_Texts = Annotated[tuple[Text, ...], Expected("a list of texts", min_length=1)]


def _tags(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f'{quoted_value(value)} should be an object {{"kind": "value"}}')
    tags = {}
    for kind, stated in value.items():
        if isinstance(stated, bool):
            tags[kind] = "yes" if stated else "no"
        elif isinstance(stated, str | int):
            tags[kind] = str(stated)
        elif stated is not None:
            why = f"{quoted_value(stated)} is neither text, a whole number, true nor false"
            raise ValueError(f"{kind}: {why}")
    return tags


@dataclass(frozen=True, slots=True)
class QueryLine(Config):
    """The object of a line."""

    boxes: Annotated[list[Any], Expected("a list of boxes ([] where there is nothing to find)")]
    image: Text | None = None
    images: _Texts | None = None
    label: Text | None = None
    labels: _Texts | None = None
    expression: Text | None = None
    references: _Texts | None = None
    caption: Text | None = None
    tags: Annotated[dict[str, str], Checked(_tags, before=True)] | None = None


@dataclass(frozen=True, slots=True)
class QueryBox(Config):
    """The object of a box."""

    box: CornersOfJson
    label: Text | None = None
    mask: Any = None
    ignore: YesNo = False


def read_jsonl(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a file of queries, all of one kind: labels, expressions, or references.

    Repeated lines are left out.

    Args:
        path: the file.
        images: the folder that image names are relative to.
        options: what the file does not tell: units, and how many frames videos are thinned to.

    Raises:
        AnnotationError: naming the line and what is wrong with it.
    """
    options = options or ReaderOptions()
    lines = lines_of(path, text_of(path, options.encoding))
    return samples_of_lines(path, images, options, Ledger(), lines)


# The file and the line in it
Place = str


def lines_of(path: Path, text: str) -> Iterator[tuple[Place, Any]]:
    """Yield the JSON of every line that is not empty, after its place."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, json_of(line, where)


def samples_of_lines(
    path: Path,
    images: Path,
    options: ReaderOptions,
    ledger: Ledger,
    lines: Iterable[tuple[Place, Any]],
    units: Units = Units.PIXELS,
    sizes: Mapping[str, Size] | None = None,
) -> Samples:
    """Return the queries of lines, as :func:`read_jsonl` does.

    ``units`` are those of the format; ``sizes`` are (width, height) of images by stated names.
    """
    names = ImageNames(images, ledger)
    form = options.form or BoxForm.CORNERS
    seen: dict[object, Sample] = {}
    kinds: dict[str, str] = {}
    for where, value in lines:
        _refuse_other_lines(value, where)
        line: QueryLine = validated(QueryLine, value, where)
        kind, query = _query(line, where, path.parent, names, form)
        query = _drop_repeated_boxes(query, ledger)
        kinds.setdefault(kind, where)
        if len(kinds) > 1:
            (first, there), _ = kinds.items()
            why = f"has {kind!r}, but {there} has {first!r}; make a file of each"
            raise AnnotationError(f"{where}: {why}")
        before = seen.setdefault((query.images, query.label, query.support), query)
        if _without_places(before) != _without_places(query):
            raise AnnotationError(
                f"{where}: the same query as {before.where}, with other boxes, caption or tags: "
                "write all boxes of a query on one line"
            )
        if before is not query:
            ledger.leave_out("repeated lines", where)
    if not seen:
        raise AnnotationError(f"{path}: no queries")
    queries = _of_split(path, tuple(seen.values()), options, ledger)
    ledger.read("queries", len(queries))
    return Samples(
        path,
        images,
        _family(next(iter(kinds)), queries),
        queries,
        units=options.units or units,
        units_stated=options.units is not None,
        form=None if options.form else form,
        sizes={names.find(name, str(path)): size for name, size in (sizes or {}).items()},
        ledger=ledger,
        frames=options.frames,
    )


def _without_places(query: Sample) -> Sample:
    """Return a query as if it stood nowhere: what stands twice is equal then."""
    boxes = tuple([structs.replace(box, where="") for box in query.boxes])
    return structs.replace(query, boxes=boxes, where="")


def _of_split(
    path: Path, queries: tuple[Sample, ...], options: ReaderOptions, ledger: Ledger
) -> tuple[Sample, ...]:
    """Return the queries of the chosen split; all, where folders of images name none."""
    # The user named a file of one split: its images may lie anywhere.
    of_file = names_a_split(path.stem)
    splits = {} if of_file else split_by_folders(query.images[0] for query in queries)
    if not splits:
        if options.split not in (None, path.stem):
            raise AnnotationError(f"{path}: no splits here. Leave --split out")
        return queries
    split = chosen_split(path, list(dict.fromkeys(splits.values())), options.split)
    for query in queries:
        if splits[query.images[0]] != split:
            ledger.leave_out(f"queries of the split {splits[query.images[0]]}", query.where)
    return tuple(query for query in queries if splits[query.images[0]] == split)


def _drop_repeated_boxes(query: Sample, ledger: Ledger) -> Sample:
    """Leave out boxes that repeat frame, label, corners and mask of another."""
    seen: set[object] = set()
    boxes = []
    for box in query.boxes:
        key = (box.frame, box.label, box.corners, box.ignored, box.mask)
        if key in seen:
            ledger.leave_out("boxes that repeat label and corners of another", box.where)
        else:
            seen.add(key)
            boxes.append(box)
    return structs.replace(query, boxes=tuple(boxes))


def _refuse_other_lines(value: Any, where: Place) -> None:
    """Refuse an object most of whose keys are not ours: no near key is meant by each."""
    known = {field.name for field in fields(QueryLine)}
    if isinstance(value, dict) and 2 * len(value.keys() & known) < len(value):
        there = ", ".join(map(str, list(value)[:8]))
        raise AnnotationError(
            f"{where}: has the keys {there}; read as JSON lines, a query each: image, one of "
            f"{', '.join(TARGETS)}, and boxes (docs/reference/json-lines.md)"
        )


def _query(
    line: QueryLine, where: str, folder: Path, names: ImageNames, form: BoxForm
) -> tuple[str, Sample]:
    """Return what a line asks about (label, expression or references), and its query."""
    _single_key(line, IMAGES, where)
    target = _single_key(line, TARGETS, where)
    images = line.images or (line.image or "",)
    references = tuple(names.find(name, where) for name in line.references or ())
    labels = tuple(label_at(label, f"{where}, labels") for label in line.labels or ())
    # The same images show the same object.
    label: str | tuple[str, ...] = references[0] if references else labels
    if not label:
        label = label_at(getattr(line, target), f"{where}, {target}")
    boxes = tuple(
        structs.replace(box, corners=form.corners(box.corners))
        for box in _boxes(line, where, len(images), folder)
    )
    sample = Sample(
        images=tuple(names.find(name, where) for name in images),
        label=label,
        boxes=boxes,
        where=where,
        support=references,
        caption=label_text(line.caption or ""),
        tags=line.tags or {},
    )
    return ("label" if target == "labels" else target), sample


def _single_key(line: QueryLine, keys: Sequence[str], where: str) -> str:
    """Return which of these keys a line has, or raise an AnnotationError unless it is one."""
    there = [key for key in keys if getattr(line, key) is not None]
    if len(there) != 1:
        has = " and ".join(there) or "none"
        raise AnnotationError(f"{where}: needs one of {', '.join(keys)}; has {has}")
    return there[0]


def _boxes(line: QueryLine, where: str, frames: int, folder: Path) -> list[AnnotatedBox]:
    lists = {f"{where}, boxes": line.boxes}
    if line.images is not None:
        lists = {f"{where}, boxes[{at}]": boxes for at, boxes in enumerate(line.boxes)}
    if len(lists) != frames or not all(isinstance(boxes, list) for boxes in lists.values()):
        raise AnnotationError(f"{where}, boxes: should be {frames} lists of boxes, one a frame")
    labels = None
    if line.labels is not None:
        labels = [label_text(label) for label in line.labels]
    result = []
    for frame, (place, boxes) in enumerate(lists.items()):
        for at, value in enumerate(boxes):
            result.append(_box(value, f"{place}[{at}]", frame, labels, folder))
    return result


def _box(
    value: Any, where: str, frame: int, labels: Sequence[str] | None, folder: Path
) -> AnnotatedBox:
    box: QueryBox = validated(QueryBox, value if isinstance(value, dict) else {"box": value}, where)
    if (box.label is None) is not (labels is None):
        why = "has a label, but its line has one" if box.label else "has no label"
        raise AnnotationError(f"{where}: {why}; boxes have one where a line has several")
    label = label_text(box.label or "")
    if box.label is not None and label not in (labels or ()):
        raise AnnotationError(
            f"{where}, label: {label!r} is not asked for{suggestion(label, labels or ())}"
        )
    mask = None if box.mask is None else mask_of(box.mask, folder, f"{where}, mask")
    ignored = IGNORED if box.ignore else ""
    return AnnotatedBox(box.box, where, label, frame, ignored, mask)


def _family(target: str, queries: Sequence[Sample]) -> Family:
    video = next((query for query in queries if len(query.images) > 1), None)
    if target == "references":
        return Family.INSDET if video is None else Family.INSDET_VIDEO
    if target == "label":
        return Family.OBJDET if video is None else Family.OBJDET_VIDEO
    if video is not None:
        raise AnnotationError(
            f"{video.where}: an expression about {len(video.images)} frames: an "
            "expression needs one image; videos need label, labels or references"
        )
    is_single = all(len(query.counted) == 1 for query in queries)
    return Family.REFEXP if is_single else Family.REFEXP_ALL
