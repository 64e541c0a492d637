"""``data stats``: images, objects, sizes and words of datasets, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ..benchmarks import begins_with_prefix, benchmarks, refuse_misnamed
from ..benchmarks.findit import table_called
from ..core import suggestion
from ..data import (
    LARGE_ABOVE,
    SMALL_BELOW,
    SetStatistics,
    Spread,
    load_dataset,
    refuse_unmade,
    statistics_of,
)
from .command_base import Command, complete_datasets, json_option
from .printing import print_columns, write_json

_NONE = "–"


@click.command(
    cls=Command, examples=["python run_findit.py data stats Scenes_mini Scenes_mini_refexp"]
)
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_datasets
)
@json_option
def command(names: tuple[str, ...], json_file: Path | None) -> int:
    """Print how many images, objects and words datasets have, and how large they are.

    NAME is a table (Pascal, Pascal_multilabel, MyData) or a dataset. An object counts once, however
    many queries are about it. Its size is the root of its area, in pixels; small, medium and large
    are Ref-L4's classes. No image is read.
    """
    variants = dict.fromkeys(map(_variant_of, names))
    sets = [statistics_of(load_dataset(name)) for name in variants]
    columns = list(map(_column, sets))
    rows = [[cells[0][0], *(text for _, text in cells)] for cells in zip(*columns, strict=True)]
    titles = [each.name for each in sets]
    print_columns(rows, "", *titles, numbers=titles)
    if json_file is not None:
        write_json(json_file, {each.name: each.as_json() for each in sets})
    return 0


def _variant_of(name: str) -> str:
    """Return the name of a dataset over the table that a name means."""
    if begins_with_prefix(name):
        return name
    table = table_called(name)
    listed = {
        benchmark.parse(variant).table: variant
        for benchmark in benchmarks()
        for variant in benchmark.variant_names()
    }
    if table not in listed:
        refuse_misnamed(name)
        refuse_unmade(name, takes_tables=True)
        raise ValueError(f"unknown dataset {name!r}{suggestion(name, listed)}")
    return listed[table]


def _column(each: SetStatistics) -> Sequence[tuple[str, str]]:
    """Return the numbers of a set, each with its title."""
    return [
        ("queries", f"{each.queries:,}"),
        ("  without an object", f"{each.without_object:,}"),
        ("images", f"{each.images:,}"),
        ("  width x height (px)", _size(each)),
        ("objects", f"{each.objects:,}"),
        ("  ignored", f"{each.ignored:,}"),
        ("  an image", _spread(each.objects_an_image)),
        ("  size (px)", _spread(each.sizes, 0)),
        *_classes_of_size(each.sizes),
        ("  of the image's area (%)", _spread(each.shares, 1, 100)),
        ("classes", f"{each.classes:,}" if each.classes else _NONE),
        ("words a query", _spread(each.words)),
        ("  different words", f"{each.vocabulary:,}"),
    ]


def _classes_of_size(sizes: Spread | None) -> Iterator[tuple[str, str]]:
    classes = {
        f"  small, below {SMALL_BELOW} px (%)": lambda size: size < SMALL_BELOW,
        "  medium (%)": lambda size: SMALL_BELOW <= size <= LARGE_ABOVE,
        f"  large, above {LARGE_ABOVE} px (%)": lambda size: size > LARGE_ABOVE,
    }
    for title, fits in classes.items():
        yield title, _NONE if sizes is None else f"{100 * sizes.share(fits):.1f}"


def _spread(spread: Spread | None, digits: int = 1, scale: float = 1) -> str:
    """Say the mean, and from where to where: ``2.4 (1–9)``."""
    if spread is None:
        return _NONE
    low = f"{scale * min(spread.values):.3g}"
    high = f"{scale * max(spread.values):.4g}"
    return f"{scale * spread.mean:.{digits}f} ({low}–{high})"


def _size(each: SetStatistics) -> str:
    if each.widths is None or each.heights is None:
        return _NONE
    return f"{each.widths.mean:.0f} x {each.heights.mean:.0f}"
