"""``run_findit.py data import``: a dataset of one's own, or of a published set."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..benchmarks.findit.annotation_tables import Prepared
from ..benchmarks.findit.datasets import Family
from ..benchmarks.findit.names import parse
from ..core.command import as_called
from ..core.spelling import nearest
from ..data.importers.bringing import Brought, Wanted, bring
from ..data.importers.importer import Counts, Importer
from ..data.importers.table import IMPORTERS
from ..data.own.annotations import AnnotationError, Annotations, Units
from ..data.own.asked import AskedSet, asked_of
from ..data.own.build import Built, build_asked
from ..data.own.exif import Drawn
from ..data.own.jsonl import NO, YES
from .options import PATH, Command

FORMATS = """\
--coco FILE
    instances: images, annotations with bbox [x, y, width, height], categories
--yolo DIR
    labels/…/NAME.txt (class cx cy width height, fractions), data.yaml or
    classes.txt; images: DIR/images, unless --image-root says otherwise
--voc DIR
    Annotations/*.xml; images: DIR/JPEGImages, unless --image-root says
    otherwise
--csv FILE
    columns image,label,x1,y1,x2,y2 and, if known, width,height; one box a line,
    pixels unless --units says fractions; tabs where the file ends in .tsv
--jsonl FILE
    one query a line, a JSON object: image, or images (frames of a video); one
    of label, labels, expression, references (images of the object); boxes (all
    that there are, [] for none); if wanted caption, tags. Numbers as in --csv.
    {"image": "a.jpg", "expression": "the grey cat", "boxes": [[1, 2, 30, 40]]}
    With labels a box is {"box": [x1, y1, x2, y2], "label": "cat"}; with images
    there is a list of boxes a frame. tags are {"kind": "value"} or a list of
    words: scores are told apart by them. See docs/data.md
--set NAME --from DIR
    a published set in the format in which it is published, checked against what
    is known of it; --sets lists them with their licences

Images stay where they are. Every one is decoded, every box is checked. Tables
count the pixels of an image as it is stored. Where EXIF tells viewers to turn
it and the stated size does not show which of the two was annotated, say --exif
stored (boxes are taken as they are) or --exif turned (they are brought back).
"""

_WIDTH = 80

_FOR = {
    "image_root": ("coco", "yolo", "voc", "csv", "jsonl"),
    "units": ("csv", "jsonl"),
    "frames": ("jsonl",),
    "split": ("yolo",),
    "folder": ("set",),
    "only": ("set",),
    "partial": ("set",),
}
"""Flags that only some sources heed, by their parameters."""

_SOURCES = ("coco", "yolo", "voc", "csv", "jsonl", "set", "sets")


def complete_sets(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a published set."""
    return [CompletionItem(name) for name in IMPORTERS if name.startswith(incomplete)]


class _Import(Command):
    """Its help ends with what each source holds."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("What is read"):
            formatter.write(FORMATS)


@click.command(
    cls=_Import,
    examples=[
        "python run_findit.py data import --coco FILE --image-root DIR --name MyData",
        "python run_findit.py data import --set COCO_val2017 --from DIR",
    ],
)
@click.option("--coco", type=PATH, metavar="FILE")
@click.option("--yolo", type=PATH, metavar="DIR")
@click.option("--voc", type=PATH, metavar="DIR")
@click.option("--csv", type=PATH, metavar="FILE")
@click.option("--jsonl", type=PATH, metavar="FILE")
@click.option("--set", metavar="NAME", shell_complete=complete_sets, help="A published set.")
@click.option("--sets", is_flag=True, help="List the published sets, with their licences.")
@click.option(
    "--name", metavar="NAME", help="The dataset will be FindIt_NAME_… (of a set: its name)."
)
@click.option("--image-root", type=PATH, metavar="DIR", help="Folder of the images.")
@click.option(
    "--units",
    type=click.Choice([one.value for one in Units]),
    help="What numbers of --csv, --jsonl count.",
)
@click.option(
    "--frames",
    type=click.IntRange(min=1),
    metavar="N",
    help="Thin the videos of --jsonl to N frames.",
)
@click.option("--split", metavar="NAME", help="Which split of --yolo is read (val, of several).")
@click.option("--from", "folder", type=PATH, metavar="DIR", help="Where the published set lies.")
@click.option(
    "--only", metavar="NAMES", help="Subsets of a set, separated by commas: Aquarium,Raccoon."
)
@click.option("--partial", is_flag=True, help="Also a set that is not as published.")
@click.option(
    "--exif",
    type=click.Choice([one.value for one in Drawn]),
    help="Which pixels boxes refer to when EXIF rotates the image.",
)
@click.option("--replace", is_flag=True, help="Replace your dataset of that name.")
def command(**flags: Any) -> int:
    """Make a dataset of your own annotations, or of a published set."""
    source = _source(flags)
    if source == "sets":
        return _show()
    drawn = Drawn(flags["exif"]) if flags["exif"] else None
    if source == "set":
        wanted = Wanted(
            flags["folder"],
            flags["name"],
            flags["only"].split(",") if flags["only"] else None,
            flags["partial"],
            flags["replace"],
            drawn,
        )
        return _make(flags["set"], wanted)
    folder = _images(source, flags)
    samples = _read(source, flags, folder)
    built = build_asked(flags["name"], samples, folder, flags["replace"], drawn)
    print(described(built, folder))
    return 0


def _source(flags: dict[str, Any]) -> str:
    """Return which source is named, where all flags are of it.

    Raises:
        AnnotationError: none or several are, or a flag is of another one.
    """
    named = [name for name in _SOURCES if flags[name]]
    if len(named) != 1:
        given = f", not {' and '.join(f'--{name}' for name in named)}" if named else ""
        every = ", ".join(f"--{name}" for name in _SOURCES)
        raise AnnotationError(f"one of {every} is needed{given}")
    source = named[0]
    for name, sources in _FOR.items():
        if flags[name] not in (None, False) and source not in sources:
            flag = "--from" if name == "folder" else f"--{name.replace('_', '-')}"
            of = " and ".join(f"--{one}" for one in sources)
            raise AnnotationError(f"{flag} is for {of}, and not for --{source}: leave it out")
    if source == "set" and flags["folder"] is None:
        raise AnnotationError("--from DIR is missing: where does the set lie?")
    if source not in ("set", "sets") and flags["name"] is None:
        raise AnnotationError("--name NAME is missing: what is the dataset to be called?")
    return source


_BESIDE = {"yolo": "images", "voc": "JPEGImages"}
"""Where images lie below the folder of annotations."""


def _images(source: str, flags: dict[str, Any]) -> Path:
    folder: Path | None = flags["image_root"]
    if folder is None and source in _BESIDE:
        folder = flags[source] / _BESIDE[source]
    if folder is None:
        raise AnnotationError("--image-root DIR is missing: where do the images lie?")
    if not folder.is_dir():
        raise AnnotationError(
            f"{folder}: no such folder; say with --image-root where the images lie"
        )
    return folder


def _read(source: str, flags: dict[str, Any], folder: Path) -> AskedSet:
    units = Units(flags["units"]) if flags["units"] else None
    if source == "jsonl":
        from ..data.own.jsonl import read_jsonl

        return read_jsonl(flags["jsonl"], units, flags["frames"])
    return asked_of(_annotations(source, flags, folder, units))


def _annotations(
    source: str, flags: dict[str, Any], folder: Path, units: Units | None
) -> Annotations:
    path: Path = flags[source]
    if source == "coco":
        from ..data.own.coco_in import read_coco

        return read_coco(path)
    if source == "yolo":
        from ..data.own.yolo import read_yolo

        return read_yolo(path, folder, flags["split"])
    if source == "voc":
        from ..data.own.voc import read_voc

        return read_voc(path)
    from ..data.own.box_list import read_listing

    return read_listing(path, units)


# --- published sets -------------------------------------------------------------------------------


def _show() -> int:
    """Print the table."""
    for row in IMPORTERS.values():
        print(f"{row.name}\n{textwrap.indent(_description(row), '    ')}")
    print(
        "\ndata import --set NAME --from DIR\nLicences are as published; the owners' pages decide."
    )
    return 0


def _description(row: Importer) -> str:
    counts = str(row.counts)
    if row.parts:
        images = sum(one.images or 0 for one in row.parts.values())
        queries = sum(one.queries or 0 for one in row.parts.values())
        counts = str(Counts(images=images or None, queries=queries or None))
    datasets = f"{row.datasets} datasets" if row.datasets > 1 else ""
    known = ", ".join(filter(None, (datasets, counts))) or "counts not established"
    plugin = IMPORTERS.plugin_of(row.name)
    lines = (
        *([f"added by {plugin}"] if plugin else []),
        row.title,
        known,
        f"licence: {row.licence}",
        f"published at {row.source}",
        f"DIR holds {row.holds}",
    )
    wrapped = (fill(line, _WIDTH - 5, subsequent_indent="  ") for line in lines)
    return "\n".join(wrapped)


def _make(name: str, wanted: Wanted) -> int:
    """Make the datasets of a set; the exit status is 1 where some could not be made, 2 where none
    could.
    """
    if name not in IMPORTERS:
        raise AnnotationError(f"no published set {name!r}{nearest(name, IMPORTERS)}")
    row = IMPORTERS[name]
    print(f"{row.title}\nlicence: {row.licence}\npublished at {row.source}")
    made, refused = [], []
    for one in bring(row, wanted):
        if isinstance(one, Brought):
            made.append(one)
            _print(one)
        else:
            refused.append(one)
            print(f"{one.dataset}: {one.why}")
    if refused:
        names = ", ".join(one.dataset for one in refused)
        print(f"{len(refused)} of {len(made) + len(refused)} could not be made: {names}")
    return 0 if not refused else 1 if made else 2


def _print(one: Brought) -> None:
    for why in one.unlike:
        print(f"{one.dataset}: not as published: {why}")
    if one.without_query:
        print(
            f"{one.dataset}: pictures without an object, which make no query: {one.without_query}"
        )
    print(described(one.built, one.images))


# --- what became of it ----------------------------------------------------------------------------

_ASKED = {
    Family.OBJDET: "every object of a label",
    Family.OBJDET_VIDEO: "every object of a label, in the frames of a video",
    Family.REFEXP: "the one object that an expression describes",
    Family.REFEXP_ALL: "every object that an expression describes",
    Family.INSDET: "the object of reference pictures",
    Family.INSDET_VIDEO: "the object of reference pictures, in the frames of a video",
}


def described(built: Built, images: Path) -> str:
    """What was made, what was left out, and how it is asked.

    Args:
        built: what was made.
        images: the folder of the images.
    """
    said = [*built.notes]
    said += [f"left out: {count} {reason}" for reason, count in built.left_out.items()]
    name = parse(f"FindIt_{built.name}_xyxy_json").name
    said += _dataset(built)
    said += [f"Tables: {built.tables[0].path.parent}", f"Images: {images}", "Run it:"]
    said += [f"  python run_findit.py --data {name} --model MODEL"]
    return as_called("\n".join(said))


def _dataset(one: Built) -> Iterator[str]:
    """Lines about one dataset and its tables."""
    row = one.row
    more = [f"{row.frames} frames"] if row.frames > 1 else []
    more += ["with captions"] if row.captions else []
    yield _wrapped(f"{one.name}: ", "; ".join([_ASKED[Family(row.family)], *more]))
    for table in one.tables:
        yield _counts(table)
    words = [kind for kind, values in one.tags.items() if set(values) <= {YES, NO}]
    if words:
        yield _wrapped("  tags, yes or no: ", _some(words))
    for kind, values in one.tags.items():
        if kind not in words:
            yield _wrapped(f"  tag {kind}: ", _some(values))


_LISTED = 8
"""Tags, or values of one, that are named."""


def _some(words: Sequence[str]) -> str:
    if len(words) <= _LISTED:
        return ", ".join(words)
    return f"{', '.join(words[:_LISTED])} … ({len(words)})"


def _counts(table: Prepared) -> str:
    without = f"  ({table.without_box} with nothing to find)" if table.without_box else ""
    without += f"  ({table.ignored} more count neither way)" if table.ignored else ""
    return f"  {table.table:<20}{table.queries:>7} queries{table.boxes:>9} boxes{without}"


def _wrapped(head: str, text: str) -> str:
    return fill(text, _WIDTH, initial_indent=head, subsequent_indent="  ")
