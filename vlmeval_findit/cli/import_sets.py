"""``run_findit.py data import --set``: published sets as datasets, and the list of them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from ..core.spelling import nearest
from ..data.importers.bringing import Brought, Wanted, bring
from ..data.importers.importer import Counts, Importer
from ..data.importers.table import IMPORTERS
from ..data.own.annotations import AnnotationError
from ..data.own.exif import Drawn
from .imported import described
from .parsing import Parser

_WIDTH = 79
"""Columns of the list: a terminal has 80."""


def is_meant(argv: Sequence[str]) -> bool:
    """Whether the arguments of ``import`` are about published sets."""
    return any(word.partition("=")[0] in ("--set", "--sets") for word in argv)


def main(argv: Sequence[str]) -> int:
    """Make datasets of a published set, or list the sets."""
    parser = Parser(prog="run_findit.py data import", description=__doc__, allow_abbrev=False)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--sets", action="store_true", help="list the published sets")
    which.add_argument("--set", metavar="NAME", help="a published set")
    parser.add_argument("--from", type=Path, metavar="DIR", dest="folder", help="where it lies")
    parser.add_argument("--name", help="what it is to be called (the name of the set)")
    parser.add_argument("--only", help="subsets, separated by commas: Aquarium,Raccoon")
    parser.add_argument("--partial", action="store_true", help="also where it is not as published")
    parser.add_argument("--replace", action="store_true", help="replace your dataset of that name")
    parser.add_argument(
        "--exif", choices=[one.value for one in Drawn], help="what boxes of such pictures count"
    )
    args = parser.parse_args(argv)
    if args.sets:
        return _show()
    if args.folder is None:
        parser.error("--from DIR is missing: where does the set lie?")
    wanted = Wanted(
        args.folder,
        args.name,
        args.only.split(",") if args.only else None,
        args.partial,
        args.replace,
        Drawn(args.exif) if args.exif else None,
    )
    return _make(args.set, wanted)


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
    wrapped = (textwrap.fill(line, _WIDTH - 4, subsequent_indent="  ") for line in lines)
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
