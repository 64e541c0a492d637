"""Labels as they are compared (protocol section 5)."""

from __future__ import annotations

import string
from functools import lru_cache

_PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(maxsize=65536)
def plain_label(label: str) -> str:
    """A label as it is compared: lower case, no ASCII punctuation, single blanks."""
    return " ".join(label.lower().translate(_PUNCTUATION).split())
