"""Group the runs of a dataset that can be compared.

A dataset (``question.board_dataset``) has runs in any format. Two of them are comparable if they
were asked in the words of the same prompt set, over the same table, and scored over the same rows
by the same scorer; a plug-in that both used must have the same version. Other runs are excluded
with the reason: never mixed in, never silently dropped.

Of several runs of a model in a format the run counts that was asked last. If their identities
contradict each other they are different models or settings under one name: none of them counts, and
the reason tells the user how to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from ..core.identity import SPACE, IdentityConflict, identity_conflicts
from ..core.scored_row import sources
from ..runs.provenance import UNKNOWN_PROMPTS, Provenance
from ..runs.scored_run import Run

_K = TypeVar("_K")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ComparableRuns:
    """The runs of a dataset that can be compared."""

    name: str
    family: str
    runs: tuple[Run, ...]

    @property
    def queries(self) -> int:
        return len(self.runs[0].rows)

    @property
    def images(self) -> int:
        """Number of images or videos that the queries show."""
        return sources(self.runs[0].rows)


@dataclass(frozen=True, slots=True)
class ExcludedRun:
    """A run that is not in the leaderboard, with the reason."""

    run: Run
    reason: str


Sorted = tuple[list[Run], list[ExcludedRun]]
"""Comparable runs, and excluded ones."""


def group_comparable(
    runs: Iterable[Run],
) -> tuple[tuple[ComparableRuns, ...], tuple[ExcludedRun, ...]]:
    """Group runs by dataset; exclude runs that cannot be compared with the rest.

    The rest is the largest group: by number of models, then of rows, then of runs.
    """
    datasets: list[ComparableRuns] = []
    excluded: list[ExcludedRun] = []
    for name, comparable in sorted(grouped(runs, lambda run: run.question.board_dataset).items()):
        for rule in (_with_rows, _same_task, _same_words, _same_plugins, _newest):
            comparable, others = rule(comparable)
            excluded += others
        if comparable:
            comparable.sort(key=lambda run: (run.model, run.question.name))
            family = comparable[0].question.family_name
            datasets.append(ComparableRuns(name, family, tuple(comparable)))
    return tuple(datasets), tuple(excluded)


def _with_rows(runs: Sequence[Run]) -> Sorted:
    empty = [ExcludedRun(run, "no row was scored") for run in runs if not run.rows]
    return [run for run in runs if run.rows], empty


# --- the same questions ---------------------------------------------------------------------------


def _same_task(runs: Sequence[Run]) -> Sorted:
    key = attrgetter("prompts", "table_sha256", "rows", "scored_under")
    return _largest(runs, lambda run: key(run.provenance), _task_reason)


def _task_reason(run: Run, rest: Run) -> str:
    provenance, other = run.provenance, rest.provenance
    reasons = []
    if provenance.prompts != other.prompts:
        if provenance.prompts == UNKNOWN_PROMPTS:
            reasons.append(f"it did not record its prompts, the rest was asked in {other.prompts}")
        else:
            words = provenance.custom_words or f"other prompts: {provenance.prompts}"
            reasons.append(f"{words}, the rest {other.custom_words or other.prompts}")
    if provenance.table_sha256 != other.table_sha256:
        reasons.append(
            f"other subset: {provenance.table} has SHA-256 {_short(provenance.table_sha256)}, "
            f"the rest {_short(other.table_sha256)}"
        )
    if provenance.scored_under != other.scored_under:
        reasons.append(_scorer_reason(provenance, other))
    if provenance.rows != other.rows:
        reasons.append(_rows_reason(provenance, other.rows))
    return "; ".join(reasons)


def _scorer_reason(provenance: Provenance, other: Provenance) -> str:
    settings = sorted({name for name, _ in provenance.scored_under ^ other.scored_under})
    return (
        f"scored by {provenance.scorer and provenance.scorer.name}, the rest by "
        f"{other.scorer and other.scorer.name}: other {', '.join(settings)}; score it again by that"
    )


def _rows_reason(provenance: Provenance, rest: frozenset[int]) -> str:
    missing, extra = sorted(rest - provenance.rows), sorted(provenance.rows - rest)
    parts = []
    if missing:
        parts.append(f"rows missing: {len(missing)} (first: {missing[0]})")
    if extra:
        parts.append(f"rows that the rest lacks: {len(extra)} (first: {extra[0]})")
    return f"other rows: {len(provenance.rows)} scored, the rest {len(rest)}; {', '.join(parts)}"


def _same_words(runs: Sequence[Run]) -> Sorted:
    """Keep runs of a question with the same words under the same name of a prompt set."""
    comparable: list[Run] = []
    excluded: list[ExcludedRun] = []
    for members in grouped(runs, lambda run: run.question).values():
        rest, others = _largest(
            members,
            lambda run: run.provenance.prompt_hash,
            lambda run, other: (
                f"other words under the same name {run.provenance.prompts}: prompts hash "
                f"{_short(run.provenance.prompt_hash)}, the rest "
                f"{_short(other.provenance.prompt_hash)}"
            ),
        )
        comparable += rest
        excluded += others
    return comparable, excluded


def _short(checksum: str | None) -> str:
    return f"{checksum[:12]}…" if checksum else "unknown"


def _same_plugins(runs: Sequence[Run]) -> Sorted:
    """Keep runs that used the same version of each plug-in."""
    comparable = list(runs)
    excluded: list[ExcludedRun] = []
    for name in sorted({name for run in runs for name in run.provenance.plugins}):

        def version(run: Run, name: str = name) -> str:
            return run.provenance.plugins[name]

        _, others = _largest(
            [run for run in comparable if name in run.provenance.plugins],
            version,
            lambda run, rest, name=name, version=version: (  # type: ignore[misc]
                f"the plug-in {name} is {version(run)}, for the rest {version(rest)}"
            ),
        )
        excluded += others
        left = {id(each.run) for each in others}
        comparable = [run for run in comparable if id(run) not in left]
    return comparable, excluded


# --- a single run of each model and format --------------------------------------------------------

_SAME_NAME = "other runs of its model and format contradict each other"
_CHOOSE = "name the files of the right run in place of their folder"


def _newest(runs: Sequence[Run]) -> Sorted:
    """Keep the run of a model in a format that was asked last.

    If their identities contradict each other they are different models or settings under one name:
    then all are excluded.
    """
    comparable: list[Run] = []
    excluded: list[ExcludedRun] = []
    for members in grouped(runs, lambda run: (run.model, run.question)).values():
        unclear = {run.path: why for run in members if (why := _unclear(run, members))}
        if unclear:
            excluded += [ExcludedRun(run, unclear.get(run.path, _SAME_NAME)) for run in members]
            continue
        *older, newest = sorted(members, key=_when)
        comparable.append(newest)
        for run in older:
            what = "the same predictions as"
            if run.provenance.predictions_sha256 != newest.provenance.predictions_sha256:
                what = "another run of this cell, older than"
            excluded.append(ExcludedRun(run, f"{what} {newest.path}"))
    return comparable, excluded


def _when(run: Run) -> tuple[str, str, str]:
    return _asked_at(run) or "", run.provenance.scored_at, str(run.path)


def _asked_at(run: Run) -> str | None:
    return run.provenance.identity.asked_at if run.provenance.identity else None


def _unclear(run: Run, members: Sequence[Run]) -> str:
    """Return why it is not clear which run of a cell is meant; else empty."""
    for other in members:
        if differences := _differences(run, other):
            return f"another run under one name: {other.path} differs in {differences}; {_CHOOSE}"
        same = run.provenance.predictions_sha256 == other.provenance.predictions_sha256
        if not same and None in (_asked_at(run), _asked_at(other)):
            return f"it is not recorded whether {other.path} was asked later; {_CHOOSE}"
    return ""


def _differences(run: Run, other: Run) -> str:
    """Return the contradictions between two runs of a cell, with both values."""
    identity, other_identity = run.provenance.identity, other.provenance.identity
    conflicts = identity_conflicts(identity, other_identity) if identity and other_identity else []
    if not any(each.is_space for each in conflicts) and _spaces(run) != _spaces(other):
        conflicts.append(IdentityConflict(SPACE, _spaces(run), _spaces(other)))
    return ", ".join(each.of_two_runs for each in conflicts)


def _spaces(run: Run) -> str:
    """Return the spaces that a run is scored in, without their source."""
    return "; ".join(sorted({text.rpartition(" (")[0] for text in run.provenance.spaces}))


# --- groups ---------------------------------------------------------------------------------------


def grouped(values: Iterable[_T], key: Callable[[_T], _K]) -> dict[_K, list[_T]]:
    """Group values by a key, in their order."""
    groups: dict[_K, list[_T]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


def by_model(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Group runs by model."""
    return grouped(runs, lambda run: run.model)


def _largest(
    runs: Iterable[Run], key: Callable[[Run], Any], why: Callable[[Run, Run], str]
) -> Sorted:
    """Keep the largest group of runs by a key, the first of equals; ``why`` makes the reason."""

    def size(group: Sequence[Run]) -> tuple[int, int, int]:
        return len({run.model for run in group}), len(group[0].provenance.rows), len(group)

    rest, *others = sorted(grouped(runs, key).values(), key=size, reverse=True) or [[]]
    return rest, [ExcludedRun(run, why(run, rest[0])) for group in others for run in group]
