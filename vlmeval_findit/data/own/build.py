"""Checked queries as datasets: their tables, and their rows in the file of one's own datasets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...benchmarks.findit.annotation_tables import Prepared, write_table
from ...benchmarks.findit.datasets import Family
from ...benchmarks.findit.names import forget_names
from ...benchmarks.findit.query import Query, thinned
from ...core.files import atomic_write
from ...core.lock import alone
from ...core.places import OwnRow, lmu_data_root, own_datasets_file, own_rows
from ...core.table_files import meta_path
from .annotations import AnnotationError
from .asked import AskedQuery, AskedSet, by_label
from .checks import Sizes, check_asked, check_placed
from .exif import Drawn
from .naming import check_name
from .pictures import checked_pictures, placed


@dataclass(frozen=True, slots=True)
class BuiltSet:
    """One dataset, ``FindIt_<name>_…``: its row in the registry, tables, and values of its tags."""

    name: str
    row: OwnRow
    tables: tuple[Prepared, ...]
    tags: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Built:
    """What became of an import; ``left_out`` counts what was left out on purpose."""

    datasets: tuple[BuiltSet, ...]
    notes: tuple[str, ...]
    left_out: Counter[str]

    @property
    def tables(self) -> tuple[Prepared, ...]:
        return tuple(table for one in self.datasets for table in one.tables)


def build_asked(
    name: str,
    sets: Sequence[AskedSet],
    images: Path,
    replace: bool,
    drawn: Drawn | None = None,
    origin: Mapping[str, Any] | None = None,
    settle: Callable[[], Path] | None = None,
) -> Built:
    """Check queries and make them datasets: tables below LMUData, and their rows in its registry.

    One set is called ``name``.  Of several, each of a family of its own, the detection of labels is
    called so, and the others as those of the demonstration are: ``<name>_refexp`` and so on.

    Args:
        name: what it is to be called in ``FindIt_<name>_…``.
        sets: what was read, a set a family.
        images: the folder that the image names are relative to; it is used where it lies.
        replace: whether datasets of one's own of this name may be replaced.
        drawn: on which pictures boxes were drawn, where a viewer turns them.
        origin: what else is known of where they came from, for the ``.meta.json``.
        settle: brings the pictures to where they stay, once all is checked, and gives that folder
            (None: they stay in ``images``).

    Raises:
        AnnotationError: the name cannot be used, or a query, image or box is not as it should be.
            Nothing is written then.
    """
    named = _named(name, sets)
    for one, asked in named.items():
        check_name(one, replace)
        check_asked(asked)
    pictures = checked_pictures(sets, images)
    sizes = {name: picture.size for name, picture in pictures.items()}
    notes: dict[str, None] = {}
    checked: dict[str, tuple[AskedQuery, ...]] = {}
    for one, asked in named.items():
        checked[one], said = placed(asked, pictures, drawn)
        check_placed(checked[one], sizes)
        notes |= dict.fromkeys(said)
    # A kill between here and the end leaves no dataset of the old name over new files.
    _register(named, ())
    folder = settle() if settle else images
    built = tuple(
        _write(one, named[one], checked[one], sizes, folder, origin or {}) for one in named
    )
    _register(named, built)
    left_out = sum((asked.left_out for asked in sets), Counter[str]())
    return Built(built, tuple(notes), left_out)


_ENDINGS = {
    Family.OBJDET: "",
    Family.OBJDET_VIDEO: "_video",
    Family.REFEXP: "_refexp",
    Family.REFEXP_ALL: "_described",
    Family.INSDET: "_insdet",
    Family.INSDET_VIDEO: "_insdet_video",
}
"""How datasets of several families are told apart."""


def _named(name: str, sets: Sequence[AskedSet]) -> Mapping[str, AskedSet]:
    if len({asked.family for asked in sets}) != len(sets) or not sets:
        raise AnnotationError(f"{name}: {len(sets)} sets, not one or more of a family each")
    if len(sets) == 1:
        return {name: sets[0]}
    return {name + _ENDINGS[asked.family]: asked for asked in sets}


# --- tables ---------------------------------------------------------------------------------------


def _write(
    name: str,
    asked: AskedSet,
    checked: Sequence[AskedQuery],
    sizes: Sizes,
    images: Path,
    origin: Mapping[str, Any],
) -> BuiltSet:
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
    row = OwnRow(
        folder=str(images.resolve()),
        family=asked.family.value,
        multilabel=bool(multi),
        captions=bool(checked[0].caption),
        negatives=any(not query.truth.boxes for rows in queries.values() for query in rows),
        frames=frames,
    )
    return BuiltSet(name, row, tables, _values(checked))


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


def _register(names: Iterable[str], built: Sequence[BuiltSet]) -> None:
    """Let the rows of these names be those of what was built."""
    path = own_datasets_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path.with_name(f"{path.name}.lock")):
        before = dict(own_rows())
        rows = {name: row for name, row in before.items() if name not in names}
        rows |= {one.name: one.row for one in built}
        if rows != before:
            with atomic_write(path) as f:
                json.dump({name: asdict(row) for name, row in rows.items()}, f, indent=1)
    forget_names()
