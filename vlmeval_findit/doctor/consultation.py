"""The results of the coordinate check of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .conventions import SPACES, Convention, conventions
from .diagnosis import ALIKE, Diagnosis, Found, diagnose
from .evidence import Evidence, evidence_of
from .frames import Bend
from .of_run import RunReplies, figures_read_in
from .reading import apart, screen

_LINES = 8
_ALWAYS = ("grid1000", "unit", "pixels")


class Line(NamedTuple):
    """The metric values in one convention."""

    convention: Convention
    figures: Mapping[str, float | None]


@dataclass(frozen=True)
class Consultation:
    """A diagnosis, and the metric values that other conventions would give."""

    diagnosis: Diagnosis
    lines: Sequence[Line]

    def as_dict(self) -> dict[str, Any]:
        one, found = self.diagnosis, self.diagnosis.found
        return {
            "verdict": one.verdict.value,
            "alarm": one.verdict.alarms,
            "declared": one.declared.name,
            **{name: getattr(one, name) for name in ("boxes", "queries", "answered", "drift")},
            "evidence": found and _evidence(found),
            "read_as": [
                {"convention": line.convention.name, **line.figures} for line in self.lines
            ],
        }


def _evidence(found: Found) -> dict[str, Any]:
    bent, second = found.unlisted, found.second
    fit = {"in": bent.bent.name, "gain": round(bent.gain, 1), "distance": round(bent.distance, 4)}
    return {
        "best": found.best.name,
        "means": found.best.space.means,
        **{name: round(getattr(found, name), 2) for name in ("llr", "z", "z_iou", "signal")},
        "distance": round(found.distance, 4),
        "agree": found.agree,
        "alike": list(found.alike),
        "rivals": list(found.rivals),
        "fit": fit | bend_as_dict(bent.bend),
        "second": {
            "convention": second.convention.name,
            "share": round(second.share, 3),
            "gain": round(second.gain, 1),
        }
        if second.is_clear
        else None,
    }


def bend_as_dict(how: Bend) -> dict[str, Any]:
    """Return scale, offset (of the corner) and their standard errors by axis."""
    values = {
        "scale": how.scale,
        "scale_error": how.scale_error,
        "offset": how.at_origin,
        "offset_error": how.at_origin_error,
    }
    return {
        axis: {name: round(float(both[i]), 4) for name, both in values.items()}
        for i, axis in enumerate("xy")
    }


def consult(run: RunReplies) -> Consultation:
    """Check a run."""
    evidence = evidence_of(run.queries)
    diagnosis = diagnose(evidence, run.declared)
    lines = [Line(one, figures_read_in(run, one)) for one in worth_a_line(evidence, diagnosis)]
    return Consultation(diagnosis, lines)


def worth_a_line(evidence: Evidence, diagnosis: Diagnosis) -> list[Convention]:
    """Choose the conventions to show (declared, best, likely, usual), without lookalikes."""
    declared, found = diagnosis.declared, diagnosis.found
    first = [declared] if found is None else [declared, found.best]
    usual = [Convention(SPACES[name], declared.order) for name in _ALWAYS]
    known, few = conventions(declared), evidence.some(200)
    nats = screen(few, known)[0].sum(1) - [one.cost for one in known]
    likely = [known[i] for i in np.argsort(-nats, kind="stable")[:40]]
    made: list[Convention] = []
    for one in [*first, *likely, *usual]:
        room = len(made) < _LINES or one in usual
        if room and all(apart(evidence, other, one) >= ALIKE for other in made):
            made.append(one)
    return made
