"""``run_findit.py data import``: a custom dataset, or a published set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from ..benchmarks.findit.dataset_names import parse
from ..benchmarks.findit.findit_datasets import Family
from ..core.command import as_called
from ..core.formatting import nearest, some
from ..data.annotated_samples import AnnotationError, Counts, Samples, Units
from ..data.custom.build import ImportedDataset, import_samples
from ..data.custom.stored_pixels import ExifPixels
from ..data.published.importing import ImportOptions, ImportResult, run_import
from ..data.sources import SOURCES, DataSource, published_sets
from .printing import print_folded
from .shared_options import PATH, Command, completion

FORMATS = (
    ("FILE.json", "COCO: instances with boxes"),
    (
        "FILE.jsonl",
        'JSON lines, a query each: {"image": "a.jpg", "expression": "the grey cat", "boxes": '
        "[[1, 2, 30, 40]]}; label, labels, references, images, caption and tags are in "
        "docs/how-to/data.md",
    ),
    (
        "FILE.csv, .tsv",
        "columns image,label,x1,y1,x2,y2 and, if known, width,height; a box each line",
    ),
    ("DIR with labels/", "YOLO, with data.yaml or classes.txt; images in DIR/images"),
    ("DIR with Annotations/", "VOC; images in DIR/JPEGImages"),
    ("DIR --set NAME", "a published set, checked against what is known of it (--sets lists them)"),
)
"""Annotations that are read. Images stay where they are; every image and box is checked."""


class Format(Enum):
    """Format of annotations; the value is its name in messages."""

    COCO = "COCO"
    JSONL = "JSON lines"
    CSV = "CSV"
    YOLO = "YOLO"
    VOC = "VOC"


_BY_SUFFIX = {".json": Format.COCO, ".jsonl": Format.JSONL, ".csv": Format.CSV, ".tsv": Format.CSV}

_BY_FOLDER = {"labels": Format.YOLO, "Annotations": Format.VOC}

_IMAGES = {Format.YOLO: "images", Format.VOC: "JPEGImages"}
"""Folder of images in a folder of annotations; else the folder of the file."""

_FOR = {"units": (Format.CSV, Format.JSONL), "frames": (Format.JSONL,), "split": (Format.YOLO,)}
"""Flags of single formats, by their parameters."""

_OF_SETS = ("only", "partial")

_NOT_OF_SETS = (*_FOR, "image_root")


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py data import instances.json --image-root DIR --name MyData",
        "python run_findit.py data import DIR --set COCO_val2017",
    ],
    sections={"What is read": lambda: FORMATS},
)
@click.argument("path", type=PATH, required=False, metavar="FILE|DIR")
@click.option(
    "--set",
    metavar="NAME",
    shell_complete=completion(published_sets),
    help="A published set in DIR.",
)
@click.option("--sets", is_flag=True, help="List the published sets, with their licences.")
@click.option("--name", metavar="NAME", help="The dataset is FindIt_NAME (of a set: its name).")
@click.option(
    "--image-root", type=PATH, metavar="DIR", help="Folder of the images (else: that of the file)."
)
@click.option(
    "--units",
    type=click.Choice([units.value for units in Units]),
    help="What the numbers of CSV and JSON lines count.",
)
@click.option(
    "--frames",
    type=click.IntRange(min=1),
    metavar="N",
    help="Thin the videos of JSON lines to N frames.",
)
@click.option("--split", metavar="NAME", help="Which split of YOLO is read (val, of several).")
@click.option(
    "--only", metavar="NAMES", help="Subsets of a set, separated by commas: Aquarium,Raccoon."
)
@click.option("--partial", is_flag=True, help="Import a set that differs from the published set.")
@click.option(
    "--exif",
    type=click.Choice([pixels.value for pixels in ExifPixels]),
    help="Where EXIF rotates an image, boxes refer to its pixels as they are stored, or turned.",
)
@click.option("--replace", is_flag=True, help="Replace your dataset of that name.")
def command(**flags: Any) -> int:
    """Make a dataset of your annotations, or of a published set."""
    if flags["sets"]:
        for row in published_sets().values():
            _print_set(row)
        print("\ndata import DIR --set NAME\nLicences are as published; the owners' pages decide.")
        return 0
    path: Path | None = flags["path"]
    if path is None:
        raise AnnotationError("FILE or DIR is missing (data import --help)")
    exif = ExifPixels(flags["exif"]) if flags["exif"] else None
    if flags["set"]:
        _refuse(flags, _NOT_OF_SETS, f"a published set (--set {flags['set']})")
        only = flags["only"].split(",") if flags["only"] else None
        options = ImportOptions(path, flags["name"], only, flags["partial"], flags["replace"], exif)
        return make_set(flags["set"], options)
    source = _format(path)
    _refuse(flags, _OF_SETS, f"{source.value}: it is for published sets (--set)")
    others = [name for name, formats in _FOR.items() if source not in formats]
    _refuse(flags, others, source.value)
    if flags["name"] is None:
        raise AnnotationError("--name NAME is missing")
    default = path / _IMAGES[source] if source in _IMAGES else path.parent
    folder = flags["image_root"] or default
    if not folder.is_dir():
        raise AnnotationError(
            f"{folder}: no such folder; say with --image-root where the images lie"
        )
    samples = _read(path, source, flags, folder)
    _print_dataset(import_samples(flags["name"], samples, flags["replace"], exif))
    return 0


def _read(path: Path, source: Format, flags: Mapping[str, Any], folder: Path) -> Samples:
    from ..data.custom.box_files import read_coco, read_csv, read_voc
    from ..data.custom.jsonl import read_jsonl
    from ..data.custom.yolo import read_yolo

    units = Units(flags["units"]) if flags["units"] else None
    if source is Format.COCO:
        return read_coco(path, folder)
    if source is Format.JSONL:
        return read_jsonl(path, folder, units, flags["frames"])
    if source is Format.YOLO:
        return read_yolo(path, folder, flags["split"])
    if source is Format.VOC:
        return read_voc(path, folder)
    return read_csv(path, folder, units)


def _refuse(flags: Mapping[str, Any], names: Iterable[str], of: str) -> None:
    for name in names:
        if flags[name] not in (None, False):
            flag = f"--{name.replace('_', '-')}"
            raise AnnotationError(f"{flag} is not for {of}. Leave it out")


def _format(path: Path) -> Format:
    """Return the format of a file or folder.

    Raises:
        AnnotationError: it does not exist, or its format is not clear.
    """
    if path.is_dir():
        existing = [form for name, form in _BY_FOLDER.items() if (path / name).is_dir()]
        if len(existing) == 1:
            return existing[0]
        which = "both of" if existing else "neither of"
        raise AnnotationError(
            f"{path} has {which} labels/ (YOLO) and Annotations/ (VOC): name a file, "
            "or --set NAME for a published set"
        )
    if not path.exists():
        raise AnnotationError(f"{path}: no such file or folder")
    if path.suffix.lower() in _BY_SUFFIX:
        return _BY_SUFFIX[path.suffix.lower()]
    raise AnnotationError(f"{path}: neither .json (COCO), .jsonl, .csv nor .tsv: rename it")


# --- published sets -------------------------------------------------------------------------------


def _print_set(row: DataSource) -> None:
    counts = str(row.counts)
    if row.parts:
        images = sum(part.images or 0 for part in row.parts.values())
        queries = sum(part.queries or 0 for part in row.parts.values())
        counts = str(Counts(images=images or None, queries=queries or None))
    datasets = f"{row.datasets} datasets" if row.datasets > 1 else ""
    plugin = SOURCES.plugin_of(row.name)
    print(row.name)
    for line in (
        f"added by {plugin}" if plugin else "",
        row.title,
        ", ".join(filter(None, (datasets, counts))) or "counts not established",
        f"licence: {row.licence}",
        f"published at {row.address}",
        f"DIR holds {row.holds}",
    ):
        if line:
            print(fill(line, 80, initial_indent="    ", subsequent_indent="      "))


def make_set(name: str, options: ImportOptions) -> int:
    """Make the datasets of a published set.

    Returns:
        The exit status: 1 if some could not be made, 2 if none could.
    """
    sets = published_sets()
    if name not in sets:
        raise AnnotationError(f"no published set {name!r}{nearest(name, sets)}")
    row = sets[name]
    print(f"{row.title}\nlicence: {row.licence}\npublished at {row.address}")
    imported, refused = 0, []
    for result in run_import(row, options):
        if not isinstance(result, ImportResult):
            refused.append(result.dataset)
            print(f"{result.dataset}: {result.why}")
            continue
        imported += 1
        for why in result.differences:
            print(f"{result.dataset.name}: not as published: {why}")
        if count := result.without_query:
            print(f"{result.dataset.name}: images without an object, which make no query: {count}")
        _print_dataset(result.dataset)
    if refused:
        total = imported + len(refused)
        print(f"{len(refused)} of {total} could not be made: {', '.join(refused)}")
    return 0 if not refused else 1 if imported else 2


def _print_dataset(built: ImportedDataset) -> None:
    row = built.row
    for note in built.notes:
        print_folded(note)
    for reason, count in built.left_out.items():
        print_folded(f"left out: {count} {reason}")
    frames, captions = f"; {row.frames} frames" * (row.frames > 1), "; with captions" * row.captions
    print_folded(f"{built.name}: {Family(row.family).target}{frames}{captions}")
    for table in built.tables:
        without = f"  ({table.without_box} without an object)" if table.without_box else ""
        without += f"  ({table.ignored} more ignored)" if table.ignored else ""
        print(f"  {table.path.stem:<20}{table.queries:>7} queries{table.boxes:>9} boxes{without}")
    for kind, values in built.tags.items():
        print_folded(f"  tag {kind}: {some(values, 8)}")
    name = parse(f"FindIt_{built.name}_xyxy_json").name
    print(f"Tables: {built.tables[0].path.parent}\nImages: {row.folder}\nRun it:")
    print(as_called(f"  python run_findit.py --data {name} --model MODEL"))
