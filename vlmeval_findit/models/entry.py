"""A model named in a sweep's file or on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from ..core.config import (
    Checked,
    Config,
    Count,
    Expected,
    MisplacedError,
    Name,
    Number,
    Text,
    Values,
    config_from,
)
from ..core.custom_prompt import CustomPrompt, custom_prompt
from ..core.formatting import nearest
from .custom_models import ModelDescription
from .http.providers.table import find_provider
from .model_table import MODELS, find_model
from .prices import PricesField


def _known_row(name: str) -> str:
    if find_model(name) is None:
        raise ValueError(f"no model {name!r} in the model table{nearest(name, MODELS)}")
    return name


def _provider(name: str) -> str:
    return find_provider(name).name


@dataclass(frozen=True, slots=True)
class ModelEntry(ModelDescription):
    """A model of a sweep."""

    like: Annotated[Name, Checked(_known_row)] | None = None
    resources: Values = field(default_factory=dict)
    """Arguments of its class, like ``settings``, on which no answer depends."""
    reads_like: Annotated[Name, Checked(_known_row)] | None = None  # see :class:`.Settings`
    provider: Annotated[Name, Checked(_provider)] | None = None
    """Who is asked, in its own protocol; None: OpenRouter, a server or this machine."""
    base_url: Name | None = field(default=None, repr=False)
    """Addresses of its servers with commas between them, or ``@FILE``; may hold a key."""
    prices: PricesField | None = None
    """Prices, if the model table has none."""
    system: Name | None = None  # file with a system text
    prompt_template: Name | None = None  # file with a template of the request
    headers: Mapping[Text, Annotated[str, Expected("a text", secret=True, strict=True)]] | None = (
        field(default=None, repr=False)
    )
    """Sent with every request, recorded nowhere."""

    @property
    def prompt(self) -> CustomPrompt | None:
        """The user's words; None: the benchmark's own. Raises as :func:`.custom_prompt`."""
        return custom_prompt(self.system, self.prompt_template)


@dataclass(frozen=True, slots=True)
class _CallKeys(Config):
    """Keys of a model in a file that are settings or resources of it."""

    temperature: Number | None = None
    dtype: Name | None = None
    batch_size: Count | None = None
    device: Name | None = None


LOCAL_SETTINGS = ("dtype", "batch_size", "device")
"""Settings that servers do not take."""

_PLACES = {
    "temperature": "settings",
    "dtype": "settings",
    "batch_size": "resources",
    "device": "resources",
}


def entry_values(said: Any) -> Any:
    """Return the values of a :class:`ModelEntry` from a file: a name, or a mapping.

    Keys such as ``temperature`` become settings or resources.

    Raises:
        ValueError: one is given twice, or its value cannot be used.
    """
    if isinstance(said, str):
        return {"name": said}
    if not isinstance(said, Mapping) or not (keys := _PLACES.keys() & said.keys()):
        return said
    given = {key: said[key] for key in keys}
    config_from(_CallKeys, given)
    values = {key: value for key, value in said.items() if key not in keys}
    for key, value in given.items():
        inner = values.get(_PLACES[key]) or {}
        if not isinstance(inner, Mapping):
            break  # its type is refused afterwards
        if key in inner:
            raise MisplacedError(f"{key} stands here and in {_PLACES[key]}", key)
        values[_PLACES[key]] = {**inner, key: value}
    return values
