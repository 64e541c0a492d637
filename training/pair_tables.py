"""Writes the tables of rendered pairs that the package ships: python -m training.pair_tables"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from training.pairs import scene_pair
from vlmeval_findit.benchmarks.selfretrieval.image_pairs import PerSide
from vlmeval_findit.core.table_files import meta_path, write_table
from vlmeval_findit.data.rendered.scene import SPLITS
from vlmeval_findit.data.rendered.tables import PairRow, shipped


class Size(NamedTuple):
    """How many pairs a set has, and the split whose first seeds they are of."""

    split: str
    pairs: int


SETS = {
    "SelfRetrieval_Scenes": Size("test", 500),
    "SelfRetrieval_Scenes_mini": Size("validation", 50),
}
"""By the name of the table."""


def ship(table: str, path: Path) -> None:
    """Write a table with how its images are rendered."""
    split, pairs = SETS[table]
    rows = [_row(index, seed) for index, seed in enumerate(SPLITS[split][:pairs])]
    write_table(path, PairRow, rows, {})
    meta_path(path).unlink()


def _row(index: int, seed: int) -> PairRow:
    made = scene_pair(seed)
    return PairRow(
        index,
        f"{seed}",
        (f"{seed}-left.png", f"{seed}-right.png"),
        PerSide(made.left_caption, made.right_caption),
        made.attribute,
        first=made.first,
        others=made.others,
    )


if __name__ == "__main__":
    for name in SETS:
        ship(name, shipped(name))
