"""Plain readers of JSON values: what has a wrong type counts as absent."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def object_or_empty(value: object) -> Mapping[str, Any]:
    """Return a JSON object, or an empty object for any other value."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    """Return the JSON objects of a list; none of any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def joined(texts: Iterable[object]) -> str:
    """Join those values that are text."""
    return "".join(text for text in texts if isinstance(text, str))


def count_of(value: object) -> int | None:
    """Return a count, of tokens for example, that may be written as text; None for other values.

    >>> [count_of(value) for value in (77, 77.0, "77", "77.0", "77e1", 7.5, "7,5", True)]
    [77, 77, 77, 77, 770, None, None, None]
    """
    if isinstance(value, str):
        text = _COUNT.fullmatch(value)
        value = int(text[1]) * 10 ** int(text[2] or 0) if text else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < _MOST else None


def largest_count(value: object) -> int | None:
    """Return a count, as :func:`count_of` does; of several values of a key, in a list, the largest.

    >>> largest_count([77, "78", "?"]), largest_count(77), largest_count("?")
    (78, 77, None)
    """
    counts = map(count_of, value if isinstance(value, list) else [value])
    return max((count for count in counts if count is not None), default=None)


_COUNT = re.compile(r"\s*([0-9]{1,16})(?:\.0*)?(?:e\+?([0-9]{1,2}))?\s*", re.IGNORECASE)


_MOST = 2**53  # greater whole numbers are not exact in JSON


def number_of(value: object) -> float | None:
    """Return a finite number; None for any other value."""
    # Python's JSON accepts NaN, infinity and whole numbers of any length: all would break limits.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _MOST else None


def unlike_json(value: object, name: str = "") -> Iterator[str]:
    """Yield the names of what JSON cannot hold, as YAML's dates and what is not a finite number.

    >>> list(unlike_json({"user": b"x", "options": [{"top_p": float("nan")}], "seed": 1}))
    ['user', 'options.0.top_p']
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            inside = f"{name}.{key}" if name else str(key)
            yield from unlike_json(inner, inside) if isinstance(key, str | int) else [inside]
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from unlike_json(inner, f"{name}.{place}")
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield name
    elif value is not None and not isinstance(value, str | int):
        yield name
