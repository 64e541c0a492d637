"""A published set, read in the format in which it is published: here COCO's."""

from functools import partial

from vlmeval_findit.data import (
    AnnotationError,
    Counts,
    DataSource,
    PublishedPart,
    ReaderOptions,
    read_coco,
)


def read(folder):
    """The parts of a folder; what is in them is read when one is wanted."""
    boxes = folder / "plates.json"
    if not boxes.is_file():
        raise AnnotationError(f"{boxes} is missing")
    read = partial(read_coco, boxes, folder / "Plates")
    return [PublishedPart("", read, options=ReaderOptions())]


PLATES = DataSource(
    name="AcmePlates",
    title="Number plates of Acme",
    licence="CC0",
    address="https://acme.example/plates",
    holds="plates.json and Plates/*.png",
    read=read,
    counts=Counts(images=4, boxes=4),
)
