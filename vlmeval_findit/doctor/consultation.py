"""All that the doctor says of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .conventions import SPACES, Convention, conventions
from .diagnosis import diagnose
from .distance import apart
from .estimate import Bend, screen
from .evidence import Evidence, evidence_of
from .inflation import Inflation, inflation
from .of_run import RunReplies, figures_read_in
from .verdict import ALIKE, Diagnosis

_LINES = 8
_ALWAYS = ("grid1000", "unit", "pixels")


class Line(NamedTuple):
    """What the score would be in one convention."""

    convention: Convention
    figures: Mapping[str, float | None]


@dataclass(frozen=True)
class Consultation:
    """A diagnosis, the scores that other conventions would give, and what the best would add."""

    diagnosis: Diagnosis
    lines: Sequence[Line]
    inflation: Sequence[Inflation]

    def as_dict(self) -> dict[str, Any]:
        """All of it, for a file."""
        found = self.diagnosis.found
        return {
            "verdict": self.diagnosis.verdict.value,
            "alarm": self.diagnosis.verdict.alarms,
            "declared": self.diagnosis.declared.name,
            "boxes": self.diagnosis.boxes,
            "queries": self.diagnosis.queries,
            "answered": self.diagnosis.answered,
            "drift": self.diagnosis.drift,
            "evidence": None
            if found is None
            else {
                "best": found.best.name,
                "means": found.best.space.means,
                "llr": round(found.llr, 2),
                "z": round(found.z, 2),
                "z_iou": round(found.z_iou, 2),
                "distance": round(found.distance, 4),
                "signal": round(found.signal, 1),
                "agree": found.agree,
                "alike": list(found.alike),
                "rivals": list(found.rivals),
                "fit": {
                    "in": found.unlisted.bent.name,
                    "gain": round(found.unlisted.gain, 1),
                    "distance": round(found.unlisted.distance, 4),
                    **bend_as_dict(found.unlisted.bend),
                },
                "second": None
                if found.second is None
                else {
                    "convention": found.second.convention.name,
                    "share": round(found.second.share, 3),
                    "gain": round(found.second.gain, 1),
                },
            },
            "read_as": [
                {"convention": line.convention.name, **line.figures} for line in self.lines
            ],
            "inflation": [one.as_dict() for one in self.inflation],
        }


def bend_as_dict(how: Bend) -> dict[str, Any]:
    """Scale and offset by axis, with their errors."""
    return {
        axis: {
            "scale": round(float(how.scale[i]), 4),
            "scale_error": round(float(how.scale_error[i]), 4),
            "offset": round(float(how.at_origin[i]), 4),
            "offset_error": round(float(how.at_origin_error[i]), 4),
        }
        for i, axis in enumerate("xy")
    }


def consult(run: RunReplies) -> Consultation:
    """Look at a run."""
    evidence = evidence_of(run.queries)
    diagnosis = diagnose(evidence, run.declared)
    lines = [Line(one, figures_read_in(run, one)) for one in worth_a_line(evidence, diagnosis)]
    return Consultation(diagnosis, lines, inflation(evidence, run.declared))


def worth_a_line(evidence: Evidence, diagnosis: Diagnosis) -> list[Convention]:
    """The declared convention, the one that fits, those that come next, and the usual ones.

    Of those that are alike on this data only the first has a line.
    """
    declared = diagnosis.declared
    first = [declared] if diagnosis.found is None else [declared, diagnosis.found.best]
    usual = [Convention(SPACES[name], declared.order) for name in _ALWAYS]
    known = conventions(declared)
    few = evidence.some(200)
    likely = screen(few, known).sum(1) if few.boxes else [0.0] * len(known)
    order = sorted(range(len(known)), key=lambda i: known[i].cost - likely[i])
    made: list[Convention] = []
    for one in [*first, *(known[i] for i in order[:40]), *usual]:
        room = len(made) < _LINES or one in usual
        if room and all(apart(evidence, other, one) >= ALIKE for other in made):
            made.append(one)
    return made
