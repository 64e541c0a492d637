"""Samples as a custom dataset: its images, its tables, and its row in the registry."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from filecmp import cmp
from pathlib import Path
from typing import Any

from ...benchmarks.findit.annotation_tables import PreparedTable, write_table
from ...benchmarks.findit.dataset_names import forget_names
from ...benchmarks.findit.findit_query import FindItQuery, thinned
from ...core.files import atomic_write
from ...core.lock import Lock, alone
from ...core.places import OwnRow, lmu_data_root, own_datasets_file, own_rows
from ...core.table_files import meta_path
from ..samples import Sample, Samples
from .checks import Sizes, check_name, check_placed, check_samples
from .images import Drawn, checked_images, placed


@dataclass(frozen=True, slots=True)
class Built:
    """A dataset that was made, ``FindIt_<name>_…``."""

    name: str
    row: OwnRow  # In the registry
    tables: tuple[PreparedTable, ...]
    tags: Mapping[str, Sequence[str]]  # The values of every kind
    notes: tuple[str, ...]  # What is to be said of its images
    left_out: Counter[str]  # On purpose, by the reason


def build(
    name: str,
    samples: Samples,
    replace: bool,
    drawn: Drawn | None = None,
    origin: Mapping[str, Any] | None = None,
) -> Built:
    """Check samples and make them a dataset: tables below LMUData, and its row in the registry.

    Args:
        name: what it is to be called in ``FindIt_<name>_…``.
        samples: what was read.
        replace: whether a custom dataset of this name may be replaced.
        drawn: on which images boxes were drawn, where a viewer turns them.
        origin: what else is known of where they came from, for the ``.meta.json``.

    Raises:
        AnnotationError: the name cannot be used, or a query, image or box is not as it should be.
            Nothing is written then.
    """
    check_name(name, replace)
    check_samples(samples)
    with _unpacked(name, samples) as (now, settle):
        images = checked_images(samples, now)
        sizes = {name: image.size for name, image in images.items()}
        checked, notes = placed(samples, images, drawn)
        check_placed(checked, sizes)
        # A kill between here and the end leaves no dataset of the old name over new files.
        _register(name, None)
        folder = settle()
    tables = _write(name, samples, checked, sizes, origin or {})
    row = OwnRow(
        folder=str(folder.resolve()),
        family=samples.family.value,
        multilabel=len(tables) > 1,
        captions=bool(checked[0].caption),
        negatives=any(table.without_box for table in tables),
        frames=samples.frames or len(checked[0].images),
    )
    _register(name, row)
    tags: dict[str, set[str]] = {}
    for query in checked:
        for kind, value in query.tags.items():
            tags.setdefault(kind, set()).add(value)
    values = {kind: sorted(found) for kind, found in tags.items()}
    return Built(name, row, tables, values, notes, samples.left_out)


# --- images ---------------------------------------------------------------------------------------


@contextmanager
def _unpacked(name: str, samples: Samples) -> Iterator[tuple[Path, Callable[[], Path]]]:
    """Give the folder of the images, and what brings them to where they stay and says where.

    Packed ones are unpacked beside where they will lie in LMUData; what a kill left there is
    removed.  Others stay where they are.
    """
    images = samples.images
    if isinstance(images, Path):
        yield images, lambda: images
        return
    folder = lmu_data_root() / "images" / name
    now = folder.with_name(f".{name}.unpacked")
    with Lock(folder.with_name(f".{name}.lock"), "another import is at work there"):
        shutil.rmtree(now, ignore_errors=True)
        try:
            images.unpack(now)
            yield now, lambda: _move(now, folder)
        finally:
            shutil.rmtree(now, ignore_errors=True)


def _move(now: Path, folder: Path) -> Path:
    """Bring files into a folder; one that is there already is not touched."""
    for path in sorted(path for path in now.rglob("*") if path.is_file()):
        target = folder / path.relative_to(now)
        if not (target.is_file() and cmp(path, target, shallow=False)):
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
    return folder


# --- tables ---------------------------------------------------------------------------------------


def _write(
    name: str,
    samples: Samples,
    checked: Sequence[Sample],
    sizes: Sizes,
    origin: Mapping[str, Any],
) -> tuple[PreparedTable, ...]:
    """The tables of a dataset; those that one of its name had and this has not are deleted."""
    single = [query for query in checked if isinstance(query.label, str)]
    multi = [query for query in checked if not isinstance(query.label, str)]
    # A dataset always has a table of single labels.
    single = single or [one for query in multi for one in query.by_label()]
    frames = samples.frames or len(checked[0].images)
    out = lmu_data_root()
    origin = {"source": samples.source.name, "imported as": name, **origin}
    queries = {name: [*_queries(single, sizes, frames)]}
    if multi:
        queries[f"{name}_multilabel"] = [*_queries(multi, sizes, frames)]
    else:
        table = out / f"{name}_multilabel.tsv"
        table.unlink(missing_ok=True)
        meta_path(table).unlink(missing_ok=True)
    tables = tuple(write_table(out, table, rows, origin) for table, rows in queries.items())
    _write_ids(ids_path(tables[0].path), samples)
    return tables


def _queries(samples: Sequence[Sample], sizes: Sizes, frames: int) -> Iterator[FindItQuery]:
    for index, query in enumerate(samples):
        width, height = sizes[query.images[0]]
        made = FindItQuery(
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


def _write_ids(path: Path, samples: Samples) -> None:
    ids = {"images": dict(samples.image_ids), "categories": dict(samples.category_ids)}
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
