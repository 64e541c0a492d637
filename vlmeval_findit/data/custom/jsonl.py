"""JSON lines: one query a line, with its images, what to find, and where it is.

``image`` or ``images`` (the frames of a video in order); one of ``label``, ``labels``,
``expression`` and ``references``; ``boxes``; optional ``caption`` and ``tags``.  A box is
[x1, y1, x2, y2], or an object: {"box": [x1, y1, x2, y2], "label": "…", "mask": …, "ignore": true}.
The label is needed where a line has several.  A mask is COCO's run lengths, or the name of an
image, relative to the file.  An ignored box counts neither way.  For ``images`` there is a list of
boxes a frame.  A key that is null is as if it were not there.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...benchmarks.findit.findit_datasets import Family
from ...core.formatting import nearest
from ..annotated_samples import IGNORED, AnnotatedBox, AnnotationError, Sample, Samples, Units
from .annotation_values import CORNERS, json_of, lines_of, mask_of, numbers, units_of

IMAGES = ("image", "images")
TARGETS = ("label", "labels", "expression", "references")
KEYS = (*IMAGES, *TARGETS, "boxes", "caption", "tags")

Line = Mapping[str, Any]
"""The object of a line, without keys that are null."""


def read_jsonl(
    path: Path, images: Path, units: Units | None = None, frames: int | None = None
) -> Samples:
    """Read a file of queries, all of one kind: labels, expressions, or references.

    Repeated lines are left out.

    Args:
        path: the file.
        images: the folder that image names are relative to.
        units: of boxes; must be stated where no number is above 1.
        frames: the number that the frames of videos are thinned to (None: all have one number).

    Raises:
        AnnotationError: naming the line and what is wrong with it.
    """
    queries: list[Sample] = []
    left_out: Counter[str] = Counter()
    seen: dict[object, Sample] = {}
    kinds: dict[str, str] = {}
    for line, text in enumerate(lines_of(path), 1):
        if not text.strip():
            continue
        where = f"{path}, line {line}"
        values = _object(text, where)
        query = _query(values, where, path.parent)
        kinds.setdefault(_kind(values), where)
        if len(kinds) > 1:
            (first, there), (other, _) = kinds.items()
            raise AnnotationError(
                f"{where}: has {other!r}, but {there} has {first!r}; make a file of each"
            )
        question = (query.images, query.label, query.support)
        before = seen.setdefault(question, query)
        if before is query:
            queries.append(query)
        elif before == query:
            left_out["repeated lines"] += 1
        else:
            raise AnnotationError(
                f"{where}: is the query of {before.where} with other boxes, caption or tags; write "
                "all boxes of a query on one line"
            )
    if not queries:
        raise AnnotationError(f"{path}: no queries")
    units = units_of(path, [box for query in queries for box in query.boxes], units)
    family = _family(next(iter(kinds)), queries)
    return Samples(path, images, family, tuple(queries), units, left_out=left_out, frames=frames)


# --- a line ---------------------------------------------------------------------------------------


def _object(text: str, where: str) -> Line:
    values = json_of(text, where, "a query")
    if not isinstance(values, dict):
        raise AnnotationError(f"{where}: {reprlib.repr(values)} is no object: one query a line")
    for key in values:
        if key not in KEYS:
            raise AnnotationError(f"{where}: no key {key!r}{nearest(key, KEYS)}")
    return {key: value for key, value in values.items() if value is not None}


def _query(line: Line, where: str, folder: Path) -> Sample:
    shown, target = _one_of(line, IMAGES, where), _one_of(line, TARGETS, where)
    images = (
        (_text(line[shown], f"{where}, {shown}"),)
        if shown == "image"
        else _texts(line, shown, where)
    )
    support = _texts(line, target, where) if target == "references" else ()
    label: str | tuple[str, ...]
    if target == "labels":
        label = _texts(line, target, where)
    else:
        # The same images show the same object.
        label = support[0] if support else _text(line[target], f"{where}, {target}")
    return Sample(
        images=images,
        label=label,
        boxes=_boxes(line, where, label, len(images) if shown == "images" else None, folder),
        where=where,
        support=support,
        caption=_text(line.get("caption", ""), f"{where}, caption"),
        tags=_tags(line.get("tags", {}), f"{where}, tags"),
    )


def _one_of(line: Line, keys: Sequence[str], where: str) -> str:
    there = [key for key in keys if key in line]
    if len(there) != 1:
        has = " and ".join(there) if there else "none"
        raise AnnotationError(f"{where}: needs one of {', '.join(keys)}; has {has}")
    return there[0]


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is not text")
    return value


def _texts(line: Line, key: str, where: str) -> tuple[str, ...]:
    values = _list(line[key], f"{where}, {key}", "a list of texts")
    if not values:
        raise AnnotationError(f"{where}, {key}: [] is not a list of texts")
    return tuple(_text(value, f"{where}, {key}[{at}]") for at, value in enumerate(values))


# --- boxes ----------------------------------------------------------------------------------------


def _boxes(
    line: Line, where: str, label: str | tuple[str, ...], frames: int | None, folder: Path
) -> tuple[AnnotatedBox, ...]:
    """Return the boxes of a line; ``frames`` is the number of lists of them (None: one list)."""
    if "boxes" not in line:
        raise AnnotationError(f"{where}: no key 'boxes' ([] where there is nothing to find)")
    where = f"{where}, boxes"
    lists = {where: line["boxes"]}
    if frames is not None:
        per_frame = _list(line["boxes"], where, "a list of boxes a frame")
        if len(per_frame) != frames:
            raise AnnotationError(f"{where}: {len(per_frame)} lists of boxes for {frames} images")
        lists = {f"{where}[{at}]": boxes for at, boxes in enumerate(per_frame)}
    labels = None if isinstance(label, str) else label
    return tuple(
        _box(box, f"{place}[{at}]", frame, labels, folder)
        for frame, (place, boxes) in enumerate(lists.items())
        for at, box in enumerate(_list(boxes, place, "a list of boxes"))
    )


def _list(value: Any, where: str, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is not {what}")
    return value


_LABELLED = f'{{"box": {CORNERS}, "label": "…"}}'


def _box(
    value: Any, where: str, frame: int, labels: Sequence[str] | None, folder: Path
) -> AnnotatedBox:
    """Return a box; its label is "" where the line has one label."""
    label, mask, ignored, place = "", None, "", where
    if labels is not None or isinstance(value, dict):
        needed = {"box"} if labels is None else {"box", "label"}
        if not isinstance(value, dict) or value.keys() - {"mask", "ignore"} != needed:
            raise AnnotationError(
                f"{where}: {reprlib.repr(value)} is not "
                + (f"{_LABELLED}, as boxes of several labels are" if labels else CORNERS)
            )
        if labels is not None:
            label = _text(value["label"], f"{where}, label")
            if label not in labels:
                raise AnnotationError(f"{where}, label: no {label!r}{nearest(label, labels)}")
        if value.get("mask") is not None:
            mask = mask_of(value["mask"], folder, f"{where}, mask")
        if value.get("ignore", False) not in (True, False):
            raise AnnotationError(f"{where}, ignore: {value['ignore']!r} is neither true nor false")
        ignored = IGNORED if value.get("ignore") else ""
        value, where = value["box"], f"{where}, box"
    return AnnotatedBox(numbers(value, where, CORNERS), place, label, frame, ignored, mask)


# --- tags -----------------------------------------------------------------------------------------


def _tags(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise AnnotationError(f'{where}: {reprlib.repr(value)} is no object {{"kind": "value"}}')
    return {kind: _value(v, f"{where}, {kind}") for kind, v in value.items() if v is not None}


def _value(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (str, int)):
        raise AnnotationError(
            f"{where}: {reprlib.repr(value)} is neither text, a whole number, true nor false"
        )
    return str(value)


# --- the file -------------------------------------------------------------------------------------


def _kind(line: Line) -> str:
    target = next(key for key in TARGETS if key in line)
    return "label" if target == "labels" else target


def _family(target: str, queries: Sequence[Sample]) -> Family:
    video = next((query for query in queries if len(query.images) > 1), None)
    if target == "expression":
        if video is not None:
            raise AnnotationError(
                f"{video.where}: an expression about {len(video.images)} frames: an "
                "expression needs one image; videos need label, labels or references"
            )
        is_single = all(len(query.counted) == 1 for query in queries)
        return Family.REFEXP if is_single else Family.REFEXP_ALL
    if target == "references":
        return Family.INSDET if video is None else Family.INSDET_VIDEO
    return Family.OBJDET if video is None else Family.OBJDET_VIDEO
