"""COCO val2017, ODinW-13 and RF100-VL: sets of COCO files.

**COCO val2017** (cocodataset.org, ``val2017.zip`` and ``annotations_trainval2017.zip``): 36,335
objects and 446 crowd regions, which are ignored.  48 images have no annotation and make no query.
The counts are those that detectors' evaluations print, not counted by us.

**ODinW-13** (huggingface.co/GLIPModel/GLIP, ``odinw_35/*.zip``, arXiv 2112.03857): the folders,
classes and ``annotations_without_background.json`` are established from the configurations of GLIP
and MMDetection, the numbers of images from the paper's table.  Models that answer in words have
their published mAP over the split valid (MMDetection's
``grounding_dino_swin-t_pretrain_odinw13.py``, which QwenLM/Qwen3-VL#839 names), every image asked
about all classes of its set.  The hub has these images in one copy, kcz358/ODinW-13, whose split
test has as many as the splits valid have together (4,938); its columns are those that lmms-eval's
task ``odinw13`` reads.

**RF100-VL** (universe.roboflow.com/rf100-vl, arXiv 2505.20612): established from its README and its
downloader.  Its published counts are of all splits together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..annotated_samples import AnnotationError, Samples
from ..custom.coco import read_coco
from ..custom.parquet_images import parquet_images
from ..custom.reader_options import ReaderOptions
from ..sources import PublishedPart
from .merged_sets import read_set, sets_in

INSTANCES = "instances_val2017.json"
CLEANED = "annotations_without_background.json"
EXPORTED = "_annotations.coco.json"

# Scores stay comparable: their images without objects never made queries.
_PUBLISHED = ReaderOptions(negatives=False)
_AS_PAPERS_ASK = ReaderOptions(all_classes=True)

# The folder in a subset's in which its splits lie
_ODINW_13 = {
    "AerialMaritimeDrone": "large",
    "Aquarium": "Aquarium Combined.v2-raw-1024.coco",
    "CottontailRabbits": "",
    "EgoHands": "generic",
    "NorthAmericaMushrooms": "North American Mushrooms.v1-416x416.coco",
    "Packages": "Raw",
    "PascalVOC": "",
    "pistols": "export",
    "pothole": "",
    "Raccoon": "Raccoon.v2-raw.coco",
    "ShellfishOpenImages": "raw",
    "thermalDogsAndPeople": "",
    "VehiclesOpenImages": "416x416",
}


def find_val2017(folder: Path) -> Sequence[PublishedPart]:
    """Return the part of COCO val2017, or raise an AnnotationError."""
    places = (folder / "annotations" / INSTANCES, folder / INSTANCES)
    instances = next((place for place in places if place.is_file()), None)
    images = folder / "val2017"
    if instances is None or not images.is_dir():
        raise AnnotationError(f"{images if instances else places[0]} is missing")
    return (PublishedPart("", partial(read_coco, instances, images), options=_PUBLISHED),)


def find_odinw(
    folder: Path, split: str, options: ReaderOptions = _PUBLISHED
) -> Sequence[PublishedPart]:
    """Return the splits (test or valid) of ODinW-13 that are there, or raise an AnnotationError."""
    parts = []
    for name, inner in _ODINW_13.items():
        subset = folder / name
        places = [place for place in (subset / inner, subset) if place.is_dir()]
        if places:
            # It has no test split.
            read = "valid" if name == "PascalVOC" else split
            parts.append(_part(name, places, read, options))
    return _some(parts, folder)


def find_odinw_of_papers(folder: Path) -> Sequence[PublishedPart]:
    """Return the sets of ODinW-13 as papers ask them: of folders, or of the hub's copy.

    Raises an AnnotationError if neither is there.
    """
    if not any(folder.rglob("*.parquet")):
        return find_odinw(folder, "valid", _AS_PAPERS_ASK)
    copy = parquet_images(folder, "test")
    if copy.missing:
        raise AnnotationError(f"{folder}: {copy.missing[0]}. Download it")
    parts = []
    for name in sets_in(copy):
        read = partial(read_set, folder, copy, name)
        parts.append(PublishedPart(name, read, bad_boxes=True, options=_AS_PAPERS_ASK))
    return parts


def find_rf100vl(folder: Path) -> Sequence[PublishedPart]:
    """Return the test splits of RF100-VL that are there, or raise an AnnotationError."""
    subsets = sorted({path.parent.parent for path in folder.glob(f"*/*/{EXPORTED}")})
    return _some([_part(place.name, [place], "test") for place in subsets], folder)


def _part(
    name: str, places: Sequence[Path], split: str, options: ReaderOptions = _PUBLISHED
) -> PublishedPart:
    read = partial(_read_subset, places, split)
    return PublishedPart(name, read, bad_boxes=True, options=options)


def _some(parts: Sequence[PublishedPart], folder: Path) -> Sequence[PublishedPart]:
    if not parts:
        raise AnnotationError(f"{folder}: no subsets in this folder")
    return parts


def _read_subset(places: Sequence[Path], split: str, options: ReaderOptions) -> Samples:
    """Read one split of a subset, which lies in the first of the places that has it."""
    for place in places:
        inner = place / split
        short = place / f"{'val' if split == 'valid' else split}_{CLEANED}"
        for instances in (inner / CLEANED, inner / EXPORTED, short):
            if instances.is_file():
                return read_coco(instances, instances.parent, options)
    missing = f"neither {split}/{CLEANED} nor {split}/{EXPORTED}"
    raise AnnotationError(f"{places[0]}: no split {split!r}: {missing} is there")
