"""Rendered scenes: the same everywhere, boxes of what is seen, questions with one right answer."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from training import questions as asking
from training import shipped_tables
from training.questions import ATTRIBUTES, RELATIONS
from training.scenes import SPLITS, Scene, Thing, clip, scene, shot
from vlmeval_findit.benchmarks.findit.annotation_tables import load_task, read_table
from vlmeval_findit.benchmarks.findit.findit_datasets import BENCHMARK
from vlmeval_findit.core.stored_png import png
from vlmeval_findit.core.table_files import meta_path
from vlmeval_findit.data.rendered import tables
from vlmeval_findit.data.rendered.drawing import Look, Placement
from vlmeval_findit.data.rendered.scene import Stream, paint_all, rng_of

SCENES = [scene(seed) for seed in range(120)]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


# --- the same bytes on every machine --------------------------------------------------------------


def test_a_seed_is_the_same_picture_everywhere() -> None:
    look = Look("ring", "red", "striped")
    # Of the crowded one the first objects that were placed hid one too much.
    crowded = scene(6, (7, 7), (144, 144))
    images = (scene(7), shot(7, look), *clip(7, 2), crowded)
    assert [sha256(png(image.pixels)) for image in images] == [
        "254cac4495f14090",
        "413b51f25261dc5b",
        "233fa653a2960f86",
        "74fb23f8a6f82d8c",
        "0a487df8a82cc28e",
    ]


def test_splits_share_no_seed() -> None:
    spans = sorted((split.start, split.stop) for split in SPLITS.values())
    assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))


# --- boxes ----------------------------------------------------------------------------------------


def test_a_box_is_of_the_pixels_that_are_seen() -> None:
    """A square of 40 pixels whose right half is behind another one."""
    canvas = np.zeros((100, 100, 3))
    square = Look("square", "red", "plain")
    boxes = paint_all(
        canvas,
        [(square, Placement(40, 50, 20)), (square, Placement(60, 50, 20))],
        [(255, 0, 0), (0, 0, 255)],
        least_seen=0.2,
    )
    assert boxes == [(20, 30, 40, 70), (40, 30, 80, 70)]
    assert canvas[50, 39].round().tolist() == [255, 0, 0]
    assert canvas[50, 40].round().tolist() == [0, 0, 255]


def test_what_is_hidden_too_much_has_no_box() -> None:
    square = Look("square", "red", "plain")
    placed = [(square, Placement(50, 50, 20)), (square, Placement(54, 50, 20))]
    assert paint_all(np.zeros((100, 100, 3)), placed, [(1, 1, 1)] * 2, 0.2)[0] is None


def test_what_leaves_the_picture_keeps_the_part_inside() -> None:
    square = Look("square", "red", "plain")
    assert paint_all(np.zeros((60, 60, 3)), [(square, Placement(0, 30, 20))], [(1, 1, 1)], 0.2) == [
        (0, 10, 20, 50)
    ]


# --- questions ------------------------------------------------------------------------------------


def meant(shown: Scene, expression: str) -> list[Thing]:
    """What an expression means, worked out from its words alone."""
    words = expression.removeprefix("the ")
    relation = next((name for name in RELATIONS if f" {name} the " in words), None)
    anchors: list[Thing] = []
    if relation:
        words, _, anchor = words.partition(f" {relation} the ")
        anchors = [t for t in shown.things if t.look.shape == anchor]
        assert len(anchors) == 1, "the object that another one is placed by must be the only one"
    *attributes, noun = words.split()
    return [
        t
        for t in shown.things
        if noun in (t.look.shape, asking.ANY_SHAPE)
        and all(word in {of(t) for of in ATTRIBUTES.values()} for word in attributes)
        and (relation is None or RELATIONS[relation](t, anchors[0]) > 0)
    ]


def test_an_expression_means_one_object_and_its_shape_alone_does_not() -> None:
    relations = 0
    for seed, shown in enumerate(SCENES):
        asked = asking.referring(rng_of(Stream.QUESTION, seed), shown)
        if asked is None:
            continue
        (thing,) = meant(shown, asked.label)
        assert asked.boxes == (thing.box,)
        assert sum(t.look.shape == thing.look.shape for t in shown.things) > 1
        relations += any(name in asked.label for name in RELATIONS)
    assert relations > 10


# --- tables ---------------------------------------------------------------------------------------


@pytest.fixture
def lmu(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LMUData", str(tmp_path))
    return tmp_path


def test_a_set_is_made_when_it_is_first_asked_for(lmu: Path) -> None:
    task = load_task("FindIt_Scenes_mini_insdet_xyxy_json")
    assert len(task.queries) == 50
    query = task.queries[0]
    for name in (*query.images, *query.support):
        assert (lmu / "images" / "Scenes_mini" / name).is_file()
    with Image.open(lmu / "images" / "Scenes_mini" / query.images[0]) as image:
        assert image.size == (query.width, query.height)


def test_it_is_made_once_and_again_when_the_code_that_makes_it_changed(lmu: Path) -> None:
    table = load_task("FindIt_Scenes_mini_refexp_xyxy_json").table
    made = table.stat().st_mtime_ns
    load_task("FindIt_Scenes_mini_refexp_yxyx_text")
    assert table.stat().st_mtime_ns == made
    meta = json.loads(meta_path(table).read_text())
    meta_path(table).write_text(json.dumps(meta | {"source_sha256": "older"}))
    load_task("FindIt_Scenes_mini_refexp_xyxy_json")
    assert json.loads(meta_path(table).read_text()) == meta
    assert table.stat().st_mtime_ns > made


def test_tables_hold_what_was_pinned(lmu: Path) -> None:
    """The same questions everywhere: scores of two machines can be compared."""
    made = tables.prepare(BENCHMARK["Scenes_mini"], "Scenes_mini_multilabel")
    assert sha256(made.path.read_bytes()) == "65fe35301bdec5cb"
    assert len(read_table(made.path)) == 50


@pytest.mark.parametrize(
    ("name", "multilabel"),
    [
        ("Scenes_mini", False),
        ("Scenes_mini", True),
        ("Scenes_mini_refexp", False),
        ("Scenes_mini_described", False),
        ("Scenes_mini_insdet", False),
        ("Scenes_mini_video", False),
        ("Scenes_train_video", False),
    ],
)
def test_what_ships_is_what_training_makes(name: str, multilabel: bool, tmp_path) -> None:
    row = BENCHMARK[name]
    made = shipped_tables.write_scenes(row, multilabel, tmp_path)
    assert made.read_bytes() == tables.shipped(row.table_name(multilabel)).read_bytes()


@pytest.mark.parametrize(
    ("name", "split"),
    [("Scenes", "test"), ("Scenes_mini", "validation"), ("Scenes_train", "train")],
)
def test_nothing_that_is_trained_on_is_measured_on(name: str, split: str) -> None:
    rows = [row for row in BENCHMARK.values() if row.images == name]
    assert len(rows) == 5
    for row in rows:
        assert row.for_training is (split == "train")
        seeds = {int(Path(q.cluster).stem) for q in read_table(tables.shipped(row.name))}
        assert all(seed in SPLITS[split] for seed in seeds)


def test_a_row_is_about_what_is_rendered(lmu: Path) -> None:
    for query in load_task("FindIt_Scenes_mini_insdet_xyxy_json").queries.values():
        seed = int(Path(query.cluster).stem)
        texture, colour, shape = query.label.split()
        assert query.sightings[0].box == shot(seed, Look(shape, colour, texture)).things[0].box
        assert {*query.truth.boxes} <= {thing.box for thing in scene(seed).things}
