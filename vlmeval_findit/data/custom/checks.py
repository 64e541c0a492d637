"""Refuse what cannot be used of a custom dataset, before anything of it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...benchmarks.findit import PREFIX
from ...benchmarks.findit.error_costs import OBJECTS, SIZE
from ...benchmarks.findit.findit_datasets import BENCHMARK, Family, custom_rows
from ...benchmarks.findit.marked_references import REFERENCE
from ...boxes.box_records import Mask
from ...boxes.matching import plain_label
from ...boxes.representation import KEYS, OUTPUTS, REPRESENTATIONS, STRUCTURES, Corners
from ...core.error_analysis import LABEL
from ...core.formatting import is_one_line
from ...core.image_files import Size
from ...core.metric import slice_problem
from ..annotated_samples import AnnotationError, Sample, Samples
from .stored_pixels import refuse

Sizes = Mapping[str, Size]
"""(width, height) of every image, in stored pixels."""


def check_samples(samples: Samples) -> None:
    """Raise an AnnotationError for the first query that does not suit its family, whose words
    cannot be asked, or whose labels are the same to the metric.
    """
    if not samples.queries:
        raise AnnotationError(f"{samples.source}: no queries")
    for query in samples.queries:
        why = _shape_problem(samples.family, query) or _text_problem(query) or _tag_problem(query)
        if why:
            raise AnnotationError(f"{query.where}: {why}")
    _check_frames(samples)
    _check_captions(samples)
    _check_labels(samples)


# --- the shape of a query -------------------------------------------------------------------------


def _shape_problem(family: Family, query: Sample) -> str | None:
    if len(set(query.labels)) != len(query.labels):
        return "a label stands twice"
    if family is Family.REFEXP and len(query.counted) != 1:
        return f"{len(query.counted)} boxes, but {family.value} is about exactly one object"
    if family.has_references is not bool(query.support):
        return "no reference images" if family.has_references else "has reference images"
    if len(query.images) > 1 and not family.is_video:
        return f"{len(query.images)} images, but {family.value} shows one"
    return None


def _check_frames(samples: Samples) -> None:
    """Require one number of frames, or at least as many as queries are thinned to."""
    fewest = min(samples.queries, key=lambda query: len(query.images))
    most = max(samples.queries, key=lambda query: len(query.images))
    least = len(fewest.images)
    if samples.frames is None and len(most.images) != least:
        raise AnnotationError(
            f"{fewest.where}: {least} frames, but {most.where} has {len(most.images)}; every query "
            f"needs as many: say --frames {least} (or fewer) to thin longer ones evenly"
        )
    if samples.frames is not None and samples.frames > least:
        raise AnnotationError(
            f"{fewest.where}: {least} frames, which is less than {samples.frames}"
        )
    if (samples.frames or least) > _MOST_FRAMES:
        raise AnnotationError(f"{fewest.where}: {least} frames are more than {_MOST_FRAMES}")


_MOST_FRAMES = 9999
"""The largest number of frames in a name."""


# --- words ----------------------------------------------------------------------------------------


def _text_problem(query: Sample) -> str | None:
    for what, text in (*(("label", label) for label in query.labels), ("caption", query.caption)):
        if what == "label" and not plain_label(text):
            return f"label {text!r} is empty"
        if not is_one_line(text):
            return f"{what} {text!r} is not plain text on one line"
    return None


def _tag_problem(query: Sample) -> str | None:
    for kind, value in query.tags.items():
        why = slice_problem(kind, value)
        if why is None and kind in _BUILT_IN:
            why = f"{kind!r} is a slice of every score already; rename it"
        if why is not None:
            return f"tags: {why}"
    return None


_BUILT_IN = (SIZE, OBJECTS, LABEL, REFERENCE)
"""Kinds of slices that every score has."""


def _check_captions(samples: Samples) -> None:
    without = next((query for query in samples.queries if not query.caption), None)
    captioned = next((query for query in samples.queries if query.caption), None)
    if without is not None and captioned is not None:
        raise AnnotationError(
            f"{without.where}: no caption, but {captioned.where} has one; caption all queries or "
            "none"
        )


def _check_labels(samples: Samples) -> None:
    """Require labels that can be listed with commas and that the metric tells apart."""
    plain: dict[str, str] = {}
    for query in samples.queries:
        for label in () if isinstance(query.label, str) else query.label:
            if "," in label:
                raise AnnotationError(
                    f"{query.where}: label {label!r} has a comma, which separates labels in prompts"
                )
            other = plain.setdefault(plain_label(label), label)
            if other != label:
                raise AnnotationError(
                    f"{query.where}: labels {other!r} and {label!r} are the same to the metric: "
                    "letter case and punctuation make no difference"
                )


# --- boxes, frames --------------------------------------------------------------------------------

_MARGIN = 1.0
"""Pixels by which a box may leave its image: some tools round it so."""


def check_boxes(queries: Sequence[Sample], sizes: Sizes) -> None:
    """Raise an AnnotationError for boxes without an area or, rounding apart, outside their image,
    for unsuitable masks, and for frames of several sizes.
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
        for box in query.boxes:
            image = query.images[box.frame]
            # Two queries may share a box.
            boxes[box.where] = _box_problem(box.corners, image, sizes) or _mask_problem(
                box.mask, image, sizes
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


def _words() -> set[str]:
    """Return the words between underscores that have a meaning in a variant's name."""
    words = {word for key in (*KEYS, *STRUCTURES) for word in key.split("_")}
    axes = {"multilabel", "caption", PREFIX.rstrip("_").lower()}
    return {*words, *REPRESENTATIONS, *OUTPUTS, *axes}


def check_name(name: str, replace: bool) -> None:
    """Raise an AnnotationError for a name that would make the names of variants ambiguous."""
    if not re.fullmatch(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*", name) or not re.search("[A-Za-z]", name):
        raise AnnotationError(
            f"name {name!r}: only letters, digits, '-', and single '_' between them"
        )
    for part in name.lower().split("_"):
        # A number of frames, a centre experiment.
        if part in _words() or re.fullmatch(r"f\d+|cx-.*", part):
            raise AnnotationError(
                f"name {name!r}: the part {part!r} means a format in FindIt_<name>_<format>"
            )
    # Tables are files, and some file systems do not tell letter cases apart.
    shipped = {row.name.lower(): row.name for row in BENCHMARK.values()}
    shipped |= {row.subset.file.lower(): row.name for row in BENCHMARK.values() if row.subset}
    if name.lower() in shipped:
        raise AnnotationError(f"name {name!r}: is the benchmark's dataset {shipped[name.lower()]}")
    for known in custom_rows():
        if known.lower() == name.lower() and not (replace and known == name):
            raise AnnotationError(f"name {name!r}: {known} was imported before (--replace)")
