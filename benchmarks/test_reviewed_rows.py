"""What reviews of random rows say of all rows, in simulated audits whose true values are known.

    python -m pytest benchmarks/test_reviewed_rows.py

fails if a value is biased, or its interval holds the truth too seldom.
"""

from __future__ import annotations

import numpy as np
import pytest
from simulated_audits import FOUND, Simulated, simulate

from vlmeval_findit.statistics import metric_intervals, paired_difference


@pytest.fixture(scope="module")
def audits() -> list[list[Simulated]]:
    return [simulate(seed) for seed in range(150)]


def lead(models: list[Simulated], weighted: bool) -> tuple[float, bool]:
    """Return by how much a voter leads the held-out model, and whether the interval has 0."""
    voter, _, other = [each.all_rows if weighted else each.as_reviewed for each in models]
    test = paired_difference(voter, other, "F1")
    assert test.interval is not None
    assert test.p_value is not None
    covers = test.interval.low <= 0 <= test.interval.high
    assert covers == (test.p_value >= 0.05)
    return test.value, covers


def test_random_rows_take_the_voters_lead_away(audits: list[list[Simulated]]) -> None:
    weighted = [lead(models, weighted=True) for models in audits]
    plain = [lead(models, weighted=False) for models in audits]
    assert abs(np.mean([value for value, _ in weighted])) < 0.4
    assert np.mean([covers for _, covers in weighted]) >= 0.95
    # The same models, each row as it was reviewed: voters seem to be better.
    assert np.mean([value for value, _ in plain]) > 0.9
    assert np.mean([covers for _, covers in plain]) < 0.95


@pytest.mark.parametrize("wrong", [0, 0.14])
def test_dropping_doubted_rows_would_favour_the_voters(wrong: float) -> None:
    """The study's figure: equal models differ by 0.4 to 4.2 points, on right labels too."""
    audits = [simulate(seed, wrong) for seed in range(40)]
    leads = [models[0].unlisted - models[2].unlisted for models in audits]
    assert 0.4 < np.mean(leads) < 4.2


@pytest.mark.parametrize("model", [0, 2], ids=["voter", "held-out"])
def test_values_of_all_rows_are_unbiased_and_covered(
    audits: list[list[Simulated]], model: int
) -> None:
    errors = []
    covered = []
    for models in audits:
        interval = metric_intervals(models[model].all_rows)["F1"]
        assert interval is not None
        covered.append(interval.low <= 100 * FOUND <= interval.high)
        errors.append((models[model].all_rows.value("F1") or 0) - models[model].true)
    # Three standard errors of the mean of 150 audits
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))
    assert np.mean(covered) >= 0.95
