"""What a column of the leaderboard is, and which runs can be compared in it.

A column is what is asked (``question.column``); how the answer was to be written, its format, is
the run's own affair.  Two runs of a column are comparable when they were asked in the words of the
same prompt set, over the same table, and scored over the same rows by the same scorer, where
something beside the benchmark's own code decides what is right; a plug-in that both used must have
been the same version.  What is not comparable with the
rest of its column is set apart with the reason; it is never mixed in and never silently dropped.

Of several runs of one model in one format the one counts that was asked last.  Where their
identities contradict each other they are different models or settings under one name: none of them
counts, and the reason says how to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from ..core.identity import SPACE, IdentityConflict, identity_conflicts
from ..core.scored_row import sources
from ..runs.provenance import UNKNOWN_PROMPTS, Provenance
from ..runs.scored_run import Run


@dataclass(frozen=True, slots=True)
class ComparableRuns:
    """The runs of one question that can be compared with each other."""

    name: str
    family: str
    runs: tuple[Run, ...]

    @property
    def queries(self) -> int:
        return len(self.runs[0].rows)

    @property
    def sources(self) -> int:
        """How many pictures or videos its queries show."""
        return sources(self.runs[0].rows)


@dataclass(frozen=True, slots=True)
class ExcludedRun:
    """A run that is not in the leaderboard, and why."""

    run: Run
    reason: str


def group_comparable(
    runs: Iterable[Run],
) -> tuple[tuple[ComparableRuns, ...], tuple[ExcludedRun, ...]]:
    """Sort runs into columns; what cannot be compared with the rest of its column is set apart.

    The rest is the largest group of a column: of the most models, then of the most rows, then of
    the most runs.
    """
    columns: list[ComparableRuns] = []
    apart: list[ExcludedRun] = []
    ordered = sorted(runs, key=lambda run: run.question.column)
    for name, members in groupby(ordered, key=lambda run: run.question.column):
        kept = list(members)
        for rule in (_with_rows, _comparable, _same_words, _same_plugins, _one_a_cell):
            kept, left = rule(kept)
            apart += left
        if kept:
            kept.sort(key=lambda run: (run.model, run.question.name))
            columns.append(ComparableRuns(name, kept[0].question.family_name, tuple(kept)))
    return tuple(columns), tuple(apart)


Sorted = tuple[list[Run], list[ExcludedRun]]


def _with_rows(runs: Sequence[Run]) -> Sorted:
    kept = [run for run in runs if run.rows]
    return kept, [ExcludedRun(run, "no row was scored") for run in runs if not run.rows]


# --- the same questions ---------------------------------------------------------------------------


def _key(run: Run) -> Hashable:
    provenance = run.provenance
    return provenance.prompts, provenance.table_sha256, provenance.rows, provenance.scored_under


def _comparable(runs: Sequence[Run]) -> Sorted:
    return _largest(runs, _key, _reason)


def _reason(run: Run, rest: Run) -> str:
    ours, theirs = run.provenance, rest.provenance
    why = []
    if ours.prompts != theirs.prompts:
        if ours.prompts == UNKNOWN_PROMPTS:
            why.append(f"it did not record its prompts, the rest was asked in {theirs.prompts}")
        else:
            why.append(f"other prompts: {ours.prompts}, the rest {theirs.prompts}")
    if ours.table_sha256 != theirs.table_sha256:
        why.append(
            f"other subset: {ours.table} has SHA-256 {ours.table_sha256[:12]}…, "
            f"the rest {theirs.table_sha256[:12]}…"
        )
    if ours.scored_under != theirs.scored_under:
        why.append(_scorer_reason(ours, theirs))
    if ours.rows != theirs.rows:
        why.append(_rows_reason(run, theirs.rows))
    return "; ".join(why)


def _scorer_reason(ours: Provenance, theirs: Provenance) -> str:
    other = sorted({name for name, _ in ours.scored_under ^ theirs.scored_under})
    return (
        f"scored by {ours.scorer and ours.scorer.name}, the rest by "
        f"{theirs.scorer and theirs.scorer.name}: other {', '.join(other)}; score it again by that"
    )


def _rows_reason(run: Run, rest: frozenset[int]) -> str:
    rows = run.provenance.rows
    missing, extra = sorted(rest - rows), sorted(rows - rest)
    parts = []
    if missing:
        unsent = len(set(missing) & set(run.provenance.left_out))
        because = f", {unsent} of them without a usable image" if unsent else ""
        parts.append(f"rows missing: {len(missing)} (first: {missing[0]}){because}")
    if extra:
        parts.append(f"rows that the rest lacks: {len(extra)} (first: {extra[0]})")
    return f"other rows: {len(rows)} scored, the rest {len(rest)}; {', '.join(parts)}"


def _same_words(runs: Sequence[Run]) -> Sorted:
    """Runs of one question that say they used one prompt set must have asked the same words."""
    kept: list[Run] = []
    apart: list[ExcludedRun] = []
    for members in _by(runs, lambda run: run.question).values():
        rest, others = _largest(members, lambda run: run.provenance.prompt_hash, _words_reason)
        kept += rest
        apart += others
    return kept, apart


def _words_reason(run: Run, other: Run) -> str:
    return (
        f"other words under the same name {run.provenance.prompts}: prompts hash "
        f"{_short(run.provenance.prompt_hash)}, the rest {_short(other.provenance.prompt_hash)}"
    )


def _same_plugins(runs: Sequence[Run]) -> Sorted:
    """Runs that used one plug-in must have used one version of it."""
    kept = list(runs)
    apart: list[ExcludedRun] = []
    for name in sorted({name for run in runs for name in run.provenance.plugins}):
        users = [run for run in kept if name in run.provenance.plugins]
        _, others = _largest(users, partial(_version, name), partial(_version_reason, name))
        apart += others
        left = {id(one.run) for one in others}
        kept = [run for run in kept if id(run) not in left]
    return kept, apart


def _version(plugin: str, run: Run) -> str:
    return run.provenance.plugins[plugin]


def _version_reason(plugin: str, run: Run, rest: Run) -> str:
    return f"the plug-in {plugin} is {_version(plugin, run)}, for the rest {_version(plugin, rest)}"


def _short(checksum: str | None) -> str:
    return f"{checksum[:12]}…" if checksum else "unknown"


def _one_a_cell(runs: Sequence[Run]) -> Sorted:
    """One run a model and format: of runs that nothing tells apart, the one that was asked last."""
    kept: list[Run] = []
    apart: list[ExcludedRun] = []
    for members in _by(runs, lambda run: (run.model, run.question)).values():
        unclear = {run.path: why for run in members if (why := _unclear(run, members))}
        *older, newest = sorted(members, key=_when)
        if unclear:
            apart += [ExcludedRun(run, unclear.get(run.path, _ONE_NAME)) for run in members]
            continue
        kept.append(newest)
        for run in older:
            again = run.provenance.predictions_sha256 == newest.provenance.predictions_sha256
            what = "the same predictions as" if again else "another run of this cell, older than"
            apart.append(ExcludedRun(run, f"{what} {newest.path}"))
    return kept, apart


_ONE_NAME = "other runs of its model and format contradict each other"
_CHOOSE = "give the files of the run that is meant in place of their folder"


def _when(run: Run) -> tuple[str, str, str]:
    return _asked_at(run) or "", run.provenance.scored_at, str(run.path)


def _asked_at(run: Run) -> str | None:
    return run.provenance.identity.asked_at if run.provenance.identity else None


def _unclear(run: Run, members: Sequence[Run]) -> str:
    """Why it cannot be said whether a run, or another of its cell, is meant; empty where it can."""
    for other in members:
        told = _differences(run, other)
        if told:
            return f"another run under one name: {other.path} differs in {told}; {_CHOOSE}"
        same = run.provenance.predictions_sha256 == other.provenance.predictions_sha256
        if not same and None in (_asked_at(run), _asked_at(other)):
            return f"nothing says whether {other.path} was asked later; {_CHOOSE}"
    return ""


def _differences(run: Run, other: Run) -> str:
    """In what two runs of one cell contradict each other, with both values."""
    ours, theirs = run.provenance.identity, other.provenance.identity
    found = identity_conflicts(ours, theirs) if ours and theirs else []
    if not any(one.is_space for one in found) and _spaces(run) != _spaces(other):
        found.append(IdentityConflict(SPACE, _spaces(run), _spaces(other)))
    return ", ".join(one.of_two_runs for one in found)


def _spaces(run: Run) -> str:
    """The spaces that a run is scored in, whoever said them."""
    return "; ".join(sorted({text.rpartition(" (")[0] for text in run.provenance.spaces}))


# --- groups ---------------------------------------------------------------------------------------


def _by(runs: Iterable[Run], key: Callable[[Run], Any]) -> Mapping[Hashable, list[Run]]:
    groups: dict[Hashable, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def _largest(
    runs: Iterable[Run], key: Callable[[Run], Any], why: Callable[[Run, Run], str]
) -> Sorted:
    """Keep the largest group of runs by a key: of the most models, then of the most rows and runs.

    Of equal groups it is the one met first; ``why`` says how a run differs from one of it.
    """

    def size(group: Sequence[Run]) -> tuple[int, int, int]:
        return len({run.model for run in group}), len(group[0].provenance.rows), len(group)

    rest, *others = sorted(_by(runs, key).values(), key=size, reverse=True) or [[]]
    return rest, [ExcludedRun(run, why(run, rest[0])) for group in others for run in group]
