"""Step 3: what a reply says that its answer is.  The last conclusion is the one that counts."""

from __future__ import annotations

import re

from .letters import BRACKETED, letters_in

_JOINED = rf"{BRACKETED}(?:(?: ?[,/] ?(?:and |or )?| and | or ){BRACKETED}){{0,3}}"
"""Letters, two of them where a reply does not decide."""

_SUBJECT = r"(?:answer|ans\.?|choice|option)"
"""Adjectives before it are allowed, and change nothing."""

_LINK = r"(?: is| should be| would be| ?[:=]|\n){1,4}"

_CALLED = r"(?:\s?(?:the )?(?:option|choice|letter)(?: is| ?[:=])?)?"

_PREDICATE = r" is (?:the )?(?:correct|right|best)\b"

_NOT_DENIED = r"(?<!not )(?<!n't )(?<!nor )"

_CONCLUSION = re.compile(
    rf"(?<!\w)(?:{_SUBJECT}{_LINK}{_CALLED}"
    rf"|{_NOT_DENIED}(?:choose|pick|select|go with){_CALLED})\s?(?P<said>{_JOINED})"
    rf"|(?<!\w){_NOT_DENIED}(?P<praised>{_JOINED}){_PREDICATE}",
    re.IGNORECASE | re.ASCII,
)


def concluded(text: str) -> set[str]:
    """The letters of the last conclusion; several where it leaves open which.

    >>> concluded("I thought the answer is B, but the right choice would be option D.")
    {'D'}
    >>> concluded("The answer is a dog."), sorted(concluded("Answer: A or B"))
    (set(), ['A', 'B'])
    """
    last = ""
    for match in _CONCLUSION.finditer(text):
        last = match["said"] or match["praised"]
    return set(letters_in(last))
