"""Options of servers that this machine starts: one row each, for all tests that want one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlmeval_findit.core import flag_name

NUMBERS_ALONE = "it changes speed, and of numbers only the last bits"


@dataclass(frozen=True)
class ServerOption:
    """An option, which is a field of ``ServerOptions``, a flag of commands, and a key of files."""

    value: Any
    """Another than a server has without it."""
    why_same_answers: str | None = None
    """Why no answer depends on it; None: answers do."""


SERVER_OPTIONS: Mapping[str, ServerOption] = {
    "tensor_parallel": ServerOption(2, NUMBERS_ALONE),
}


def typed(name: str) -> str:
    """Return an option with its value, as a flag."""
    return f"{flag_name(name)} {SERVER_OPTIONS[name].value}"
