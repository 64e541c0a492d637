"""Words that people write, and words that they are shown."""

from __future__ import annotations

import csv
import difflib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from io import StringIO
from itertools import takewhile
from typing import Any

_LISTED = 40  # Lists longer than this help nobody in an error message


def closest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant; None where none is near."""
    return _closest(word, tuple(words))


@lru_cache(maxsize=1024)  # folders of runs have thousands of files with the same wrong names
def _closest(word: str, words: tuple[str, ...]) -> str | None:
    def likeness(candidate: str) -> tuple[float, int]:
        ratio = difflib.SequenceMatcher(None, word.lower(), candidate.lower()).ratio()
        # Of two that are equally like it, the one that begins alike: xyxx is nearer xyxy than yxyx.
        pairs = zip(word.lower(), candidate.lower(), strict=False)
        return ratio, len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))

    best = max(words, key=likeness, default=None)
    return best if best is not None and likeness(best)[0] >= 0.5 else None


def nearest(word: str, words: Iterable[str]) -> str:
    """``: did you mean xyxy?`` when a word is near, else the list of what there is."""
    words = list(words)
    best = closest(word, words)
    if best is not None:
        return f": did you mean {best}?"
    return f" (there are: {', '.join(words)})" if 0 < len(words) <= _LISTED else ""


# Unicode's categories of control characters, halves of a surrogate pair, and ends of lines.
_NOT_SHOWN = ("Cc", "Cs", "Zl", "Zp")


def is_one_line(text: str) -> bool:
    """Whether text has neither ends of lines nor signs that cannot be shown or written."""
    return not any(unicodedata.category(sign) in _NOT_SHOWN for sign in text)


# --- text that came from outside, as it is shown --------------------------------------------------

# Whoever writes names or labels into a page, a sheet or a terminal escapes the marks of that
# language himself; what no reader should meet anywhere is taken out here.

# How a spreadsheet knows a formula, in both widths
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def visible(text: str) -> str:
    """Escape control characters, line breaks, direction marks and halves of surrogate pairs.

    >>> visible("a\\tb\\u202ec")
    'a\\\\x09b\\\\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(sign if _shown(sign) else _escape(sign) for sign in text)


_JOINERS = "\u200c\u200d"  # Of letters in Persian and of parts of emoji: they stay


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
    """A number of things: "1 run", "1,200 runs"."""
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
    """Format rows as CSV: four decimals, nothing for no value, text formulas disarmed (OWASP)."""
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
