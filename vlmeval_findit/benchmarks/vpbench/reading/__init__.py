"""The letter of a reply as a reader would take it.  From reply and options to a :class:`.Choice`.

Six steps; the first that finds something ends it:

1. a blank reply, one that never stopped thinking
2. markup and copied lists of options go (``cleaning``)
3. a conclusion: "the answer is B" (``conclusion``)
4. the letter that the reply begins with (``letters``)
5. the one letter that stands alone (``letters``)
6. the one option whose words are there (``texts``)

A letter is one of those whose option has a text.  Every step takes time in proportion to the length
of the reply, however it was made up: patterns repeat nothing without a bound that a failed match
would have to walk through again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....core.thinking import split_thought
from ..choice import Choice, Options, Reason
from .cleaning import cleaned, composed, without_list
from .conclusion import concluded
from .letters import leading, standing
from .texts import named


def read(reply: str, options: Options) -> Choice:
    """What a reply chose; whether the call failed is said by its record and not read here.

    Args:
        reply: the text.
        options: their texts by letter; one whose text is blank is none.

    >>> read("Between A and C, I'd say the answer is **C**.", {"A": "cat", "B": "dog", "C": "cow"})
    Choice(letter='C', reason=None)
    >>> read("A dog", {"A": "cat", "B": "dog"}).letter
    'B'
    >>> read("A or B", {"A": "cat", "B": "dog"}).reason
    <Reason.AMBIGUOUS: 'ambiguous'>
    """
    if not reply.strip():
        return Choice(reason=Reason.EMPTY)
    said = split_thought(composed(reply))
    if said.ends_inside:
        return Choice(reason=Reason.TRUNCATED)
    there = {letter: cleaned(composed(text)) for letter, text in options.items() if text.strip()}
    text = without_list(cleaned(said.answer), there)
    for step in (concluded, leading, standing):
        found = _one_of(letter for letter in step(text) if letter in there)
        if found is not None:
            return found
    return _one_of(named(text, there)) or Choice(reason=Reason.NO_CHOICE)


def _one_of(letters: Iterable[str]) -> Choice | None:
    """The one letter; ambiguous where there are several, None where there is none."""
    distinct = set(letters)
    if len(distinct) > 1:
        return Choice(reason=Reason.AMBIGUOUS)
    return Choice(distinct.pop()) if distinct else None
