"""Means over datasets: intervals and paired tests of several datasets, few images, and extremes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from vlmeval_findit.protocol import Metric
from vlmeval_findit.statistics import (
    FEWEST_IMAGES,
    BestOf,
    ClusteredSums,
    Estimate,
    Sampled,
    effective_number,
    estimate_metrics,
    mean_ends,
    mean_of_estimates,
    metric_intervals,
    paired_difference,
    rank_ranges,
)

RECALL = Metric("recall", {"found": 1}, {"objects": 1}, empty=None)
MAE = Metric("MAE", {"found": 1}, {"objects": 1}, unit="px")


def dataset(
    found: Sequence[float],
    objects: Sequence[float] | None = None,
    name: str = "",
    metric: Metric = RECALL,
) -> Estimate:
    """Return the estimate of a dataset, given the found objects and the objects of each image."""
    images = tuple(f"{name}{at:05d}" for at in range(len(found)))
    whole = np.ones(len(found)) if objects is None else np.array(objects, dtype=float)
    sums = {"found": np.array(found, dtype=float), "objects": whole}
    return estimate_metrics((metric,), ClusteredSums(images, np.arange(len(found)), sums, {}))


def of_hits(hits: int, images: int, name: str = "") -> Estimate:
    return dataset([1.0] * hits + [0.0] * (images - hits), name=name)


def ends(estimate: Estimate) -> tuple[float, float]:
    interval = metric_intervals(estimate)[estimate.metrics[0].name]
    assert interval is not None
    return interval.low, interval.high


def width(estimate: Estimate) -> float:
    low, high = ends(estimate)
    return high - low


IMAGES = st.lists(
    st.tuples(st.integers(1, 40), st.floats(0, 1)).map(
        lambda each: (round(each[0] * each[1]), each[0])
    ),
    min_size=4,
    max_size=25,
)


def made_of(images: Sequence[tuple[int, int]], name: str = "") -> Estimate:
    return dataset([found for found, _ in images], [of for _, of in images], name)


# --- what a mean must keep ------------------------------------------------------------------------


@given(images=IMAGES, other=IMAGES)
def test_the_mean_of_one_dataset_is_that_dataset(
    images: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    alone = made_of(images)
    assert ends(mean_of_estimates([alone])) == pytest.approx(ends(alone))
    worse = dataset([0.0] * len(images), [of for _, of in images])
    assert paired_difference(
        mean_of_estimates([alone]), mean_of_estimates([worse]), "recall"
    ) == paired_difference(alone, worse, "recall")
    # The same images with the same answers are no new evidence.
    assert ends(mean_of_estimates([alone] * 3)) == pytest.approx(ends(alone), abs=1e-5)


@given(parts=st.lists(IMAGES, min_size=2, max_size=4), data=st.data())
def test_the_order_of_datasets_does_not_matter(
    parts: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    datasets = [made_of(images, f"{at} ") for at, images in enumerate(parts)]
    empty = [
        dataset([0.0] * len(images), [of for _, of in images], f"{at} ")
        for at, images in enumerate(parts)
    ]
    first = ends(mean_of_estimates(datasets))
    test = paired_difference(mean_of_estimates(datasets), mean_of_estimates(empty), "recall")
    low, high = first
    assert 0 <= low <= mean_of_estimates(datasets).value("recall") + 1e-9  # type: ignore[operator]
    assert mean_of_estimates(datasets).value("recall") <= high + 1e-9 <= 100 + 2e-9  # type: ignore[operator]
    order = data.draw(st.permutations(range(len(parts))))
    turned = mean_of_estimates([datasets[at] for at in order])
    assert ends(turned) == pytest.approx(first, abs=1e-5)
    again = paired_difference(turned, mean_of_estimates([empty[at] for at in order]), "recall")
    assert again.p_value == pytest.approx(test.p_value)


@given(images=IMAGES, parts=st.lists(IMAGES, min_size=1, max_size=3))
def test_found_and_missed_are_mirrored(
    images: list[tuple[int, int]], parts: list[list[tuple[int, int]]]
) -> None:
    all_parts = [images, *parts]
    found = mean_of_estimates([made_of(each, f"{at} ") for at, each in enumerate(all_parts)])
    missed = mean_of_estimates(
        [
            made_of([(of - hits, of) for hits, of in each], f"{at} ")
            for at, each in enumerate(all_parts)
        ]
    )
    low, high = ends(missed)
    assert (100 - high, 100 - low) == pytest.approx(ends(found), abs=1e-5)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("images", [10, 50, 200])
def test_n_equal_datasets_narrow_the_interval_by_root_n(share: float, images: int) -> None:
    hits = round(share * images)
    for count in (4, 9, 16):
        several = mean_of_estimates([of_hits(hits, images, f"{at} ") for at in range(count)])
        # As if all images were those of one dataset.
        pooled = of_hits(hits * count, images * count)
        assert width(several) == pytest.approx(width(pooled), rel=0.07)
        if images > 10:  # Few images have a larger Student's t, too.
            alone = width(of_hits(hits, images))
            assert width(several) == pytest.approx(alone / count**0.5, rel=0.06)


def test_a_mean_is_surer_than_its_parts() -> None:
    """Each dataset all right, or nearly: the interval of Overall is the narrowest."""
    for hits in (5, 4):
        parts = [of_hits(hits, 5, f"{at} ") for at in range(17)]
        assert width(mean_of_estimates(parts)) < 0.4 * width(parts[0])
    low, high = ends(mean_of_estimates([of_hits(5, 5, f"{at} ") for at in range(17)]))
    t2 = stats.t.ppf(0.975, 17 * 4) ** 2
    assert (low, high) == pytest.approx((100 * 85 / (85 + t2), 100))  # Wilson's, of 85 images


# --- each dataset with its own variance -----------------------------------------------------------


@given(
    ours=st.lists(st.integers(-50, 50), min_size=4, max_size=12),
    theirs=st.lists(st.integers(-500, 500), min_size=4, max_size=40),
)
def test_a_mean_of_two_has_welchs_interval(ours: list[int], theirs: list[int]) -> None:
    """(a + b) / 2 is half of a - (-b), whose interval is Welch's."""
    if np.std(ours) + np.std(theirs) < 1e-9:
        return
    parts = [dataset(each, name=f"{at} ", metric=MAE) for at, each in enumerate((ours, theirs))]
    turned = [-each for each in theirs]
    expected = stats.ttest_ind(ours, turned, equal_var=False).confidence_interval()
    assert ends(mean_of_estimates(parts)) == pytest.approx(
        (expected.low / 2, expected.high / 2), abs=1e-6
    )


def test_the_unit_scales_the_interval() -> None:
    generator = np.random.default_rng(1)
    errors = [generator.normal(20, scale, count) for scale, count in ((1, 6), (30, 9), (5, 40))]
    pixels, doubled = (
        mean_of_estimates(
            [dataset(each * scale, name=f"{at} ", metric=MAE) for at, each in enumerate(errors)]
        )
        for scale in (1, 2)
    )
    assert np.array(ends(doubled)) == pytest.approx(2 * np.array(ends(pixels)))


def test_a_small_dataset_decides_the_degrees_of_freedom() -> None:
    """Ten images that vary beside three thousand that hardly do: Student's t of 9."""
    generator = np.random.default_rng(2)
    small, *large = (
        dataset(generator.normal(0, scale, count), name=f"{at} ", metric=MAE)
        for at, (scale, count) in enumerate(((9, 10), (1, 1000), (1, 1000), (1, 1000)))
    )
    ratio = width(mean_of_estimates([small, *large])) / width(small)
    assert ratio == pytest.approx(1 / 4, rel=0.01)


@pytest.mark.parametrize(
    ("images", "freedom"), [((5,), 4), ((5, 5), 8), ((4, 8), 8.4), ((5, 5, 5), 12)]
)
def test_a_constant_difference_counts_every_dataset_alike(
    images: tuple[int, ...], freedom: float
) -> None:
    """Nothing says which dataset varies more. The p-value is that of as many coins as images."""
    ours, theirs = (
        mean_of_estimates(
            [dataset([error] * n, name=f"{n} {at} ", metric=MAE) for at, n in enumerate(images)]
        )
        for error in (3.0, 1.0)
    )
    actual = paired_difference(ours, theirs, "MAE")
    least = 2.0 ** (1 - sum(images))
    assert actual.p_value == pytest.approx(least)
    reach = 2 * stats.t.ppf(0.975, freedom) / stats.t.isf(least / 2, freedom)
    assert actual.interval is not None
    assert (actual.interval.low, actual.interval.high) == pytest.approx((2 - reach, 2 + reach))


# --- all right or all wrong -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        ((20, 20), (0, 20)),
        ((19, 20), (0, 20)),
        ((50, 50), (0, 50)),
        ((20, 20), (20, 20), (0, 20), (0, 20)),
        ((5, 5), (0, 100)),
        ((12, 20), (30, 30)),
        ((600, 1000), (0, 20)),
    ],
)
def test_a_dataset_all_right_is_as_uncertain_in_a_mean(
    parts: Sequence[tuple[int, int]],
) -> None:
    """The mean's interval reaches at least as far as that of one such dataset, the others fixed."""
    low, high = ends(mean_of_estimates([of_hits(*each, f"{at} ") for at, each in enumerate(parts)]))
    value = 100 * np.mean([hits / images for hits, images in parts])
    normal = stats.norm.ppf(0.975) ** 2
    for hits, images in parts:
        of_own = 100 * normal / (images + normal) / len(parts)  # Wilson's, of normal quantiles
        if hits == 0:
            assert high - value > 0.98 * of_own
        if hits == images:
            assert value - low > 0.98 * of_own


@pytest.mark.parametrize("seed", range(20))
def test_a_means_interval_inverts_the_score_test(seed: int) -> None:
    """Against a plain search: of all shares with a mean those that fit best have its variance."""
    generator = np.random.default_rng(seed)
    images = generator.integers(5, 60, 3).astype(float)
    value = np.round(generator.random(3) ** 0.3 * images) / images
    variance = value * (1 - value) / images  # One trial an image, without skewness
    of_value = (value, variance * 2)
    known = (*of_value, *of_value, images, images, np.ones(3), images)
    sampled = Sampled(*(each[:, None] for each in known))
    low, _ = mean_ends(sampled, np.ones(1), np.ones(1))
    unseen = np.minimum((value**2 + (1 - value) ** 2) / (9 * images**2), variance) / 3
    trials = np.divide(
        value * (1 - value), 2 * variance + unseen, out=images.copy(), where=variance > 0
    )
    smooth = (value * trials + 1) / (trials + 2)
    of_each = smooth * (1 - smooth) / trials
    freedom = of_each.sum() ** 2 / (of_each**2 / (images - 1)).sum()
    t = stats.t.ppf(0.975, freedom)

    def misfit(shares: np.ndarray) -> float:
        inside = np.clip(shares, 1e-9, 1 - 1e-9)
        logs = value * np.log(inside) + (1 - value) * np.log(1 - inside)
        return -float((trials * logs).sum())

    def excess(mean_share: float) -> float:
        fixed = {"type": "eq", "fun": lambda shares: shares.mean() - mean_share}
        start = np.clip(value * mean_share / value.mean(), 1e-6, 1 - 1e-6)
        fit = optimize.minimize(
            misfit,
            start,
            bounds=[(1e-9, 1 - 1e-9)] * 3,
            constraints=[fixed],
            options={"ftol": 1e-13, "maxiter": 500},
        )
        error = np.sqrt((fit.x * (1 - fit.x) / trials).sum()) / 3
        return float(value.mean() - mean_share - t * error)

    assert excess(low[0] - 0.004) > 0 > excess(low[0] + 0.004)


# --- paired tests ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("datasets", "images"), [(5, 5), (17, 5), (2, 13), (25, 4)])
def test_everything_against_nothing_is_told_apart_by_all_images(datasets: int, images: int) -> None:
    """As surely as so many coins that fall alike, in however many datasets the images are."""
    all_, none = (
        mean_of_estimates([of_hits(hits, images, f"{at} ") for at in range(datasets)])
        for hits in (images, 0)
    )
    test = paired_difference(all_, none, "recall")
    assert test.p_value == pytest.approx(2.0 ** (1 - datasets * images), rel=1e-6)
    assert test.interval is not None
    assert test.interval.low > 50


@given(
    differing=st.integers(1, 9),
    equal=st.lists(st.lists(st.booleans(), min_size=4, max_size=300), max_size=3),
    beside=st.integers(0, 40),
)
def test_images_with_equal_answers_are_no_evidence(
    differing: int, equal: list[list[bool]], beside: int
) -> None:
    """One run finds all of some images, the other none; on all other images both are alike."""
    alike = [at % 3 == 0 for at in range(max(beside, 4 - differing))]
    sides = []
    for found in (True, False):
        parts = [dataset([found] * differing + alike, name="first ")]
        parts += [dataset(hits, name=f"{at} ") for at, hits in enumerate(equal)]
        sides.append(mean_of_estimates(parts))
    test = paired_difference(*sides, "recall")
    assert test.p_value is not None
    least = 2.0 ** (1 - max(differing, FEWEST_IMAGES))
    assert test.p_value >= least * (1 - 1e-9)
    assert not test.significant or differing > 5
    ranges = rank_ranges(sides, "recall", BestOf(2))
    assert (ranges[0].worst == 1) == test.significant


def test_datasets_where_both_find_nothing_change_no_test() -> None:
    sides = []
    for hits in (6, 0):
        parts = [of_hits(hits, 6, "first "), of_hits(0, 200, "second ")]
        sides.append(mean_of_estimates(parts))
    alone = paired_difference(of_hits(6, 6), of_hits(0, 6), "recall")
    assert alone.p_value == 2.0**-5
    assert paired_difference(*sides, "recall").p_value == pytest.approx(alone.p_value)


@given(
    parts=st.lists(
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=4, max_size=12),
        min_size=1,
        max_size=5,
    ),
    gain=st.integers(0, 3),
)
def test_an_interval_excludes_0_where_its_test_is_significant(
    parts: list[list[tuple[int, int]]], gain: int
) -> None:
    ours, theirs = (
        mean_of_estimates(
            [
                dataset(
                    [min(4, each[side] + gain * (side == 0)) for each in images],
                    [4] * len(images),
                    f"{at} ",
                )
                for at, images in enumerate(parts)
            ]
        )
        for side in (0, 1)
    )
    test = paired_difference(ours, theirs, "recall")
    assert test.interval is not None
    assert test.p_value is not None
    assert test.interval.low < test.interval.high
    assert (test.p_value < 0.05) == (test.interval.low > 0 or test.interval.high < 0)
    assert 0 not in (test.interval.low, test.interval.high)
    if sum(map(len, parts)) < 6:
        assert test.p_value > 0.05


def test_test_and_interval_share_one_standard_error() -> None:
    """From the p-value and the degrees of freedom alone follows how far the interval reaches."""
    generator = np.random.default_rng(5)
    for _ in range(50):
        images = int(generator.integers(6, 40))
        hits = generator.random((2, images)) < generator.random((2, 1))
        ours, theirs = (dataset(each) for each in hits)
        test = paired_difference(ours, theirs, "recall")
        assert test.interval is not None
        assert test.p_value is not None
        if not test.value or test.p_value > 0.05:
            continue
        errors = stats.t.ppf(1 - test.p_value / 2, images - 1)
        reach = abs(test.value) / errors * stats.t.ppf(0.975, images - 1)
        near, far = sorted((abs(test.interval.low), abs(test.interval.high)))
        assert near == pytest.approx(abs(test.value) - reach)
        # Larger differences vary more.
        assert far == 100 or far >= abs(test.value) + reach - 1e-9


@pytest.mark.parametrize("images", [5, 20, 300])
@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_agreeing_runs_may_still_differ_on_unseen_images(images: int, share: float) -> None:
    """No image differs: as in Wilson's interval of 0 %, on both sides."""
    hits = [1.0] * round(share * images) + [0.0] * (images - round(share * images))
    test = paired_difference(dataset(hits), dataset(hits), "recall")
    assert (test.value, test.p_value) == (0, 1)
    assert test.interval is not None
    t2 = stats.t.ppf(0.975, images - 1) ** 2
    wilson = 100 * t2 / (images + t2)
    assert test.interval.high == -test.interval.low
    assert wilson < test.interval.high < 1.03 * wilson


@pytest.mark.parametrize(("ours", "theirs"), [(1.0, 0.95), (1.0, 0.9), (0.95, 0.85), (0.0, 0.1)])
def test_differences_near_the_ends_are_covered(ours: float, theirs: float) -> None:
    """A hundred seeded pairs; benchmarks/test_coverage.py draws thousands."""
    generator = np.random.default_rng(3)
    held = []
    for _ in range(100):
        hits = generator.random((2, 20)) < np.array([[ours], [theirs]])
        test = paired_difference(dataset(hits[0]), dataset(hits[1]), "recall")
        assert test.interval is not None
        held.append(test.interval.low <= 100 * (ours - theirs) <= test.interval.high)
    assert np.mean(held) > 0.92


# --- images of unequal size -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([1, 1, 1, 1], 4),
        ([3, 3, 3, 3, 3, 0], 5),
        ([148, *[1] * 19], (148 + 19) ** 2 / (148**2 + 19)),
        ([2, 1], 9 / 5),
        ([0, 0], 0),
    ],
)
def test_kishs_effective_number(weights: list[int], expected: float) -> None:
    actual = effective_number(np.array(weights, dtype=float))
    assert float(actual) == pytest.approx(expected)
    # As many as they are, in any unit.
    assert float(effective_number(np.array(weights) * 7.5)) == pytest.approx(expected)


def test_one_crowded_image_is_not_as_many_as_its_objects() -> None:
    """The same share of twenty images: once of equal size, once with most objects in one."""
    equal = dataset([4.0] * 10 + [5.0] * 10, [5.0] * 20)
    crowded = dataset([90.0, *[1.0] * 9, *[0.0] * 5, *[0.2] * 5], [90.0 / 0.9, *[1.0] * 19])
    assert equal.counted[0] == pytest.approx(20)
    assert 1 < crowded.counted[0] < 2
    assert width(crowded) > 4 * width(equal)


def test_pairs_of_crowded_images_have_kishs_degrees_of_freedom() -> None:
    objects = [40.0, 30.0, 5.0, *[1.0] * 10]
    ours = dataset([30.0, 25.0, 5.0, *[1.0] * 10], objects)
    theirs = dataset([26.0, 20.0, 3.0, *[0.0] * 4, *[1.0] * 6], objects)
    test = paired_difference(ours, theirs, "recall")
    kish = float(np.sum(objects) ** 2 / np.sum(np.square(objects)))
    moved = ours.influence - theirs.influence
    unseen = 2 / (6 * len(objects)) ** 2 * (1 + (test.value / 100) ** 2)
    error = np.sqrt((moved**2).sum() + unseen)
    assert test.p_value == pytest.approx(2 * stats.t.sf(test.value / 100 / error, kish - 1))
