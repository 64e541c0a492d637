"""Free and constrained: how much of a format's loss is syntax, and how much is sight.

A constrained twin asks the same in the same words; only its decoding is held to the format's
grammar.  What the score gains by that was lost to syntax, what is lost even so was not seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..benchmarks.findit.variant import Variant
from ..core.evidence import Evidence, clustered, evidence_of
from ..core.statistics import Difference, difference
from .comparison import check_comparable
from .scored_run import Run


@dataclass(frozen=True, slots=True)
class Syntax:
    """A run beside its constrained twin, both by the score in which failed calls are misses.

    ``held`` is the twin's score in percent, ``gain`` what it has more.
    """

    held: float
    gain: Difference

    @property
    def sight(self) -> float:
        """Points that are lost with the right syntax too."""
        return 100 - self.held


def constrained_twin(run: Run, runs: Iterable[Run]) -> Run | None:
    """The constrained twin of a free run, of the same model over the same table; None: no such."""
    question = run.question
    if not isinstance(question, Variant) or question.decoding is not None:
        return None
    for other in runs:
        asked = other.question
        if (
            isinstance(asked, Variant)
            and asked.decoding is not None
            and replace(asked, decoding=None) == question
            and (other.model, other.provenance.table_sha256)
            == (run.model, run.provenance.table_sha256)
        ):
            return other
    return None


def syntax(free: Run, held: Run) -> Syntax:
    """What the twin's score has more.

    Raises:
        StatisticsError: they are over other rows.
    """
    check_comparable(free, held)
    score = free.benchmark.errors.score
    ours, theirs = _evidence(held), _evidence(free)
    return Syntax(
        held=ours.figure(score.name) or 0.0,
        gain=difference(ours, theirs, score.name),
    )


def _evidence(run: Run) -> Evidence:
    return evidence_of((run.benchmark.errors.score,), clustered(run.rows, run.question.images))
