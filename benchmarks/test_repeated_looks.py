"""Looks at a training after every checkpoint: how often some table's claim is false.

    python -m pytest benchmarks/test_repeated_looks.py --benchmark-enable -s

prints the table of benchmarks/README.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from simulated_trainings import claims_of, simulated_runs

__all__ = ["simulated_runs"]

CHECKPOINTS = 20
TRAININGS = 200


@pytest.fixture(autouse=True)
def _only_to_measure(measures: bool) -> None:
    if not measures:
        pytest.skip("takes minutes: --benchmark-enable")


def rising(low: float, high: float, until: int) -> list[float]:
    """Return rates that rise evenly until a checkpoint, and then stay."""
    rates = np.linspace(low, high, until).tolist()
    return rates + [high] * (CHECKPOINTS - until)


TRAINED: Sequence[tuple[str, Sequence[float], float]] = (
    ("0.6 throughout", [0.6] * CHECKPOINTS, 0.2),
    ("0.6 throughout", [0.6] * CHECKPOINTS, 0.6),
    ("0.95 throughout", [0.95] * CHECKPOINTS, 0.2),
    ("0.4, then 0.6", [0.4] * 10 + [0.6] * 10, 0.2),
    ("0.4 to 0.7 in 10 steps", rising(0.4, 0.7, 10), 0.2),
    ("0.5 to 0.65 in 20 steps", rising(0.5, 0.65, 20), 0.2),
)
"""How often each checkpoint finds a box, and the correlation of the hits of an image."""


@pytest.mark.usefixtures("simulated_runs")
def test_of_20_tables_of_a_training_few_are_false() -> None:
    print(
        "\n| true rates | correlation | images | a false claim | right claims in the last table |"
    )
    print("|---|---|---|---|---|")
    for name, rates, alike in TRAINED:
        for pictures in (50, 200):
            rng = np.random.default_rng(pictures)
            trained = [claims_of(rng, rates, pictures, alike) for _ in range(TRAININGS)]
            false = 100 * np.mean([each.false > 0 for each in trained])
            right = np.mean([each.right_at_last for each in trained])
            print(f"| {name} | {alike} | {pictures} | {false:.1f} % | {right:.1f} |", flush=True)
            assert false <= 5 + 3 * 1.5, (name, alike, pictures)
