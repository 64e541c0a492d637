"""How often the ranges of ranks of a column hold all true ranks, and how wide they are.

    python -m pytest benchmarks/test_rank_ranges.py --benchmark-enable -s

prints the table of benchmarks/README.md. Without ``--benchmark-enable`` few columns are drawn,
and only gross faults are found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from equal_formats import Formats

from vlmeval_findit.benchmarks.findit import F1
from vlmeval_findit.statistics import BestOf, RankRange, rank_ranges

MODELS = (4, 12, 50)
IMAGES = (50, 200, 400)


def equal(count: int) -> Sequence[float]:
    return (0.6,) * count


def one_better(count: int) -> Sequence[float]:
    return (0.72, *equal(count - 1))


def spread(count: int) -> Sequence[float]:
    return tuple(np.linspace(0.3, 0.8, count))


TRUE_RATES: Mapping[str, Callable[[int], Sequence[float]]] = {
    "equal": equal,
    "one 12 points better": one_better,
    "30 to 80 %": spread,
}


def true_ranges(rates: Sequence[float]) -> list[RankRange]:
    """Return the ranks of models; those of equal models are all that they share."""
    better = [sum(other > rate for other in rates) for rate in rates]
    worse = [sum(other < rate for other in rates) for rate in rates]
    return [
        RankRange(1 + above, len(rates) - below) for above, below in zip(better, worse, strict=True)
    ]


def test_ranges_hold_the_true_ranks(measures: bool) -> None:
    print("\n| true rates, models, images | all ranges hold | a range holds | mean width |")
    print("|---|---|---|---|")
    columns = 400 if measures else 4
    for name, rates_of in TRUE_RATES.items():
        for models in MODELS:
            rates = rates_of(models)
            truth = true_ranges(rates)
            for images in IMAGES:
                random = np.random.default_rng([models, images])
                formats = Formats(rates, images)
                held, widths = [], []
                for _ in range(columns):
                    ranges = rank_ranges(formats.estimates(random), F1.name, BestOf(models))
                    pairs = list(zip(ranges, truth, strict=True))
                    held.append([r.best <= t.best and t.worst <= r.worst for r, t in pairs])
                    widths.append(np.mean([r.worst - r.best + 1 for r in ranges]))
                all_hold = 100 * np.mean([all(each) for each in held])
                one_holds = 100 * np.mean(held)
                print(
                    f"| {name}, {models}, {images} | {all_hold:.1f} % | {one_holds:.1f} % | "
                    f"{np.mean(widths):.1f} |",
                    flush=True,
                )
                assert not measures or all_hold >= 95 - 3 * 1.1
