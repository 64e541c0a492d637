"""The token limit of a reply: one setting under three names, wherever it is stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")  # of a request, by service
LIMIT_SETTING = "max_new_tokens"  # of a model here; the name in records
TOKEN_LIMITS = (LIMIT_SETTING, *LIMIT_FIELDS)  # settings that limit a reply's tokens


def token_limit(settings: Mapping[str, Any]) -> tuple[int | None, dict[str, Any]]:
    """Split settings into the token limit and the others; ValueError if it is invalid."""
    rest = {name: value for name, value in settings.items() if name not in TOKEN_LIMITS}
    given = {name: settings[name] for name in TOKEN_LIMITS if name in settings}
    if given.get(LIMIT_SETTING, 0) is None:
        del given[LIMIT_SETTING]  # as if it were not stated; a field of a request that is null is
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name}: {value!r} should be a whole number, at least 1")
    if len(set(given.values())) > 1:
        raise ValueError(f"{' and '.join(given)} are the same setting, but differ")
    return next(iter(given.values()), None), rest


def with_one_limit(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in which the token limit is called ``max_new_tokens``.

    >>> with_one_limit({"max_tokens": 64, "seed": 3})
    {'max_new_tokens': 64, 'seed': 3}

    Raises as :func:`token_limit`.
    """
    token_limit(settings)
    named = {name: LIMIT_SETTING if name in TOKEN_LIMITS else name for name in settings}
    return {named[name]: value for name, value in settings.items()}


def names_of_settings(record: type) -> list[str]:
    """Return the names of settings that a record has as fields, and all those of its limit."""
    names = [field.name for field in fields(record)]
    return [*dict.fromkeys((*names, *TOKEN_LIMITS))]
