"""What ``reproduce --against`` prints: two reproductions of one figure, compared."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from textwrap import wrap

from ..core import counted, printable
from ..reproduction import SharedRows, TwoReproductions
from ..statistics import TOO_FEW_IMAGES
from .shared_options import say

_WIDTHS = (24, 26, 26)  # Of the columns: with two blanks between them 80
_HEADER = ("differs", "here", "there")


def print_against(compared: TwoReproductions, theirs: str) -> None:
    """Print by how much two reproductions differ, and in which conditions."""
    say("\n".join(["", f"Compared with {printable(theirs)}:", *against_lines(compared)]))


def against_lines(compared: TwoReproductions) -> list[str]:
    """Return the lines of a comparison, each of at most 80 columns."""
    return [*_values(compared.shared), *_conditions(compared)]


def _values(shared: SharedRows | None) -> Iterator[str]:
    if shared is None:
        yield "no row was asked in both: type the same --limit and --seed"
        return
    rows = f"{counted(shared.rows, 'row')} of {counted(shared.pictures, 'picture')} in both"
    yield f"{rows}: here {shared.here:.1f}, there {shared.there:.1f}"
    test = shared.difference
    if test.interval is None:
        yield f"difference {test.value:+.1f} points; no interval: {TOO_FEW_IMAGES}"
        return
    ends = f"{test.interval.low:+.1f} to {test.interval.high:+.1f}"
    zero = test.interval.low <= 0 <= test.interval.high
    verdict = "may be chance" if zero else "is more than chance"
    yield f"difference {test.value:+.1f} points ({ends}), which {verdict}"


def _conditions(compared: TwoReproductions) -> Iterator[str]:
    same = f"the same in both: {counted(len(compared.same), 'condition')}"
    if not compared.differences:
        yield f"no condition that is known differs; {same}"
        return
    yield from _row(_HEADER)
    for each in compared.differences:
        yield from _row((each.name, each.here or "not known", each.there or "not known"))
    yield same


def _row(cells: tuple[str, str, str]) -> Iterator[str]:
    """Yield the lines of a row of the table: cells are folded, and nothing is cut."""
    folded = [wrap(printable(cell), width) for cell, width in zip(cells, _WIDTHS, strict=True)]
    for parts in zip_longest(*folded, fillvalue=""):
        padded = [f"{part:{width}}" for part, width in zip(parts, _WIDTHS, strict=True)]
        yield "  ".join(padded).rstrip()
