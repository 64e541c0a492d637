"""What a reply chose: a letter, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

Options = Mapping[str, str]
"""The texts of the options by their letters, in order."""


class Reason(Enum):
    """Why a reply has no letter."""

    FAILED = "failed"
    """There is no reply: the call failed."""
    EMPTY = "empty"
    """The reply is blank."""
    TRUNCATED = "truncated"
    """It ends while the model still thinks."""
    AMBIGUOUS = "ambiguous"
    """It names several options."""
    NO_CHOICE = "no_choice"
    """It names none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Either a letter or a reason, never both."""

    letter: str | None = None
    reason: Reason | None = None

    def __post_init__(self) -> None:
        if (self.letter is None) == (self.reason is None):
            raise ValueError(f"{self.letter!r} with {self.reason}: one of the two")
