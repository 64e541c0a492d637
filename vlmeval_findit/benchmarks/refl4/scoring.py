"""Annotations and predictions in, everything that is reported out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .annotations import Annotation, Split, of_split
from .figures import ClassFigures, Figures, corrected_figures, figures
from .judging import Judged, judge
from .predictions import Predictions, answers_to
from .sums import Sums, sums


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a prediction file on a split."""

    split: Split
    figures: Figures
    """With the authors' classes: the figures that compare with published ones."""
    corrected: ClassFigures
    """The class figures by the corrected table."""
    sums: Sums
    """For slices and for adding shards up; ``sums.misses`` says why boxes are missing."""
    judged: tuple[Judged, ...]
    """Expression by expression: for intervals, which resample by image."""
    unused: int
    """Predictions of no annotation."""


def score(
    annotations: Sequence[Annotation],
    predictions: Predictions,
    split: Split,
    where: tuple[str, str] = ("annotations", "predictions"),
) -> Score:
    """Score predictions on the annotations of a split.

    ``where`` names both in refusals.

    Raises:
        RefusedError: what is to be scored is refused; its code says why.
    """
    truths = of_split(annotations, split, where[0])
    answers = answers_to(truths, predictions, where[1])
    judged = tuple(judge(truths, answers.answers))
    added = sums(judged)
    return Score(
        split=split,
        figures=figures(added),
        corrected=corrected_figures(added),
        sums=added,
        judged=judged,
        unused=answers.unused,
    )
