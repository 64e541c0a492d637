"""Writes the tables of questions about marks that the package ships.

python -m training.vp_questions.ship
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from training.vp_questions.asking import Shown
from training.vp_questions.building import rows
from training.vp_questions.making import questions
from training.vp_questions.plan import NEED_OUTLINES
from training.vp_questions.sources import source_of
from vlmeval_findit.benchmarks.vpbench.vp_query import VPQuery
from vlmeval_findit.core.table_files import meta_path, write_table
from vlmeval_findit.data.rendered.tables import DrawnMark, MarkedRow, shipped
from vlmeval_findit.marks.region import RLE, Polygon, Region
from vlmeval_findit.marks.style import Shape


class ShippedSet(NamedTuple):
    """What the pictures of a table are of, and how many questions are asked."""

    source: str
    questions: int


SETS: Mapping[str, ShippedSet] = MappingProxyType(
    {
        "VPBench_Scenes": ShippedSet("Scenes", 400),
        "VPBench_Scenes_mini": ShippedSet("Scenes_mini", 48),
    }
)
"""By the names of their tables."""

SEED = 0


def ship(table: str, path: Path) -> None:
    """Write a table with how its pictures are drawn; a question without a picture is left out."""
    source, count = SETS[table]
    shown = list(questions(source_of(source, count), count, SEED))
    queries = rows([one.posed for one in shown], SEED, source)
    marked = [_marked(query, one) for query, one in zip(queries, shown, strict=True)]
    write_table(path, MarkedRow, marked, {})
    meta_path(path).unlink()


def _marked(query: VPQuery, shown: Shown) -> MarkedRow:
    style = shown.posed.slot.style
    marks = tuple(
        DrawnMark(colour, _short(region.box), _outlines(region, style.shape))
        for region, colour in zip(shown.regions, shown.colours, strict=True)
    )
    values = {field.name: getattr(query, field.name) for field in fields(VPQuery)}
    return MarkedRow(**values, style=(style.shape.value, style.variant, style.width), marks=marks)


def _outlines(region: Region, shape: Shape) -> tuple[Polygon, ...]:
    """The outlines of a region, where the shape needs them."""
    if shape not in NEED_OUTLINES or isinstance(region.outlines, RLE):
        return ()
    return tuple(map(_short, region.outlines))


def _short(numbers: Iterable[float]) -> Any:
    """Numbers as a cell has them: whole ones without ".0"."""
    return tuple(int(number) if number == int(number) else number for number in numbers)


if __name__ == "__main__":
    for name in SETS:
        ship(name, shipped(name))
