"""What scored a run: code and plug-ins decide its rows, versions of libraries do not."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from .. import __version__
from ..core import installed, package_sha256
from ..protocol import DatasetVariant
from .new_identity import plugin_tables, scoring_plugins

# Their code decides a score: scoring may import these rooms, and no other
ROOMS = (
    "core", "protocol", "statistics", "storage", "boxes", "marks", "serving", "models",
    "benchmarks", "coords", "data", "scoring",
)  # fmt: skip

PACKAGE_KEY = "vlmeval_findit"  # Key of the package's version in ``scored_with``
CODE = "code"  # Key of the hash of the code there
_PLUGIN = "plug-in "  # How the names of plug-ins begin


def versions_now() -> dict[str, str]:
    """Return the versions that score now, and the hash of the code."""
    return {
        PACKAGE_KEY: __version__,
        CODE: package_sha256(ROOMS),
        "python": sys.version.split()[0],
        **installed(("numpy", "scipy")),
    }


def scored_with_now(
    variant: DatasetVariant, row: str | None, spaces: Iterable[str]
) -> dict[str, str]:
    """Return what scores a run now: versions, code, and the plug-ins whose rows decide."""
    plugins = scoring_plugins(variant, row, spaces)
    return versions_now() | {f"{_PLUGIN}{plugin.name}": plugin.code for plugin in plugins}


def scorer_parts(scored_with: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of a scorer by name: the package, and each plug-in.

    numpy and scipy do not decide rows (docs/reference/files.md), nor does a version whose code was
    recorded: two may have the same code.
    """
    version = f"version {scored_with.get(PACKAGE_KEY, 'unknown')}"
    plugins = {name: code for name, code in scored_with.items() if name.startswith(_PLUGIN)}
    return {PACKAGE_KEY: scored_with.get(CODE, version), **plugins}


def scorer_now(names: Iterable[str]) -> dict[str, str]:
    """Return the parts of the scorer that is here, of those that are named."""
    names = list(names)
    here = {PACKAGE_KEY: package_sha256(ROOMS)}
    if names != [PACKAGE_KEY]:
        rows = (row for table in plugin_tables().values() for row in table.added().values())
        here |= {f"{_PLUGIN}{row.plugin.name}": row.plugin.code for row in rows}
    return {name: here[name] for name in names if name in here}


def part_in_words(scored_with: Mapping[str, str], name: str) -> str:
    """Name a part of a scorer.

    >>> part_in_words({"vlmeval_findit": "1.0.0"}, "vlmeval_findit")
    'vlmeval_findit 1.0.0 (code not recorded)'
    """
    if name != PACKAGE_KEY:
        return f"{name} {scored_with.get(name, '(unknown)')}"
    code = scored_with.get(CODE)
    recorded = f"code {code[:12]}" if code else "code not recorded"
    return f"{PACKAGE_KEY} {scored_with.get(PACKAGE_KEY, '(version unknown)')} ({recorded})"


def other_parts(its: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """Return the parts in which two scorers differ; a plug-in that one did not use is none.

    Args:
        its: what scored a run, of :func:`scored_with_now`.
        others: what scored another.
    """
    here = scorer_parts(its)
    there = scorer_parts(others)
    return [name for name, part in here.items() if there.get(name, part) != part]
