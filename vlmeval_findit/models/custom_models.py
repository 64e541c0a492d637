"""Custom models: descriptions in YAML, each a row of the model table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

from ..boxes.spaces import space_from
from ..core.config import Checked, Config, ConfigError, Name, Values, YamlText, config_from
from ..core.files import sha256_of
from ..core.plugin_rows import Later, Offer, Plugin
from ..core.predictions import check_model_name
from .local.run_settings import RunSettings
from .model_row import ModelRow

KnownModel = Callable[[str, str], ModelRow]
"""From a name and the key that says it to the row in the model table; it may raise ValueError."""


def _space(value: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    try:
        space_from(value)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return value


def _pattern(names: str) -> str:
    try:
        re.compile(names)
    except re.error as error:
        raise ValueError(f"names: {error}") from None
    return names


@dataclass(frozen=True, slots=True)
class ModelDescription(Config):
    """A model described in a file."""

    name: Annotated[Name, Checked(check_model_name)]  # of its results
    # For its class or, with endpoints, every request; part of every call's key.
    settings: Values = field(default_factory=dict)
    # If not its row's; see core.settings.
    space: Annotated[str | Mapping[str, Any], Checked(_space)] | None = None
    checkpoint: Name | None = None  # folder or identifier, for a local model
    like: Name | None = None  # known model whose prompts and coordinates it shares
    served: Name | None = None  # name at a server or provider
    line: int = field(default=0, compare=False)  # in the file


@dataclass(frozen=True, slots=True)
class CustomModel(ModelDescription):
    """An entry of the file of custom models."""

    names: Annotated[Name, Checked(_pattern)] | None = None  # regular expression of its names

    def as_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value and key != "line"}


def row_of(model: CustomModel, known: KnownModel) -> ModelRow:
    """Return the row of the model table for a custom model; ValueError if it does not fit."""
    base = known(model.like, "like") if model.like else None
    if base is None and model.space is None:
        raise ValueError("neither like nor space: nothing says how it answers")
    settings = dict(model.settings)
    local = base.local if base else None
    if model.checkpoint is None:
        if settings:
            raise ValueError(
                "settings need a checkpoint; those of other models stand in a sweep's file"
            )
        local = None
    elif local is None:
        raise ValueError(
            "checkpoint: only a model that is like a local one may have it; like: "
            f"no local model {model.like!r} (names: run_findit.py models)"
        )
    else:
        config_from(RunSettings, settings)
        local = replace(local, checkpoints={model.name: model.checkpoint})
        settings |= {"space": model.space} if model.space is not None else {}
    rule = base.space if base else None
    if model.space is not None:
        space = space_from(model.space)
        rule = lambda question: space  # noqa: E731
    assert rule is not None
    api = base.api if base and model.served else None
    return ModelRow(
        name=model.name,
        names=model.names or re.escape(model.name),
        space=rule,
        schemes=base.schemes if base else {},
        # Prices of the other model do not apply.
        api=replace(api, identifier=model.served, prices=None) if api and model.served else None,
        opens_thought=base.opens_thought if base else False,
        local=local,
        served=model.served,
        settings=settings,
        states_space=model.space is not None,
    )


# --- the file -------------------------------------------------------------------------------------


def read_models(path: Path) -> list[CustomModel]:
    """Read the models of a file, or those under ``models`` in a sweep's.

    Raises OSError, and ConfigError with file and line.
    """
    return [read() for _, read in _entries(path)]


def _entries(path: Path) -> Iterator[tuple[object, Callable[[], CustomModel]]]:
    """Yield the raw value of each entry, and a function that reads it."""
    try:
        text = YamlText(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    top: tuple[str, ...] = ()
    if isinstance(text.value, dict):
        if "models" not in text.value:
            raise text.error("no key 'models', and no list of models")
        top = ("models",)
    entries = text.value["models"] if top else text.value
    if not isinstance(entries, list) or not entries:
        raise text.error("should be a list of models, one mapping each", *top)
    for at, values in enumerate(entries):
        yield values, partial(_read, text, values, (*top, at))


def _read(text: YamlText, values: object, at: tuple[str | int, ...]) -> CustomModel:
    if isinstance(values, dict) and "provider" in values:
        raise text.error(
            f"provider: not here; type --provider {values['provider']} with the command", *at
        )
    return replace(text.read(CustomModel, *at), line=text.line(*at))


def offers(path: Path, known: KnownModel) -> Sequence[Offer]:
    """Return the rows of the file for the table; the same object while the file is unchanged."""
    state = path.stat()
    return _offers(path, known, state.st_mtime_ns, state.st_size, state.st_ino)


@lru_cache(maxsize=8)
def _offers(path: Path, known: KnownModel, mtime: int, size: int, inode: int) -> Sequence[Offer]:
    return tuple(
        Offer(_plugin(path, at, values), Later(lambda read=read: row_of(read(), known)))  # type: ignore[misc]
        for at, (values, read) in enumerate(_entries(path), 1)
    )


def _plugin(path: Path, at: int, values: object) -> Plugin:
    """Return the origin of an entry; its version hashes that entry only."""
    name = values.get("name") if isinstance(values, dict) else None
    text = json.dumps(values, sort_keys=True, default=str).encode()
    return Plugin(f"{path.name}:{name or at}", f"sha256:{sha256_of(text)[:12]}", str(path))
