"""Tables of questions about marks: shipped as TSV, their images rendered on first use.

The files in ``shipped`` are written by ``training.vp_questions.ship``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...benchmarks.vpbench.question_tables import write_table
from ...benchmarks.vpbench.vp_query import VPQuery
from ...core.files import write_once
from ...core.places import image_folder, lmu_data_root
from ...core.stored_png import png
from ...core.table_files import NESTED, made_of, read_table
from ...marks import style as marks_style
from . import tables
from .drawing import Pixels
from .tables import one_scene, shipped


@dataclass(frozen=True)
class DrawnMark:
    """A mark in an image, in pixels."""

    colour: str
    box: tuple[float, float, float, float]  # x, y, width, height
    outlines: tuple[tuple[float, ...], ...] = ()  # polygons: x1, y1, x2, y2, …
    __pydantic_config__: ClassVar[Any] = NESTED


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedRow(VPQuery):
    """A question with how its image is drawn; ``cluster`` names the scene."""

    style: tuple[str, str, int]  # shape, variant, line width in pixels
    marks: tuple[DrawnMark, ...]


def ensure(table: str) -> None:
    """Make a table and its images, unless they are up to date."""
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
    return tables.recipe_sha256(table, *marks)


def _drawn(row: MarkedRow) -> Pixels:
    # Imported here: an up-to-date table needs no OpenCV.
    from ...marks.region import Region
    from ...marks.render import draw_marks
    from ...marks.style import Shape, Style

    shape, variant, width = row.style
    regions = [Region(mark.box, mark.outlines) for mark in row.marks]
    colours = [mark.colour for mark in row.marks]
    style = Style(Shape(shape), variant, width)
    scene = one_scene(int(Path(row.cluster).stem))
    return draw_marks(scene.pixels, regions, style, colours).pixels
