"""Which marks models see best: accuracies by shape and by colour over scored stage 1 runs.

Of a model that shape is the best that has the highest accuracy, and that colour; failed calls count
as wrong.  Ties go to the one with more questions, then to the order of shapes and colours in
:mod:`..marks.style`.  Good for all models are the shapes whose mean over models is not below the
mean over shapes, and colours likewise.  Only questions about one mark count, and none about a mark
that is not there; what has too few questions is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from .. import __version__
from ..benchmarks.vpbench.mark_choices import MarkChoice
from ..benchmarks.vpbench.question_tables import STAGE_2, VPQuestion
from ..core.scored_row import ScoredRow
from ..marks.style import COLOURS, Shape
from ..runs.scored_run import Run
from .comparable import ExcludedRun, group_comparable
from .table import Field, FieldType, Table, Value

AT_LEAST = 20
"""Questions that a shape or a colour needs to be compared."""

RULE = (
    "accuracy with failed calls as wrong; then more questions; then the order of marks.style; good "
    "is what is not below the mean over all shapes, or colours, of the means over models"
)


SHAPES = tuple(shape.value for shape in Shape)


class Seen(NamedTuple):
    """How well one shape or colour was answered, in percent, over so many questions."""

    accuracy: float
    questions: int


@dataclass(frozen=True, slots=True)
class ModelMarks:
    """What one model sees by the names of shapes and of colours, and the runs that say so."""

    model: str
    seen: Mapping[str, Seen]
    runs: tuple[Run, ...]

    def of(self, names: Iterable[str]) -> dict[str, Seen]:
        """Return those of these names that have enough questions."""
        return {name: self.seen[name] for name in names if name in self.seen}

    @property
    def best(self) -> MarkChoice:
        shapes, colours = self.of(SHAPES), self.of(COLOURS)
        # max takes the first of equals.
        return MarkChoice(
            Shape(max(shapes, key=shapes.__getitem__)), max(colours, key=colours.__getitem__)
        )

    def values(self) -> dict[str, Any]:
        """Return what the file says of the model."""
        seen = {
            kind: {name: one._asdict() for name, one in self.of(names).items()}
            for kind, names in (("shapes", SHAPES), ("colours", COLOURS))
        }
        runs = [
            {
                "file": run.path.name,
                "digest": run.provenance.digest,
                "predictions_sha256": run.provenance.predictions_sha256,
                "table": run.provenance.table,
                "table_sha256": run.provenance.table_sha256,
            }
            for run in self.runs
        ]
        return {"best": self.best.name, **seen, "runs": runs}


@dataclass(frozen=True, slots=True)
class BestMarks:
    """The marks of all models, and the runs that no value rests on."""

    models: tuple[ModelMarks, ...]
    at_least: int
    apart: tuple[ExcludedRun, ...]

    @property
    def good_shapes(self) -> list[str]:
        return self._good(SHAPES)

    @property
    def good_colours(self) -> list[str]:
        return self._good(COLOURS)

    def _good(self, names: Iterable[str]) -> list[str]:
        had = {name: [one.seen[name] for one in self.models if name in one.seen] for name in names}
        means = {name: fmean(one.accuracy for one in seen) for name, seen in had.items() if seen}
        mean = fmean(means.values())
        return [name for name, value in means.items() if value >= mean - 1e-9]

    @property
    def table(self) -> Table:
        """One row a model: its best mark, and the accuracy of every shape and colour."""
        names = (*SHAPES, *COLOURS)
        rows: list[list[Value]] = []
        for one in self.models:
            accuracies = {name: seen.accuracy for name, seen in one.seen.items()}
            rows.append([one.model, one.best.name, *map(accuracies.get, names)])
        fields = [Field("model"), Field("best"), *(Field(name, FieldType.VALUE) for name in names)]
        return Table("Accuracy by mark in percent, failed calls as wrong", fields, rows)

    def values(self) -> dict[str, Any]:
        """Return what ``VPBench_best_marks.json`` holds."""
        return {
            "rule": RULE,
            "at_least": self.at_least,
            "vlmeval_findit": __version__,
            "models": {one.model: one.values() for one in self.models},
            "good": {"shapes": self.good_shapes, "colours": self.good_colours},
        }


def find_best_marks(runs: Iterable[Run], at_least: int = AT_LEAST) -> BestMarks:
    """Find which marks models see best.

    Args:
        runs: any; those over stage 1, or over custom questions in its layout, are taken.
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
    columns, apart = group_comparable(taken)
    compared = [run for column in columns for run in column.runs]
    found = []
    for model in sorted({run.model for run in compared}):
        mine = tuple(run for run in compared if run.model == model)
        one = ModelMarks(model, _seen(mine, at_least), mine)
        for what, names in (("shape", SHAPES), ("colour", COLOURS)):
            if not one.of(names):
                raise ValueError(
                    f"{model}: no {what} with enough questions about one mark (at least "
                    f"{at_least}; --at-least N)"
                )
        found.append(one)
    return BestMarks(tuple(found), at_least, apart)


def _is_stage_1(run: Run) -> bool:
    """In our layout: nobody reports the better of two."""
    asked = run.question
    return isinstance(asked, VPQuestion) and not asked.original and asked.table != STAGE_2


def _seen(runs: Sequence[Run], at_least: int) -> dict[str, Seen]:
    asked, right = Counter[str](), Counter[str]()
    for row in (row for run in runs for row in run.rows if row.slices.get("mark") != "absent"):
        for mark in (row.slices.get("shape", ""), _colour(row)):
            asked[mark] += int(row.sums.get("asked", 0))
            right[mark] += int(row.sums.get("right", 0))
    return {
        name: Seen(round(100 * right[name] / asked[name], 4), asked[name])
        for name in (*SHAPES, *COLOURS)
        if asked[name] >= max(1, at_least)
    }


_COLOURS = re.compile(rf"\b({'|'.join(COLOURS)})\b", re.IGNORECASE)


def _colour(row: ScoredRow) -> str:
    """Return the colour among a row's properties, where there is just one."""
    named = {name.lower() for name in _COLOURS.findall(row.slices.get("property", ""))}
    return named.pop() if len(named) == 1 else ""
