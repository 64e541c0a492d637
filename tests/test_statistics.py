from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scored_runs import World, failing, saying, speaking, world

from vlmeval_findit.metrics import Totals, figures
from vlmeval_findit.runs import Answer, Run
from vlmeval_findit.statistics import (
    METRICS,
    StatisticsError,
    cluster_sums,
    compare,
    difference,
    draw_counts,
    interval,
    intervals,
    metric_values,
    resample,
)

__all__ = ["world"]

NAME = "FindIt_Pascal_xyxy_json"


@pytest.fixture
def run(world: World) -> Run:
    return world.run("Some-Model", NAME, speaking(NAME, 0.6, 25))


def with_queries(run: Run, count: int, per_picture: int = 1) -> Run:
    """A run of as many queries, made of random sums."""
    generator = np.random.default_rng(1)
    answers = []
    for index in range(count):
        n_gt, n_pred = (int(n) for n in generator.integers(1, 5, 2))
        tp = int(generator.integers(0, min(n_gt, n_pred) + 1))
        sums = Totals(1, int(generator.random() < 0.9), 0, tp, n_pred, n_gt, 0, tp * 0.8)
        answers.append(one_answer(index, f"{index // per_picture}.jpg", sums))
    rows = frozenset(range(count))
    return replace(run, answers=tuple(answers), basis=replace(run.basis, rows=rows))


def one_answer(index: int, picture: str, sums: Totals) -> Answer:
    return Answer(index, "cat", picture, picture, None, (), (), (), (), (), sums)


def test_figures_of_sums_are_the_scores(run: Run, world: World) -> None:
    for one in (run, world.run("Fails", NAME, failing), world.run("Silent", NAME, saying("[]"))):
        f = figures(one.totals)
        values = metric_values(cluster_sums(one)[1].sum(axis=0))
        assert values == pytest.approx([f.f1, f.miou, f.adherence, f.precision, f.recall])
    assert metric_values(np.zeros((3, 8))).tolist() == [[0.0] * 5] * 3


def test_queries_of_one_picture_are_one_cluster(run: Run) -> None:
    names, sums = cluster_sums(run)
    assert names == tuple(f"{i}.jpg" for i in range(6))
    assert sums.shape == (6, 8)
    assert sums[:, 0].tolist() == [2] * 6


def test_draws_are_multinomial_and_seeded() -> None:
    first = np.concatenate(list(draw_counts(7, 5000, seed=3)))
    assert first.shape == (5000, 7)
    assert (first.sum(axis=1) == 7).all()
    assert first.mean(axis=0) == pytest.approx([1] * 7, abs=0.05)
    # Of 7 equal chances in 7 draws: variance 7 · 1/7 · 6/7.
    assert first.var(axis=0) == pytest.approx([6 / 7] * 7, abs=0.06)
    again = np.concatenate(list(draw_counts(7, 5000, seed=3)))
    assert (first == again).all()
    other = np.concatenate(list(draw_counts(7, 5000, seed=4)))
    assert (first != other).any()
    assert sum(len(block) for block in draw_counts(300_000, 7)) == 7


@pytest.mark.parametrize("metric", range(5))
def test_intervals_agree_with_scipy(run: Run, metric: int) -> None:
    """The same data, resampled by scipy: within the noise of 20,000 resamples."""
    many = with_queries(run, 60, per_picture=2)
    _, sums = cluster_sums(many)

    def figure(*columns: np.ndarray, axis: int = -1) -> np.ndarray:
        return metric_values(np.stack([c.sum(axis=axis) for c in columns], axis=-1))[..., metric]

    theirs = stats.bootstrap(
        tuple(sums.T),
        figure,
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        confidence_level=0.95,
        method="percentile",
        rng=np.random.default_rng(5),
    )
    ours = interval(resample([many], 20_000, seed=6)[0, :, metric])
    assert ours is not None
    low, high = theirs.confidence_interval
    spread = high - low
    assert ours.low == pytest.approx(low, abs=0.04 * spread + 1e-9)
    assert ours.high == pytest.approx(high, abs=0.04 * spread + 1e-9)
    deviation = resample([many], 20_000, seed=6)[0, :, metric].std(ddof=1)
    assert deviation == pytest.approx(theirs.standard_error, rel=0.03, abs=1e-9)


def test_clusters_widen_the_intervals(run: Run) -> None:
    """Every query asked four times is not four times the evidence."""
    single = with_queries(run, 50)
    answers = [replace(a, index=4 * a.index + i) for a in single.answers for i in range(4)]
    rows = frozenset(range(200))
    together = replace(single, answers=tuple(answers), basis=replace(single.basis, rows=rows))
    apart = replace(
        together,
        answers=tuple(replace(a, source=f"{a.index}.jpg") for a in together.answers),
    )
    widths = [
        found.high - found.low
        for one in (single, together, apart)
        if (found := intervals(one)["F1@0.5"]) is not None
    ]
    assert widths[1] == pytest.approx(widths[0])
    assert widths[2] == pytest.approx(widths[0] / 2, rel=0.15)


def test_paired_differences(run: Run, world: World) -> None:
    same = compare(run, run)["F1@0.5"]
    assert (same.value, same.p_value, same.significant) == (0, 1, False)
    text = "FindIt_Pascal_xyxy_text"
    formats = compare(run, world.run("Some-Model", text, speaking(text, 0.6, 25)))
    assert not formats["F1@0.5"].significant
    perfect = world.run("Perfect", NAME, speaking(NAME, 1.0))
    better = compare(perfect, run)["F1@0.5"]
    assert better.value == pytest.approx(perfect.figures.f1 - run.figures.f1)
    assert better.significant
    assert better.interval is not None
    assert better.interval.low > 0
    worse = compare(run, perfect)["F1@0.5"]
    assert worse.value == pytest.approx(-better.value)
    assert worse.p_value == better.p_value


def test_the_test_and_the_interval_say_the_same() -> None:
    generator = np.random.default_rng(2)
    for shift in np.linspace(0, 4, 30):
        draws = generator.normal(shift, 1, 4000)
        found = difference(shift, 0, draws, np.zeros(4000))
        assert found.interval is not None
        # One is added to the counts, so at the very edge they may differ.
        if abs(found.interval.low) > 0.02:
            assert found.significant == (found.interval.low > 0)


def test_false_alarms_are_as_rare_as_promised(run: Run) -> None:
    """Two runs without a true difference: about 5 % of tests say there is one."""
    generator = np.random.default_rng(8)
    alarms = 0
    for _ in range(200):
        runs = []
        for _ in range(2):
            hits = generator.random(80) < 0.5
            answers = tuple(
                one_answer(i, f"{i}.jpg", Totals(1, 1, 0, int(hit), 1, 1, 0, float(hit)))
                for i, hit in enumerate(hits)
            )
            rows = frozenset(range(80))
            runs.append(replace(run, answers=answers, basis=replace(run.basis, rows=rows)))
        alarms += compare(*runs, resamples=500)["F1@0.5"].significant
    assert 2 <= alarms <= 20


def test_other_rows_are_refused(run: Run, world: World) -> None:
    fewer = world.run("Fewer", NAME, saying("[]"), rows=10)
    with pytest.raises(StatisticsError, match=r"12 rows of 6 pictures.*10 of 5"):
        compare(fewer, run)
    with pytest.raises(StatisticsError, match="without rows"):
        resample([with_queries(run, 0)])


def test_one_picture_has_no_interval(run: Run) -> None:
    alone = with_queries(run, 3, per_picture=3)
    assert set(intervals(alone).values()) == {None}
    found = compare(alone, alone)["mIoU"]
    assert (found.interval, found.p_value, found.significant) == (None, None, False)


def test_ten_thousand_resamples_of_a_thousand_queries_in_two_seconds(run: Run) -> None:
    many = with_queries(run, 1000)
    start = time.perf_counter()
    found = intervals(many, resamples=10_000)
    assert time.perf_counter() - start < 2
    assert list(found) == list(METRICS)
