"""What stands in a cell of the authors' files: lists, or JSON objects by file and role.

Every function raises ValueError with a message that says what a cell should hold; whoever calls
knows file, row and column.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeGuard

from .. import cells
from .row import Role

Numbers = tuple[float, ...]

Outlines = tuple[Numbers, ...]


def is_absent(value: object) -> bool:
    """Whether a cell holds nothing: null, NaN, blank, an empty list or object."""
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, (Sequence, Mapping)) and not value)


def parsed(cell: object) -> Any:
    """A cell as nested values: JSON in a text is read, keys of a struct without value left out.

    >>> parsed('{"a.jpg": {"default": [1, 2, 3, 4]}}')
    {'a.jpg': {'default': [1, 2, 3, 4]}}
    """
    if isinstance(cell, str) and cell.strip()[:1] in ("[", "{"):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"is no JSON: {error}") from None
    if isinstance(cell, Mapping):
        return {str(key): value for key, value in cell.items() if value is not None}
    if isinstance(cell, list) and cell and all(isinstance(one, tuple) for one in cell):
        return dict(cell)  # a map column of Parquet
    return None if is_absent(cell) else cell


# --- pictures -------------------------------------------------------------------------------------


def pictures(cell: object) -> dict[str, bytes]:
    """The pictures of an ``image`` cell by the names of their files ("0", "1" without names)."""
    found = parsed(cell)
    if isinstance(found, Mapping) and not _is_picture(found):
        named = found
    else:
        many = found if isinstance(found, list) else [found]
        named = {str(at): one for at, one in enumerate(many)}
    if not named or found is None:
        raise ValueError("holds no picture")
    return {name: _bytes(one) for name, one in named.items()}


def _is_picture(value: Mapping[str, Any]) -> bool:
    """Whether an object is a picture in the manner of Hugging Face's ``datasets``."""
    return "bytes" in value and set(value) <= {"bytes", "path"}


def _bytes(value: Any) -> bytes:
    if isinstance(value, Mapping) and not _is_picture(value) and len(value) == 1:
        (value,) = value.values()  # {default: …}
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    data = cells.picture(value)
    if data is None:
        raise ValueError("holds no picture")
    return data


# --- numbers --------------------------------------------------------------------------------------


def quads(value: Any) -> list[Numbers]:
    """Boxes of four numbers: one, or a list of them.

    >>> quads([1, 2, 3, 4]), quads([[1, 2, 3, 4], [5, 6, 7, 8]])
    ([(1.0, 2.0, 3.0, 4.0)], [(1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0)])
    """
    if is_absent(value):
        return []
    if _are_numbers(value):
        if len(value) != 4:
            raise ValueError(f"{_shown(value)} is no box of four numbers")
        return [_finite(value)]
    if not isinstance(value, list):
        raise ValueError(f"{_shown(value)} is no list of boxes")
    return [box for one in value for box in quads(one)]


def outlines(value: Any) -> Outlines:
    """Polygons, each x, y of one vertex after the other, from point pairs at whatever depth.

    >>> outlines([[[1, 2], [3, 4], [5, 6]]]), outlines([1, 2, 3, 4, 5, 6])
    (((1.0, 2.0, 3.0, 4.0, 5.0, 6.0),), ((1.0, 2.0, 3.0, 4.0, 5.0, 6.0),))
    """
    if is_absent(value):
        return ()
    if not isinstance(value, list):
        raise ValueError(f"{_shown(value)} is no list of polygons")
    if _are_numbers(value):
        points = _finite(value)
    elif all(_are_numbers(point) and len(point) == 2 for point in value):
        points = _finite([number for point in value for number in point])
    else:
        return tuple(polygon for one in value for polygon in outlines(one))
    if len(points) % 2 or len(points) < 6:
        raise ValueError(f"{_shown(value)} is no polygon: three or more pairs of x and y")
    return (points,)


def roles(value: Any) -> dict[Role, Any]:
    """What stands under each role; all of it under the first where none is named."""
    if not isinstance(value, Mapping):
        return {} if is_absent(value) else {Role.DEFAULT: value}
    known = {role.value: role for role in Role}
    for name in value:
        if name not in known:
            raise ValueError(f"has a key {name!r}; known are {', '.join(known)}")
    # In the order of roles: the subject before the object, whatever the file's order.
    return {role: value[name] for name, role in known.items() if not is_absent(value.get(name))}


def _are_numbers(value: object) -> TypeGuard[list[float]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, Real) and not isinstance(one, bool) for one in value)
    )


def _finite(numbers: Sequence[float]) -> Numbers:
    found = tuple(float(number) for number in numbers)
    if not all(map(math.isfinite, found)):
        raise ValueError(f"{_shown(list(numbers))} has a number that is not finite")
    return found


def _shown(value: object) -> str:
    return f"{value!r:.60}"
