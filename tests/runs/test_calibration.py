"""Confidences of boxes: average precision, calibration, and where they are written."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scored_runs import WIDTH, World, grid, query, two_labels, world

from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery
from vlmeval_findit.boxes.confidences import DEFINITIONS
from vlmeval_findit.boxes.reading import read
from vlmeval_findit.boxes.representation import ReplyFormat
from vlmeval_findit.boxes.spans import places
from vlmeval_findit.boxes.writing import BoxToWrite, write
from vlmeval_findit.cli import main
from vlmeval_findit.core.replies import Recorded, TokenLogprobs
from vlmeval_findit.core.run_files import RunFiles
from vlmeval_findit.core.settings import Settings
from vlmeval_findit.runs.average_precision import Evaluator
from vlmeval_findit.runs.coco_boxes import CocoBoxes, ConfidenceError
from vlmeval_findit.runs.run_calibration import (
    CalibrationResult,
    measure_calibration,
)
from vlmeval_findit.runs.run_score import score_file
from vlmeval_findit.runs.score_files import write_score
from vlmeval_findit.runs.scored_run import load_run

pytest.importorskip("pycocotools")

__all__ = ["world"]

NAME = "FindIt_Pascal_xyxy_json"
LABELS = "FindIt_Pascal_multilabel_xyxy_json"

Sure = tuple[tuple[float, float, float, float], str, float]
"""A box in pixels, its label, and how sure the model is of its numbers."""


def by_character(reply: str, how: ReplyFormat, sure: Sequence[float]) -> TokenLogprobs:
    """Return every character is a token, and certain, but for the numbers of the boxes."""
    logprobs = [0.0] * len(reply)
    locations = places(reply, how, read(reply, how))
    for item, confidence in zip(locations, sure, strict=True):
        assert item is not None
        for start, end in item.numbers:
            logprobs[start:end] = [math.log(confidence)] * (end - start)
    return TokenLogprobs.of(range(1, len(reply) + 1), logprobs)


def write_run(
    world: World, name: str, answer: Callable[[Any], Sequence[Sure] | None], recorded: bool = True
) -> Path:
    """Return a prediction file; None stands for a failed call."""
    task = load_task(name)
    how = task.question.reply
    rows = []
    for index, item in task.queries.items():
        boxes = answer(item)
        reply = "Failed to obtain answer via API."
        record = Recorded(call={"error": "down"})
        if boxes is not None:
            reply = write([BoxToWrite(grid(box), label) for box, label, _ in boxes], how)
            known = by_character(reply, how, [sure for _, _, sure in boxes])
            record = Recorded(finish_reason="stop", token_logprobs=known if recorded else None)
        rows.append({"index": index, "prediction": reply, "extra_records": record.as_json()})
    path = world.runs / f"Model_{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


GRID = Settings(space="grid1000")


def judged(path: Path) -> CalibrationResult:
    return measure_calibration(score_file(path, GRID), path)


def coco_boxes(path: Path) -> CocoBoxes:
    run = score_file(path, GRID)
    return CocoBoxes(run.task, run.rows)


def by_name(run: CalibrationResult) -> dict[str, Any]:
    return {item.definition: item for item in run.by_definition}


# --- average precision ----------------------------------------------------------------------------

CAT = (10.0, 10.0, 50.0, 60.0)
DOG = (120.0, 20.0, 180.0, 90.0)
NOWHERE = (150.0, 0.0, 199.0, 9.0)


def pascal_query(index: int, image: str, *boxes: Any) -> FindItQuery:
    return query(index, image, boxes=boxes or (CAT,))


def test_average_precision_worked_by_hand(world: World) -> None:
    """Three objects; in the order of confidence a hit, a miss, a hit, and nothing more.

    Precision is 1 up to a recall of 1/3, then 2/3 up to 2/3, then 0: of COCO's 101 recalls 34, 33
    and 34.  In the order of output the miss is first: 2/3 for 67 recalls.
    """
    world.table("Pascal", [pascal_query(0, "a.jpg", CAT, DOG), pascal_query(1, "b.jpg")])
    answers: list[list[Sure]] = [[(NOWHERE, "", 0.5), (CAT, "", 0.9), (DOG, "", 0.4)], []]
    run = judged(write_run(world, NAME, lambda item: answers[item.index]))
    mean = by_name(run)["mean"].ranking
    assert mean.ap50.value == pytest.approx(100 * (34 + 33 * 2 / 3) / 101)
    assert mean.ap.value == pytest.approx(mean.ap50.value), "boxes fit exactly"
    assert run.as_output.ap50.value == pytest.approx(100 * 67 * 2 / 3 / 101)
    assert mean.ap50.gain == pytest.approx(mean.ap50.value - run.as_output.ap50.value)
    assert mean.ap50.interval is None, "two images have no interval"


def test_as_output_the_first_boxes_of_all_replies_come_first(world: World) -> None:
    """Hit, hit, miss; reply after reply it would be hit, miss, hit."""
    world.table("Pascal", [pascal_query(0, "a.jpg"), pascal_query(1, "b.jpg")])
    answers: list[list[Sure]] = [[(CAT, "", 0.5), (NOWHERE, "", 0.5)], [(CAT, "", 0.5)]]
    run = judged(write_run(world, NAME, lambda item: answers[item.index]))
    assert run.as_output.ap50.value == pytest.approx(100)
    assert by_name(run)["mean"].ranking.ap50.value == pytest.approx(100 * (51 + 50 * 2 / 3) / 101)


def noisy(generator: np.random.Generator, sure: Callable[[bool], float]) -> Callable[..., Any]:
    """Answers with hits and misses; confidences by whether a box is a hit."""

    def answer(item: Any) -> list[Sure]:
        boxes: list[Sure] = []
        labels = item.truth.labels or [""] * len(item.truth.boxes)
        for box, label in zip(item.truth.boxes, labels, strict=True):
            hit = bool(generator.random() < 0.6)
            shift = generator.uniform(0, 6) if hit else 60
            moved = tuple(float(np.clip(n + shift, 0, WIDTH)) for n in box)
            boxes.append((moved, label, sure(hit)))  # type: ignore[arg-type]
        return boxes

    return answer


def many(world: World, images: int = 30) -> None:
    world.table("Pascal", [query(i, f"{i}.jpg") for i in range(images)])
    world.table("Pascal_multilabel", [two_labels(i, f"{i % images}.jpg") for i in range(images)])


@pytest.mark.parametrize("name", [LABELS, "FindIt_RefCOCO_xyxy_json"])
def test_it_is_what_pycocotools_says(world: World, name: str) -> None:
    """Our sums over its matches are its values, ties and images asked twice included."""
    many(world)
    world.table("RefCOCO", [pascal_query(i, f"{i // 3}.jpg") for i in range(20)])
    generator = np.random.default_rng(3)
    path = write_run(
        world, name, noisy(generator, lambda hit: float(generator.choice([0.3, 0.5, 0.7])))
    )
    actual = coco_boxes(path)
    evaluator = Evaluator(actual)
    for scores in (
        [1.0] * len(actual.results),
        [item.confidence("mean") for item in actual.origins],
        generator.random(len(actual.results)).tolist(),
    ):
        built = evaluator.run(scores)
        built.accumulate()
        expected = built.eval["precision"]
        actual_ = evaluator.precision(scores)
        assert actual_.ap[0] == pytest.approx(expected[expected > -1].mean(), abs=1e-12)
        assert actual_.ap50[0] == pytest.approx(expected[0][expected[0] > -1].mean(), abs=1e-12)


def test_weights_are_images_that_come_again(world: World) -> None:
    """An image with the weight 2 counts as two images, one with 0 as none."""

    def evaluator(images: Sequence[int]) -> tuple[Evaluator, list[float]]:
        world.table("Pascal", [query(i, f"{at}.jpg") for at, i in enumerate(images)])
        drawn = {i: noisy(np.random.default_rng(i), lambda hit: 0.5)(query(i)) for i in range(6)}
        sure = {i: [0.1 * (i + 1), 0.9 - 0.11 * i] for i in range(6)}
        path = write_run(
            world,
            NAME,
            lambda item: [
                (box, label, sure[item.index][at])
                for at, (box, label, _) in enumerate(drawn[item.index])
            ],
        )
        actual = coco_boxes(path)
        return Evaluator(actual), [item.confidence("mean") or 0 for item in actual.origins]

    once, scores = evaluator(range(6))
    weights = np.array([[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 0, 1.0], [1, 0, 0, 0, 1, 0]])
    weighted = once.precision(scores, weights)
    for at, weight in enumerate(weights):
        again, own_scores = evaluator([i for i in range(6) if weight[i]])
        assert again.precision(own_scores).ap[0] == pytest.approx(weighted.ap[at], abs=1e-9)
    doubled = once.precision(scores, np.array([[2.0] * 6]))
    assert doubled.ap[0] == pytest.approx(weighted.ap[0], abs=1e-9)


def test_queries_of_an_image_are_not_independent(world: World) -> None:
    """The same answers about a quarter of the images have wider intervals."""

    def width(images: int) -> float:
        world.table("Pascal", [query(i, f"{i % images}.jpg") for i in range(40)])
        # What an image's queries get is alike.
        run = judged(
            write_run(
                world,
                NAME,
                lambda item: [
                    (box if int(item.images[0][:-4]) % 2 else NOWHERE, "", 0.5 + item.index / 100)
                    for box in item.truth.boxes
                ],
            )
        )
        interval = by_name(run)["mean"].ranking.ap.interval
        return float(interval.high - interval.low)

    assert width(10) > 1.4 * width(40)


# --- boxes without a confidence -------------------------------------------------------------------


def test_boxes_without_a_confidence_come_last_and_are_counted(world: World) -> None:
    world.table("Pascal", [pascal_query(0, "a.jpg", CAT, DOG), pascal_query(1, "b.jpg")])
    answers: list[list[Sure]] = [[(CAT, "", 0.9), (DOG, "", 0.8)], [(NOWHERE, "", 0.5)]]
    path = write_run(world, NAME, lambda item: answers[item.index])
    rows = json.loads(path.read_text())
    rows[1]["prediction"] = '[{"bbox": [true, 2, 3, 4]}]'
    path.write_text(json.dumps(rows))
    item = by_name(judged(path))["mean"]
    assert item.unsure == 1
    assert item.ranking.ap50.value == pytest.approx(100 * 67 / 101)
    assert sum(bin_.boxes for bin_ in item.bins) == 2
    assert item.threshold.value == pytest.approx(0.8, abs=1e-3), "without the last one"
    assert (item.threshold.f1, item.threshold.without) == pytest.approx((80.0, 200 / 3))
    score = score_file(path, GRID)
    assert score.metric_values["F1@0.5"] == pytest.approx(item.threshold.without)


def test_a_failed_call_has_no_part(world: World) -> None:
    many(world, 6)
    answer = noisy(np.random.default_rng(1), lambda hit: 0.5)
    run = judged(write_run(world, NAME, lambda item: answer(item) if item.index else None))
    assert (run.queries, run.images, run.boxes) == (5, 5, 10)


def test_a_run_without_them_is_refused(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many(world, 4)
    path = write_run(world, NAME, noisy(np.random.default_rng(1), lambda hit: 0.5), recorded=False)
    assert main(["calibration", "--space", "grid1000", str(path)]) == 2
    shown = capsys.readouterr().err
    assert f"{path}: none of its boxes has a confidence" in shown
    assert "Ask again with --logprobs" in shown
    write_score(score_file(path, GRID), path)
    out = tmp_path / "coco"
    export = ["export", str(path), "--to", "coco", "--out", str(out), "--confidence", "mean"]
    assert main(export) == 2
    assert "--logprobs" in capsys.readouterr().err
    assert not out.exists()


# --- where it shows -------------------------------------------------------------------------------


@pytest.fixture
def run(world: World) -> Path:
    many(world)
    generator = np.random.default_rng(2)
    return write_run(
        world, LABELS, noisy(generator, lambda hit: generator.uniform(0.5 * hit, 0.6 + 0.3 * hit))
    )


def test_the_command_writes_its_values(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metric_values = tmp_path / "all.json"
    given = ["calibration", "--space", "grid1000", str(run), "--json", str(metric_values)]
    assert main(given) == 0
    (told,) = json.loads(metric_values.read_text(), parse_constant=pytest.fail)
    assert [item["definition"] for item in told["by_definition"]] == list(DEFINITIONS)
    assert told["by_definition"][0]["curve"][0] == sorted(told["by_definition"][0]["curve"][0])
    assert "60 boxes in 30 replies about 30 images" in capsys.readouterr().out


def test_of_a_folder_runs_without_logprobs_are_left_out(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = run.with_name(run.name.replace("_FindIt", "-bare_FindIt"))
    rows = [row | {"extra_records": "{}"} for row in json.loads(run.read_text())]
    bare.write_text(json.dumps(rows))
    assert main(["calibration", "--space", "grid1000", str(bare), str(run)]) == 0
    captured = capsys.readouterr()
    assert f"{bare}: left out: not asked with --logprobs" in captured.err
    assert "60 boxes in 30 replies" in captured.out


def test_export_to_coco_writes_them(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "coco"
    given = ["export", str(run), "--to", "coco", "--out", str(out)]

    def scores(*more: str) -> list[float]:
        assert main([*given, *more]) == 0
        results = json.loads((out / f"{run.stem}_coco_results.json").read_text())
        return [item["score"] for item in results]

    write_score(score_file(run, GRID), run)
    rows = load_run(RunFiles(run).provenance).rows
    for name in ("mean", "minimum"):
        stored = [item for row in rows for item in row.details["confidences"][name]]
        assert scores("--confidence", name) == stored
    assert scores() == scores("--confidence", "mean")
    assert main([*given, "--confidence", "means"]) == 2


def test_without_pycocotools_it_says_what_to_install(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pycocotools.coco", None)
    with pytest.raises(ConfidenceError, match=r"pip install .*\[calibration\]'"):
        judged(run)


@pytest.mark.parametrize("name", [NAME, LABELS])
def test_ranks_that_matter(world: World, name: str) -> None:
    """Confidences that know raise it, inverted ones lower it, the output's order lies between."""
    many(world)
    right = judged(
        write_run(world, name, noisy(np.random.default_rng(1), lambda hit: 0.9 if hit else 0.2))
    )
    wrong = judged(
        write_run(world, name, noisy(np.random.default_rng(1), lambda hit: 0.2 if hit else 0.9))
    )
    best, worst = by_name(right)["mean"].ranking, by_name(wrong)["mean"].ranking
    for of in ("ap", "ap50"):
        assert getattr(worst, of).value < getattr(right.as_output, of).value
        assert getattr(best, of).gain_interval.low > 0
        assert getattr(worst, of).gain_interval.high < 0
        assert getattr(right.as_output, of) == getattr(wrong.as_output, of)
