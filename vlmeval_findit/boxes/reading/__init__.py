"""From a reply to numbers: reading what a model said (protocol section 3).

:func:`read` never raises, evaluates nothing, and takes time linear in the length of the reply.
``boxes`` holds what all formats share, ``text`` and ``json_`` the two output formats.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ..records import Reading
from ..reply_format import ReplyFormat
from . import json_, text

Reader = Callable[[str], Reading]


def read(reply: str, how: ReplyFormat) -> Reading:
    """What a reply says, read as its prompt prescribed.

    Args:
        reply: the model's text, whatever it is.
        how: the format that the reply should have.

    Returns:
        Boxes in the units of the reply, their labels and frames, and why the reply is not adherent.
    """
    return reader(how)(reply)


@lru_cache(maxsize=4096)
def reader(how: ReplyFormat) -> Reader:
    """The function that reads replies of a format: chosen once, called for every reply."""
    if how.output == "json":
        return json_.video(how) if how.frames > 1 else json_.image(how)
    if how.frames > 1:
        return text.video(how)
    return text.labelled(how) if how.multilabel else text.unlabelled(how)
