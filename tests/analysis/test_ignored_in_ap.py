"""Average precision with ignored objects: those that are no crowds take one box each, by IoU."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scored_runs import World, grid, query, small_world

from vlmeval_findit.analysis import CocoBoxes, CocoEvaluator
from vlmeval_findit.boxes import BoxToWrite, Corners, Ignored, Truth, write
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import Settings
from vlmeval_findit.scoring import RunScore, score_file

coco = pytest.importorskip("pycocotools.coco")
cocoeval = pytest.importorskip("pycocotools.cocoeval")

NAME = "FindIt_Pascal_xyxy_json"
OBJECT = (10.0, 10.0, 40.0, 40.0)
AREA = (60.0, 20.0, 160.0, 95.0)
INSIDE = (70.0, 30.0, 80.0, 40.0)  # 1.3 % of it
NEARLY = (60.0, 20.0, 160.0, 90.0)
NOWHERE = (170.0, 0.0, 199.0, 9.0)


class Image(NamedTuple):
    """Objects, ignored objects and an answer's boxes of one image."""

    boxes: Sequence[Corners]
    ignored: Sequence[Ignored]
    said: Sequence[Corners]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return small_world(tmp_path, monkeypatch)


def scored(world: World, images: Sequence[Image]) -> RunScore:
    """Score answers about some images, one query each; the file is ``runs/M_….json``."""
    queries = []
    for at, image in enumerate(images):
        truth = Truth(tuple(image.boxes), (0,) * len(image.boxes), ignored=tuple(image.ignored))
        queries.append(replace(query(at, f"{at}.jpg"), truth=truth))
    world.table("Pascal", queries)
    how = load_dataset(NAME).variant.reply
    rows = []
    for at, image in enumerate(images):
        reply = write([BoxToWrite(grid(box)) for box in image.said], how, digits=9)
        rows.append({"index": at, "prediction": reply})
    path = world.runs / f"M_{NAME}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(rows))
    return score_file(path, Settings(space="grid1000", force=True))


def precision(run: RunScore, scores: Sequence[float] | None = None) -> tuple[float, float]:
    """Return AP and AP50; without scores in the order of each reply."""
    boxes = CocoBoxes(run.dataset, run.rows)
    scores = scores or [1 / (1 + origin.box) for origin in boxes.origins]
    result = CocoEvaluator(boxes).precision(scores)
    return float(result.ap[0]), float(result.ap50[0])


@pytest.mark.parametrize(
    ("crowd", "said", "expected"),
    [
        (False, [INSIDE, OBJECT], 0.5),
        (False, [NEARLY, OBJECT], 1.0),
        (False, [NEARLY, NEARLY, OBJECT], 0.5),  # one box an object, as COCO has it
        (False, [NOWHERE, OBJECT], 0.5),
        (False, [OBJECT, INSIDE], 1.0),  # a false box behind the last hit costs nothing
        (True, [INSIDE, OBJECT], 1.0),
        (True, [NEARLY, NEARLY, INSIDE, OBJECT], 1.0),
        (True, [NOWHERE, OBJECT], 0.5),
    ],
)
def test_what_a_box_in_an_ignored_object_costs(
    world: World, crowd: bool, said: list[Corners], expected: float
) -> None:
    run = scored(world, [Image([OBJECT], [Ignored(AREA, crowd=crowd)], said)] * 3)
    assert precision(run)[1] == pytest.approx(expected)


def test_average_precision_ignores_what_f1_ignores(world: World) -> None:
    """Surest first: at the recall of all objects precision is the score's."""
    for ignored in ([Ignored(AREA)], [Ignored(AREA, crowd=True)]):
        run = scored(world, [Image([OBJECT], ignored, [INSIDE, OBJECT])] * 4)
        assert 100 * precision(run)[1] == pytest.approx(run.metric_values["Precision"])


def test_ignored_objects_alone_have_no_average_precision(world: World) -> None:
    run = scored(world, [Image([], [Ignored(AREA)], [INSIDE])])
    with pytest.raises(ValueError, match="no query has an object"):
        precision(run)


# --- pycocotools on data of any kind --------------------------------------------------------------


@st.composite
def a_box(draw: st.DrawFn) -> Corners:
    """A box on a coarse lattice, so that boxes overlap and IoUs are often equal."""
    x = 20.0 * draw(st.integers(0, 7))
    y = 20.0 * draw(st.integers(0, 3))
    return x, y, x + 20 * draw(st.integers(1, 3)), y + 20 * draw(st.integers(1, 2))


@st.composite
def an_image(draw: st.DrawFn) -> Image:
    boxes = draw(st.lists(a_box(), max_size=3))
    ignored = [
        Ignored(box, crowd=draw(st.booleans())) for box in draw(st.lists(a_box(), max_size=3))
    ]
    return Image(boxes, ignored, draw(st.lists(a_box(), max_size=6)))


some_images = st.lists(an_image(), min_size=1, max_size=4).filter(
    lambda images: any(each.boxes for each in images) and any(each.said for each in images)
)


def evaluated(truth: dict[str, Any], results: list[dict[str, Any]], ranges: bool) -> list[float]:
    """Return pycocotools' AP and AP50; ``ranges``: with its usual ranges of areas."""
    with contextlib.redirect_stdout(io.StringIO()):
        known = coco.COCO()
        known.dataset = truth
        known.createIndex()
        evaluation = cocoeval.COCOeval(known, known.loadRes(results), "bbox")
        if not ranges:
            evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e5]], ["all"]
            evaluation.params.maxDets = [100]
        evaluation.evaluate()
        evaluation.accumulate()
    at = evaluation.eval["precision"][:, :, :, 0, -1]
    return [float(at[at > -1].mean()), float(at[0][at[0] > -1].mean())]


def by_hand(images: Sequence[Image], scores: Sequence[float]) -> list[float]:
    """Evaluate with ignored objects above the range of areas: COCO's way for its size ranges."""
    truth: dict[str, Any] = {"info": {}, "categories": [{"id": 1, "name": "cat"}]}
    truth["images"] = [{"id": at + 1, "width": 200, "height": 100} for at in range(len(images))]
    truth["annotations"] = rows = []
    results: list[dict[str, Any]] = []
    for at, image in enumerate(images, 1):
        objects = [(box, 0, 1.0) for box in image.boxes]
        objects += [(each.box, int(each.crowd), 1e6) for each in image.ignored]
        for (x1, y1, x2, y2), crowd, area in objects:
            place = {"id": len(rows) + 1, "image_id": at, "category_id": 1}
            rows.append({**place, "bbox": [x1, y1, x2 - x1, y2 - y1], "area": area})
            rows[-1]["iscrowd"] = crowd
        for x1, y1, x2, y2 in image.said:
            box = {"image_id": at, "category_id": 1, "bbox": [x1, y1, x2 - x1, y2 - y1]}
            results.append({**box, "score": scores[len(results)]})
    return evaluated(truth, results, ranges=False)


@settings(max_examples=60, deadline=None)
@given(some_images, st.randoms(use_true_random=False))
def test_values_are_those_of_pycocotools(images: list[Image], random: Any) -> None:
    count = sum(len(image.said) for image in images)
    scores = [round(random.random(), 1) for _ in range(count)]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        run = scored(small_world(Path(folder), patch), images)
        ours = precision(run, scores)
    assert ours == pytest.approx(by_hand(images, scores), abs=1e-12)


def test_the_exported_truth_gives_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a stranger's pycocotools reads the files, with its usual settings."""
    random = np.random.default_rng(4)

    def some(count: int) -> list[Corners]:
        corners = random.integers(0, 4, (count, 4)) * 20 + np.array([0, 0, 80, 20])
        return [tuple(map(float, row)) for row in corners]

    images = []
    for at in range(30):
        ignored = [Ignored(box, crowd=bool(at % 3 == 0)) for box in some(2)]
        images.append(Image(some(2), ignored, some(4)))
    run = scored(world, images)
    monkeypatch.chdir(world.folder)
    path = f"runs/M_{NAME}.json"
    assert main(["score", "--space", "grid1000", path]) == 0
    assert main(["export", path, "--to", "coco", "--out", "coco"]) == 0
    truth, results = (
        json.loads(Path(f"coco/M_{NAME}_coco_{what}.json").read_text())
        for what in ("truth", "results")
    )
    assert sum(each["ignore"] for each in truth["annotations"]) == 60
    assert sum(each["iscrowd"] for each in truth["annotations"]) == 20
    assert "area of -1" in truth["info"]["ignored objects"]
    ours = precision(run, [1.0] * len(results))
    assert evaluated(truth, results, ranges=True) == pytest.approx(ours, abs=1e-12)
