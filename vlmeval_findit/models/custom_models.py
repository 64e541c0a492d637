"""Custom models: descriptions in a YAML file in LMUData, each a row of the model table.

``run_findit.py models --add FILE`` calls :func:`add`, ``--remove`` :func:`remove`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

import yaml

from ..boxes.spaces import space_from
from ..core.config import Checked, Config, ConfigError, Name, Values, config_from
from ..core.files import atomic_write, sha256_of
from ..core.folders import custom_models_file
from ..core.formatting import nearest
from ..core.lock import alone
from ..core.plugins import Later, Offer, Plugin
from ..core.predictions import check_model_name
from ..core.yaml_text import YamlText
from .local.run_settings import RunSettings
from .model_row import ModelRow, row_problem
from .model_table import MODELS, known_model
from .revision import refuse_missing


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


def row_of(model: CustomModel) -> ModelRow:
    """Return the row of the model table for a custom model; ValueError if it does not fit."""
    base = known_model(model.like, "like") if model.like else None
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


def offers(path: Path) -> Sequence[Offer]:
    """Return the rows of the file for the table; the same object while the file is unchanged."""
    state = path.stat()
    return _offers(path, state.st_mtime_ns, state.st_size, state.st_ino)


@lru_cache(maxsize=8)
def _offers(path: Path, mtime: int, size: int, inode: int) -> Sequence[Offer]:
    return tuple(
        Offer(_plugin(path, at, values), Later(lambda read=read: row_of(read())))  # type: ignore[misc]
        for at, (values, read) in enumerate(_entries(path), 1)
    )


def _plugin(path: Path, at: int, values: object) -> Plugin:
    """Return the origin of an entry; its version hashes that entry only."""
    name = values.get("name") if isinstance(values, dict) else None
    text = json.dumps(values, sort_keys=True, default=str).encode()
    return Plugin(f"{path.name}:{name or at}", f"sha256:{sha256_of(text)[:12]}", str(path))


# --- adding and removing --------------------------------------------------------------------------


def _stored() -> dict[str, CustomModel]:
    path = custom_models_file()
    return {model.name: model for model in read_models(path)} if path.is_file() else {}


def add(path: Path, *, replaces: bool) -> list[CustomModel]:
    """Store all models of a file, or none; ConfigError if one is invalid or its name is taken.

    ``replaces``: whether existing custom models may be replaced.
    """
    new = [_with_absolute_path(model) for model in read_models(path)]
    with alone(_lock()):
        stored = _stored()
        for model in new:
            where = f"{path}, line {model.line}"
            if [other.name for other in new].count(model.name) > 1:
                raise ConfigError(f"{where}: {model.name} stands twice")
            if model.name in stored and not replaces:
                raise ConfigError(
                    f"{where}: {model.name} exists already; replace it with --replace"
                )
            try:
                row, old = row_of(model), stored.keys() & {model.name}
                if problem := row_problem(row, MODELS, replaces=old):
                    raise ValueError(problem)
                if model.checkpoint is not None:
                    refuse_missing(model.checkpoint)
            except ValueError as error:
                raise ConfigError(f"{where}, {model.name}: {error}") from None
        _write({**stored, **{model.name: model for model in new}})
    return new


def remove(name: str) -> None:
    """Delete a custom model; ConfigError if there is none of this name."""
    with alone(_lock()):
        stored = _stored()
        if name not in stored:
            raise ConfigError(f"no custom model {name!r}{nearest(name, stored)}")
        del stored[name]
        _write(stored)


def _with_absolute_path(model: CustomModel) -> CustomModel:
    if model.checkpoint is None or not Path(model.checkpoint).expanduser().exists():
        return model
    return replace(model, checkpoint=str(Path(model.checkpoint).expanduser().resolve()))


def _lock() -> Path:
    path = custom_models_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.lock")


def _write(models: Mapping[str, CustomModel]) -> None:
    path = custom_models_file()
    if not models:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as f:
        f.write("# Custom models: run_findit.py models --add, --remove.\n")
        entries = [model.as_dict() for model in models.values()]
        yaml.safe_dump(entries, f, sort_keys=False, allow_unicode=True)
