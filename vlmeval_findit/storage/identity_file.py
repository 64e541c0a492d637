"""The file of a run's identity, next to its predictions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from ..core import Checked, MisplacedError, TextError, read_json, validate, write_text_once
from ..protocol import Identity, IdentityError, rows_text
from .run_files import RunFiles


def write_identity(path: Path, run: Identity) -> None:
    """Write an identity atomically, unless the file already says the same."""
    text = json.dumps(
        identity_values(run), indent=1, ensure_ascii=False, default=str, allow_nan=False
    )
    write_text_once(path, text + "\n")


def identity_values(run: Identity) -> dict[str, Any]:
    """Return a run as plain values; :func:`identity_from` reads them back."""
    values = asdict(replace(run, rows=None, left_out=())) | {
        "rows": None if run.rows is None else rows_text(run.rows),
        "left_out": rows_text(run.left_out),
    }
    for name in ("plugins", "asked_at", "custom_prompt", "space_source", "earlier_proxies"):
        if not values[name]:
            del values[name]
    for name in ("server", "attributes"):
        if not values["answering"][name]:
            del values["answering"][name]
    if values["answering"]["headers"] is None:
        del values["answering"]["headers"]
    return values


def _with_required_keys(values: Any) -> Any:
    """Refuse values without a key that every version has written."""
    for name in ("answering", "rows", "left_out", "forced"):
        if isinstance(values, Mapping) and name not in values:
            raise MisplacedError(f"{name} is missing")
    return values


# An identity as a file has it
StoredIdentity = Annotated[Identity, Checked(_with_required_keys, before=True)]


def identity_from(values: object) -> Identity:
    """Make a run of plain values, or raise a MisplacedError."""
    run: Identity = validate(StoredIdentity, values)
    return run


def read_identity(predictions: Path) -> Identity | None:
    """Read the identity of a prediction file; None for predictions of other programs.

    It lies in their folder or, as VLMEvalKit has folders of runs, one folder up.

    Raises:
        IdentityError: it cannot be read.
    """
    path = RunFiles(predictions).identity
    if not path.is_file():
        path = RunFiles(predictions.parent.parent / predictions.name).identity
    return read_record(path)


def read_record(path: Path) -> Identity | None:
    """Read a file that :func:`write_identity` wrote; None if it is not there.

    Raises IdentityError: it cannot be read.
    """
    if not path.is_file():
        return None
    try:
        return identity_from(read_json(path))
    except MisplacedError as error:
        raise IdentityError(f"{path}: not a record of a run: {error.below()}") from None
    except TextError as error:
        raise IdentityError(f"{path}: not a record of a run: {error}") from None
