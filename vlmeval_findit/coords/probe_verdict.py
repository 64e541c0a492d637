"""Judge a deployment's convention by its answers about the probe's scenes.

Each scene has one object, and image sizes tell conventions apart: 40 answers say more than a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from ..benchmarks.findit import FindItVariant, format_problem
from ..boxes import JSON_KEYS, NO_RECTANGLE, OUTPUTS, STRUCTURES, default_key, reader
from ..core import objects_in
from ..protocol import Reply
from .conventions import Convention, Distortion, Floats
from .diagnosis import ALIKE_DISTANCE, CoordinateVerdict, Diagnosis, Thresholds, diagnose
from .likelihood import fit_distortion, iou, placed, to_numbers
from .run_arrays import AnsweredQuery, RunArrays, run_arrays

FEWEST_PROBE_BOXES = 20  # boxes that a verdict needs
# Rivals are excluded at odds of 150 to 1. Models hardly have habits on one large shape: boxes drawn
# to the image's middle are a fault here.
PROBE_THRESHOLDS = Thresholds(boxes=FEWEST_PROBE_BOXES, places=10.0, excludes=5.0, shift=0.01)
DRIFTS = 12.0  # nats for a scale or an offset, however small, to be a result


class ProbeVerdict(Enum):
    """The verdict on a deployment."""

    CONFIRMED = "confirmed"
    NAMED = "named, nothing was declared"
    OTHER = "another convention"
    MIXED = "two conventions"
    DRIFT = "scaled or moved"
    UNLISTED = "no convention known"
    UNDECIDED = "undecided"
    NOTHING = "nothing to go by"

    @property
    def is_fault(self) -> bool:
        return self in (
            ProbeVerdict.OTHER,
            ProbeVerdict.MIXED,
            ProbeVerdict.DRIFT,
            ProbeVerdict.UNLISTED,
        )

    @property
    def is_clear(self) -> bool:
        """Return whether one convention is named, and fits."""
        return self in (ProbeVerdict.CONFIRMED, ProbeVerdict.NAMED, ProbeVerdict.OTHER)


_OF_VERDICTS = {
    CoordinateVerdict.FITS: ProbeVerdict.CONFIRMED,
    CoordinateVerdict.OTHER: ProbeVerdict.OTHER,
    CoordinateVerdict.MIXED: ProbeVerdict.MIXED,
    CoordinateVerdict.UNLISTED: ProbeVerdict.UNLISTED,
    CoordinateVerdict.UNDECIDED: ProbeVerdict.UNDECIDED,
}


@dataclass(frozen=True)
class ProbeResult:
    """What is known of a deployment."""

    verdict: ProbeVerdict
    declared: Convention | None  # None: nothing was
    named: Convention | None  # None: no convention fits
    diagnosis: Diagnosis
    nearest: Convention | None = None  # ``named`` if clear, else what fits best when bent
    distortion: Distortion | None = None  # scale and offset in ``fitted``


def judge_probe(
    queries: Sequence[AnsweredQuery], declared: Convention | None, asked: Convention
) -> ProbeResult:
    """Name the convention of a deployment; ``asked`` is the order asked for in the usual space."""
    arrays = run_arrays(queries)
    against = declared or asked
    diagnosis = diagnose(arrays, against, PROBE_THRESHOLDS)
    if declared is None and diagnosis.fit is not None:
        # The best convention is then compared with its rivals as if it were declared.
        against = diagnosis.fit.best
        diagnosis = diagnose(arrays, against, PROBE_THRESHOLDS)
    verdict = _OF_VERDICTS.get(diagnosis.verdict, ProbeVerdict.NOTHING)
    fit = diagnosis.fit
    if fit is None or verdict is ProbeVerdict.NOTHING:
        return ProbeResult(verdict, declared, None, diagnosis)
    # Of conventions that cannot be told apart we name the declared convention.
    named = against if fit.distance < ALIKE_DISTANCE else fit.best
    nearest = fit.unlisted.convention
    distortion = fit.unlisted.distortion
    if verdict in (ProbeVerdict.CONFIRMED, ProbeVerdict.UNDECIDED):
        if fit.unlisted.gain >= DRIFTS and named is against:
            verdict = ProbeVerdict.DRIFT
        elif verdict is ProbeVerdict.CONFIRMED and declared is None:
            verdict = ProbeVerdict.NAMED
    if verdict.is_clear:
        nearest = named
        distortion = fit_distortion(arrays, named, shift=PROBE_THRESHOLDS.shift)
    return ProbeResult(verdict, declared, named, diagnosis, nearest, distortion)


# --- by image size --------------------------------------------------------------------------------


class SizeGroup(NamedTuple):
    """The answers about images of a size; NaN without boxes."""

    width: int
    height: int
    boxes: int
    ratio: Floats  # (2,) medians of number / true pixel along x and y
    declared: Floats | None  # the same for the truth, written in the declared convention
    named: Floats | None  # the same in the named convention
    iou: float  # median, read as named, else as declared


def group_by_size(
    queries: Sequence[AnsweredQuery], result: ProbeResult, asked: Convention
) -> list[SizeGroup]:
    """Group answers by image size, in order of first appearance."""
    sizes: dict[tuple[int, int], list[AnsweredQuery]] = {}
    for query in queries:
        sizes.setdefault((query.width, query.height), []).append(query)
    return [_of_size(run_arrays(some), result, asked) for some in sizes.values()]


def _of_size(arrays: RunArrays, result: ProbeResult, asked: Convention) -> SizeGroup:
    read_as = result.named or result.declared or asked
    pixels = arrays.truths * np.tile(arrays.sizes[:, :1], (2, 1))
    boxes = placed(arrays, read_as).corners
    truths = arrays.truths
    ious = iou(boxes[:, arrays.pair_box], truths[:, arrays.pair_truth])

    def would_say(convention: Convention | None) -> Floats | None:
        if convention is None:
            return None
        frame = arrays.coordinate_map(convention.space.map_of).of(arrays.truth_query)
        return _ratio(convention, to_numbers(truths, frame, convention.order.numbers), pixels)

    return SizeGroup(
        width=int(arrays.sizes[0, 0]),
        height=int(arrays.sizes[1, 0]),
        boxes=arrays.boxes,
        ratio=_ratio(read_as, arrays.numbers[:, arrays.pair_box], pixels[:, arrays.pair_truth]),
        declared=would_say(result.declared),
        named=would_say(result.named),
        iou=float(np.median(ious)) if ious.size else float("nan"),
    )


def _ratio(convention: Convention, numbers: Floats, pixels: Floats) -> Floats:
    """Return (2,) medians of number / true pixel, with numbers in the order of a convention."""
    if not numbers.size:
        return np.full(2, np.nan)
    ratio = (convention.order.corners @ numbers / pixels).reshape(2, 2, -1)
    return np.asarray(np.median(ratio, axis=(0, 2)))


# --- replies in another format --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OtherFormat:
    """The format of ``count`` replies, which is not the requested one."""

    count: int
    variant: FindItVariant


def find_other_format(variant: FindItVariant, replies: Sequence[Reply]) -> OtherFormat | None:
    """Find a format that more replies have than the requested one; None without it."""
    answers = [reply.answer for reply in replies if not reply.failed]
    # Four numbers in brackets are a text reply, even inside an object.
    plain = [text for text in answers if not objects_in(text)]
    formats = [
        OtherFormat(_readable(each, answers if each.output == "json" else plain), each)
        for each in _formats(variant)
    ]
    best = max(formats, key=lambda each: each.count, default=None)
    return best if best is not None and best.count > _readable(variant, answers) else None


def _formats(variant: FindItVariant) -> Iterator[FindItVariant]:
    # Eight numbers are never four in another order.
    for representation in dict.fromkeys((variant.representation, "all")):
        for output, key, structure in _syntaxes(representation):
            asked = replace(
                variant,
                representation=representation,
                output=output,
                key=key,
                structure=structure,
                decoding=None,
            )
            if format_problem(asked) is None:
                yield asked


def _syntaxes(representation: str) -> Iterator[tuple[str, str, str]]:
    """Yield output, key and structure of the formats of a representation."""
    for output in OUTPUTS:
        for key in JSON_KEYS if output == "json" else [default_key(representation)]:
            for structure in STRUCTURES if output == "json" else STRUCTURES[:1]:
                yield output, key, structure


def _readable(variant: FindItVariant, replies: Sequence[str]) -> int:
    readings = map(reader(variant.reply), replies)
    return sum(
        each.reason is None and any(tuple(box) != NO_RECTANGLE for box in each.boxes)
        for each in readings
    )
