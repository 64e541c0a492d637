"""How often a table calls an equally good format worse than the best, and finds a worse one.

    python -m pytest benchmarks/test_best_of_many.py --benchmark-enable -s

prints the tables of benchmarks/README.md. Without ``--benchmark-enable`` few boards are drawn,
and only gross faults are found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from equal_formats import Claims, Formats
from scipy import stats

from vlmeval_findit.benchmarks.findit import F1
from vlmeval_findit.statistics import (
    BestOf,
    Difference,
    Estimate,
    FamilyOfTests,
    correct_by_holm,
    paired_difference,
)

COUNTS = (8, 19, 40)
IMAGES = (50, 200, 400)
ALIKE = (0.5, 0.8)


def test_of_equal_formats_few_are_called_worse(measures: bool) -> None:
    print("\n| formats, images, correlation | any star | all intervals hold | mean loss |")
    print("|---|---|---|---|")
    boards = 300 if measures else 4
    for count in COUNTS:
        for images in IMAGES:
            for alike in ALIKE:
                random = np.random.default_rng([count, images])
                formats = Formats((0.6,) * count, images, alike)
                drawn = [formats.claims(random) for _ in range(boards)]
                false = 100 * np.mean([claims.any_false for claims in drawn])
                held = 100 * np.mean([claims.holds_all for claims in drawn])
                loss = np.mean([claims.loss for claims in drawn])
                print(
                    f"| {count}, {images}, {alike} | {false:.1f} % | {held:.1f} % | {loss:.1f} |",
                    flush=True,
                )
                assert not measures or (false <= 5 + 3 * 1.3 and held >= 95 - 3 * 1.3)


# --- ways to correct ------------------------------------------------------------------------------

Correction = Callable[[Sequence[Estimate], int], Mapping[int, Difference]]


def as_named(estimates: Sequence[Estimate], best: int) -> Mapping[int, Difference]:
    """Correct by Holm for the tests against the best, as if it had been named beforehand."""
    others = [at for at in range(len(estimates)) if at != best]
    tests = correct_by_holm(
        (paired_difference(estimates[at], estimates[best], F1.name) for at in others),
        FamilyOfTests.FORMATS,
    )
    return dict(zip(others, tests, strict=True))


def holm_of_all_pairs(estimates: Sequence[Estimate], best: int) -> Mapping[int, Difference]:
    pairs = list(combinations(range(len(estimates)), 2))
    tests = correct_by_holm(
        (paired_difference(estimates[a], estimates[b], F1.name) for a, b in pairs),
        FamilyOfTests.FORMATS,
    )
    of_pair = dict(zip(pairs, tests, strict=True))
    return {b if a == best else a: test for (a, b), test in of_pair.items() if best in (a, b)}


def tukey(estimates: Sequence[Estimate], best: int) -> Mapping[int, Difference]:
    choice = BestOf(len(estimates))
    return {
        at: choice.difference(each, estimates[best], F1.name)
        for at, each in enumerate(estimates)
        if at != best
    }


def bootstrap(estimates: Sequence[Estimate], best: int) -> Mapping[int, Difference]:
    """Correct by the largest of all pairs' t in 1,000 samples of multiplied influences."""
    influence = np.stack([each.influence[:, 0] for each in estimates], axis=1)
    signs = np.random.default_rng(1).normal(size=(1_000, len(influence)))
    values = signs @ influence
    left, right = np.triu_indices(len(estimates), 1)
    errors = np.sqrt(((influence[:, left] - influence[:, right]) ** 2).sum(axis=0))
    errors = np.where(errors > 0, errors, np.inf)
    largest = (np.abs(values[:, left] - values[:, right]) / errors).max(axis=1)
    tests = {}
    for at, each in enumerate(estimates):
        if at != best:
            test = paired_difference(each, estimates[best], F1.name)
            reached = stats.norm.isf((test.p_value or 1.0) / 2)
            tests[at] = replace(test, corrected=float((largest >= reached).mean()))
    return tests


CORRECTIONS: Mapping[str, Correction] = {
    "Holm, as if named": as_named,
    "Holm, all pairs": holm_of_all_pairs,
    "range": tukey,
    "bootstrap": bootstrap,
}

TRUE_RATES: Mapping[str, Sequence[float]] = {
    "19 equal": (0.6,) * 19,
    "18 equal, one 12 points worse": (0.6,) * 18 + (0.48,),
    "one 12 points better": (0.72,) + (0.6,) * 18,
    "10 at 0.1 to 0.3, 9 at 0.5 to 0.7": (*np.linspace(0.1, 0.3, 10), *np.linspace(0.5, 0.7, 9)),
}


def test_ways_to_correct(measures: bool) -> None:
    """Each cell: boards with a false star, and the share of worse formats that have a star."""
    print(f"\n| true rates of 19 formats, 200 images | {' | '.join(CORRECTIONS)} |")
    print(f"|---|{'---|' * len(CORRECTIONS)}")
    boards = 200 if measures else 2
    for name, rates in TRUE_RATES.items():
        formats = Formats(rates, images=200)
        random = np.random.default_rng(len(name))
        drawn: dict[str, list[Claims]] = {correction: [] for correction in CORRECTIONS}
        for _ in range(boards):
            estimates = formats.estimates(random)
            best = int(np.argmax([each.value(F1.name) for each in estimates]))
            for correction, tests_of in CORRECTIONS.items():
                drawn[correction].append(formats.judged(best, dict(tests_of(estimates, best))))
        cells = []
        for claims in drawn.values():
            false = 100 * np.mean([each.any_false for each in claims])
            worse = sum(each.worse for each in claims)
            right = 100 * sum(each.right for each in claims) / worse if worse else None
            cells.append(f"{false:.1f}" + ("" if right is None else f", {right:.0f}"))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        of_range = [claims.any_false for claims in drawn["range"]]
        assert not measures or np.mean(of_range) <= 0.1
