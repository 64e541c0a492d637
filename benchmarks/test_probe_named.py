"""Count the conventions that the probe names from forty answers with errors.

    python -m pytest benchmarks/test_probe_named.py --benchmark-enable -s

prints the tables of docs/design/coordinate-check.md.  An examination takes half a second.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from probe_deployments import answers
from simulated_deployments import Fault

from vlmeval_findit.coords import (
    ALIKE_DISTANCE,
    ORDERS,
    SPACES,
    Convention,
    ProbeVerdict,
    convention_distance,
    conventions,
    judge_probe,
    run_arrays,
)

NOISES = (0.05, 0.1)
"""Errors of edges, as standard deviations in shares of the object's side: mean IoU .84 and .72."""

TIMES = 20
"""Examinations of every fault."""

MODELS = {
    "boxes 8 % too large": {"size": 1.08},
    "boxes 8 % too small": {"size": 0.92},
    "three of ten about another place": {"wrong": 0.3},
    "whole hundredths of the frame": {"coarse": 10},
}
"""Models with the right convention."""

FAULTS = {
    "none": Fault(),
    "1.0126 times about the middle": Fault((1.0126, 1.0126), (-0.0063, -0.0063)),
    "moved by 1 % along x": Fault(offset=(0.01, 0.0)),
    "moved by 2 % along y": Fault(offset=(0.0, 0.02)),
    "y scaled by 0.97": Fault(scale=(1.0, 0.97)),
    "x scaled by 1.28": Fault(scale=(1.28, 1.0)),
}


@pytest.fixture(autouse=True)
def _only_to_measure(measures: bool) -> None:
    if not measures:
        pytest.skip("takes minutes: --benchmark-enable")


def test_conventions_are_named() -> None:
    """Nothing is declared; answers have the order that is asked for."""
    print("\n| errors | conventions | named | undecided | wrong |\n|---|---|---|---|---|")
    wrong = 0
    for noise in NOISES:
        counts: Counter[str] = Counter()
        notes = []
        for place, truth in enumerate(conventions()):
            queries = answers(np.random.default_rng(place), truth, noise)
            finding = judge_probe(queries, None, Convention(SPACES["grid1000"], truth.order))
            kind = _kind(finding.verdict, truth, finding.named, queries)
            counts[kind] += 1
            if kind != "named":
                name = finding.named.name if finding.named else "-"
                notes.append(f"{truth.name}: {finding.verdict.value}, {name}")
        wrong += counts["wrong"]
        cells = " | ".join(str(counts[kind]) for kind in ("named", "undecided", "wrong"))
        print(f"| {noise} | {counts.total()} | {cells} |", *notes, sep="\n", flush=True)
    # A convention that cannot be identified is undecided, and hardly ever another.
    assert wrong <= 0.01 * len(NOISES) * len(conventions())


def _kind(verdict: ProbeVerdict, truth: Convention, named: Convention | None, queries: list) -> str:
    if verdict is not ProbeVerdict.NAMED or named is None:
        return "undecided" if verdict in (ProbeVerdict.UNDECIDED, ProbeVerdict.NOTHING) else "wrong"
    return (
        "named"
        if convention_distance(run_arrays(queries), truth, named) < ALIKE_DISTANCE
        else "wrong"
    )


def test_right_models_are_confirmed() -> None:
    """Thousandths are declared and answered, by weak models."""
    print("\n| model | errors | examinations | confirmed | undecided | faults |")
    print("|---|---|---|---|---|---|")
    declared = Convention(SPACES["grid1000"], ORDERS["xyxy"])
    for name, habit in MODELS.items():
        for noise in NOISES:
            counts: Counter[str] = Counter()
            for time in range(TIMES):
                queries = answers(np.random.default_rng([time, 9]), declared, noise, **habit)
                verdict = judge_probe(queries, declared, declared).verdict
                counts["fault" if verdict.is_fault else verdict.value] += 1
            cells = f"{counts['confirmed']} | {counts['undecided']} | {counts['fault']}"
            print(f"| {name} | {noise} | {TIMES} | {cells} |", flush=True)
            assert not counts["fault"]


def test_faults_are_noticed() -> None:
    """Thousandths are declared, and answered with a scale or an offset."""
    print("\n| fault | errors | examinations | noticed |\n|---|---|---|---|")
    declared = Convention(SPACES["grid1000"], ORDERS["xyxy"])
    for name, fault in FAULTS.items():
        for noise in NOISES:
            noticed = 0
            for time in range(TIMES):
                queries = answers(np.random.default_rng([time, 7]), declared, noise, fault)
                noticed += judge_probe(queries, declared, declared).verdict.is_fault
            print(f"| {name} | {noise} | {TIMES} | {noticed} |", flush=True)
            assert name != "none" or not noticed
