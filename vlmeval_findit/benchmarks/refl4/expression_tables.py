"""Ref-L4's names, and its tables ``RefL4Full_<val|test|all>.tsv`` (``all``: val, then test).

``FindIt_RefL4Full_<val|test|all>_<variant>`` has FindIt's grammar for one box; an expression has
the same index in every table.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from ...boxes import Truth
from ...core import suggestion
from ...protocol import LoadedDataset
from ...storage import (
    UNLIKE_PUBLISHED,
    CellError,
    TableError,
    describe_sources,
    find_table,
    table_files,
)
from ..findit import (
    Dataset,
    Family,
    FindItQuery,
    FindItVariant,
    NameParts,
    PreparedTable,
    VariantError,
    parse_format,
    write_rows,
)
from . import PREFIX
from .refl4_annotations import (
    Annotation,
    RefL4Split,
    RefusedError,
    file_name,
    read_annotations,
    unlike_release,
)

IMAGES = "RefL4"  # Image folder: FindIt's subset of Ref-L4 shares it, with the same names
BEGIN = "RefL4Full_"  # Of dataset names, before a split


def table_name(split: RefL4Split) -> str:
    """Name the annotation table of a split."""
    return f"{BEGIN}{split.value}"


# The tables as FindIt datasets
DATASETS = {
    name: Dataset(name, Family.REFEXP, images=IMAGES, has_points=False)
    for name in map(table_name, RefL4Split)
}


@dataclass(frozen=True, slots=True)
class RefL4Variant(FindItVariant):
    """An answer format for a split."""

    @property
    def data(self) -> Dataset:
        return DATASETS[self.dataset]


def parse(name: str) -> RefL4Variant:
    """Parse a name, or raise a VariantError with the invalid part and the nearest valid part.

    >>> parse("FindIt_RefL4Full_val_xyxy_json_bbox_2d").board_dataset
    'RefL4Full_val'
    """
    parts = NameParts(name.removeprefix(PREFIX))
    splits = [split.value for split in RefL4Split]
    split = parts.take(splits)
    if split is None:
        raise VariantError(f"{name}: {parts.wrong('split', splits, ', '.join(splits))}")
    dataset = DATASETS[table_name(RefL4Split(split))]
    if name.endswith("_") and parts.text:
        raise VariantError(f"{name}: a name does not end in '_'")
    variant, why = parse_format(parts.text, dataset, RefL4Variant)
    if not isinstance(variant, RefL4Variant):
        raise VariantError(f"{name}: {why}")
    return variant


def split_of(table: str) -> RefL4Split:
    """Return a table's split, or raise a TableError with the nearest table.

    >>> split_of("RefL4Full_test")
    <RefL4Split.TEST: 'test'>
    """
    if table not in DATASETS:
        raise TableError(f"unknown dataset {table!r}{suggestion(table, DATASETS)}")
    return RefL4Split(table.rpartition("_")[2])


def how_to_make(name: str) -> str:
    """Return the command that makes a table."""
    return f"python run_findit.py data get {name} [--from DIR]"


@dataclass(frozen=True, slots=True)
class Expression(FindItQuery):
    """A query and its annotation."""

    annotation: Annotation = field(kw_only=True)


LoadedRefL4 = LoadedDataset[RefL4Variant, Expression]


def _expression(annotation: Annotation) -> Expression:
    if not isinstance(annotation.index, int):
        raise CellError("index", f"{annotation.index!r} is not a whole number")
    for column in ("caption", "file_name", "width", "height", "ori_category_id"):
        if str(getattr(annotation, column)).strip() in ("", "0"):
            raise CellError(column, "is missing")
    return Expression(
        index=annotation.index,
        label=annotation.caption,
        width=annotation.width,
        height=annotation.height,
        images=(annotation.file_name,),
        truth=Truth((annotation.corners,), (0,)),
        annotation=annotation,
    )


def read_table(path: Path) -> list[Expression]:
    """Read a table's rows; see :func:`.table_files.read_table`."""
    return table_files.read_table(path, Annotation, how_to_make(path.stem), _expression)


def load_dataset(name: str) -> LoadedRefL4:
    """Load a dataset by the name of a variant.

    Raises:
        VariantError: the name is not valid.
        FileNotFoundError: there is no table.
        TableError: the table cannot be read.
    """
    variant = parse(name)
    table = find_table(variant.table, how_to_make(variant.dataset))
    return LoadedDataset(name, variant, table, {row.index: row for row in read_table(table)})


def prepare(folder: Path, split: RefL4Split, out: Path, force: bool = False) -> PreparedTable:
    """Write a split's table of the authors' files, noting how they differ from the release.

    Raises:
        FileNotFoundError: a file is missing.
        RefusedError: a file cannot be used or, unless by ``force``, is not as published.
    """
    annotations = read_annotations(folder, split)
    facts = describe_sources([folder / file_name(part) for part in split.parts])
    source = facts["source"]
    unlike = unlike_release(annotations, split)
    if unlike and not force:
        why = (
            f"{'; '.join(unlike)}. Scores on other annotations are not Ref-L4 scores; "
            "to make tables all the same: --force"
        )
        raise RefusedError("unlike_release", source, why)
    expressions = []
    for annotation in annotations:
        try:
            expressions.append(_expression(annotation))
        except CellError as error:
            where = f"{source}, id {annotation.index!r}, {error.column}"
            raise RefusedError("bad_annotation", where, str(error)) from None
    path = out / f"{table_name(split)}.tsv"
    if unlike:
        facts[UNLIKE_PUBLISHED] = "; ".join(unlike)
    result = write_rows(path, Annotation, annotations, expressions, facts)
    note = f"not the authors' annotations: {'; '.join(unlike)}"
    return replace(result, notes=(note, *result.notes)) if unlike else result
