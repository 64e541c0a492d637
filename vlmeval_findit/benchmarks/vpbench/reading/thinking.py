"""What a model said once it had thought."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, Literal

_BEGIN = re.compile("<think>", re.IGNORECASE)
_END = re.compile("</think>", re.IGNORECASE)


class _Thinks(Enum):
    STILL = "still"


THINKS: Final = _Thinks.STILL
"""A reply that ends before the model spoke."""


def spoken(reply: str) -> str | Literal[_Thinks.STILL]:
    """What comes after the last thought; :data:`THINKS` where a thought does not end.

    >>> spoken("<think>A? B?</think> C")
    ' C'
    >>> spoken("<think>A? B?") is THINKS
    True
    """
    end = 0
    for end_of_thought in _END.finditer(reply):
        end = end_of_thought.end()
    return THINKS if _BEGIN.search(reply, end) else reply[end:]
