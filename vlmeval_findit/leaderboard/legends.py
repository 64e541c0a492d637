"""The signs of tables: which one a test gives, and what they mean.

A table says what its signs mean (:attr:`.Table.signs`); every output of a table for people asks
:func:`legend_of` which of them occur, as it shows the table.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from ..analysis import ELSEWHERE
from ..statistics import ALPHA, Difference, Verdict
from .result_table import NONE, RANKS_SIGN, Field, FieldType, Note, Table, TableCell, range_of

# What a table may show without a sign, as keys of Table.signs
INTERVAL = "low–high"
NO_INTERVAL = "no interval"
BOLD = "bold"
ITALIC = "italic"
RANKS = "1–3"
RANKS_BESIDE = f"{RANKS_SIGN}{RANKS}"

# Signs
TIED_SIGN = "≈"  # The difference to what a table names may be chance
UNTESTED_SIGN = "?"  # That difference, or that to all others of a column, is not tested
VOTED = "†"  # A value with reviews whose reviewers saw the model's answers
PART_SIGN = "‡"  # A mean over some of the datasets that others of its column are over
STAR = "*"  # A significant difference
STAR_MEANING = f"p below {ALPHA:g}"

IN_A_TERMINAL = (BOLD, ITALIC)  # Signs that it does not show
IN_A_SHEET = (NONE,)
IN_JSON = (BOLD, ITALIC, RANKS, RANKS_BESIDE)


def elsewhere_column(name: str) -> str:
    """Return the name of the column of values elsewhere beside another column."""
    return f"{name} {ELSEWHERE}"


def without_value(sign: str) -> str:
    """Return the key of a sign that stands without a value."""
    return f"{sign} without a value"


# --- signs of a test ------------------------------------------------------------------------------


def star_of(test: Difference) -> str:
    """Return ``*`` for a significant difference; else no sign."""
    return STAR if test.significant else ""


def tie_of(test: Difference) -> str:
    """Return ``≈`` for a difference that may be chance, ``?`` for one that is not tested."""
    signs = {Verdict.NOT_TOLD_APART: TIED_SIGN, Verdict.NOT_TESTED: UNTESTED_SIGN}
    return signs.get(test.verdict, "")


def difference_cell(test: Difference, sign: str = "") -> TableCell:
    """Make the cell of a difference with its interval."""
    return TableCell(test.value, test.interval, sign=sign)


def p_cell(test: Difference) -> TableCell:
    """Make the cell of a p-value, corrected for its family: ``0.012 *``."""
    return TableCell(test.corrected, sign=star_of(test))


# --- what signs mean ------------------------------------------------------------------------------


def legend_of(tables: Iterable[Table], lacking: Container[str] = ()) -> list[str]:
    """Return what the signs that occur in tables mean, each once: ``≈: the difference to …``.

    ``lacking``: signs that the output does not show, as bold type on a terminal.
    """
    lines: dict[str, None] = {}
    tables = list(tables)
    shown = _ranks_shown(tables)
    for table in tables:
        occurring = set(_occurring(table))
        for sign, meaning in table.signs.items():
            if sign in occurring and sign not in lacking:
                lines[f"{shown.get(sign, sign)}: {meaning}"] = None
    return list(lines)


def _ranks_shown(tables: Iterable[Table]) -> dict[str, str]:
    """Return ranks that tables show, by the key of their meaning: a range, if there is any."""
    shown: dict[str, str] = {}
    for table in tables:
        for row in table.cells():
            for field, cell in row:
                if cell.ranks is None:
                    continue
                for key in _ranks_of(field, cell):
                    sign = RANKS_SIGN if key == RANKS_BESIDE else ""
                    is_range = cell.ranks.best != cell.ranks.worst
                    if key not in shown or (is_range and "–" not in shown[key]):
                        shown[key] = f"{sign}{range_of(cell.ranks)}"
    return shown


def signs_note(tables: Iterable[Table], lacking: Container[str] = ()) -> list[Note]:
    """Return the note on the signs of tables; none where no sign occurs."""
    lines = legend_of(tables, lacking)
    return [Note("Signs", lines)] if lines else []


def _occurring(table: Table) -> Iterator[str]:
    """Yield the signs that occur in a table, its columns, and keys of what has no sign."""
    names = {field.name for field in table.fields}
    yield from names
    if any(name.endswith(elsewhere_column("")) for name in names):
        yield ELSEWHERE
    first_quoted = len(table.rows) - table.quoted
    if table.quoted:
        yield ITALIC
    for at, row in enumerate(table.cells()):
        for field, cell in row:
            yield from _signs_of(cell)
            yield from _ranks_of(field, cell)
            if at < first_quoted and field.interval and elsewhere_column(field.name) not in names:
                yield from _interval_of(field, cell)


def _signs_of(cell: TableCell) -> Iterator[str]:
    yield from cell.sign
    if cell.value is None:
        yield NONE
        for sign in cell.sign:
            yield without_value(sign)
    elif isinstance(cell.value, str):
        yield cell.value  # A column of signs, for programs
    if cell.best:
        yield BOLD


def _ranks_of(field: Field, cell: TableCell) -> Iterator[str]:
    """Yield the key of a cell's ranks; a single rank in a column of ranks speaks for itself."""
    if cell.ranks is None:
        return
    if field.kind is not FieldType.RANK:
        yield RANKS_BESIDE
    elif cell.ranks.best != cell.ranks.worst:
        yield RANKS


def _interval_of(field: Field, cell: TableCell) -> Iterator[str]:
    if cell.interval is not None:
        yield INTERVAL
    elif cell.value not in (None, ""):
        yield NO_INTERVAL
