"""The best marks of models: accuracies by shape and by colour over scored stage 1 runs.

The best shape and colour of a model have the highest accuracy; failed calls count as wrong. Ties go
to the mark with more questions, then to the order of shapes and colours in :mod:`..marks.style`.
Good for all models are the shapes whose mean over models is not below the mean over shapes, and
colours likewise. Only questions about a single mark count, and none about an absent mark; shapes
and colours with too few questions are left out.

Each mark of a model is tested against its best, paired over the photographs that both are on; as
the best was chosen by the same answers, the tests hold for all pairs of shapes, and of colours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

from .. import __version__
from ..benchmarks.vpbench import STAGE_2, MarkChoice, VPBenchVariant, mark_colours
from ..marks import COLOURS, Shape
from ..protocol import Metric, ScoredRow, SumKey
from ..scoring import Run
from ..statistics import (
    INTERVALS_LEGEND,
    TOO_FEW_IMAGES,
    BestOf,
    ClusteredSums,
    Difference,
    Estimate,
    FamilyOfTests,
    Interval,
    clustered_sums,
    estimate_metrics,
    metric_intervals,
)
from .columns import Column, count_column, difference_column, p_column, table_of, value_column
from .comparable import ExcludedRun, by_model, group_by, group_comparable
from .legends import TIED_SIGN, UNTESTED_SIGN, difference_cell, tie_of
from .result_table import Note, Table, TableCell

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
    interval: Interval | None = None
    # This mark minus the best of its kind; None for the best itself
    to_best: Difference | None = None

    @property
    def place(self) -> tuple[float, int]:
        """What the best has most of."""
        return self.accuracy, self.questions

    def values(self) -> dict[str, Any]:
        """Return the mark's entry of the file."""
        values: dict[str, Any] = {"accuracy": self.accuracy, "questions": self.questions}
        if self.interval is not None:
            values["interval"] = [round(self.interval.low, 4), round(self.interval.high, 4)]
        if self.to_best is not None:
            values["told apart from the best"] = self.to_best.significant
        return values


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
        shape = _best_of(self.accuracies_of(MARK_SHAPES))
        colour = _best_of(self.accuracies_of(COLOURS))
        return MarkChoice(Shape(shape), colour)

    def rivals(self, names: Iterable[str]) -> list[str]:
        """Return the shapes, or colours, that are not told apart from the best of them."""
        known = self.accuracies_of(names)
        return [
            name for name, mark in known.items() if mark.to_best and not mark.to_best.significant
        ]

    def values(self) -> dict[str, Any]:
        """Return the model's entry of the file."""
        return {
            "best": self.best.name,
            "shapes": {
                name: each.values() for name, each in self.accuracies_of(MARK_SHAPES).items()
            },
            "colours": {name: each.values() for name, each in self.accuracies_of(COLOURS).items()},
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
        """A row for each model and mark: its accuracy, and its difference to the best."""
        of_test: list[Column[Difference]] = [
            difference_column("minus best", lambda test: difference_cell(test, tie_of(test))),
            p_column("p", lambda test: test.corrected),
        ]
        columns: list[Column[_MarkOfModel]] = [
            Column("model", lambda row: row.model),
            Column("mark", lambda row: row.name),
            count_column("questions", lambda row: row.mark.questions),
            value_column("accuracy", _accuracy_cell),
            *(each.by(lambda row: row.mark.to_best) for each in of_test),
        ]
        notes = [Note("Intervals", [INTERVALS_LEGEND])]
        title = "Accuracy by mark in percent, failed calls as wrong"
        return table_of(title, columns, list(self._rows()), notes, _SIGNS)

    def _rows(self) -> Iterator[_MarkOfModel]:
        for model in self.models:
            for names in (MARK_SHAPES, COLOURS):
                for name, mark in model.accuracies_of(names).items():
                    yield _MarkOfModel(model.model, name, mark)

    def values(self) -> dict[str, Any]:
        """Return the content of ``VPBench_best_marks.json``."""
        return {
            "rule": RULE,
            "at_least": self.at_least,
            "vlmeval_findit": __version__,
            "models": {each.model: each.values() for each in self.models},
            "good": {"shapes": self.good(MARK_SHAPES), "colours": self.good(COLOURS)},
        }


class _MarkOfModel(NamedTuple):
    model: str
    name: str
    mark: MarkAccuracy


def _accuracy_cell(row: _MarkOfModel) -> TableCell:
    mark = row.mark
    is_best = mark.to_best is None and _ACCURACY.can_be_best(mark.accuracy)
    return TableCell(mark.accuracy, mark.interval, best=is_best)


_SIGNS = {
    TIED_SIGN: "the best of its kind is not significantly better",
    UNTESTED_SIGN: f"not tested, as {TOO_FEW_IMAGES}",
    "p": FamilyOfTests.MARKS.value,
}


def _best_of(known: Mapping[str, MarkAccuracy]) -> str:
    """Return the best of some marks: the first of equals."""
    return max(known, key=lambda name: known[name].place)


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
            "none of the runs is of stage 1 of VP-Bench. Make one: python run_findit.py run --data "
            "VPBench_Stage1 --model MODEL"
        )
    datasets, excluded = group_comparable(stage_1)
    if not datasets:
        raise ValueError(f"{excluded[0].run.path}: {excluded[0].reason}")
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
    rows = [row for run in runs for row in _marked_rows(run)]
    asked = Counter[str]()
    right = Counter[str]()
    for row in rows:
        for mark in row.slices.values():
            asked[mark] += int(row.sums["asked"])
            right[mark] += int(row.sums["right"])
    accuracies = {
        name: MarkAccuracy(round(100 * right[name] / asked[name], 4), asked[name])
        for name in (*MARK_SHAPES, *COLOURS)
        if asked[name] >= max(1, at_least)
    }
    if not accuracies:
        return {}
    sums = clustered_sums(rows, "")
    tested = dict[str, MarkAccuracy]()
    for kind, names in _KINDS.items():
        known = {name: accuracies[name] for name in names if name in accuracies}
        tested |= _tested(known, kind, sums)
    return tested


_KINDS = {"shape": MARK_SHAPES, "colour": tuple(COLOURS)}


def _marked_rows(run: Run) -> Iterator[ScoredRow]:
    """Yield the rows about a single mark that is there, sliced by its shape and its one colour."""
    for row in run.rows:
        if row.slices.get("mark") == "absent" or not row.sums.get("asked"):
            continue
        colours = set(COLOURS) & set(mark_colours([row.slices.get("property", "")]))
        slices = {"shape": row.slices.get("shape", "")}
        if len(colours) == 1:
            slices["colour"] = colours.pop()
        sums = {name: row.sums.get(name, 0) for name in ("asked", "right")}
        # Photographs of several tables are told apart by the folders of their images.
        source = f"{run.variant.images}/{row.source}"
        yield replace(row, source=source, sums=sums, slices=slices)


def _tested(
    known: Mapping[str, MarkAccuracy], kind: str, sums: ClusteredSums
) -> dict[str, MarkAccuracy]:
    """Give the shapes, or colours, their intervals and the tests against the best of them."""
    estimates = {name: _estimate(kind, name, sums) for name in known}
    # Shapes and colours are two tables.
    choice = BestOf(max(2, len(known)), 1 / len(_KINDS), FamilyOfTests.MARKS)
    best = _best_of(known) if known else ""
    tested = {}
    for name, mark in known.items():
        to_best = None
        if name != best:
            to_best = choice.difference(estimates[name], estimates[best], _ACCURACY.name)
        interval = metric_intervals(estimates[name])[_ACCURACY.name]
        tested[name] = mark._replace(interval=interval, to_best=to_best)
    return tested


_ACCURACY = Metric("accuracy", {"right": 1}, {"asked": 1}, empty=None)  # Of all marks


def _estimate(kind: str, name: str, sums: ClusteredSums) -> Estimate:
    """Estimate the accuracy of a mark over all its questions."""
    right = {SumKey("right", kind, name): 1.0}
    asked = {SumKey("asked", kind, name): 1.0}
    return estimate_metrics([replace(_ACCURACY, part=right, whole=asked)], sums)
