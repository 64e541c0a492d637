"""Judge a deployment's convention by its answers about the probe's scenes.

Each scene has one object, and image sizes tell conventions apart: 40 answers say more than a run.
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
from ..boxes.representation import KEYS, NO_RECTANGLE, OUTPUTS, STRUCTURES, default_key
from ..core.loose_json import objects_in
from ..core.replies import Reply
from .conventions import Bend, Convention, Floats
from .diagnosis import ALIKE, Demands, Diagnosis, Verdict, diagnose
from .evidence import Evidence, Query, evidence_of
from .reading import bend, iou, placed, said

FEWEST = 20  # boxes that a finding needs
# Rivals are excluded at odds of 150 to 1. Models hardly have habits on one large shape: boxes drawn
# to the image's middle are a fault here.
DEMANDS = Demands(boxes=FEWEST, excludes=5.0, shift=0.01)
DRIFTS = 12.0  # nats for a scale or an offset, however small, to be a finding


class Outcome(Enum):
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
        return self in (Outcome.OTHER, Outcome.MIXED, Outcome.DRIFT, Outcome.UNLISTED)

    @property
    def is_clear(self) -> bool:
        """Tell whether one convention is named, and fits."""
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
    fitted: Convention | None = None  # ``named`` if clear, else the one that fits best when bent
    fit: Bend | None = None  # scale and offset in ``fitted``


def examine(queries: Sequence[Query], declared: Convention | None, asked: Convention) -> Finding:
    """Name the convention of a deployment; ``asked`` is the order asked for in the usual space."""
    evidence = evidence_of(queries)
    against = declared or asked
    diagnosis = diagnose(evidence, against, DEMANDS)
    if declared is None and diagnosis.found is not None:
        # The best convention is then compared with its rivals as if it were declared.
        against = diagnosis.found.best
        diagnosis = diagnose(evidence, against, DEMANDS)
    outcome, found = _OF_VERDICTS.get(diagnosis.verdict, Outcome.NOTHING), diagnosis.found
    if found is None or outcome is Outcome.NOTHING:
        return Finding(outcome, declared, None, diagnosis)
    # Of conventions that cannot be told apart we name the declared one.
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


# --- by image size --------------------------------------------------------------------------------


class OfSize(NamedTuple):
    """The answers about images of one size; NaN without boxes."""

    width: int
    height: int
    boxes: int
    said: Floats  # (2,) medians of number / true pixel along x and y
    declared: Floats | None  # the same for the truth, said in the declared convention
    named: Floats | None  # the same in the named one
    iou: float  # median, read as named, else as declared


def by_size(queries: Sequence[Query], finding: Finding, asked: Convention) -> list[OfSize]:
    """Group answers by image size, in order of first appearance."""
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
    """Return (2,) medians of number / true pixel, with numbers in the order of a convention."""
    if not numbers.size:
        return np.full(2, np.nan)
    ratio = (convention.order.corners @ numbers / pixels).reshape(2, 2, -1)
    return np.asarray(np.median(ratio, axis=(0, 2)))


# --- replies in another form ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OtherForm:
    """The form of ``count`` replies: another known format, or an unknown key."""

    count: int
    question: Variant | None = None
    key: str = ""


def other_form(question: Variant, replies: Sequence[Reply]) -> OtherForm | None:
    """Find a form that more replies have than the requested one; None where there is none."""
    said = [reply.answer for reply in replies if not reply.failed]
    # Four numbers in brackets are a text reply, even inside an object.
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
