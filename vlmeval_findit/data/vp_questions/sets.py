"""Sets of questions that need no download: made when they are first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ...benchmarks.vpbench import PREFIX
from ...core.files import file_sha256, sha256_of
from ...core.places import lmu_data_root
from ...core.table_files import made_of
from ...marks import style
from ..demo.build import ANNOTATIONS
from ..rendered import tables as rendered


class OwnSet(NamedTuple):
    """A set: what its pictures are of, and how many questions are asked."""

    source: str
    questions: int


SETS: Mapping[str, OwnSet] = MappingProxyType(
    {
        f"{PREFIX}Demo": OwnSet("Demo", 64),
        f"{PREFIX}Scenes": OwnSet("Scenes", 400),
        f"{PREFIX}Scenes_mini": OwnSet("Scenes_mini", 48),
    }
)
"""By the names of their tables."""

SEED = 0


def ensure(table: str) -> None:
    """Make a set's table and pictures unless they are there, made by this very code.

    Raises:
        FileNotFoundError: a package whose photographs are shown is not installed.
    """
    if made_of(lmu_data_root() / f"{table}.tsv") != recipe_sha256():
        # Imported here: they draw, and a table that is there needs no OpenCV.
        from .building import build
        from .sources import source_of

        wanted = SETS[table]
        source = source_of(wanted.source, wanted.questions)
        build(table, source, wanted.questions, SEED, {"source_sha256": recipe_sha256()})


def recipe_sha256() -> str:
    """A checksum of what decides what is asked and drawn: code, scenes, annotations."""
    files = sorted(
        path for module in (__file__, style.__file__) for path in Path(module).parent.glob("*.py")
    )
    sums = (rendered.recipe_sha256(), *map(file_sha256, (*files, ANNOTATIONS)))
    return sha256_of("\n".join(sums).encode())
