"""The stored custom models: a YAML file in LMUData.

``run_findit.py models --add FILE`` calls :func:`add`, ``--remove`` :func:`remove`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from ..core.config import ConfigError
from ..core.files import atomic_write
from ..core.folders import custom_models_file
from ..core.formatting import nearest
from ..core.lock import alone
from .custom_models import CustomModel, read_models, row_of
from .model_row import row_problem
from .model_table import MODELS, known_model, like_its_base
from .revision import refuse_missing


def _stored() -> dict[str, CustomModel]:
    path = custom_models_file()
    return {model.name: model for model in read_models(path)} if path.is_file() else {}


def add(path: Path, *, replaces: bool) -> list[CustomModel]:
    """Store all models of a file, or none; ConfigError if one is invalid or its name is taken.

    ``replaces``: whether existing custom models may be replaced.
    """
    new = [like_its_base(_with_absolute_path(model)) for model in read_models(path)]
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
                row, old = row_of(model, known_model), stored.keys() & {model.name}
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
