"""mAP with all confidences equal: pycocotools' own, its range over orders, what papers count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scored_runs import World, grid, small_world, speaking, two_labels

from vlmeval_findit.analysis import CocoBoxes, CocoEvaluator, ConfidenceError, measure_unranked
from vlmeval_findit.boxes import BoxToWrite, write
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import FAILED_ANSWER
from vlmeval_findit.scoring import Run

pytest.importorskip("pycocotools")

LABELS = "FindIt_Pascal_multilabel_xyxy_json"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return small_world(tmp_path, monkeypatch)


def replying(boxes_of: Any) -> Any:
    """Return a model that answers the boxes of a function; None: its call fails."""
    reply = load_dataset(LABELS).variant.reply

    def answer(query: Any, generator: Any) -> str:
        boxes: Sequence[tuple[Any, str]] | None = boxes_of(query)
        if boxes is None:
            return FAILED_ANSWER
        return write([BoxToWrite(grid(box), label, 0) for box, label in boxes], reply)

    return answer


def truth_of(query: Any) -> list[tuple[Any, str]]:
    return list(zip(query.truth.boxes, query.truth.labels, strict=True))


def measured(run: Run) -> Any:
    return measure_unranked(load_dataset(run.variant.name), run.rows)


def test_pycocotools_value_lies_within_its_bounds(world: World) -> None:
    run = world.run("M", LABELS, speaking(LABELS, 0.7, loose=12))
    dataset = load_dataset(LABELS)
    boxes = CocoBoxes(dataset, run.rows)
    own = CocoEvaluator(boxes).precision([1.0] * len(boxes.results))
    found = measured(run).values
    assert found.ap == pytest.approx(100 * own.ap[0])
    assert found.ap50 == pytest.approx(100 * own.ap50[0])
    assert found.low <= found.expected <= found.high
    assert found.low <= found.ap <= found.high


def test_the_order_of_images_decides_within_the_bounds(world: World) -> None:
    miss = ((0.0, 0.0, 5.0, 5.0), "cat")
    wrong_first = world.run(
        "First", LABELS, replying(lambda q: truth_of(q) if q.index else [miss] * 2)
    )
    wrong_last = world.run(
        "Last", LABELS, replying(lambda q: truth_of(q) if q.index < 4 else [miss] * 2)
    )
    first, last = measured(wrong_first), measured(wrong_last)
    assert first.values.ap < last.values.ap
    for name in ("low", "expected", "high"):
        assert getattr(first.values, name) == pytest.approx(getattr(last.values, name))
    cats = of_class(first, "cat")
    # Four hits and two misses, of five objects
    assert (cats.boxes, cats.objects) == (6, 5)
    assert cats.values.low == pytest.approx(100 * 81 / 101 * 2 / 3)
    assert cats.values.high == of_class(last, "cat").values.high == of_class(last, "cat").values.ap


def of_class(result: Any, label: str) -> Any:
    return next(each for each in result.classes if each.label == label)


def test_failed_calls_are_misses_and_unknown_labels_no_boxes(world: World) -> None:
    failing = world.run("F", LABELS, replying(lambda q: truth_of(q) if q.index else None))
    found = measured(failing)
    assert (found.failed, found.images) == (1, 5)
    assert found.values.ap == pytest.approx(100 * 81 / 101)
    odd = world.run(
        "O", LABELS, replying(lambda q: [*truth_of(q), ((0.0, 0.0, 5.0, 5.0), "horse")])
    )
    assert (measured(odd).unknown_labels, measured(odd).values.ap) == (5, pytest.approx(100))


def test_a_run_without_any_box_has_zero(world: World) -> None:
    found = measured(world.run("N", LABELS, replying(lambda q: [])))
    assert (found.values.ap, found.values.expected, found.values.high) == (0, 0, 0)


def test_classes_that_no_query_asks_about_are_counted(world: World) -> None:
    cats = [two_labels(index, f"{index}.jpg") for index in range(5)]
    world.table("Pascal_multilabel", cats)
    assert measured(world.run("A", LABELS, speaking(LABELS, 1))).unasked == 0
    single = "FindIt_Pascal_xyxy_json"
    assert measured(world.run("S", single, speaking(single, 1))).unasked == 0


def test_the_command_has_a_row_a_dataset_and_their_mean(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    single = "FindIt_Pascal_xyxy_json"
    for name in (LABELS, single):
        world.predict("M", name, speaking(name, 0.7, loose=12))
    out = world.folder / "ap.json"
    assert main(["ap", str(world.runs), "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "Average precision: M, xyxy_json" in printed
    rows = json.loads(out.read_text())["tables"][0]["rows"]
    assert [row["dataset"] for row in rows] == ["Pascal_multilabel", "Pascal", "mean of 2"]
    assert rows[2]["mAP"] == pytest.approx((rows[0]["mAP"] + rows[1]["mAP"]) / 2)
    assert main(["ap", str(world.runs / f"M_{LABELS}.json")]) == 0
    assert "mean of" not in capsys.readouterr().out


def test_bounds_hold_where_an_image_has_too_many_boxes(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reply's first 100 are misses: another order takes the hits among them."""
    misses = [((0.0, 0.0, 5.0, 5.0), "cat")] * 110
    late = world.run("Late", LABELS, replying(lambda q: [*misses, *truth_of(q)]))
    early = world.run("Early", LABELS, replying(lambda q: [*truth_of(q), *misses]))
    cats = [of_class(measured(run), "cat").values for run in (late, early)]
    assert cats[0].ap == 0
    assert cats[1].ap > 5
    for values in cats:
        assert values.low <= cats[0].ap
        assert values.high == pytest.approx(100)
        assert values.low < values.expected < values.high
    found = measured(late)
    assert (found.beyond, found.images_cut) == (55, 5)
    assert main(["ap", str(late.path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "55 boxes beyond the 100 of a class that count in an image, in 5 images" in printed
    assert "(Late Pascal_multilabel)" in printed


def test_queries_without_a_row_are_named(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    odd = replying(lambda q: [*truth_of(q), ((0.0, 0.0, 5.0, 5.0), "horse")])
    world.run("Whole", LABELS, odd)
    part = world.run("Part", LABELS, replying(truth_of), rows=3)
    assert (measured(part).missing, measured(part).images) == (2, 3)
    assert main(["ap", str(world.runs)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "not of the whole set (Part Pascal_multilabel): 2 queries without a row" in printed
    assert "run's command again without --limit" in printed
    assert "of a label that is no class of the set: 5 (Whole Pascal_multilabel)" in printed


def test_a_run_without_rows_says_so(world: World) -> None:
    run = world.run("None", LABELS, replying(truth_of), rows=3)
    with pytest.raises(ConfidenceError, match="the prediction file has no rows"):
        measure_unranked(load_dataset(LABELS), run.rows[:0])
