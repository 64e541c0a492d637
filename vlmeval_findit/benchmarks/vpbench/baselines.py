"""What needs no model: the first option, and any option.  They read the message as a model does."""

from __future__ import annotations

import re
from pathlib import Path

from ...core.benchmark import Baseline
from ...core.files import sha256_of
from ...core.messages import Message, PartKind
from ...core.replies import Recorded
from .question import VPQuestion

_OPTION = re.compile(r"([A-D])\. +\S")


def letters_offered(said: str) -> list[str]:
    r"""The letters of the options that stand at the end of a text, before its last line.

    >>> letters_offered("A. is no option here\nWhich?\nA. cat\nB. dog\nC. \nAnswer.")
    ['A', 'B']
    """
    found: list[str] = []
    for line in reversed(said.splitlines()[:-1]):
        if not re.match(r"[A-D]\.", line):
            break
        option = _OPTION.match(line)
        found += [option[1]] if option else []
    return found[::-1]


def first_option(message: Message, question: VPQuestion) -> tuple[str, Recorded]:
    """The first option there is."""
    return _letters(message)[0], _ENDED


def random_option(message: Message, question: VPQuestion) -> tuple[str, Recorded]:
    """Any option, the same one for the same words and the same names of pictures."""
    seen = [
        Path(part.value).name if part.kind is PartKind.IMAGE else part.value for part in message
    ]
    seed = sha256_of(*(f"{value}\n".encode() for value in seen))
    letters = _letters(message)
    return letters[int(seed, 16) % len(letters)], _ENDED


def _letters(message: Message) -> list[str]:
    said = "\n".join(part.value for part in message if part.kind is PartKind.TEXT)
    return letters_offered(said) or ["A"]


_ENDED = Recorded(finish_reason="stop")

BASELINES = {
    "FirstOption": Baseline(first_option),
    "RandomOption": Baseline(random_option),
}
"""By the names of their models."""
