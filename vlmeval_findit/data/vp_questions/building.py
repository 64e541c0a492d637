"""A set of questions as files: pictures below its image folder, and its table in LMUData."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...benchmarks.vpbench.query import VPQuery
from ...benchmarks.vpbench.tables import write_table
from ...core.files import write_once
from ...core.places import image_folder, lmu_data_root
from ...core.stored_png import png
from ...core.table_files import meta_path
from ...marks.style import STYLES, Style
from .asking import Posed
from .making import lettered, options_of, questions
from .plan import Absence
from .sources import Source


@dataclass(frozen=True, slots=True)
class Built:
    """What became of a set: where it lies and its rows; ``wanted`` is how many there should be."""

    table: Path
    images: Path
    queries: tuple[VPQuery, ...]
    wanted: int


def build(
    table: str, source: Source, count: int, seed: int, origin: Mapping[str, Any] | None = None
) -> Built:
    """Ask, draw and write; what was there of this name is replaced.

    Args:
        table: the name, with its prefix.
        source: the pictures.
        count: how many questions are wanted.
        seed: what is chance follows from it.
        origin: more to be known of the table.

    Raises:
        ImageFileError: a picture cannot be read.
    """
    folder, root = image_folder(table).path, lmu_data_root()
    path = root / f"{table}.tsv"
    # First, so that a kill leaves no table beside the pictures of another.
    for stale in (path, meta_path(path)):
        stale.unlink(missing_ok=True)
    asked: list[Posed] = []
    for question in questions(source, count, seed):
        asked.append(question.posed)
        write_once(folder / picture_name(len(asked)), png(question.pixels))
    _forget_pictures_after(len(asked), folder)
    queries = rows(asked, seed, source.name)
    facts = {"source": source.name, "seed": seed, "count": count, **(origin or {})}
    written = write_table(root, table, queries, facts)
    return Built(written.path, folder, tuple(queries), count)


def rows(asked: Sequence[Posed], seed: int, source: str) -> list[VPQuery]:
    """Questions as rows of a table."""
    letters = lettered(asked, seed)
    return [
        VPQuery(
            index=index,
            label=one.question,
            images=(picture_name(index),),
            hint=one.hint,
            question=one.question,
            options=options_of(one, letter),
            answer=letter,
            amount=str(one.amount),
            shapes=(one.slot.style.shape.value,),
            properties=_properties(one.slot.style, one.slot.colour),
            kind=one.slot.kind,
            absent=one.slot.absence is Absence.TRUE,
            source=source,
            cluster=one.picture,
        )
        for index, (one, letter) in enumerate(zip(asked, letters, strict=True), 1)
    ]


def _properties(style: Style, colour: str) -> tuple[str, ...]:
    """Colour, variant and line width, as far as the shape has them."""
    has_width = STYLES[style.shape][style.variant].has_width
    known = (colour, style.variant, f"width {style.width}" if has_width else "")
    return tuple(filter(None, known))


def picture_name(index: int) -> str:
    """The file of a row's picture."""
    return f"{index:05d}.png"


def _forget_pictures_after(last: int, folder: Path) -> None:
    """Remove what a larger set of this name left behind."""
    for path in folder.glob("*.png"):
        if re.fullmatch(r"\d{5}", path.stem) and int(path.stem) > last:
            path.unlink()


# --- what to say of a set -------------------------------------------------------------------------


def counts(queries: Sequence[VPQuery]) -> dict[str, dict[str, int]]:
    """How many rows there are of every kind, shape and letter, and about an absent mark."""
    columns = {
        "kind": [query.kind.value for query in queries],
        "shape": [shape for query in queries for shape in query.shapes],
        "answer": [query.answer for query in queries],
        "marks": [query.amount for query in queries],
        "absent mark": ["yes" if query.absent else "no" for query in queries],
    }
    return {name: dict(sorted(Counter(values).items())) for name, values in columns.items()}
