"""Tables as CSV, JSON, Markdown, LaTeX, HTML, and for the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from ..core import as_csv, common_beginning, printable, shorten_names
from .legends import IN_JSON, legend_of, signs_note
from .result_table import (
    NONE,
    Field,
    FieldType,
    FieldValue,
    Note,
    Table,
    TableCell,
    bounds_of,
    sign_of,
    text_of,
)

if TYPE_CHECKING:
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text


def to_csv(table: Table) -> str:
    """Write the records of a table as CSV, with a header even without rows."""
    return as_csv(table.records(), table.header)


# --- JSON -----------------------------------------------------------------------------------------


def to_json(table: Table) -> dict[str, Any]:
    """Return a table for JSON: its title, rows by column, and notes, of its signs, too.

    A value with a possible interval, a rank and a difference are objects: ``value``, ``low`` and
    ``high`` (null without an interval), and ``sign`` if the table shows it. Everything else is the
    value itself. NaN, infinity and missing values are null.
    """
    return {
        "title": table.title,
        "rows": [
            {field.name: _json_value(field, cell) for field, cell in row} for row in table.cells()
        ],
        "notes": [
            {"title": note.title, "lines": list(note.lines)}
            for note in (*table.notes, *signs_note([table], IN_JSON))
        ],
    }


def _json_value(field: Field, cell: TableCell) -> Any:
    value = cell.value if field.kind is FieldType.TEXT or cell.value != "" else None
    if not (field.interval or field.is_difference or field.kind is FieldType.RANK):
        return _finite(value)
    entry = {"value": _finite(value)}
    if cell.ranks is not None:
        entry |= {"best rank": cell.ranks.best, "worst rank": cell.ranks.worst}
    if field.interval:
        low, high = cell.ends
        entry |= {"low": _finite(low), "high": _finite(high)}
    return {**entry, "sign": cell.sign} if cell.sign else entry


def _finite(number: str | float | None) -> str | float | None:
    """Return the value; None for NaN and infinity, which JSON does not have."""
    return None if isinstance(number, float) and not math.isfinite(number) else number


# --- Markdown -------------------------------------------------------------------------------------


def all_notes(tables: Iterable[Table]) -> list[Note]:
    """Return the notes of tables, each once."""
    lines_by_title: dict[str, dict[str, None]] = {}
    for table in tables:
        for title, lines in table.notes:
            lines_by_title.setdefault(title, {}).update(dict.fromkeys(lines))
    return [Note(title, list(lines)) for title, lines in lines_by_title.items()]


def escape_markdown(text: str) -> str:
    """Escape text for Markdown: nothing of it is markup."""
    return re.sub(r"([\\|`*_<>\[\]&$~])", r"\\\1", " ".join(printable(text).split()))


def to_markdown(table: Table) -> str:
    """Write a table in Markdown, without its title and notes."""
    lines = [list(map(_md_head, table.fields)), ["---"] * len(table.fields)]
    first_quoted = len(table.rows) - table.quoted
    for at, row in enumerate(table.cells()):
        lines.append([_md_cell(*item, quoted=at >= first_quoted) for item in row])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _md_head(field: Field) -> str:
    return escape_markdown(field.name) + (
        f" <sub>{escape_markdown(field.note)}</sub>" if field.note else ""
    )


def _md_cell(field: Field, cell: TableCell, quoted: bool) -> str:
    text = escape_markdown(text_of(field, cell))
    if quoted and field.is_key:
        return f"*{text}*" if text else ""
    bounds = bounds_of(field, cell)
    value = f"**{text}**" if cell.best else text
    return value + sign_of(field, cell) + (f" <sub>{bounds}</sub>" if bounds else "")


def markdown_page(title: str, tables: Sequence[Table], source: str = "") -> str:
    """Write a page of tables; below them their notes, each once.

    ``source`` opens the page; then it says how values are read, and what signs mean.
    """
    introduction, *others = sorted(all_notes(tables), key=lambda note: bool(note.title))
    parts = [
        f"# {escape_markdown(title)}",
        *filter(None, [escape_markdown(source)]),
        *introduction.lines,
    ]
    if signs := legend_of(tables):
        parts.append("\n".join(f"* {escape_markdown(line)}" for line in signs))
    for table in tables:
        parts += [f"## {escape_markdown(table.title)}", to_markdown(table)]
    for heading, lines in others:
        parts += [
            f"## {escape_markdown(heading)}",
            "\n".join(f"* {escape_markdown(line)}" for line in lines),
        ]
    return "\n\n".join(parts) + "\n"


# --- LaTeX ----------------------------------------------------------------------------------------

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "≈": r"$\approx$",
    NONE: "--",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def to_latex(table: Table, source: str = "") -> str:
    """Write a table as ``table*`` with its notes below; needs packages booktabs and graphicx.

    The caption is the title, what its signs mean, and ``source``.
    """
    columns = "".join("l" if field.kind is FieldType.TEXT else "r" for field in table.fields)
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{_caption(table, source)}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(_latex(field.name) for field in table.fields) + r" \\",
        r"\midrule",
    ]
    first_quoted = len(table.rows) - table.quoted
    for at, row in enumerate(table.cells()):
        if table.quoted and at == first_quoted:
            lines.append(r"\midrule")
        cells = (_latex_cell(*item, quoted=at >= first_quoted) for item in row)
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}}"]
    if table.notes:
        lines.append(_latex_notes(table.notes))
    return "\n".join([*lines, r"\end{table*}", ""])


def _caption(table: Table, source: str) -> str:
    parts = [table.title, "; ".join(legend_of([table])), source.removesuffix(".")]
    text = ". ".join(filter(None, parts))
    return _latex(text if text == table.title else f"{text}.")


_LONGEST_WORD = 15  # In a head of a paper's table, unless nothing divides it


def notes_float(notes: Sequence[Note]) -> str:
    """Write notes that have no room below a table, as a float of their own."""
    return "\n".join([r"\begin{table*}[t]", _latex_notes(notes), r"\end{table*}", ""])


def _latex_notes(notes: Sequence[Note]) -> str:
    """Write notes as a paragraph of small type, as wide as the page."""
    text = _latex(" ".join(note.text for note in notes))
    return rf"\par\smallskip\parbox{{\textwidth}}{{\footnotesize {text}}}"


def to_booktabs(table: Table, source: str = "") -> str:
    """Write a table as ``table*`` of values alone, without intervals and scaling; notes below it.

    It needs no package but booktabs, so it can be pasted into any template. The note of a column
    stands in a line below its name.
    """
    table = _without_intervals(table)
    is_text = [field.kind is FieldType.TEXT for field in table.fields]
    lines = [
        r"\begin{table*}[t]",
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{_caption(table, source)}}}",
        r"\smallskip",
        rf"\begin{{tabular}}{{@{{}}{''.join('l' if text else 'r' for text in is_text)}@{{}}}}",
        r"\toprule",
        " & ".join(map(_latex_head, table.fields)) + r" \\",
    ]
    if any(field.note for field in table.fields):
        notes = (_stacked(note_lines(field), r"\scriptsize ") for field in table.fields)
        lines.append(" & ".join(notes) + r" \\")
    lines.append(r"\midrule")
    first_quoted = len(table.rows) - table.quoted
    for at, row in enumerate(table.cells()):
        cells = (_latex_cell(field, cell, at >= first_quoted) for field, cell in row)
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.notes:
        lines.append(_latex_notes(table.notes))
    return "\n".join([*lines, r"\end{table*}", ""])


def _without_intervals(table: Table) -> Table:
    """Return a table whose values have no intervals."""
    fields = [replace(field, interval=False) for field in table.fields]
    rows: list[list[FieldValue]] = []
    for row in table.cells():
        rows.append([replace(cell, interval=None) for _, cell in row])
    return replace(table, fields=fields, rows=rows)


def _latex_head(field: Field) -> str:
    """Write a column's name, the words of a column of numbers below each other."""
    return _latex(field.name) if field.kind is FieldType.TEXT else _stacked(head_lines(field))


def head_lines(field: Field) -> list[str]:
    """Return the lines of the name of a column of numbers in a paper: its words.

    >>> head_lines(Field("RefCOCOplus_testA_of_2026 elsewhere"))
    ['RefCOCOplus_', 'testA_of_2026', 'elsewhere']
    """
    lines = []
    for word in field.name.split():
        parts = wrap(word.replace("_", "_ "), _LONGEST_WORD, break_long_words=False)
        lines += [part.replace("_ ", "_") for part in parts]
    return lines or [""]


def note_lines(field: Field) -> list[str]:
    """Return the lines of a column's note in a paper: ``Object detection,``, ``60 queries``."""
    *first, last = field.note.split(", ")
    return [*(f"{part}," for part in first), last]


def _stacked(lines: Sequence[str], size: str = "") -> str:
    """Write lines below each other."""
    texts = [f"{size}{_latex(line)}" for line in lines]
    return texts[0] if len(texts) < 2 else r"\shortstack[r]{" + r"\\".join(texts) + "}"


def _latex_cell(field: Field, cell: TableCell, quoted: bool) -> str:
    text = _latex(text_of(field, cell))
    if quoted and field.is_key:
        return rf"\textit{{{text}}}" if text else ""
    value = rf"\textbf{{{text}}}" if cell.best else text
    signs = [_latex(part) for part in sign_of(field, cell).split()]
    sign = "".join(rf"\,{part}" for part in signs)
    bounds = bounds_of(field, cell)
    return value + sign + (rf" {{\scriptsize {_latex(bounds)}}}" if bounds else "")


def _latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in printable(text))


# --- HTML -----------------------------------------------------------------------------------------


def to_html(table: Table) -> Markup:
    """Write a table as an element of a page, without its title and notes."""
    parts = ["<table><thead><tr>"]
    key = next((field for field in table.fields if field.kind is FieldType.TEXT), None)
    for field in table.fields:
        kind = Markup(' class="average"') if field.is_mean else ""
        if field is key:
            kind = Markup(' class="stays"')  # Above names that stay in view
        note = Markup("<small>{}</small>").format(field.note) if field.note else ""
        heading = printable(field.name)
        parts.append(Markup('<th scope="col"{}>{}{}</th>').format(kind, heading, note))
    parts.append("</tr></thead>\n<tbody>\n")
    first_quoted = len(table.rows) - table.quoted
    for at, row in enumerate(table.cells()):
        parts.append('<tr class="published">' if at >= first_quoted else "<tr>")
        parts += [_html_cell(field, cell, field is key) for field, cell in row]
        parts.append("</tr>\n")
    return Markup("").join([*map(Markup, parts), Markup("</tbody></table>")])


def breakable(name: str) -> Markup:
    """Escape a name that may be long for HTML; where it lacks room, it is broken after a ``_``.

    >>> breakable("a_b<c")
    Markup('a_<wbr>b&lt;c')
    """
    return Markup("_<wbr>").join(printable(name).split("_"))


def _html_cell(field: Field, cell: TableCell, is_heading: bool) -> Markup:
    if is_heading:
        name = breakable(text_of(field, cell))
        return Markup('<th scope="row"><span>{}</span></th>').format(name)
    text = escape(text_of(field, cell))
    if field.is_key:
        return Markup("<td>{}{}</td>").format(text, sign_of(field, cell))
    kinds = ["figure"]
    if field.is_mean:
        kinds.append("average")
    if cell.best:
        kinds.append("best")
    bounds = bounds_of(field, cell)
    small = Markup("<small>{}</small>").format(bounds) if bounds else ""
    sign = sign_of(field, cell)
    return Markup('<td class="{}">{}{}{}</td>').format(" ".join(kinds), text, sign, small)


# --- the terminal ---------------------------------------------------------------------------------

_GAP = 2
_SHORTEST = 16  # Characters of a name, below which it is shortened only where a value needs them
_NARROWEST = 6  # Below that names are folded, as they say nothing
_INDENT = 2  # Of rows below the name that they share
_PLAIN: Mapping[str, Any] = {
    "box": None,
    "header_style": "bold",
    "pad_edge": False,
    "padding": (0, _GAP, 0, 0),
}


def fits_terminal(table: Table, width: int, below: bool = False) -> bool:
    """Tell whether a table fits side by side, each value on a line with its interval.

    ``below``: with the intervals below the values.
    """
    return _width_of(_terminal_columns(table, "\n" if below else " ", folds=True)) <= width


def to_terminal(table: Table, width: int) -> Iterator[RichTable | Padding | Text]:
    """Make parts of at most ``width`` characters, in which nothing is cut.

    If there is no room, the words of ``folded`` names stand below each other; then a name that
    several rows have stands on a line above them, and so does the beginning of all names. Intervals
    are below their values, long names are shortened in the middle, different ones differently,
    texts are folded, and finally columns are spread over several tables with the same names.
    """
    from rich.padding import Padding
    from rich.text import Text

    headed = _headed(table, width)
    groups = headed.groups
    if len(groups) == 1:
        for column, name in zip(headed.names, groups[0].names, strict=True):
            yield Text(f"{column}: {printable(name)}")
    indent = _INDENT if len(groups) > 1 else 0
    rest = headed.table
    for at in range(rest.keys):
        if not fits_terminal(rest, width - indent) and (beginning := _beginning_of(rest, at)):
            yield Text(f"{rest.fields[at].name}: {printable(beginning)}…")
            rest = _without_beginning(rest, at, beginning)
    if not indent:
        yield from _side_by_side(rest, width)
        return
    ends = [group.end for group in groups]
    for part in _side_by_side(rest, width - _INDENT):
        yield Text(", ".join(headed.names), style="bold")
        yield Padding(_rows_of(part, 0, 0, has_head=True), (0, 0, 0, _INDENT), expand=False)
        for group, start in zip(groups, [0, *ends], strict=False):
            yield Text(", ".join(map(printable, group.names)))
            rows = _rows_of(part, start, group.end, has_head=False)
            yield Padding(rows, (0, 0, 0, _INDENT), expand=False)


class _Group(NamedTuple):
    """Rows with the same names; ``end``: the place after the last one."""

    names: Sequence[str]
    end: int


class _Headed(NamedTuple):
    """A table without some columns of names, whose texts stand above its rows."""

    table: Table
    names: Sequence[str]  # Of these columns
    groups: Sequence[_Group]


def _headed(table: Table, width: int) -> _Headed:
    """Take columns of names out of a table until it fits; the last one, and ranks, stay.

    First goes the one whose text changes least often from row to row.
    """
    fields = table.fields[: table.keys]
    are_names = all(field.kind is FieldType.TEXT for field in fields)
    inside = [*range(len(table.fields))]
    above: list[int] = []
    rest = table
    while are_names and len(above) + 1 < table.keys and not fits_terminal(rest, width):
        names = [at for at in inside if at < table.keys]
        above.append(min(names, key=lambda at: len(_groups_of(table, [at]))))
        inside.remove(above[-1])
        rest = table.at(inside)
    return _Headed(rest, [fields[at].name for at in above], _groups_of(table, above))


def _beginning_of(table: Table, place: int) -> str:
    """Return the words that all names of a column begin with, up to the last ``_``, if any."""
    names = [text_of(*row[place]) for row in table.cells()]
    if len({*names}) < 2 or table.fields[place].kind is not FieldType.TEXT:
        return ""
    first = min(names)
    common, underscore, _ = first[: common_beginning(first, max(names))].rpartition("_")
    return common + underscore


def _without_beginning(table: Table, place: int, beginning: str) -> Table:
    """Return a table whose names in a column lack their beginning."""
    rows = []
    for row in table.cells():
        cells: list[FieldValue] = [cell for _, cell in row]
        cells[place] = f"…{text_of(*row[place]).removeprefix(beginning)}"
        rows.append(cells)
    return replace(table, rows=rows)


def _groups_of(table: Table, places: Sequence[int]) -> list[_Group]:
    """Return the groups of rows that follow each other and have the same texts in columns."""
    groups: list[_Group] = []
    for end, row in enumerate(table.cells(), 1):
        names = [text_of(*row[at]) for at in places]
        if groups and groups[-1].names == names:
            groups.pop()
        groups.append(_Group(names, end))
    return groups


def _rows_of(table: RichTable, start: int, end: int, has_head: bool) -> RichTable:
    """Return some rows of a table, with columns as wide as in all of it."""
    from rich.table import Table as RichTable

    part = RichTable(**_PLAIN, show_header=has_head)
    for column in table.columns:
        part.add_column(column.header, justify=column.justify, overflow="fold", width=column.width)
    columns = [list(column.cells)[start:end] for column in table.columns]
    for cells in zip(*columns, strict=True):
        part.add_row(*cells)
    return part


def _side_by_side(table: Table, width: int) -> Iterator[RichTable]:
    """Make tables of at most ``width`` characters, each with the names of rows."""
    from rich.table import Table as RichTable
    from rich.text import Text

    for folds, separator in ((False, " "), (True, " "), (True, "\n")):
        columns = _terminal_columns(table, separator, folds)
        if _width_of(columns) <= width:
            break
    widths = _widths_of(columns)
    are_texts = [field.kind is FieldType.TEXT for field in table.fields]
    keys = _widths_of_names(widths, are_texts, table.keys, width)
    short = [_fitting(columns[at][1:], most) for at, most in enumerate(keys)]
    room = width - sum(keys) - _GAP * len(keys)
    others = []
    for wanted, is_text in zip(widths[table.keys :], are_texts[table.keys :], strict=True):
        others.append(max(1, min(wanted, room)) if is_text else wanted)
    shown_widths = [*keys, *others]
    for block in _blocks(others, room):
        part = RichTable(**_PLAIN)
        shown = [*range(len(keys)), *(len(keys) + at for at in block)]
        for at in shown:
            side: Any = "left" if are_texts[at] else "right"
            heading = Text(columns[at][0])
            part.add_column(heading, justify=side, overflow="fold", width=shown_widths[at])
        for texts in zip(*(columns[at][1:] for at in shown), strict=True):
            names = [known[text] for known, text in zip(short, texts, strict=False)]
            # Text: a model's name is never markup.
            part.add_row(*map(Text, [*names, *texts[len(keys) :]]))
        yield part


def _fitting(texts: Sequence[str], most: int) -> Mapping[str, str]:
    """Return the texts of a column by themselves: whole if they can be folded between words."""
    words = [word for text in texts for word in text.split()]
    if max(map(len, words), default=0) <= most:
        return {text: text for text in texts}
    return shorten_names(texts, most)


def _widths_of_names(
    widths: Sequence[int], are_texts: Sequence[bool], names: int, width: int
) -> list[int]:
    """Return the widths of names, the first of all columns, so that values stand beside them.

    Where all columns fit, names take what is left; else half of the width at most, but what the
    widest value leaves. Texts can be folded.
    """
    keys = [*widths[:names]]
    others = widths[names:]
    room = width - _GAP * len(keys)
    free = room - sum(others) - _GAP * (len(others) - 1)
    least = sum(min(each, _SHORTEST) for each in keys)
    needed = []
    for wanted, is_text in zip(others, are_texts[names:], strict=True):
        needed.append(min(wanted, _SHORTEST) if is_text else wanted)
    widest = max(needed, default=0)
    most = free if free >= least else min(room - widest, max(room // 2, least))
    while sum(keys) > most and max(keys, default=0) > _SHORTEST:
        keys[keys.index(max(keys))] -= 1
    while sum(keys) > room - widest and max(keys, default=0) > _NARROWEST:
        keys[keys.index(max(keys))] -= 1
    return keys


def _terminal_columns(table: Table, separator: str, folds: bool) -> list[list[str]]:
    """Format the columns of a table; ``separator`` stands between a value and its interval."""
    rows = [[cell for _, cell in row] for row in table.cells()]
    columns = []
    for at, field in enumerate(table.fields):
        cells = [row[at] for row in rows]
        columns.append(_terminal_column(field, cells, separator, folds and field.folded))
    return columns


def _widths_of(columns: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    return [max(cell_len(s) for text in column for s in text.split("\n")) for column in columns]


def _width_of(columns: Sequence[Sequence[str]]) -> int:
    """Return the width of columns side by side."""
    return sum(_widths_of(columns)) + _GAP * (len(columns) - 1)


def _terminal_column(
    field: Field, cells: Sequence[TableCell], separator: str, fold: bool
) -> list[str]:
    """Format a column with its name; numbers with and without a sign end in one place."""
    longest = max((len(sign_of(field, cell)) for cell in cells), default=0)
    words = field.name.split() if fold else [field.name]
    texts = ["\n".join(map(printable, words))]
    for cell in cells:
        bounds = bounds_of(field, cell)
        if not field.is_difference and bounds and separator == " ":
            bounds = f"({bounds})"
        text = separator.join(filter(None, (text_of(field, cell), bounds)))
        texts.append(f"{text}{sign_of(field, cell):<{longest}}")
    return texts


def _blocks(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Yield the places of columns in tables of at most ``room``, at least one in each."""
    block: list[int] = []
    left = room
    for at, width in enumerate(widths):
        if block and width > left:
            yield block
            block = []
            left = room
        block.append(at)
        left -= width + _GAP
    yield block
