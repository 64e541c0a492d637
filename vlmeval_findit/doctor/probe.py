"""Judge a deployment's convention by its answers about the probe's scenes.

Each has one object, in sizes that tell conventions apart: forty answers say more than a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from ..benchmarks.findit.variant import Variant, format_problem
from ..boxes.reading import reader
from ..boxes.reply_format import KEYS, OUTPUTS, STRUCTURES, default_key
from ..boxes.representation import NO_RECTANGLE
from ..core.loose_json import objects_in
from ..core.replies import Reply
from .bend import bend
from .conventions import Convention
from .diagnosis import ALIKE, Demands, Diagnosis, Verdict, diagnose
from .evidence import Evidence, Query, evidence_of
from .frames import Bend, Floats
from .reading import iou, placed, said

FEWEST = 20  # boxes that a finding needs
# A rival is excluded at 150 to 1; and on one large shape a model has hardly a habit: what draws
# its boxes to the middle of the picture is a fault here.
DEMANDS = Demands(boxes=FEWEST, excludes=5.0, shift=0.01)
DRIFTS = 12.0  # nats for a scale or an offset that make it a finding, however small it is


class Outcome(Enum):
    """What is said of a deployment."""

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
        """Whether boxes are not where the declared convention has them."""
        return self in (Outcome.OTHER, Outcome.MIXED, Outcome.DRIFT, Outcome.UNLISTED)

    @property
    def is_clear(self) -> bool:
        """Whether one convention is named, and fits."""
        return self in (Outcome.CONFIRMED, Outcome.NAMED, Outcome.OTHER)


_OF_VERDICTS = {
    Verdict.FITS: Outcome.CONFIRMED,
    Verdict.OTHER: Outcome.OTHER,
    Verdict.MIXED: Outcome.MIXED,
    Verdict.UNLISTED: Outcome.UNLISTED,
    Verdict.UNDECIDED: Outcome.UNDECIDED,
}


@dataclass(frozen=True)
class Finding:
    """What is known of a deployment."""

    outcome: Outcome
    declared: Convention | None  # None: nothing was
    named: Convention | None  # None: no convention fits
    diagnosis: Diagnosis
    # Scale and offset in a convention: the one that is named, where it explains the answers.
    fitted: Convention | None = None
    fit: Bend | None = None


def examine(queries: Sequence[Query], declared: Convention | None, asked: Convention) -> Finding:
    """Name the convention of a deployment; ``asked`` is the order asked for in the usual space."""
    evidence = evidence_of(queries)
    against = declared or asked
    diagnosis = diagnose(evidence, against, DEMANDS)
    if declared is None and diagnosis.found is not None:
        # What nobody declared is first named, then held against its rivals like anything else.
        against = diagnosis.found.best
        diagnosis = diagnose(evidence, against, DEMANDS)
    outcome, found = _OF_VERDICTS.get(diagnosis.verdict, Outcome.NOTHING), diagnosis.found
    if found is None or outcome is Outcome.NOTHING:
        return Finding(outcome, declared, None, diagnosis)
    # Of those that cannot be told apart it is the declared one.
    named = against if found.distance < ALIKE else found.best
    fitted, fit = found.unlisted.bent, found.unlisted.bend
    if outcome in (Outcome.CONFIRMED, Outcome.UNDECIDED):
        if found.unlisted.gain >= DRIFTS and named is against:
            outcome = Outcome.DRIFT
        elif outcome is Outcome.CONFIRMED and declared is None:
            outcome = Outcome.NAMED
    if outcome.is_clear:
        fitted, fit = named, bend(evidence, named, shift=DEMANDS.shift)
    return Finding(outcome, declared, named, diagnosis, fitted, fit)


# --- by size of the picture -----------------------------------------------------------------------


class OfSize(NamedTuple):
    """The answers about pictures of one size; NaN and None where there is nothing."""

    width: int
    height: int
    boxes: int
    said: Floats  # (2,) medians of number / true pixel along x and y
    declared: Floats | None  # the same, had the truth been said in this convention
    named: Floats | None
    iou: float  # the median, read as named, or as declared where nothing is


def by_size(queries: Sequence[Query], finding: Finding, asked: Convention) -> list[OfSize]:
    """What was said of pictures of every size, in the order of their first."""
    sizes: dict[tuple[int, int], list[Query]] = {}
    for query in queries:
        sizes.setdefault((query.width, query.height), []).append(query)
    return [_of_size(evidence_of(some), finding, asked) for some in sizes.values()]


def _of_size(evidence: Evidence, finding: Finding, asked: Convention) -> OfSize:
    read_as = finding.named or finding.declared or asked
    pixels = evidence.truths * np.tile(evidence.sizes[:, :1], (2, 1))
    boxes, truths = placed(evidence, read_as).corners, evidence.truths
    ious = iou(boxes[:, evidence.box], truths[:, evidence.truth])

    def would_say(one: Convention | None) -> Floats | None:
        if one is None:
            return None
        frame = evidence.frame(one.space.frame).of(evidence.truth_query)
        return _ratio(one, said(truths, frame, one.order.numbers), pixels)

    return OfSize(
        width=int(evidence.sizes[0, 0]),
        height=int(evidence.sizes[1, 0]),
        boxes=evidence.boxes,
        said=_ratio(read_as, evidence.numbers[:, evidence.box], pixels[:, evidence.truth]),
        declared=would_say(finding.declared),
        named=would_say(finding.named),
        iou=float(np.median(ious)) if ious.size else float("nan"),
    )


def _ratio(convention: Convention, numbers: Floats, pixels: Floats) -> Floats:
    """(2,) medians of number / true pixel, numbers ordered as a convention has them."""
    if not numbers.size:
        return np.full(2, np.nan)
    ratio = (convention.order.corners @ numbers / pixels).reshape(2, 2, -1)
    return np.asarray(np.median(ratio, axis=(0, 2)))


# --- replies of another form ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OtherForm:
    """The form of ``count`` replies: a format that could have been asked for, or an unknown key."""

    count: int
    question: Variant | None = None
    key: str = ""


def other_form(question: Variant, replies: Sequence[Reply]) -> OtherForm | None:
    """The form of more replies than have the one that was asked for; None where there is none."""
    said = [reply.answer for reply in replies if not reply.failed]
    # Any four numbers in brackets are a text reply, those of an object too.
    plain = [text for text in said if not objects_in(text)]
    found = [
        OtherForm(_readable(one, said if one.output == "json" else plain), one)
        for one in _formats(question)
    ]
    keys = Counter(key for text in said for key in dict.fromkeys(_keys_of_boxes(text)))
    found += [OtherForm(count, key=key) for key, count in keys.items() if key not in KEYS]
    best = max(found, key=lambda one: one.count, default=None)
    return best if best is not None and best.count > _readable(question, said) else None


def _formats(question: Variant) -> Iterator[Variant]:
    for output in OUTPUTS:
        for key in KEYS if output == "json" else [default_key(question.representation)]:
            for structure in STRUCTURES if output == "json" else STRUCTURES[:1]:
                made = replace(question, output=output, key=key, structure=structure, decoding=None)
                if format_problem(made) is None:
                    yield made


def _readable(question: Variant, replies: Sequence[str]) -> int:
    readings = map(reader(question.reply), replies)
    return sum(
        one.reason is None and any(tuple(box) != NO_RECTANGLE for box in one.boxes)
        for one in readings
    )


def _keys_of_boxes(text: str) -> Iterator[str]:
    for found in objects_in(text):
        for key, value in found.items():
            if isinstance(value, list) and [*map(type, value)] == [float] * 4:
                yield key
