"""COCO val2017, all of it: 5,000 pictures, 80 classes.

Published at cocodataset.org as ``val2017.zip`` and ``annotations_trainval2017.zip``; the folder is
where both were unpacked.  36,781 annotations: 36,335 objects and 446 crowd regions, which are
ignored as everywhere here.  48 pictures have no annotation: they make no query, since nobody says
of which class nothing is there.  The counts of pictures, of objects and of pictures without any are
those that detectors' evaluations print; none is counted by us.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..own.annotations import AnnotationError
from ..own.coco_in import read_coco
from .importer import Content, Part, detection

INSTANCES = "instances_val2017.json"


def read(folder: Path) -> Sequence[Part]:
    """The one part.

    Raises:
        AnnotationError: the folder lacks the annotations or the pictures.
    """
    places = (folder / "annotations" / INSTANCES, folder / INSTANCES)
    instances = next((place for place in places if place.is_file()), None)
    if instances is None:
        raise AnnotationError(f"{places[0]} is missing")
    if not (folder / "val2017").is_dir():
        raise AnnotationError(f"{folder / 'val2017'} is missing")
    return (Part("", partial(_read, instances, folder / "val2017")),)


def _read(instances: Path, images: Path) -> Content:
    return detection(read_coco(instances), images)
