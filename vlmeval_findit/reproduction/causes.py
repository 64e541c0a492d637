"""Why an attempt is lower than its figure: the table of causes, in order of cost.

The first look at the same replies again, which costs nothing; the last ask a few pictures in other
conditions. No look chooses what fits the figure: each names a fault by its signs, and computes the
figure without it on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .cause_evidence import Evidence
from .coordinate_causes import check_coordinates, check_space
from .engine_cause import check_engine
from .picture_size_causes import check_picture_sizes
from .records import Attempt, Checked, Judgement, Setup, Verdict
from .reply_causes import check_failed_calls, check_format, check_truncation

# Asks another setup about the first pictures of its sample, so many of each dataset
Ask = Callable[[Setup, int], Attempt]


@dataclass(frozen=True, slots=True)
class CauseCheck:
    """How one cause is looked for."""

    name: str
    check: Callable[[Evidence], Checked]


_ROWS = (
    CauseCheck("coordinates", check_coordinates),
    CauseCheck("failed calls", check_failed_calls),
    CauseCheck("format", check_format),
    CauseCheck("picture sizes", check_picture_sizes),
    CauseCheck("truncation", check_truncation),
    CauseCheck("space", check_space),
    CauseCheck("engine", check_engine),
)

CAUSES: Mapping[str, CauseCheck] = {row.name: row for row in _ROWS}


def explain(attempt: Attempt, judgement: Judgement, ask: Ask | None = None) -> Iterator[Checked]:
    """Look for causes, the cheapest first, until causes explain what is missing.

    Nothing is looked for, and nothing asked, where an attempt is not lower than its figure.

    Args:
        attempt: what was measured.
        judgement: what it says of the figure.
        ask: asks other setups; None: only the replies that are there are looked at.
    """
    if judgement.verdict is not Verdict.LOWER:
        return
    evidence = Evidence(attempt, judgement)
    explained = 0.0
    for row in CAUSES.values():
        checked = row.check(evidence)
        yield checked
        if checked.cause is not None and checked.cause.sure:
            explained += evidence.gain(checked.cause.explains)
        if evidence.closes(explained):
            return
