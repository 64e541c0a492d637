"""Tables of questions about marks: shipped as TSV, their images rendered on first use.

The files in ``shipped`` are written by ``training.vp_questions.ship``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...benchmarks.vpbench.query import VPQuery
from ...benchmarks.vpbench.tables import write_table
from ...core.files import write_once
from ...core.image_files import Size
from ...core.places import image_folder, lmu_data_root
from ...core.stored_png import png
from ...core.table_files import NESTED, made_of, read_table
from ...marks import style as marks_style
from ..demo.photos import PHOTOS, image
from . import tables
from .drawing import Pixels
from .tables import one_scene, shipped

LONGEST_SIDE = 640  # pixels of an image, as in COCO: a larger photograph is shrunk


@dataclass(frozen=True)
class DrawnMark:
    """A mark in an image, in pixels."""

    colour: str
    box: tuple[float, float, float, float]  # x, y, width, height
    outlines: tuple[tuple[float, ...], ...] = ()  # polygons: x1, y1, x2, y2, …
    __pydantic_config__: ClassVar[Any] = NESTED


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedRow(VPQuery):
    """A question with how its image is drawn; ``cluster`` names the scene or photograph."""

    style: tuple[str, str, int]  # shape, variant, line width in pixels
    marks: tuple[DrawnMark, ...]


def ensure(table: str) -> None:
    """Make a table and its images, unless they are up to date.

    Raises:
        FileNotFoundError: a package with a needed photograph is not installed.
    """
    recipe = recipe_sha256(table)
    if made_of(lmu_data_root() / f"{table}.tsv") == recipe:
        return
    rows: list[MarkedRow] = read_table(
        shipped(table), MarkedRow, "pip install --force-reinstall vlmeval-findit"
    )
    folder = image_folder(table).path
    for row in rows:
        write_once(folder / row.images[0], png(_drawn(row)))
    origin = {"source": rows[0].source, "source_sha256": recipe}
    write_table(lmu_data_root(), table, rows, origin)


def recipe_sha256(table: str) -> str:
    """Return a checksum of the questions and of what draws their images."""
    marks = sorted(Path(marks_style.__file__).parent.glob("*.py"))
    return tables.recipe_sha256(table, *marks, PHOTOS)


def shrunk(size: Size) -> Size:
    """Return the (width, height) at which a photograph is marked.

    >>> shrunk((1280, 3)), shrunk((500, 375))
    ((640, 2), (500, 375))
    """
    factor = min(1.0, LONGEST_SIDE / max(size))
    return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))


def _drawn(row: MarkedRow) -> Pixels:
    # Imported here: an up-to-date table needs no OpenCV.
    from ...marks.region import Region
    from ...marks.render import draw_marks
    from ...marks.style import Shape, Style

    shape, variant, width = row.style
    regions = [Region(mark.box, mark.outlines) for mark in row.marks]
    colours = [mark.colour for mark in row.marks]
    style = Style(Shape(shape), variant, width)
    return draw_marks(_unmarked(row.cluster), regions, style, colours).pixels


def _unmarked(name: str) -> Pixels:
    """Return the pixels of ``scenes/<seed>.png`` or ``photos/<name>.png``."""
    from PIL import Image

    path = Path(name)
    if path.parent.name == "scenes":
        return one_scene(int(path.stem)).pixels
    photo = image(name)
    size = shrunk(photo.size)
    return np.asarray(photo.resize(size, Image.Resampling.BICUBIC) if size != photo.size else photo)
