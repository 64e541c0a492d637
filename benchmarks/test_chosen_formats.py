"""What the best of many formats says: bias, coverage, false ranks and power, as it was published
before (the best format on all images) and elsewhere.

    python -m pytest benchmarks/test_chosen_formats.py --benchmark-enable -s

prints the tables of benchmarks/README.md. Without ``--benchmark-enable`` few boards are drawn, to
show that all settings can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from simulated_choices import Choice, Setting, simulate

FORMATS = (8, 19, 40, 97)
IMAGES = (50, 200, 1000)
SHARED = (0.5, 0.8, 0.95)
DATASETS = {1: 0.8, 5: 0.4}  # Five take long: which share of the boards is drawn
RATE = 0.6


@pytest.fixture
def times(measures: bool) -> int:
    """How many boards are drawn: 500 have a Monte Carlo error of 1.0 points at 5 and 95 %."""
    return 500 if measures else 2


def boards(setting: Setting, times: int) -> list[Choice]:
    seed = [len(setting.rates), setting.images, setting.datasets, round(100 * setting.shared)]
    rng = np.random.default_rng(seed)
    return [simulate(rng, setting) for _ in range(times)]


def percent(values: Sequence[bool]) -> float:
    return 100 * float(np.mean(values))


def bias(drawn: Sequence[Choice]) -> tuple[float, float]:
    """Return how far both values are above the true one, in points."""
    reported = float(np.mean([each.reported - each.truth for each in drawn]))
    return reported, float(np.mean([each.elsewhere - each.truth for each in drawn]))


def coverage(drawn: Sequence[Choice]) -> tuple[float, float]:
    """Return the share of intervals that hold the true value."""
    reported = [e.reported_interval.low <= e.truth <= e.reported_interval.high for e in drawn]
    elsewhere = [e.elsewhere_interval.low <= e.truth <= e.elsewhere_interval.high for e in drawn]
    return percent(reported), percent(elsewhere)


def significant(drawn: Sequence[Choice]) -> tuple[float, float, float]:
    """Return how often "many" and "one" differ: reported, elsewhere, in a named format."""
    tests = [(e.reported_test, e.elsewhere_test, e.named_test) for e in drawn]
    reported, elsewhere, named = (
        percent([test.significant for test in column]) for column in zip(*tests, strict=True)
    )
    return reported, elsewhere, named


@pytest.mark.parametrize("datasets", DATASETS)
def test_equally_good_formats(datasets: int, times: int, measures: bool) -> None:
    """All formats of both models are equally good."""
    columns = "datasets | images | correlation | formats | bias | coverage | false ranks"
    print(f"\n| {columns} |\n|{'---|' * 7}")
    for images, shared, formats in product(IMAGES, SHARED, FORMATS):
        setting = Setting([RATE] * formats, RATE, images, datasets, shared)
        drawn = boards(setting, max(1, round(times * DATASETS[datasets])))
        off, held, false = bias(drawn), coverage(drawn), significant(drawn)
        print(
            f"| {datasets} | {images:,} | {shared} | {formats} | {off[0]:+.1f}, {off[1]:+.1f} | "
            f"{held[0]:.1f}, {held[1]:.1f} | {false[0]:.1f}, {false[1]:.1f} |",
            flush=True,
        )
        if measures:
            assert abs(off[1]) <= 1.2
            assert held[1] >= 90
            assert false[1] <= 10


# How many standard errors "many" leads by, in all of its formats
LEAD = 3.0


@pytest.fixture
def times_for_an_error(measures: bool) -> int:
    """How many boards tell the standard error of a difference."""
    return 200 if measures else 20


def test_power(times: int, times_for_an_error: int, measures: bool) -> None:
    """All formats of "many" are better than "one" by the same."""
    columns = "images | correlation | formats | lead | elsewhere | named beforehand"
    print(f"\n| {columns} |\n|{'---|' * 6}")
    for images, shared, formats in product(IMAGES, SHARED, (8, 97)):
        equal = boards(Setting([RATE] * 2, RATE, images, 1, shared), times_for_an_error)
        lead = LEAD * float(np.std([each.named_test.value for each in equal])) / 100
        drawn = boards(Setting([RATE + lead] * formats, RATE, images, 1, shared), times)
        _, elsewhere, named = significant(drawn)
        print(
            f"| {images:,} | {shared} | {formats} | {100 * lead:.1f} | {elsewhere:.0f} % | "
            f"{named:.0f} % |",
            flush=True,
        )
        if measures:
            assert elsewhere >= named - 12


def test_formats_of_different_quality(times: int, measures: bool) -> None:
    """True rates of formats fall from that of "one": a half chooses a worse format more often."""
    print(f"\n| images | falling by | formats | bias | coverage |\n|{'---|' * 5}")
    for images, fall, formats in product(IMAGES, (0.02, 0.1, 0.3), (8, 40)):
        rates = np.linspace(RATE, RATE - fall, formats).tolist()
        drawn = boards(Setting(rates, RATE, images, 1, 0.8), times)
        off, held = bias(drawn), coverage(drawn)
        print(
            f"| {images:,} | {100 * fall:.0f} points | {formats} | {off[0]:+.1f}, {off[1]:+.1f} | "
            f"{held[0]:.1f}, {held[1]:.1f} |",
            flush=True,
        )
        if measures:
            assert -2.5 <= off[1] <= 0.7
