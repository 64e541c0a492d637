"""Checked queries as datasets: their tables, and their rows in the file of one's own datasets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...benchmarks.findit.annotation_tables import Prepared, write_table
from ...benchmarks.findit.names import forget_names
from ...benchmarks.findit.query import Query, thinned
from ...core.files import atomic_write
from ...core.lock import alone
from ...core.places import OwnRow, lmu_data_root, own_datasets_file, own_rows
from ...core.table_files import meta_path
from .asked import AskedQuery, AskedSet, by_label
from .checks import Sizes, check_asked, check_name, check_placed
from .exif import Drawn
from .pictures import checked_pictures, placed


@dataclass(frozen=True, slots=True)
class Built:
    """A dataset that was made, ``FindIt_<name>_…``: its row in the registry, its tables, and the
    values of its tags; what is to be said of its pictures; what was left out on purpose, counted.
    """

    name: str
    row: OwnRow
    tables: tuple[Prepared, ...]
    tags: Mapping[str, Sequence[str]]
    notes: tuple[str, ...]
    left_out: Counter[str]


def build_asked(
    name: str,
    asked: AskedSet,
    images: Path,
    replace: bool,
    drawn: Drawn | None = None,
    origin: Mapping[str, Any] | None = None,
    settle: Callable[[], Path] | None = None,
) -> Built:
    """Check queries and make them a dataset: tables below LMUData, and its row in the registry.

    Args:
        name: what it is to be called in ``FindIt_<name>_…``.
        asked: what was read.
        images: the folder that the image names are relative to; it is used where it lies.
        replace: whether a dataset of one's own of this name may be replaced.
        drawn: on which pictures boxes were drawn, where a viewer turns them.
        origin: what else is known of where they came from, for the ``.meta.json``.
        settle: brings the pictures to where they stay, once all is checked, and gives that folder
            (None: they stay in ``images``).

    Raises:
        AnnotationError: the name cannot be used, or a query, image or box is not as it should be.
            Nothing is written then.
    """
    check_name(name, replace)
    check_asked(asked)
    pictures = checked_pictures(asked, images)
    sizes = {name: picture.size for name, picture in pictures.items()}
    checked, notes = placed(asked, pictures, drawn)
    check_placed(checked, sizes)
    # A kill between here and the end leaves no dataset of the old name over new files.
    _register(name, None)
    folder = settle() if settle else images
    tables = _write(name, asked, checked, sizes, origin or {})
    row = OwnRow(
        folder=str(folder.resolve()),
        family=asked.family.value,
        multilabel=len(tables) > 1,
        captions=bool(checked[0].caption),
        negatives=any(table.without_box for table in tables),
        frames=asked.frames or len(checked[0].images),
    )
    _register(name, row)
    return Built(name, row, tables, _values(checked), notes, asked.left_out)


# --- tables ---------------------------------------------------------------------------------------


def _write(
    name: str,
    asked: AskedSet,
    checked: Sequence[AskedQuery],
    sizes: Sizes,
    origin: Mapping[str, Any],
) -> tuple[Prepared, ...]:
    """The tables of a dataset; those that one of its name had and this has not are deleted."""
    single = [query for query in checked if isinstance(query.label, str)]
    multi = [query for query in checked if not isinstance(query.label, str)]
    # A dataset always has a table of single labels.
    single = single or [one for query in multi for one in by_label(query)]
    frames = asked.frames or len(checked[0].images)
    out = lmu_data_root()
    origin = {"source": asked.source.name, "imported as": name, **origin}
    queries = {name: [*_queries(single, sizes, frames)]}
    if multi:
        queries[f"{name}_multilabel"] = [*_queries(multi, sizes, frames)]
    else:
        table = out / f"{name}_multilabel.tsv"
        table.unlink(missing_ok=True)
        meta_path(table).unlink(missing_ok=True)
    tables = tuple(write_table(out, table, rows, origin) for table, rows in queries.items())
    _write_ids(ids_path(tables[0].path), asked)
    return tables


def _values(queries: Sequence[AskedQuery]) -> Mapping[str, Sequence[str]]:
    """The values of every kind of tag."""
    found: dict[str, set[str]] = {}
    for query in queries:
        for kind, value in query.tags.items():
            found.setdefault(kind, set()).add(value)
    return {kind: sorted(values) for kind, values in found.items()}


def _queries(asked: Sequence[AskedQuery], sizes: Sizes, frames: int) -> Iterator[Query]:
    for index, query in enumerate(asked):
        width, height = sizes[query.images[0]]
        made = Query(
            index,
            ", ".join(query.labels),
            width,
            height,
            query.images,
            query.truth,
            query.support,
            query.caption,
            tags=query.tags,
        )
        yield thinned(made, frames)


def ids_path(table: Path) -> Path:
    """Where the numbers of the COCO file lie that a table was made from."""
    return table.with_name(f"{table.stem.removesuffix('_multilabel')}.coco.json")


def _write_ids(path: Path, asked: AskedSet) -> None:
    ids = {"images": dict(asked.image_ids), "categories": dict(asked.category_ids)}
    if not any(ids.values()):
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as f:
        json.dump(ids, f)


# --- the registry ---------------------------------------------------------------------------------


def _register(name: str, row: OwnRow | None) -> None:
    """Write the row of a name; None: remove it."""
    path = own_datasets_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path.with_name(f"{path.name}.lock")):
        before = dict(own_rows())
        rows = {known: one for known, one in before.items() if known != name}
        if row is not None:
            rows[name] = row
        if rows != before:
            with atomic_write(path) as f:
                json.dump({name: asdict(row) for name, row in rows.items()}, f, indent=1)
    forget_names()
