"""Which plug-ins a run uses, and whether those that it used are here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..benchmarks import prefix_of, prefixes
from ..benchmarks.findit.variant import Variant
from ..boxes.representation import REPRESENTATIONS
from ..boxes.spaces import KINDS
from ..core.identity import PLUGIN, PROVIDER, Contradiction
from ..core.places import OWN_MODELS
from ..core.plugins import Group, Table
from ..core.question import Question
from ..data.sources import SOURCES
from ..models.http.providers.table import PROVIDERS
from ..models.model_table import MODELS


def plugin_tables() -> Mapping[Group, Table[Any]]:
    """Every table that plug-ins add rows to, by its group."""
    found = (MODELS, PROVIDERS, prefixes(), KINDS, REPRESENTATIONS, SOURCES)
    return {table.group: table for table in found}


def plugins_used(
    question: Question, row: str | None, spaces: Iterable[str], kind: str | None = None
) -> dict[str, str]:
    """The plug-ins whose rows a run uses, with their versions; empty where it uses ours alone.

    Args:
        question: what is asked.
        row: the row of the model table.
        spaces: the coordinate spaces of the replies.
        kind: of the model (:class:`.Answering`), which may name a provider.
    """
    found = [prefixes().plugin_of(prefix_of(question.name)), MODELS.plugin_of(row)]
    found += [KINDS.plugin_of(kind) for kind in spaces]
    if kind is not None and kind.startswith(PROVIDER):
        found.append(PROVIDERS.plugin_of(kind.removeprefix(PROVIDER)))
    if isinstance(question, Variant):
        found.append(REPRESENTATIONS.plugin_of(question.representation))
    return {one.name: one.version for one in found if one is not None}


def plugin_conflicts(recorded: Mapping[str, str]) -> list[Contradiction]:
    """The plug-ins of a run that are not here, or in another version."""
    if not recorded:
        return []
    here = _here()
    return [
        Contradiction(f"{PLUGIN}{name}", version, ", ".join(here.get(name, ())) or _absent(name))
        for name, version in recorded.items()
        if version not in here.get(name, ())
    ]


def _here() -> dict[str, list[str]]:
    """The versions of all plug-ins that add a row here, by their names."""
    found: dict[str, list[str]] = {}
    for table in plugin_tables().values():
        for one in table.added().values():
            found.setdefault(one.plugin.name, []).append(one.plugin.version)
    return {name: list(dict.fromkeys(versions)) for name, versions in found.items()}


def _absent(name: str) -> str:
    how = f"--plugin …/{name}" if name.endswith(".py") else f"pip install {name}"
    if name.startswith(f"{OWN_MODELS}:"):
        how = "run_findit.py models --add FILE.yaml"
    return f"not here: {how}"
