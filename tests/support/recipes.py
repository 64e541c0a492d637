"""The recipes of docs/architecture.md: their files, and their commands as a user types them."""

from __future__ import annotations

import re
from typing import NamedTuple

from paths import ROOT


class Recipe(NamedTuple):
    """``files`` are contents by name, ``commands`` lines of a shell."""

    files: dict[str, str]
    commands: list[str]


def recipe(title: str) -> Recipe:
    """A section of the page."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
    files = re.findall(r"`([\w/]+\.py)`[^`]*:\n\n```python\n(.*?)^```", section, re.M | re.S)
    (shell,) = re.findall(r"^```sh(?: parsed)?\n(.*?)^```", section, re.M | re.S)
    return Recipe(dict(files), shell.strip().splitlines())
