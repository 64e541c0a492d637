"""Identity of a run that starts now, and which plug-ins runs use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .. import __version__
from ..benchmarks import benchmark_of, prefix_of, prefixes
from ..benchmarks.findit import FindItVariant
from ..boxes import REPRESENTATIONS, SPACE_KINDS
from ..core import Group, Plugin, PluginTable, file_sha256, installed
from ..models import MODELS, PROVIDERS
from ..protocol import (
    ENGINE_PACKAGES,
    PROVIDER_KIND,
    TRANSFORMERS,
    Answering,
    AnyDataset,
    DatasetVariant,
    Identity,
    PromptSet,
)

DISTRIBUTION = "vlmeval-findit"  # The package among the versions of a run

# Other packages whose version at inference a run records, beside those of its own engine
_AT_INFERENCE = (*ENGINE_PACKAGES[TRANSFORMERS], "pillow")


def run_identity(
    dataset: AnyDataset,
    model: str,
    answering: Answering,
    rows: Iterable[int],
    space: Mapping[str, Any] | None,
    prompt_hash: str | None = None,
    prompts: PromptSet | None = None,
) -> Identity:
    """Return the identity of a run over a dataset that starts now.

    ``rows`` are the indices that are asked. ``prompts`` are by default the prompt set in force;
    without its hash over the dataset every message is made here.
    """
    prompts = prompts or benchmark_of(dataset.variant).prompts()[0]
    spaces = [space["kind"]] if space else ()
    return Identity(
        model=model,
        dataset=dataset.variant.name,
        answering=answering,
        prompts=prompts.name,
        prompt_hash=prompt_hash or prompts.hash(dataset),
        resolved_options=dataset.resolved_options,
        table=dataset.table.name,
        table_sha256=file_sha256(dataset.table),
        rows=tuple(sorted(rows)),
        space=space,
        versions=_versions_now(answering),
        plugins=plugins_used(dataset.variant, answering.row, spaces, answering.kind),
        asked_at=_time_now(),
    )


def identity_of_others(
    model: str, dataset: str, answering: Answering, table: Path | None, host: Mapping[str, str]
) -> Identity:
    """Return the identity of a run over a dataset that is not FindIt's.

    ``host`` is the program that words its questions, with its version; a ``table`` of None is not
    known.
    """
    of_model = MODELS.plugin_of(answering.row)
    plugins = [*([of_model] if of_model is not None else []), *_provider_plugins(answering.kind)]
    return Identity(
        model=model,
        dataset=dataset,
        answering=answering,
        table=table.name if table is not None else None,
        table_sha256=file_sha256(table) if table is not None else None,
        host=host,
        versions=_versions_now(answering),
        plugins={plugin.name: plugin.version for plugin in plugins},
        asked_at=_time_now(),
    )


def _versions_now(answering: Answering) -> dict[str, str]:
    own = answering.engine_packages if answering.runs_here else ()
    packages = tuple(dict.fromkeys((*_AT_INFERENCE, *own)))
    return {DISTRIBUTION: __version__, **installed(packages)}


def _time_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- plug-ins -------------------------------------------------------------------------------------


def plugin_tables() -> Mapping[Group, PluginTable[Any]]:
    """Return every table that plug-ins add rows to, by its group."""
    # Imported late: its rows are read from a file, which a score need not wait for.
    from ..data import SOURCES

    tables = (MODELS, PROVIDERS, prefixes(), SPACE_KINDS, REPRESENTATIONS, SOURCES)
    return {table.group: table for table in tables}


def plugins_used(
    variant: DatasetVariant, row: str | None, spaces: Iterable[str], kind: str | None = None
) -> dict[str, str]:
    """Return the versions of the plug-ins whose rows a run uses, by their names.

    ``row`` is that of the model table; ``kind`` is of :class:`.Answering` and may name a provider.
    """
    plugins = [*scoring_plugins(variant, row, spaces), *_provider_plugins(kind)]
    return {plugin.name: plugin.version for plugin in plugins}


def _provider_plugins(kind: str | None) -> list[Plugin]:
    """Return the plug-in of a provider, if a model's kind names one that a plug-in brings."""
    if kind is None or not kind.startswith(PROVIDER_KIND):
        return []
    provider = PROVIDERS.plugin_of(kind.removeprefix(PROVIDER_KIND))
    return [provider] if provider is not None else []


def scoring_plugins(
    variant: DatasetVariant, row: str | None, spaces: Iterable[str]
) -> list[Plugin]:
    """Return the plug-ins whose rows decide a score: benchmark, model, spaces, representation."""
    plugins = [prefixes().plugin_of(prefix_of(variant.name)), MODELS.plugin_of(row)]
    plugins += [SPACE_KINDS.plugin_of(space) for space in spaces]
    if isinstance(variant, FindItVariant):
        plugins.append(REPRESENTATIONS.plugin_of(variant.representation))
    return [plugin for plugin in plugins if plugin is not None]


def installed_plugins() -> dict[str, list[str]]:
    """Return the versions of the plug-ins that are installed here, by their names."""
    versions: dict[str, list[str]] = {}
    for table in plugin_tables().values():
        for row in table.added().values():
            versions.setdefault(row.plugin.name, []).append(row.plugin.version)
    return versions
