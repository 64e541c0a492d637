"""Rendered scenes: the same everywhere, with boxes of the visible pixels."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from few_fast import few_fast

pytest.importorskip("cv2", reason="the program that writes the tables draws marks, too")

from training import shipped_tables
from training.scenes import SPLITS, clip, scene, shot
from vlmeval_findit.benchmarks.findit import BENCHMARK_DATASETS, read_table
from vlmeval_findit.data import Look, ObjectPlacement, load_dataset, paint_all
from vlmeval_findit.data.rendered import tables
from vlmeval_findit.storage import meta_path, png, shipped_table


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


# --- the same bytes on every machine --------------------------------------------------------------


def test_a_seed_is_the_same_image_everywhere() -> None:
    look = Look("ring", "red", "striped")
    # In the crowded scene the first placing hid an object too much.
    crowded = scene(6, (7, 7), (144, 144))
    images = (scene(7), shot(7, look), *clip(7, 2), crowded)
    assert [sha256(png(image.pixels)) for image in images] == [
        "254cac4495f14090",
        "413b51f25261dc5b",
        "233fa653a2960f86",
        "74fb23f8a6f82d8c",
        "0a487df8a82cc28e",
    ]


# --- boxes ----------------------------------------------------------------------------------------


def test_a_box_is_of_the_pixels_that_are_seen() -> None:
    """Half of a square of 40 pixels is behind another one; a third leaves the image."""
    canvas = np.zeros((100, 100, 3))
    places = [ObjectPlacement(40, 50, 20), ObjectPlacement(60, 50, 20), ObjectPlacement(0, 80, 15)]
    colours = [(255, 0, 0), (0, 0, 255), (1, 1, 1)]
    square = Look("square", "red", "plain")
    boxes = paint_all(canvas, [(square, place) for place in places], colours, least_seen=0.2)
    assert boxes == [(20, 30, 40, 70), (40, 30, 80, 70), (0, 65, 15, 95)]
    assert canvas[50, 39].round().tolist() == [255, 0, 0]
    assert canvas[50, 40].round().tolist() == [0, 0, 255]

    # What is hidden too much has no box.
    placed = [(square, ObjectPlacement(50, 50, 20)), (square, ObjectPlacement(54, 50, 20))]
    assert paint_all(np.zeros((100, 100, 3)), placed, [(1, 1, 1)] * 2, 0.2)[0] is None


# --- tables ---------------------------------------------------------------------------------------


@pytest.fixture
def lmu(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LMUData", str(tmp_path))
    return tmp_path


def test_a_table_is_remade_only_when_its_code_changed(lmu: Path) -> None:
    dataset = load_dataset("FindIt_Scenes_mini_insdet_xyxy_json")
    query = dataset.queries[0]
    for name in (*query.images, *query.support):
        assert (lmu / "images" / "Scenes_mini" / name).is_file()
    table = dataset.table
    time = table.stat().st_mtime_ns
    load_dataset("FindIt_Scenes_mini_insdet_yxyx_text")
    assert table.stat().st_mtime_ns == time
    meta = json.loads(meta_path(table).read_text())
    meta_path(table).write_text(json.dumps(meta | {"source_sha256": "older"}))
    load_dataset("FindIt_Scenes_mini_insdet_xyxy_json")
    assert json.loads(meta_path(table).read_text()) == meta
    assert table.stat().st_mtime_ns > time


def test_tables_hold_what_was_pinned(lmu: Path) -> None:
    """The same questions everywhere: scores of two machines can be compared."""
    table = tables.prepare_scenes("Scenes_mini_multilabel")
    assert sha256(table.path.read_bytes()) == "65fe35301bdec5cb"


@pytest.mark.parametrize(
    "name",
    few_fast(
        [
            *(f"Scenes_mini{kind}" for kind in ("", "_refexp", "_described", "_insdet", "_video")),
            "Scenes_train_video",
        ],
        3,
    ),
)
def test_what_ships_is_what_training_makes(name: str, tmp_path) -> None:
    for table in BENCHMARK_DATASETS[name].tables:
        written = shipped_tables.write_scenes(table, tmp_path)
        assert written.read_bytes() == shipped_table(table).read_bytes()


def test_nothing_that_is_trained_on_is_measured_on() -> None:
    spans = sorted((split.start, split.stop) for split in SPLITS.values())
    assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))
    names = {"Scenes": "test", "Scenes_mini": "validation", "Scenes_train": "train"}
    rows = [row for row in BENCHMARK_DATASETS.values() if row.images in names]
    assert len(rows) == 15
    for row in rows:
        split = names[row.images]
        assert row.for_training is (split == "train")
        seeds = {int(Path(q.cluster).stem) for q in read_table(shipped_table(row.name))}
        assert all(seed in SPLITS[split] for seed in seeds)


def test_a_row_is_about_what_is_rendered(lmu: Path) -> None:
    for query in load_dataset("FindIt_Scenes_mini_insdet_xyxy_json").queries.values():
        seed = int(Path(query.cluster).stem)
        texture, colour, shape = query.label.split()
        assert query.sightings[0].box == shot(seed, Look(shape, colour, texture)).things[0].box
        assert {*query.truth.boxes} <= {thing.box for thing in scene(seed).things}
