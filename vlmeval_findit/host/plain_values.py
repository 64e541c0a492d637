"""Values of any object as JSON: the same in every process, and without secrets."""

from __future__ import annotations

import json
import math
import re
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..core import is_secret_name, scrub, sha256_of, without_credentials

_LONGEST = 2000  # Characters of JSON; a longer value is known by its hash
_DEEPEST = 4  # Levels of objects in objects


def json_value_of(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON; an object that is no plain data by the name of its class.

    >>> json_value_of({"b": (1, 2), "api_key": "sk-1", "a": Path("x")})
    {'a': 'x', 'b': [1, 2]}
    """
    result = _plain(value, depth)
    if depth == 0 and len(text := json.dumps(result, default=str)) > _LONGEST:
        return f"sha256:{sha256_of(text.encode())}"
    return result


def _plain(value: Any, depth: int) -> Any:
    match value:
        case None | bool() | int():
            return value
        case str():
            return scrub(without_credentials(value))
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return f"sha256:{sha256_of(value)}"
        case Enum():
            return _plain(value.value, depth)
        case Path():
            return str(value)
        case Mapping():
            return _fields({str(name): each for name, each in value.items()}, depth)
        case list() | tuple():
            return [json_value_of(each, depth + 1) for each in value]
        case set() | frozenset():
            return sorted((json_value_of(each, depth + 1) for each in value), key=repr)
        case partial():
            given = {"arguments": value.args, **value.keywords}
            return {"function": _name_of(value.func), **_fields(given, depth)}
        case _:
            return _of_object(value, depth)


def _of_object(value: Any, depth: int) -> Any:
    with suppress(Exception):  # Any class may refuse anything
        if getattr(value, "ndim", None) == 0:  # A number of numpy or torch
            return _plain(value.item(), depth)
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device"):
        return str(value)
    if hasattr(value, "__qualname__"):
        return _name_of(value)
    name = type(value).__qualname__
    holds_data = isinstance(value, SimpleNamespace | Namespace)
    if (holds_data or is_dataclass(value) or _is_of_vlmevalkit(value)) and depth < _DEEPEST:
        return {"class": name, **_fields(getattr(value, "__dict__", {}), depth)}
    return name


def _is_of_vlmevalkit(value: Any) -> bool:
    """Return whether an object is VLMEvalKit's, for example the adapter of ``--custom-prompt``."""
    return type(value).__module__.startswith("vlmeval.")


def _name_of(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', function)}"


def _fields(values: Mapping[str, Any], depth: int) -> dict[str, Any]:
    return {
        name: json_value_of(value, depth + 1)
        for name, value in sorted(values.items())
        if not name.startswith("_") and not is_secret_name(name) and is_stable(name, value)
    }


# --- what differs from process to process ---------------------------------------------------------

_OF_TIMES = re.compile(
    r"(?:^|_)(?:time|timestamp|started|start_time|created|elapsed|clock|pid|uuid|session_id"
    r"|request_id|run_id|now)(?:_at|_s|_ms|_ns)?$",
    re.IGNORECASE,
)
_UUID = re.compile("[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_MOMENT = re.compile(
    r"\d{4}-?\d\d-?\d\d[T _]?\d\d[:\-]?\d\d([:\-]?\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?"
)
_OBJECT_ID = re.compile(r"\bat 0x[0-9a-f]+", re.IGNORECASE)
_TEMPORARY = re.compile(re.escape(tempfile.gettempdir()) + r"/tmp[a-z0-9_]{8}\b.*")
_UNITS = (1, 1e3, 1e6, 1e9)  # Of seconds since 1970, per second
_WEEK = 7 * 24 * 3600


def is_stable(name: str, value: Any) -> bool:
    """Return whether a value is the same in the next process, as far as can be told.

    >>> is_stable("started", time.time()), is_stable("temperature", 0.7)
    (False, True)
    """
    if isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        is_now = any(abs(value / unit - time.time()) < _WEEK for unit in _UNITS)
        return not is_now and not _OF_TIMES.search(name)
    if not isinstance(value, str):
        return True
    whole = (_UUID, _MOMENT, _TEMPORARY)
    is_fresh = any(pattern.fullmatch(value) for pattern in whole) or _OBJECT_ID.search(value)
    return not is_fresh and not _OF_TIMES.search(name)
