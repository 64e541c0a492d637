"""Tables of classes: F1 of each, and which are taken for which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from few_fast import few_fast
from refl4_stand_in import prepared
from scored_runs import World, failing, grid, query, saying, speaking
from test_report import JSON, LABELS, NOW

from vlmeval_findit.benchmarks.findit import F1_FAILED_MISSED
from vlmeval_findit.boxes import BoxToWrite, write
from vlmeval_findit.data import load_dataset
from vlmeval_findit.leaderboard import make_board
from vlmeval_findit.protocol import ClassCounts
from vlmeval_findit.report import MOST_CLASSES, class_curves, class_tables, make_page
from vlmeval_findit.scoring import Run, load_runs, read_details

CLASSES = ("cat", "dog", "traffic light")


def labelled(index: int, labels: tuple[str, ...]) -> Any:
    """Return a query with an object of each label, side by side."""
    boxes = [(10.0 + 40 * at, 10.0, 40.0 + 40 * at, 60.0) for at in range(len(labels))]
    plain = query(index, f"{index % 6}.jpg", ", ".join(dict.fromkeys(labels)), boxes)
    return replace(plain, truth=replace(plain.truth, labels=labels))


def naming(name: str, labels: dict[str, str]) -> Any:
    """Return a model that finds every object, and has other words for some classes."""
    reply = load_dataset(name).variant.reply

    def answer(asked: Any, generator: np.random.Generator) -> str:
        objects = zip(asked.truth.boxes, asked.truth.labels, strict=True)
        boxes = [BoxToWrite(grid(box), labels.get(label, label), 0) for box, label in objects]
        return write(boxes, reply)

    return answer


def counts_of(run: Run) -> ClassCounts:
    counts = run.benchmark.class_counts(load_dataset(run.variant.name), read_details(run))
    assert counts is not None
    return counts


@pytest.mark.parametrize("name", [JSON, LABELS])
@pytest.mark.parametrize("loose", few_fast([0.0, 8.0, 30.0], 1))
@pytest.mark.parametrize("kind", ["speaks", "fails", "talks"])
def test_classes_add_up_to_the_score(world: World, name: str, loose: float, kind: str) -> None:
    """Whatever a model answers: objects, hits and boxes of all classes are those of the run."""
    world.table("Pascal", [query(at, f"{at % 6}.jpg", CLASSES[at % 3]) for at in range(12)])
    sets = [CLASSES[:1], CLASSES[:2], CLASSES, ("cat", "cat", "dog")]
    world.table("Pascal_multilabel", [labelled(at, sets[at % 4]) for at in range(12)])
    models = {"speaks": speaking(name, 0.7, loose), "fails": failing, "talks": saying("A cat.")}
    run = world.run("M", name, models[kind])
    counts = counts_of(run)
    assert sum(counts.found.values()) == run.sums["tp"]
    assert sum(counts.answers.values()) == run.sums["n_pred"]
    assert sum(counts.objects.values()) == run.sums["n_gt"] + run.sums["n_gt_failed"]
    assert set(counts.objects) == set(CLASSES)
    whole = sum(counts.objects.values()) + sum(counts.answers.values())
    expected = 200 * sum(counts.found.values()) / whole
    assert F1_FAILED_MISSED.value(run.sums) == pytest.approx(expected)
    assert counts.f1("no class") is None


def test_confusions_are_by_object_and_by_answer(world: World) -> None:
    world.table("Pascal_multilabel", [labelled(at, CLASSES) for at in range(6)])
    right = world.run("Right", LABELS, naming(LABELS, {"cat": "Cat.", "dog": " DOG "}))
    assert counts_of(right).confused == {}
    assert [counts_of(right).f1(name) for name in CLASSES] == [100.0, 100.0, 100.0]
    wrong = world.run("Wrong", LABELS, naming(LABELS, {"cat": "traffic light", "dog": "zebra"}))
    counts = counts_of(wrong)
    assert counts.confused == {("cat", "traffic light"): 6, ("dog", "zebra"): 6}
    assert counts.f1("cat") == 0.0
    assert counts.f1("traffic light") == pytest.approx(200 * 6 / (6 + 12))
    first, second = class_tables("Pets", {"Right": counts_of(right), "Wrong": counts})
    assert [row["class"] for row in first.records()] == sorted(CLASSES)
    assert {(row["class"], row["called"]): row["Wrong"] for row in second.records()} == {
        ("cat", "traffic light"): 6,
        ("dog", "zebra"): 6,
    }
    assert {row["Right"] for row in second.records()} == {0}


def test_the_page_has_them_for_detection(world: World) -> None:
    world.table("Pascal_multilabel", [labelled(at, CLASSES) for at in range(6)])
    world.table("RefCOCO", [query(at, f"{at}.jpg", f"the cat at {at}") for at in range(6)])
    for name in (LABELS, "FindIt_RefCOCO_xyxy_json"):
        world.predict("M", name, speaking(name, 0.6))
    html = make_page(make_board(load_runs([world.runs])), NOW)
    assert "F1@0.5 by class of Pascal_multilabel" in html
    assert "by class of RefCOCO" not in html, "what is referred to is no class"


def test_classes_are_drawn_as_curves_from_the_best(world: World) -> None:
    names = [f"class {at}" for at in range(6)]
    world.table("Pascal", [query(at, f"{at}.jpg", names[at % 6]) for at in range(12)])
    run = world.run("M", JSON, speaking(JSON, 0.5))
    html = make_page(make_board([run]), NOW)
    assert "<summary>Classes, the best first</summary>" in html
    caption = html.partition("<summary>Classes, the best first</summary>")[2]
    assert "in the order of its own values" in caption.partition("</figcaption>")[0]
    values = {name: counts_of(run).f1(name) or 0.0 for name in names}
    points = class_curves("Pascal", "F1@0.5", {"M": values})["data"]["values"]
    assert [point["place"] for point in points] == [1, 2, 3, 4, 5, 6]
    assert [point["value"] for point in points] == [
        round(value, 2) for value in sorted(values.values(), reverse=True)
    ]
    # Of two classes the table says all.
    world.table("Pascal", [query(at, f"{at}.jpg", names[at % 2]) for at in range(12)])
    two = world.run("M", JSON, speaking(JSON, 0.5), folder="two")
    assert "<summary>Classes, the best first</summary>" not in make_page(make_board([two]), NOW)


def test_ref_l4_has_curves_of_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(prepared(tmp_path / "lmu", tmp_path / "parquet")))
    name = "FindIt_RefL4Full_all_xyxy_json"
    run = World(tmp_path).run("M", name, saying('[{"bbox": [0, 0, 950, 980]}]'))
    html = make_page(make_board([run]), NOW)
    assert "<summary>Classes, the best first</summary>" in html
    assert "RefL4Full_all: class_macc by class, of M" in html


def test_tables_have_a_bounded_number_of_rows() -> None:
    many = {f"class {at:04}": 1000 - at for at in range(MOST_CLASSES + 20)}
    counts = ClassCounts(many, many, many, {(name, "dog"): 1 for name in many})
    first, second = class_tables("Many", {"M": counts})
    assert len(first.rows) == MOST_CLASSES
    assert first.rows[0][0] == "class 0000"
    assert f"The {MOST_CLASSES} classes with most objects, of {len(many)}." in first.notes[0].lines
    assert len(second.rows) < len(many)
    assert any(f"of {len(many)}" in line for line in second.notes[0].lines)
    assert class_tables("One", {"M": ClassCounts({"cat": 3}, {}, {}, {})}) == []
