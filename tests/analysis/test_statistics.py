from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from few_fast import few_fast
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scored_runs import World, failing, saying, small_world, speaking
from simulated import (
    FIGURES,
    METRICS,
    SUMS,
    coverage,
    estimate_from,
    names,
    runs_of,
    shares,
    sums_of,
    true_values,
)

from vlmeval_findit.analysis import (
    StatisticsError,
    compare_runs,
    estimate_run,
    run_intervals,
    untested_metrics,
)
from vlmeval_findit.protocol import ScoredRow
from vlmeval_findit.scoring import Run
from vlmeval_findit.statistics import (
    FEWEST_IMAGES,
    clustered_sums,
    mean_of_estimates,
    metric_intervals,
    paired_difference,
)

NAME = "FindIt_Pascal_xyxy_json"


@pytest.fixture
def run(world: World) -> Run:
    return world.run("Some-Model", NAME, speaking(NAME, 0.6, 25))


@pytest.fixture(scope="module")
def module_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        small = small_world(tmp_path_factory.mktemp("world"), patch)
        return small.run("Some-Model", NAME, speaking(NAME, 0.6, 25))


def of_answers(run: Run, answers: Iterable[ScoredRow]) -> Run:
    answers = tuple(answers)
    rows = frozenset(answer.index for answer in answers)
    return replace(run, rows=answers, provenance=replace(run.provenance, rows=rows))


def scored_row(index: int, image: int, sums: Sequence[float]) -> ScoredRow:
    return ScoredRow(index, f"{image}.jpg", dict(zip(SUMS, sums, strict=True)))


def with_queries(run: Run, count: int, per_image: int = 1) -> Run:
    """Return a run of as many queries, made of random sums."""
    generator = np.random.default_rng(1)
    answers = []
    for index in range(count):
        n_gt, n_pred = (int(n) for n in generator.integers(1, 5, 2))
        tp = int(generator.integers(0, min(n_gt, n_pred) + 1))
        sums = (1, int(generator.random() < 0.9), 0, tp, n_pred, n_gt, 0, tp * 0.8)
        answers.append(scored_row(index, index // per_image, sums))
    return of_answers(run, answers)


def of_hits(run: Run, hits: Iterable[bool]) -> Run:
    """Return a run of a box per image, hit or not."""
    sums = ((1, 1, 0, int(hit), 1, 1, 0, float(hit)) for hit in hits)
    return of_answers(run, (scored_row(at, at, each) for at, each in enumerate(sums)))


# --- sums and influences -------------------------------------------------------------------------


def test_queries_of_one_image_are_one_cluster(run: Run) -> None:
    actual = clustered_sums(run.rows, "Pascal")
    assert actual.images == tuple(f"Pascal/{i}.jpg" for i in range(6))
    assert actual.image.tolist() == [at // 2 for at in range(12)]
    assert {name: actual.sums[name].sum() for name in SUMS} == pytest.approx(
        {name: run.sums[name] for name in SUMS}
    )


def test_values_are_the_scores(run: Run, world: World) -> None:
    for item in (run, world.run("Fails", NAME, failing), world.run("Silent", NAME, saying("[]"))):
        actual = estimate_run(item)
        values = {name: actual.value(name) for name in item.metric_values}
        assert values == pytest.approx(item.metric_values)
        assert values["Rejection accuracy"] is None  # every query has objects


def test_influence_is_what_leaving_an_image_out_does(run: Run) -> None:
    """To first order: the jackknife moves every value by its influence."""
    many = with_queries(run, 300, per_image=2)
    actual = estimate_run(many)
    there = ~np.isnan(actual.values)
    assert there.sum() == 1 + len(METRICS)
    for at in (0, 7, 149):
        name = actual.images[at].removeprefix("Pascal/")
        rest = estimate_run(of_answers(many, (a for a in many.rows if a.source != name)))
        moved = (actual.values - rest.values)[there]
        assert moved == pytest.approx(actual.influence[at][there], abs=2e-5)
    assert np.abs(actual.influence[[0, 7, 149]]).max() > 1e-3


def test_too_few_images_have_no_interval(run: Run) -> None:
    alone = with_queries(run, 3 * (FEWEST_IMAGES - 1), per_image=3)
    assert set(run_intervals(alone).values()) == {None}
    actual = compare_runs(alone, alone)["mIoU"]
    assert (actual.p_value, actual.corrected, actual.significant) == (None, None, False)
    enough = with_queries(run, 3 * FEWEST_IMAGES, per_image=3)
    assert all(run_intervals(enough).values())
    again = replace(enough, model="Again")
    assert compare_runs(enough, again)["mIoU"].p_value == 1


def test_images_without_weight_do_not_count(world: World) -> None:
    """A silent model has no precision; of failed calls nothing is known."""
    silent = run_intervals(world.run("Silent", NAME, saying("[]")))
    assert silent["Precision"] is None
    assert silent["Recall"] is not None
    assert silent["Recall"] == silent["F1@0.5"] == silent["mIoU"]
    counted = estimate_run(world.run("Fails", NAME, failing)).counted.tolist()
    # Of four images one of two calls failed: six count like 5.3.
    few = 8**2 / (2 * 2**2 + 4)
    assert set(np.round(counted, 6)) == {0.0, round(few, 6), 6.0}
    assert [count > 0 for count in counted] == [True] * 4 + [False, True, True, False, False]
    both = world.run("Both", NAME, lambda query, rng: failing(replace(query, index=0), rng))
    missed = both.benchmark.headline_counting_failures.name
    assert {name for name, actual in run_intervals(both).items() if actual} == {missed}


@pytest.mark.parametrize(("images", "rate"), few_fast([(12, 0.6), (200, 0.98)], 1))
def test_intervals_hold_the_truth_as_often_as_they_say(images: int, rate: float) -> None:
    """A hundred seeded runs; benchmarks/test_coverage.py draws two thousand."""
    actual = coverage(runs_of(1, 100, images, rate), true_values(rate, parts=4))
    for name in FIGURES:
        assert actual[name].printed == 100
        assert actual[name].held >= 92, (name, actual[name])
        assert actual[name].width <= 1.5 * actual[name].needed, (name, actual[name])


# --- means over datasets --------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [0.5, 1.0])
def test_a_mean_draws_shared_images_once(shared: float) -> None:
    """Against a brute-force bootstrap: an image drawn k times counts k times in every dataset."""
    generator = np.random.default_rng(4)
    size, common = 300, round(300 * shared)
    hard = generator.random((common, 2))
    # Rows of the union: shared images, then those of the first dataset, then of the second.
    union = np.zeros((2, 2 * size - common, 8))
    parts = []
    for at, rate in enumerate((0.5, 0.7)):
        own = generator.random((size - common, 2))
        sums = sums_of(generator, size, rate, np.concatenate([hard, own]))
        parts.append(estimate_from((*names(common), *names(size - common, f"own {at} ")), sums))
        start = size if at else common
        union[at, :common], union[at, start : start + size - common] = sums[:common], sums[common:]
    actual = mean_of_estimates(parts)
    assert len(actual.images) == union.shape[1]
    images = union.shape[1]
    times_drawn = generator.multinomial(images, np.full(images, 1 / images), size=3000)
    draws = shares(times_drawn @ union).mean(axis=0)
    errors = np.sqrt((actual.influence**2).sum(axis=0))
    assert errors == pytest.approx(np.std(draws, axis=0), rel=0.06)
    assert actual.values == pytest.approx(np.mean([item.values for item in parts], axis=0))


def test_too_few_images_of_a_dataset_leave_no_mean_interval() -> None:
    generator = np.random.default_rng(4)
    few, many, none = (
        estimate_from(names(n, f"{n} "), sums_of(generator, n, 0.6))
        for n in (5, 500, FEWEST_IMAGES - 1)
    )
    assert metric_intervals(mean_of_estimates([few, many]))["mIoU"] is not None
    assert mean_of_estimates([few, many, none]).counted.tolist() == [0] * len(METRICS)
    assert metric_intervals(mean_of_estimates([few, none]))["mIoU"] is None
    assert (
        paired_difference(
            mean_of_estimates([few, none]), mean_of_estimates([few, none]), "mIoU"
        ).p_value
        is None
    )


# --- differences ----------------------------------------------------------------------------------


def test_paired_differences(run: Run, world: World) -> None:
    itself = compare_runs(run, run)["F1@0.5"]
    assert (itself.value, itself.interval, itself.p_value) == (0, None, None)
    same = compare_runs(run, replace(run, model="Again"))["F1@0.5"]
    assert same == replace(same, value=0, p_value=1, corrected=1)
    assert not same.significant
    text = "FindIt_Pascal_xyxy_text"
    formats = compare_runs(run, world.run("Some-Model", text, speaking(text, 0.6, 25)))
    assert not formats["F1@0.5"].significant
    perfect = world.run("Perfect", NAME, speaking(NAME, 1.0))
    better = compare_runs(perfect, run)["F1@0.5"]
    value = perfect.metric_values["F1@0.5"] - run.metric_values["F1@0.5"]
    assert better.value == pytest.approx(value)
    assert better.significant


def test_differences_of_a_share_are_students(run: Run) -> None:
    """With a box and an object per image the test is the paired t-test, but for unseen images."""
    generator = np.random.default_rng(6)
    hits = generator.random(60) < 0.7, generator.random(60) < 0.5
    actual = compare_runs(*(of_hits(run, each) for each in hits))
    student = stats.ttest_rel(*(each.astype(float) for each in hits))
    assert 0.001 < student.pvalue < 0.5
    for name in ("Recall", "F1@0.5"):
        assert student.pvalue < actual[name].p_value < 1.1 * student.pvalue
    expected = student.confidence_interval(0.95)
    interval = actual["Recall"].interval
    ends = interval.low / 100, interval.high / 100
    # Larger differences vary more.
    assert ends == pytest.approx((expected.low, expected.high), abs=0.01)
    assert ends[1] - ends[0] > expected.high - expected.low


@given(
    seed=st.integers(0, 10_000),
    images=st.integers(1, 60),
    rates=st.tuples(st.sampled_from((0.0, 0.3, 0.7, 1.0)), st.sampled_from((0.0, 0.3, 0.9, 1.0))),
)
def test_the_interval_of_a_difference_says_what_its_test_says(
    seed: int, images: int, rates: tuple[float, float]
) -> None:
    generator = np.random.default_rng(seed)
    first, second = (
        estimate_from(names(images), sums_of(generator, images, rate)) for rate in rates
    )
    for name in ("F1@0.5", "mIoU", "Adherence"):
        test = paired_difference(first, second, name)
        actual = test.interval
        assert (actual is None) == (test.p_value is None) == (images < FEWEST_IMAGES)
        if actual is None:
            continue
        assert -100 <= actual.low <= test.value <= actual.high <= 100
        assert actual.high - actual.low > 0.1
        assert test.significant == (actual.low > 0 or actual.high < 0)
        assert 0 not in (actual.low, actual.high)
        turned = paired_difference(second, first, name).interval
        assert (-turned.high, -turned.low) == pytest.approx((actual.low, actual.high))


def test_intervals_of_differences_hold_the_truth() -> None:
    generator = np.random.default_rng(11)
    hard = generator.random((100, 30, 2))
    built = [[sums_of(generator, 30, rate, share) for share in hard] for rate in (0.8, 0.6)]
    true = [100 * shares(np.sum(sums, axis=(0, 1)))[0] for sums in built]
    held = []
    for pair in zip(*built, strict=True):
        first, second = (estimate_from(names(30), sums) for sums in pair)
        actual = paired_difference(first, second, "F1@0.5").interval
        held.append(actual.low <= true[0] - true[1] <= actual.high)
    assert 93 <= 100 * np.mean(held) <= 99


@pytest.mark.parametrize(("images", "least"), [(4, 1 / 8), (5, 1 / 16), (8, 1 / 128)])
def test_few_images_cannot_say_more_than_coins(run: Run, images: int, least: float) -> None:
    actual = compare_runs(of_hits(run, [True] * images), of_hits(run, [False] * images))["F1@0.5"]
    assert (actual.value, actual.p_value) == (100, least)


def test_means_are_compared_over_what_both_have() -> None:
    """Models differ on a mean by what they differ on in each dataset, images shared or not."""
    generator = np.random.default_rng(9)
    first, second = (
        [estimate_from(names(80, prefix), sums_of(generator, 80, rate)) for prefix in ("", "b")]
        for rate in (0.7, 0.5)
    )
    actual = paired_difference(mean_of_estimates(first), mean_of_estimates(second), "mIoU")
    apart = [paired_difference(a, b, "mIoU").value for a, b in zip(first, second, strict=True)]
    assert actual.value == pytest.approx(np.mean(apart))
    assert actual.significant


def test_other_rows_are_refused(run: Run, world: World) -> None:
    fewer = world.run("Fewer", NAME, saying("[]"), rows=10)
    with pytest.raises(StatisticsError, match=r"12 rows of 6 images.*10 of 5"):
        compare_runs(fewer, run)
    other_rows = replace(run, provenance=replace(run.provenance, rows=frozenset(range(1, 13))))
    with pytest.raises(StatisticsError, match="only runs over the same rows"):
        compare_runs(run, other_rows)
    with pytest.raises(StatisticsError, match="the run has no rows"):
        estimate_run(with_queries(run, 0))


# --- failed calls ---------------------------------------------------------------------------------

HEADLINE = "F1@0.5 (failed calls as misses)"


def headline_counting_failures(run: Run, failed: set[int]) -> Run:
    """Return a run in which the calls of these queries failed."""
    rows = []
    for row in run.rows:
        if row.index in failed:
            nothing = {**dict.fromkeys(SUMS, 0), "failed": 1, "n_gt_failed": row.sums["n_gt"]}
            row = replace(row, sums=nothing, failed=True)
        rows.append(row)
    return of_answers(run, rows)


def without_boxes(run: Run, queries: set[int]) -> Run:
    """Return a run that answers these queries without a box."""
    empty = {"tp": 0, "n_pred": 0, "iou_sum": 0.0}
    rows = (
        replace(row, sums={**row.sums, **empty}) if row.index in queries else row
        for row in run.rows
    )
    return of_answers(run, rows)


# Where hardly any boxes are left, precision is tested in no run.
@given(
    failed=st.sets(st.integers(0, 19), max_size=19), empty=st.sets(st.integers(0, 19), max_size=10)
)
def test_paired_tests_treat_failed_calls_as_misses(
    module_run: Run, failed: set[int], empty: set[int]
) -> None:
    """Where two models find the same boxes, which of the other calls failed decides nothing."""
    run = with_queries(module_run, 20)
    one = headline_counting_failures(without_boxes(run, empty), failed)
    other = replace(without_boxes(run, failed | empty), model="Other")
    differences = compare_runs(one, other)
    assert differences[HEADLINE].value == pytest.approx(0, abs=1e-9)
    assert differences[HEADLINE].p_value == 1
    others = {name: each for name, each in differences.items() if name != HEADLINE}
    for name, each in others.items():
        tested = each.interval is not None, each.p_value is not None
        assert tested == ((False, False) if failed else (True, True)), name


@given(failed=st.sets(st.integers(0, 19), max_size=15), more=st.sets(st.integers(0, 19)))
def test_metrics_are_tested_where_both_answered_the_same(
    module_run: Run, failed: set[int], more: set[int]
) -> None:
    run = with_queries(module_run, 20)
    worse = without_boxes(run, {0, 1, 2})
    one = headline_counting_failures(run, failed)
    other = headline_counting_failures(worse, failed)
    assert not untested_metrics(one, other)
    answered = [row for row in one.rows if not row.failed]
    expected = compare_runs(of_answers(one, answered), of_answers(other, [
        row for row in other.rows if not row.failed
    ]))  # fmt: skip
    assert compare_runs(one, other)["F1@0.5"].p_value == pytest.approx(expected["F1@0.5"].p_value)
    other = headline_counting_failures(worse, failed | more)
    assert bool(untested_metrics(one, other)) == bool(more - failed)
