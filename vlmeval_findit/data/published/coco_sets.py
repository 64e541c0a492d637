"""Sets of COCO files: COCO val2017, and ODinW-13 and RF100-VL as Roboflow exports them.

**COCO val2017** is published at cocodataset.org as ``val2017.zip`` and
``annotations_trainval2017.zip``; the folder is where both were unpacked.  36,781 annotations:
36,335 objects and 446 crowd regions, which are ignored as everywhere here.  48 images have no
annotation: they make no query, since nobody says of which class nothing is there.  The counts of
images, of objects and of images without any are those that detectors' evaluations print; none
is counted by us.

A subset of the others has a folder a split, ``train``, ``valid`` and ``test``, with its images
and ``_annotations.coco.json``.  Roboflow adds a class 0 that is no class, which ODinW's editors and
the downloader of RF100-VL take out; we leave it out where nothing is annotated with it.  Boxes
without an area are left out and counted: they are the exports', and nobody can find them.

**ODinW-13** is published at huggingface.co/GLIPModel/GLIP (``odinw_35/*.zip``; 35 sets, of which
these 13 are those of GLIP, arXiv 2112.03857).  Established from GLIP's and MMDetection's
configurations: the folders, ``annotations_without_background.json``, classes, and that ``pistols``
has one folder with a file a split and ``PascalVOC`` no test split (there, valid is the test split).
The numbers of images are those of the paper's table, not counted by us in the files.  Licences
are the single sets'; we did not establish them.  Published figures are of ``test`` (the paper's
word) or of ``valid`` (GLIP's and MMDetection's configurations; GLIP's takes ``mini_val`` of
EgoHands, which is neither): the table has both, by name.

**RF100-VL** is published at universe.roboflow.com/rf100-vl; ``pip install rf100vl`` downloads it
(arXiv 2505.20612).  Established from its README and its downloader: 100 subsets, one folder each,
COCO files, Apache 2.0.  564 classes, 164,149 images and 1,355,491 boxes are of all splits
together, so they say nothing of ``test``; numbers of single subsets are not established.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..custom.coco import read_coco
from ..samples import AnnotationError, Samples
from ..sources import ODINW_13, PublishedPart

INSTANCES = "instances_val2017.json"
CLEANED = "annotations_without_background.json"
EXPORTED = "_annotations.coco.json"


def read_val2017(folder: Path) -> Sequence[PublishedPart]:
    """Return the one part of COCO val2017, or raise an AnnotationError."""
    places = (folder / "annotations" / INSTANCES, folder / INSTANCES)
    instances = next((place for place in places if place.is_file()), None)
    images = folder / "val2017"
    if instances is None or not images.is_dir():
        raise AnnotationError(f"{images if instances else places[0]} is missing")
    return (PublishedPart("", lambda: read_coco(instances, images)),)


def read_odinw(folder: Path, split: str) -> Sequence[PublishedPart]:
    """Return the splits (test or valid) of ODinW-13 that are there, or raise an AnnotationError."""
    parts = []
    for name, (inner, *_) in ODINW_13.items():
        subset = folder / name
        places = [place for place in (subset / inner, subset) if place.is_dir()]
        if places:
            wanted = "valid" if name == "PascalVOC" else split
            parts.append(PublishedPart(name, partial(_read_subset, places, wanted)))
    return _some(parts, folder)


def read_rf100vl(folder: Path) -> Sequence[PublishedPart]:
    """Return the test splits of RF100-VL that are there, or raise an AnnotationError."""
    subsets = [place for place in sorted(folder.iterdir()) if any(_splits(place))]
    parts = [PublishedPart(place.name, partial(_read_subset, [place], "test")) for place in subsets]
    return _some(parts, folder)


def _splits(subset: Path) -> Iterator[Path]:
    return subset.glob(f"*/{EXPORTED}")


def _some(parts: Sequence[PublishedPart], folder: Path) -> Sequence[PublishedPart]:
    if not parts:
        raise AnnotationError(f"{folder}: no subset is there")
    return parts


def _read_subset(places: Sequence[Path], split: str) -> Samples:
    """One split of a subset, which lies in the first of the places that has it."""
    short = "val" if split == "valid" else split
    for place in places:
        found = (
            (place / split / CLEANED, place / split),
            (place / split / EXPORTED, place / split),
            (place / f"{short}_{CLEANED}", place),
        )
        for instances, images in found:
            if instances.is_file():
                return read_coco(instances, images, _without_root, without_flat=True)
    files = f"neither {split}/{CLEANED} nor {split}/{EXPORTED}"
    raise AnnotationError(f"{places[0]}: no split {split!r}: {files} is there")


def _without_root(values: Any) -> Any:
    """Drop Roboflow's class 0, which is the project and often has a class's name."""
    if not isinstance(values, dict):
        return values
    classes, boxes = values.get("categories"), values.get("annotations")
    if not isinstance(classes, list) or not isinstance(boxes, list):
        return values
    used = {box.get("category_id") for box in boxes if isinstance(box, dict)}
    kept = [one for one in classes if not (_is_root(one) and 0 not in used)]
    return {**values, "categories": kept}


def _is_root(one: Any) -> bool:
    return isinstance(one, dict) and one.get("id") == 0 and one.get("supercategory") == "none"
