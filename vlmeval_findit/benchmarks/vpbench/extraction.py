"""The letter of a reply as the authors take it, which is how published figures were made.

It finds a letter in nearly every text: "Answer: D" is A, "No box" is B, and a failed call, which
the host stores as "Failed to obtain answer via API.", is A.
"""

from __future__ import annotations

from .query import LETTERS

_NO_REPLY = "nan"
"""What a missing reply is as a text: their code has it from a table."""


def published_letter(reply: str | None) -> str | None:
    """The first of A to D in the whole reply in capitals; None where there is none.

    Without one the authors compare the whole text with the right letter, which it cannot be.

    >>> published_letter("Answer: D"), published_letter("person"), published_letter(None)
    ('A', None, 'A')
    """
    text = (_NO_REPLY if reply is None else reply).upper()
    return next((sign for sign in text if sign in LETTERS), None)
