"""``export --to fiftyone``: what FiftyOne reads, written without it.

FiftyOne 1.22.1 can read this layout; the tests check its needs: classes by name, a class for each
field, boxes as fractions.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from boards import JSON, runs
from PIL import Image, ImageOps
from scored_runs import HEIGHT, WIDTH, World, failing, query, saying, speaking

from vlmeval_findit.boxes import DEFAULT_CONFIDENCE
from vlmeval_findit.cli import main
from vlmeval_findit.scoring import Run, details_line
from vlmeval_findit.storage import RunFiles

__all__ = ["runs"]


def export(world: World) -> Path:
    out = world.folder / "fiftyone"
    assert main(["export", str(world.runs), "--to", "fiftyone", "--out", str(out)]) == 0
    return out


def samples_of(out: Path) -> list[dict[str, Any]]:
    samples: list[dict[str, Any]] = json.loads((out / "samples.json").read_text())["samples"]
    return samples


def boxes_of(samples: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [box for sample in samples for box in sample.get(name, {}).get("detections", ())]


def answers_of(samples: list[dict[str, Any]], name: str) -> dict[int, str]:
    fields = (sample.get(f"{name}_answers", {}) for sample in samples)
    labels = (label for field in fields for label in field.get("classifications", ()))
    return {label["query"]: label["label"] for label in labels}


def test_each_image_is_a_sample_and_has_every_object_once(
    world: World, runs: list[Run], capsys
) -> None:
    """Points are left out with a note; runs of equal names have different fields."""
    world.predict("Pointing", "FindIt_Pascal_point_json", saying("[]"))
    for model in ("A.1", "A-1"):
        world.predict(model, JSON, saying("[]"))
    out = export(world)
    output = " ".join(capsys.readouterr().out.split())
    assert "6 images, 68 boxes of 14 runs" in output
    assert "left out, their answers are no boxes: 1 run (Pointing" in output
    samples = samples_of(out)
    paths = [sample["filepath"] for sample in samples]
    assert len(set(paths)) == len(paths) == 6
    assert all(Path(path).is_file() for path in paths)
    assert len(boxes_of(samples, "ground_truth_Pascal")) == 24
    assert len(boxes_of(samples, "ground_truth_Pascal_multilabel")) == 10
    assert {*samples[0]["tags"]} == {"Pascal_multilabel", "Pascal"}
    assert samples[0]["metadata"] == {"_cls": "ImageMetadata", "width": WIDTH, "height": HEIGHT}
    names = {name for sample in samples for name in sample if name.endswith("_answers")}
    assert {"A_1_Pascal_xyxy_json_answers", "A_1_Pascal_xyxy_json_2_answers"} <= names
    assert not [name for name in names if name.startswith("Pointing")]


def test_boxes_are_fractions_and_hits_are_the_scores(world: World) -> None:
    run = world.run("Good", JSON, speaking(JSON, 0.8, 10))
    samples = samples_of(export(world))
    exported = boxes_of(samples, "Good_Pascal_xyxy_json")
    back = sorted(
        (x * WIDTH, y * HEIGHT, (x + w) * WIDTH, (y + h) * HEIGHT)
        for x, y, w, h in (box["bounding_box"] for box in exported)
    )
    answered = sorted(tuple(box) for row in run.rows for box in row.details["boxes"])
    assert back == [pytest.approx(box) for box in answered]
    assert Counter(box["eval"] for box in exported)["hit"] == run.sums["tp"]
    assert {box["label"] for box in boxes_of(samples, "ground_truth_Pascal")} == {"cat"}


def test_no_box_not_readable_and_failed_calls_are_three_things(world: World) -> None:
    world.predict("Failing", JSON, failing)
    world.predict("Chatty", JSON, saying("A cat on the left."))
    samples = samples_of(export(world))
    failed = answers_of(samples, "Failing_Pascal_xyxy_json")
    assert {index for index, label in failed.items() if label == "failed call"} == {0, 3, 6, 9}
    assert Counter(failed.values()) == {"failed call": 4, "no box": 8}
    assert set(answers_of(samples, "Chatty_Pascal_xyxy_json").values()) == {"not JSON"}


def test_confidences_and_slices_where_they_are_known(world: World) -> None:
    run = world.run("Sure", JSON, speaking(JSON, 1.0))
    sure = {"confidences": {DEFAULT_CONFIDENCE: [0.9, 0.25]}}
    small = {"size": "small"}
    rows = [replace(row, slices=small, details={**row.details, **sure}) for row in run.rows]
    RunFiles(run.path).details.write_text("".join(map(details_line, rows)))
    exported = boxes_of(samples_of(export(world)), "Sure_Pascal_xyxy_json")
    values = {(box["confidence"], *box["tags"]) for box in exported}
    assert values == {(0.9, "size=small"), (0.25, "size=small")}


def test_boxes_that_cannot_be_shown_are_counted(world: World, capsys) -> None:
    world.table("Pascal", [query(0)])
    many = ", ".join(['{"bbox": [1, 2, 300, 400]}'] * 205)
    world.predict("Many", JSON, saying(f"[{many}]"))
    out = export(world)
    assert "5 boxes cannot be shown: left out" in capsys.readouterr().out
    assert len(boxes_of(samples_of(out), "Many_Pascal_xyxy_json")) == 200


def test_images_that_viewers_turn_are_copied(
    world: World, runs: list[Run], capsys: pytest.CaptureFixture[str]
) -> None:
    first = Path(samples_of(export(world))[0]["filepath"])
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(first).save(first, exif=exif)
    capsys.readouterr()
    for _ in range(2):
        out = export(world)
        assert "1 image copied to images/" in " ".join(capsys.readouterr().out.split())
    copies = [path for path in map(Path, (s["filepath"] for s in samples_of(out))) if path != first]
    (copy,) = [path for path in copies if path.is_relative_to(out)]
    shown = ImageOps.exif_transpose(Image.open(copy))
    assert shown.tobytes() == Image.open(first).convert("RGB").tobytes()
