"""How often a test shows the difference that ``compare --detect`` promises: 80 % of the times.

    python -m pytest benchmarks/test_sample_size.py --benchmark-enable -s

prints the tables of benchmarks/README.md. Without ``--benchmark-enable`` few models are drawn,
and only gross faults are found.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated import F1, Pictures, differences

from vlmeval_findit.statistics import (
    Pilot,
    images_needed,
    pilot_of,
    smallest_difference,
)

ONE_OBJECT = (1,)
RATES = (0.6, 0.9, 0.97)
IMAGES = (50, 200, 1000)
LARGE = 4000  # Images of a pilot that knows its variance


def pilot(seed: int, pictures: Pictures, rate: float) -> Pilot:
    """Return what a run of these pictures and another one at a rate tell."""
    random = np.random.default_rng(seed)
    drawn = pictures.drawn(random)
    sides = (pictures, replace(pictures, rate=rate))
    left, right = (each.answered(random, drawn, "") for each in sides)
    told = pilot_of(left, right, F1.name)
    assert told is not None
    return told


def rate_below(pictures: Pictures, points: float) -> float:
    """Return the rate of a model whose true F1 is so many points lower."""
    low, high = 0.0, pictures.rate
    for _ in range(50):
        middle = (low + high) / 2
        if 100 * (pictures.truth - replace(pictures, rate=middle).truth) > points:
            low = middle
        else:
            high = middle
    return high


def shown(pictures: Pictures, points: float, times: int) -> float:
    """Return how often, in percent, a difference of so many points is found significant."""
    tests = differences(1, times, [pictures], [rate_below(pictures, points)])
    return 100 * float(np.mean([test.significant for test in tests]))


@pytest.mark.parametrize("objects", [ONE_OBJECT, ()], ids=["one object", "1 to 15 objects"])
def test_a_difference_is_shown_with_the_chance(objects: tuple[int, ...], measures: bool) -> None:
    """The pilot is of the two models whose difference is to be shown."""
    times = 1000 if measures else 40
    print("\n| rate, images | smallest difference | shown in |")
    print("|---|---|---|")
    for rate in RATES:
        for images in IMAGES:
            pictures = Pictures(LARGE, rate, objects=objects)
            points = 0.0
            # The variance depends on the difference
            for _ in range(3):
                told = pilot(0, pictures, rate_below(pictures, points))
                size = smallest_difference(told, images)
                assert size is not None
                points = size.value
            found = shown(replace(pictures, count=images), points, times)
            print(f"| {rate}, {images:,} | {points:.1f} | {found:.1f} % |", flush=True)
            # Near 100 % more, as at least so many objects must differ
            assert (73 if measures else 55) < found, (rate, images)
            assert found < (93 if measures else 100), (rate, images)


def test_so_many_images_are_needed(measures: bool) -> None:
    """The pilot is of two equal models, as before anything is improved."""
    times = 1000 if measures else 20
    print("\n| rate, points | images | shown in |")
    print("|---|---|---|")
    for rate in RATES:
        for points in (2, 5, 10) if measures else (10,):
            pictures = Pictures(LARGE, rate)
            size = images_needed(pilot(0, pictures, rate), points)
            assert size is not None
            found = shown(replace(pictures, count=round(size.value)), points, times)
            print(f"| {rate}, {points} | {size.value:,.0f} | {found:.1f} % |", flush=True)
            assert found > (65 if measures else 40), (rate, points)


def test_the_range_of_a_small_pilot_holds(measures: bool) -> None:
    times = 1000 if measures else 40
    print("\n| rate, images of the pilot | range holds | median range, of the true variance |")
    print("|---|---|---|")
    for rate in RATES:
        for images in (20, 50, 200):
            pictures = Pictures(images, rate, objects=ONE_OBJECT)
            of_many = pilot(0, replace(pictures, count=100_000), rate)
            variance = of_many.variance * of_many.images / images
            pilots = [pilot(seed, pictures, rate) for seed in range(times)]
            held = [each.low <= variance <= each.high for each in pilots]
            low = np.median([each.low for each in pilots]) / variance
            high = np.median([each.high for each in pilots]) / variance
            share = 100 * float(np.mean(held))
            print(f"| {rate}, {images} | {share:.1f} % | {low:.2f} to {high:.2f} |", flush=True)
            assert share >= (95 if measures else 80), (rate, images)
