"""What is known of an annotation table, in ``<table>.meta.json`` beside it."""

from __future__ import annotations

import json
from pathlib import Path

from .data_root import lmu_data_root


def meta_path(table: Path) -> Path:
    """Where the facts about a table lie."""
    return table.with_suffix(".meta.json")


def is_users_table(name: str) -> bool:
    """Return whether VLMEvalKit's user has a table ``<name>.tsv`` that we did not make."""
    table = lmu_data_root() / f"{name}.tsv"
    return table.is_file() and not meta_path(table).is_file()


def made_of(table: Path) -> str | None:
    """The checksum of what a table was made of; None where it, or what is known of it, is not there
    or damaged.
    """
    try:
        values = json.loads(meta_path(table).read_text(encoding="utf-8"))
        return str(values["source_sha256"]) if table.is_file() else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def contradiction(table: Path, sha256: str) -> str | None:
    """What in the facts about a table speaks against a content with this checksum, and that it is
    to be made anew; None where nothing does, or nothing is known of it.
    """
    facts = meta_path(table)
    try:
        recorded = json.loads(facts.read_text(encoding="utf-8"))["table_sha256"]
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, RecursionError):
        return f"{facts}: records no table_sha256; delete it, or make the table anew with"
    if recorded == sha256:
        return None
    return (
        f"{table}: SHA-256 is {sha256}, but {facts.name} records {recorded}: the table was "
        "changed after it was made; make it anew with"
    )
