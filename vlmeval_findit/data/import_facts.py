"""What the facts beside an imported table (``.meta.json``) say of its import."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..storage import table_facts

# The fact that every image was to be asked about every class
ALL_CLASSES = "all classes"


def unlike_file(table: Path) -> Mapping[str, int]:
    """Return by what, and how often, a table is not what pycocotools reads of the imported file.

    It is empty where nothing is, and for tables that were not imported.
    """
    entries = (table_facts(table) or {}).get("ledger", ())
    return {each["what"]: each["count"] for each in entries if each.get("unlike_file")}


def asks_for_all_classes(table: Path) -> bool:
    """Tell whether a table was imported with a question about each class for every image."""
    return bool((table_facts(table) or {}).get(ALL_CLASSES))
