"""Confidences of boxes: average precision, calibration, and where they are written."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scored_runs import WIDTH, World, grid, query, two_labels

from vlmeval_findit.analysis import (
    CalibrationResult,
    CocoBoxes,
    CocoEvaluator,
    ConfidenceError,
    measure_calibration,
)
from vlmeval_findit.boxes import CONFIDENCE_DEFINITIONS, BoxToWrite, read, stated_places, write
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import FAILED_ANSWER, ReplyRecord, Settings, TokenLogprobs
from vlmeval_findit.scoring import load_run, score_file, write_score
from vlmeval_findit.statistics import (
    ConfidentBoxes,
    best_threshold,
    bootstrap_weights,
    calibration_error,
    estimate_calibration_error,
    f1_curve,
    reliability,
)
from vlmeval_findit.storage import RunFiles, record_text

pytest.importorskip("pycocotools")

NAME = "FindIt_Pascal_xyxy_json"
LABELS = "FindIt_Pascal_multilabel_xyxy_json"
GRID = Settings(space="grid1000")

Sure = tuple[tuple[float, ...], str, float]
"""A box in pixels, its label, and how sure the model is of its numbers."""
CallResult = Callable[[Any], Sequence[Sure] | None]


def answered(world: World, name: str, answer: CallResult) -> Path:
    """Return a prediction file; None stands for a failed call.

    A token is a character, and certain but in the numbers of boxes.
    """
    dataset = load_dataset(name)
    how = dataset.variant.reply
    rows = []
    for index, item in dataset.queries.items():
        reply = FAILED_ANSWER
        record = ReplyRecord(call={"error": "down"})
        if (boxes := answer(item)) is not None:
            reply = write([BoxToWrite(grid(box), label) for box, label, _ in boxes], how)
            logprobs = [0.0] * len(reply)
            located = stated_places(reply, how, read(reply, how))
            for place, (_, _, sure) in zip(located, boxes, strict=True):
                for start, end in place.numbers:
                    logprobs[start:end] = [math.log(sure)] * (end - start)
            tokens = TokenLogprobs.rounded(range(1, len(reply) + 1), logprobs)
            record = ReplyRecord(finish_reason="stop", token_logprobs=tokens)
        rows.append({"index": index, "prediction": reply, "extra_records": record_text(record)})
    path = world.runs / f"Model_{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def bare(path: Path) -> Path:
    """Return the same run without log-probabilities."""
    target = path.with_name(path.name.replace("_FindIt", "-bare_FindIt"))
    rows = [row | {"extra_records": "{}"} for row in json.loads(path.read_text())]
    target.write_text(json.dumps(rows))
    return target


def judged(path: Path) -> CalibrationResult:
    return measure_calibration(score_file(path, GRID), path)


def mean_of(run: CalibrationResult) -> Any:
    return next(item for item in run.by_definition if item.definition == "mean")


def evaluator_of(path: Path) -> tuple[CocoEvaluator, list[float]]:
    """Return the evaluator of a run, and the confidences of its boxes."""
    run = score_file(path, GRID)
    boxes = CocoBoxes(run.dataset, run.rows)
    return CocoEvaluator(boxes), [item.confidence("mean") for item in boxes.origins]


def noisy(seed: int, sure: Callable[[bool, np.random.Generator], float]) -> CallResult:
    """Answer with hits and misses; confidences by whether a box is a hit."""
    generator = np.random.default_rng(seed)

    def answer(item: Any) -> list[Sure]:
        boxes: list[Sure] = []
        labels = item.truth.labels or [""] * len(item.truth.boxes)
        for box, label in zip(item.truth.boxes, labels, strict=True):
            hit = bool(generator.random() < 0.6)
            shift = generator.uniform(0, 6) if hit else 60
            moved = tuple(float(np.clip(n + shift, 0, WIDTH)) for n in box)
            boxes.append((moved, label, sure(hit, generator)))
        return boxes

    return answer


def labelled(world: World) -> None:
    world.table("Pascal_multilabel", [two_labels(i, f"{i}.jpg") for i in range(30)])


# --- average precision ----------------------------------------------------------------------------

CAT = (10.0, 10.0, 50.0, 60.0)
DOG = (120.0, 20.0, 180.0, 90.0)
NOWHERE = (150.0, 0.0, 199.0, 9.0)


def by_hand(world: World, first: Sequence[Any], *answers: Sequence[Sure]) -> Path:
    """Return a run of two answers: about some objects, and about a cat."""
    world.table("Pascal", [query(0, "a.jpg", boxes=first), query(1, "b.jpg", boxes=[CAT])])
    return answered(world, NAME, lambda item: answers[item.index])


def test_average_precision_worked_by_hand(world: World) -> None:
    """Three objects; in the order of confidence a hit, a miss, a hit, and nothing more.

    Precision is 1 up to a recall of 1/3, then 2/3 up to 2/3, then 0: of COCO's 101 recalls 34, 33
    and 34.  In the order of output the miss is first: 2/3 for 67 recalls.
    """
    said = [(NOWHERE, "", 0.5), (CAT, "", 0.9), (DOG, "", 0.4)]
    run = judged(by_hand(world, [CAT, DOG], said, []))
    mean = mean_of(run).ranking
    assert mean.ap50.value == pytest.approx(100 * (34 + 33 * 2 / 3) / 101)
    assert mean.ap.value == pytest.approx(mean.ap50.value), "boxes fit exactly"
    assert run.as_output.ap50.value == pytest.approx(100 * 67 * 2 / 3 / 101)
    assert mean.ap50.gain == pytest.approx(mean.ap50.value - run.as_output.ap50.value)
    assert mean.ap50.interval is None, "two images have no interval"
    # The first boxes of all replies come first: hit, hit, miss. Else it is hit, miss, hit.
    run = judged(by_hand(world, [CAT], [(CAT, "", 0.5), (NOWHERE, "", 0.5)], [(CAT, "", 0.5)]))
    assert run.as_output.ap50.value == pytest.approx(100)
    assert mean_of(run).ranking.ap50.value == pytest.approx(100 * (51 + 50 * 2 / 3) / 101)


def test_boxes_without_a_confidence_come_last_and_are_counted(world: World) -> None:
    said = [(CAT, "", 0.9), (DOG, "", 0.8)]
    path = by_hand(world, [CAT, DOG], said, [(NOWHERE, "", 0.5)])
    rows = json.loads(path.read_text())
    rows[1]["prediction"] = '[{"bbox": [true, 2, 3, 4]}]'
    path.write_text(json.dumps(rows))
    item = mean_of(judged(path))
    assert item.unsure == 1
    assert item.ranking.ap50.value == pytest.approx(100 * 67 / 101)
    assert sum(bin_.boxes for bin_ in item.bins) == 2
    assert item.threshold.value == pytest.approx(0.8, abs=1e-3), "without the last one"
    assert (item.threshold.f1, item.threshold.f1_uncut) == pytest.approx((80.0, 200 / 3))
    score = score_file(path, GRID)
    assert score.metric_values["F1@0.5"] == pytest.approx(item.threshold.f1_uncut)


@pytest.mark.parametrize("name", [LABELS, "FindIt_RefCOCO_xyxy_json"])
def test_it_is_what_pycocotools_says(world: World, name: str) -> None:
    """Our sums over its matches are its values, ties and images asked twice included."""
    labelled(world)
    world.table("RefCOCO", [query(i, f"{i // 3}.jpg", boxes=[CAT]) for i in range(20)])
    ties = noisy(3, lambda hit, generator: float(generator.choice([0.3, 0.5, 0.7])))
    evaluator, confidences = evaluator_of(answered(world, name, ties))
    chance = np.random.default_rng(3).random(len(confidences)).tolist()
    for scores in ([1.0] * len(confidences), confidences, chance):
        theirs = evaluator.run(scores)
        theirs.accumulate()
        expected = theirs.eval["precision"]
        ours = evaluator.precision(scores)
        assert ours.ap[0] == pytest.approx(expected[expected > -1].mean(), abs=1e-12)
        assert ours.ap50[0] == pytest.approx(expected[0][expected[0] > -1].mean(), abs=1e-12)


def test_weights_are_images_that_come_again(world: World) -> None:
    """An image with the weight 2 counts as two images, one with 0 as none."""

    def answer(item: Any) -> list[Sure]:
        i = item.index
        drawn = noisy(item.index, lambda hit, _: 0.5)(item)
        sure = (0.1 * (i + 1), 0.9 - 0.11 * i)
        return [(box, label, each) for (box, label, _), each in zip(drawn, sure, strict=True)]

    def evaluator(images: Sequence[int]) -> tuple[CocoEvaluator, list[float]]:
        world.table("Pascal", [query(i, f"{at}.jpg") for at, i in enumerate(images)])
        return evaluator_of(answered(world, NAME, answer))

    once, scores = evaluator(range(6))
    weights = np.array([[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 0, 1.0], [1, 0, 0, 0, 1, 0], [2] * 6])
    actual = once.precision(scores, weights).ap
    for value, weight in zip(actual, weights, strict=True):
        again, own_scores = evaluator([i for i in range(6) if weight[i]])
        assert again.precision(own_scores).ap[0] == pytest.approx(value, abs=1e-9)


def test_queries_of_an_image_are_not_independent(world: World) -> None:
    """The same answers about a quarter of the images have wider intervals."""

    def answer(item: Any) -> list[Sure]:  # Alike for the queries of an image
        hit = int(item.images[0][:-4]) % 2
        sure = 0.5 + item.index / 100
        return [(box if hit else NOWHERE, "", sure) for box in item.truth.boxes]

    def width(images: int) -> float:
        world.table("Pascal", [query(i, f"{i % images}.jpg") for i in range(40)])
        interval = mean_of(judged(answered(world, NAME, answer))).ranking.ap.interval
        return float(interval.high - interval.low)

    assert width(10) > 1.4 * width(40)


def test_ranks_that_matter(world: World) -> None:
    """Confidences that know raise it, inverted ones lower it, the output's order lies between."""
    labelled(world)
    right = judged(answered(world, LABELS, noisy(1, lambda hit, _: 0.9 if hit else 0.2)))
    wrong = judged(answered(world, LABELS, noisy(1, lambda hit, _: 0.2 if hit else 0.9)))
    best = mean_of(right).ranking
    worst = mean_of(wrong).ranking
    for of in ("ap", "ap50"):
        assert getattr(worst, of).value < getattr(right.as_output, of).value
        assert getattr(best, of).gain_interval.low > 0
        assert getattr(worst, of).gain_interval.high < 0
        assert getattr(right.as_output, of) == getattr(wrong.as_output, of)


# --- calibration and thresholds, by hand ----------------------------------------------------------


def boxes(*rows: tuple[float, bool, int], objects: Sequence[float]) -> ConfidentBoxes:
    confidence, hit, image = (np.array(column) for column in zip(*rows, strict=True))
    return ConfidentBoxes(confidence, hit, image, np.array(objects, dtype=float))


HAND = boxes(
    (0.95, True, 0), (0.91, True, 0), (0.9, False, 1), (0.55, True, 1), (0.1, False, 1),
    (math.nan, True, 0), (1.0, True, 0), (0.0, False, 1),
    objects=(4, 2),
)  # fmt: skip


def test_calibration_worked_by_hand() -> None:
    bins = reliability(HAND)
    assert [(item.low, item.high, item.boxes, item.hits) for item in bins] == [
        (0.0, 0.1, 1, 0), (0.1, 0.2, 1, 0), (0.5, 0.6, 1, 1), (0.9, 1.0, 4, 0.75),
    ]  # fmt: skip
    assert bins[-1].confidence == pytest.approx((0.95 + 0.91 + 0.9 + 1) / 4)
    off = (0 + 0.1 + 0.45 + 4 * abs(0.94 - 0.75)) / 7
    assert calibration_error(bins) == pytest.approx(off)


@pytest.mark.parametrize("off", [0.0, 0.1])
def test_the_error_beyond_chance_is_the_same_for_any_size(off: float) -> None:
    """ECE falls with the number of boxes; what is beyond chance does not."""
    random = np.random.default_rng(8)
    usual, beyond, held = {}, {}, []
    for images in (40, 800):
        weights = bootstrap_weights(images)
        errors = []
        for _ in range(40):
            confidence = random.beta(8, 2, images)
            hit = random.random(images) < confidence - off
            drawn = ConfidentBoxes(confidence, hit, np.arange(images), np.ones(images))
            errors.append(estimate_calibration_error(drawn, weights))
        usual[images] = np.mean([each.value for each in errors])
        beyond[images] = np.mean([each.beyond_chance for each in errors])
        held += [each.interval.low <= off <= each.interval.high for each in errors]
    assert usual[40] > usual[800] + 0.02
    assert beyond[800] == pytest.approx(off, abs=0.02)
    assert beyond[40] - beyond[800] < (usual[40] - usual[800]) * 0.7
    assert np.mean(held) > 0.88


def test_images_and_not_boxes_are_resampled() -> None:
    """Ten boxes that are alike say no more than one."""
    random = np.random.default_rng(3)
    confidence = random.beta(8, 2, 60)
    hit = random.random(60) < confidence
    image = np.arange(60)
    weights = bootstrap_weights(60)
    one = ConfidentBoxes(confidence, hit, image, np.ones(60))
    ten = ConfidentBoxes(*(np.repeat(each, 10) for each in one[:3]), np.full(60, 10.0))
    errors = [estimate_calibration_error(each, weights) for each in (one, ten)]
    assert errors[0].by_chance == pytest.approx(errors[1].by_chance)
    assert errors[0].interval.high == pytest.approx(errors[1].interval.high)


def test_of_few_images_the_error_stands_alone() -> None:
    error = estimate_calibration_error(HAND, np.zeros((0, 2)))
    assert error.value == pytest.approx(calibration_error(reliability(HAND)))
    assert (error.by_chance, error.beyond_chance, error.interval) == (None, None, None)
    none = HAND._replace(confidence=np.full(8, math.nan))
    assert estimate_calibration_error(none, np.ones((5, 2))) is None


def test_f1_by_threshold_is_that_of_the_remaining_boxes() -> None:
    actual = f1_curve(HAND)
    assert all(a < b for a, b in pairwise(actual.thresholds))
    for at, threshold in enumerate(actual.thresholds):
        stored = np.nan_to_num(HAND.confidence) >= threshold
        hits, count = HAND.hit[stored].sum(), stored.sum()
        assert actual.precision[at] == pytest.approx(100 * hits / count, abs=1e-4)
        assert actual.recall[at] == pytest.approx(100 * hits / 6, abs=1e-4)
        assert actual.f1[at] == pytest.approx(100 * 2 * hits / (count + 6), abs=1e-4)
    best = best_threshold(HAND, np.zeros((0, 2)))
    assert best.interval is None
    # 3 of 3 and 4 of 5 remain at 0.91 and 0.55: 6/9 and 8/11.
    assert (best.value, best.f1) == (0.55, pytest.approx(800 / 11))
    assert best.f1_uncut == pytest.approx(100 * 10 / 14)
    assert f1_curve(boxes((0.5, True, 0), objects=(0,))).recall == (0.0,)
    # Of equally good thresholds the lowest: a hit of three objects, or two among five boxes.
    hits = [True, False, False, False, True, False]
    equal = boxes(*((0.9 - at / 10, hit, 0) for at, hit in enumerate(hits)), objects=(3,))
    best = best_threshold(equal, np.zeros((0, 1)))
    assert (best.value, best.f1) == (pytest.approx(0.5), pytest.approx(50))


def test_the_best_threshold_is_best_where_it_was_chosen() -> None:
    """Without information the best threshold here is not best elsewhere; with it, it is."""
    generator = np.random.default_rng(5)
    image = np.arange(400) // 4
    drawn = generator.multinomial(100, [0.01] * 100, 300).astype(float)
    hit = generator.random(400) < 0.3
    chance = generator.random(400)
    knowing = np.where(hit, 0.7, 0.3) + generator.uniform(-0.19, 0.19, 400)
    for confidence in (chance, knowing):
        best = best_threshold(ConfidentBoxes(confidence, hit, image, np.full(100, 2.0)), drawn)
        assert best.interval.low <= best.value <= best.interval.high
        assert best.f1 >= max(best.f1_uncut, best.f1_elsewhere)
    assert best.f1_elsewhere == pytest.approx(best.f1, abs=4)
    assert 0.5 < best.value < 0.6


def test_a_run_without_boxes_has_nothing_of_it() -> None:
    none = HAND.where(np.zeros(8, dtype=bool))
    assert best_threshold(none, np.zeros((0, 2))) is None
    assert reliability(none) == []
    assert calibration_error([]) is None
    assert f1_curve(none).f1 == ()


# --- where it shows -------------------------------------------------------------------------------


@pytest.fixture
def run(world: World) -> Path:
    """Return a run whose first call failed."""
    labelled(world)
    answer = noisy(2, lambda hit, generator: generator.uniform(0.5 * hit, 0.6 + 0.3 * hit))
    return answered(world, LABELS, lambda item: answer(item) if item.index else None)


@pytest.mark.sees("calibration --json")
def test_the_command_leaves_out_runs_without_confidences(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written, without = tmp_path / "all.json", bare(run)
    command = ["calibration", "--space", "grid1000", str(without)]
    assert main([*command, str(run), "--json", str(written)]) == 0
    captured = capsys.readouterr()
    assert f"1 run left out: not asked with --logprobs or --samples ({without})" in captured.err
    assert "58 boxes in 29 replies about 29 images" in captured.out
    (told,) = json.loads(written.read_text(), parse_constant=pytest.fail)
    assert [item["definition"] for item in told["by_definition"]] == list(CONFIDENCE_DEFINITIONS)
    assert told["by_definition"][0]["curve"][0] == sorted(told["by_definition"][0]["curve"][0])
    assert main(command) == 2
    shown = capsys.readouterr().err
    assert f"{without}: none of its boxes has a confidence" in shown
    assert "Ask again with --logprobs" in shown


def test_export_to_coco_writes_them(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "coco"

    def export(path: Path, *more: str) -> int:
        write_score(score_file(path, GRID), path)
        return main(["export", str(path), "--to", "coco", "--out", str(out), *more])

    assert export(bare(run), "--confidence", "mean") == 2
    assert "--logprobs" in capsys.readouterr().err
    assert not out.exists()
    for name, words in (("mean", ()), ("minimum", ("--confidence", "minimum"))):
        assert export(run, *words) == 0
        results = json.loads((out / f"{run.stem}_coco_results.json").read_text())
        rows = load_run(RunFiles(run).provenance).rows[1:]
        stored = [item for row in rows for item in row.details["confidences"][name]]
        assert [item["score"] for item in results] == stored
    assert export(run, "--confidence", "means") == 2


def test_without_pycocotools_it_says_what_to_install(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pycocotools.coco", None)
    with pytest.raises(ConfidenceError, match=r"pip install .*\[data\]'"):
        judged(run)
