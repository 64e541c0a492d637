"""A few invented images and annotations in the layouts of published sets."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from vlmeval_findit.core import Group, PluginTable
from vlmeval_findit.data import SOURCES, DataSource, sources
from vlmeval_findit.marks import packed_mask

WIDTH, HEIGHT = 200, 100
OBJECT = [10.0, 20.0, 50.0, 40.0]
"""[x, y, width, height] of what every picture shows first."""
OTHER = [100.0, 10.0, 60.0, 80.0]


def known(monkeypatch: pytest.MonkeyPatch, name: str, **change: Any) -> None:
    """Let a row know these counts, which a stand-in can have."""
    rows = {**SOURCES.builtin, name: replace(SOURCES[name], **change)}
    monkeypatch.setattr(sources, "SOURCES", PluginTable(Group.SOURCES, rows, DataSource))


def picture(shade: int, kind: str = "JPEG") -> bytes:
    """Return a grey picture as the bytes of a file."""
    file = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (shade, shade, shade)).save(file, kind)
    return file.getvalue()


def coco(images: Mapping[str, Sequence[tuple[str, list[float]]]], classes: Sequence[str]) -> Any:
    """Return COCO values of the objects of each image: class and [x, y, width, height]."""
    ids = {name: number for number, name in enumerate(images, 1)}
    objects = [(ids[name], *item) for name, items in images.items() for item in items]
    size = {"width": WIDTH, "height": HEIGHT}
    return {
        "images": [{"id": number, "file_name": name, **size} for name, number in ids.items()],
        "categories": [
            {"id": number, "name": name, "supercategory": "things"}
            for number, name in enumerate(classes, 1)
        ],
        "annotations": [
            {
                **{"id": number, "image_id": image, "category_id": classes.index(label) + 1},
                **{"bbox": box, "area": box[2] * box[3], "iscrowd": 0},
            }
            for number, (image, label, box) in enumerate(objects, 1)
        ],
    }


def write_coco(instances: Path, images: Path, values: Any) -> None:
    """Write a COCO file and grey pictures for it."""
    instances.parent.mkdir(parents=True, exist_ok=True)
    images.mkdir(parents=True, exist_ok=True)
    instances.write_text(json.dumps(values))
    for shade, image in enumerate(values["images"]):
        (images / image["file_name"]).write_bytes(picture(shade))


def write_coco_val2017(folder: Path) -> Path:
    """Write three images: a cat with a crowd of dogs, two cats and a dog, nothing."""
    objects = {
        "000000000139.jpg": [("cat", OBJECT), ("dog", OTHER)],
        "000000000285.jpg": [("cat", OBJECT), ("cat", OTHER), ("dog", [0.0, 0.0, 30.0, 30.0])],
        "000000000632.jpg": [],
    }
    values = coco(objects, ["cat", "dog", "zebra"])
    values["annotations"][1]["iscrowd"] = 1
    write_coco(folder / "annotations" / "instances_val2017.json", folder / "val2017", values)
    return folder


# --- Roboflow -------------------------------------------------------------------------------------


def subset(label: str) -> Any:
    """Return two images with an object each."""
    return coco({f"{label}_1.jpg": [(label, OBJECT)], f"{label}_2.jpg": [(label, OTHER)]}, [label])


CLEANED = "annotations_without_background.json"
ODINW = {
    "Aquarium/Aquarium Combined.v2-raw-1024.coco/test": "fish",
    "EgoHands/generic/test": "hand",
    "PascalVOC/valid": "cow",
    "pothole/test": "pothole",
}
"""Folders of splits, of four subsets, and the class of each."""


def write_odinw(folder: Path, split: str = "test") -> Path:
    """Write four of the subsets, and pistols, whose splits share a folder."""
    for place, label in ODINW.items():
        images = folder / place.replace("test", split)
        write_coco(images / CLEANED, images, subset(label))
    export = folder / "pistols" / "export"
    file = f"{'val' if split == 'valid' else split}_{CLEANED}"
    write_coco(export / file, export, subset("pistol"))
    return folder


ODINW_13 = {
    "AerialMaritimeDrone/large/valid": ("boat", "car"),
    "Aquarium/Aquarium Combined.v2-raw-1024.coco/valid": ("fish", "shark"),
    "CottontailRabbits/valid": ("Cottontail-Rabbit",),
    "EgoHands/generic/valid": ("hand",),
    "NorthAmericaMushrooms/North American Mushrooms.v1-416x416.coco/valid": ("CoW",),
    "Packages/Raw/valid": ("package",),
    "PascalVOC/valid": ("cow", "dog", "person"),
    "pistols/export/valid": ("pistol",),
    "pothole/valid": ("pothole",),
    "Raccoon/Raccoon.v2-raw.coco/valid": ("raccoon",),
    "ShellfishOpenImages/raw/valid": ("Crab", "Lobster"),
    "thermalDogsAndPeople/valid": ("dog", "person"),
    "VehiclesOpenImages/416x416/valid": ("Bus", "Car"),
}
"""Folders of the splits valid of all subsets, and some classes of each."""


def odinw_images(classes: Sequence[str]) -> dict[str, list[tuple[str, list[float]]]]:
    """Return five images: with one object, two of a class, two of two classes, none, and one."""
    first, last = classes[0], classes[-1]
    return {
        "a.jpg": [(first, OBJECT)],
        "b.jpg": [(first, OBJECT), (first, OTHER)],
        "c.jpg": [(first, OBJECT), (last, OTHER)],
        "d.jpg": [],
        "e.jpg": [(last, OTHER)],
    }


def write_odinw_13(folder: Path) -> Path:
    """Write the thirteen folders."""
    for place, classes in ODINW_13.items():
        write_coco(folder / place / CLEANED, folder / place, coco(odinw_images(classes), classes))
    return folder


def write_odinw_copy(folder: Path) -> Path:
    """Write the hub's one copy of what the thirteen folders have."""
    rows = []
    for place, classes in ODINW_13.items():
        for shade, objects in enumerate(odinw_images(classes).values()):
            boxes = [[x, y, x + w, y + h] for _, (x, y, w, h) in objects]
            rows.append(
                {
                    "image": {"bytes": picture(shade), "path": None},
                    "dataset_name": place.partition("/")[0],
                    "categories": list(classes),
                    "bboxes": boxes,
                    "labels": [label for label, _ in objects],
                }
            )
    return write_parquet(folder, "test", rows, files=2)


def write_rf100vl(folder: Path) -> Path:
    for label in ("bees", "-grccs", "mites"):
        for split in ("train", "test"):
            images, values = folder / label / split, subset(label)
            # Roboflow's class 0 has the name of a class.
            values["categories"].insert(0, {"id": 0, "name": label, "supercategory": "none"})
            write_coco(images / "_annotations.coco.json", images, values)
    return folder


# --- Parquet --------------------------------------------------------------------------------------


def groundingme() -> list[dict[str, Any]]:
    """Return two objects, and two expressions of what is not there."""
    subtasks = ("Discriminative", "Limited", "Rejection", "Rejection")
    return [
        {
            "id": number,
            "description": f"the {subtask.lower()} thing, which\nis number {number}",
            "image": {"bytes": picture(number, "JPEG" if number % 2 else "PNG"), "path": None},
            "bbox": [10, 20, 60, 60] if subtask != "Rejection" else None,
            "subtask_l1": subtask,
            "subtask_l2": None if number == 12 else "colour",
            "width": WIDTH,
            "height": HEIGHT,
        }
        for number, subtask in enumerate(subtasks, 11)
    ]


def refcoco_m() -> list[dict[str, Any]]:
    """Return an image with two objects, the first with two expressions, and another image.

    The mask of an object is the upper half of its box.
    """

    def sample(box: list[float], *sentences: str) -> dict[str, Any]:
        x, y, w, h = map(int, box)
        mask = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
        mask[y : y + h // 2, x : x + w] = 1
        runs = {"counts": packed_mask(mask).packed, "size": [HEIGHT, WIDTH]}
        person = {"category": "person", "supercategory": "person"}
        return {**person, "sentences": list(sentences), "bbox": box, "mask": runs}

    by_image = (
        [sample(OBJECT, "man on the left", "left man"), sample(OTHER, "woman")],
        [sample(OTHER, "child, in red")],
    )
    return [
        {
            "image": {"bytes": picture(number), "path": None},
            "file_name": f"COCO_train2014_{number:012}.jpg",
            "samples": samples,
        }
        for number, samples in enumerate(by_image)
    ]


def write_parquet(
    folder: Path, split: str, rows: Sequence[Mapping[str, Any]], files: int = 1
) -> Path:
    """Write rows in the files of a split, as the hub has them."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    each = -(-len(rows) // files)
    for number in range(files):
        part = pa.Table.from_pylist(list(rows[number * each : (number + 1) * each]))
        pq.write_table(part, data / f"{split}-{number:05}-of-{files:05}.parquet")
    return folder


def write_groundingme(folder: Path, rows: Any = None, files: int = 1) -> Path:
    return write_parquet(folder, "test", rows or groundingme(), files)


def write_refcoco_m(folder: Path, rows: Any = None) -> Path:
    return write_parquet(folder, "validation", rows or refcoco_m())
