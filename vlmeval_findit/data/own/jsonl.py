"""Queries as JSON, one object a line: what is shown, what is to be found, and where it is.

``image`` or ``images`` (the frames of a video in order); one of ``label``, ``labels``,
``expression`` and ``references``; ``boxes``; if wanted ``caption`` and ``tags``.  A box is
[x1, y1, x2, y2], or an object with it: {"box": [x1, y1, x2, y2], "label": "…", "mask": …}, with the
label where a line has several, and with the mask where there is one: COCO's run lengths, or the
name of a picture, relative to the file.  For ``images`` there is a list of boxes a frame.  A key
that is null is as if it were not there.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...benchmarks.findit.datasets import Family
from ...boxes.records import Truth
from ...boxes.representation import Corners
from ...core.spelling import nearest
from ...marks.region import PackedMask
from .annotations import CORNERS, AnnotationError, Units, json_of, lines_of, numbers, units_of
from .asked import AskedQuery, AskedSet
from .masks import mask_of

SHOWN = ("image", "images")
ASKED = ("label", "labels", "expression", "references")
KEYS = (*SHOWN, *ASKED, "boxes", "caption", "tags")

Line = Mapping[str, Any]
"""The object of a line, without keys that are null."""

YES, NO = "yes", "no"
"""Values of a tag that is a word."""


def read_jsonl(path: Path, units: Units | None = None, frames: int | None = None) -> AskedSet:
    """Read a file of queries, all of one kind: labels, expressions, or references.

    Lines that say the same as one before them are left out.

    Args:
        path: the file.
        units: what the numbers count; must be said where none of them is above 1.
        frames: the number that the frames of videos are thinned to (None: all have one number).

    Raises:
        AnnotationError: naming the line and what is wrong with it.
    """
    queries: list[AskedQuery] = []
    left_out: Counter[str] = Counter()
    asked: dict[object, AskedQuery] = {}
    kinds: dict[str, str] = {}
    words: dict[str, str] = {}
    for line, text in enumerate(lines_of(path), 1):
        if not text.strip():
            continue
        where = f"{path}, line {line}"
        values = _object(text, where)
        query = _query(values, where, path.parent)
        kinds.setdefault(_kind(values), where)
        _one_kind(kinds)
        if isinstance(values.get("tags"), list):
            words |= dict.fromkeys(query.tags, NO)
        question = (query.images, query.label, query.support)
        before = asked.setdefault(question, query)
        if before is query:
            queries.append(query)
        elif replace(before, where=where) == query:
            left_out["lines that say what another says"] += 1
        else:
            raise AnnotationError(
                f"{where}: asks what {before.where} asks, with other boxes, caption or tags; one "
                "line has all boxes of a query"
            )
    if not queries:
        raise AnnotationError(f"{path}: no queries")
    units = units_of(path, (box for query in queries for box in query.truth.boxes), units)
    family = _family(next(iter(kinds)), queries)
    # A word is a tag of every query, which has it or not.
    tagged = (replace(query, tags={**words, **query.tags}) for query in queries)
    return AskedSet(path, family, tuple(tagged), units, left_out, frames)


# --- a line ---------------------------------------------------------------------------------------


def _object(text: str, where: str) -> Line:
    values = json_of(text, where, "a query")
    if not isinstance(values, dict):
        raise AnnotationError(f"{where}: {reprlib.repr(values)} is no object: one query a line")
    for key in values:
        if key not in KEYS:
            raise AnnotationError(f"{where}: no key {key!r}{nearest(key, KEYS)}")
    return {key: value for key, value in values.items() if value is not None}


def _query(line: Line, where: str, folder: Path) -> AskedQuery:
    shown, asks = _one_of(line, SHOWN, where), _one_of(line, ASKED, where)
    images = (_text(line, shown, where),) if shown == "image" else _texts(line, shown, where)
    support = _texts(line, asks, where) if asks == "references" else ()
    label: str | tuple[str, ...]
    if asks == "labels":
        label = _texts(line, asks, where)
    else:
        # The same pictures show the same object.
        label = support[0] if support else _text(line, asks, where)
    return AskedQuery(
        images=images,
        label=label,
        truth=_truth(line, where, label, len(images) if shown == "images" else None, folder),
        where=where,
        support=support,
        caption=_text(line, "caption", where) if "caption" in line else "",
        tags=_tags(line.get("tags", {}), f"{where}, tags"),
    )


def _one_of(line: Line, keys: Sequence[str], where: str) -> str:
    found = [key for key in keys if key in line]
    if len(found) != 1:
        said = " and ".join(found) if found else "none"
        raise AnnotationError(f"{where}: needs one of {', '.join(keys)}; has {said}")
    return found[0]


def _text(line: Line, key: str, where: str) -> str:
    value = line[key]
    if not isinstance(value, str):
        raise AnnotationError(f"{where}, {key}: {reprlib.repr(value)} is not text")
    return value


def _texts(line: Line, key: str, where: str) -> tuple[str, ...]:
    values = line[key]
    if not isinstance(values, list) or not values:
        raise AnnotationError(f"{where}, {key}: {reprlib.repr(values)} is not a list of texts")
    for at, value in enumerate(values):
        if not isinstance(value, str):
            raise AnnotationError(f"{where}, {key}[{at}]: {reprlib.repr(value)} is not text")
    return tuple(values)


# --- boxes ----------------------------------------------------------------------------------------


def _truth(
    line: Line, where: str, label: str | tuple[str, ...], frames: int | None, folder: Path
) -> Truth:
    """The boxes of a line; ``frames`` is how many lists of them there must be (None: just one)."""
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
    found = [
        (frame, *_box(box, f"{place}[{at}]", labels, folder))
        for frame, (place, boxes) in enumerate(lists.items())
        for at, box in enumerate(_list(boxes, place, "a list of boxes"))
    ]
    masks = tuple(mask for _, _, _, mask in found)
    return Truth(
        tuple(corners for _, corners, _, _ in found),
        tuple(frame for frame, _, _, _ in found),
        tuple(label for _, _, label, _ in found) if labels else (),
        masks if any(masks) else (),
    )


def _list(value: Any, where: str, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is not {what}")
    return value


_LABELLED = f'{{"box": {CORNERS}, "label": "…"}}'


def _box(
    value: Any, where: str, labels: Sequence[str] | None, folder: Path
) -> tuple[Corners, str, PackedMask | None]:
    """A box, its label ("" where the line has one for all), and its mask."""
    label, mask = "", None
    if labels is not None or isinstance(value, dict):
        needed = {"box"} if labels is None else {"box", "label"}
        if not isinstance(value, dict) or value.keys() - {"mask"} != needed:
            raise AnnotationError(
                f"{where}: {reprlib.repr(value)} is not "
                + (f"{_LABELLED}, as boxes of several labels are" if labels else CORNERS)
            )
        if labels is not None:
            label = _text(value, "label", where)
            if label not in labels:
                raise AnnotationError(f"{where}, label: no {label!r}{nearest(label, labels)}")
        if value.get("mask") is not None:
            mask = mask_of(value["mask"], folder, f"{where}, mask")
        value, where = value["box"], f"{where}, box"
    return numbers(value, where, CORNERS), label, mask


# --- tags -----------------------------------------------------------------------------------------


def _tags(value: Any, where: str) -> dict[str, str]:
    """The tags of a line; of words only those that it has."""
    if isinstance(value, list):
        return {_word(one, f"{where}[{at}]"): YES for at, one in enumerate(value)}
    if not isinstance(value, dict):
        raise AnnotationError(
            f'{where}: {reprlib.repr(value)} is neither an object {{"kind": "value"}} nor a list '
            "of words"
        )
    return {kind: _value(one, f"{where}, {kind}") for kind, one in value.items() if one is not None}


def _word(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is not a word")
    return value


def _value(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return YES if value else NO
    if not isinstance(value, (str, int)):
        raise AnnotationError(
            f"{where}: {reprlib.repr(value)} is neither text, a whole number, true nor false"
        )
    return str(value)


# --- the file -------------------------------------------------------------------------------------


def _kind(line: Line) -> str:
    asks = next(key for key in ASKED if key in line)
    return "label" if asks == "labels" else asks


def _one_kind(kinds: Mapping[str, str]) -> None:
    if len(kinds) > 1:
        (one, there), (other, here) = kinds.items()
        raise AnnotationError(
            f"{here}: asks by {other!r}, but {there} by {one!r}; one file asks in one way, so make "
            "two files of them"
        )


def _family(asks: str, queries: Sequence[AskedQuery]) -> Family:
    video = next((query for query in queries if len(query.images) > 1), None)
    if asks == "expression":
        if video is not None:
            raise AnnotationError(
                f"{video.where}: an expression about {len(video.images)} frames: FindIt asks "
                "expressions about one image, and labels or references about videos"
            )
        is_one = all(len(query.truth.boxes) == 1 for query in queries)
        return Family.REFEXP if is_one else Family.REFEXP_ALL
    if asks == "references":
        return Family.INSDET if video is None else Family.INSDET_VIDEO
    return Family.OBJDET if video is None else Family.OBJDET_VIDEO
