"""The file of a run's identity, next to its predictions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..core.files import write_text_once
from ..core.shapes import checked
from ..core.text_files import read_json
from ..protocol.dataset_variant import rows_from, rows_text
from ..protocol.identity import Answering, Identity, IdentityError
from .run_files import RunFiles


def write_identity(path: Path, run: Identity) -> None:
    """Write an identity atomically, unless the file already says the same."""
    text = json.dumps(as_values(run), indent=1, ensure_ascii=False, default=str, allow_nan=False)
    write_text_once(path, text + "\n")


def as_values(run: Identity) -> dict[str, Any]:
    """Return a run as plain values; :func:`from_values` reads them back."""
    values = asdict(replace(run, rows=None, left_out=())) | {
        "rows": None if run.rows is None else rows_text(run.rows),
        "left_out": rows_text(run.left_out),
    }
    for name in ("plugins", "asked_at", "custom_prompt"):
        if not values[name]:
            del values[name]
    for name in ("server", "attributes"):
        if not values["answering"][name]:
            del values["answering"][name]
    return values


def from_values(values: Mapping[str, Any]) -> Identity:
    """Make a run of plain values; a TypeError, KeyError or ValueError if they are invalid."""
    known = dict(checked(values, _SHAPE), answering=Answering(**values["answering"]))
    for name in ("rows", "left_out"):
        if known[name] is not None:
            known[name] = rows_from(known[name])
    known["forced"] = tuple(map(str, known["forced"]))
    return Identity(**known)


_TEXT = str | None
_TEXTS = ("kind", "row", "checkpoint", "revision", "endpoint", "server", "source")
_SHAPE = {
    "answering": {
        **dict.fromkeys(_TEXTS, _TEXT),
        **dict.fromkeys(("runs_here", "in_vlmevalkit"), bool),
        "settings": dict,
        "attributes": dict | None,
    },
    **dict.fromkeys(("model", "dataset", "left_out"), str),
    **dict.fromkeys(("prompts", "prompt_hash", "table", "table_sha256", "rows"), _TEXT),
    **dict.fromkeys(("reads_like", "asked_at"), _TEXT),
    "space": dict | None,
    **dict.fromkeys(("resolved_options", "host", "versions", "plugins", "custom_prompt"), dict),
    "forced": list,
}


def read_identity(predictions: Path) -> Identity | None:
    """Read the identity of a prediction file; None for predictions of other programs.

    It lies in their folder or, as VLMEvalKit has folders of runs, one folder up.

    Raises:
        IdentityError: it cannot be read.
    """
    above = predictions.parent.parent / predictions.name
    path = next((p for at in (predictions, above) if (p := RunFiles(at).identity).is_file()), None)
    if path is None:
        return None
    try:
        return from_values(read_json(path))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise IdentityError(f"{path}: not the record of a run: {error}") from None
