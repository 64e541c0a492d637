"""Races of formats: how often they drop the format that all queries choose, and what they save.

    python -m pytest benchmarks/test_format_race.py --benchmark-enable -s

prints the table of benchmarks/README.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from simulated_races import raced, rows_of

from vlmeval_findit.statistics import ALPHA

RACES = 400

SETTINGS: Sequence[tuple[str, int, list[float]]] = (
    ("one 6 points better", 200, [0.66, *[0.6] * 4, 0.5, 0.5, 0.3]),
    ("one 5 points better", 50, [0.65, *[0.6] * 7]),
    ("two close", 50, [0.6, 0.58, 0.58, 0.5, 0.5, 0.3, 0.3, 0.1]),
    ("one 2 points better", 200, [0.62, *[0.6] * 7]),
    ("all equal", 50, [0.6] * 8),
    ("all equal", 200, [0.6] * 8),
    ("two equal", 50, [0.6] * 2),
    ("16 equal", 50, [0.6] * 16),
    ("all near 100 %", 50, [0.99, *[0.97] * 6, 0.9]),
    ("0.5 to 0.8", 20, np.linspace(0.8, 0.5, 8).tolist()),
    ("0.5 to 0.8", 50, np.linspace(0.8, 0.5, 8).tolist()),
    ("0.5 to 0.8", 200, np.linspace(0.8, 0.5, 8).tolist()),
    ("0.05 to 0.85", 50, [0.85, 0.8, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05]),
    ("half far behind", 50, [*[0.8] * 8, *[0.2] * 8]),
)
"""What the formats are, images, and how often each finds a box."""


@pytest.fixture(autouse=True)
def _only_to_measure(measures: bool) -> None:
    if not measures:
        pytest.skip("takes minutes: --benchmark-enable")


def test_races_rarely_drop_the_best_format() -> None:
    print("\n| true rates | formats | images | best dropped | race, search: truly best | saved |")
    print("|---|---|---|---|---|---|")
    saved = []
    for name, images, rates in SETTINGS:
        rng = np.random.default_rng([images, len(rates)])
        races = []
        for _ in range(RACES):
            order = rng.permutation(len(rates))
            rows = rows_of(rng, [rates[at] for at in order], images)
            truly = list(rows)[order.tolist().index(0)]
            race = raced(rows)
            found = race.won == truly, race.chosen == truly
            races.append((race.chosen in race.dropped, *found, 1 - race.asked))
        lost, won, chosen, spared = 100 * np.mean(races, axis=0)
        both = f"{won:.1f}, {chosen:.1f} %" if max(rates) > sorted(rates)[-2] else "–"
        print(
            f"| {name} | {len(rates)} | {images} | {lost:.1f} % | {both} | {spared:.0f} % |",
            flush=True,
        )
        saved.append(spared)
        assert lost <= 100 * ALPHA + 3 * 1.1, name
    print(f"saved on average: {np.mean(saved):.0f} %")
    assert np.mean(saved) >= 25
