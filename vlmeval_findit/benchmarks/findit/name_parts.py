"""A name that is taken apart from the front."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ...core.plugin_table import Table


class NameParts:
    """What is left of a name while its parts are taken from the front."""

    def __init__(self, text: str) -> None:
        self.text = text

    def take(self, words: Iterable[str]) -> str | None:
        """The longest of the words that stands in front as a whole part, taken off; else None."""
        for word in sorted(words, key=len, reverse=True):
            if self.text == word or self.text.startswith(word + "_"):
                self.text = self.text[len(word) + 1 :]
                return word
        return None

    def take_row(self, table: Table[Any]) -> str | None:
        """The name of a row that stands in front, taken off: one of ours, else a plug-in's."""
        return self.take(table.ours) or self.take(table.added())

    def take_match(self, pattern: str) -> str | None:
        found = re.match(pattern + r"(?=_|\Z)", self.text)
        if found is None:
            return None
        self.text = self.text[found.end() + 1 :]
        return found[1]

    def part(self) -> str:
        """The next part, for an error message."""
        return self.text.split("_", 1)[0]
