"""Values of files that others may have written or damaged, held against a shape."""

from __future__ import annotations

import json
from typing import Any

Shape = Any
"""A type, a union of types, ``[shape of every item]`` or ``{key: shape}``; keys may be missing, and
others may be there."""


def read_json(text: str) -> Any:
    """JSON without NaN and infinity.

    Raises:
        ValueError: it is none.
    """
    return json.loads(text, parse_constant=_no_number)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no figure")


def checked(value: Any, shape: Shape, at: str = "") -> Any:
    """A value of a shape.

    >>> checked({"tp": True}, {"tp": int})
    Traceback (most recent call last):
    TypeError: tp should not be True

    Raises:
        TypeError: it has another; the message says where.
    """
    if isinstance(shape, (dict, list)):
        if not isinstance(value, type(shape)):
            raise _other_shape(value, at)
        inner = ((key, shape[key]) for key in shape if key in value)
        if isinstance(shape, list):
            inner = ((place, shape[0]) for place in range(len(value)))
        for key, one in inner:
            checked(value[key], one, f"{at}.{key}" if at else f"{key}")
    # True is a whole number to Python, but not to a reader.
    elif not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        raise _other_shape(value, at)
    return value


def _other_shape(value: Any, at: str) -> TypeError:
    said = repr(value)
    return TypeError(f"{at or 'it'} should not be {said[:40]}{'…' * (len(said) > 40)}")
