"""The coverage of 95 % intervals: simulated models, whose values are known.

    python -m pytest benchmarks/test_coverage.py --benchmark-enable -s

prints the tables of benchmarks/README.md. Without ``--benchmark-enable`` few models are drawn,
and only gross faults are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import graded_runs
import numpy as np
import pytest
from graded_runs import GradedModel, coverage_of
from simulated import (
    F1,
    FIGURES,
    NAMES,
    Coverage,
    Pictures,
    coverage,
    differences,
    false_alarms,
    means,
    means_of,
    runs_of,
    true_values,
)

from vlmeval_findit.statistics import Estimate, mean_of_estimates

PICTURES = (12, 40, 200, 1000)
RATES = (0.98, 0.6, 0.0)


@pytest.fixture
def times(measures: bool) -> int:
    """How many models are drawn: 2,000 have a Monte Carlo error of 0.5 points, 1,000 of 0.7."""
    return 2_000 if measures else 40


def draws_of(times: int, datasets: Sequence[Pictures]) -> int:
    """Return how many models are drawn: fewer of many or large datasets, which take long."""
    is_large = len(datasets) > 5 or sum(each.count for each in datasets) >= 1000
    return min(times, 1_000) if is_large else times


Judge = Callable[[float, float, float], bool]


@pytest.fixture
def within(measures: bool) -> Judge:
    """Whether a coverage is within its limits; of few models, whether it is not far below them."""

    def judge(held: float, least: float, most: float) -> bool:
        return least <= held <= most if measures else held >= 80

    return judge


def print_head(*columns: str) -> None:
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def shown(each: Coverage) -> str:
    """Coverage, half the mean width, and the width relative to what is needed."""
    relative = f", {each.width / each.needed:.2f}" if each.needed else ""
    return f"{each.held:.1f} (±{each.width / 2:.1f}{relative})"


def covered(estimates: Iterable[Estimate], truth: float) -> Coverage:
    """Return the coverage of F1's intervals."""
    true = np.full(len(NAMES), truth)
    return coverage(estimates, true, [F1.name])[F1.name]


# --- one dataset ----------------------------------------------------------------------------------


def test_intervals_of_a_dataset(times: int, within: Judge) -> None:
    print_head("rate", "pictures", *FIGURES)
    for rate in RATES:
        truth = true_values(rate)
        for pictures in PICTURES:
            measured = coverage(runs_of(pictures, times, pictures, rate), truth)
            cells = " | ".join(map(shown, measured.values()))
            print(f"| {rate} | {pictures:,} | {cells} |", flush=True)
            for name, each in measured.items():
                assert each.printed == 100
                # Near 0 and 100 % nothing that looks at hits and misses can be exact.
                most = 98.5 if rate == 0.6 else 100
                assert within(each.held, 93.5, most), (rate, pictures, name)


LONG_TAIL = tuple(np.minimum(60, np.random.default_rng(7).pareto(1.3, 4000) + 1).astype(int))
"""Most images have one object, some have 60."""

CROWDED = (
    ("openimages_multilabel", 0.6, 0.2),
    ("openimages_multilabel", 0.9, 0.3),
    ("openimages_multilabel", 0.9, 0.6),
    ("openimages", 0.9, 0.6),
    ("pascal_multilabel", 0.9, 0.6),
    ("long tail", 0.95, 0.6),
)
"""FindIt's numbers of objects by image, the true rate, and the correlation in an image."""


@pytest.fixture(scope="module")
def objects(request: pytest.FixtureRequest) -> Mapping[str, tuple[int, ...]]:
    """The numbers of objects of the images of datasets; only "long tail" without the subsets."""
    known = {"long tail": LONG_TAIL}
    folder = Path(request.config.rootpath).parent / "shared" / "findit-subsets"
    for name in dict.fromkeys(name for name, *_ in CROWDED):
        if (folder / f"{name}.parquet").exists():
            known[name] = objects_of(folder / f"{name}.parquet")
    return known


def objects_of(table: Path) -> tuple[int, ...]:
    parquet = pytest.importorskip("pyarrow.parquet")
    counts: dict[str, int] = {}
    for row in parquet.read_table(table, columns=["filename", "bboxes"]).to_pylist():
        counts[row["filename"]] = counts.get(row["filename"], 0) + len(row["bboxes"])
    return tuple(count for count in counts.values() if count)


def test_images_of_very_unequal_size(
    times: int, within: Judge, objects: Mapping[str, tuple[int, ...]]
) -> None:
    print_head("objects as in", "rate", "alike", *(f"{count:,} images" for count in CROWDS))
    for name, rate, alike in CROWDED:
        if name not in objects:
            continue
        cells = []
        for count in CROWDS:
            pictures = Pictures(count, rate, alike, objects[name])
            draws = draws_of(times, [pictures])
            cells.append(covered(means(count, draws, [pictures]), pictures.truth))
        print(f"| {name} | {rate} | {alike} | {' | '.join(map(shown, cells))} |", flush=True)
        for count, each in zip(CROWDS, cells, strict=True):
            # Near 100 % a run of few images is often entirely right.
            assert within(each.held, 93, 97.5 if count >= 200 else 99), (name, rate, count)


CROWDS = (20, 50, 100, 200, 1000)


# --- every metric, with realistic IoUs ------------------------------------------------------------

GRADED: Mapping[str, tuple[GradedModel, Sequence[int]]] = {
    "one object, 0.9, IoU 0.85": (GradedModel(0.9, 0.85, 0.0), (20, 40, 200)),
    "one object, 0.95, IoU 0.92 ± 0.05": (GradedModel(0.95), (20, 40, 100, 200)),
    "one object, 0.98, IoU 0.88 ± 0.08": (GradedModel(0.98, 0.88, 0.08), (20, 40, 100, 200)),
    "one object, 0.98, IoU 0.8 ± 0.15": (GradedModel(0.98, 0.8, 0.15), (20, 100)),
    "one object, 0.995, IoU 0.92 ± 0.05": (GradedModel(0.995), (20, 100, 600)),
    "1 + Poisson(3), 0.98, 5 % unreadable, IoU 0.92 ± 0.05": (
        GradedModel(0.98, objects="some", unreadable=0.05),
        (20, 40, 100),
    ),
    "1 + Poisson(3), 0.98, 2 % unreadable, IoU 0.85 ± 0.08": (
        GradedModel(0.98, 0.85, 0.08, "some", 0.02),
        (40, 100, 200),
    ),
    "1 + Poisson(3), 0.9, correlation 0.3, IoU 0.88 ± 0.08": (
        GradedModel(0.9, 0.88, 0.08, "some", alike=0.3),
        (20, 100),
    ),
    "4 % with 60 to 150 objects, 0.95": (GradedModel(0.95, objects="crowds"), (150, 600)),
    "the same, correlation 0.2": (GradedModel(0.95, objects="crowds", alike=0.2), (150, 600)),
}
"""Models by their objects an image, rate and IoU of hits; and numbers of images."""

MEANS_OF_GRADED: Mapping[str, tuple[Sequence[GradedModel], int]] = {
    "5 x 20, one object, 0.97": ([GradedModel(0.97)] * 5, 20),
    "17 x 20, one object, 0.8 to 0.995": (
        [GradedModel(float(rate), 0.88, 0.08) for rate in np.linspace(0.8, 0.995, 17)],
        20,
    ),
    "2 x 40, one object, 0.97 and 0.5": ([GradedModel(0.97, 0.85, 0.0), GradedModel(0.5)], 40),
    "4 x 50, 1 + Poisson(3), 0.98, 3 % unreadable": (
        [GradedModel(0.98, objects="some", unreadable=0.03)] * 4,
        50,
    ),
}
"""Datasets, and the images of each."""


def print_metrics(row: str, measured: Mapping[str, Coverage]) -> None:
    print(f"| {row} | {' | '.join(map(shown, measured.values()))} |", flush=True)


def test_intervals_of_every_metric(times: int, within: Judge) -> None:
    print_head("objects, rate, IoU of hits", "images", *graded_runs.NAMES)
    for name, (model, counts) in GRADED.items():
        truth = model.truth()
        for count in counts:
            draws = min(times, 1_000) if count >= 600 else times
            measured = coverage_of(model.estimates(count, draws, count), truth)
            print_metrics(f"{name} | {count}", measured)
            for metric in ("mIoU", "macc", "Points inside"):
                # Near 100 % nothing that looks at hits and misses can be exact.
                assert within(measured[metric].held, 92, 99.5), (name, count, metric)


def test_intervals_of_means_of_every_metric(times: int, within: Judge) -> None:
    print_head("datasets x images", *graded_runs.NAMES)
    for seed, (name, (models, images)) in enumerate(MEANS_OF_GRADED.items()):
        of_dataset = {model: model.truth() for model in models}
        truth = {
            metric: float(np.mean([of_dataset[model][metric] for model in models]))
            for metric in graded_runs.NAMES
        }
        generator = np.random.default_rng(seed)
        draws = draws_of(times, [Pictures(images, 0.5)] * len(models))
        runs = (
            mean_of_estimates(
                [each.estimate(generator, images, f"{at} ") for at, each in enumerate(models)]
            )
            for _ in range(draws)
        )
        measured = coverage_of(runs, truth)
        print_metrics(name, measured)
        for metric in ("mIoU", "macc", "Points inside"):
            assert within(measured[metric].held, 92, 99.5), (name, metric)


# --- means over datasets --------------------------------------------------------------------------


def alike_datasets(count: int, images: int, rate: float) -> list[Pictures]:
    return [Pictures(images, rate)] * count


def one_object(images: int, *rates: float) -> list[Pictures]:
    """Datasets of images with one query for one object."""
    return [Pictures(images, rate, objects=(1,)) for rate in rates]


MEANS: Mapping[str, Sequence[Pictures]] = {
    "1 x 100 at 0.95": alike_datasets(1, 100, 0.95),
    "5 x 20 at 0.95": alike_datasets(5, 20, 0.95),
    "17 x 20 at 0.95": alike_datasets(17, 20, 0.95),
    "17 x 20 at 0.6": alike_datasets(17, 20, 0.6),
    "17 x 100 at 0.95": alike_datasets(17, 100, 0.95),
    "17 x 100 at 0.6": alike_datasets(17, 100, 0.6),
    "17 x 5 at 0.95": alike_datasets(17, 5, 0.95),
    "17 x 5 at 0.6": alike_datasets(17, 5, 0.6),
    "10 at 0.9, 3 x 1,000 at 0.5": [Pictures(10, 0.9), *alike_datasets(3, 1000, 0.5)],
    "20 at 0.93, 20 at 0.5, one object": one_object(20, 0.93, 0.5),
    "20 at 0.93, 20 at 0.14, one object": one_object(20, 0.93, 0.14),
    "5 x 10 at 0.95, one object": one_object(10, *[0.95] * 5),
    "20 at 0.05, 1,000 at 0.5, one object": [
        *one_object(20, 0.05),
        *one_object(1000, 0.5),
    ],
}

AT_AN_END: Mapping[str, Sequence[Pictures]] = {
    "5 x 20 at 0.999": alike_datasets(5, 20, 0.999),
    "20 at 0.93, 20 at 0, one object": one_object(20, 0.93, 0.0),
    "50 at 0.97, 50 at 0, one object": one_object(50, 0.97, 0.0),
    "100 at 0.985, 100 at 0, one object": one_object(100, 0.985, 0.0),
    "4 x 20 at 0.95, 0.95, 0, 0, one object": one_object(20, 0.95, 0.95, 0.0, 0.0),
}
"""A dataset has a true value of 0 or 100 %, or nearly: all of it may be unseen."""


def print_means(rows: Mapping[str, Sequence[Pictures]], times: int) -> dict[str, Coverage]:
    print_head("datasets", "coverage (± half the width, the width relative to the needed)")
    measured = {}
    for seed, (name, datasets) in enumerate(rows.items()):
        estimates = means(seed, draws_of(times, datasets), datasets)
        truth = float(np.mean([each.truth for each in datasets]))
        measured[name] = covered(estimates, truth)
        print(f"| {name} | {shown(measured[name])} |", flush=True)
    return measured


def test_intervals_of_a_mean(times: int, within: Judge, measures: bool) -> None:
    for name, each in print_means(MEANS, times).items():
        # A dataset of few images near 0 or 100 % decides, or all are: none can be exact.
        few = min(dataset.count for dataset in MEANS[name]) <= 10
        few = few or name.startswith("20 at 0.05")
        assert within(each.held, 93, 99 if few else 97.5), name
        assert not measures or few or each.width <= 1.3 * each.needed, name


def test_a_mean_takes_datasets_that_are_all_right_or_wrong(times: int, within: Judge) -> None:
    for name, each in print_means(AT_AN_END, times).items():
        assert within(each.held, 93, 100), name


def test_means_over_shared_pictures(times: int, within: Judge) -> None:
    print_head("datasets", "pictures of each", "none shared", "half", "all")
    for rates in ((0.98, 0.6, 0.3), (0.98, 0.98, 0.98), (0.0, 0.0, 0.6)):
        truth = sum(true_values(rate) for rate in rates) / len(rates)
        for pictures in PICTURES:
            measured = [
                coverage(means_of(pictures, times // 4, pictures, rates, shared), truth)["F1@0.5"]
                for shared in (0.0, 0.5, 1.0)
            ]
            cells = " | ".join(map(shown, measured))
            print(f"| {', '.join(map(str, rates))} | {pictures:,} | {cells} |", flush=True)
            assert all(within(each.held, 93, 100) for each in measured)


# --- tests ----------------------------------------------------------------------------------------


def test_tests_between_equal_models(times: int, measures: bool) -> None:
    print_head("rate", "pictures", *FIGURES)
    for rate in RATES[:2]:
        for pictures in PICTURES:
            alarms = false_alarms(pictures, times, pictures, rate)
            cells = " | ".join(f"{share:.1f}" for share in alarms.values())
            print(f"| {rate} | {pictures:,} | {cells} |", flush=True)
            assert not measures or all(share <= 6 for share in alarms.values())


def test_differences(
    times: int, within: Judge, measures: bool, objects: Mapping[str, tuple[int, ...]]
) -> None:
    """Of equal models, false alarms; of all, the coverage of the difference's interval."""
    pairs = [(name, datasets, 0.0) for name, datasets in MEANS.items()]
    pairs += [(f"{name}, B worse", datasets, 0.15) for name, datasets in MEANS.items()][:6]
    for name, rate, alike in CROWDED:
        for count in CROWDS[:4] if name in objects else ():
            pictures = Pictures(count, rate, alike, objects[name])
            pairs.append((f"{count} as in {name}, {rate}, {alike}", [pictures], 0.0))
    pairs += [(f"10 x 4 objects, {by} worse", [Pictures(10, 0.6, 0.01, (4,))], by) for by in GAPS]
    ends = ((20, 1.0, 0.05), (50, 1.0, 0.1), (20, 0.95, 0.15))
    for count, rate, gap in ends:
        pictures = Pictures(count, rate, objects=(1,))
        pairs.append((f"{count} of one object at {rate}, {gap} worse", [pictures], gap))
    print_head("pair", "significant (%)", "interval covers (%)", "ends at 0")
    for seed, (name, datasets, gap) in enumerate(pairs):
        other = [max(0.0, each.rate - gap) for each in datasets]
        tests = list(differences(seed, max(40, draws_of(times, datasets) // 2), datasets, other))
        lower = [Pictures(1, rate).truth for rate in other]
        truth = 100 * float(np.mean([each.truth for each in datasets]) - np.mean(lower))
        significant = 100 * float(np.mean([test.significant for test in tests]))
        held = 100 * float(
            np.mean(
                [
                    test.interval.low <= truth <= test.interval.high
                    for test in tests
                    if test.interval
                ]
            )
        )
        touching = sum(
            test.significant and 0.0 in (test.interval.low, test.interval.high)
            for test in tests
            if test.interval
        )
        print(f"| {name} | {significant:.1f} | {held:.1f} | {touching} |", flush=True)
        assert within(held, 93, 100), name
        assert not measures or gap or significant <= 6, name
        assert not touching


GAPS = (0.0, 0.15, 0.3)
