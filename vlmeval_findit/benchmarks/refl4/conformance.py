"""Cases: annotations, predictions and the figures or the refusal that they should come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...core.conformance import Agreement, Protocols, tried
from . import PROTOCOL
from .annotations import Split, annotation
from .predictions import predictions_from
from .refusals import RefusedError
from .scoring import Score, score

TOLERANCE = 1e-9
"""In percent; rounded figures have to be equal."""

CaseRow = Mapping[str, Any]


def agreement(path: Path, subsets: Path | None = None) -> Agreement:
    """Try the cases of a file; they bring their own annotations, so no subsets are needed.

    Raises:
        CaseError: a line is no case.
        OSError: the file cannot be read.
    """
    return tried(path, difference)


PROTOCOLS: Protocols = {PROTOCOL: agreement}


def difference(case: CaseRow) -> str | None:
    """How our score of a case differs from the right one; None when it agrees.

    What is right is ``better``, which is mostly the authors' own: where that is an exception or
    a figure of something else, ours is not.
    """
    better = case["better"]
    expected = case["authors"] if better == "same" else better
    refusal = expected.get("refuse")
    if refusal is None and "raises" in expected:
        refusal = expected["raises"]["why"]
    try:
        ours = _score(case)
    except RefusedError as error:
        if error.code.value == refusal:
            return None
        return f"refused ({error}), should be {_said(expected, refusal)}"
    if refusal is not None:
        return f"scored, should be {_said(expected, refusal)}"
    return _unlike(ours, expected, case.get("corrected_classes") or {})


def _score(case: CaseRow) -> Score:
    truths = [annotation(row, f"annotations, row {i}") for i, row in enumerate(case["annotations"])]
    try:
        split = Split(case["split"])
    except ValueError:
        raise TypeError(f"no split {case['split']!r}") from None
    return score(truths, predictions_from(case["predictions"]), split)


def _said(expected: CaseRow, refusal: str | None) -> str:
    return f"refused as {refusal}" if refusal is not None else f"scored {expected['figures']}"


def _unlike(ours: Score, expected: CaseRow, corrected: CaseRow) -> str | None:
    tables = (
        (ours.figures.named, expected["figures"], ""),
        (asdict(ours.corrected), corrected, "corrected "),
    )
    for mine, theirs, kind in tables:
        for name, value in theirs.items():
            if name not in mine:
                return f"no figure {kind}{name}"
            if not _near(mine[name], value):
                return f"{kind}{name} is {mine[name]}, should be {value}"
    if "rounded" in expected and ours.figures.rounded != expected["rounded"]:
        return f"rounded are {ours.figures.rounded}, should be {expected['rounded']}"
    return None


def _near(ours: float | None, theirs: float | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return abs(ours - theirs) <= TOLERANCE
