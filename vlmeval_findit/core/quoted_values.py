"""Write values of files and servers for messages: hidden first, then cut."""

from __future__ import annotations

import reprlib
from itertools import islice
from typing import Any

from .formatting import printable, shorten
from .redaction import scrub


class _BoundedRepr(reprlib.Repr):
    """Writes the beginning of a value, however large or deep it is."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 12
        self.maxstring = self.maxother = self.maxlong = _MOST_SHOWN

    def repr_str(self, value: str, level: int) -> str:
        return super().repr_str(_scrubbed(value), level)

    def repr_int(self, value: int, level: int) -> str:
        if value.bit_length() > 4 * _MOST_SHOWN:
            return f"a whole number of {value.bit_length():,} bits"
        return repr(value)

    def repr_dict(self, value: dict[Any, Any], level: int) -> str:
        if level <= 0 and value:
            return "{...}"
        # Not sorted: keys may be of several types.
        pairs = [
            f"{self.repr1(key, level - 1)}: {self.repr1(each, level - 1)}"
            for key, each in islice(value.items(), self.maxdict)
        ]
        more = ["..."] if len(value) > self.maxdict else []
        return f"{{{', '.join([*pairs, *more])}}}"


_MOST_SHOWN = 60
_BOUNDED = _BoundedRepr()


def quoted_value(value: object, most: int = _MOST_SHOWN) -> str:
    """Write a value of a file or a server: scrubbed, printable, and at most ``most`` long.

    >>> quoted_value({"a": [1, "b"]}), quoted_value("x" * 10**6, most=9)
    ("{'a': [1, 'b']}", "'xxx…xxx'")
    """
    return shorten(printable(scrub(_BOUNDED.repr(value))), most)


def plain_value(value: object, most: int = _MOST_SHOWN) -> str:
    """Write a text without quotes, and other values as :func:`quoted_value` does.

    >>> plain_value("a\\x1b[31m"), plain_value(["b"])
    ('a\\\\x1b[31m', "['b']")
    """
    if isinstance(value, str):
        return shorten(printable(_scrubbed(value)), most)
    return quoted_value(value, most)


# Signs of a text's beginning and end that are looked through: of what is between nothing is shown
_SEARCHED = 20_000


def _scrubbed(text: str) -> str:
    if len(text) > 2 * _SEARCHED:
        text = f"{text[:_SEARCHED]}…{text[-_SEARCHED:]}"
    return scrub(text)
