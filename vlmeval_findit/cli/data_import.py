"""``run_findit.py data import``: a custom dataset, or a published set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import fill
from typing import Any

import click

from ..benchmarks.findit import Family, parse
from ..core import agreeing, as_called, first_few, flag_name, not_there, suggestion
from ..data import (
    ANNOTATION_FORMATS,
    SOURCES,
    AnnotationError,
    ClassRules,
    Counts,
    DataSource,
    ExifPixels,
    ImportChoices,
    ImportedDataset,
    ImportOptions,
    Layout,
    ReaderOptions,
    Units,
    import_samples,
    known_encoding,
    published_sets,
    read_layout,
    read_renames,
    recognise,
    run_import,
)
from .command_base import PATH, Command, box_option, completion, option, say, switch
from .printing import print_folded
from .progress import CountProgress

_HELP = [
    *((each.files, each.means) for each in ANNOTATION_FORMATS),
    ("DIR --set NAME", "a published set, checked against what is known of it (--sets lists them)"),
]

_OF_FORMATS = tuple(dict.fromkeys(flag for each in ANNOTATION_FORMATS for flag in each.flags))
_OF_SETS = ("only", "partial")
# Flags of formats that published sets take, too: what is asked of their numbers
_OF_NUMBERS = ("units", "box")

units_option = click.option(
    "--units",
    type=click.Choice([units.value for units in Units]),
    callback=lambda _, __, value: value and Units(value),
    help="What the numbers of boxes count (else pixels, and of YOLO fractions).",
)


def _known_encoding(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    name = known_encoding(value)
    if name is None:
        raise click.BadParameter(
            f"no encoding is called {value!r}. Usual ones are utf-16, cp1252, cp1251, gb18030, "
            "big5, shift_jis and euc_kr."
        )
    return name


exif_option = click.option(
    "--exif",
    type=click.Choice([pixels.value for pixels in ExifPixels]),
    callback=lambda _, __, value: value and ExifPixels(value),
    help="Where EXIF rotates an image, boxes refer to its pixels as they are stored, or turned.",
)


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py data import coco.json --image-root DIR --name MyData  # yours",
        "python run_findit.py data import DIR --set COCO_val2017  # yours",
    ],
    sections={"What is read": lambda: _HELP},
)
@click.argument("path", type=PATH, required=False, metavar="FILE|DIR")
@option("--set", "NAME", "A published set in DIR.", shell_complete=completion(published_sets))
@switch("--sets", "List the published sets, with their licences.")
@option("--name", "NAME", "The dataset is FindIt_NAME (of a set: its name).")
@option(
    "--image-root",
    "DIR",
    "Folder of the images (else: that of the file, or one beside it).",
    type=PATH,
)
@units_option
@box_option
@option("--frames", "N", "Thin the videos of JSON lines to N frames.", type=click.IntRange(min=1))
@option("--split", "NAME", "Which split is read (val, of several).")
@option("--only", "NAMES", "Subsets of a set, separated by commas: Aquarium,Raccoon.")
@switch("--partial", "Import a set that differs from the published set.")
@exif_option
@option("--ignore-class", "NAME", "No answer in boxes of this class is an error.", multiple=True)
@option("--drop-class", "NAME", "Leave out the boxes of this class.", multiple=True)
@option(
    "--rename-class",
    "OLD=NEW",
    "Ask for a class by another name; @FILE has a pair OLD,NEW a line.",
    multiple=True,
)
@option("--voc-from", "0|1", "Number of the first pixel in VOC.", type=click.IntRange(0, 1))
@option(
    "--encoding",
    "NAME",
    "What texts are in that do not say it themselves (else UTF-8): cp1252, gb18030.",
    callback=_known_encoding,
)
@switch("--no-masks", "Read the boxes of COCO only: masks judge points.")
@switch("--all-classes", "Ask each image about every class, there or not, as ODinW's papers do.")
@switch("--clip-boxes", "Cut boxes off at the border of their image.")
@switch("--leave-out-bad-boxes", "Leave out boxes without an area, or outside their image.")
@switch("--skip-unreadable-images", "Leave out images that are missing or damaged.")
@switch("--replace", "Replace your dataset of that name.")
def command(**flags: Any) -> int:
    """Make a dataset of your annotations, or of a published set."""
    if flags["sets"]:
        for row in published_sets().values():
            _print_set(row)
        say("\ndata import DIR --set NAME\nLicences are as published; the owners' pages decide.")
        return 0
    path = flags["path"]
    name = flags["name"]
    replace = flags["replace"]
    exif = flags["exif"]
    if path is None:
        raise AnnotationError("FILE or DIR is missing. Type: run_findit.py data import --help")
    if flags["set"]:
        of_formats = [flag for flag in _OF_FORMATS if flag not in _OF_NUMBERS]
        _refuse(flags, (*of_formats, "image_root"), f"a published set (--set {flags['set']})")
        only = flags["only"].split(",") if flags["only"] else None
        options = ImportOptions(
            path, name, only, flags["partial"], replace, exif, flags["units"], flags["box"]
        )
        return make_set(flags["set"], options)
    layout = recognise(path, flags["split"], flags["encoding"])
    form = layout.format
    _refuse(flags, _OF_SETS, f"{form.name}, but for published sets (--set)")
    taken = {*form.flags, "split"} if layout.split_is_chosen else {*form.flags}
    _refuse(flags, [flag for flag in _OF_FORMATS if flag not in taken], form.name)
    if name is None:
        raise AnnotationError("name the dataset: --name NAME (its names begin with FindIt_NAME)")
    folder = flags["image_root"] or layout.images
    if not folder.is_dir():
        raise AnnotationError(
            f"{folder}: the folder {not_there(folder, '.')} Name that of the images: "
            "--image-root DIR"
        )
    if layout.path != path or path.is_dir():
        print_folded(f"{path} is read as {layout.seen}")
    with CountProgress() as progress:
        reading = _reader_options(flags, layout, progress)
        samples = read_layout(layout, reading, flags["image_root"])
        choices = ImportChoices(
            replace=replace,
            exif=exif,
            clip_boxes=flags["clip_boxes"],
            leave_out_bad_boxes=flags["leave_out_bad_boxes"],
            skip_unreadable_images=flags["skip_unreadable_images"],
            progress=progress.count,
        )
        dataset = import_samples(name, samples, choices)
    _print_dataset(dataset, set())
    _print_next(dataset)
    return 0


def _reader_options(
    flags: Mapping[str, Any], layout: Layout, progress: CountProgress
) -> ReaderOptions:
    classes = ClassRules(
        ignore=flags["ignore_class"],
        drop=flags["drop_class"],
        rename=read_renames(flags["rename_class"], flags["encoding"]),
    )
    return ReaderOptions(
        units=flags["units"],
        form=flags["box"],
        split=None if layout.split_is_chosen else flags["split"],
        frames=flags["frames"],
        encoding=flags["encoding"],
        first_pixel=flags["voc_from"],
        classes=classes,
        all_classes=flags["all_classes"],
        masks=not flags["no_masks"],
        progress=progress.count,
    )


def _refuse(flags: Mapping[str, Any], names: Iterable[str], of: str) -> None:
    for name in names:
        if flags[name] not in (None, False, ()):
            raise AnnotationError(f"{flag_name(name)} is not for {of}. Leave it out")


# --- published sets -------------------------------------------------------------------------------


def _print_set(row: DataSource) -> None:
    counts = str(row.counts)
    if row.parts:
        images = sum(part.images or 0 for part in row.parts.values())
        queries = sum(part.queries or 0 for part in row.parts.values())
        counts = str(Counts(images=images or None, queries=queries or None))
    datasets = f"{row.datasets} datasets" if row.datasets > 1 else ""
    plugin = SOURCES.plugin_of(row.name)
    say(row.name)
    for line in (
        f"added by {plugin}" if plugin else "",
        row.title,
        ", ".join(filter(None, (datasets, counts))) or "counts not established",
        f"licence: {row.licence}",
        f"published at {row.address}",
        f"DIR holds {row.holds}",
    ):
        if line:
            say(fill(line, 80, initial_indent="    ", subsequent_indent="      "))


def make_set(name: str, options: ImportOptions) -> int:
    """Make the datasets of a published set; 1 if some could not be made, 2 if none could."""
    sets = published_sets()
    if name not in sets:
        raise AnnotationError(f"unknown published set {name!r}{suggestion(name, sets)}")
    row = sets[name]
    say(f"{row.title}\nlicence: {row.licence}\npublished at {row.address}")
    made: list[ImportedDataset] = []
    printed: set[str] = set()  # What is said of each part of a set is printed once
    refused = []
    for dataset, result in run_import(row, options):
        if isinstance(result, AnnotationError):
            refused.append(dataset)
            say(f"{dataset}: {result}")
            continue
        made.append(result)
        _print_dataset(result, printed)
    if made:
        _print_next(made[0])
    if refused:
        total = len(made) + len(refused)
        say(f"{len(refused)} of {total} could not be made: {', '.join(refused)}")
    return 0 if not refused else 1 if made else 2


def _print_dataset(built: ImportedDataset, printed: set[str]) -> None:
    row = built.row
    for line in built.ledger.lines():
        if line not in printed or line.startswith("read:"):
            print_folded(line)
        printed.add(line)
    frames = f"; {row.frames} frames" if row.frames > 1 else ""
    captions = "; with captions" if row.captions else ""
    print_folded(f"{built.name}: {Family(row.family).target}{frames}{captions}")
    for table in built.tables:
        without = f"  ({table.without_box} without an object)" if table.without_box else ""
        without += f"  ({table.ignored} more ignored)" if table.ignored else ""
        queries = agreeing(table.queries, "query  ", "queries")
        boxes = agreeing(table.boxes, "box", "boxes")
        say(f"  {table.path.stem:<20}{table.queries:>7} {queries}{table.boxes:>9} {boxes}{without}")
    for kind, values in built.tags.items():
        print_folded(f"  tag {kind}: {first_few(values, 8)}")
    tables = f"Tables: {built.tables[0].path.parent}"
    if tables not in printed:
        say(tables)
    printed.add(tables)
    say(f"Images: {row.folder}")


def _print_next(built: ImportedDataset) -> None:
    name = parse(f"FindIt_{built.name}_xyxy_json").name
    run_it = f"python run_findit.py run --data {name} --model MODEL"
    say(as_called(f"Run it (MODEL: python run_findit.py models):\n  {run_it}"))
