"""Names that come from outside and become files: taken only where they stay below a folder."""

from __future__ import annotations

import re
import unicodedata

_NO_CHARACTERS = ("Cc", "Cs")
"""Unicode's categories of control characters and of halves of a surrogate pair."""


def unsafe(name: str) -> str | None:
    """Why a name is not joined to a folder, or None: then it names a place below it.

    Backslashes count as slashes, and drive letters as absolute, wherever this runs: a table that
    is harmless on one system must not be harmful on another.

    >>> unsafe("Scenes/easy/1.jpg"), unsafe("../1.jpg"), unsafe("C:1.jpg")
    (None, 'climbs out of its folder', 'has an absolute path')
    """
    parts = name.replace("\\", "/").split("/")
    if any(unicodedata.category(sign) in _NO_CHARACTERS for sign in name):
        return "holds a control character"
    if parts[-1].strip() in ("", "."):
        return "names no file"
    if parts[0] == "" or re.match("[A-Za-z]:", name):
        return "has an absolute path"
    if ".." in parts:
        return "climbs out of its folder"
    return None
