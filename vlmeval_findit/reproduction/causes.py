"""Why an attempt is lower than its figure: the table of causes, in order of certainty and cost.

The first look at what replies state, the next at the same replies again, which costs nothing; the
last ask a few pictures in other conditions. No look chooses what fits the figure: each names a
fault by its signs, and computes the figure without it on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .asked_causes import Ask, check_bounds, check_decoding, check_prompt
from .cause_evidence import Evidence
from .checkpoint_cause import check_checkpoint
from .coordinate_causes import check_coordinates, check_space
from .engine_cause import check_engine
from .other_requests import check_other_requests
from .picture_groups import check_picture_groups
from .picture_size_causes import check_picture_sizes
from .reply_causes import (
    check_failed_calls,
    check_format,
    check_several_boxes,
    check_truncation,
)
from .reproduction_records import Attempt, CauseLook, FigureJudgement, FigureVerdict
from .stated_causes import check_unseen


@dataclass(frozen=True, slots=True)
class CauseCheck:
    """How one cause is looked for: in the replies that are there, or by asking.

    What is ``stated`` is free and certain: it is looked at even where others explain the loss.
    """

    name: str
    look: Callable[[Evidence], CauseLook] | None = None
    ask: Callable[[Evidence, Ask], CauseLook] | None = None
    stated: bool = False


_ROWS = (
    CauseCheck("checkpoint", check_checkpoint, stated=True),
    CauseCheck("failed calls", check_failed_calls, stated=True),
    CauseCheck("truncation", check_truncation, stated=True),
    CauseCheck("unseen pictures", check_unseen, stated=True),
    CauseCheck("other requests", check_other_requests, stated=True),
    CauseCheck("coordinates", check_coordinates),
    CauseCheck("format", check_format),
    CauseCheck("several boxes", check_several_boxes),
    CauseCheck("picture sizes", check_picture_sizes),
    CauseCheck("space", check_space),
    CauseCheck("engine", check_engine),
    CauseCheck("some pictures", check_picture_groups),
    CauseCheck("prompt", ask=check_prompt),
    CauseCheck("bounds", ask=check_bounds),
    CauseCheck("decoding", ask=check_decoding),
)

# Checks of why a figure is not reached, by name: what is stated, what replies show, what is asked
CAUSES: Mapping[str, CauseCheck] = {row.name: row for row in _ROWS}


def find_causes(
    attempt: Attempt, judgement: FigureJudgement, ask: Ask | None = None
) -> Iterator[CauseLook]:
    """Look for causes: all that is stated, then the others until they explain what is missing.

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
        if evidence.closes(explained) and not row.stated:
            continue
        checked = _checked(row, evidence, ask)
        if checked is None:
            continue
        yield checked
        if checked.cause is not None and (checked.cause.sure or checked.cause.part):
            explained += evidence.gain(checked.cause.explains)


def _checked(row: CauseCheck, evidence: Evidence, ask: Ask | None) -> CauseLook | None:
    if row.look is not None:
        return row.look(evidence)
    if row.ask is not None and ask is not None:
        return row.ask(evidence, ask)
    return None
