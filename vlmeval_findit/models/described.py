"""A model described in a YAML file, and the row of the model table that it becomes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

from ..boxes.spaces import space_from
from ..core.config import Checked, Config, ConfigError, Name, Values, config_from
from ..core.files import sha256_of
from ..core.plugins import Later, Offer, Plugin
from ..core.predictions import check_model_name
from ..core.yaml_text import YamlText
from .local.run_settings import RunSettings
from .row import ModelRow, SpaceRule


def _space(said: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    try:
        space_from(said)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return said


def _names(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"names: {error}") from None
    return pattern


@dataclass(frozen=True, slots=True)
class DescribedModel(Config):
    """A model described in a file."""

    name: Annotated[Name, Checked(check_model_name)]  # of its results
    # For its class or, with endpoints, every request; part of every call's key.
    settings: Values = field(default_factory=dict)
    # If not its row's; see core.settings.
    space: Annotated[str | Mapping[str, Any], Checked(_space)] | None = None
    checkpoint: Name | None = None  # folder or identifier, for a local model
    like: Name | None = None  # row of the model table whose prompts and coordinates it shares
    served: Name | None = None  # name at a server or provider
    line: int = field(default=0, compare=False)  # in the file


@dataclass(frozen=True, slots=True)
class OwnModel(DescribedModel):
    """A row of the file of custom models."""

    names: Annotated[Name, Checked(_names)] | None = None  # regular expression of its names

    def as_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value and key != "line"}


Known = Callable[[str, str], ModelRow]
"""Finds the row of a model's name, given with its key; see :func:`.table.known_model`."""


def row_of(own: OwnModel, known: Known) -> ModelRow:
    """Return the row of the model table for a custom model; ValueError if it does not fit."""
    base = known(own.like, "like") if own.like else None
    if base is None and own.space is None:
        raise ValueError("neither like nor space: nothing says how it answers")
    settings = dict(own.settings)
    local = base.local if base else None
    if own.checkpoint is None:
        if settings:
            raise ValueError(
                "settings are of a model with a checkpoint; others have them in sweeps"
            )
        local = None
    elif local is None:
        raise ValueError(
            "checkpoint: only a model that is like one of this machine has it; like: "
            f"no local model {own.like!r} (names: run_findit.py models)"
        )
    else:
        config_from(RunSettings, settings)
        local = replace(local, checkpoints={own.name: own.checkpoint})
        settings |= {"space": own.space} if own.space is not None else {}
    api = base.api if base and own.served else None
    return ModelRow(
        name=own.name,
        names=own.names or re.escape(own.name),
        space=_rule(own, base),
        schemes=base.schemes if base else {},
        # Prices of the other model do not apply.
        api=replace(api, identifier=own.served, prices=None) if api and own.served else None,
        opens_thought=base.opens_thought if base else False,
        local=local,
        served=own.served,
        settings=settings,
        states_space=own.space is not None,
    )


def _rule(own: OwnModel, base: ModelRow | None) -> SpaceRule:
    if own.space is None:
        assert base is not None
        return base.space
    space = space_from(own.space)
    return lambda question: space


def offers(path: Path, known: Known) -> Sequence[Offer]:
    """Return the rows of the file for a table; the same object while the file is unchanged."""
    state = path.stat()
    return _offers(path, known, state.st_mtime_ns, state.st_size, state.st_ino)


@lru_cache(maxsize=8)
def _offers(path: Path, known: Known, mtime: int, size: int, inode: int) -> Sequence[Offer]:
    return tuple(
        Offer(plugin_of(path, at, values), Later(partial(_made, row, known)))
        for at, (values, row) in enumerate(_rows(path), 1)
    )


def _made(row: Callable[[], OwnModel], known: Known) -> ModelRow:
    return row_of(row(), known)


def plugin_of(path: Path, at: int, values: object) -> Plugin:
    """Return the origin of a row; its version hashes that row only."""
    name = values.get("name") if isinstance(values, dict) else None
    said = json.dumps(values, sort_keys=True, default=str).encode()
    version = f"sha256:{sha256_of(said)[:12]}"
    return Plugin(f"{path.name}:{name or at}", version, str(path))


def _rows(path: Path) -> Iterator[tuple[object, Callable[[], OwnModel]]]:
    """Yield the raw value of each row, and a function that reads it."""
    try:
        text = YamlText(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    top: tuple[str, ...] = ()
    if isinstance(text.value, dict):
        if "models" not in text.value:
            raise text.error("no key 'models', and no list of models")
        top = ("models",)
    rows = text.value["models"] if top else text.value
    if not isinstance(rows, list) or not rows:
        raise text.error("should be a list of models, one mapping each", *top)
    for at, values in enumerate(rows):
        yield values, partial(_read, text, values, (*top, at))


def _read(text: YamlText, values: object, at: tuple[str | int, ...]) -> OwnModel:
    if isinstance(values, dict) and "provider" in values:
        raise text.error(
            f"provider: is said where it is asked (--provider {values['provider']}), and not here",
            *at,
        )
    return replace(text.read(OwnModel, *at), line=text.line(*at))


def read_models(path: Path) -> list[OwnModel]:
    """Read the models of a file, or those under ``models`` in a sweep's.

    Raises OSError, and ConfigError with file and line.
    """
    return [read() for _, read in _rows(path)]
