"""Several replies to each query: values, intervals, pass@k, agreement, consensus."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scored_runs import CallResult, World, failing, saying, speaking

from vlmeval_findit.analysis import (
    SamplesError,
    StatisticsError,
    add_agreement,
    load_samples,
    pass_at,
    pass_estimate,
    sample_files,
    score_samples,
    write_consensus,
)
from vlmeval_findit.boxes import AGREEMENT
from vlmeval_findit.cli import main
from vlmeval_findit.protocol import FAILED_ANSWER, SAMPLE_SETTING, Identity, Metric, ScoredRow
from vlmeval_findit.scoring import load_runs
from vlmeval_findit.statistics import (
    FEWEST_IMAGES,
    clustered_sums,
    estimate_metrics,
    mean_of_estimates,
    metric_intervals,
)
from vlmeval_findit.storage import MORE_SAMPLES, RunFiles

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"


def sampled(world: World, answers: Sequence[CallResult], name: str = NAME) -> Path:
    """Write and score a sample for each way of answering, and return the file of the first."""

    def numbered(sample: int) -> Callable[[Identity], Identity]:
        settings = {"temperature": 0.7, **({SAMPLE_SETTING: sample} if sample > 1 else {})}
        return lambda run: replace(run, answering=replace(run.answering, settings=settings))

    folders = ["", *(f"{MORE_SAMPLES}/{sample}" for sample in range(2, len(answers) + 1))]
    paths = [
        world.predict("M", name, answer, change=numbered(sample), folder=folder)
        for sample, (answer, folder) in enumerate(zip(answers, folders, strict=True), 1)
    ]
    assert sample_files(paths[0]) == paths
    return paths[0]


def random(seed: int) -> CallResult:
    """A model that says boxes by chance, other ones in each sample."""
    answer = speaking(NAME, 0.6, 40)
    generator = np.random.default_rng(seed)
    return lambda query, _: answer(query, generator)


# --- values ---------------------------------------------------------------------------------------


@given(n=st.integers(1, 7), data=st.data())
def test_pass_at_k_is_the_share_of_solving_draws(n: int, data: st.DataObject) -> None:
    solved = data.draw(st.integers(0, n))
    k = data.draw(st.integers(1, n))
    draws = list(combinations([at < solved for at in range(n)], k))
    assert pass_at(n, solved, k) == pytest.approx(fmean(map(any, draws)))


def test_the_samples_of_a_run_against_plain_sums(world: World) -> None:
    runs = load_samples(sampled(world, [*map(random, range(3)), failing]))
    score, benchmark = score_samples(runs), runs[0].benchmark
    headline = benchmark.headline_counting_failures
    assert score.metrics[0] == headline, "a call failed"
    assert score.failed == 4
    values = [headline.value(run.sums) or 0.0 for run in runs]
    assert len({*values}) > 2
    assert score.mean.value(headline.name) == pytest.approx(fmean(values))
    scores = [
        [-1.0 if row.failed else benchmark.query_score(row) for row in rows]
        for rows in zip(*(run.rows for run in runs), strict=True)
    ]
    solved = [each.count(100) for each in scores]
    # Every query has two objects, so the values of queries weigh nearly alike.
    assert score.best.value(headline.name) == pytest.approx(fmean(map(max, scores)), abs=3)
    assert [metric.name for metric in score.passes.metrics] == ["pass@1", "pass@2", "pass@4"]
    for k in (1, 2, 4):
        plain = fmean(pass_at(4, each, k) for each in solved)
        assert score.passes.value(f"pass@{k}") == pytest.approx(100 * plain)


def test_a_failed_call_is_best_only_where_all_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:

    def once(query: Any, generator: Any) -> str:
        return "[]" if query.index == 1 else f"{FAILED_ANSWER} via API."

    score = score_samples(load_samples(sampled(world, [failing, saying("[]"), once])))
    assert score.best.value(score.metrics[0].name) == 0
    runs = load_samples(sampled(world, [once] * 3))
    assert score_samples(runs).best.value(score.metrics[0].name) == 0
    monkeypatch.setattr(type(runs[0].benchmark), "query_score", lambda *_: 100.0)
    solved = 100 / len(runs[0].rows)
    known = pass_estimate(runs).value("pass@2")
    assert known == pytest.approx(solved), "whatever a failed call's query score is"


PAIRS = st.tuples(st.integers(0, 3), st.integers(3, 6))
"""True positives, and truths, of a query."""


@given(
    st.lists(st.lists(PAIRS, min_size=3, max_size=3), min_size=5, max_size=12), st.integers(1, 3)
)
def test_an_image_with_all_its_samples_is_one_cluster(
    queries: list[list[tuple[int, int]]], per_image: int
) -> None:
    """Against a slow, plain implementation."""
    metric = Metric("F1", {"tp": 2}, {"n": 1})
    samples = [
        [
            ScoredRow(at, f"{at // per_image}.png", {"tp": tp, "n": 2 * truths})
            for at, (tp, truths) in enumerate(sample)
        ]
        for sample in zip(*queries, strict=True)
    ]
    actual = mean_of_estimates(
        [estimate_metrics([metric], clustered_sums(rows, "x")) for rows in samples]
    )
    images = sorted({row.source for row in samples[0]})
    values = [f1(rows) for rows in samples]
    assert actual.value("F1") == pytest.approx(100 * fmean(values))
    if (count := len(images)) >= FEWEST_IMAGES:
        for image, influence in zip(images, actual.influence[:, 0], strict=True):
            without = [[row for row in rows if row.source != image] for rows in samples]
            lost = fmean(values) - fmean(f1(rows) for rows in without)
            assert influence == pytest.approx(lost * sqrt((count - 1) / count))
        alone = estimate_metrics([metric], clustered_sums(samples[0], "x"))
        alike = mean_of_estimates([alone] * len(samples))
        one = metric_intervals(alone)["F1"]
        same = metric_intervals(alike)["F1"]
        # The same reply in every sample is no more evidence than one.
        assert (same.low, same.high) == pytest.approx((one.low, one.high))


def f1(rows: Sequence[ScoredRow]) -> float:
    return 2 * sum(row.sums["tp"] for row in rows) / sum(row.sums["n"] for row in rows)


# --- what belongs together ------------------------------------------------------------------------


def test_only_samples_of_one_run_are_taken_together(world: World) -> None:
    path = sampled(world, [saying("[]")] * 3)
    assert [run.path for run in load_runs([world.runs])] == [path]
    named = load_runs([world.runs / MORE_SAMPLES])
    assert [run.path for run in named] == sample_files(path)[1:], "unless it is named"
    other = named[0].path
    identity = RunFiles(other).identity
    identity.write_text(identity.read_text().replace('"temperature": 0.7', '"temperature": 1.0'))
    assert main(["score", str(other)]) == 0
    with pytest.raises(SamplesError, match=r"is not a sample of .* setting temperature"):
        load_samples(path)
    world.predict("M", NAME, saying("[]"), rows=5, folder=f"{MORE_SAMPLES}/2")
    with pytest.raises(StatisticsError, match="only runs over the same rows"):
        load_samples(path)


# --- agreement ------------------------------------------------------------------------------------


def row(boxes: Any, *, failed: bool = False, **details: Any) -> ScoredRow:
    return ScoredRow(0, "a.png", {}, failed=failed, details={"boxes": boxes, **details})


A = [0.0, 0.0, 10.0, 10.0]
NEAR_A = [0.0, 0.0, 10.0, 8.0]
B = [50.0, 50.0, 60.0, 60.0]


@pytest.mark.parametrize(
    ("mine", "others", "shares"),
    [
        (row([A, B]), [row([NEAR_A]), row([NEAR_A, B]), row([]), row([B])], [0.5, 0.5]),
        (row([A]), [row([A], failed=True), row([NEAR_A])], [1.0]),
        (row([A]), [row([A], failed=True)], None),
        (row([[None, 0.0, 1.0, 1.0], A]), [row([A, [None] * 4])], [0.0, 1.0]),
        (
            row([A, A], labels=["Cat", "dog"], frames=[0, 1]),
            [
                row([A, A], labels=["cat.", "dog"], frames=[0, 0]),
                row([A], labels=["dog"], frames=[1]),
            ],
            [0.5, 0.5],
        ),
    ],
)
def test_agreement_is_the_share_of_other_answers(
    mine: ScoredRow, others: list[ScoredRow], shares: list[float] | None
) -> None:
    (actual,) = add_agreement([mine], [[each] for each in others])
    assert actual.details.get("confidences", {}).get(AGREEMENT) == shares


# --- consensus ------------------------------------------------------------------------------------


def test_the_consensus_is_a_reply_like_any_other(world: World) -> None:
    name = "FindIt_Pascal_multilabel_cxcywh_text"
    good = speaking(name, 1.0)
    path = sampled(world, [good, saying("[]"), good], name)
    consensus = write_consensus(load_samples(path))
    assert consensus.metric_values["F1@0.5"] == consensus.metric_values["Adherence"] == 100
    assert consensus.metric_values["mIoU"] == pytest.approx(100, abs=0.2)
    assert consensus.path.parent == world.runs / MORE_SAMPLES / "consensus"
    assert consensus.provenance.identity.answering.sampling_note == (
        "replies were sampled at temperature 0.7 (consensus of 3 samples)"
    )
    before = consensus.path.read_bytes()
    assert write_consensus(load_samples(path)).sums == consensus.sums
    assert consensus.path.read_bytes() == before, "written twice it is the same"
    assert main(["score", str(consensus.path)]) == 0, "and scored again by anybody"


TWO_PEOPLE = '[{"bbox_2d": [100, 100, 300, 400]}, {"bbox_2d": [140, 100, 340, 400]}]'


@pytest.mark.parametrize(
    "reply",
    [
        TWO_PEOPLE,
        TWO_PEOPLE.replace("}]", '}, {"bbox_2d": "somewhere"}]'),  # Not adherent, with boxes
        '[{"bbox_2d": [500, 500, 500, 500]}, {"bbox_2d": [500, 500, 500, 500]}]',
        "[]",
        "There is none.",
    ],
)
def test_the_consensus_of_equal_replies_is_that_reply(world: World, reply: str) -> None:
    runs = load_samples(sampled(world, [saying(reply)] * 3))
    consensus = write_consensus(runs)
    assert consensus.sums == runs[0].sums
    assert {each["prediction"] for each in json.loads(consensus.path.read_text())} == {reply}


def test_the_consensus_has_both_of_two_people_side_by_side(world: World) -> None:
    """Said in another order, and not to the pixel alike."""
    others = ["[[139, 99, 341, 401], [101, 101, 299, 399]]", "[[100, 100, 300, 400]]", TWO_PEOPLE]
    texts = [TWO_PEOPLE, *(text.replace("[1", '{"bbox_2d": [1') for text in others)]
    texts = [text.replace("],", "]},").replace("]]", "]}]").replace("]}}", "]}") for text in texts]
    texts[-1] = TWO_PEOPLE
    consensus = write_consensus(load_samples(sampled(world, [saying(text) for text in texts])))
    for row_ in consensus.rows:
        assert row_.details["boxes"] == [
            pytest.approx([20.05, 10.03, 59.95, 39.97], abs=0.1),
            pytest.approx([27.9, 10, 68.1, 40], abs=0.1),
        ]


def test_no_box_not_readable_and_failed_stay_three_things(world: World) -> None:
    box = '[{"bbox_2d": [100, 100, 300, 600]}]'
    failed = f"{FAILED_ANSWER} via API. HTTP 500"
    replies = {
        0: ([box, box, failed, failed], 1, None),  # two of two answers
        1: ([box, "[]", "oh no", "[]"], 0, None),
        2: (["oh no", "[]", "oh no", "oh no"], 0, "not JSON"),
        3: ([failed] * 4, 0, "failed call"),
        4: ([box, box, "oh no", "[]"], 0, None),  # half of four answers
        5: ([failed, failed, failed, box], 1, None),
    }

    def answer(sample: int) -> CallResult:
        return lambda query, _: replies.get(query.index, replies[1])[0][sample]

    consensus = write_consensus(load_samples(sampled(world, [answer(at) for at in range(4)])))
    for index, (_, boxes, reason) in replies.items():
        scored = consensus.rows[index]
        assert len(scored.details["boxes"]) == boxes, index
        assert scored.reason == reason, index
        assert scored.failed == (reason == "failed call")
    assert consensus.failed == 1
    texts = [each["prediction"] for each in json.loads(consensus.path.read_text())]
    assert texts[2] == "oh no"
    assert "the calls of all samples failed" in texts[3]


# --- commands -------------------------------------------------------------------------------------


def test_commands_print_all_of_it(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    alone = world.predict("Alone", NAME, saying("[]"))
    sampled(world, [*map(random, range(4))])
    assert main(["samples", str(world.runs)]) == 0
    printed = capsys.readouterr()
    for words in ("mean of 4 samples", "consensus", "best sample by truth", "pass@4", "brackets"):
        assert words in printed.out
    assert "1 run with one reply to each query was left out" in printed.err
    assert main(["samples", str(alone)]) == 2
    assert "--samples 8 --temperature 0.7" in capsys.readouterr().err
    assert main(["calibration", str(world.runs)]) == 0
    printed = capsys.readouterr()
    assert "by agreement" in printed.out
    assert "agreement: the share of the other samples that have the box" in printed.out


def test_samples_of_points_have_no_consensus(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sampled(world, [saying('[{"point_2d": [400, 400]}]')] * 2, "FindIt_Pascal_point_json")
    assert main(["samples", str(path)]) == 0
    printed = capsys.readouterr()
    assert "no consensus: FindIt_Pascal_point_json: its answers are not boxes" in printed.err
    assert "Pointing accuracy" in printed.out
    assert "pass@2" in printed.out
