"""Settings that flags, keys of files and classes have in common: each is declared once, here.

Records inherit the fields: :class:`.StatedOptions` of command lines, :class:`.RunSettings` of
models on this machine, :class:`..engine.over_http.ApiSettings` of models over HTTP. Those of
servers that this machine starts: :class:`..serving.ServerOptions`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from ..core import MACHINE, THE_MODEL, Config, Count, Name, Number, Option


@dataclass(frozen=True, kw_only=True)
class Sampling(Config):
    """How replies are drawn: fields of every request, and settings of a model on this machine."""

    temperature: Annotated[
        Number | None,
        Option("Sample the replies at this temperature, else greedy.", THE_MODEL, "T", "settings"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class OnThisMachine(Config):
    """How this machine runs a model."""

    batch_size: Annotated[
        Count | None,
        Option("Most queries at once on this machine.", MACHINE, "N", "resources", is_common=True),
    ] = None
    dtype: Annotated[
        Name | None,
        Option("Type of the weights on this machine: bfloat16 …", MACHINE, "NAME", "settings"),
    ] = None
    device: Annotated[
        Name | None,
        Option("Device of the model on this machine: cuda:1, cpu …", MACHINE, "NAME", "resources"),
    ] = None


def sampling_of(settings: Sampling) -> dict[str, Any]:
    """Return how replies are drawn, as far as it is stated."""
    values = {each.name: getattr(settings, each.name) for each in fields(Sampling)}
    return {name: value for name, value in values.items() if value is not None}
