"""How well the audit finds each kind of fault: by its share, models, how alike they err, crowds.

::

    python -m pytest benchmarks/test_label_faults.py --benchmark-enable -s

prints the tables of benchmarks/README.md. A world has faults of one kind. Beside it stands
cleanlab's ObjectLab, averaged over models, but for crowds, where it is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from label_worlds import Asked, Kind, LabelWorld, make_world
from numpy.typing import NDArray
from scipy.stats import binomtest
from test_label_audit import average_precision, quality_by_objectlab

from vlmeval_findit.statistics import label_doubts

Array = NDArray[np.float64]

ROWS, FEW_ROWS = 200, 60
SHARES = (0.01, 0.02, 0.05, 0.15)
MODELS = (2, 3, 5)
CORRELATIONS = (0.0, 0.3, 0.7)
USUAL = 0.3  # The correlation that the audit believes of models of different families
LIKELY = 0.5
BINS = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


@dataclass(frozen=True)
class Cell:
    """The audit of a world by so many models."""

    kind: Kind
    share: float
    correlation: float
    crowds: bool
    models: int
    p: Array  # (n,)
    wrong: NDArray[np.bool_]  # (n,)
    unfound: NDArray[np.bool_]  # (n,) a labelled box that no model found
    objectlab: Array | None  # (n,); None: not asked


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
        by_model = [quality_by_objectlab(world.labels, of_model) for of_model in world.answers]
    for models in MODELS:
        votes = world.votes(models)
        unfound = np.zeros(len(world.labels), bool)
        np.logical_or.at(unfound, votes.labelled.row, ~votes.labelled.detected.any(1))
        yield Cell(
            kind=world.kind,
            share=share,
            correlation=correlation,
            crowds=crowds,
            models=models,
            p=label_doubts(votes).wrong,
            wrong=world.wrong,
            unfound=unfound & (not votes.single),
            objectlab=1 - np.mean(by_model[:models], axis=0) if by_model else None,
        )


# --- figures --------------------------------------------------------------------------------------


def precision(some: Sequence[Cell]) -> float:
    """Return the share of the listed rows that are wrong; NaN: none is listed."""
    listed = np.concatenate([cell.p > LIKELY for cell in some])
    wrong = np.concatenate([cell.wrong for cell in some])
    return float(wrong[listed].mean()) if listed.any() else float("nan")


def recall(some: Sequence[Cell]) -> float:
    """Return the share of the wrong rows that are listed."""
    listed = np.concatenate([cell.p > LIKELY for cell in some])
    wrong = np.concatenate([cell.wrong for cell in some])
    return float(listed[wrong].mean())


def recall_with_order(some: Sequence[Cell]) -> float:
    """Return the share of the wrong rows that are listed, or in the order of boxes not found."""
    shown = np.concatenate([(cell.p > LIKELY) | cell.unfound for cell in some])
    wrong = np.concatenate([cell.wrong for cell in some])
    return float(shown[wrong].mean())


def mean_average_precision(some: Sequence[Cell], ours: bool) -> float:
    """Return it over the cells that ObjectLab judged, too."""
    values = []
    for cell in some:
        if cell.objectlab is not None:
            values.append(average_precision(cell.p if ours else cell.objectlab, cell.wrong))
    return float(np.mean(values))


def print_tables(found: Sequence[Cell]) -> None:
    def of(models: int, **chosen: object) -> list[Cell]:
        return [
            cell
            for cell in found
            if cell.models == models
            and all(getattr(cell, name) == value for name, value in chosen.items())
        ]

    print("\nkind: recall of the list at 1, 2, 5, 15 %; with boxes not found; average precision")
    for kind in Kind:
        texts = []
        for models in MODELS:
            by_share = (f"{100 * recall(of(models, kind=kind, share=s)):.0f}" for s in SHARES)
            whole = of(models, kind=kind)
            order = f"{100 * recall_with_order(whole):.0f}"
            means = [f"{mean_average_precision(whole, ours):.2f}" for ours in (True, False)]
            texts.append(f"{', '.join(by_share)}; {order}; {' / '.join(means)}")
        print(f"| {kind.asked.value}: {kind.fault} | {' | '.join(texts)} |")
    print("\ncorrelation, crowds: precision and recall of the list at 1, 2, 5, 15 %")
    for crowds in (False, True):
        for correlation in CORRELATIONS:
            texts = []
            for models in MODELS:
                cells_of = [
                    of(models, crowds=crowds, correlation=correlation, share=s) for s in SHARES
                ]
                both = (f"{100 * precision(c):.0f}/{100 * recall(c):.0f}" for c in cells_of)
                texts.append(", ".join(both))
            print(f"| {correlation}, {'crowds' if crowds else 'few'} | {' | '.join(texts)} |")
    print("\ncalibration: mean p; observed share, its interval; rows")
    for low, high in pairwise(BINS):
        texts = [calibration(of(models), low, high) for models in MODELS]
        print(f"| {low:g} to {high:g} | {' | '.join(texts)} |")


def calibration(some: Sequence[Cell], low: float, high: float) -> str:
    """Say how many rows whose probabilities lie between two are wrong."""
    p = np.concatenate([cell.p for cell in some])
    wrong = np.concatenate([cell.wrong for cell in some])
    here = (p >= low) & ((p < high) | (high == 1))
    if not here.any():
        return "–"
    interval = binomtest(int(wrong[here].sum()), int(here.sum())).proportion_ci(method="wilson")
    ends = f"{interval.low:.3f} to {interval.high:.3f}"
    return f"{p[here].mean():.3f}: {wrong[here].mean():.3f} ({ends}), {here.sum():,}"


def test_boxes_on_nothing_are_listed_however_many_they_are(
    measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if measures:
        found = list(worlds(ROWS, SHARES, CORRELATIONS))
        with capsys.disabled():
            print_tables(found)
    for share in (0.05, 0.15):
        world = make_world(Kind.ON_NOTHING, share, USUAL, crowds=False, rows=FEW_ROWS, seed=0)
        *_, five = cells(world, share, USUAL, crowds=False)
        assert recall([five]) == 1.0
