"""The file that says what a run is: ``<stem>_identity.json`` beside its predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .files import write_once
from .identity import Answering, Identity, IdentityError
from .row_ranges import rows_from, rows_text
from .run_files import RunFiles


def write_identity(path: Path, run: Identity) -> None:
    """Write it, whole or not at all; a file that says the same is not touched."""
    write_once(path, identity_bytes(run))


def identity_bytes(run: Identity) -> bytes:
    """What its file holds."""
    text = json.dumps(as_values(run), indent=1, ensure_ascii=False, default=str, allow_nan=False)
    return (text + "\n").encode("utf-8", "backslashreplace")


def as_values(run: Identity) -> dict[str, Any]:
    """A run as plain values; :func:`from_values` reads them back."""
    values = asdict(replace(run, rows=None, left_out=())) | {
        "rows": None if run.rows is None else rows_text(run.rows),
        "left_out": rows_text(run.left_out),
    }
    for where, name in ((values, "plugins"), (values, "asked_at"), (values["answering"], "server")):
        if not where[name]:
            del where[name]
    return values


def from_values(values: Mapping[str, Any]) -> Identity:
    """The run that plain values say.

    Raises:
        TypeError, KeyError, ValueError: they say none.
    """
    # Runs of before have no "chosen": nothing was.
    known = {
        "chosen": {},
        **values,
        "answering": Answering(**_typed(values["answering"], _ANSWERING)),
    }
    _typed(known, _IDENTITY)
    for name in ("rows", "left_out"):
        if known[name] is not None:
            known[name] = rows_from(known[name])
    known["forced"] = tuple(map(str, known["forced"]))
    return Identity(**known)


_TEXT = str | None
_TEXTS = ("kind", "row", "checkpoint", "revision", "endpoint", "server", "source")
_ANSWERING: Mapping[str, Any] = {
    **dict.fromkeys(_TEXTS, _TEXT),
    **dict.fromkeys(("runs_here", "hosts_own"), bool),
    "settings": dict,
}
_IDENTITY: Mapping[str, Any] = {
    **dict.fromkeys(("model", "dataset", "left_out"), str),
    **dict.fromkeys(("prompts", "prompt_hash", "table", "table_sha256", "rows"), _TEXT),
    **dict.fromkeys(("reads_like", "asked_at"), _TEXT),
    "space": dict | None,
    **dict.fromkeys(("chosen", "host", "versions", "plugins"), dict),
    "forced": list,
}


def _typed(values: Mapping[str, Any], types: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, kind in types.items():
        if name in values and not isinstance(values[name], kind):
            raise TypeError(f"{name} should not be {values[name]!r:.40}")
    return values


def read_identity(predictions: Path) -> Identity | None:
    """The identity of a prediction file; None for predictions of others.

    VLMEvalKit puts predictions into the model's folder or into a folder of the run below it; the
    record lies beside them or one folder up.

    Raises:
        IdentityError: there is one that cannot be read.
    """
    beside = RunFiles(predictions)
    above = RunFiles(predictions.parent.parent / predictions.name)
    for path in (beside.identity, above.identity):
        if path.is_file():
            return _read(path, from_values)
    for path in (beside.legacy_identity, above.legacy_identity):
        if path.is_file():
            return _read(path, lambda values: _legacy(values, predictions.stem))
    return None


def _read(path: Path, made_of: Callable[[Mapping[str, Any]], Identity]) -> Identity:
    try:
        return made_of(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise IdentityError(f"{path}: not the record of a run: {error}") from None


def _legacy(values: Mapping[str, Any], stem: str) -> Identity:
    """The record of a run before 0.2; the names are those of its file, and FindIt's: there was no
    other benchmark then.
    """
    model, _, variant = stem.partition("_FindIt_")
    return Identity(
        model=model,
        dataset=f"FindIt_{variant}",
        prompts=values["prompts"],
        prompt_hash=values["prompt_hash"],
        table_sha256=values["table_sha256"],
        left_out=tuple(values["left_out"]),
        space=values["space"],
    )
