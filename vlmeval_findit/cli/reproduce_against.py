"""What ``reproduce --against`` prints: two reproductions of one figure, compared."""

from __future__ import annotations

from pathlib import Path

from ..core.formatting import counted, printable, short
from ..reproduction.two_reproductions import SharedRows, TwoReproductions
from ..statistics.intervals import TOO_FEW
from .shared_options import say

_NAME, _VALUE = 26, 26  # Columns: with the blanks between them 80


def print_against(compared: TwoReproductions, theirs: Path) -> None:
    """Print what differs between two reproductions, and by how much they differ."""
    say(f"against {theirs}")
    for line in against_lines(compared):
        say(line)


def against_lines(compared: TwoReproductions) -> list[str]:
    """Return the lines of a comparison, each of at most 80 columns."""
    return [*_values(compared.shared), *_conditions(compared)]


def _values(shared: SharedRows | None) -> list[str]:
    if shared is None:
        return ["no row was asked in both: use the same --limit and --seed"]
    rows = f"{counted(shared.rows, 'row')} of {counted(shared.pictures, 'picture')} in both"
    lines = [f"{rows}: here {shared.here:.1f}, there {shared.there:.1f}"]
    test = shared.difference
    if test.interval is None:
        return [*lines, f"difference {test.value:+.1f} points; no interval: {TOO_FEW}"]
    ends = f"{test.interval.low:+.1f} to {test.interval.high:+.1f}"
    zero = test.interval.low <= 0 <= test.interval.high
    verdict = "may be chance" if zero else "is more than chance"
    return [*lines, f"difference {test.value:+.1f} points ({ends}), which {verdict}"]


def _conditions(compared: TwoReproductions) -> list[str]:
    same = f"the same in both: {counted(len(compared.same), 'condition')}"
    if not compared.differences:
        return [f"no condition that is known differs; {same}"]
    lines = [_row("differs", "here", "there")]
    for each in compared.differences:
        lines.append(_row(each.name, each.here or "not known", each.there or "not known"))
    return [*lines, same]


def _row(name: str, here: str, there: str) -> str:
    cells = [f"{short(printable(name), _NAME):{_NAME}}"]
    cells += [f"{short(printable(value), _VALUE):{_VALUE}}" for value in (here, there)]
    return " ".join(cells).rstrip()
