"""Remove a dataset that was imported: what the import wrote, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ..benchmarks.findit import custom_rows
from ..core import TextError, file_sha256, read_json, suggestion
from ..storage import (
    PROVENANCE,
    TableError,
    contents_path,
    custom_datasets,
    files_below,
    image_folder,
    lmu_data_root,
    meta_path,
    register_dataset,
    run_of,
    table_facts,
)
from .annotated_samples import AnnotationError
from .custom.coco_ids import ids_path
from .sources import SOURCES
from .unpacked_images import unpacked_by_import, unpacked_folder, unpacked_path


@dataclass(frozen=True, slots=True)
class WrittenByImport:
    """What an import wrote below VLMEvalKit's data folder."""

    name: str  # In ``FindIt_<name>_…``
    files: tuple[Path, ...]  # In the order in which they are deleted
    edited: tuple[Path, ...]  # Tables of these that were changed after the import
    images: Path | None  # The folder of the images; None: not known any more
    unpacked: tuple[Path, ...] = ()  # Images that the import unpacked
    used_by: tuple[str, ...] = ()  # Other datasets whose images these may be: then they stay


def imports_called(name: str) -> list[str]:
    """Return the imported datasets that a name means: itself, or the parts of a published set.

    Raises:
        AnnotationError: nothing was imported under this name.
    """
    if name in custom_datasets() or _facts_say(name, "imported as", name):
        return [name]
    if unpacked_path(name).is_file():  # Its images stayed while another import needed them
        return [name]
    source = SOURCES.get(name)
    parts = [source.dataset(part) for part in source.parts] if source is not None else []
    imported = [part for part in parts if part in custom_datasets()]
    if not imported:
        raise AnnotationError(
            f"nothing was imported under the name {name!r}{suggestion(name, custom_rows())}"
        )
    return imported


def written_by_import(name: str) -> WrittenByImport:
    """Return what the import of a dataset wrote, as far as it is there.

    A table without a ``.meta.json`` was put there by someone else, and is none of it.
    """
    table = lmu_data_root() / f"{name}.tsv"
    multilabel = lmu_data_root() / f"{name}_multilabel.tsv"
    tables = [each for each in (multilabel, table) if meta_path(each).is_file()]
    beside = [ids_path(table), contents_path(table)]
    images = image_folder(name).path if name in custom_datasets() else None
    used_by = _others_in(unpacked_folder(name), name)
    if not used_by:
        beside.append(unpacked_path(name))
    # What says that there was an import goes last: after a kill the same command goes on.
    files = [*tables, *beside, *map(meta_path, tables)]
    return WrittenByImport(
        name,
        tuple(file for file in files if file.is_file()),
        tuple(filter(_is_edited, tables)),
        images,
        tuple(unpacked_by_import(name)),
        used_by,
    )


def _others_in(folder: Path, name: str) -> tuple[str, ...]:
    """Return the other datasets whose images are in a folder, below it, or in one above."""
    within = folder.resolve()
    others = {each: Path(row.folder) for each, row in custom_datasets().items() if each != name}
    return tuple(
        each
        for each, images in others.items()
        if images.is_relative_to(within) or within.is_relative_to(images)
    )


def remove_import(written: WrittenByImport) -> None:
    """Delete what an import wrote, with the images that it unpacked; all others stay."""
    # First of all: a dataset that is known has its tables.
    register_dataset(written.name, None)
    if unpacked_path(written.name) in written.files:
        for image in written.unpacked:
            image.unlink(missing_ok=True)
        _remove_empty(unpacked_folder(written.name))
    for file in written.files:
        file.unlink(missing_ok=True)


def _remove_empty(folder: Path) -> None:
    """Delete a folder and those below it, but for those that have files."""
    below = sorted(path for path in folder.rglob("*") if path.is_dir())
    for place in (*reversed(below), folder):
        with suppress(OSError):
            place.rmdir()


def runs_about(names: Sequence[str], folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the prediction files below some folders that are about imported datasets."""
    single = [f"{name}.tsv" for name in names]
    tables = [*single, *(f"{name}_multilabel.tsv" for name in names)]
    about = dict[Path, None]()
    for path in chain.from_iterable(map(files_below, folders)):
        if path.name.endswith(("_identity.json", PROVENANCE)) and _table_of(path) in tables:
            about[run_of(path).predictions] = None
    yield from sorted(about)


def _table_of(record: Path) -> object:
    """Return the file name of the table that a run's identity or provenance names."""
    try:
        values = read_json(record)
    except (OSError, TextError):
        return None
    table = values.get("table") if isinstance(values, dict) else None
    return table.get("file") if isinstance(table, dict) else table


def _is_edited(table: Path) -> bool:
    facts = table_facts(table)
    return table.is_file() and facts is not None and facts.get("table_sha256") != file_sha256(table)


def _facts_say(table: str, key: str, value: str) -> bool:
    with suppress(TableError):
        facts = table_facts(lmu_data_root() / f"{table}.tsv")
        return facts is not None and facts.get(key) == value
    return False
