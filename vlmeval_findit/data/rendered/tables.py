"""Tables of rendered scenes: shipped as TSV, their images rendered on first use.

``Scenes`` has 1,000 scenes and 100 clips of the test split, ``Scenes_mini`` 50 and 10 of the
validation split, ``Scenes_train`` 400 and 40 of the train split; all image families ask about the
same scenes.  ``SelfRetrieval_Scenes`` has 500 pairs of scenes of the test split,
``SelfRetrieval_Scenes_mini`` 50 of the validation split.
``VPBench_Scenes`` asks about marks in scenes.  ``training.shipped_tables`` writes what ships.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from ...benchmarks.findit import (
    BENCHMARK_DATASETS,
    FindItQuery,
    PreparedTable,
    read_table,
    write_table,
)
from ...benchmarks.selfretrieval import ImagePair
from ...benchmarks.selfretrieval import write_table as write_pairs
from ...benchmarks.vpbench import VPQuery
from ...benchmarks.vpbench import write_table as write_vp_table
from ...core import sha256_of, write_once
from ...marks import style as marks_style
from ...storage import (
    NESTED_CONFIG,
    image_folder,
    make_lmu_data_root,
    png,
    shipped_table,
    source_checksum,
    stored_png,
)
from ...storage import read_table as read_rows
from . import scene as scenes
from . import scene_drawing as drawing
from .scene import SCENE_SIZES, Stream, clip, compose_scene, paint_all, rng_of, shot
from .scene_drawing import Floats, Look, ObjectPlacement, Pixels, Rng

_REINSTALL = "pip install --force-reinstall vlmeval-findit"


@lru_cache(maxsize=1024)  # Several tables ask about a scene
def _scene(path: str) -> Pixels:
    """Render ``scenes/<seed>.png``."""
    return drawing.as_pixels(compose_scene(int(Path(path).stem)).canvas)


def ensure_scenes(table: str) -> None:
    """Make a table of FindIt's and its images, unless they are up to date."""
    if source_checksum(make_lmu_data_root() / f"{table}.tsv") != recipe_sha256(table):
        prepare_scenes(table)


def prepare_scenes(table: str) -> PreparedTable:
    """Render a table's images and write it, below the LMUData root."""
    root = make_lmu_data_root()
    dataset = BENCHMARK_DATASETS[table.removesuffix("_multilabel")]
    folder = image_folder(dataset.images).path
    queries = read_table(shipped_table(table))
    for query in queries:
        for name, shown in zip(query.images, _shown(query), strict=True):
            write_once(folder / name, png(shown))
        for name in query.support:
            texture, colour, shape = query.label.split()
            look = Look(shape, colour, texture)
            write_once(folder / name, png(drawing.as_pixels(shot(int(Path(name).stem), look)[0])))
    origin = {"source": "rendered", "source_sha256": recipe_sha256(table)}
    return write_table(root, table, queries, origin)


def recipe_sha256(table: str, *more: Path) -> str:
    """Return a checksum of a table and of the code, and ``more`` files, that render its images."""
    modules = (drawing, scenes, stored_png)
    files = (*(Path(str(module.__file__)) for module in modules), *more, shipped_table(table))
    return sha256_of(*(path.read_bytes() for path in files))


def _shown(query: FindItQuery) -> Sequence[Pixels]:
    """Render ``scenes/<seed>.png``, or the frames of ``clips/<seed>``."""
    kind, seed = Path(query.cluster).parts
    if kind == "clips":
        return [drawing.as_pixels(frame.canvas) for frame in clip(int(seed), len(query.images))]
    return [_scene(seed)]


# --- marked scenes -------------------------------------------------------------------------------


@dataclass(frozen=True)
class DrawnMark:
    """A mark in an image, in pixels."""

    colour: str
    box: tuple[float, float, float, float]  # x, y, width, height
    outlines: tuple[tuple[float, ...], ...] = ()  # polygons: x1, y1, x2, y2, …
    __pydantic_config__: ClassVar[Any] = NESTED_CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedRow(VPQuery):
    """A question with how its image is drawn; ``cluster`` names the scene."""

    style: tuple[str, str, int]  # shape, variant, line width in pixels
    marks: tuple[DrawnMark, ...]


def ensure_marked_scenes(table: str) -> None:
    """Make a table and its images, unless they are up to date."""
    recipe = marked_recipe_sha256(table)
    if source_checksum(make_lmu_data_root() / f"{table}.tsv") == recipe:
        return
    rows: list[MarkedRow] = read_rows(shipped_table(table), MarkedRow, _REINSTALL)
    folder = image_folder(table).path
    for row in rows:
        write_once(folder / row.images[0], png(_with_marks(row)))
    origin = {"source": rows[0].source, "source_sha256": recipe}
    write_vp_table(make_lmu_data_root(), table, rows, origin)


def marked_recipe_sha256(table: str) -> str:
    """Return a checksum of the questions and of what draws their images."""
    return recipe_sha256(table, *sorted(Path(marks_style.__file__).parent.glob("*.py")))


def _with_marks(row: MarkedRow) -> Pixels:
    # Imported here: an up-to-date table needs no OpenCV.
    from ...marks import Region, Shape, Style, draw_marks

    shape, variant, width = row.style
    regions = [Region(mark.box, mark.outlines) for mark in row.marks]
    colours = [mark.colour for mark in row.marks]
    style = Style(Shape(shape), variant, width)
    return draw_marks(_scene(row.cluster), regions, style, colours).pixels


# --- pairs of scenes -----------------------------------------------------------------------------

_PAIRS = 1  # names the random numbers of a seed's pair, which are not those of its scene

_ATTRIBUTES = 5  # in which the two images of a pair may differ

# Where an object lies: centre x, y and half its size in pixels; the seed of its tint
Placed = tuple[float, float, float, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow(ImagePair):
    """A pair with how it is rendered; captions say how objects look, in the same order."""

    first: tuple[Placed, Placed]  # the object that differs, in the left and the right image
    others: tuple[Placed, ...]


def ensure_scene_pairs(table: str) -> None:
    """Make a table and its images, unless they are up to date."""
    recipe = recipe_sha256(table)
    if source_checksum(make_lmu_data_root() / f"{table}.tsv") == recipe:
        return
    rows: list[PairRow] = read_rows(shipped_table(table), PairRow, _REINSTALL)
    folder = image_folder(table).path
    for row in rows:
        rng, size = pair_stream(int(row.uid))
        rng.randint(_ATTRIBUTES)
        background = drawing.background(rng, *size)
        for name, caption, first in zip(row.images, row.captions or (), row.first, strict=True):
            write_once(folder / name, png(_pair_pixels(background, caption, (first, *row.others))))
    write_pairs(make_lmu_data_root(), table, rows, {"source": "rendered", "source_sha256": recipe})


def pair_stream(seed: int) -> tuple[Rng, tuple[int, int]]:
    """Return the random numbers of a seed's pair and the (width, height) of its images."""
    rng = rng_of(Stream.SCENE, seed, _PAIRS)
    return rng, SCENE_SIZES[rng.randint(len(SCENE_SIZES))]


def _pair_pixels(background: Floats, caption: str, placed: Sequence[Placed]) -> Pixels:
    canvas = background.copy()
    objects = []
    tints = []
    for words, (x, y, half, tint) in zip(caption.split("; "), placed, strict=True):
        # "a large striped orange triangle at the left"
        texture, colour, shape = words.split()[2:5]
        objects.append((Look(shape, colour, texture), ObjectPlacement(x, y, half)))
        tints.append(drawing.tint_colour(Rng(tint), colour))
    paint_all(canvas, objects, tints, 0.0)
    return drawing.as_pixels(canvas)
