"""Errata: what released versions computed wrongly, and which runs that may affect.

A row of ``errata.yaml`` is one fact. Its condition is tried on what the files of a run record; a
row without a condition cannot be told from them, and stands on docs/reference/errata.md alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml

from .. import __version__
from ..benchmarks import benchmark_of
from ..core import Config, Name, Text, counted, read_json, row_of, validate
from ..models import find_model
from ..protocol import GIVEN_SOURCE, PROVIDER_KIND, DatasetVariant, Identity
from .new_identity import DISTRIBUTION
from .other_scorers import score_again
from .recorded_scorer import CODE, PACKAGE_KEY
from .row_scoring import RunScore
from .stored_runs import Run

PAGE = "docs/reference/errata.md"

Kind = Literal["score", "run", "data", "cost", "board"]
FIRST_RELEASE = "1.0.0"  # It recorded no hash of its code, and no ledger of an import


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the files of a run record, as far as a condition may ask for it."""

    path: Path  # Of the predictions
    variant: DatasetVariant
    identity: Identity | None
    spaces: tuple[str, ...]  # Kinds on record; none where another was stated to score
    reasons: Collection[str]  # Why replies do not adhere
    table: Mapping[str, Any]  # The facts of the table's .meta.json
    scored_with: Mapping[str, str]
    run: Run | None = None  # None while it is scored: then no erratum of scores holds


def facts_of(run: Run) -> RunFacts:
    """Return the facts of a loaded run."""
    provenance = run.provenance
    return RunFacts(
        path=run.path,
        variant=run.variant,
        identity=provenance.identity,
        spaces=() if run.other_space else tuple(space["kind"] for space in provenance.spaces),
        reasons=frozenset(provenance.reasons),
        table=provenance.made_of,
        scored_with=provenance.scored_with,
        run=run,
    )


def facts_of_score(run: RunScore, predictions: Path) -> RunFacts:
    """Return the facts of a run that was scored just now."""
    meta = run.dataset.table.with_suffix(".meta.json")
    stated = any(space["source"].startswith(GIVEN_SOURCE) for space in run.spaces)
    return RunFacts(
        path=predictions,
        variant=run.dataset.variant,
        identity=run.identity,
        spaces=() if stated else tuple(space["kind"] for space in run.spaces),
        reasons=run.reasons,
        table=read_json(meta) if meta.is_file() else {},
        scored_with={},
    )


# --- facts that conditions name -------------------------------------------------------------------


def _answered(run: RunFacts) -> list[str]:
    if run.identity is None:
        return ["not recorded"]
    who = run.identity.answering
    if (who.kind or "").startswith(PROVIDER_KIND):
        return ["server", "provider"]
    if who.endpoint:
        return ["server"]
    return ["here"] if who.runs_here else []


def _checkpoint(run: RunFacts) -> list[str]:
    """Return "folder" for a folder of files: its revision is their hash."""
    revision = run.identity.answering.revision if run.identity else None
    return ["folder"] if (revision or "").startswith("sha256:") else []


OTHER_THAN_TABLE = "not the model table's"


def _space(run: RunFacts) -> list[str]:
    kinds = list(run.spaces)
    row = run.identity.answering.row if run.identity else None
    known = find_model(row) if row else None
    if known is not None and kinds and known.space(run.variant).kind not in kinds:
        kinds.append(OTHER_THAN_TABLE)
    return kinds


def _imported(run: RunFacts) -> list[str]:
    """Return the suffix of the imported file, or "folder"; nothing for data of other origin."""
    if "imported as" not in run.table:
        return []
    suffix = Path(str(run.table.get("source"))).suffix.lower().removeprefix(".")
    return [suffix if suffix in ("json", "jsonl", "csv") else "folder"]


def _stated(run: RunFacts) -> list[str]:
    return ["reads_like"] if run.identity and run.identity.reads_like else []


# What a condition may name, and the values that a run has of it
def _settings(run: RunFacts) -> Collection[str]:
    """Return the names of the settings that a run recorded."""
    return run.identity.answering.settings.keys() if run.identity else ()


FACTS: Mapping[str, Callable[[RunFacts], Collection[str]]] = {
    "benchmark": lambda run: [benchmark_of(run.variant).name],
    "answered": _answered,
    "checkpoint": _checkpoint,
    "space": _space,
    "stated": _stated,
    "reason": lambda run: run.reasons,
    "file": lambda run: [run.path.suffix.lower()],
    "imported": _imported,
    "setting": _settings,
}


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Erratum(Config):
    """A row of the table: something that released versions computed wrongly."""

    name: Name
    of: Kind
    versions: frozenset[Name]
    what: Text
    wrong: Text
    remedy: Text
    when: Mapping[Annotated[Text, row_of(FACTS, "fact")], frozenset[Name]] | None = None

    def holds(self, values: Mapping[str, Collection[str]]) -> bool:
        """Return whether the condition holds for a run, by its values of :data:`FACTS`."""
        if self.when is None:
            return False
        return all(not named.isdisjoint(values[fact]) for fact, named in self.when.items())


def _scored_by(run: RunFacts) -> str:
    """Return the release that scored a run; "" for commits after 1.0.0 under its name."""
    version = run.scored_with.get(PACKAGE_KEY, "")
    return "" if version == FIRST_RELEASE and CODE in run.scored_with else version


def _asked_by(run: RunFacts) -> str:
    return run.identity.versions.get(DISTRIBUTION, "") if run.identity else ""


def _imported_by(run: RunFacts) -> str:
    return FIRST_RELEASE if "ledger" not in run.table else ""


def _nobody(run: RunFacts) -> str:
    """Return "": what is made of scores is right as soon as it is made again."""
    return ""


_VERSION_OF: Mapping[Kind, Callable[[RunFacts], str]] = {
    "score": _scored_by,
    "run": _asked_by,
    "cost": _asked_by,
    "data": _imported_by,
    "board": _nobody,
}


@cache
def errata() -> Sequence[Erratum]:
    """Return all errata, in the order of the file."""
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return validate(tuple[Erratum, ...], yaml.load(text, loader))


_WITHOUT_ERRATA = {"", __version__}  # No version knows its own: then the table is not read


def errata_of(run: RunFacts) -> list[Erratum]:
    """Return the errata that may affect a run, in the order of the file."""
    made_by = {kind: version_of(run) for kind, version_of in _VERSION_OF.items()}
    if set(made_by.values()) <= _WITHOUT_ERRATA:
        return []
    candidates = [row for row in errata() if made_by[row.of] in row.versions]
    if not candidates:
        return []
    values = {fact: values_of(run) for fact, values_of in FACTS.items()}
    return [row for row in candidates if row.holds(values)]


# --- remarks --------------------------------------------------------------------------------------

_MOST = 4  # Most errata that a remark names; the page has all


def errata_lines(runs: Iterable[RunFacts]) -> list[str]:
    """Say how many runs errata may affect, and what to type: a line for each kind of erratum."""
    runs = list(runs)
    found = [(row, run) for run in runs for row in errata_of(run)]
    lines = []
    for kind, advice in _ADVICE.items():
        pairs = [(row, run) for row, run in found if row.of == kind]
        if not pairs:
            continue
        rows = {row.name: row for row, _ in pairs}
        affected = list({id(run): run for _, run in pairs}.values())
        count = counted(len(runs), "run")
        which = f"{len(affected):,} of {count}" if len(affected) < len(runs) else count
        if len(affected) < len(runs):
            which += f" (first: {affected[0].path})"
        more = f" and {len(rows) - _MOST} more" if len(rows) > _MOST else ""
        versions = ", ".join(sorted({each for row in rows.values() for each in row.versions}))
        names = ", ".join(list(rows)[:_MOST])
        lines.append(
            f"{which} may be affected by errors of {PACKAGE_KEY} {versions}: {names}{more}. "
            f"{advice(affected)}"
        )
    return lines


def _score_again(affected: Sequence[RunFacts]) -> str:
    return f"Score again: {score_again([each.run for each in affected if each.run])}"


# What to do about the errata of a kind; those of boards are gone when a board is made
_ADVICE: Mapping[Kind, Callable[[Sequence[RunFacts]], str]] = {
    "score": _score_again,
    "run": lambda affected: f"How to tell, and what to ask again: {PAGE}",
    "data": lambda affected: f"How to tell, and what to import again: {PAGE}",
    "cost": lambda affected: f"Which amounts are too low: {PAGE}",
}
