"""Intervals of shares and of means, differences of means, corrected p-values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from vlmeval_findit.protocol import Better, Metric, ScoredRow
from vlmeval_findit.statistics import (
    FEWEST_IMAGES,
    Difference,
    Estimate,
    FamilyOfTests,
    Interval,
    chance_of_lead,
    clustered_sums,
    correct_by_holm,
    estimate_metrics,
    metric_intervals,
    paired_difference,
    share_bounds,
)


@pytest.mark.parametrize(
    ("value", "images", "expected"),
    [
        # Nothing varies: Wilson's interval of as many trials, with t for z.
        (1.0, 7, (53.9, 100.0)),
        (0.0, 7, (0.0, 46.1)),
        (1.0, 1000, (99.6, 100.0)),
        (0.0, 4, (0.0, 71.7)),
    ],
)
def test_what_never_varied_may_vary_yet(
    value: float, images: int, expected: tuple[float, float]
) -> None:
    actual = share_bounds(value, 0.0, images)
    assert actual is not None
    assert (actual.low, actual.high) == pytest.approx(expected, abs=0.05)
    t2 = stats.t.ppf(0.975, images - 1) ** 2
    assert actual.high - actual.low == pytest.approx(100 * t2 / (images + t2))


@pytest.mark.parametrize(
    ("value", "variance", "images"), [(0.9, 0.006, 20), (0.2, 0.005, 40), (0.97, 0.01, 12)]
)
def test_the_interval_is_where_the_score_test_rejects(
    value: float, variance: float, images: int
) -> None:
    """Its ends are the shares p that lie t standard errors away, the errors taken at p.

    Here the queries of an image are all alike: it is one trial at most.
    """
    actual = share_bounds(value, variance, images)
    assert actual is not None
    missed = (value / (3 * images)) ** 2
    hit = ((1 - value) / (3 * images)) ** 2
    spread = value * (1 - value)
    trials = spread / (variance + min(missed + hit, spread / images))
    for end in (actual.low / 100, actual.high / 100):
        away = abs(value - end) / np.sqrt(end * (1 - end) / trials)
        assert away == pytest.approx(stats.t.ppf(0.975, images - 1))


@pytest.mark.parametrize("value", [0.7, 0.95])
def test_shares_of_similar_queries_are_more_skewed(value: float) -> None:
    """The end that is away from 100 % is farther than Wilson's; the other, and at 50 %, are not."""
    images, variance = 40, value * (1 - value) / 100
    actual = share_bounds(value, variance, images)
    assert actual is not None
    unseen = (1 / (3 * images)) ** 2 * (value**2 + (1 - value) ** 2)
    trials = value * (1 - value) / (variance + unseen)
    t = stats.t.ppf(0.975, images - 1)
    away = [
        abs(value - end) / np.sqrt(end * (1 - end) / trials)
        for end in (actual.low / 100, actual.high / 100)
    ]
    assert away[0] > 1.01 * t
    assert away[1] == pytest.approx(t)
    mirrored = share_bounds(1 - value, variance, images)
    assert mirrored is not None
    assert (100 - mirrored.high, 100 - mirrored.low) == pytest.approx((actual.low, actual.high))
    even = share_bounds(0.5, 0.0025, images)
    assert even is not None
    assert 50 - even.low == pytest.approx(even.high - 50)


def test_the_chance_of_a_lead_against_student_s_t() -> None:
    """A share 10 points behind after 20 of 50 images is ahead after all."""
    metric = Metric("F1", {"tp": 1}, {"n": 1})
    images = 20
    share = 0.4
    names = tuple(map(str, range(images)))
    moves = np.full((images, 1), 0.01)
    weight = np.full((images, 1), 1 / images)
    queries = np.array([images])
    run, front = (
        Estimate((metric,), np.array([value]), names, influence, weight, value * weight, queries)
        for value, influence in ((0.5, moves), (0.6, 0 * moves))
    )
    third = (1 / (3 * images)) ** 2 * (0.5**2 + 0.5**2 + 0.6**2 + 0.4**2)
    variance = images * 0.01**2 + third
    expected = stats.t.cdf(-0.1 / np.sqrt(variance * (1 - share)), images - 1)
    assert chance_of_lead(run, front, "F1", share) == pytest.approx(expected)


MAE = Metric("MAE", {"error": 1}, {"asked": 1}, better=Better.LOWER, unit="px")


def of_errors(errors: Sequence[float], *metrics: Metric) -> Estimate:
    """Return the estimate of an error per image."""
    sums = [{"error": error, "asked": 1.0} for error in errors]
    rows = [ScoredRow(n, f"{n:03}.png", item) for n, item in enumerate(sums)]
    return estimate_metrics(metrics or (MAE,), clustered_sums(rows, "P"))


def test_a_mean_error_has_students_interval() -> None:
    """It may be above 1, or always the same, and is given as it is."""
    for errors in ([2.0] * 7, [140.0, 90.0, 210.0, 60.0, 130.0], [-3.0, 2.0, 5.0, 1.0]):
        actual = of_errors(errors)
        interval = metric_intervals(actual)["MAE"]
        assert interval is not None
        assert actual.value("MAE") == pytest.approx(np.mean(errors))
        reach = stats.t.ppf(0.975, len(errors) - 1) * np.std(errors, ddof=1) / len(errors) ** 0.5
        assert (interval.low, interval.high) == pytest.approx(
            (np.mean(errors) - reach, np.mean(errors) + reach)
        )
    assert metric_intervals(of_errors([1.0] * (FEWEST_IMAGES - 1))) == {"MAE": None}
    assert MAE.title == "MAE (px, lower is better)"


def test_differences_of_mean_errors_are_students() -> None:
    ours = [140.0, 90.0, 210.0, 60.0, 130.0]
    theirs = [100.0, 80.0, 150.0, 50.0, 100.0]
    pair = of_errors(ours), of_errors(theirs)
    expected = stats.ttest_rel(ours, theirs)
    actual = paired_difference(*pair, "MAE")
    assert actual.interval is not None
    assert actual.value == pytest.approx(30)
    # Five coins can fall alike by chance: with fewer images than six nothing differs.
    least = 2 ** (1 - 5)
    assert expected.pvalue < least
    assert actual.p_value == least
    reach = 30 * stats.t.ppf(0.975, 4) / stats.t.ppf(1 - least / 2, 4)
    ends = actual.interval.low, actual.interval.high
    assert ends == pytest.approx((30 - reach, 30 + reach))
    ours, theirs = [*ours, 70.0, 91.0], [*theirs, 75.0, 80.0]
    pair = of_errors(ours), of_errors(theirs)
    expected = stats.ttest_rel(ours, theirs)
    actual = paired_difference(*pair, "MAE")
    assert actual.p_value == pytest.approx(expected.pvalue)
    assert actual.interval is not None
    ends = actual.interval.low, actual.interval.high
    assert ends == pytest.approx(tuple(expected.confidence_interval()))


def test_a_constant_difference_of_errors_is_certain() -> None:
    for images in (100, 3000):
        actual = paired_difference(of_errors([2.0] * images), of_errors([1.0] * images), "MAE")
        assert actual.interval == Interval(1.0, 1.0)
        assert actual.p_value == 2.0 ** (1 - images)


def test_a_metrics_difference_does_not_depend_on_other_metrics() -> None:
    """The runs are over different images, so their influences are put in a common order."""
    asked = Metric("Asked", {"asked": 1}, {"asked": 1})
    random = np.random.default_rng(5)
    ours = random.normal(1.0, 0.5, 20).tolist()
    theirs = random.normal(2.0, 0.5, 17).tolist()
    alone = paired_difference(of_errors(ours), of_errors(theirs), "MAE")
    among_others = paired_difference(
        of_errors(ours, MAE, asked, asked), of_errors(theirs, MAE, asked, asked), "MAE"
    )
    assert among_others == alone


def test_a_share_above_its_whole_is_refused() -> None:
    actual = of_errors([2.0] * 7, Metric("MAE", {"error": 1}, {"asked": 1}))
    with pytest.raises(ValueError, match=r"MAE is 200 %.*: write Metric\('MAE', …, unit=\"\"\)"):
        metric_intervals(actual)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([0.04], [0.04]),
        ([0.05], [0.05]),
        ([0.01, 0.02, 0.03, 0.04], [0.04, 0.06, 0.06, 0.06]),
        ([0.03, 0.01, 0.04], [0.06, 0.03, 0.06]),
        ([0.6, 0.7, None], [1.0, 1.0, None]),
        ([None, 0.02, 0.02], [None, 0.04, 0.04]),
        ([0.001, 0.5, 0.02], [0.003, 0.5, 0.04]),
    ],
)
def test_holms_correction(given: Sequence[float | None], expected: Sequence[float | None]) -> None:
    actual = correct_by_holm((Difference(1.0, None, p, p) for p in given), FamilyOfTests.ERRORS)
    assert [item.p_value for item in actual] == given
    assert [item.significant for item in actual] == [p is not None and p < 0.05 for p in expected]
    assert [item.corrected for item in actual] == [
        None if p is None else pytest.approx(p) for p in expected
    ]
