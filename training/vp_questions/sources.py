"""What questions are made of: the demonstration's photographs, and rendered scenes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np

from training.scene_tables import SETS, Shown, shown_scenes
from training.vp_questions.annotated import AnnotatedPicture, Labelled, Object, Pixels, Seen
from training.vp_questions.plan import NEED_OUTLINES
from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.benchmarks.findit.datasets import DATASETS, Dataset
from vlmeval_findit.benchmarks.findit.query import Query
from vlmeval_findit.boxes.representation import Corners
from vlmeval_findit.core.image_files import Size, decode
from vlmeval_findit.core.places import image_folder
from vlmeval_findit.data.rendered.marked_tables import shrunk
from vlmeval_findit.data.rendered.scene import Owners, scene_and_owners
from vlmeval_findit.marks.region import Polygon
from vlmeval_findit.marks.style import Shape


@dataclass(frozen=True, slots=True)
class Source:
    """Annotated pictures, and the shapes that can be drawn on them."""

    name: str
    pictures: tuple[AnnotatedPicture, ...]
    shapes: tuple[Shape, ...]


def source_of(name: str, most: int) -> Source:
    """The pictures of rendered scenes, so many will do, or of the demonstration."""
    if name in SETS:
        return Source(name, tuple(_scenes(name, most)), tuple(Shape))
    from_boxes = tuple(shape for shape in Shape if shape not in NEED_OUTLINES)
    return Source(name, tuple(_pictures(DATASETS[name])), from_boxes)


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
    return outlines(scene_and_owners(seed)[1], count)


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
    done: set[str] = set()
    for labelled, some in _rows(dataset):
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
    size = shrunk((first.width, first.height))
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


def _scaled(box: Corners, scale: tuple[float, float]) -> Corners:
    x1, y1, x2, y2 = box
    return x1 * scale[0], y1 * scale[1], x2 * scale[0], y2 * scale[1]


def _pixels(path: Path, size: Size) -> Pixels:
    from PIL import Image

    picture = decode(path)
    if picture.size != size:
        picture = picture.resize(size, Image.Resampling.BICUBIC)
    return np.asarray(picture)
