"""``run_findit.py formats``: the ways to write a box, each with an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import click

from ..benchmarks.findit import (
    AXIS_VALUES,
    CENTRES,
    AnnotationTable,
    FindItVariant,
    FormatAxes,
    formats,
    variants,
)
from ..boxes import JSON_KEYS, REPRESENTATIONS, STRUCTURES, BoxToWrite, write
from ..core import as_called, counted
from ..sweeps import search_target
from .command_base import Command, complete_datasets, say
from .printing import print_folded

_BOX = (4, 6, 20, 18)
_LABEL = "cat"


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py formats",
        "python run_findit.py formats xywh json",
        "python run_findit.py formats --data Scenes_mini_multilabel",
    ],
)
@click.argument("parts", metavar="[PART...]", nargs=-1)
@click.option(
    "--data",
    default="Scenes_mini",
    shell_complete=complete_datasets,
    help="A table, or a complete name in any of its formats.",
)
def command(parts: tuple[str, ...], data: str) -> int:
    """List the formats: the end of a dataset's name, and one box written so.

    With PARTs (xywh json nested) only those whose names have all of them.
    """
    table = search_target(data)
    if not isinstance(table, AnnotationTable):
        raise ValueError(
            f"--data {data}: only FindIt's datasets (FindIt_…) are asked in several formats"
        )
    asked = [each for each in formats_of(table) if all(part in each.format for part in parts)]
    if not asked:
        raise ValueError(f"no format has all of: {' '.join(parts)}. Type: run_findit.py formats")
    left, top, right, bottom = _BOX
    print_folded(f"A box from {left}, {top} to {right}, {bottom}:")
    for name, group in groupby(asked, lambda each: each.representation):
        _print_group(name, list(group))
    say()
    first = f"--data FindIt_{table.name}_{asked[0].format}"
    print_folded(f"{counted(len(asked), 'format')} of {table.name}, as in {first}")
    if not parts:
        for line in _more():
            print_folded(as_called(line))
    return 0


def _print_group(representation: str, asked: Sequence[FindItVariant]) -> None:
    width = max(len(each.format) for each in asked)
    fields = ", ".join(REPRESENTATIONS[representation].fields)
    say(f"\n{representation}{f': {fields}' if fields else ''}")
    for each in asked:
        say(f"  {each.format:<{width}}  {example(each)}")


def formats_of(table: AnnotationTable) -> list[FindItVariant]:
    """Return a table in each format of the paper's grid."""
    axes = FormatAxes(keys=JSON_KEYS, structures=STRUCTURES, centres=AXIS_VALUES["centres"])
    return variants([table], formats(axes))


def example(variant: FindItVariant) -> str:
    """Return a reply with one box that keeps to a format.

    >>> from ..benchmarks.findit import parse
    >>> example(parse("FindIt_Scenes_mini_xywh_json_bbox_2d"))
    '[{"bbox_2d": [4, 6, 16, 12]}]'
    """
    if variant.representation == "unconstrained":
        return "as the model writes boxes, unasked"
    return write([BoxToWrite(_BOX, _LABEL)], variant.reply, digits=0)


def _more() -> Iterator[str]:
    centres = " and ".join(f"_cx-{each}" for each in CENTRES)
    yield f"{centres} explain the centre in the prompt."
    yield (
        "xyxy_json_bbox_2d asks for the key bbox_2d, as Qwen's models write, xyxy_json for bbox. "
        "Those with a key: run_findit.py formats bbox_2d"
    )
    others = [name for name in REPRESENTATIONS if name not in AXIS_VALUES["representations"]]
    yield (
        "Not among them: "
        f"{', '.join(others)} (points and others, where a dataset takes them); …_constrained "
        "behind a JSON format, which holds replies to its grammar; …_vp-box and other marks of "
        "reference images."
    )
    yield "Which of them a model answers best in: run_findit.py search --model NAME"
