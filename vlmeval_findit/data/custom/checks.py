"""Refuse what cannot be used of a custom dataset, before anything of it is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from msgspec.structs import replace

from ...benchmarks.findit import (
    BENCHMARK_DATASETS,
    OBJECT_COUNT_SLICES,
    PREFIX,
    REFERENCE_SLICES,
    SIZE_SLICES,
    Family,
    custom_rows,
)
from ...boxes import (
    JSON_KEYS,
    OUTPUTS,
    REPRESENTATIONS,
    STRUCTURES,
    Corners,
    leaves_image,
    plain_label,
)
from ...core import is_one_line
from ...protocol import LABEL_KEY, slice_problem
from ...storage import Size
from ..annotated_samples import (
    IGNORED,
    REGION,
    AnnotatedBox,
    AnnotationError,
    BoxlessObject,
    Sample,
    Samples,
)
from ..ledger import Ledger
from .exif_pixels import refusal
from .number_readings import DistinctBoxes, distinct_boxes

# (width, height) of every image, in stored pixels
Sizes = Mapping[str, Size]

# The largest number of frames in a name
_MOST_FRAMES = 9999

# Kinds of slices that every score has
_BUILT_IN = (SIZE_SLICES, OBJECT_COUNT_SLICES, LABEL_KEY, REFERENCE_SLICES)


def check_samples(samples: Samples) -> None:
    """Raise an AnnotationError for the first query that does not suit its family, whose words
    cannot be asked, or whose labels are the same to the metric.
    """
    if not samples.queries and not samples.boxless:
        raise AnnotationError(f"{samples.source}: no queries")
    family = samples.family
    for query in samples.queries:
        why = _shape_problem(family, query) or _text_problem(query) or _tag_problem(query)
        if why:
            raise AnnotationError(f"{query.where}: {why}")
    _check_frames(samples)
    by_caption = {bool(query.caption): query.where for query in reversed(samples.queries)}
    if len(by_caption) > 1:
        raise AnnotationError(
            f"{by_caption[False]}: no caption, but {by_caption[True]} has one; caption all "
            "queries or none"
        )
    _check_labels(samples)


# --- the shape of a query -------------------------------------------------------------------------


def _shape_problem(family: Family, query: Sample) -> str | None:
    if not isinstance(query.label, str) and len(set(query.label)) != len(query.label):
        return "duplicate label"
    if family is Family.REFEXP and len(query.counted) != 1:
        return f"{len(query.counted)} boxes, but {family.value} is about exactly one object"
    if family.has_references is not bool(query.support):
        return "no reference images" if family.has_references else "has reference images"
    if len(query.images) > 1 and not family.is_video:
        return f"{len(query.images)} images, but {family.value} shows one"
    return None


def _check_frames(samples: Samples) -> None:
    """Require one number of frames, or at least as many as queries are thinned to."""
    if not samples.queries:
        return
    by_length = sorted(samples.queries, key=lambda query: len(query.images))
    fewest = by_length[0]
    most = by_length[-1]
    least = len(fewest.images)
    why = ""
    if samples.frames is None and len(most.images) != least:
        why = (
            f", but {most.where} has {len(most.images)}; every query needs as many: say "
            f"--frames {least} (or fewer) to thin longer ones evenly"
        )
    elif samples.frames is not None and samples.frames > least:
        why = f", which is less than {samples.frames}"
    elif (samples.frames or least) > _MOST_FRAMES:
        why = f" are more than {_MOST_FRAMES}"
    if why:
        raise AnnotationError(f"{fewest.where}: {least} frames{why}")


# --- words ----------------------------------------------------------------------------------------


def _text_problem(query: Sample) -> str | None:
    for label in query.labels:
        if not label.strip():
            return f"label {label!r} is empty"
    for text in (*query.labels, query.caption):
        if not _is_one_line(text):
            return f"{text!r} is not plain text on one line"
    return None


# Most labels have many queries.
_is_one_line = lru_cache(10_000)(is_one_line)


def _tag_problem(query: Sample) -> str | None:
    for kind, value in query.tags.items():
        why = slice_problem(kind, value)
        if kind in _BUILT_IN:
            why = f"{kind!r} is a slice of every score already; rename it"
        if why is not None:
            return f"tags: {why}"
    return None


def _check_labels(samples: Samples) -> None:
    """Require labels that can be listed with commas and that the metric tells apart."""
    for query in samples.queries:
        if not isinstance(query.label, str):
            why = multilabel_problem(query.label)
            if why:
                raise AnnotationError(f"{query.where}: {why}")


# A set has few classes, which are asked for again and again.
_plain_class = lru_cache(10_000)(plain_label)


def multilabel_problem(labels: Sequence[str]) -> str | None:
    """Say why labels cannot be asked for together; None if they can.

    >>> multilabel_problem(["bowl, ceramic", "cup"])
    "the label 'bowl, ceramic' has a comma, which separates labels in prompts"
    """
    seen: dict[str, str] = {}
    for label in labels:
        plain = _plain_class(label)
        other = seen.setdefault(plain, label)
        if "," in label:
            return f"the label {label!r} has a comma, which separates labels in prompts"
        if not plain:
            return f"the label {label!r} is only punctuation, which the metric leaves out"
        if other != label:
            return (
                f"the labels {other!r} and {label!r} are the same to the metric: letter case and "
                "punctuation make no difference"
            )
    return None


# --- boxes, frames --------------------------------------------------------------------------------


def check_frame_sizes(queries: Sequence[Sample], sizes: Sizes) -> None:
    """Raise an AnnotationError where the frames of a query have several sizes."""
    for query in queries:
        first = query.images[0]
        for other in query.images[1:]:
            if sizes[other] != sizes[first]:
                here, there = (f"{w}x{h}" for w, h in (sizes[first], sizes[other]))
                raise AnnotationError(
                    f"{query.where}: {first} is {here}, but {other} is {there}; the frames of a "
                    "query have one size"
                )


def usable_boxes(
    queries: Sequence[Sample],
    sizes: Sizes,
    leave_out: bool,
    ledger: Ledger,
    *,
    clip: bool = False,
    boxless: Sequence[BoxlessObject] = (),
    distinct: DistinctBoxes | None = None,
) -> tuple[Sample, ...]:
    """Return queries whose boxes have an area, lie in their image, and have suitable masks.

    With ``clip`` boxes that leave their image are cut off, with ``leave_out`` other boxes and
    objects without one are left out.  Such an object is still there: where it may be, no answer of
    its query is an error.  Queries that such objects were all of are left out.  ``distinct`` are
    the boxes, if they are known.

    Raises:
        AnnotationError: there are other boxes or objects, and they are not left out.
    """
    if clip:
        clipped: set[str] = set()
        queries = [_clip(query, sizes, clipped) for query in queries]
        for place in sorted(clipped):
            what = "boxes that were cut off at the border: --clip-boxes"
            ledger.note(what, place, unlike_file=True)
        distinct = None
    distinct = distinct or distinct_boxes(queries)
    reasons = _reasons(distinct, sizes)
    reasons |= {each.where: each.why for each in boxless}
    if not reasons:
        return tuple(queries)
    problems = [f"{place}: {why}" for place, why in reasons.items()]
    if not leave_out:
        count = len({box.where for box in distinct.boxes} | reasons.keys())
        flags = [] if len(reasons) == count else ["--leave-out-bad-boxes"]
        if not clip and any(_can_be_clipped(query, sizes) for query in queries):
            flags.append("--clip-boxes, which cuts off what is outside")
        raise refusal(problems, count, "boxes", ", or ".join(flags))
    for why in problems:
        what = "boxes that cannot be used: --leave-out-bad-boxes"
        ledger.leave_out(what, why, unlike_file=True)
    usable = []
    for query in queries:
        kept = _without(query, reasons, sizes)
        places = [
            each for each in boxless if each.image in kept.images and each.label in kept.labels
        ]
        kept = replace(kept, boxes=(*kept.boxes, *(_anywhere(each, sizes) for each in places)))
        if query.counted and not kept.counted:
            ledger.leave_out("queries all of whose boxes cannot be used", query.where)
        else:
            usable.append(kept)
    asked = {
        (image, label) for query in queries for image in query.images for label in query.labels
    }
    never = {(each.image, each.label): each.where for each in boxless}
    for key, where in never.items():
        if key not in asked:
            ledger.leave_out("queries all of whose boxes cannot be used", where)
    return tuple(usable)


def _reasons(distinct: DistinctBoxes, sizes: Sizes) -> dict[str, str]:
    """Return why boxes cannot be used, by place."""
    boxes = distinct.boxes
    images = distinct.images
    corners = distinct.corners.T
    of_images = distinct.sizes(sizes).T
    has_mask = np.array([box.mask is not None for box in boxes], bool)
    may_be_bad = ~_has_area(corners) | leaves_image(corners, of_images) | has_mask
    reasons = {}
    for at in np.flatnonzero(may_be_bad).tolist():
        why = _box_problem(boxes[at], images[at], sizes)
        if why:
            reasons[boxes[at].where] = why
    return reasons


def _without(query: Sample, reasons: Collection[str], sizes: Sizes) -> Sample:
    """Return a query in which answers that find an object with a bad box are no errors."""
    boxes = [box for box in query.boxes if box.where not in reasons]
    usable = {box.label for box in boxes if not box.ignored}
    bad = {box.label for box in query.counted} - usable
    for box in query.boxes:
        if box.where in reasons and not box.ignored:
            boxes += _ignored(box, sizes[query.images[box.frame]])
    if isinstance(query.label, str) or not query.counted:
        return replace(query, boxes=tuple(boxes))
    # A query for several labels does not ask for one that is there and has no usable box.
    label = tuple(name for name in query.label if name not in bad)
    return replace(query, label=label, boxes=tuple(boxes))


def _ignored(box: AnnotatedBox, size: Size) -> list[AnnotatedBox]:
    """Return the ignored part of a box that is in its image; all of the image without an area."""
    if not _has_area(box.corners):
        whole = (0.0, 0.0, float(size[0]), float(size[1]))
        return [replace(box, corners=whole, ignored=REGION, mask=None)]
    inside = _in_image(box.corners, size)
    return [] if inside is None else [replace(box, corners=inside, ignored=IGNORED, mask=None)]


def _anywhere(thing: BoxlessObject, sizes: Sizes) -> AnnotatedBox:
    """Return the whole image as the region where an object without a box may be."""
    width, height = sizes[thing.image]
    corners = (0.0, 0.0, float(width), float(height))
    return AnnotatedBox(corners, thing.where, thing.label, ignored=REGION)


def _in_image(box: Corners, size: Size) -> Corners | None:
    """Return the part of a box that is in its image; None if there is none."""
    x1, y1, x2, y2 = box
    inside = (max(x1, 0.0), max(y1, 0.0), min(x2, float(size[0])), min(y2, float(size[1])))
    return inside if _has_area(inside) else None


def _can_be_clipped(query: Sample, sizes: Sizes) -> bool:
    clipped: set[str] = set()
    _clip(query, sizes, clipped)
    return bool(clipped)


def _clip(query: Sample, sizes: Sizes, clipped: set[str]) -> Sample:
    """Cut off what of boxes is outside of their image by more than tools round; add their places.

    Two queries may share a box.
    """
    boxes = []
    for box in query.boxes:
        size = sizes[query.images[box.frame]]
        inside = _in_image(box.corners, size)
        if leaves_image(box.corners, size) and _has_area(box.corners) and inside is not None:
            clipped.add(box.where)
            boxes.append(replace(box, corners=inside))
        else:
            boxes.append(box)
    return replace(query, boxes=tuple(boxes))


# Of one box, or of many whose x1, y1, x2, y2, widths and heights are arrays


def _has_area(box: Any) -> Any:
    x1, y1, x2, y2 = box
    return (x2 > x1) & (y2 > y1)


def _why_without_area(corners: Sequence[float]) -> str:
    """Say which side of a box lies before the other; "" where they are on one line."""
    x1, y1, x2, y2 = corners
    if x2 < x1:
        return f": x2, {x2:g}, lies left of x1, {x1:g}"
    if y2 < y1:
        return f": y2, {y2:g}, lies above y1, {y1:g}"
    return ""


def _box_problem(box: AnnotatedBox, image: str, sizes: Sizes) -> str | None:
    width, height = sizes[image]
    if not _has_area(box.corners):
        return f"the box {box.corners} has no area{_why_without_area(box.corners)}"
    if leaves_image(box.corners, (width, height)):
        return f"the box {box.corners} leaves {image}, which is {width}x{height}"
    if box.mask is None:
        return None
    if (box.mask.width, box.mask.height) != (width, height):
        mask_size = f"{box.mask.width}x{box.mask.height}"
        return f"the mask is {mask_size}, but {image} {width}x{height}"
    try:
        extent = box.mask.extent
    except ValueError as error:
        return str(error)
    if extent is not None and not _agree(box.corners, extent):
        return f"its mask fills {extent}, which contradicts the box {box.corners}"
    return None


def _agree(box: Corners, mask: Corners) -> bool:
    """Tell whether a mask lies in its box, but for a tenth of it or two pixels, and fills half."""
    for low, high in ((0, 2), (1, 3)):
        side = box[high] - box[low]
        margin = max(2.0, side / 10)
        if mask[low] < box[low] - margin or mask[high] > box[high] + margin:
            return False
        if mask[high] - mask[low] < side / 2 - margin:
            return False
    return True


# --- names ----------------------------------------------------------------------------------------


def check_name(name: str, replace: bool) -> None:
    """Raise an AnnotationError for a name that would make the names of variants ambiguous."""
    why = _name_problem(name, replace)
    if why:
        raise AnnotationError(f"name {name!r}: {why}")


def _name_problem(name: str, replace: bool) -> str | None:
    if not re.fullmatch(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*", name):
        usable_words = [re.sub("[^A-Za-z0-9]+", "-", word).strip("-") for word in name.split("_")]
        usable = "_".join(filter(None, usable_words))
        near = f", as --name {usable}" if re.search("[A-Za-z]", usable) else ""
        return f"only letters, digits, '-', and single '_' between them{near}"
    if not re.search("[A-Za-z]", name):
        return f"at least one letter, as --name my-{name}"
    # Words that have a meaning in a variant's name; f8 is a number of frames, cx- an experiment.
    words = set(chain.from_iterable(key.split("_") for key in (*JSON_KEYS, *STRUCTURES)))
    words |= {*REPRESENTATIONS, *OUTPUTS, "multilabel", "caption", PREFIX.rstrip("_").lower()}
    for part in name.lower().split("_"):
        if _is_of_format(part, words):
            kept = [each for each in name.split("_") if not _is_of_format(each, words)]
            near = f": type --name {'_'.join(kept)}" if kept else ""
            what = "the beginning" if part == PREFIX.rstrip("_").lower() else "a format"
            return f"the part {part!r} means {what} in FindIt_<name>_<format>{near}"
    # Tables are files, and some file systems do not tell letter cases apart.
    shipped = {row.name.lower(): row.name for row in BENCHMARK_DATASETS.values()}
    shipped |= {
        row.subset.file.lower(): row.name for row in BENCHMARK_DATASETS.values() if row.subset
    }
    if name.lower() in shipped:
        return f"taken by the benchmark's dataset {shipped[name.lower()]}"
    for known in custom_rows():
        if known.lower() == name.lower() and not (replace and known == name):
            return f"{known} was imported before. Type --replace to replace it, or another --name"
    return None


def _is_of_format(part: str, words: Collection[str]) -> bool:
    """Return whether a part of a name means something in the names of variants."""
    return part.lower() in words or re.fullmatch(r"f\d+|cx-.*", part.lower()) is not None
