"""Runs of known deployments, and the allowed verdicts of each."""

from __future__ import annotations

from pathlib import Path

from vlmeval_findit.boxes import space_from
from vlmeval_findit.coords import (
    ORDERS,
    SPACES,
    AnsweredQuery,
    Convention,
    CoordinateVerdict,
    Diagnosis,
    diagnose,
    run_arrays,
    space_row_of,
)

from .cases import Agreement, Case, each

LEAST = 0.95  # the share of allowed verdicts; no case may alarm where no alarm is due


def agreement(path: Path, subsets: Path | None = None) -> Agreement:
    """Compare the verdicts."""
    total, alarms, named, others, differences = 0, 0, 0, 0, []
    for where, _, (diagnosis, expected) in each(
        path, lambda case: (diagnosis_of(case), case["expect"])
    ):
        total += 1
        if diagnosis.verdict.value not in expected["allowed"]:
            best = f" ({diagnosis.fit.best.name})" if diagnosis.fit is not None else ""
            should = " or ".join(expected["allowed"])
            differences.append(f"{where}: {diagnosis.verdict.value}{best}, should be {should}")
        alarms += diagnosis.verdict.alarms and not expected["alarm"]
        if diagnosis.verdict is CoordinateVerdict.OTHER and diagnosis.fit is not None:
            others += 1
            named += diagnosis.fit.best.name in expected["acceptable"]
    agreed = total - len(differences)
    summary = (
        f"{agreed}/{total} verdicts are allowed; {alarms} alarms where none is due; "
        f"{named}/{others} other conventions named rightly"
    )
    return Agreement(agreed, total, differences, LEAST, alarms, summary)


def diagnosis_of(case: Case) -> Diagnosis:
    """Diagnose the run of a case."""
    declared = case["declared"]
    row = SPACES.get(declared["name"]) or space_row_of(space_from(declared["space"]))
    queries = [
        AnsweredQuery(q["width"], q["height"], q["picture"], q["truths"], q["said"])
        for q in case["queries"]
    ]
    return diagnose(run_arrays(queries), Convention(row, ORDERS[declared["order"]]))
