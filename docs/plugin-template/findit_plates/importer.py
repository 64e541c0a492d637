"""A published set, read in the format in which it is published: here COCO's."""

from functools import partial

from vlmeval_findit.data.importers.importer import Counts, Importer, Part, detection
from vlmeval_findit.data.own.annotations import AnnotationError
from vlmeval_findit.data.own.coco_in import read_coco


def read(folder):
    """The parts of a folder; what is in them is read when one is wanted."""
    boxes = folder / "plates.json"
    if not boxes.is_file():
        raise AnnotationError(f"{boxes} is missing")
    return [Part("", partial(_read, boxes, folder / "Plates"))]


def _read(boxes, pictures):
    return detection(read_coco(boxes), pictures)


PLATES = Importer(
    name="AcmePlates",
    title="Number plates of Acme",
    licence="CC0",
    source="https://acme.example/plates",
    holds="plates.json and Plates/*.png",
    read=read,
    counts=Counts(images=4, boxes=4),
)
