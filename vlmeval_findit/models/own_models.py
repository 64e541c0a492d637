"""Models of one's own: rows in a YAML file in LMUData, each like a row of the table.

``run_findit.py models --add FILE`` puts them there (:mod:`.kept_models`).  A row has a ``name`` and
says what the table cannot know: ``like`` (or ``row``), the model that it is run and answers like;
``space``, where it answers in other coordinates; ``checkpoint``, a folder or an identifier;
``served``, what servers call it; ``names``, a regular expression of its names; ``settings`` of a
model on this machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import yaml

from ..boxes.spaces import space_from
from ..core.files import sha256_of
from ..core.model_names import check_model_name
from ..core.plugins import Later, Offer, Plugin
from ..core.shapes import Shape, checked
from ..core.spelling import nearest
from .local.run_settings import RunSettings
from .row import Known, ModelRow, SpaceRule


class OwnModelError(ValueError):
    """A row cannot be used; the message names the file, the row and the key."""


_SHAPE: Shape = {
    **dict.fromkeys(("name", "like", "row", "checkpoint", "served", "names"), str),
    "space": str | dict,
    "settings": dict,
}


@dataclass(frozen=True, slots=True)
class OwnModel:
    """A row of the file."""

    name: str
    like: str | None = None
    space: str | Mapping[str, Any] | None = None
    checkpoint: str | None = None
    served: str | None = None
    names: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The keys that say something; :func:`own_model` reads them back."""
        said = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in said.items() if value}


def own_model(values: object, where: str) -> OwnModel:
    """The row that values say; what it is like is not looked for.

    Args:
        values: of a YAML file.
        where: the file and the row, for messages.

    Raises:
        OwnModelError: they say none.
    """
    if not isinstance(values, dict):
        raise OwnModelError(f"{where}: should be a mapping with the key name, not {values!r:.60}")
    if "provider" in values:
        raise OwnModelError(
            f"{where}: provider: is said where it is asked (--provider {values['provider']}), "
            "and not here"
        )
    for key in values:
        if key not in _SHAPE:
            raise OwnModelError(f"{where}: no key {key!r}{nearest(str(key), _SHAPE)}")
    try:
        checked(values, _SHAPE)
        if "name" not in values:
            raise ValueError("the name is missing")
        if "like" in values and "row" in values:
            raise ValueError("like and row are one key: name one")
        check_model_name(values["name"])
        re.compile(values.get("names", ""))
    except (TypeError, ValueError, re.error) as error:
        raise OwnModelError(f"{where}: {error}") from None
    said = {key: value for key, value in values.items() if key != "row"}
    return OwnModel(**{"like": values.get("row"), **said})


def row_of(own: OwnModel, known: Known) -> ModelRow:
    """The row of the model table that it stands for, like one of those that are known.

    Raises:
        ValueError: there is no model that it is like, or what it says does not fit that one.
    """
    base = known.find(own.like) if own.like else None
    if own.like and base is None:
        names = [row.name for row in known.rows()]
        raise ValueError(f"like: no model {own.like!r} in the table{nearest(own.like, names)}")
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
        there = [row.name for row in known.rows() if row.local is not None]
        raise ValueError(
            "checkpoint: only a model that is like one of this machine has it; like: "
            f"no local model {own.like!r}{nearest(own.like or '', there)}"
        )
    else:
        _check_settings(settings)
        local = replace(local, checkpoints={own.name: own.checkpoint})
        settings |= {"space": own.space} if own.space is not None else {}
    api = base.api if base and own.served else None
    return ModelRow(
        name=own.name,
        names=own.names or re.escape(own.name),
        space=_rule(own, base),
        schemes=base.schemes if base else {},
        # What the other costs says nothing of this one.
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


def _check_settings(settings: Mapping[str, Any]) -> None:
    known = RunSettings.__dataclass_fields__
    for key in settings:
        if key not in known:
            raise ValueError(f"settings: no setting {key!r}{nearest(key, known)}")


# --- the file -------------------------------------------------------------------------------------


def offers(path: Path, known: Known) -> Sequence[Offer]:
    """The rows of the file for a table; the same object as long as the file is the same.

    Raises:
        OwnModelError, OSError: it cannot be read.
    """
    state = path.stat()
    return _offers(path, known, state.st_mtime_ns, state.st_size, state.st_ino)


@lru_cache(maxsize=8)
def _offers(path: Path, known: Known, mtime: int, size: int, inode: int) -> Sequence[Offer]:
    return tuple(
        Offer(plugin_of(path, at, values), Later(partial(_made, values, f"row {at}", known)))
        for at, values in enumerate(_entries(path), 1)
    )


def _made(values: object, where: str, known: Known) -> ModelRow:
    return row_of(own_model(values, where), known)


def plugin_of(path: Path, at: int, values: object) -> Plugin:
    """Where a row comes from; the version is that of the row, whatever else is in the file."""
    name = values.get("name") if isinstance(values, dict) else None
    said = json.dumps(values, sort_keys=True, default=str).encode()
    version = f"sha256:{sha256_of(said)[:12]}"
    return Plugin(f"{path.name}:{name or at}", version, str(path))


def _entries(path: Path) -> list[object]:
    """What a file has in place of rows, not yet looked at.

    Raises:
        OwnModelError: it has no list of them.
        OSError: it cannot be read.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OwnModelError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if isinstance(values, dict):
        if "models" not in values:
            raise OwnModelError(f"{path}: no key 'models', and no list of models")
        values = values["models"]
    if not isinstance(values, list) or not values:
        raise OwnModelError(f"{path}: should be a list of models, one mapping each")
    return values


def read_models(path: Path) -> list[OwnModel]:
    """The rows of a file of models, or those under ``models`` in a sweep's.

    Raises:
        OwnModelError: it has none, or one that cannot be used.
        OSError: it cannot be read.
    """
    return [own_model(one, f"{path}, row {at}") for at, one in enumerate(_entries(path), 1)]
