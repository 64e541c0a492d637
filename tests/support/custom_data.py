"""A small custom dataset in every format, and how it is imported."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

SIZES = {"one.jpg": (120, 80), "sub/two.png": (64, 96), "three.jpg": (100, 100)}
CATEGORIES = {7: "cat", 3: "traffic light"}
ANNOTATIONS = (
    # id, image, category, [x, y, width, height]
    (11, "one.jpg", 7, [10.0, 5.0, 30.5, 20.25]),
    (12, "one.jpg", 7, [60.0, 40.0, 60.0, 40.0]),
    (13, "one.jpg", 3, [0.0, 0.0, 12.0, 30.0]),
    (14, "sub/two.png", 3, [4.0, 8.0, 40.0, 80.0]),
)
IMAGE_IDS = {"one.jpg": 501, "sub/two.png": 77, "three.jpg": 900}


def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty data folder that no setting of this shell reaches."""
    root = tmp_path / "lmu"
    root.mkdir()
    monkeypatch.setenv("LMUData", str(root))
    for name in ("FINDIT_TABLES", "FINDIT_IMAGES", "FINDIT_CONFIG", "FINDIT_SPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return root


def make_images(folder: Path) -> Path:
    for seed, (name, (w, h)) in enumerate(SIZES.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(seed).integers(0, 255, (h, w, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    return folder


def coco_values() -> dict[str, Any]:
    return {
        "images": [
            {"id": IMAGE_IDS[name], "file_name": name, "width": w, "height": h}
            for name, (w, h) in SIZES.items()
        ],
        "categories": [{"id": number, "name": name} for number, name in CATEGORIES.items()],
        "annotations": [
            {
                "id": number,
                "image_id": IMAGE_IDS[image],
                "category_id": category,
                "bbox": [*box],
                "area": box[2] * box[3],
                "iscrowd": 0,
            }
            for number, image, category, box in ANNOTATIONS
        ],
    }


def write_coco(folder: Path, values: dict[str, Any] | None = None) -> Path:
    path = folder / "instances.json"
    path.write_text(json.dumps(coco_values() if values is None else values))
    return path


def write_yolo(folder: Path) -> Path:
    names = list(CATEGORIES.values())
    (folder / "data.yaml").write_text(json.dumps({"names": names}))
    for name, (w, h) in SIZES.items():
        lines = [
            f"{names.index(CATEGORIES[category])} {(x + bw / 2) / w!r} {(y + bh / 2) / h!r} "
            f"{bw / w!r} {bh / h!r}\n"
            for _, image, category, (x, y, bw, bh) in ANNOTATIONS
            if image == name
        ]
        path = (folder / "labels" / name).with_suffix(".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines))
    make_images(folder / "images")
    return folder


def write_voc(folder: Path) -> Path:
    (folder / "Annotations").mkdir(parents=True)
    for name, (w, h) in SIZES.items():
        objects = "".join(
            f"<object><name>{CATEGORIES[category]}</name><difficult>0</difficult><bndbox>"
            f"<xmin>{x}</xmin><ymin>{y}</ymin><xmax>{x + bw}</xmax><ymax>{y + bh}</ymax>"
            "</bndbox></object>"
            for _, image, category, (x, y, bw, bh) in ANNOTATIONS
            if image == name
        )
        (folder / "Annotations" / f"{Path(name).stem}.xml").write_text(
            f"<annotation><filename>{name}</filename><size><width>{w}</width>"
            f"<height>{h}</height><depth>3</depth></size>{objects}</annotation>"
        )
    make_images(folder / "JPEGImages")
    return folder


def write_listing(path: Path) -> Path:
    with path.open("w", newline="") as f:
        rows = csv.writer(f, delimiter="\t" if path.suffix == ".tsv" else ",")
        rows.writerow(["image", "label", "x1", "y1", "x2", "y2"])
        for _, image, category, (x, y, w, h) in ANNOTATIONS:
            rows.writerow([image, CATEGORIES[category], x, y, x + w, y + h])
    return path
