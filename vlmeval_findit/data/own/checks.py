"""What every dataset of one's own is held against before anything of it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...benchmarks.findit import PREFIX
from ...benchmarks.findit.anatomy import OBJECTS, SIZE
from ...benchmarks.findit.datasets import BENCHMARK, Family, own_datasets
from ...benchmarks.findit.marked_pictures import REFERENCE
from ...boxes.matching import plain_label
from ...boxes.records import Ignored, Mask
from ...boxes.representation import KEYS, OUTPUTS, REPRESENTATIONS, STRUCTURES, Corners
from ...core.anatomy import LABEL
from ...core.image_files import Size
from ...core.metric import slice_problem
from ...core.spelling import is_one_line
from .annotations import AnnotationError
from .asked import AskedQuery, AskedSet
from .pictures import refuse

Sizes = Mapping[str, Size]
"""(width, height) of every image, in stored pixels."""


def check_asked(asked: AskedSet) -> None:
    """Raise an AnnotationError for the first query that is not of its family, or does not say what
    to find in words that can be asked and told apart as the metric does.
    """
    if not asked.queries:
        raise AnnotationError(f"{asked.source}: no queries")
    for query in asked.queries:
        why = _no_query_of(asked.family, query) or _text_problem(query) or _tag_problem(query)
        if why:
            raise AnnotationError(f"{query.where}: {why}")
    _check_frames(asked)
    _check_captions(asked)
    if any(not isinstance(query.label, str) for query in asked.queries):
        _check_labels(asked)


# --- the shape of a query -------------------------------------------------------------------------


def _no_query_of(family: Family, query: AskedQuery) -> str | None:
    truth = query.truth
    several = not isinstance(query.label, str)
    if len(truth.frames) != len(truth.boxes) or [*truth.frames] != sorted(truth.frames):
        return "not one frame for every box, in the order of frames"
    if not all(0 <= frame < len(query.images) for frame in truth.frames):
        return f"a box is in a frame that is none of the {len(query.images)}"
    if len(truth.labels) != (len(truth.boxes) if several else 0):
        return "every box has a label where there are several to find, else none has"
    if not all(0 <= one.frame < len(query.images) for one in truth.ignored):
        return f"an ignored box is in a frame that is none of the {len(query.images)}"
    for label in (*truth.labels, *(one.label for one in truth.ignored if several)):
        if label not in query.labels:
            return f"a box is labelled {label!r}, which is none of those to find"
    if several and family not in (Family.OBJDET, Family.OBJDET_VIDEO):
        return f"{family.value} finds one thing at a time, not several labels"
    if not query.labels or len(set(query.labels)) != len(query.labels):
        return "no labels to find" if not query.labels else "a label stands twice"
    if family.has_references is not bool(query.support):
        return "no reference pictures" if family.has_references else "has reference pictures"
    if family is Family.REFEXP and len(truth.boxes) != 1:
        return f"{len(truth.boxes)} boxes, but {family.value} finds exactly one object"
    if not query.images or (len(query.images) > 1 and not family.is_video):
        return f"{len(query.images)} images, but {family.value} shows one"
    return None


def _check_frames(asked: AskedSet) -> None:
    """All queries have one number of frames, or at least as many as they are thinned to."""
    fewest = min(asked.queries, key=lambda query: len(query.images))
    most = max(asked.queries, key=lambda query: len(query.images))
    least = len(fewest.images)
    if asked.frames is None and len(most.images) != least:
        raise AnnotationError(
            f"{fewest.where}: {least} frames, but {most.where} has {len(most.images)}; every query "
            f"of a dataset shows as many: say --frames {least} (or fewer), and longer ones are "
            "thinned evenly"
        )
    if asked.frames is not None and asked.frames > least:
        raise AnnotationError(f"{fewest.where}: {least} frames, which is less than {asked.frames}")
    if least > _MOST_FRAMES and (asked.frames or least) > _MOST_FRAMES:
        raise AnnotationError(f"{fewest.where}: {least} frames are more than {_MOST_FRAMES}")


_MOST_FRAMES = 9999
"""What names have room for."""


# --- words ----------------------------------------------------------------------------------------


def _text_problem(query: AskedQuery) -> str | None:
    for what, text in (*(("label", label) for label in query.labels), ("caption", query.caption)):
        if what == "label" and not plain_label(text):
            return f"label {text!r} is empty"
        if not is_one_line(text):
            return f"{what} {text!r} is not plain text on one line"
    return None


def _tag_problem(query: AskedQuery) -> str | None:
    for kind, value in query.tags.items():
        why = slice_problem(kind, value)
        if why is None and kind in _TAKEN:
            why = f"{kind!r} is a part of every score by another meaning; rename it"
        if why is not None:
            return f"tags: {why}"
    return None


_TAKEN = (SIZE, OBJECTS, LABEL, REFERENCE)
"""Kinds by which scores are divided already."""


def _check_captions(asked: AskedSet) -> None:
    without = next((query for query in asked.queries if not query.caption), None)
    with_one = next((query for query in asked.queries if query.caption), None)
    if without is not None and with_one is not None:
        raise AnnotationError(
            f"{without.where}: no caption, but {with_one.where} has one; all queries have one, "
            "or none has"
        )


def _check_labels(asked: AskedSet) -> None:
    """Labels that are listed with commas between them must be told apart as the metric does."""
    plain: dict[str, str] = {}
    for query in asked.queries:
        for label in query.labels:
            if "," in label:
                raise AnnotationError(
                    f"{query.where}: label {label!r} has a comma; several labels are asked with "
                    "commas between them"
                )
            other = plain.setdefault(plain_label(label), label)
            if other != label:
                raise AnnotationError(
                    f"{query.where}: labels {other!r} and {label!r} count as the same: letter case "
                    "and punctuation make no difference"
                )


# --- boxes, frames --------------------------------------------------------------------------------

_MARGIN = 1.0
"""Pixels by which rounding, in steps of a pixel, puts a box out of its image."""


def check_placed(queries: Sequence[AskedQuery], sizes: Sizes) -> None:
    """Raise an AnnotationError for the first box without an area or, rounding apart, outside its
    image, and for frames of several sizes.
    """
    boxes: dict[str, str | None] = {}
    for query in queries:
        first, *others = query.images
        for other in others:
            if sizes[other] != sizes[first]:
                (w1, h1), (w2, h2) = sizes[first], sizes[other]
                raise AnnotationError(
                    f"{query.where}: {first} is {w1}x{h1}, but {other} is {w2}x{h2}; the frames "
                    "of a query have one size"
                )
        truth = query.truth
        masks = truth.masks or (None,) * len(truth.boxes)
        said = map(Ignored, truth.boxes, truth.frames)
        counted = (one._replace(mask=mask) for one, mask in zip(said, masks, strict=True))
        for i, (box, frame, _, _, mask) in enumerate((*counted, *truth.ignored)):
            # A box of two queries is one box.
            boxes[query.place(i)] = _box_problem(box, query.images[frame], sizes) or _mask_problem(
                mask, query.images[frame], sizes
            )
    refuse([f"{place}: {why}" for place, why in boxes.items() if why], len(boxes), "boxes")


def _mask_problem(mask: Mask | None, image: str, sizes: Sizes) -> str | None:
    if mask is None:
        return None
    width, height = sizes[image]
    if (mask.width, mask.height) != (width, height):
        return f"the mask is {mask.width}x{mask.height}, but {image} {width}x{height}"
    try:
        mask.covers(0, 0)
    except ValueError as error:
        return str(error)
    return None


def _box_problem(box: Corners, image: str, sizes: Sizes) -> str | None:
    x1, y1, x2, y2 = box
    width, height = sizes[image]
    if x2 <= x1 or y2 <= y1:
        return f"the box {box} has no area"
    if min(x1, y1) < -_MARGIN or x2 > width + _MARGIN or y2 > height + _MARGIN:
        return f"the box {box} leaves {image}, which is {width}x{height}"
    return None


# --- names ----------------------------------------------------------------------------------------


def _grammar() -> dict[str, str]:
    """Every word that may stand between underscores in a variant's name, and what it is there."""
    words = {word: "a part of a JSON key" for key in KEYS for word in key.split("_")}
    words |= {word: "a part of a JSON structure" for s in STRUCTURES for word in s.split("_")}
    words |= dict.fromkeys(REPRESENTATIONS, "a representation")
    words |= dict.fromkeys(OUTPUTS, "an output format")
    words |= {"multilabel": "an axis of the grid", "caption": "an axis of the grid"}
    return words | {PREFIX.rstrip("_").lower(): "what every name begins with"}


def check_name(name: str, replace: bool) -> None:
    """Raise an AnnotationError for a name that would make the names of variants ambiguous."""
    if not re.fullmatch(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*", name) or not re.search("[A-Za-z]", name):
        raise AnnotationError(
            f"name {name!r}: only letters, digits, '-', and single '_' between them"
        )
    grammar = _grammar()
    for part in name.lower().split("_"):
        if part in grammar:
            raise AnnotationError(f"name {name!r}: the part {part!r} is {grammar[part]}")
        if re.fullmatch(r"f\d+", part):
            raise AnnotationError(f"name {name!r}: the part {part!r} is a number of frames")
        if part.startswith("cx-"):
            raise AnnotationError(f"name {name!r}: the part {part!r} is a centre experiment")
    # Letters of both cases: tables are files, and some file systems do not tell them apart.
    taken = {row.name.lower(): row.name for row in BENCHMARK.values()}
    taken |= {
        subset.file.lower(): row.name
        for row in BENCHMARK.values()
        if (subset := row.subset) is not None
    }
    if name.lower() in taken:
        raise AnnotationError(f"name {name!r}: is the benchmark's own {taken[name.lower()]}")
    for own in own_datasets():
        if own.lower() == name.lower() and not (replace and own == name):
            raise AnnotationError(f"name {name!r}: {own} was imported before (--replace)")
