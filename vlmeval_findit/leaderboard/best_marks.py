"""Which marks models see best: accuracies by shape and by colour over scored stage 1 runs.

Of a model that shape is the best that has the highest accuracy, and that colour; failed calls count
as wrong.  Ties go to the one with more questions, then to the order of shapes and colours in
:mod:`..marks.style`.  Good for all models are the shapes whose mean over models is not below the
mean over shapes, and colours likewise.  Only questions about one mark count, and none about a mark
that is not there; what has too few questions is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from .. import __version__
from ..benchmarks.vpbench.best_marks import Choice
from ..benchmarks.vpbench.tables import STAGE_2, VPQuestion
from ..core.scored_row import ScoredRow
from ..marks.style import COLOURS, Shape
from ..runs.scored_run import Run
from .columns import SetApart, columns_of

AT_LEAST = 20
"""Questions that a shape or a colour needs to be compared."""

RULE = (
    "accuracy with failed calls as wrong; then more questions; then the order of marks.style; good "
    "is what is not below the mean over all shapes, or colours, of the means over models"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """How well one shape or colour was answered, in percent, over so many questions."""

    accuracy: float
    questions: int


Figures = Mapping[str, Seen]
"""By the names of shapes, or of colours, in their order."""


@dataclass(frozen=True, slots=True)
class ModelMarks:
    """One model's figures, at least one a shape and a colour, and the runs that they rest on."""

    model: str
    shapes: Figures
    colours: Figures
    runs: tuple[Run, ...]

    @property
    def best(self) -> Choice:
        return Choice(Shape(_best(self.shapes)), _best(self.colours))


@dataclass(frozen=True, slots=True)
class MarksFound:
    """The marks of all models, and the runs that no figure rests on."""

    models: tuple[ModelMarks, ...]
    at_least: int
    apart: tuple[SetApart, ...]

    @property
    def good_shapes(self) -> list[str]:
        return _good([one.shapes for one in self.models], [shape.value for shape in Shape])

    @property
    def good_colours(self) -> list[str]:
        return _good([one.colours for one in self.models], list(COLOURS))

    def values(self) -> dict[str, Any]:
        """What ``VPBench_best_marks.json`` holds."""
        return {
            "rule": RULE,
            "at_least": self.at_least,
            "vlmeval_findit": __version__,
            "models": {one.model: _values(one) for one in self.models},
            "good": {"shapes": self.good_shapes, "colours": self.good_colours},
        }


def find_best_marks(runs: Iterable[Run], at_least: int = AT_LEAST) -> MarksFound:
    """What scored runs say of marks.

    Args:
        runs: any; those over stage 1, or over questions of one's own in its layout, are taken.
        at_least: questions that a shape or a colour needs.

    Raises:
        ValueError: there is no such run, or a model has too few questions.
    """
    taken = [run for run in runs if _is_stage_1(run)]
    if not taken:
        raise ValueError(
            "no scored run over stage 1 of VP-Bench among them: python run_findit.py --data "
            "VPBench_Stage1 --model MODEL"
        )
    columns, apart = columns_of(taken)
    by_model: dict[str, list[Run]] = {}
    for column in columns:
        for run in column.runs:
            by_model.setdefault(run.model, []).append(run)
    found = tuple(_of(model, by_model[model], at_least) for model in sorted(by_model))
    for one in found:
        if not one.shapes or not one.colours:
            what = "colour" if one.shapes else "shape"
            raise ValueError(
                f"{one.model}: no {what} with enough questions about one mark (at least "
                f"{at_least}; --at-least N)"
            )
    return MarksFound(found, at_least, apart)


def _is_stage_1(run: Run) -> bool:
    """In our layout: nobody reports the better of two."""
    asked = run.question
    return isinstance(asked, VPQuestion) and not asked.original and asked.table != STAGE_2


def _of(model: str, runs: Sequence[Run], at_least: int) -> ModelMarks:
    rows = [row for run in runs for row in run.rows if row.slices.get("mark") != "absent"]
    shapes = _figures(rows, [shape.value for shape in Shape], _shape, at_least)
    return ModelMarks(model, shapes, _figures(rows, list(COLOURS), _colour, at_least), tuple(runs))


def _figures(rows: Sequence[ScoredRow], names: Sequence[str], name_of: Any, least: int) -> Figures:
    asked, right = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for row in rows:
        name = name_of(row)
        if name in asked:
            asked[name] += row.sums.get("asked", 0)
            right[name] += row.sums.get("right", 0)
    return {
        name: Seen(100 * right[name] / count, int(count))
        for name, count in asked.items()
        if count >= max(1, least)
    }


def _shape(row: ScoredRow) -> str | None:
    return row.slices.get("shape")


_COLOURS = re.compile(rf"\b({'|'.join(COLOURS)})\b", re.IGNORECASE)


def _colour(row: ScoredRow) -> str | None:
    """The colour among a row's properties, where there is just one."""
    named = {name.lower() for name in _COLOURS.findall(row.slices.get("property", ""))}
    return named.pop() if len(named) == 1 else None


def _best(figures: Figures) -> str:
    """The first of equals: figures are in the order of marks."""
    return max(figures, key=lambda name: (figures[name].accuracy, figures[name].questions))


def _good(models: Sequence[Figures], names: Sequence[str]) -> list[str]:
    means = {
        name: fmean(had)
        for name in names
        if (had := [m[name].accuracy for m in models if name in m])
    }
    mean = fmean(means.values())
    return [name for name, value in means.items() if value >= mean - 1e-9]


def _values(one: ModelMarks) -> dict[str, Any]:
    def figures(found: Figures) -> dict[str, Any]:
        return {
            name: {"accuracy": round(seen.accuracy, 4), "questions": seen.questions}
            for name, seen in found.items()
        }

    return {
        "best": one.best.name,
        "shapes": figures(one.shapes),
        "colours": figures(one.colours),
        "runs": [
            {
                "file": run.path.name,
                "digest": run.basis.digest,
                "predictions_sha256": run.basis.predictions_sha256,
                "table": run.basis.table,
                "table_sha256": run.basis.table_sha256,
            }
            for run in one.runs
        ],
    }
