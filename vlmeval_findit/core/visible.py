"""Text that came from outside, as it is shown: visible, on one line, and never a formula.

Names of models come from files and command lines, labels from models.  Whoever writes them into a
page, a sheet, a table or a terminal escapes the marks of that language himself; what no reader
should meet anywhere is taken out here.
"""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""How a spreadsheet knows a formula, in both widths."""


def visible(text: str) -> str:
    """Text with what cannot be seen written out: control characters, line breaks, marks that turn
    the direction of what follows, halves of surrogate pairs.

    >>> visible("a\\tb\\u202ec")
    'a\\\\x09b\\\\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(sign if _shown(sign) else _escape(sign) for sign in text)


_JOINERS = "\u200c\u200d"
"""Of letters in Persian and of parts of emoji: they stay."""


def _shown(sign: str) -> bool:
    return sign.isprintable() or sign in _JOINERS or unicodedata.category(sign) == "Zs"


def _escape(sign: str) -> str:
    number = ord(sign)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def short(text: str, most: int) -> str:
    """Text of at most so many characters: both ends, because names differ at either."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def duration(seconds: float | None) -> str:
    """Seconds as people read them: ``1 h 02 min``, ``3 min 05 s``, ``7 s``."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV with a header; numbers with four decimals, nothing where there is no value.

    Text that a spreadsheet would calculate has an apostrophe before it, as OWASP advises.
    """
    out = StringIO()
    writer = csv.DictWriter(out, list(next(iter(rows), {})), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _csv_value(value) for name, value in row.items()})
    return out.getvalue()


def _csv_value(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.4f}"
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
