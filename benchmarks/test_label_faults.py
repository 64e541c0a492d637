"""How well the audit finds each kind of fault: by its share, models, how alike they err, crowds.

::

    python -m pytest benchmarks/test_label_faults.py --benchmark-enable -s

prints the tables of benchmarks/README.md. A world has faults of one kind. Labels that models
contradict and labels with a box that few models find have an order each. Beside them stands
cleanlab's ObjectLab, averaged over models, but for crowds, where it is slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from label_worlds import Asked, Kind, LabelWorld, make_world
from numpy.typing import NDArray
from scipy.stats import binomtest
from test_label_audit import average_precision, quality_by_objectlab

from vlmeval_findit.analysis import (
    FEWEST_LISTED,
    FEWEST_RANDOM,
    ClassedBoxes,
    classed_boxes,
)
from vlmeval_findit.statistics import LIKELY, calibrate_doubts, label_doubts

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

ROWS, FEW_ROWS = 200, 60
SHARES = (0.01, 0.02, 0.05, 0.15)
MODELS = (2, 3, 5)
CORRELATIONS = (0.0, 0.3, 0.5, 0.7)
BINS = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
TOO_MANY = ("on nothing", "of another class", "twice")  # Faults of boxes that are too many


@dataclass(frozen=True)
class Cell:
    """The audit of a world by so many models."""

    kind: Kind
    share: float
    correlation: float
    crowds: bool
    models: int
    p: Array  # (n,) how far models contradict the label
    on_nothing: Array  # (n,)
    calibrated: Array  # (n,) p, after reviews
    wrong: Flags  # (n,)
    few: Flags  # (n,) a labelled box that fewer than half of the models found
    objectlab: Array | None  # (n,); None: not asked

    @property
    def is_too_many(self) -> bool:
        return self.kind.fault in TOO_MANY

    @property
    def own(self) -> Array:
        """Return what the kind is ordered by."""
        return self.on_nothing if self.is_too_many else self.p

    @property
    def listed(self) -> Flags:
        """Return which rows are listed, for what models contradict, or for a box on nothing."""
        is_contradicted = self.p > LIKELY
        if not self.is_too_many:
            return is_contradicted
        return (self.on_nothing > LIKELY) & ~is_contradicted


def worlds(rows: int, shares: Sequence[float], correlations: Sequence[float]) -> Iterator[Cell]:
    """Yield the cells of all kinds."""
    for kind in Kind:
        for crowds in (False,) if kind.asked is Asked.ONE else (False, True):
            for correlation in correlations:
                for share in shares:
                    world = make_world(kind, share, correlation, crowds, rows, seed=0)
                    yield from cells(world, share, correlation, crowds)


def cells(world: LabelWorld, share: float, correlation: float, crowds: bool) -> Iterator[Cell]:
    """Yield the audits of a world by two, three and five models."""
    by_model = []
    if not crowds:
        none = classed_boxes([], [])
        for of_model in world.answers:
            said: list[ClassedBoxes] = [none if each is None else each for each in of_model]
            by_model.append(quality_by_objectlab(world.labels, said))
    for models in MODELS:
        votes = world.votes(models)
        labelled = votes.labelled
        few = np.zeros(len(world.labels), bool)
        is_few = 2 * labelled.detected.sum(1) < votes.spoke[labelled.row].sum(1)
        np.logical_or.at(few, labelled.row, is_few)
        doubts = label_doubts(votes)
        yield Cell(
            kind=world.kind,
            share=share,
            correlation=correlation,
            crowds=crowds,
            models=models,
            p=doubts.contradicted,
            on_nothing=doubts.on_nothing,
            calibrated=reviewed(doubts.contradicted, world.wrong),
            wrong=world.wrong,
            few=few & (not votes.single),
            objectlab=1 - np.mean(by_model[:models], axis=0) if by_model else None,
        )


def reviewed(p: Array, wrong: Flags) -> Array:
    """Return probabilities after as few reviews as calibrate them, none of them in error."""
    order = np.argsort(-p, kind="stable")
    rest = np.random.default_rng(0).permutation(order[FEWEST_LISTED:])
    known = np.concatenate([order[:FEWEST_LISTED], rest[:FEWEST_RANDOM]])
    return calibrate_doubts(p[known], wrong[known]).apply(p)


# --- figures --------------------------------------------------------------------------------------


def precision(some: Sequence[Cell]) -> float:
    """Return the share of the listed rows that are wrong; NaN: none is listed."""
    listed = np.concatenate([cell.listed for cell in some])
    wrong = np.concatenate([cell.wrong for cell in some])
    return float(wrong[listed].mean()) if listed.any() else float("nan")


def recall(some: Sequence[Cell]) -> float:
    """Return the share of the wrong rows that are listed."""
    listed = np.concatenate([cell.listed for cell in some])
    wrong = np.concatenate([cell.wrong for cell in some])
    return float(listed[wrong].mean())


def recall_with_order(some: Sequence[Cell]) -> float:
    """Return the share of the wrong rows that are listed, or in the order of boxes hardly found."""
    shown = np.concatenate([cell.listed | cell.few for cell in some])
    wrong = np.concatenate([cell.wrong for cell in some])
    return float(shown[wrong].mean())


def mean_average_precision(some: Sequence[Cell], ours: bool) -> float:
    """Return it over the cells that ObjectLab judged, too."""
    values = []
    for cell in some:
        if cell.objectlab is not None:
            values.append(average_precision(cell.own if ours else cell.objectlab, cell.wrong))
    return float(np.mean(values))


def print_tables(found: Sequence[Cell]) -> None:
    def of(models: int, **chosen: object) -> list[Cell]:
        return [
            cell
            for cell in found
            if cell.models == models
            and all(getattr(cell, name) == value for name, value in chosen.items())
        ]

    print("\nkind: recall of the list at 1, 2, 5, 15 %; with boxes hardly found; precision")
    for kind in Kind:
        texts = []
        for models in MODELS:
            by_share = (f"{100 * recall(of(models, kind=kind, share=s)):.0f}" for s in SHARES)
            whole = of(models, kind=kind)
            order = f"{100 * recall_with_order(whole):.0f}"
            means = [f"{mean_average_precision(whole, ours):.2f}" for ours in (True, False)]
            texts.append(f"{', '.join(by_share)}; {order}; {' / '.join(means)}")
        print(f"| {kind.asked.value}: {kind.fault} | {' | '.join(texts)} |")
    for is_too_many in (False, True):
        name = "boxes too many" if is_too_many else "contradicted"
        print(f"\n{name}; correlation, crowds: precision and recall at 1, 2, 5, 15 %")
        for crowds in (False, True):
            for rho in CORRELATIONS:
                texts = []
                for models in MODELS:
                    both = []
                    for share in SHARES:
                        some = of(
                            models,
                            crowds=crowds,
                            correlation=rho,
                            share=share,
                            is_too_many=is_too_many,
                        )
                        both.append(f"{100 * precision(some):.0f}/{100 * recall(some):.0f}")
                    texts.append(", ".join(both))
                print(f"| {rho}, {'crowds' if crowds else 'few'} | {' | '.join(texts)} |")
    for title, p_of in (("p", lambda cell: cell.p), ("after reviews", lambda c: c.calibrated)):
        print(f"\n{title}: mean; observed share, its interval; rows")
        for low, high in pairwise(BINS):
            texts = []
            for models in MODELS:
                texts.append(calibration(of(models, is_too_many=False), p_of, low, high))
            print(f"| {low:g} to {high:g} | {' | '.join(texts)} |")


def calibration(
    some: Sequence[Cell], p_of: Callable[[Cell], Array], low: float, high: float
) -> str:
    """Say how many rows whose probabilities lie between two are wrong."""
    p = np.concatenate([p_of(cell) for cell in some])
    wrong = np.concatenate([cell.wrong for cell in some])
    here = (p >= low) & ((p < high) | (high == 1))
    if not here.any():
        return "–"
    interval = binomtest(int(wrong[here].sum()), int(here.sum())).proportion_ci(method="wilson")
    ends = f"{interval.low:.3f} to {interval.high:.3f}"
    return f"{p[here].mean():.3f}: {wrong[here].mean():.3f} ({ends}), {here.sum():,}"


def print_right_labels_listed() -> None:
    """Print how many right labels are listed, by accuracy and favourite of the models."""
    print("\nof 1,000 right labels, one object asked for, contradicted, at correlation 0.3")
    for favourite in (0.0, 0.25, 0.5):
        texts = []
        for accuracy in (0.6, 0.7, 0.8, 0.85):
            by_models = []
            ends = accuracy - 0.04, accuracy + 0.04
            world = make_world(Kind.ELSEWHERE, 0.0, 0.3, False, 1000, 0, ends, favourite)
            for models in MODELS:
                share = (label_doubts(world.votes(models)).contradicted > LIKELY).mean()
                by_models.append(f"{100 * share:.1f}")
            texts.append(", ".join(by_models))
        print(f"| {100 * favourite:.0f} % | {' | '.join(texts)} |")


def test_boxes_on_nothing_come_first_however_many_they_are(
    measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if measures:
        found = list(worlds(ROWS, SHARES, CORRELATIONS))
        with capsys.disabled():
            print_tables(found)
            print_right_labels_listed()
    for share in (0.05, 0.15):
        world = make_world(Kind.ON_NOTHING, share, 0.3, crowds=False, rows=FEW_ROWS, seed=0)
        *_, five = cells(world, share, 0.3, crowds=False)
        assert recall_with_order([five]) == 1.0
        assert average_precision(five.on_nothing, five.wrong) > 0.6
