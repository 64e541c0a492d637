"""Suggest names, and format text, numbers and CSV for people."""

from __future__ import annotations

import csv
import difflib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from io import StringIO
from typing import Any

from .synonyms import same_meaning

_LISTED = 40  # Longer lists do not help in an error message
_LONGEST_WORD = 200  # Comparing longer words would take long
_LEAST_LIKENESS = 0.5  # Less is no suggestion
TYPING_ERROR = 0.8
"""The least likeness of a word and the one that was meant, if letters alone may decide."""


def closest(word: str, words: Iterable[str], least_likeness: float = _LEAST_LIKENESS) -> str | None:
    """Return the word that was probably meant; None if no word is near.

    A word of another program goes before one that is only spelled alike.
    """
    words = tuple(words)
    if same := same_meaning(word, words):
        return same[0]
    near, likeness = _closest(word[:_LONGEST_WORD], words)
    return near if likeness > least_likeness else None


@lru_cache(maxsize=1024)  # folders of runs have thousands of files with the same wrong names
def _closest(word: str, words: tuple[str, ...]) -> tuple[str | None, float]:
    def likeness(candidate: str) -> tuple[float, int]:
        pair = (word.lower(), candidate.lower())
        ratio = difflib.SequenceMatcher(None, *pair).ratio()
        # Of equal ratios the longer common beginning wins: xyxx is nearer to xyxy than to yxyx.
        # (difflib's get_close_matches takes the last in the alphabet.)
        return ratio, common_beginning(*pair)

    best = max(words, key=likeness, default=None)
    return best, 0.0 if best is None else likeness(best)[0]


def common_beginning(left: str, right: str) -> int:
    """Count the characters with which both texts begin."""
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def flag_name(name: str) -> str:
    """Return a flag as it is typed.

    >>> flag_name("max_usd")
    '--max-usd'
    """
    return f"--{name.replace('_', '-')}"


def no_effect(name: str, why: str, advice: str = "Leave it out") -> str:
    """Say that something stated changes nothing: a flag, a key, a setting or an argument.

    >>> no_effect("--from", "grid1000 is a space")
    '--from has no effect: grid1000 is a space. Leave it out'
    """
    return f"{name} has no effect: {why}" + (f". {advice}" if advice else "")


def suggestion(word: str, words: Iterable[str], least_likeness: float = _LEAST_LIKENESS) -> str:
    """Return ``: did you mean xyxy?`` if a word is near, else the list of all words."""
    words = list(words)
    best = closest(word, words, least_likeness)
    if best is not None:
        return f": did you mean {best}?"
    return f" (there are: {', '.join(words)})" if 0 < len(words) <= _LISTED else ""


def ended(text: str) -> str:
    """Return a sentence with its end.

    >>> ended("unknown model 'a'"), ended("unknown model 'a': did you mean b?")
    ("unknown model 'a'.", "unknown model 'a': did you mean b?")
    """
    return text if text.endswith((".", "?")) else f"{text}."


# Unicode's categories of control characters, lone surrogates and ends of lines
_NOT_SHOWN = ("Cc", "Cs", "Zl", "Zp")


def is_one_line(text: str) -> bool:
    """Return whether text has no ends of lines, control characters or lone surrogates."""
    # Text that is printable has no sign of these categories, and most is.
    return text.isprintable() or not any(unicodedata.category(sign) in _NOT_SHOWN for sign in text)


# Callers escape for HTML, sheets and so on; here goes what should not be shown anywhere.

# Beginnings of a spreadsheet's formula, in both widths
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def printable(text: str) -> str:
    """Escape control characters, line breaks, direction marks and lone surrogates.

    >>> printable("a\\tb\\u202ec")
    'a\\\\x09b\\\\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


_JOINERS = "\u200c\u200d"  # In Persian and in emoji: they stay


def _visible(sign: str) -> str:
    if sign.isprintable() or sign in _JOINERS or unicodedata.category(sign) == "Zs":
        return sign
    number = ord(sign)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def printable_lines(text: str) -> str:
    """Escape as :func:`printable`, but for the ends of lines."""
    if text.isprintable():
        return text
    return "\n".join(map(printable, text.split("\n")))


def shorten(text: str, most: int) -> str:
    """Shorten text in the middle, because names differ at either end."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def shorten_names(names: Iterable[str], most: int) -> dict[str, str]:
    """Shorten names of one table or chart to ``most`` characters; different ones stay different.

    Names whose ends are alike keep what differs between them, with the words around it where there
    is room; else they are numbered. No number is cut: what is left would read as another one.

    >>> names = ["tune-lr1e5-step1000-merged", "tune-lr1e5-step2000-merged", "base"]
    >>> list(shorten_names(names, 16).values())
    ['tun…step1000…ged', 'tun…step2000…ged', 'base']
    """
    short = {name: _cut_in_the_middle(name, most) for name in names}
    for group in _alike(short):
        short |= _around_differences(group, most)
    # Those of two groups may differ from each other where both were cut.
    together = [name for group in _alike(short) for name in group]
    if together:
        short |= _around_differences(together, most)
    numbered = [name for group in _alike(short) for name in group]
    for number, name in enumerate(numbered, 1):
        end = f"…{number}"
        short[name] = f"{name[: most - len(end)]}{end}"
    return short


def _cut_in_the_middle(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{_head_of(name, most - 1 - tail)}…{_tail_of(name, tail)}"


def _head_of(name: str, most: int) -> str:
    """Return the beginning of a name, without a part of a number."""
    while 0 < most < len(name) and name[most - 1].isdigit() and name[most].isdigit():
        most -= 1
    return name[:most]


def _tail_of(name: str, most: int) -> str:
    """Return the end of a name, without a part of a number."""
    return _head_of(name[::-1], most)[::-1]


def _alike(short: Mapping[str, str]) -> list[list[str]]:
    """Return the names that are shortened to the same text."""
    groups: dict[str, list[str]] = {}
    for name, text in short.items():
        groups.setdefault(text, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _around_differences(names: Sequence[str], most: int) -> dict[str, str]:
    """Cut names where all are alike: ``head…what differs…tail``; none where there is no room."""
    head = common_beginning(min(names), max(names))
    reversed_rests = [name[head:][::-1] for name in names]
    tail = common_beginning(min(reversed_rests), max(reversed_rests))
    whole_head, whole_tail = _to_ends_of_words(names[0], head, tail)
    room = _room_around(names, whole_head, whole_tail, most)
    if room >= 0:
        head, tail = whole_head, whole_tail
    else:
        room = _room_around(names, head, tail, most)
    if room < 0:
        return {}
    shown_tail = min(tail, room // 2)
    shown_head = min(head, room - shown_tail)
    cut = {}
    for name in names:
        begin = _head_of(name[:head], shown_head)
        end = _tail_of(name[len(name) - tail :], shown_tail)
        before = "" if shown_head == head else "…"  # Nothing is cut
        after = "" if shown_tail == tail else "…"
        cut[name] = f"{begin}{before}{name[head : len(name) - tail]}{after}{end}"
    return cut


def _to_ends_of_words(name: str, head: int, tail: int) -> tuple[int, int]:
    """Return lengths of a head and a tail that leave the words whole of which they cut a part."""
    while head and name[head - 1].isalnum():
        head -= 1
    while tail and name[len(name) - tail].isalnum():
        tail -= 1
    return head, tail


def _room_around(names: Sequence[str], head: int, tail: int, most: int) -> int:
    """Return the characters that are left beside the longest difference and two signs ``…``."""
    return most - 2 - max(len(name) - head - tail for name in names)


def alternatives(names: Sequence[str]) -> str:
    """Name alternatives.

    >>> alternatives(["a"]), alternatives(["a", "b"]), alternatives(["a", "b", "c"])
    ('a', 'a or b', 'a, b or c')
    """
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def first_few(names: Sequence[str], most: int = 3) -> str:
    """Name the first of many.

    >>> first_few(["a", "b", "c", "d"])
    'a, b, c and 1 more'
    """
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(printable, names[:most])) + rest


def counted(number: int, noun: str, plural: str = "") -> str:
    """Format a count: "1 run", "1,200 runs", "2 boxes"; state a ``plural`` of another form."""
    usual = f"{noun}es" if noun.endswith("x") else f"{noun}s"
    return f"{number:,} {agreeing(number, noun, plural or usual)}"


def agreeing(number: int, one: str, more: str) -> str:
    """Return the word that agrees with a number: the verb, or the noun.

    >>> agreeing(1, "is", "are"), agreeing(0, "is", "are")
    ('is', 'are')
    """
    return one if number == 1 else more


def duration(seconds: float | None) -> str:
    """Format seconds: ``1 h 02 min``, ``3 min 05 s``, ``7 s``."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"


def as_csv(rows: Sequence[Mapping[str, Any]], header: Sequence[str] = ()) -> str:
    """Format rows as CSV: four decimals or digits, empty for None, formulas disarmed (OWASP).

    ``header`` are the columns (none: those of the first row).
    """
    out = StringIO()
    writer = csv.DictWriter(out, header or list(next(iter(rows), {})), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _csv_value(value) for name, value in row.items()})
    return out.getvalue()


def _csv_value(value: Any) -> Any:
    if isinstance(value, float):
        is_small = 0 < abs(value) < 0.1  # Four decimals would leave nothing of a small amount
        return f"{value:.4g}" if is_small else f"{value:.4f}"
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
