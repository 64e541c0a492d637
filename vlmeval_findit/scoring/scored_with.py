"""What scored a run: code and plug-ins decide its rows, versions of libraries do not.

Scores are compared only if one scorer made them: every reader of several runs asks
:func:`other_scorer`. Scoring again takes seconds, and no model.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from ..core import as_called, installed, package_sha256
from ..protocol import DatasetVariant
from .new_identity import plugin_tables, scoring_plugins

if TYPE_CHECKING:
    from .scored_run import Run

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


def is_present(run: Run) -> bool:
    """Return whether the scorer that is here scored a run."""
    parts = scorer_parts(run.provenance.scored_with)
    return parts == scorer_now(parts)


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


def other_scorer(run: Run, other: Run) -> str:
    """Say that two runs were scored by other code, and what to type; "" if one scorer made both."""
    its = run.provenance.scored_with
    others = other.provenance.scored_with
    names = other_parts(its, others)
    if not names:
        return ""
    pairs = [f"{part_in_words(its, name)} and {part_in_words(others, name)}" for name in names]
    return (
        f"{run.path} and {other.path} were scored by two scorers: {'; '.join(pairs)}. Score both "
        f"again: {score_again((run, other))}"
    )


def score_again(runs: Sequence[Run]) -> str:
    """Return the command that scores runs again: their folder, or what several folders are in."""
    marked = [run for run in runs if run.mark]
    folders = {str(run.path.parent) for run in runs if not run.mark}
    words = ["score", *_above(folders), *(str(run.files.score) for run in marked)]
    if any(run.provenance.reviews for run in marked):
        words += ["--reviews", "FILE"]
    return as_called(f"python run_findit.py {shlex.join(words)}")


def _above(folders: Iterable[str]) -> list[str]:
    """Return the folder that all are in; all of them, where that is nearly the whole disk."""
    folders = sorted(folders)
    if len(folders) < 2:
        return folders
    try:
        common = Path(os.path.commonpath(folders))
    except ValueError:  # Relative and absolute, or of two drives
        return folders
    return folders if common in (Path(), Path(common.anchor), Path.home()) else [str(common)]
