"""Which tables of VP-Bench there are: the authors', and those that are made when first asked for.

Beside them every table of one's own counts: ``VPBench_<NAME>.tsv`` in a folder of tables.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import NamedTuple

from ...core.places import table_folders
from . import PREFIX

STAGE_1 = f"{PREFIX}Stage1"
"""The authors' questions about one mark or several."""

STAGE_2 = f"{PREFIX}Stage2"
"""The authors' questions about one region, which lie in a table of another kind: :mod:`.stage2`."""

MAKERS = "vlmeval_findit.data"
"""What makes tables lies below it, and is imported by its name when a table is first asked for."""


class KnownTable(NamedTuple):
    """A table with the key of its image folder, and the module of ``data/`` that makes it.

    ``maker`` is relative to :data:`MAKERS`, "" where only the authors' files can: it has a
    function ``ensure`` that is given the table's name.
    """

    name: str
    images: str
    maker: str = ""


TABLES = MappingProxyType(
    {
        row.name: row
        for row in (
            KnownTable(STAGE_1, "VPBench"),
            KnownTable(f"{PREFIX}Demo", "VPBench_Demo", "vp_questions.sets"),
            KnownTable(f"{PREFIX}Scenes", "VPBench_Scenes", "vp_questions.sets"),
            KnownTable(f"{PREFIX}Scenes_mini", "VPBench_Scenes_mini", "vp_questions.sets"),
        )
    }
)
"""By their names."""


def table_of(name: str) -> KnownTable | None:
    """A table by its name; None where there is none.  One's own has an image folder of its name."""
    known = TABLES.get(name)
    if known is None and any((folder / f"{name}.tsv").is_file() for folder in table_folders()):
        return KnownTable(name, images=name)
    return known


def own_tables() -> list[str]:
    """The names of the tables that lie in folders of tables and are none of :data:`TABLES`."""
    found = {
        path.stem for folder in table_folders() for path in sorted(folder.glob(f"{PREFIX}*.tsv"))
    }
    return sorted(found - {*TABLES, STAGE_2})


def how_to_make(table: str) -> str:
    """The command that makes a table."""
    if table == STAGE_1:
        return "python run_findit.py prepare --vp-bench FILE"
    return "python run_findit.py import --vp-questions FROM --name NAME"


def ensure(table: KnownTable) -> None:
    """Have a table that is not the authors' made, unless it is there."""
    if table.maker:
        import_module(f"{MAKERS}.{table.maker}").ensure(table.name)
