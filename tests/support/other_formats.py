"""The small custom dataset as other tools write it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from custom_data import ANNOTATIONS, CATEGORIES, SIZES, make_images

Box = tuple[str, list[float]]  # Label, and [x, y, width, height]


def boxes_of(name: str) -> list[Box]:
    return [
        (CATEGORIES[category], [*box]) for _, image, category, box in ANNOTATIONS if image == name
    ]


def as_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def as_lines(path: Path, values: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
    return path


def labelme(folder: Path) -> Path:
    make_images(folder)
    for name, (w, h) in SIZES.items():
        shapes = [
            # Corners in any order
            {"label": label, "points": [[x + bw, y], [x, y + bh]], "shape_type": "rectangle"}
            for label, (x, y, bw, bh) in boxes_of(name)
        ]
        image = Path(name)
        value = {"version": "5.4", "flags": {}, "shapes": shapes, "imagePath": image.name}
        as_json(
            folder / image.with_suffix(".json"),
            value | {"imageData": None, "imageHeight": h, "imageWidth": w},
        )
    return folder


def label_studio(folder: Path) -> Path:
    make_images(folder)
    datasets = []
    for number, (name, (w, h)) in enumerate(SIZES.items()):
        regions = [
            {
                "type": "rectanglelabels",
                "original_width": w,
                "original_height": h,
                "value": {
                    "x": 100 * x / w,
                    "y": 100 * y / h,
                    "width": 100 * bw / w,
                    "height": 100 * bh / h,
                    "rotation": 0,
                    "rectanglelabels": [label],
                },
            }
            for label, (x, y, bw, bh) in boxes_of(name)
        ]
        url = f"/data/local-files/?d={name}"
        datasets.append(
            {"id": number, "data": {"image": url}, "annotations": [{"result": regions}]}
        )
    return as_json(folder / "project.json", datasets)


def via(folder: Path) -> Path:
    make_images(folder)
    images = {}
    for name in SIZES:
        regions = [
            {
                "shape_attributes": {"name": "rect", "x": x, "y": y, "width": w, "height": h},
                "region_attributes": {"class": label},
            }
            for label, (x, y, w, h) in boxes_of(name)
        ]
        images[f"{name}-1"] = {"filename": name, "size": -1, "regions": regions}
    return as_json(folder / "via.json", {"_via_settings": {}, "_via_img_metadata": images})


def cvat(folder: Path) -> Path:
    make_images(folder / "images")
    text = "<annotations><version>1.1</version><meta/>"
    for number, (name, (w, h)) in enumerate(SIZES.items()):
        text += f'<image id="{number}" name="{name}" width="{w}" height="{h}">'
        for label, (x, y, bw, bh) in boxes_of(name):
            sides = f'xtl="{x}" ytl="{y}" xbr="{x + bw}" ybr="{y + bh}"'
            text += f'<box label="{label}" occluded="0" {sides} z_order="0"/>'
        text += "</image>"
    (folder / "annotations.xml").write_text(f"{text}</annotations>")
    return folder


def createml(folder: Path) -> Path:
    make_images(folder)
    images = [
        {
            "image": name,
            "annotations": [
                {
                    "label": label,
                    "coordinates": {"x": x + w / 2, "y": y + h / 2, "width": w, "height": h},
                }
                for label, (x, y, w, h) in boxes_of(name)
            ],
        }
        for name in SIZES
    ]
    return as_json(folder / "createml.json", images)


def bdd100k(folder: Path) -> Path:
    make_images(folder)
    frames = [
        {
            "name": name,
            "labels": [
                {"category": label, "box2d": {"x1": x, "y1": y, "x2": x + w, "y2": y + h}}
                for label, (x, y, w, h) in boxes_of(name)
            ],
        }
        for name in SIZES
    ]
    return as_json(folder / "det_val.json", frames)


def hf_metadata(folder: Path) -> Path:
    make_images(folder)
    lines = []
    for name in SIZES:
        boxes = boxes_of(name)
        objects = {"bbox": [box for _, box in boxes], "category": [label for label, _ in boxes]}
        lines.append({"file_name": name, "objects": objects})
    return as_lines(folder / "metadata.jsonl", lines)


def kitti(folder: Path) -> Path:
    """Write training/label_2 and image_2; KITTI's types have no blanks."""
    make_images(folder / "training" / "image_2")
    for name in SIZES:
        path = (folder / "training" / "label_2" / name).with_suffix(".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(
                f"{label.replace(' ', '_')} 0.00 0 -1.5 {x} {y} {x + w} {y + h} 1 1 1 1 1 1 1\n"
                for label, (x, y, w, h) in boxes_of(name)
            )
        )
    return folder


DETECTIONS: tuple[Callable[[Path], Path], ...] = (
    labelme,
    label_studio,
    via,
    cvat,
    createml,
    bdd100k,
    hf_metadata,
    kitti,
)
"""Write the dataset into an empty folder, and return what is imported."""
