"""The table of published sets: one row each.

A licence is what is published with the set; the owners' pages decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ...core.plugins import Group, Table
from .importer import Counts, Importer, Part


def _by(module: str, function: str = "read") -> Callable[[Path], Sequence[Part]]:
    """A reader of this folder, imported when it is used."""

    def read(folder: Path) -> Sequence[Part]:
        reader: Any = import_module(f".{module}", __package__)
        parts: Sequence[Part] = getattr(reader, function)(folder)
        return parts

    return read


_ODINW = {
    # Classes, and pictures of the splits test and valid; PascalVOC has no test split of its own.
    "AerialMaritimeDrone": (5, 7, 15),
    "Aquarium": (7, 63, 127),
    "CottontailRabbits": (1, 10, 19),
    "EgoHands": (1, 480, 480),
    "NorthAmericaMushrooms": (2, 5, 5),
    "Packages": (1, 3, 4),
    "PascalVOC": (20, 3422, 3422),
    "pistols": (1, 297, 297),
    "pothole": (1, 67, 133),
    "Raccoon": (1, 17, 29),
    "ShellfishOpenImages": (3, 58, 116),
    "thermalDogsAndPeople": (2, 20, 41),
    "VehiclesOpenImages": (5, 126, 250),
}


def _odinw(split: str) -> Importer:
    """ODinW-13 in one of its splits, ``test`` or ``valid``."""
    is_test = split == "test"
    counts = {
        name: Counts(images=test if is_test else valid, classes=classes)
        for name, (classes, test, valid) in _ODINW.items()
    }
    return Importer(
        name="ODinW13" if is_test else "ODinW13_valid",
        title=f"Object Detection in the Wild, the 13 sets of GLIP, split {split}",
        licence="that of each set, as stated at public.roboflow.com (not looked up here)",
        source="https://huggingface.co/GLIPModel/GLIP/tree/main/odinw_35",
        holds="a folder a subset (Aquarium, EgoHands …), as the zip files unpack",
        read=_by("coco_sets", f"read_odinw_{split}"),
        parts=counts,
        datasets=len(counts),
    )


_ROWS = (
    Importer(
        name="COCO_val2017",
        title="COCO val2017, all of it",
        licence="annotations CC BY 4.0, photographs under Flickr's terms of use",
        source="https://cocodataset.org",
        holds="annotations/instances_val2017.json and val2017/*.jpg",
        read=_by("coco_sets", "read_val2017"),
        counts=Counts(images=5000, boxes=36_335, classes=80, ignored=446),
    ),
    _odinw("test"),
    _odinw("valid"),
    Importer(
        name="RF100-VL",
        title="Roboflow 100-VL, test splits",
        licence="Apache 2.0, as its README says",
        source="https://universe.roboflow.com/rf100-vl (pip install rf100vl)",
        holds="a folder a subset with test/_annotations.coco.json and its pictures",
        read=_by("coco_sets", "read_rf100vl"),
        datasets=100,
    ),
    Importer(
        name="GroundingME",
        title="GroundingME: hard expressions, and expressions of what is not there",
        licence="research only, under the terms of SA-1B and of HR-Bench",
        source="https://huggingface.co/datasets/lirang04/GroundingME",
        holds="data/test-*.parquet",
        read=_by("groundingme"),
        counts=Counts(queries=1005),
    ),
    Importer(
        name="RefCOCO-M",
        title="RefCOCO-M: RefCOCO val with new masks, without harmful expressions",
        licence="MIT, as its card says; photographs of COCO under Flickr's terms of use",
        source="https://huggingface.co/datasets/moondream/refcoco-m",
        holds="data/validation-*.parquet",
        read=_by("refcoco_m"),
        counts=Counts(images=1190, boxes=2080, queries=5598),
    ),
    Importer(
        name="ScreenSpot-Pro",
        title="ScreenSpot-Pro: where to click in professional software; ask for point",
        licence="MIT, as copies of its card say",
        source="https://huggingface.co/datasets/likaixin/ScreenSpot-Pro",
        holds="annotations/*.json and images/",
        read=_by("screenspot_pro"),
        counts=Counts(queries=1581),
    ),
    Importer(
        name="RefSpatial",
        title="RefSpatial-Bench: objects and free places by where they are; ask for point",
        licence="Apache 2.0, as its card says",
        source="https://huggingface.co/datasets/BAAI/RefSpatial-Bench",
        holds="Location, Placement and Unseen, each with question.json, image/ and mask/",
        read=_by("refspatial"),
        parts={
            "Location": Counts(queries=100),
            "Placement": Counts(queries=100),
            "Unseen": Counts(queries=77),
        },
        datasets=3,
    ),
)

IMPORTERS: Table[Importer] = Table(Group.IMPORTERS, {row.name: row for row in _ROWS}, Importer)
"""The rows by name, which is also what their datasets are called."""
