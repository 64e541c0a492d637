"""What became of an import, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill

from ..benchmarks.findit.annotation_tables import Prepared
from ..benchmarks.findit.datasets import Family
from ..benchmarks.findit.names import parse
from ..core.command import as_called
from ..data.own.build import Built, BuiltSet
from ..data.own.jsonl import NO, YES

_WIDTH = 80

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
    folders = dict.fromkeys(table.path.parent for table in built.tables)
    said += [line for one in built.datasets for line in _dataset(one)]
    said += [f"Tables: {folder}" for folder in folders]
    said += [f"Images: {images}", "Run it:"]
    said += [
        f"  python run_findit.py --data {parse(f'FindIt_{one.name}_xyxy_json').name} --model MODEL"
        for one in built.datasets
    ]
    return as_called("\n".join(said))


def _dataset(one: BuiltSet) -> Iterator[str]:
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
