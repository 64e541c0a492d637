"""How often the doctor alarms over runs whose convention is right.

    python -m pytest tests/benchmarks/test_doctor_alarms.py --benchmark-enable -s

prints a table, a line a habit of the model.  A run takes a third of a second.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from simulated_deployments import HABITS, PROFILES, convention, run

from vlmeval_findit.doctor.diagnosis import diagnose
from vlmeval_findit.doctor.evidence import evidence_of

QUERIES = 200
TIMES = 60
"""Runs of every habit; with 17 habits 1,020 runs."""

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


@pytest.fixture(autouse=True)
def _only_to_measure(measures: bool) -> None:
    if not measures:
        pytest.skip("takes minutes: --benchmark-enable")


def test_right_runs_do_not_alarm() -> None:
    print("\n| model | runs | fits | undecided | alarms |\n|---|---|---|---|---|")
    alarms = 0
    for place, (name, habit) in enumerate(HABITS.items()):
        verdicts: Counter[str] = Counter()
        for time in range(TIMES):
            rng = np.random.default_rng([place, time])
            profile = PROFILES[str(rng.choice(list(PROFILES)))]
            declared = convention(str(rng.choice(DECLARED)))
            made = run(rng, profile, declared, habit, QUERIES)
            found = diagnose(evidence_of(made), declared)
            verdicts["alarm" if found.verdict.alarms else found.verdict.value] += 1
        alarms += verdicts["alarm"]
        cells = f"{TIMES} | {verdicts['ok']} | {verdicts['undecided']} | {verdicts['alarm']}"
        print(f"| {name} | {cells} |", flush=True)
    # At most 1 in 1,000.
    assert alarms <= TIMES * len(HABITS) // 1000
