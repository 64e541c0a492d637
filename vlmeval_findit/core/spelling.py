"""Words that people write: whether one can stand in a line, and what was probably meant by it."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import takewhile

_LISTED = 40
"""Lists longer than this help nobody in an error message."""


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


_NOT_SHOWN = ("Cc", "Cs", "Zl", "Zp")
"""Unicode's categories of control characters, halves of a surrogate pair, and ends of lines."""


def is_one_line(text: str) -> bool:
    r"""Whether text has neither ends of lines nor signs that cannot be shown or written.

    >>> is_one_line("a grey cat"), is_one_line("a\tcat")
    (True, False)
    """
    return not any(unicodedata.category(sign) in _NOT_SHOWN for sign in text)
