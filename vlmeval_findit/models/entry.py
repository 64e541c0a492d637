"""A model named in a sweep's file or on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from ..core.config import Checked, Name, Text, Values, Wanted
from ..core.spelling import nearest
from .described import DescribedModel
from .http.providers.table import find_provider
from .prices import SaidPrices
from .table import MODELS, find_model


def _known_row(name: str) -> str:
    if find_model(name) is None:
        raise ValueError(f"no model {name!r} in the model table{nearest(name, MODELS)}")
    return name


def _provider(name: str) -> str:
    return find_provider(name).name


@dataclass(frozen=True, slots=True)
class ModelEntry(DescribedModel):
    """A model of a sweep."""

    like: Annotated[Name, Checked(_known_row)] | None = None
    resources: Values = field(default_factory=dict)
    """Arguments of its class, like ``settings``, on which no answer depends."""
    reads_like: Annotated[Name, Checked(_known_row)] | None = None  # see :class:`.Settings`
    provider: Annotated[Name, Checked(_provider)] | None = None
    """Who is asked, in its own protocol; None: OpenRouter, a server or this machine."""
    prices: SaidPrices | None = None
    """Prices, if the model table has none."""
    headers: Mapping[Text, Annotated[str, Wanted("a text", secret=True, strict=True)]] | None = (
        field(default=None, repr=False)
    )
    """Sent with every request, recorded nowhere."""
