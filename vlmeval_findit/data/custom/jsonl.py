"""JSON lines: one query a line, with its images, what to find, and where it is.

``image`` or ``images`` (the frames of a video in order); one of ``label``, ``labels``,
``expression`` and ``references``; ``boxes``; optional ``caption`` and ``tags``.  A box is
[x1, y1, x2, y2], or an object: {"box": [x1, y1, x2, y2], "label": "…", "mask": …, "ignore": true}.
The label is needed where a line has several.  A mask is COCO's run lengths, or the name of an
image, relative to the file.  An ignored box counts neither way.  For ``images`` there is a list of
boxes a frame.  A key that is null is as if it were not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

from ...benchmarks.findit import Family
from ...core import Checked, Config, Expected, Text, YesNo, nearest, shown
from ..annotated_samples import IGNORED, AnnotatedBox, AnnotationError, Sample, Samples, Units
from ..ledger import Ledger
from .annotation_values import CornersOfJson, json_of, mask_of, text_of, validated
from .reader_options import ReaderOptions

IMAGES = ("image", "images")
TARGETS = ("label", "labels", "expression", "references")

_Texts = Annotated[tuple[Text, ...], Expected("a list of texts", min_length=1)]


def _tags(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f'{shown(value)} should be an object {{"kind": "value"}}')
    tags = {}
    for kind, stated in value.items():
        if isinstance(stated, bool):
            tags[kind] = "yes" if stated else "no"
        elif isinstance(stated, str | int):
            tags[kind] = str(stated)
        elif stated is not None:
            why = f"{shown(stated)} is neither text, a whole number, true nor false"
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
class _Box(Config):
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
    return samples_of_lines(path, images, options, Ledger(), lines_of(path))


# The file and the line in it
Place = str


def lines_of(path: Path) -> Iterator[tuple[Place, Any]]:
    """Yield the JSON of every line that is not empty, after its place."""
    for number, text in enumerate(text_of(path).split("\n"), 1):
        if text.strip():
            where = f"{path}, line {number}"
            yield where, json_of(text, where)


def samples_of_lines(
    path: Path,
    images: Path,
    options: ReaderOptions,
    ledger: Ledger,
    lines: Iterable[tuple[Place, Any]],
) -> Samples:
    """Return the queries of lines, as :func:`read_jsonl` does."""
    seen: dict[object, Sample] = {}
    kinds: dict[str, str] = {}
    for where, value in lines:
        _refuse_other_lines(value, where)
        line: QueryLine = validated(QueryLine, value, where)
        kind, query = _query(line, where, path.parent)
        query = _drop_repeated_boxes(query, ledger)
        kinds.setdefault(kind, where)
        if len(kinds) > 1:
            (first, there), _ = kinds.items()
            why = f"has {kind!r}, but {there} has {first!r}; make a file of each"
            raise AnnotationError(f"{where}: {why}")
        before = seen.setdefault((query.images, query.label, query.support), query)
        if before != query:
            raise AnnotationError(
                f"{where}: the same query as {before.where}, with other boxes, caption or tags: "
                "write all boxes of a query on one line"
            )
        if before is not query:
            ledger.leave_out("repeated lines", where)
    if not seen:
        raise AnnotationError(f"{path}: no queries")
    queries = tuple(seen.values())
    ledger.read("queries", len(queries))
    return Samples(
        path,
        images,
        _family(next(iter(kinds)), queries),
        queries,
        units=options.units or Units.PIXELS,
        units_stated=options.units is not None,
        ledger=ledger,
        frames=options.frames,
    )


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
    return replace(query, boxes=tuple(boxes))


def _refuse_other_lines(value: Any, where: Place) -> None:
    """Refuse an object most of whose keys are not ours: no near key is meant by each."""
    known = {field.name for field in fields(QueryLine)}
    if isinstance(value, dict) and 2 * len(value.keys() & known) < len(value):
        there = ", ".join(map(str, list(value)[:8]))
        raise AnnotationError(
            f"{where}: has the keys {there}; read as JSON lines, a query each: image, one of "
            f"{', '.join(TARGETS)}, and boxes (docs/reference/json-lines.md)"
        )


def _query(line: QueryLine, where: str, folder: Path) -> tuple[str, Sample]:
    """Return what a line asks about (label, expression or references), and its query."""
    _single_key(line, IMAGES, where)
    target = _single_key(line, TARGETS, where)
    images = line.images or (line.image or "",)
    # The same images show the same object.
    label = line.references[0] if line.references else getattr(line, target)
    sample = Sample(
        images=images,
        label=label,
        boxes=tuple(_boxes(line, where, len(images), folder)),
        where=where,
        support=line.references or (),
        caption=line.caption or "",
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
    result = []
    for frame, (place, boxes) in enumerate(lists.items()):
        for at, value in enumerate(boxes):
            result.append(_box(value, f"{place}[{at}]", frame, line.labels, folder))
    return result


def _box(
    value: Any, where: str, frame: int, labels: Sequence[str] | None, folder: Path
) -> AnnotatedBox:
    box: _Box = validated(_Box, value if isinstance(value, dict) else {"box": value}, where)
    if (box.label is None) is not (labels is None):
        why = "has a label, but its line has one" if box.label else "has no label"
        raise AnnotationError(f"{where}: {why}; boxes have one where a line has several")
    if box.label is not None and box.label not in (labels or ()):
        raise AnnotationError(
            f"{where}, label: {box.label!r} is not asked for{nearest(box.label, labels or ())}"
        )
    mask = None if box.mask is None else mask_of(box.mask, folder, f"{where}, mask")
    ignored = IGNORED if box.ignore else ""
    return AnnotatedBox(box.box, where, box.label or "", frame, ignored, mask)


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
