"""Formats and variants of the grid from lists of axis values.

Axes that do not apply are ignored.  Text has no key, structure or grammar, so "text and JSON, key
``bbox_2d``" is a text and a JSON cell per representation, as in the paper's format search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from ...boxes import (
    DEFAULT_KEY,
    DEFAULT_STRUCTURE,
    JSON_KEYS,
    OUTPUTS,
    PAPER_REPRESENTATIONS,
    REPRESENTATIONS,
    STRUCTURES,
    default_key,
)
from ...core import MisplacedError, refuse_duplicates, suggestion
from .findit_datasets import DATASETS, Dataset
from .variant import CENTRES, DECODINGS, MARKS, FindItVariant, format_problem


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The answer format that a prompt asks for."""

    representation: str
    output: str
    key: str = DEFAULT_KEY
    structure: str = DEFAULT_STRUCTURE
    centre: str | None = None
    mark: str | None = None
    decoding: str | None = None


AXIS_NONE = "none"  # In files: no centre experiment, no mark, free decoding
STAGE_WINNER = "winner"  # In stages: the previous stage's best format


@dataclass(frozen=True, slots=True)
class AnnotationTable:
    """An annotation table: a dataset, or its multi-label queries."""

    dataset: str
    multilabel: bool = False
    variant_class: type[FindItVariant] = FindItVariant

    @property
    def name(self) -> str:
        return self.data.table_name(self.multilabel)

    @property
    def data(self) -> Dataset:
        return self.variant_class(self.dataset, "xyxy", "json").data


def all_tables() -> dict[str, AnnotationTable]:
    """Map names to all FindIt tables, custom ones included."""
    tables: dict[str, AnnotationTable] = {}
    for row in DATASETS.values():
        tables[row.table_name(multilabel=False)] = AnnotationTable(row.name)
        if row.has_multilabel:
            tables[row.table_name(multilabel=True)] = AnnotationTable(row.name, multilabel=True)
    return tables


def release_tables() -> tuple[AnnotationTable, ...]:
    """List the release's tables (``datasets: all``)."""
    tables = all_tables().values()
    return tuple(table for table in tables if table.data.subset_for(table.multilabel) is not None)


@dataclass(frozen=True, slots=True)
class FormatAxes:
    """Values of each axis of a format."""

    representations: tuple[str, ...] = PAPER_REPRESENTATIONS  # Or (STAGE_WINNER,)
    outputs: tuple[str, ...] = OUTPUTS
    keys: tuple[str, ...] = (DEFAULT_KEY,)  # The default: bbox for boxes, point for points
    structures: tuple[str, ...] = (DEFAULT_STRUCTURE,)
    centres: tuple[str, ...] = (AXIS_NONE,)
    marks: tuple[str, ...] = (AXIS_NONE,)
    decodings: tuple[str, ...] = (AXIS_NONE,)

    @property
    def has_winner(self) -> bool:
        return any(STAGE_WINNER in getattr(self, axis) for axis in AXIS_VALUES)

    def after_some(self, first: FormatAxes) -> FormatAxes:
        """Replace ``winner`` by an arbitrary format with the match rule of ``first``."""
        name = first.representations[0]
        name = "xyxy" if name in PAPER_REPRESENTATIONS else name
        return self.after(AnswerFormat(name, "json", default_key(name)))

    def after(self, winner: AnswerFormat | FindItVariant | None) -> FormatAxes:
        """Replace ``winner`` by the values of a format or cell, or raise ValueError if None."""
        axes = [axis for axis in AXIS_VALUES if STAGE_WINNER in getattr(self, axis)]
        if axes and winner is None:
            raise ValueError(f"{axes[0]}: {STAGE_WINNER} needs an earlier stage")
        values: dict[str, Any] = {axis: (_value(winner, axis) or AXIS_NONE,) for axis in axes}
        return replace(self, **values)


# The values that ``all`` means, by axis
AXIS_VALUES: dict[str, tuple[str, ...]] = {
    "representations": PAPER_REPRESENTATIONS,
    "outputs": OUTPUTS,
    "keys": JSON_KEYS,
    "structures": STRUCTURES,
    "centres": (AXIS_NONE, *CENTRES),
    "marks": (AXIS_NONE, *MARKS),
    "decodings": (AXIS_NONE, *DECODINGS),
}


def _value(fmt: AnswerFormat | FindItVariant | None, axis: str) -> str | None:
    """Return the value of a format or cell on an axis."""
    value: str | None = getattr(fmt, axis.removesuffix("s"))
    return value


def axis_from(axis: str, value: Sequence[str], *, may_win: bool) -> tuple[str, ...]:
    """Read an axis's values, ``all`` or ``winner``, or raise MisplacedError."""
    if value == "all":
        return AXIS_VALUES[axis]
    if tuple(value) == (STAGE_WINNER,):
        if not may_win:
            why = f"{STAGE_WINNER} is the best format of the stage before: there is none"
            raise MisplacedError(why, axis)
        return (STAGE_WINNER,)
    for at, word in enumerate(value):
        known: Collection[str] = AXIS_VALUES[axis]
        if axis == "representations" and word not in known:
            known = REPRESENTATIONS  # Also those that ``all`` leaves out
        if word not in known:
            what = axis.removesuffix("s")
            raise MisplacedError(f"unknown {what} {word!r}{suggestion(word, known)}", axis, at)
    refuse_duplicates(value, axis)
    return tuple(value)


def axes_of(cells: Sequence[FindItVariant]) -> dict[str, set[Any]]:
    """Collect the cells' values on every axis, and their frames and captions."""
    result: dict[str, set[Any]] = {
        axis: {_value(cell, axis) or AXIS_NONE for cell in cells} for axis in AXIS_VALUES
    }
    # Text has no key and `decomposed` has fixed keys, so their default key was not chosen.
    with_key = [cell for cell in cells if cell.output == "json" and cell.structure != "decomposed"]
    result["keys"] = {cell.key for cell in with_key}
    result["frames"] = {cell.frames for cell in cells}
    result["captions"] = {cell.caption for cell in cells}
    return result


def formats(axes: FormatAxes) -> list[AnswerFormat]:
    """List each format of the axes once, in list order; it need not fit any dataset."""
    result: dict[AnswerFormat, None] = {}
    lists = (getattr(axes, axis) for axis in AXIS_VALUES)
    for representation, output, key, structure, centre, mark, decoding in product(*lists):
        if output == "text":
            key = DEFAULT_KEY
            structure = DEFAULT_STRUCTURE
            decoding = AXIS_NONE
        if structure == "decomposed" or key == DEFAULT_KEY:
            key = default_key(representation)
        fmt = AnswerFormat(
            representation,
            output,
            key,
            structure,
            centre=None if centre == AXIS_NONE else centre,
            mark=None if mark == AXIS_NONE else mark,
            decoding=None if decoding == AXIS_NONE else decoding,
        )
        result[fmt] = None
    return list(result)


@dataclass(frozen=True, slots=True)
class Views:
    """Numbers of frames (empty: as the dataset has) and captions to show."""

    frames: tuple[int, ...] = ()
    captions: tuple[bool, ...] = (False,)


def variants(
    tables: Sequence[AnnotationTable], requested: Iterable[AnswerFormat], views: Views = Views()
) -> list[FindItVariant]:
    """List the valid variants of the tables in the requested formats."""
    requested = list(requested)
    result: dict[FindItVariant, None] = {}
    for table in tables:
        most = table.data.frames
        has_references = table.data.family.has_references
        shown = [n for n in views.frames if n <= most] if views.frames and most > 1 else [most]
        for frames, caption, built in product(shown, views.captions, requested):
            variant = table.variant_class(
                dataset=table.dataset,
                multilabel=table.multilabel,
                caption=caption,
                frames=frames,
                **asdict(built if has_references else replace(built, mark=None)),
            )
            if format_problem(variant) is None:
                result[variant] = None
    return list(result)
