"""Verdicts of the coordinate check on simulated runs whose fault is known.

    python -m pytest benchmarks/test_coords_runs.py --benchmark-enable -s

prints the table of docs/design/coordinate-check.md, of random runs, and how often right runs alarm.
Runs are numbered: those of :data:`SHAPED` set its thresholds, others did not. Habits of models are
continuous, so that no test has the same run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from simulated_deployments import HABITS, PROFILES, SIGMA, Fault, Habit, convention, run

from vlmeval_findit.coords import (
    ALIKE_DISTANCE,
    CORNERS_EXCHANGED,
    ORDERS,
    SPACES,
    AnsweredQuery,
    Convention,
    CoordinateVerdict,
    RunArrays,
    RunFit,
    convention_distance,
    conventions,
    diagnose,
    run_arrays,
)

SHAPED, UNSEEN, RIGHT = 1, 2, 3
"""First parts of numbers: random runs, twice, and right runs."""

RUNS, RIGHT_RUNS = 900, 3000

DECLARED = (
    "grid1000/xyxy",
    "pixels/xyxy",
    "unit/xyxy",
    "smart_200704_1605632/xyxy",
    "smart_3136_12845056/xyxy",
    "claude_standard/xyxy",
    "openai_high/xyxy",
    "grid1000/yxyx",
    "pixels/xywh",
    "grid1000/cxcywh",
    "unit/yxhw",
)
QUERIES = (8, 12, 25, 40, 80, 200, 400)
KINDS = {"right": 0.58, "wrong": 0.22, "unlisted": 0.05, "mixed": 0.1, "drifting": 0.05}


class Case(NamedTuple):
    """A run: the kind of its fault, the convention that it declares and that of its answers."""

    kind: str
    declared: Convention
    says: Convention
    queries: Sequence[AnsweredQuery]
    share: float = 0.0  # of the queries of a mixed run in another convention


def case(*number: int, kind: str | None = None) -> Case:
    """Return the run of a number, of any kind or of a given kind."""
    rng = np.random.default_rng(number)
    drawn = str(rng.choice(list(KINDS), p=list(KINDS.values())))
    kind = kind or drawn
    profile = PROFILES[str(rng.choice(list(PROFILES)))]
    declared = convention(str(rng.choice(DECLARED)))
    count, habit = int(rng.choice(QUERIES)), _habit(rng)
    known = conventions()
    # Half of the wrong conventions are as common as those that are declared.
    usual = convention(str(rng.choice(DECLARED)))
    other = usual if rng.random() < 0.5 else known[int(rng.integers(len(known)))]
    if kind == "mixed":
        share = float(rng.uniform(0.06, 0.5))
        queries = run(
            rng, profile, lambda r: other if r.random() < share else declared, habit, count
        )
        return Case(kind, declared, other, queries, share)
    if kind == "drifting":
        steps = 1 + np.linspace(0, rng.choice([-0.2, -0.1, 0.1, 0.2]), 10)
        parts = [
            run(rng, profile, declared, habit, -(-count // 10), Fault((step, step)))
            for step in steps
        ]
        drifting = [
            query._replace(image=f"{part} {query.image}")
            for part, asked in enumerate(parts)
            for query in asked
        ]
        return Case(kind, declared, declared, drifting)
    fault = _fault(rng) if kind == "unlisted" else None
    says = other if kind == "wrong" else declared
    return Case(kind, declared, says, run(rng, profile, says, habit, count, fault))


def _habit(rng: np.random.Generator) -> Habit:
    def sometimes(low: float, high: float) -> float:
        return float(rng.uniform(low, high)) if rng.random() < 0.3 else 0.0

    return Habit(
        miou=float(rng.choice(list(SIGMA))),
        size=1 + sometimes(-0.1, 0.1),
        shift=sometimes(-0.05, 0.05),
        pull=sometimes(0.02, 0.2),
        frame=sometimes(0.01, 0.08),
        coarse=sometimes(0.005, 0.03),
        wrong=0.05 + sometimes(0.1, 0.6),
        missed=0.1 + sometimes(0.0, 0.3),
        extra=0.1 + sometimes(0.0, 0.6),
        garbage=0.01 + sometimes(0.0, 0.15),
    )


def _fault(rng: np.random.Generator) -> Fault:
    if rng.random() < 0.3:
        offset = rng.choice([-1, 1], 2) * rng.uniform(0.03, 0.1, 2)
        return Fault(offset=(float(offset[0]), float(offset[1])))
    both = float(np.exp(rng.choice([-1, 1]) * rng.uniform(0.1, 0.7)))
    along = (both, 1.0) if rng.random() < 0.3 else (both, both)
    return Fault(scale=along)


@pytest.fixture(autouse=True)
def _only_to_measure(measures: bool) -> None:
    if not measures:
        pytest.skip("takes minutes: --benchmark-enable")


@pytest.mark.parametrize("part", [SHAPED, UNSEEN])
def test_verdicts(part: int) -> None:
    verdicts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number in range(RUNS):
        simulated = case(part, number)
        arrays = run_arrays(simulated.queries)
        verdict = diagnose(arrays, simulated.declared).verdict
        verdicts[_kind(simulated, arrays)][verdict.value] += 1
    named = [verdict.value for verdict in CoordinateVerdict]
    print(f"\n| runs {part} | {' | '.join(named)} |\n|{'---|' * (len(named) + 1)}")
    for kind, counts in sorted(verdicts.items()):
        print(f"| {kind} | {' | '.join(str(counts[name]) for name in named)} |")
    alarms = sum(
        verdicts["right"][verdict.value] for verdict in CoordinateVerdict if verdict.alarms
    )
    assert alarms <= RUNS // 1000


def _kind(simulated: Case, arrays: RunArrays) -> str:
    if simulated.kind not in ("wrong", "mixed"):
        return simulated.kind
    distance = convention_distance(arrays, simulated.says, simulated.declared)
    if distance < ALIKE_DISTANCE:
        return "right"
    if simulated.kind == "mixed":
        return f"mixed, {'at least' if simulated.share >= 0.15 else 'below'} 15 %"
    return f"wrong by {'more' if distance >= 0.3 else 'less'} than 0.3"


def test_right_runs_do_not_alarm() -> None:
    verdicts: Counter[CoordinateVerdict] = Counter()
    for number in range(RIGHT_RUNS):
        right = case(RIGHT, number, kind="right")
        verdicts[diagnose(run_arrays(right.queries), right.declared).verdict] += 1
    print({verdict.value: count for verdict, count in verdicts.items()})
    assert (
        sum(verdicts[verdict] for verdict in CoordinateVerdict if verdict.alarms)
        <= RIGHT_RUNS // 1000
    )


# --- every row, of which tests/coords/test_diagnosis.py tries some --------------------------------


def answered(says: Convention, seed: int, habit: Habit) -> RunArrays:
    """Return the answers of a run of 100 queries for phrases."""
    return run_arrays(run(np.random.default_rng(seed), PROFILES["phrases"], says, habit, 100))


def other_convention(says: str, seed: int, declared: str) -> RunFit:
    """Return the fit of a good model's run that is said to be in another convention."""
    arrays = answered(convention(says), seed, Habit(miou=0.7))
    found = diagnose(arrays, convention(declared))
    assert found.verdict is CoordinateVerdict.OTHER
    assert found.fit is not None
    return found.fit


@pytest.mark.parametrize("order", [each.name for each in ORDERS.values() if each.remark])
@pytest.mark.parametrize("space", ["grid1000", "pixels", "unit"])
@pytest.mark.parametrize("declared", ["grid1000/xyxy", "grid1000/yxyx", "pixels/xywh"])
def test_exchanged_corners_are_named(declared: str, space: str, order: str) -> None:
    found = other_convention(f"{space}/{order}", 0, declared)
    assert found.best.name == f"{space}/{order}"
    assert CORNERS_EXCHANGED in found.best.description


@pytest.mark.parametrize("space", [name for name in SPACES if name.startswith("x_")])
@pytest.mark.parametrize("order", ["xyxy", "yxyx", "xywh"])
def test_another_unit_on_each_side_is_named(order: str, space: str) -> None:
    assert other_convention(f"{space}/{order}", 1, "grid1000/xyxy").best.name == f"{space}/{order}"


@pytest.mark.parametrize("name", [name for name in SPACES if name.startswith("square")])
@pytest.mark.parametrize("declared", ["grid1000/xyxy", "pixels/xyxy"])
def test_inputs_of_encoders_are_named(declared: str, name: str) -> None:
    found = other_convention(f"{name}/xyxy", 2, declared)
    assert f"{name}/xyxy" in (found.best.name, *found.lookalikes)


@pytest.mark.parametrize(
    "declared", ["grid1000/xyxy", "pixels/xyxy", "unit/yxyx", "square640/xyxy"]
)
@pytest.mark.parametrize("habit", HABITS)
def test_no_habit_of_a_model_alarms(habit: str, declared: str) -> None:
    arrays = answered(convention(declared), 3, HABITS[habit])
    assert not diagnose(arrays, convention(declared)).verdict.alarms
