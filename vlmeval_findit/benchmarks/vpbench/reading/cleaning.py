"""Step 2: what only dresses a text goes; lines and words stay apart by one sign.

What stands between words becomes a blank, what stands at a letter goes: ``final_answer: **B**.`` is
``final answer: B.``
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

from ..choice import Options

_QUOTES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b`\u00b4", "'"),
        **dict.fromkeys(
            '"\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f'
        ),
        **dict.fromkeys("*#$"),
        **dict.fromkeys("{}", " "),
        **dict.fromkeys("\u3010\u3014\u3016", "["),
        **dict.fromkeys("\u3011\u3015\u3017", "]"),
    }
)
"""Quotes, emphasis and braces; brackets of other scripts as ours."""

_FENCE = re.compile(r"\n(?:```|~~~)(?:[A-Za-z][\w+-]+)?(?=\n)")
"""A line that begins or ends code, with the language's name."""

_TAG = re.compile(r"</?(?:[A-Za-z][A-Za-z][^<>\n]{0,200}|[a-z])>|<\|[^<>|\n]{1,40}\|>")
"""Of HTML, or a model's own.  ``<B>`` is a letter in brackets."""

_LATEX = re.compile(r"\\(?:(?:boxed|text|math)(?:bf|it|rm|sf|tt)?(?![a-z])|(?=[()\[\]]))")

_QUOTING = re.compile(r"'(?:(?<!\w')|(?!\w))")
"""A single quote that is no apostrophe."""

_BULLET = re.compile(r"\n(?:[-+>\u2022\u2023\u25e6\u25aa\u25cf\u00b7\u2013\u2014] )+")

_WITHIN_WORD = re.compile(r"_(?<=[^\W_]_)(?=[^\W_])")

_BEFORE_MARK = re.compile(r" (?=[.,:;!?)\]])")


_MOST_ACCENTS = 30
"""That a character has in any language (UAX 15, stream-safe text)."""


def composed(text: str) -> str:
    """A text in NFKC: full-width signs and ligatures as plain ones.

    Of accents piled up without end only so many stay as languages have: to put them in their order
    takes time in proportion to the square of their number.
    """
    if text.isascii():
        return text
    if len(text) > _MOST_ACCENTS:
        text = _piled_accents().sub("", text)
    return unicodedata.normalize("NFKC", text)


@cache
def _piled_accents() -> re.Pattern[str]:
    signs = "".join(filter(unicodedata.combining, map(chr, range(sys.maxunicode + 1))))
    return re.compile(rf"(?<=[{signs}]{{{_MOST_ACCENTS}}})[{signs}]+")


def cleaned(text: str) -> str:
    r"""A text without markup: its lines, none of them empty, single blanks between words.

    >>> cleaned("```json\n{'answer':  \"B\"}\n```")
    'answer: B'
    >>> cleaned(r"$\boxed{\text{D}}$."), cleaned("- __it's__ <b>C</b>")
    ('D.', "it's C")
    """
    text = _FENCE.sub("\n", f"\n{_lines(text)}\n")
    text = _LATEX.sub(" ", _TAG.sub(" ", text.replace("`", "")))
    text = _QUOTING.sub("", _underscores(text.translate(_QUOTES)))
    return _BULLET.sub("\n", f"\n{_BEFORE_MARK.sub('', _lines(text))}").strip("\n")


def _lines(text: str) -> str:
    """Lines without blanks at their ends, none empty; one blank where there were more."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def _underscores(text: str) -> str:
    """Between words they are blanks, elsewhere emphasis."""
    return _WITHIN_WORD.sub(" ", text).replace("_", "")


def without_list(text: str, options: Options) -> str:
    r"""A cleaned text without copies of the whole list of options, each with its letter and a mark.

    >>> without_list("A. cat\nB) dog\nAnswer: B", {"A": "cat", "B": "dog"})
    '\nAnswer: B'
    """
    lowered = text.lower()
    if not options or not all(own.lower() in lowered for own in options.values()):
        return text
    items = r"\s?".join(
        rf"[(\[]?{letter} ?(?:[.):\]]|[-\u2013\u2014] )\s?{_words(own)}(?!\w)[.,;]?"
        for letter, own in options.items()
    )
    return re.sub(rf"(?<!\w){items}\s?", "\n", text, flags=re.IGNORECASE)


def _words(text: str) -> str:
    return r"\s".join(map(re.escape, text.split()))
