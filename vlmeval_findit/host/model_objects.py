"""What a model object says of itself: its constructor's arguments, its attributes, its address.

VLMEvalKit builds a model from a ``--config`` file, from ``--base-url`` or in a program that calls
it, and passes the object. Its answers depend on what the object is, whatever words made it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ..core import is_secret_name, remember_secrets
from ..engine import NOT_IN_KEYS
from ..models import Endpoint
from .plain_values import is_stable, json_value_of

_GIVEN = "_findit_arguments"  # Attribute with what a model's constructor was given
_SEEN = "_findit_attributes"  # Attribute with a :class:`_Seen`

ADDRESSES = ("api_base", "base_url", "api_url", "azure_endpoint", "endpoint", "url")
"""Arguments and attributes that hold the address of a service."""

CHECKPOINTS = ("model_path", "model", "model_name", "model_id", "path")
"""Arguments and attributes that name a checkpoint, or a server's model."""

WITHOUT_EFFECT = frozenset(
    {"fail_msg", "old_timeout", "dump_image_func", "is_api", "logger"}
    | set(ADDRESSES)
    | (NOT_IN_KEYS.keys() - {"model_path"})
)
"""Attributes on which no answer depends, and addresses, which are recorded as addresses."""


# --- constructor's arguments ----------------------------------------------------------------------


def remember_arguments(*bases: type) -> None:
    """Let every model of these base classes keep what its constructor is given."""
    for base in bases:
        if not hasattr(base.__new__, "keeps_arguments"):
            base.__new__ = _keeping(base.__new__)  # type: ignore[method-assign]


def _keeping(make: Callable[..., Any]) -> Any:
    def __new__(cls: type, *arguments: Any, **named: Any) -> Any:  # noqa: N807
        # That of object takes no arguments.
        model = make(cls) if make is object.__new__ else make(cls, *arguments, **named)
        vars(model)[_GIVEN] = arguments, named
        return model

    __new__.keeps_arguments = True  # type: ignore[attr-defined]
    return __new__


def arguments_of(model: object) -> dict[str, Any]:
    """Return what a model's constructor was given, by name; empty where it is not known."""
    arguments, named = getattr(model, "__dict__", {}).get(_GIVEN, ((), {}))
    try:
        signature = inspect.signature(type(model))
        bound = dict(signature.bind_partial(*arguments, **named).arguments)
    except (TypeError, ValueError):  # A class whose arguments cannot be read has them by place
        return {**{f"argument {at}": each for at, each in enumerate(arguments, 1)}, **named}
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            bound |= bound.pop(parameter.name, {})
    return bound


def defaults_of(cls: type) -> dict[str, Any]:
    """Return the defaults of a constructor's arguments."""
    with suppress(TypeError, ValueError):
        parameters = inspect.signature(cls).parameters.values()
        return {each.name: each.default for each in parameters if each.default is not each.empty}
    return {}


# --- attributes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Seen:
    """The attributes of a model, which its calls may change: counters, or a joined system text."""

    before: Mapping[str, Any]  # any call, with what others changed since
    after: Mapping[str, Any]  # the last calls


def attributes_of(model: object) -> Mapping[str, Any] | None:
    """Return the public attributes of a model as JSON values; None if it has none.

    What its calls changed (see :func:`note_calls`) is as it was before: the same model in
    another process says the same. What anybody else changed is as it is now.
    """
    namespace = getattr(model, "__dict__", None)
    if namespace is None:
        return None
    now = dict(_attributes(namespace))
    seen = namespace.get(_SEEN)
    before: dict[str, Any] = {}
    for name, value in now.items():
        if seen is None or name not in seen.after or seen.after[name] != value:
            before[name] = value
        elif name in seen.before:
            before[name] = seen.before[name]
    namespace[_SEEN] = _Seen(before, now)
    return before


def note_calls(model: object) -> None:
    """Note that a model was called: what differs from its last attributes, its calls changed."""
    namespace = getattr(model, "__dict__", {})
    seen = namespace.get(_SEEN)
    if seen is not None:
        namespace[_SEEN] = _Seen(seen.before, dict(_attributes(namespace)))


def _attributes(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in namespace.items():
        is_private = name.startswith("_") or hides(name, value)
        if is_private or name in WITHOUT_EFFECT or not is_stable(name, value):
            continue
        yield name, json_value_of(value)


def hides(name: str, value: Any) -> bool:
    """Return whether an argument or attribute is a secret, which is remembered then."""
    if not is_secret_name(name) and name != "budget":
        return False
    if isinstance(value, str):
        remember_secrets(value)
    return True


# --- who it asks, and for what --------------------------------------------------------------------


def endpoint_of(model: object, arguments: Mapping[str, Any]) -> str | None:
    """Return the address of a model's service, without credentials; None if it has none."""
    attributes = getattr(model, "__dict__", {})
    client = attributes.get("client")
    for holder in (attributes, arguments, {"base_url": getattr(client, "base_url", None)}):
        for name in ADDRESSES:
            address = str(holder.get(name) or "")
            if "://" in address:
                return _named(address)
    return None


def _named(address: str) -> str:
    address = re.sub("/chat/completions/?$", "", address.strip())
    with suppress(ValueError):
        return Endpoint(address).name
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def checkpoint_of(model: object, arguments: Mapping[str, Any]) -> str | None:
    """Return the checkpoint, or the name at a service, that a model answers with."""
    for holder in (arguments, getattr(model, "__dict__", {})):
        for name in CHECKPOINTS:
            value = holder.get(name)
            if isinstance(value, str) and value:
                return value
    return None
