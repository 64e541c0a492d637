"""A cause in the program that serves the model: positions lost, or a fault that is known of it.

Engines lose positions without any sign but boxes: they are well formed, have the sizes of their
objects, and lie elsewhere. Known faults are facts in ``engine_faults.yaml``, each with its
sources. A version tells what may be wrong; whether it is, the replies tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray

from ..benchmarks.findit import ScoredReply
from ..boxes import iou, match
from ..coords import CoordinateVerdict, NotBoxesError
from ..core import Checked, Config, MisplacedError, Name, Text, row_of, validate
from ..models import MODELS, PROGRAM_NAMES
from .cause_evidence import Evidence, capitalised
from .reproduction_records import Cause, CauseLook


def _version(text: str) -> str:
    if text and not _numbers(text):
        raise ValueError(f"{text!r} should be a version, as 0.5.15 or b6887")
    return text


Floats = NDArray[np.float64]

Version = Annotated[Text, Checked(_version)]


@dataclass(frozen=True, slots=True)
class EngineFault(Config):
    """A fault that a program has in some versions."""

    program: Annotated[Name, row_of(PROGRAM_NAMES, "program")]
    families: tuple[Annotated[Name, row_of(MODELS, "model")], ...]
    lost: Name  # What goes wrong, a sentence without its full stop
    do: Name  # What to do about it, likewise
    sure: Literal["confirmed", "reported"]  # Its cause is known, or not
    sources: tuple[Name, ...]  # Threads, as OWNER/REPOSITORY#NUMBER
    since: Version = ""  # The first version with it; "": not known
    below: Version = ""  # The first version without it; "": not known
    measured: Text = ""  # By how much; "": nobody tells

    def is_in(self, version: str) -> bool | None:
        """Return whether a version has it; None if the version is not known.

        Builds of a version (``0.5.15.post1``, ``0.5.15rc1``) count as that version.

        >>> fault, *_ = engine_faults()
        >>> [fault.is_in(version) for version in ("0.5.14", "0.5.15.post1", "0.5.19", "")]
        [False, True, False, None]
        """
        if not _numbers(version):
            return None
        if self.since and _is_before(version, self.since):
            return False
        return not self.below or _is_before(version, self.below)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version.

    >>> [_numbers(version) for version in ("0.11.1rc6.dev12+g9f", "b6887-d261223d2", "main")]
    [(0, 11, 1), (6887,), ()]
    """
    match = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def _is_before(version: str, other: str) -> bool:
    pairs = zip_longest(_numbers(version), _numbers(other), fillvalue=0)
    for left, right in pairs:
        if left != right:
            return left < right
    return False


@dataclass(frozen=True, slots=True)
class _FaultsFile(Config):
    faults: tuple[EngineFault, ...]


def faults_of(values: Any) -> Sequence[EngineFault]:
    """Return the faults of the file's values, or raise a MisplacedError."""
    file = validate(_FaultsFile, values)
    for at, fault in enumerate(file.faults):
        for key in ("families", "sources"):
            if not getattr(fault, key):
                raise MisplacedError("the list is empty", "faults", at, key)
        for number, source in enumerate(fault.sources):
            if not re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", source):
                why = f"{source!r} should be a thread, as owner/repository#1"
                raise MisplacedError(why, "faults", at, "sources", number)
        if fault.since and fault.below and not _is_before(fault.since, fault.below):
            raise MisplacedError(f"{fault.below} is not after {fault.since}", "faults", at, "below")
    return file.faults


@cache
def engine_faults() -> Sequence[EngineFault]:
    """Return all faults, in the order of the file."""
    text = Path(__file__).with_name("engine_faults.yaml").read_text(encoding="utf-8")
    return faults_of(yaml.safe_load(text))


def known_faults(program: str, version: str, row: str) -> Sequence[EngineFault]:
    """Return the faults that a program may have with a model of a row of the model table.

    Of a version that is not known, these are the faults of all versions.

    >>> [fault.sources[0] for fault in known_faults("vllm", "0.8.1", "Qwen2.5-VL")]
    ['vllm-project/vllm#15197']
    """
    return tuple(
        fault
        for fault in engine_faults()
        if fault.program == program and row in fault.families and fault.is_in(version) is not False
    )


# --- what gives a fault away ----------------------------------------------------------------------

FEWEST_BOXES = 20  # Boxes without which no fault of an engine is claimed

# An engine that loses positions leaves sizes as they are. Boxes lie near their objects, where those
# of a model that takes other objects lie on them or far away: a fifth of these is near by chance.
_SIZES_FIT = 0.6
_PLACES_DO_NOT = 0.6  # Of the mean IoU of sizes; of boxes with a mean IoU of 0.5 it is 0.7
_NEAR = (0.2, 1.0)  # Distance of the middles, in sides of the object (roots of its area)
_MANY_NEAR = 0.4
# Or they lie anywhere, in sizes that no other objects have (0.7, if these are as large by a third)
_SIZES_FIT_WELL = 0.8
_PLACES_HARDLY = 0.4


@dataclass(frozen=True, slots=True)
class BoxPlacement:
    """How boxes lie that mean one object each."""

    boxes: int
    iou: float  # Mean
    iou_of_sizes: float  # Mean, where each box is moved to the middle of its object
    fits: float  # The share of boxes that are hits once they are moved so, 0 to 1
    near: float  # The share of boxes that lie near their object and not on it

    @property
    def is_lost(self) -> bool:
        """Whether boxes have the sizes of their objects, and lie elsewhere."""
        if self.boxes < FEWEST_BOXES or self.iou_of_sizes < _SIZES_FIT:
            return False
        placed = self.iou / self.iou_of_sizes
        if self.near >= _MANY_NEAR and placed < _PLACES_DO_NOT:
            return True
        return self.iou_of_sizes >= _SIZES_FIT_WELL and placed < _PLACES_HARDLY


def box_placement(answers: Floats, truths: Floats) -> BoxPlacement:
    """Compare sizes and places of boxes with those of their objects.

    Args:
        answers: (n, 4) corners x1, y1, x2, y2 in pixels, one box for each object.
        truths: (n, 4) corners of the objects, likewise.

    >>> import numpy as np
    >>> moved = box_placement(np.array([[50.0, 0, 60, 10]]), np.array([[0.0, 0, 10, 10]]))
    >>> moved.iou, moved.iou_of_sizes
    (0.0, 1.0)
    """
    if not len(answers):
        return BoxPlacement(0, 0.0, 0.0, 0.0, 0.0)
    sides = np.abs(answers[:, 2:] - answers[:, :2])
    middles = (truths[:, :2] + truths[:, 2:]) / 2
    moved = np.concatenate([middles - sides / 2, middles + sides / 2], axis=1)
    of_sizes = iou(moved, truths)
    away = np.hypot(*((answers[:, :2] + answers[:, 2:]) / 2 - middles).T)
    distance = away / np.sqrt((truths[:, 2:] - truths[:, :2]).prod(1)).clip(1)
    near = (distance >= _NEAR[0]) & (distance < _NEAR[1])
    return BoxPlacement(
        boxes=len(answers),
        iou=float(iou(answers, truths).mean()),
        iou_of_sizes=float(of_sizes.mean()),
        fits=float((of_sizes >= 0.5).mean()),
        near=float(near.mean()),
    )


ENGINE = "engine"


def check_engine(evidence: Evidence) -> CauseLook:
    """Look whether boxes lie where no object is, and what is known of the program."""
    condition = evidence.condition(ENGINE)
    here = condition.here if condition is not None else ""
    faults = _faults(evidence, here)
    lost = _lost_places(evidence)
    if lost is not None:
        return _positions_lost(evidence, here, faults, lost)
    if _follow_nothing(evidence):
        cause = Cause(
            ENGINE,
            "The boxes are well formed and follow no object in any convention",
            None,
            "See whether pictures are shown: python run_findit.py coords --model NAME; then "
            f"ask with another program than {here or 'the one that answers now'}",
            sure=False,
        )
        return CauseLook(ENGINE, here or "not told which program answers", cause)
    result = here or "not told which program answers"
    if not faults:
        known = "; no fault is known that costs boxes" if here else ""
        return CauseLook(ENGINE, f"{result}{known}")
    fault = faults[0]
    told = f"{result}: {fault.lost} ({fault.sources[0]})"
    has_version = fault.is_in(here) is not None
    if fault.sure != "confirmed" or not has_version:
        return CauseLook(ENGINE, f"{told}; whether it is this is not known")
    cause = Cause(ENGINE, f"A known fault of {told}", None, capitalised(fault.do), sure=False)
    return CauseLook(ENGINE, result, cause)


def _faults(evidence: Evidence, here: str) -> Sequence[EngineFault]:
    """Return the known faults of the program that answers, the surest first."""
    row = evidence.row
    program = next((name for name in PROGRAM_NAMES if here.startswith(name)), "")
    if row is None or not program:
        return ()
    version = here.removeprefix(program).strip()
    faults = known_faults(program, version, row.name)
    return sorted(faults, key=lambda fault: fault.sure != "confirmed")


# --- where boxes lie ------------------------------------------------------------------------------


def _is_compared(scored: ScoredReply) -> bool:
    return len(scored.match.boxes) == 1 and len(scored.query.truth.boxes) == 1


def _lost_places(evidence: Evidence) -> BoxPlacement | None:
    """Return how boxes lie that have the sizes of their objects and lie elsewhere; else None."""
    if evidence.are_points:
        return None
    compared = [scored for scored in evidence.scored if _is_compared(scored)]
    boxes = np.array([scored.match.boxes[0] for scored in compared], float).reshape(-1, 4)
    truths = np.array([scored.query.truth.boxes[0] for scored in compared], float).reshape(-1, 4)
    placed = box_placement(boxes, truths)
    return placed if placed.is_lost and _has_places(evidence) else None


def _has_places(evidence: Evidence) -> bool:
    """Return whether boxes are about places that differ, and not one box again and again."""
    try:
        return evidence.diagnosis.places >= FEWEST_BOXES
    except NotBoxesError:
        return True


def _follow_nothing(evidence: Evidence) -> bool:
    try:
        follow_none = evidence.diagnosis.verdict is CoordinateVerdict.NONE
    except NotBoxesError:
        return False
    return follow_none and _has_places(evidence)


def _positions_lost(
    evidence: Evidence, here: str, faults: Sequence[EngineFault], lost: BoxPlacement
) -> CauseLook:
    value = evidence.value_of(
        [
            replace(each, scored=[_moved(scored) for scored in each.scored])
            for each in evidence.replies
        ]
    )
    result = here or "not told which program answers"
    if not evidence.matters(value):
        return CauseLook(ENGINE, result)
    finding = (
        "Boxes are well formed, have the sizes of their objects, and lie elsewhere: IoU "
        f"{lost.iou:.2f}, {lost.iou_of_sizes:.2f} if moved to them"
    )
    advice = "Ask the same pictures with another program: vllm, or transformers on this machine"
    if faults:
        fault = faults[0]
        finding = f"{finding}. {here}: {fault.lost} ({fault.sources[0]})"
        advice = capitalised(fault.do)
    is_known = any(fault.is_in(here) for fault in faults)
    cause = evidence.cause(ENGINE, finding, value, advice, may_be=not is_known)
    return CauseLook(ENGINE, result, cause)


def _moved(scored: ScoredReply) -> ScoredReply:
    """Move the box of a reply to the middle of its object."""
    if not _is_compared(scored):
        return scored
    left, top, right, bottom = scored.match.boxes[0]
    x1, y1, x2, y2 = scored.query.truth.boxes[0]
    across = (x1 + x2 - left - right) / 2
    down = (y1 + y2 - top - bottom) / 2
    box = (left + across, top + down, right + across, bottom + down)
    reading = scored.reading._replace(boxes=(box,))
    (result,) = match([reading], [scored.query.truth])
    return replace(scored, reading=reading, match=result)
