"""Patterns that are compiled when they are first used.

Python compiles a pattern anew in every process, and some have hundreds of signs: where most runs
need few of many patterns, all of them would make every command wait.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


class _LatePattern:
    """Stands for a compiled pattern; each of its methods is looked up once."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._stated = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._stated)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def late_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern as :func:`re.compile` does, but compile it when it is first used.

    >>> late_pattern("[0-9]+").findall("1 and 23")
    ['1', '23']
    """
    return cast(re.Pattern[str], _LatePattern(pattern, flags))
