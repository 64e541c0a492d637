"""Group the runs of a dataset that can be compared.

A dataset (``variant.board_dataset``) has runs in any format. Two of them are comparable if they
were asked in the words of the same prompt set, over the same table, with the same images as far as
both recorded them, and scored over the same rows by the same scorer: code, settings, and versions
of the plug-ins that both used. Other runs are excluded with the reason: never mixed in, never
silently dropped.

Of several runs of a model in a format the run counts that was asked last. If their identities
contradict each other they are different models or settings under one name: none of them counts, and
the reason tells the user how to choose.

Scores with reviews of labels are a separate dataset for each set of reviews. Two runs that a
command names are refused by :func:`..analysis.check_comparable`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from ..analysis import known_images, other_images
from ..protocol import SPACE_KEY, IdentityConflict, count_images, identity_conflicts
from ..scoring import (
    SCORE_AGAIN,
    UNANSWERED,
    UNKNOWN_PROMPTS,
    Run,
    ScoreReviews,
    keys_of,
    part_in_words,
    score_again,
    scorer_now,
    scorer_parts,
    space_in_words,
)

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
        return count_images(self.runs[0].rows)

    @property
    def reviews(self) -> ScoreReviews | None:
        """The reviews that its runs were scored with."""
        return self.runs[0].provenance.reviews


@dataclass(frozen=True, slots=True)
class ExcludedRun:
    """A run that is not in the leaderboard, with the reason."""

    run: Run
    reason: str


Sorted = tuple[list[Run], list[ExcludedRun]]  # Comparable runs, and excluded ones


def group_comparable(
    runs: Iterable[Run],
) -> tuple[tuple[ComparableRuns, ...], tuple[ExcludedRun, ...]]:
    """Group runs by dataset; exclude runs that cannot be compared with the rest.

    The rest is the largest group: by number of models, then of rows, then of runs.
    """
    datasets: list[ComparableRuns] = []
    excluded: list[ExcludedRun] = []
    for name, comparable in sorted(group_by(runs, lambda run: run.board_dataset).items()):
        for rule in _RULES:
            comparable, others = rule(comparable)
            excluded += others
        if comparable:
            comparable.sort(key=lambda run: (run.model, run.variant.name))
            family = comparable[0].variant.family_name
            datasets.append(ComparableRuns(name, family, tuple(comparable)))
    return tuple(datasets), tuple(excluded)


def _with_rows(runs: Sequence[Run]) -> Sorted:
    empty = [ExcludedRun(run, "no row was scored") for run in runs if not run.rows]
    return [run for run in runs if run.rows], empty


def of_answered_calls(runs: Iterable[Run]) -> Sorted:
    """Keep the runs that measure something: in which a call was answered."""
    kept: list[Run] = []
    excluded: list[ExcludedRun] = []
    for run in runs:
        if run.is_unanswered:
            excluded.append(ExcludedRun(run, UNANSWERED))
        else:
            kept.append(run)
    return kept, excluded


def _keep_largest(
    runs: Sequence[Run],
    among: Callable[[Run], Any],
    key: Callable[[Run], Any],
    why: Callable[[Run, Run], str],
) -> Sorted:
    """Keep the largest group of runs with one ``key``, the first of equals.

    Args:
        runs: runs of a dataset.
        among: runs with equal values are grouped, apart from the others.
        key: what the runs of a group share.
        why: makes the reason to exclude a run, given a run of the rest.
    """
    excluded: list[ExcludedRun] = []
    for members in group_by(runs, among).values():
        rest, *others = sorted(group_by(members, key).values(), key=_weight, reverse=True)
        excluded += [ExcludedRun(run, why(run, rest[0])) for group in others for run in group]
    return _without(runs, excluded), excluded


def _without(runs: Iterable[Run], excluded: Iterable[ExcludedRun]) -> list[Run]:
    left = {id(each.run) for each in excluded}
    return [run for run in runs if id(run) not in left]


def _weight(group: Sequence[Run]) -> tuple[int, int, int]:
    """Return by what the largest of several groups is chosen."""
    return len({run.model for run in group}), len(group[0].provenance.rows), len(group)


# --- the same queries -----------------------------------------------------------------------------

_ASKED_AND_SCORED = attrgetter("prompts", "table_sha256", "rows", "scored_under")


def _same_dataset(runs: Sequence[Run]) -> Sorted:
    return _keep_largest(
        runs, lambda run: "", lambda run: _ASKED_AND_SCORED(run.provenance), _dataset_reason
    )


def _dataset_reason(run: Run, rest: Run) -> str:
    its, other = run.provenance, rest.provenance
    reasons = []
    if its.prompts != other.prompts:
        if its.prompts == UNKNOWN_PROMPTS:
            reasons.append(f"it did not record its prompts, the rest was asked in {other.prompts}")
        else:
            words = its.custom_words or f"other prompts: {its.prompts}"
            reasons.append(f"{words}, the rest {other.custom_words or other.prompts}")
    if its.table_sha256 != other.table_sha256:
        reasons.append(
            f"other subset: {its.table.file} has SHA-256 {_short(its.table_sha256)}, the rest "
            f"{_short(other.table_sha256)}"
        )
    if its.scored_under != other.scored_under:
        settings = sorted({name for name, _ in its.scored_under ^ other.scored_under})
        reasons.append(
            f"scored by {its.scorer and its.scorer.name}, the rest by "
            f"{other.scorer and other.scorer.name}: other {', '.join(settings)}; "
            "score it again by that"
        )
    if its.rows != other.rows:
        kinds = ("missing", other.rows - its.rows), ("that the rest lacks", its.rows - other.rows)
        parts = [f"rows {what}: {len(some)} (first: {min(some)})" for what, some in kinds if some]
        counts = f"other rows: {len(its.rows)} scored, the rest {len(other.rows)}"
        reasons.append(f"{counts}; {', '.join(parts)}")
    return "; ".join(reasons)


def _same_words(runs: Sequence[Run]) -> Sorted:
    """Keep runs of a variant with the same words under the same name of a prompt set."""

    def why(run: Run, rest: Run) -> str:
        hashes = [_short(each.provenance.prompt_hash) for each in (run, rest)]
        name = run.provenance.prompts
        return f"other words under the same name {name}: prompts hash {', the rest '.join(hashes)}"

    return _keep_largest(runs, lambda run: run.variant, lambda run: run.provenance.prompt_hash, why)


def _short(checksum: str | None) -> str:
    return f"{checksum[:12]}…" if checksum else "unknown"


def _same_images(runs: Sequence[Run]) -> Sorted:
    """Keep runs that showed the same images; what was not recorded contradicts nothing."""
    # Those that recorded most decide who belongs together.
    by_record = sorted(runs, key=lambda run: -len(run.provenance.shown))
    # Of runs that are known to have shown the same, one is compared for all.
    alike = group_by(by_record, _known_images)
    groups: list[list[list[Run]]] = []
    for members in alike.values():
        shown = members[0].provenance.shown
        fitting = (group for group in groups if not _image_conflict(members[0], group))
        group = next(fitting, None)
        if group is None:
            groups.append([members])
        elif shown or not group[0][0].provenance.shown:
            # A run that recorded nothing fits several groups, and makes none of them larger.
            group.append(members)
    rest = max(groups, key=lambda group: _weight([*chain.from_iterable(group)]), default=[])
    conflicts = {key: _image_conflict(members[0], rest) for key, members in alike.items()}
    excluded = []
    for run in runs:
        if why := conflicts[_known_images(run)]:
            excluded.append(ExcludedRun(run, why))
    return _without(runs, excluded), excluded


def _known_images(run: Run) -> Hashable:
    return known_images(run.provenance)


def _image_conflict(run: Run, group: Iterable[Sequence[Run]]) -> str:
    """Say which images a run showed otherwise than one of a group; "" if none is known.

    Of each of the group's runs that are alike, the first speaks for all.
    """
    whys = (other_images(run.provenance, members[0].provenance) for members in group)
    return next(filter(None, whys), "")


def _same_plugins(runs: Sequence[Run]) -> Sorted:
    """Keep runs that used the same version of each plug-in."""
    comparable = list(runs)
    excluded: list[ExcludedRun] = []
    for name in sorted({name for run in runs for name in run.provenance.plugins}):
        comparable, others = _same_plugin(comparable, name)
        excluded += others
    return comparable, excluded


def _same_plugin(runs: Sequence[Run], name: str) -> Sorted:
    def version(run: Run) -> str | None:
        return run.provenance.plugins.get(name)

    def why(run: Run, rest: Run) -> str:
        return f"the plug-in {name} is {version(run)}, for the rest {version(rest)}"

    return _keep_largest(runs, lambda run: name in run.provenance.plugins, version, why)


# --- the same scorer ------------------------------------------------------------------------------


def of_one_scorer(runs: Iterable[Run]) -> Sorted:
    """Keep the runs of each dataset that one scorer scored; say of the others what to type.

    The present scorer's stay, however few: the others can be scored again, and become theirs. Where
    it scored none, those of the largest group stay.
    """
    kept: list[Run] = []
    excluded: list[ExcludedRun] = []
    for members in group_by(runs, lambda run: run.board_dataset).values():
        comparable, others = _same_scorer(members)
        kept += comparable
        excluded += others
    return kept, excluded


def _same_scorer(runs: Sequence[Run]) -> Sorted:
    """Keep the runs of a dataset that the present scorer scored, else the largest group."""
    comparable = list(runs)
    excluded: list[ExcludedRun] = []
    parts = [scorer_parts(run.provenance.scored_with) for run in runs]
    if all(part == parts[0] for part in parts):
        return comparable, excluded
    for name in dict.fromkeys(chain.from_iterable(parts)):
        comparable, others = _same_part(comparable, name)
        excluded += others
    return comparable, excluded


def _same_part(runs: Sequence[Run], name: str) -> Sorted:
    """Keep the runs that agree in a part of the scorer: the package, or a plug-in."""
    by_part = group_by(runs, lambda run: scorer_parts(run.provenance.scored_with).get(name))
    without = by_part.pop(None, [])
    if len(by_part) < 2:
        return list(runs), []
    present = by_part.get(scorer_now([name]).get(name))
    rest = present or max(by_part.values(), key=_weight)
    kept = {id(run) for run in (*rest, *without)}
    others = [run for run in runs if id(run) not in kept]
    again = score_again(others if present else runs)
    theirs = part_in_words(rest[0].provenance.scored_with, name)
    excluded = []
    for run in others:
        its = part_in_words(run.provenance.scored_with, name)
        why = f"scored by {its}, the rest by {theirs}"
        excluded.append(ExcludedRun(run, f"{why}{SCORE_AGAIN}{again}"))
    return _without(runs, excluded), excluded


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
    for members in group_by(runs, lambda run: (run.model, run.variant)).values():
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
    return asked_at(run) or "", run.provenance.scored_at, str(run.path)


def asked_at(run: Run) -> str | None:
    """Return when a run began (UTC, ISO 8601); None if nothing recorded it."""
    return run.provenance.identity.asked_at if run.provenance.identity else None


def _unclear(run: Run, members: Sequence[Run]) -> str:
    """Return why it is not clear which run of a cell is meant; else empty."""
    for other in members:
        its = run.provenance.identity
        others = other.provenance.identity
        conflicts = identity_conflicts(its, others) if its and others else []
        if not any(each.is_space for each in conflicts) and _spaces(run) != _spaces(other):
            conflicts.append(IdentityConflict(SPACE_KEY, _spaces(run), _spaces(other)))
        answering = run.provenance.models, other.provenance.models
        if all(answering) and keys_of(answering[0]) != keys_of(answering[1]):
            names = [", ".join(each.name for each in models) for models in answering]
            conflicts.append(IdentityConflict("the model that answered", *names))
        if conflicts:
            differences = ", ".join(each.comparison for each in conflicts)
            return f"another run under one name: {other.path} differs in {differences}; {_CHOOSE}"
        same = run.provenance.predictions_sha256 == other.provenance.predictions_sha256
        if not same and None in (asked_at(run), asked_at(other)):
            return f"it is not recorded whether {other.path} was asked later; {_CHOOSE}"
    return ""


def _spaces(run: Run) -> str:
    """Return the spaces that a run is scored in, without their source."""
    return "; ".join(sorted(set(map(space_in_words, run.provenance.spaces))))


_RULES = (
    _with_rows,
    of_answered_calls,
    _same_dataset,
    _same_words,
    _same_images,
    _same_plugins,
    _same_scorer,
    _newest,
)


# --- groups ---------------------------------------------------------------------------------------


def group_by(values: Iterable[_T], key: Callable[[_T], _K]) -> dict[_K, list[_T]]:
    """Group values by a key, in their order."""
    groups: dict[_K, list[_T]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


def by_model(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Group runs by model."""
    return group_by(runs, lambda run: run.model)
