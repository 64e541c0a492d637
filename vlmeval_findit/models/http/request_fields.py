"""The fields of a request: which a user may set, and how they meet FindIt's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# What is asked, of whom, and how the reply is read; in a provider's protocol by its names
_SET_BY_FINDIT = (
    "model",
    "messages",
    "stream",
    "contents",
    "system",
    "systemInstruction",
    "system_instruction",
)
_INSTEAD = {
    "system": "type --system FILE",
    "systemInstruction": "type --system FILE",
    "system_instruction": "type --system FILE",
}

# Where a user states the reasoning in a provider's own words
WITHOUT_OUR_REASONING = (
    'Leave yours out or, where it is of the reasoning, add "reasoning_effort": null'
)


def refuse_question(fields: Mapping[str, Any]) -> None:
    """Refuse, with a ValueError, fields that would ask another model or another question."""
    for name in _SET_BY_FINDIT:
        if name in fields:
            instead = _INSTEAD.get(name, "Leave it out")
            raise ValueError(f"{name} is set by FindIt. {instead[0].upper()}{instead[1:]}")


def merged_fields(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], advice: str = "Leave yours out"
) -> dict[str, Any]:
    """Return a user's fields of a request and FindIt's, objects merged key by key.

    >>> merged_fields({"a": {"x": 1}}, {"a": {"y": 2}})
    {'a': {'x': 1, 'y': 2}}

    Raises ValueError, with both values and ``advice``, where they contradict.
    """
    return _merged(theirs, ours, advice, "")


def _merged(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], advice: str, inside: str
) -> dict[str, Any]:
    result = dict(theirs)
    for name, value in ours.items():
        if name not in theirs:
            result[name] = value
            continue
        given = theirs[name]
        if isinstance(given, Mapping) and isinstance(value, Mapping):
            result[name] = _merged(given, value, advice, f"{inside}{name}.")
        elif given != value:
            raise ValueError(
                f"{inside}{name}: {_shown(given)} is given, but FindIt sends {_shown(value)}. "
                f"{advice}"
            )
    return result


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
