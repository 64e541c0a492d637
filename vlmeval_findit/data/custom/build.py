"""Make a custom dataset of samples: its images, its tables, and its row in the registry."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import itemgetter
from os import listdir
from os.path import split
from pathlib import Path
from typing import Any

from ...benchmarks.findit import FindItQuery, PreparedTable, thinned_query, write_table
from ...core import RARE_COLLECTIONS, FileSet, Lock, new_file_set, suffix_of, write_text_once
from ...storage import (
    CustomDataset,
    contents_path,
    custom_datasets_file,
    make_lmu_data_root,
    meta_path,
    replace_dataset,
)
from ..annotated_samples import AnnotationError, Sample, Samples
from ..import_facts import ALL_CLASSES
from ..ledger import Ledger
from ..unpacked_images import add_unpacked, contents_to_move, unpacked_folder
from .annotation_values import IMAGE_SUFFIXES
from .checks import Sizes, check_frame_sizes, check_name, check_samples, usable_boxes
from .coco_ids import ids_path, write_ids
from .exif_pixels import (
    ExifPixels,
    annotated_sizes,
    checked_images,
    pixels_of_boxes,
    to_stored_pixels,
)
from .number_readings import check_units, distinct_boxes


@dataclass(frozen=True, slots=True)
class ImportedDataset:
    """An imported dataset."""

    name: str  # In ``FindIt_<name>_…``
    row: CustomDataset  # In the registry
    tables: tuple[PreparedTable, ...]
    tags: Mapping[str, Sequence[str]]  # The values of every kind
    ledger: Ledger  # What became of all that was given


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """What the user says of a dataset as a whole."""

    replace: bool = False  # Whether a custom dataset of this name may be replaced
    exif: ExifPixels | None = None  # Which pixels boxes refer to when EXIF turns the image
    leave_out_bad_boxes: bool = False
    clip_boxes: bool = False  # Whether boxes are cut off at the border of their image
    # Whether it is a published set: its sizes are those of stored images
    is_published: bool = False
    skip_unreadable_images: bool = False
    # Told of what was checked, and how many more
    progress: Callable[[str, int], None] = lambda what, count: None


@RARE_COLLECTIONS
def import_samples(
    name: str,
    samples: Samples,
    choices: ImportChoices | None = None,
    origin: Mapping[str, Any] | None = None,
) -> ImportedDataset:
    """Check samples and make a dataset of them: tables below LMUData, and a row in the registry.

    Args:
        name: its name in ``FindIt_<name>_…``.
        samples: what was read.
        choices: what the user says of the dataset as a whole.
        origin: further entries of the ``.meta.json`` of its tables.

    Raises:
        AnnotationError: the name, a query, an image or a box cannot be used.  Nothing is written
            then.
    """
    choices = choices or ImportChoices()
    root = make_lmu_data_root()  # before anything asks what it has
    check_name(name, choices.replace)
    check_samples(samples)
    with (
        _only_import(name),
        new_file_set(custom_datasets_file(), root) as files,
    ):
        check_name(name, choices.replace)  # another may have been imported meanwhile
        unpacked = _unpack_images(name, samples, files)
        samples, images = checked_images(
            samples, unpacked.now, choices.skip_unreadable_images, choices.progress
        )
        if isinstance(samples.images, Path):
            _account_for_others(samples, samples.images)
        sizes = {name: image.size for name, image in images.items()}
        check_frame_sizes(samples.queries, sizes)
        pixels = pixels_of_boxes(samples, images, choices.exif, choices.is_published)
        distinct = distinct_boxes(samples.queries)
        check_units(samples, annotated_sizes(images, pixels), distinct)
        converted = to_stored_pixels(samples, images, choices.exif, choices.is_published)
        is_converted = converted.queries is not samples.queries
        checked = usable_boxes(
            converted.queries,
            sizes,
            choices.leave_out_bad_boxes,
            samples.ledger,
            clip=choices.clip_boxes,
            boxless=samples.boxless,
            distinct=None if is_converted else distinct,
        )
        if not checked:
            raise AnnotationError(f"{samples.source}: no query has boxes that can be used")
        frames = samples.frames or len(checked[0].images)
        tables = _write(files.folder, name, samples, checked, sizes, frames, origin or {})
        write_ids(tables[0].path, samples, converted.turned)
        contents = {name: image.content for name, image in images.items()}
        write_text_once(contents_path(tables[0].path), json.dumps(contents))
        _delete_others(name, files)
        row = CustomDataset(
            folder=str(unpacked.place.resolve()),
            family=samples.family.value,
            multilabel=len(tables) > 1,
            captions=bool(checked[0].caption),
            negatives=any(table.without_box for table in tables),
            frames=frames,
        )
        replace_dataset(files, name, row)
    tables = [replace(table, path=root / table.path.name) for table in tables]
    return ImportedDataset(name, row, tuple(tables), _values_by_kind(checked), samples.ledger)


def _delete_others(name: str, files: FileSet) -> None:
    """Delete the files of the dataset that is replaced which the new one does not have."""
    single = files.root / f"{name}.tsv"
    multi = files.root / f"{name}_multilabel.tsv"
    for path in (multi, meta_path(multi), ids_path(single)):
        if not (files.folder / path.name).exists():
            files.delete(path)


def _values_by_kind(queries: Sequence[Sample]) -> dict[str, list[str]]:
    """Return the values of every kind of tag."""
    tags: dict[str, set[str]] = {}
    for query in queries:
        for kind, value in query.tags.items():
            tags.setdefault(kind, set()).add(value)
    return {kind: sorted(values) for kind, values in tags.items()}


# --- images ---------------------------------------------------------------------------------------


def _account_for_others(samples: Samples, folder: Path) -> None:
    """Note the images in the folders of those of queries that no query asks about."""
    named = set(samples.sizes)
    for query in samples.queries:
        named.update(query.images, query.support)
    of_places: dict[Path, set[str]] = {}
    for parent, names in groupby(sorted(map(split, named)), itemgetter(0)):
        of_places.setdefault(folder / parent, set()).update(name for _, name in names)
    for place in sorted(of_places):
        others = {*listdir(place)} - of_places[place] if place.is_dir() else ()
        for path in sorted(place / name for name in others):
            if suffix_of(path) in IMAGE_SUFFIXES:
                samples.ledger.not_read("images of these folders without annotations", str(path))


@dataclass(frozen=True, slots=True)
class _ImageFolders:
    """Where the images of an import are, and where they will be."""

    now: Path
    place: Path


@contextmanager
def _only_import(name: str) -> Iterator[None]:
    """Let one process at a time import a name: of two, the other is told, not replaced."""
    lock = unpacked_folder(name).with_name(f".{name}.lock")
    try:
        with Lock(lock, "another import is at work there"):
            yield
    finally:
        with suppress(OSError):  # It holds images
            lock.parent.rmdir()


def _unpack_images(name: str, samples: Samples, files: FileSet) -> _ImageFolders:
    """Return the folders of the images; packed ones are added to the files of the dataset.

    These are unpacked next to their place in LMUData. Other images stay where they are.
    """
    images = samples.images
    if isinstance(images, Path):
        return _ImageFolders(images, images)
    place = unpacked_folder(name)
    now = place.with_name(f".{name}.unpacked")
    files.use(now)
    shutil.rmtree(now, ignore_errors=True)
    images.unpack(now)
    add_unpacked(name, now, contents_to_move(name, now), files)
    return _ImageFolders(now, place)


# --- tables ---------------------------------------------------------------------------------------


def _write(
    out: Path,
    name: str,
    samples: Samples,
    checked: Sequence[Sample],
    sizes: Sizes,
    frames: int,
    origin: Mapping[str, Any],
) -> list[PreparedTable]:
    """Write the tables of a dataset into a folder."""
    single = [query for query in checked if isinstance(query.label, str)]
    multi = [query for query in checked if not isinstance(query.label, str)]
    # A dataset always has a table of single labels.
    single = single or list(chain.from_iterable(query.by_label() for query in multi))
    ledger = samples.ledger.as_json()
    origin = {"source": samples.source.name, "imported as": name, "ledger": ledger, **origin}
    if samples.all_classes:
        origin[ALL_CLASSES] = True
    tables = [write_table(out, name, _queries(single, sizes, frames), origin)]
    if multi:
        queries = _queries(multi, sizes, frames)
        tables.append(write_table(out, f"{name}_multilabel", queries, origin))
    return tables


def _queries(samples: Sequence[Sample], sizes: Sizes, frames: int) -> list[FindItQuery]:
    queries = [
        FindItQuery(
            index,
            sample.label if isinstance(sample.label, str) else ", ".join(sample.label),
            *sizes[sample.images[0]],
            sample.images,
            sample.truth,
            sample.support,
            sample.caption,
            tags=sample.tags,
        )
        for index, sample in enumerate(samples)
    ]
    return [thinned_query(query, frames) for query in queries]
