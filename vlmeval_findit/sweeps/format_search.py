"""The search for a model's best format: which sweep it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..benchmarks import (
    begins_with_prefix,
    benchmark_of,
    listed_names,
    refuse_misnamed,
)
from ..benchmarks.findit import (
    AXIS_VALUES,
    STAGE_WINNER,
    AnnotationTable,
    FindItVariant,
    FormatAxes,
    table_called,
)
from ..boxes import JSON_KEYS, MatchRule
from ..core import suggestion
from ..data import parse_dataset, refuse_unmade
from ..models import ModelEntry
from ..protocol import DatasetVariant
from .sweep_cells import Sweep, refuse_race
from .sweep_file import grid_tables

STAGES = (
    FormatAxes(keys=("bbox_2d",)),
    FormatAxes(representations=(STAGE_WINNER,), outputs=("json",), keys=JSON_KEYS),
)
"""The paper's two stages: all representations in both outputs, then all keys of the winner."""


def search_sweep(
    entry: ModelEntry,
    over: AnnotationTable | DatasetVariant,
    limit: int,
    places: tuple[Path, Path],
    marks: Sequence[str] = (),
    race: bool = False,
) -> Sweep:
    """Return the format search of one model; ``places`` are work dir and journal.

    A grid table is asked in stages; ``marks`` add a third, with each mark on the winner's reference
    images. Other benchmarks are asked in all formats at once.

    Raises:
        ValueError: there is only one format, nothing to mark, or nothing to race.
    """
    sweep = Sweep(models=(entry,), limit=limit, work_dir=places[0], journal=places[1], race=race)
    if marks and not (isinstance(over, AnnotationTable) and over.data.family.has_references):
        raise ValueError(f"--marks: {over.name} shows no reference images. Leave --marks out")
    if isinstance(over, AnnotationTable):
        marked = FormatAxes(
            **{**dict.fromkeys(AXIS_VALUES, (STAGE_WINNER,)), "marks": tuple(marks)}
        )
        return replace(sweep, tables=(over,), stages=(*STAGES, marked) if marks else STAGES)
    sweep = replace(sweep, variants=tuple(benchmark_of(over).formats(over)))
    if len(sweep.variants) < 2:
        raise ValueError(
            f"{over.name} has a single format, so there is nothing to search. Run it: "
            f"run_findit.py run --data {over.name} --model {entry.name}"
        )
    refuse_race(sweep)
    return sweep


def search_target(name: str) -> AnnotationTable | DatasetVariant:
    """Return the grid table or the variant that a search names, or raise ValueError."""
    known = grid_tables()
    if not begins_with_prefix(name):
        name = table_called(name)
    if name not in known and not begins_with_prefix(name):
        refuse_misnamed(name)
        refuse_unmade(name, takes_tables=True)
        known_names = [*known, *listed_names()]
        raise ValueError(f"unknown dataset {name!r}{suggestion(name, known_names)}")
    variant = known.get(name) or parse_dataset(name)
    if not isinstance(variant, FindItVariant):
        return variant
    if variant.match_rule is not MatchRule.BOX_OVERLAP:
        raise ValueError(
            f"{name}: a search compares formats of boxes. Formats of points are compared by a "
            "sweep: write `representations: point` in its file"
        )
    return known[variant.table]
