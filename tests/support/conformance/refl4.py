"""Annotations, predictions, and their expected metrics or refusal."""

from __future__ import annotations

from collections.abc import Sequence

from vlmeval_findit.benchmarks.refl4 import (
    AUTHORS_METRICS,
    CORRECTED_METRICS,
    Annotation,
    RefL4Split,
    RefusedError,
    annotation,
    boxes_of,
    compare_boxes,
    of_split,
    predictions_from,
    slices_of,
    sums_of,
)
from vlmeval_findit.protocol import ScoredRow, Sums, metric_values, sum_rows

from .cases import Case, unlike

TOLERANCE = 1e-9  # percent; rounded metrics have to be equal


def difference(case: Case) -> str | None:
    """Return how our score differs from ``better``, which is mostly the authors' score."""
    better = case["better"]
    expected = case["authors"] if better == "same" else better
    refusal = expected.get("refuse")
    if refusal is None and "raises" in expected:
        refusal = expected["raises"]["why"]
    should = f"refused as {refusal}" if refusal else f"scored {expected.get('metric_values')}"
    try:
        actual = _sums(case)
    except RefusedError as error:
        same = error.code == refusal
        return None if same else f"refused ({error}), should be {should}"
    if refusal is not None:
        return f"scored, should be {should}"
    corrected = {
        name.removesuffix(" (corrected)"): value
        for name, value in metric_values(CORRECTED_METRICS, actual).items()
    }
    wrong = unlike(corrected, case.get("corrected_classes") or {}, TOLERANCE)
    if wrong is not None:
        return f"corrected {wrong}"
    twelve = metric_values(AUTHORS_METRICS, actual)
    rounded = [None if value is None else round(value, 2) for value in twelve.values()]
    return unlike(twelve, expected["figures"], TOLERANCE) or unlike(
        {"rounded": rounded}, {key: expected[key] for key in ("rounded",) if key in expected}
    )


def sums_for(truths: Sequence[Annotation], boxes: Sequence[Sequence[float] | None]) -> Sums:
    """Return the sums of boxes, one for each annotation."""
    judged = zip(truths, boxes, compare_boxes(truths, boxes)[1], strict=True)
    return sum_rows(
        ScoredRow(at, "", sums_of(passed, box is not None), slices=slices_of(truth))
        for at, (truth, box, passed) in enumerate(judged)
    )


def _sums(case: Case) -> Sums:
    given = [annotation(row, f"annotations, row {i}") for i, row in enumerate(case["annotations"])]
    try:
        split = RefL4Split(case["split"])
    except ValueError:
        raise TypeError(f"no split {case['split']!r}") from None
    truths = of_split(given, split)
    return sums_for(truths, boxes_of(truths, predictions_from(case["predictions"])))
