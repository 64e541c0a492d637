"""Check the shape of values of files that others may have written or damaged."""

from __future__ import annotations

from typing import Any

from .formatting import shown

Shape = Any  # A type, a union, ``[shape of items]`` or ``{key: shape}``, whose keys are optional


def checked(value: Any, shape: Shape, at: str = "") -> Any:
    """Return a value if it has a shape and perhaps more keys; else a TypeError says where.

    >>> checked({"tp": True}, {"tp": int})
    Traceback (most recent call last):
    TypeError: tp should not be True
    """
    kind = type(shape) if isinstance(shape, (dict, list)) else shape
    # Python's bool is an int.
    if not isinstance(value, kind) or (isinstance(value, bool) and shape is not bool):
        raise TypeError(f"{at or 'it'} should not be {shown(value, 40)}")
    inner: dict[Any, Shape] = {}
    if isinstance(shape, list):
        inner = dict.fromkeys(range(len(value)), shape[0])
    elif isinstance(shape, dict):
        inner = {key: shape[key] for key in shape if key in value}
    for key, item_shape in inner.items():
        checked(value[key], item_shape, f"{at}.{key}" if at else f"{key}")
    return value
