"""Step 2: what only dresses a text goes; lines and words stay apart by one sign.

What stands between words becomes a blank, what stands at a letter goes: ``final_answer: **B**.`` is
``final answer: B.``
"""

from __future__ import annotations

import re

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

_FENCE = re.compile(r"^ ?(?:```|~~~)(?:[a-z][\w+-]+)?$", re.MULTILINE | re.IGNORECASE)
"""A line that begins or ends code, with the language's name."""

_TAG = re.compile(r"</?(?:[A-Za-z][A-Za-z][^<>\n]{0,200}|[a-z])>|<\|[^<>|\n]{1,40}\|>")
"""Of HTML, or a model's own.  ``<B>`` is a letter in brackets."""

_LATEX = re.compile(r"\\(?:(?:boxed|text|math)(?:bf|it|rm|sf|tt)?(?![a-z])|(?=[()\[\]]))")

_QUOTING = re.compile(r"(?<!\w)'|'(?!\w)")
"""A single quote that is no apostrophe."""

_BULLET = re.compile(r"^(?:[-+>\u2022\u2023\u25e6\u25aa\u25cf\u00b7\u2013\u2014] )+", re.MULTILINE)

_BEFORE_MARK = re.compile(r" (?=[.,:;!?)\]])")


def cleaned(text: str) -> str:
    r"""A text without markup: its lines, none of them empty, single blanks between words.

    >>> cleaned("```json\n{'answer':  \"B\"}\n```")
    'answer: B'
    >>> cleaned(r"$\boxed{\text{D}}$."), cleaned("- __it's__ <b>C</b>")
    ('D.', "it's C")
    """
    text = _FENCE.sub("", _lines(text))
    text = _LATEX.sub(" ", _TAG.sub(" ", text.replace("`", "")))
    text = _QUOTING.sub("", _underscores(text.translate(_QUOTES)))
    return _BULLET.sub("", _BEFORE_MARK.sub("", _lines(text)))


def _lines(text: str) -> str:
    """Lines without blanks at their ends, none empty; one blank where there were more."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def _underscores(text: str) -> str:
    """Between words they are blanks, elsewhere emphasis."""
    return re.sub(r"(?<=[^\W_])_(?=[^\W_])", " ", text).replace("_", "")


def without_list(text: str, options: Options) -> str:
    r"""A cleaned text without copies of the whole list of options, each with its letter and a mark.

    >>> without_list("A. cat\nB) dog\nAnswer: B", {"A": "cat", "B": "dog"})
    '\nAnswer: B'
    """
    if not options:
        return text
    items = r"\s?".join(
        rf"[(\[]?{letter} ?(?:[.):\]]|[-\u2013\u2014] )\s?{_words(own)}(?!\w)[.,;]?"
        for letter, own in options.items()
    )
    return re.sub(rf"(?<!\w){items}\s?", "\n", text, flags=re.IGNORECASE)


def _words(text: str) -> str:
    return r"\s".join(map(re.escape, text.split()))
