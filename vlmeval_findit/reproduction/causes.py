"""Why an attempt is lower than its figure: the table of causes, in order of cost.

The first look at the same replies again, which costs nothing; the last ask a few pictures in other
conditions. No look chooses what fits the figure: each names a fault by its signs, and computes the
figure without it on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .asked_causes import Ask, check_bounds, check_decoding, check_prompt
from .cause_evidence import Evidence
from .checkpoint_cause import check_checkpoint
from .coordinate_causes import check_coordinates, check_space
from .engine_cause import check_engine
from .picture_size_causes import check_picture_sizes
from .reply_causes import (
    check_failed_calls,
    check_format,
    check_several_boxes,
    check_truncation,
)
from .reproduction_records import Attempt, CauseLook, FigureJudgement, FigureVerdict


@dataclass(frozen=True, slots=True)
class CauseCheck:
    """How one cause is looked for: in the replies that are there, or by asking."""

    name: str
    look: Callable[[Evidence], CauseLook] | None = None
    ask: Callable[[Evidence, Ask], CauseLook] | None = None


_ROWS = (
    CauseCheck("coordinates", check_coordinates),
    CauseCheck("failed calls", check_failed_calls),
    CauseCheck("format", check_format),
    CauseCheck("several boxes", check_several_boxes),
    CauseCheck("picture sizes", check_picture_sizes),
    CauseCheck("truncation", check_truncation),
    CauseCheck("space", check_space),
    CauseCheck("checkpoint", check_checkpoint),
    CauseCheck("engine", check_engine),
    CauseCheck("prompt", ask=check_prompt),
    CauseCheck("bounds", ask=check_bounds),
    CauseCheck("decoding", ask=check_decoding),
)

# Checks of why a figure is not reached, by name, cheapest first
CAUSES: Mapping[str, CauseCheck] = {row.name: row for row in _ROWS}


def find_causes(
    attempt: Attempt, judgement: FigureJudgement, ask: Ask | None = None
) -> Iterator[CauseLook]:
    """Look for causes, the cheapest first, until causes explain what is missing.

    Nothing is looked for, and nothing asked, where an attempt is not lower than its figure.

    Args:
        attempt: what was measured.
        judgement: what it says of the figure.
        ask: asks other setups about few pictures; None: only the replies that are there are
            looked at.
    """
    if judgement.verdict is not FigureVerdict.LOWER:
        return
    evidence = Evidence(attempt, judgement)
    explained = 0.0
    for row in CAUSES.values():
        checked = _checked(row, evidence, ask)
        if checked is None:
            continue
        yield checked
        if checked.cause is not None and checked.cause.sure:
            explained += evidence.gain(checked.cause.explains)
        if evidence.closes(explained):
            return


def _checked(row: CauseCheck, evidence: Evidence, ask: Ask | None) -> CauseLook | None:
    if row.look is not None:
        return row.look(evidence)
    if row.ask is not None and ask is not None:
        return row.ask(evidence, ask)
    return None
