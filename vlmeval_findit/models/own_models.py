"""Custom models: descriptions in a YAML file in LMUData that every command reads.

``run_findit.py models --add FILE`` calls :func:`add`, ``--remove`` :func:`remove`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from ..core.config import ConfigError
from ..core.files import atomic_write
from ..core.lock import alone
from ..core.places import own_models_file
from ..core.spelling import nearest
from .described import OwnModel, read_models, row_of
from .revision import refuse_missing
from .row_checks import problem
from .table import MODELS, known_model


def kept() -> dict[str, OwnModel]:
    """Return the custom models by name; ConfigError if a row is invalid."""
    path = own_models_file()
    if not path.is_file():
        return {}
    rows = read_models(path)
    return {row.name: row for row in rows}


def add(path: Path, *, replaces: bool) -> list[OwnModel]:
    """Store all models of a file, or none; ConfigError if one is invalid or its name is taken.

    ``replaces``: whether existing custom models may be replaced.
    """
    new = [_with_whole_path(row) for row in read_models(path)]
    with alone(_lock()):
        before = kept()
        for row in new:
            where = f"{path}, line {row.line}"
            if [one.name for one in new].count(row.name) > 1:
                raise ConfigError(f"{where}: {row.name} stands twice")
            if row.name in before and not replaces:
                raise ConfigError(
                    f"{where}: there is a model {row.name}: --replace describes it anew"
                )
            try:
                made, old = row_of(row, known_model), before.keys() & {row.name}
                if why := problem(made, MODELS, replaces=old):
                    raise ValueError(why)
                if row.checkpoint is not None:
                    refuse_missing(row.checkpoint)
            except ValueError as error:
                raise ConfigError(f"{where}, {row.name}: {error}") from None
        _write({**before, **{row.name: row for row in new}})
    return new


def remove(name: str) -> None:
    """Forget a custom model; ConfigError if there is none of this name."""
    with alone(_lock()):
        before = kept()
        if name not in before:
            raise ConfigError(f"no model of your own {name!r}{nearest(name, before)}")
        del before[name]
        _write(before)


def _with_whole_path(row: OwnModel) -> OwnModel:
    """Resolve a checkpoint folder, so that it is valid from any directory."""
    if row.checkpoint is None or not Path(row.checkpoint).expanduser().exists():
        return row
    return replace(row, checkpoint=str(Path(row.checkpoint).expanduser().resolve()))


def _lock() -> Path:
    path = own_models_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.lock")


def _write(rows: Mapping[str, OwnModel]) -> None:
    path = own_models_file()
    if not rows:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as f:
        f.write("# Models of your own: run_findit.py models --add, --remove.\n")
        yaml.safe_dump(
            [row.as_dict() for row in rows.values()], f, sort_keys=False, allow_unicode=True
        )
