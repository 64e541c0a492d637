"""What a field of a record says of the flag that it is."""

from __future__ import annotations

from dataclasses import dataclass

THE_MODEL = "The model"  # Heading of the help
SERVICES = "Servers and providers"  # Heading of the help
MACHINE = "This machine or cluster"  # Heading of the help
COST = "Cost"  # Heading of the help


@dataclass(frozen=True, slots=True)
class Option:
    """How an option is shown, and where its value goes.

    ``to`` is the record that takes it, and its field there if that has another name:
    ``calls.threads``. Records are ``entry``, ``settings`` and ``resources`` of a model, ``serve``,
    ``calls``, ``sweep`` and ``asking``; without one, who reads the option says what it does.
    """

    text: str  # of the help
    heading: str = ""
    metavar: str | None = None
    to: str = ""
    of_some: bool = False  # only commands that name it have it
    choices: tuple[str, ...] = ()
    is_common: bool = False  # others are in the long help only

    @property
    def place(self) -> str:
        return self.to.partition(".")[0]
