"""Models of one's own: descriptions in a YAML file in LMUData, which every command knows.

``run_findit.py models --add FILE`` puts them there (:func:`add`), ``--remove`` takes one out.
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
    """The models of one's own by their names; empty without the file.

    Raises:
        ConfigError: a row of the file is none.
    """
    path = own_models_file()
    if not path.is_file():
        return {}
    rows = read_models(path)
    return {row.name: row for row in rows}


def add(path: Path, *, replaces: bool) -> list[OwnModel]:
    """Keep the models of a file, all or none of them.

    Args:
        path: what a probe saved or another sweep's file, or a list of rows.
        replaces: whether a model of one's own may be described anew.

    Raises:
        ConfigError: a row cannot be used, or its name is that of another model.
        OSError: a file cannot be read or written.
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
    """Forget a model of one's own.

    Raises:
        ConfigError: there is none of this name.
    """
    with alone(_lock()):
        before = kept()
        if name not in before:
            raise ConfigError(f"no model of your own {name!r}{nearest(name, before)}")
        del before[name]
        _write(before)


def _with_whole_path(row: OwnModel) -> OwnModel:
    """A folder is the same from wherever a command is typed."""
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
