"""What a run's sums would be if all doubts about labels were true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..protocol import Decision, Drawn, SumName, Verdict, indices, settings_from, totals
from ..scoring import Run, TableDecisions, open_predictions, score_reviewed, settings_of_score
from ..statistics import LabelFault
from .label_audit import AuditedRow


def sums_if_wrong(run: Run, listed: Sequence[AuditedRow]) -> Mapping[SumName, float]:
    """Return a run's sums with the labels of listed rows replaced by what models propose.

    It is a bound, and no score: the models were asked what is right, and are judged by it.

    Raises:
        OSError, ValueError: the predictions are gone, or cannot be scored any more.
    """
    doubted = {row.index: _decision(row) for row in listed}
    opened = open_predictions(
        run.path, settings_of_score(run.path, settings_from({})), run.variant.name
    )
    replies = [reply for reply in opened.replies if reply.index in doubted]
    decided = TableDecisions("", doubted, ())
    changed = score_reviewed(replace(opened, replies=replies), decided)
    places = [place for place, index in enumerate(indices(run.rows)) if index in doubted]
    before = totals([run.rows[place] for place in places])
    after = totals(changed.rows)
    keys = {**run.sums, **after}
    return {key: run.sums.get(key, 0) - before.get(key, 0) + after.get(key, 0) for key in keys}


def _decision(row: AuditedRow) -> Decision:
    """Return what reviewers would decide who follow the models."""
    is_both = row.fault is LabelFault.AMBIGUOUS
    return Decision(
        index=row.index,
        row="",
        verdict=Verdict.BOTH if is_both else Verdict.MODEL,
        accept=(row.label, row.proposal) if is_both else (row.proposal,),
        drawn=Drawn.LISTED,
        kind=row.fault.value if row.fault is not None else "",
        voters=row.voters,
        reviews=(),
    )
