"""A cause in the program that serves the model: positions lost, or a fault that is known of it.

Engines lose positions without any sign but boxes: they are well formed, have the sizes of their
objects, and lie elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..benchmarks.findit import ScoredReply
from ..boxes import match
from ..coords import NotBoxesError, Verdict
from ..models import PROGRAM_NAMES
from .cause_evidence import Evidence, sentence
from .engine_faults import EngineFault, Placement, known_faults, placement
from .reproduction_records import Cause, CauseLook

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
            "See whether pictures are shown: python run_findit.py probe; then ask with "
            f"another program than {here or 'the one that answers now'}",
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
    cause = Cause(ENGINE, f"A known fault of {told}", None, sentence(fault.do), sure=False)
    return CauseLook(ENGINE, result, cause)


def _faults(evidence: Evidence, here: str) -> Sequence[EngineFault]:
    """Return the known faults of the program that answers, the surest first."""
    row = evidence.row
    program = next((name for name in PROGRAM_NAMES if here.startswith(name)), "")
    if row is None or not program:
        return ()
    version = here.removeprefix(program).strip()
    faults = known_faults(program, version, row.name)
    return sorted(faults, key=lambda fault: (not fault.is_in(version), fault.sure != "confirmed"))


# --- where boxes lie ------------------------------------------------------------------------------


def _is_compared(scored: ScoredReply) -> bool:
    return len(scored.match.boxes) == 1 and len(scored.query.truth.boxes) == 1


def _lost_places(evidence: Evidence) -> Placement | None:
    """Return how boxes lie that have the sizes of their objects and lie elsewhere; else None."""
    if evidence.are_points:
        return None
    compared = [scored for scored in evidence.scored if _is_compared(scored)]
    boxes = np.array([scored.match.boxes[0] for scored in compared], float).reshape(-1, 4)
    truths = np.array([scored.query.truth.boxes[0] for scored in compared], float).reshape(-1, 4)
    placed = placement(boxes, truths)
    return placed if placed.is_lost else None


def _follow_nothing(evidence: Evidence) -> bool:
    try:
        return evidence.diagnosis.verdict is Verdict.NONE
    except NotBoxesError:
        return False


def _positions_lost(
    evidence: Evidence, here: str, faults: Sequence[EngineFault], lost: Placement
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
        advice = sentence(fault.do)
    is_known = any(fault.is_in(here) for fault in faults)
    cause = Cause(ENGINE, finding, value, advice, sure=is_known)
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
