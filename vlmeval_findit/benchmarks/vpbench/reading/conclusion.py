"""Step 3: what a reply says that its answer is.  The last conclusion is the one that counts."""

from __future__ import annotations

import re

from .letters import BRACKETED, letters_in, whole

_JOINED = rf"{BRACKETED}(?:(?: ?[,/] ?(?:and |or )?| and | or ){BRACKETED}){{0,3}}"
"""Letters, two of them where a reply does not decide."""

_DENIALS = ("not ", "n't ", "nor ")

_SUBJECTS = whole("answer", "ans", "choice", "option")
"""Adjectives before them are allowed, and change nothing."""

_LINK = r"\.?(?: is| should be| would be| ?[:=]|\n){1,4}"

_VERBS = "|".join(
    rf"{verb}(?<!\w{verb})" + "".join(rf"(?<!{denial}{verb})" for denial in _DENIALS)
    for verb in ("choose", "pick", "select", "go with")
)

_CALLED = r"(?:\s?(?:the )?(?:option|choice|letter)(?: is| ?[:=])?)?"

_SAID = re.compile(rf"(?:(?:{_SUBJECTS}){_LINK}|{_VERBS}){_CALLED}\s?({_JOINED})", re.ASCII)
"""The answer is so, I choose so."""

_PRAISE = re.compile(r" is (?:the )?(?:correct|right|best)\b", re.ASCII)

_PRAISED = re.compile(
    rf"(?<!\w){''.join(f'(?<!{denial})' for denial in _DENIALS)}({_JOINED})\Z", re.ASCII
)
"""What stands before a praise."""

_FARTHEST = 40
"""Characters that letters take at most, and what denies them."""


def concluded(text: str) -> set[str]:
    """The letters of the last conclusion; several where it leaves open which.

    >>> concluded("I thought the answer is B, but the right choice would be option D.")
    {'D'}
    >>> concluded("The answer is a dog."), sorted(concluded("Answer: A or B"))
    (set(), ['A', 'B'])
    """
    text = text.lower()
    last, at = "", -1
    for match in _SAID.finditer(text):
        last, at = match[1], match.end()
    for praise in _PRAISE.finditer(text, max(0, at)):
        before = _PRAISED.search(text[max(0, praise.start() - _FARTHEST) : praise.start()])
        if before:
            last = before[1]
    return set(letters_in(last))
