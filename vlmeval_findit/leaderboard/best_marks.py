"""The best marks of models: accuracies by shape and by colour over scored stage 1 runs.

The best shape and colour of a model have the highest accuracy; failed calls count as wrong. Ties go
to the mark with more questions, then to the order of shapes and colours in :mod:`..marks.style`.
Good for all models are the shapes whose mean over models is not below the mean over shapes, and
colours likewise. Only questions about a single mark count, and none about an absent mark; shapes
and colours with too few questions are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from .. import __version__
from ..benchmarks.vpbench import STAGE_2, MarkChoice, VPBenchVariant, mark_colours
from ..marks import COLOURS, Shape
from ..scoring import Run
from .columns import Column, plain_value_column, table_of
from .comparable import ExcludedRun, by_model, group_by, group_comparable
from .result_table import Table

AT_LEAST = 20  # Questions that a shape or a colour needs to be compared

RULE = (
    "accuracy with failed calls as wrong; then more questions; then the order of marks.style; good "
    "is what is not below the mean over all shapes, or colours, of the means over models"
)

MARK_SHAPES = tuple(shape.value for shape in Shape)  # Shapes of marks by their names in tables


class MarkAccuracy(NamedTuple):
    """The accuracy of a shape or colour."""

    accuracy: float  # In percent
    questions: int


@dataclass(frozen=True, slots=True)
class ModelMarks:
    """The accuracy of a model by the names of shapes and of colours, and its runs."""

    model: str
    accuracies: Mapping[str, MarkAccuracy]
    runs: tuple[Run, ...]

    def accuracies_of(self, names: Iterable[str]) -> dict[str, MarkAccuracy]:
        """Return the accuracies of the names that have enough questions."""
        return {name: self.accuracies[name] for name in names if name in self.accuracies}

    @property
    def best(self) -> MarkChoice:
        # max takes the first of equals.
        best_of = partial(max, key=self.accuracies.__getitem__)
        shape = best_of(self.accuracies_of(MARK_SHAPES))
        colour = best_of(self.accuracies_of(COLOURS))
        return MarkChoice(Shape(shape), colour)

    def values(self) -> dict[str, Any]:
        """Return the model's entry of the file."""
        return {
            "best": self.best.name,
            "shapes": {
                name: each._asdict() for name, each in self.accuracies_of(MARK_SHAPES).items()
            },
            "colours": {name: each._asdict() for name, each in self.accuracies_of(COLOURS).items()},
            "runs": [
                {
                    "file": run.path.name,
                    "digest": run.provenance.digest,
                    "predictions_sha256": run.provenance.predictions_sha256,
                    "table": run.provenance.table.file,
                    "table_sha256": run.provenance.table_sha256,
                }
                for run in self.runs
            ],
        }


@dataclass(frozen=True, slots=True)
class BestMarks:
    """The marks of all models, and the excluded runs."""

    models: tuple[ModelMarks, ...]
    at_least: int
    excluded: tuple[ExcludedRun, ...]

    def good(self, names: Iterable[str]) -> list[str]:
        """Return the shapes, or colours, that are not below the mean over all."""
        known = [
            (name, mark)
            for model in self.models
            for name, mark in model.accuracies_of(names).items()
        ]
        by_name = group_by(known, lambda item: item[0])
        means = {x: fmean(m.accuracy for _, m in by_name[x]) for x in names if x in by_name}
        mean = fmean(means.values())
        return [name for name, value in means.items() if value >= mean - 1e-9]

    @property
    def table(self) -> Table:
        """A row for each model: its best mark, and the accuracy of every shape and colour."""
        columns: list[Column[ModelMarks]] = [
            Column("model", lambda marks: marks.model),
            Column("best", lambda marks: marks.best.name),
            *map(_accuracy_column, (*MARK_SHAPES, *COLOURS)),
        ]
        title = "Accuracy by mark in percent, failed calls as wrong"
        return table_of(title, columns, self.models)

    def values(self) -> dict[str, Any]:
        """Return the content of ``VPBench_best_marks.json``."""
        return {
            "rule": RULE,
            "at_least": self.at_least,
            "vlmeval_findit": __version__,
            "models": {each.model: each.values() for each in self.models},
            "good": {"shapes": self.good(MARK_SHAPES), "colours": self.good(COLOURS)},
        }


def _accuracy_column(name: str) -> Column[ModelMarks]:
    def accuracy(marks: ModelMarks) -> float | None:
        known = marks.accuracies.get(name)
        return None if known is None else known.accuracy

    return plain_value_column(name, accuracy)


def find_best_marks(runs: Iterable[Run], at_least: int = AT_LEAST) -> BestMarks:
    """Find the best marks of models.

    Args:
        runs: any; runs over stage 1, or over custom questions in its layout, are used.
        at_least: least questions of a shape or a colour.

    Raises:
        ValueError: there is no run over stage 1, or a model has too few questions.
    """
    stage_1 = [run for run in runs if _is_stage_1(run)]
    if not stage_1:
        raise ValueError(
            "none of the runs is of stage 1 of VP-Bench. Make one: python run_findit.py --data "
            "VPBench_Stage1 --model MODEL"
        )
    datasets, excluded = group_comparable(stage_1)
    models = []
    comparable = by_model(run for dataset in datasets for run in dataset.runs)
    for model, runs_of_model in sorted(comparable.items()):
        marks = ModelMarks(model, _accuracies(runs_of_model, at_least), tuple(runs_of_model))
        for what, names in (("shape", MARK_SHAPES), ("colour", COLOURS)):
            if not marks.accuracies_of(names):
                raise ValueError(
                    f"{model}: no {what} with enough questions about one mark (at least {at_least})"
                )
        models.append(marks)
    return BestMarks(tuple(models), at_least, excluded)


def _is_stage_1(run: Run) -> bool:
    """Return whether a run is over stage 1, as we ask it: not as the authors, nor without hints."""
    variant = run.variant
    if not isinstance(variant, VPBenchVariant) or variant.table == STAGE_2:
        return False
    return not variant.original and not variant.plain


def _accuracies(runs: Sequence[Run], at_least: int) -> dict[str, MarkAccuracy]:
    asked = Counter[str]()
    right = Counter[str]()
    for row in (row for run in runs for row in run.rows if row.slices.get("mark") != "absent"):
        colours = set(COLOURS) & set(mark_colours([row.slices.get("property", "")]))
        for mark in (row.slices.get("shape", ""), *(colours if len(colours) == 1 else ())):
            asked[mark] += int(row.sums.get("asked", 0))
            right[mark] += int(row.sums.get("right", 0))
    return {
        name: MarkAccuracy(round(100 * right[name] / asked[name], 4), asked[name])
        for name in (*MARK_SHAPES, *COLOURS)
        if asked[name] >= max(1, at_least)
    }
