"""Cases: annotations, predictions and the figures or the refusal that they should come to."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .annotations import Split, annotation
from .predictions import predictions_from
from .refusals import RefusedError
from .scoring import Score, score

TOLERANCE = 1e-9
"""In percent; rounded figures have to be equal."""

CaseRow = Mapping[str, Any]


class CaseError(ValueError):
    """A line that is no case; the message names file and line."""


def agreement(path: Path) -> tuple[int, int, list[str]]:
    """How many cases of a file (JSON lines, perhaps gzipped) agree, how many there are, and how
    the others differ, one line each.

    Raises:
        CaseError: a line is no case.
        OSError: the file cannot be read.
    """
    total, found = 0, []
    for number, case in _lines(path):
        total += 1
        try:
            why = difference(case)
        except KeyError as error:
            raise CaseError(f"{path}, line {number}: {error} is missing") from None
        except (TypeError, AttributeError) as error:
            raise CaseError(f"{path}, line {number}: {error}") from None
        if why is not None:
            found.append(f"{path.name}, line {number}, case {case.get('case')}: {why}")
    return total - len(found), total, found


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


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                case = json.loads(line)
            except ValueError as error:
                raise CaseError(f"{path}, line {number}: {error}") from None
            if not isinstance(case, dict):
                raise CaseError(f"{path}, line {number}: is no object")
            yield number, case


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
