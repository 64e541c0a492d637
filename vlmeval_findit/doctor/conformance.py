"""Cases: runs of known deployments, and what may be said of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..boxes.spaces import space_from
from ..core.conformance import Agreement, CaseError, Protocols, lines_of
from .conventions import ORDERS, SPACES, Convention, row_of
from .diagnosis import diagnose
from .evidence import Query, evidence_of
from .verdict import Diagnosis, Verdict

LEAST = 0.95
"""The share of cases whose verdict must be an allowed one; none may alarm where none is due."""


def agreement(path: Path, subsets: Path | None = None) -> Agreement:
    """Try the cases of a file; they bring their own objects, so no subsets are needed.

    Raises:
        CaseError: a line is no case.
        OSError: the file cannot be read.
    """
    total, alarms, named, others, differences = 0, 0, 0, 0, []
    for number, case in lines_of(path):
        total += 1
        try:
            found, expected = diagnosis_of(case), case["expect"]
            if found.verdict.value not in expected["allowed"]:
                differences.append(f"{path.name}, line {number}: {_difference(found, expected)}")
            alarms += found.verdict.alarms and not expected["alarm"]
            if found.verdict is Verdict.OTHER and found.found is not None:
                others += 1
                named += found.found.best.name in expected["acceptable"]
        except KeyError as error:
            raise CaseError(f"{path}, line {number}: {error} is missing") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise CaseError(f"{path}, line {number}: {error}") from None
    agreed = total - len(differences)
    said = (
        f"{agreed}/{total} verdicts are allowed; {alarms} alarms where none is due; "
        f"{named}/{others} other conventions named rightly"
    )
    return Agreement(agreed, total, differences, LEAST, alarms, said)


PROTOCOLS: Protocols = {"doctor": agreement}


def diagnosis_of(case: Mapping[str, Any]) -> Diagnosis:
    """The diagnosis of a case.

    Raises:
        KeyError, TypeError, ValueError: it is no case.
    """
    declared = case["declared"]
    row = SPACES.get(declared["name"]) or row_of(space_from(declared["space"]))
    queries = [
        Query(q["width"], q["height"], q["picture"], q["truths"], q["said"])
        for q in case["queries"]
    ]
    return diagnose(evidence_of(queries), Convention(row, ORDERS[declared["order"]]))


def _difference(found: Diagnosis, expected: Mapping[str, Any]) -> str:
    best = f" ({found.found.best.name})" if found.found is not None else ""
    return f"{found.verdict.value}{best}, should be {' or '.join(expected['allowed'])}"
