"""The datasets that questions are made of: tables of object detection, and rendered scenes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np

from ...benchmarks.findit.annotation_tables import load_task
from ...benchmarks.findit.datasets import DATASETS, Dataset, Family
from ...benchmarks.findit.query import Query
from ...boxes.representation import Corners
from ...core.image_checks import refusal, unusable
from ...core.image_files import Size, decode
from ...core.places import image_folder
from ...core.spelling import nearest
from ...marks.region import Polygon
from ...marks.style import Shape
from ..rendered.scene import Owners, seen_pixels
from ..rendered.tables import SETS, Shown, shown_scenes
from .annotated import AnnotatedPicture, Labelled, Object, Pixels, Seen
from .plan import NEED_OUTLINES

LONGEST_SIDE = 640
"""Pixels of a picture that is asked about, as in COCO: a larger one is made smaller."""


class SourceError(ValueError):
    """A dataset that no questions can be made of; the message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """Annotated pictures, the shapes that can be drawn on them, and what is to be said of them."""

    name: str
    pictures: tuple[AnnotatedPicture, ...]
    shapes: tuple[Shape, ...]
    notes: tuple[str, ...] = ()


def source_of(name: str, most: int) -> Source:
    """The pictures of a dataset.

    Args:
        name: of the dataset, with or without ``_multilabel``.
        most: so many rendered scenes will do.

    Raises:
        SourceError: there is no such dataset, or it is none of objects in pictures.
        FileNotFoundError: its table is nowhere.
        ImageError: its images are not there.
    """
    dataset = _dataset(name)
    if dataset.images in SETS:
        return Source(dataset.name, tuple(_scenes(dataset.images, most)), tuple(Shape))
    needing = ", ".join(shape.value for shape in Shape if shape in NEED_OUTLINES)
    from_boxes = tuple(shape for shape in Shape if shape not in NEED_OUTLINES)
    note = f"{needing} need outlines; {dataset.name} has boxes only"
    return Source(dataset.name, tuple(_pictures(dataset)), from_boxes, (note,))


def _dataset(name: str) -> Dataset:
    plain = name.removesuffix("_multilabel")
    known = [row.name for row in DATASETS.values() if row.family is Family.OBJDET]
    if plain not in DATASETS:
        raise SourceError(f"no dataset {name!r}{nearest(plain, known)}")
    dataset = DATASETS[plain]
    if dataset.family is not Family.OBJDET:
        raise SourceError(
            f"{plain} is of the family {dataset.family.value}; questions about marks need one of "
            f"{Family.OBJDET.value}: {', '.join(known)}"
        )
    return dataset


# --- rendered scenes ------------------------------------------------------------------------------


def _scenes(key: str, most: int) -> Iterator[AnnotatedPicture]:
    for shown in islice(shown_scenes(SETS[key]), most):
        yield _scene(shown)


def _scene(shown: Shown) -> AnnotatedPicture:
    scene = shown.scene
    objects = tuple(Object(thing.look.shape, thing.box) for thing in scene.things)

    def read() -> Seen:
        return Seen(scene.pixels, _scene_outlines(shown.seed, len(objects)))

    return AnnotatedPicture(
        f"scenes/{shown.seed}.png", scene.width, scene.height, objects, Labelled.ALL, read
    )


@lru_cache(maxsize=4096)
def _scene_outlines(seed: int, count: int) -> tuple[tuple[Polygon, ...], ...]:
    return outlines(seen_pixels(seed), count)


def outlines(owners: Owners, count: int) -> tuple[tuple[Polygon, ...], ...]:
    """The outer outlines of every object's pixels, as polygons."""
    import cv2

    found = []
    for i in range(count):
        mask = np.asarray(owners == i, dtype=np.uint8)
        parts, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        found.append(tuple(tuple(map(float, part.ravel())) for part in parts if len(part) > 2))
    return tuple(found)


# --- tables ---------------------------------------------------------------------------------------


def _pictures(dataset: Dataset) -> Iterator[AnnotatedPicture]:
    """Every picture once: with the objects of all classes where a table tells of them."""
    folder = image_folder(dataset.images)
    rows = _rows(dataset)
    queries = [query for _, some in rows for query in some]
    bad = unusable(queries, folder.path)
    if bad:
        raise refusal(bad, len(queries), folder)
    done: set[str] = set()
    for labelled, some in rows:
        by_picture: dict[str, list[Query]] = {}
        for query in some:
            by_picture.setdefault(query.images[0], []).append(query)
        for name, about in by_picture.items():
            if name not in done:
                done.add(name)
                yield _picture(folder.path, about, labelled)


def _rows(dataset: Dataset) -> list[tuple[Labelled, list[Query]]]:
    tables = [(Labelled.ASKED, f"FindIt_{dataset.name}_xyxy_json")]
    if dataset.has_multilabel:
        tables.insert(0, (Labelled.ALL, f"FindIt_{dataset.name}_multilabel_xyxy_json"))
    return [(labelled, list(load_task(name).queries.values())) for labelled, name in tables]


def _picture(folder: Path, about: list[Query], labelled: Labelled) -> AnnotatedPicture:
    first = about[0]
    size = smaller((first.width, first.height))
    scale = (size[0] / first.width, size[1] / first.height)
    objects: dict[Object, None] = {}
    for query in about:
        labels = query.truth.labels or (query.label,) * len(query.truth.boxes)
        for label, box in zip(labels, query.truth.boxes, strict=True):
            objects[Object(label, _scaled(box, scale))] = None
    path = folder / first.images[0]

    def read() -> Seen:
        return Seen(_pixels(path, size), ((),) * len(objects))

    return AnnotatedPicture(first.images[0], *size, tuple(objects), labelled, read)


def smaller(size: Size) -> Size:
    """(width, height) with no side longer than :data:`LONGEST_SIDE`.

    >>> smaller((1280, 3)), smaller((500, 375))
    ((640, 2), (500, 375))
    """
    factor = min(1.0, LONGEST_SIDE / max(size))
    return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))


def _scaled(box: Corners, scale: tuple[float, float]) -> Corners:
    x1, y1, x2, y2 = box
    return x1 * scale[0], y1 * scale[1], x2 * scale[0], y2 * scale[1]


def _pixels(path: Path, size: Size) -> Pixels:
    from PIL import Image

    picture = decode(path)
    if picture.size != size:
        picture = picture.resize(size, Image.Resampling.BICUBIC)
    return np.asarray(picture)
