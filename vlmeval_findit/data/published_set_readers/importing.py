"""Import a published set: read it, compare its counts with the published ones, make datasets."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...benchmarks.findit import custom_rows
from ...core import suggestion
from ...storage import UNLIKE_PUBLISHED
from ..annotated_samples import AnnotationError, BoxForm, Samples, Units
from ..custom.build import ImportChoices, ImportedDataset, import_samples
from ..custom.checks import check_name
from ..custom.exif_pixels import ExifPixels
from ..sources import SOURCES, DataSource, PublishedPart


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What to make of a published set."""

    folder: Path  # Where it lies
    name: str | None = None  # Of the dataset (None: the row's)
    only: Sequence[str] | None = None  # The parts to import (None: all that are there)
    partial: bool = False  # Accept other counts than the published ones
    replace: bool = False  # Replace custom datasets of these names
    exif: ExifPixels | None = None  # Which pixels boxes refer to when EXIF turns the image
    units: Units | None = None  # Of boxes; None: as the set has them
    form: BoxForm | None = None  # Of numbers without names; None: as the set has them


def run_import(
    row: DataSource, options: ImportOptions
) -> Iterator[tuple[str, ImportedDataset | AnnotationError]]:
    """Make the datasets of a set, one after the other: the name of each, and what came of it.

    Raises:
        AnnotationError: the folder does not hold the set, or not all of its parts, or not one that
            is named; or its only part cannot be used.
    """
    for part in _parts(row, options):
        name = row.dataset(part.name, options.name)
        try:
            yield name, _import(row, part, name, options)
        except AnnotationError as error:
            if row.datasets == 1:
                raise
            yield name, error


def _parts(row: DataSource, options: ImportOptions) -> Sequence[PublishedPart]:
    """Return the parts to import."""
    folder = options.folder
    only = options.only
    if only is not None and row.datasets == 1:
        raise AnnotationError(f"--only: {row.name} is one dataset. Leave --only out")
    try:
        parts = {part.name: part for part in row.parts_in(folder)}
    except AnnotationError as error:
        raise AnnotationError(f"{error}; the folder should hold {row.holds}") from None
    if only is None and len(parts) != row.datasets and not options.partial:
        missing = ", ".join(name for name in row.parts if name not in parts)
        raise AnnotationError(
            f"{folder}: {len(parts)} subsets, published are {row.datasets}"
            f"{f' (missing: {missing})' if missing else ''}. To import those that are there: "
            f"{_command(row, replace(options, partial=True))} (or some: --only NAME,NAME)"
        )
    for name in only or ():
        if name not in parts:
            raise AnnotationError(f"{folder}: unknown subset {name!r}{suggestion(name, parts)}")
    return [parts[name] for name in only or parts]


def _command(row: DataSource, options: ImportOptions) -> str:
    """Return the command that imports a set with these options."""
    only = ",".join(options.only) if options.only is not None else None
    values = {
        "--set": row.name,
        "--name": options.name,
        "--only": only,
        "--exif": options.exif and options.exif.value,
        "--units": options.units and options.units.value,
        "--box": options.form and options.form.value,
    }
    typed = ["data", "import", str(options.folder)]
    for flag, value in values.items():
        if value is not None:
            typed += [flag, value]
    if options.partial:
        typed.append("--partial")
    if options.replace:
        typed.append("--replace")
    return shlex.join(typed)


def _import(
    row: DataSource, part: PublishedPart, name: str, options: ImportOptions
) -> ImportedDataset:
    if name in custom_rows() and not options.replace:
        again = _command(row, replace(options, replace=True))
        raise AnnotationError(f"{name} is there already. To make it again: {again}")
    check_name(name, options.replace)
    samples = _read(row, part, options)
    differences = row.differences(part.name, samples)
    if differences and not options.partial:
        raise AnnotationError(
            f"{samples.source}: {'; '.join(differences)}. To import it as it is: --partial "
            "(data get: --force); its .meta.json will list the differences"
        )
    origin = {"set": row.name, "published at": row.address, "licence": row.licence}
    plugin = SOURCES.plugin_of(row.name)
    if plugin:
        origin["plug-in"] = str(plugin)
    if differences:
        origin[UNLIKE_PUBLISHED] = "; ".join(differences)
    for why in differences:
        samples.ledger.note(f"not as published: {why}", str(samples.source))
    choices = ImportChoices(
        options.replace, options.exif, leave_out_bad_boxes=part.bad_boxes, is_published=True
    )
    return import_samples(name, samples, choices, origin)


def _read(row: DataSource, part: PublishedPart, options: ImportOptions) -> Samples:
    """Read a part; what the user says of its numbers is not questioned."""
    if part.options is not None:
        return part.read(replace(part.options, units=options.units, form=options.form))
    if options.form is not None:
        raise AnnotationError(f"--box is not for {row.name}, whose form is known. Leave it out")
    samples = part.read()
    if options.units is None:
        return samples
    return replace(samples, units=options.units, units_stated=True)
