"""Everything that contradicts a record, in one place: each contradiction has both values.

Contradictions are refused together, or recorded as forced with ``--force``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..core import file_sha256, is_under_vlmevalkit
from .benchmark import Benchmark
from .choices import SPACE_SETTING
from .dataset_variant import AnyDataset, DatasetVariant, rows_text
from .identity import (
    ATTRIBUTE,
    HEADER,
    NO_PROXY,
    NOT_SET,
    PLUGIN,
    SETTING,
    WITHOUT_EFFECT,
    Answering,
    Identity,
    IdentityConflict,
    IdentityError,
)
from .replies import Reply
from .settings import Settings


@dataclass(frozen=True, slots=True)
class CutReplies:
    """Replies of which a sheet holds only the beginning."""

    rows: Sequence[int]
    length: int  # Characters that a cell holds

    @property
    def is_space(self) -> bool:
        return False

    @property
    def advice(self) -> str:
        return (
            "No journal (…_calls.jsonl) next to the sheet has the whole replies, so a score would "
            "be another model's. Put the journal there, or ask again: type PRED_FORMAT=json before "
            "the command."
        )

    def __str__(self) -> str:
        return (
            f"column prediction of index {rows_text(self.rows)} is cut at {self.length:,} "
            "characters, which is all that a cell of xlsx holds"
        )


Contradiction = IdentityConflict | CutReplies


_OF_SPACE = f"{SETTING}images"  # How they are sent, which a space decides

# --- a run that resumes ---------------------------------------------------------------------------


def identity_conflicts(recorded: Identity, now: Identity) -> list[IdentityConflict]:
    """List where a run that resumes differs from the record; more rows are allowed."""
    before = recorded.compared()
    after = now.compared()
    conflicts = []
    for what in dict.fromkeys((*before, *after)):
        if not _is_compared(what, recorded.answering, now.answering):
            continue
        # What only one record sets is a difference; any other value that is missing is not known.
        missing = NOT_SET if what.startswith((SETTING, HEADER, ATTRIBUTE, PLUGIN)) else None
        old = before.get(what, missing)
        new = after.get(what, missing)
        if None not in (old, new) and _plain(old) != _plain(new):
            conflicts.append(IdentityConflict(what, old, new))
    if any(each.is_space for each in conflicts):
        conflicts = [each for each in conflicts if each.what != _OF_SPACE]
    recorded_rows = recorded.rows or ()
    rows_now = now.rows or recorded_rows
    if set(recorded_rows) - set(rows_now):
        before_text = rows_text(recorded_rows)
        conflicts.append(IdentityConflict("rows", before_text, rows_text(rows_now)))
    return conflicts


def _is_compared(what: str, before: Answering, now: Answering) -> bool:
    """Return whether two records can differ in a value, as far as both know the model."""
    if what == "checkpoint":
        # Where both have a revision, that is compared instead.
        return None in (before.revision, now.revision)
    if what.startswith(SETTING):
        has_effect = what.removeprefix(SETTING) not in WITHOUT_EFFECT
        return has_effect and None not in (before.kind, now.kind)
    if what.startswith(HEADER):
        return None not in (before.headers, now.headers)
    if what.startswith(ATTRIBUTE):
        return None not in (before.attributes, now.attributes)
    return True


def _plain(value: Any) -> Any:
    """Return a value as JSON reads it back: a tuple is a list."""
    return value if value is NOT_SET else json.loads(json.dumps(value, default=str))


def merge_for_resume(
    recorded: Identity | None, now: Identity, forced: bool, where: Path
) -> Identity:
    """Return the identity of a run that resumes or begins; see :func:`apply_force` for errors."""
    if recorded is None:
        return now
    conflicts = identity_conflicts(recorded, now)
    elsewhere = under_another_name(now)
    if recorded.rows and now.rows and set(now.rows) < set(recorded.rows):
        elsewhere = (
            f"It was asked all rows of these, and more: leave --limit {len(now.rows)} out to go on "
            f"with it, or type another --work-dir to ask {len(now.rows)}."
        )
    notes = apply_force(conflicts, forced, f"{where} is of another run", elsewhere)
    if notes:
        return replace(now, forced=(*recorded.forced, *(f"went on: {note}" for note in notes)))
    return replace(
        now,
        answering=_completed(recorded.answering, now.answering),
        space_source=recorded.space_source or now.space_source,
        reads_like=now.reads_like or recorded.reads_like,
        host=recorded.host or now.host,
        versions=recorded.versions or now.versions,
        forced=recorded.forced,
        earlier_proxies=_earlier_proxies(recorded, now),
        asked_at=recorded.asked_at,
    )


ANOTHER_NAME = "--model OTHER=SERVED --like NAME"  # What to type for a run beside another


def under_another_name(run: Identity) -> str:
    """Say how a run is asked beside another of its model's name, so that both are compared."""
    who = run.answering
    advice = "Use another name for the model: runs under one name that differ are not compared"
    if who.checkpoint is None or who.in_vlmevalkit or is_under_vlmevalkit():
        return f"{advice}, in whatever folder."
    words = shlex.join(model_words(f"{run.model}-2", who))
    return f"{advice}. In your command, type: {words}."


def model_words(name: str, who: Answering) -> list[str]:
    """Return how a model is typed under a name: its checkpoint, and what it is run like.

    >>> model_words("my-ft", Answering(row="Qwen3-VL", checkpoint="/path"))
    ['--model', 'my-ft=/path', '--like', 'Qwen3-VL']
    """
    like = [] if who.row in (None, name) else ["--like", who.row]
    return ["--model", f"{name}={who.checkpoint}", *like]


def _completed(before: Answering, now: Answering) -> Answering:
    """Complete what a run recorded of its model with what is known now."""
    known = {f.name: getattr(before, f.name) or getattr(now, f.name) for f in fields(Answering)}
    settings = {name: value for name, value in before.settings.items() if value is not None}
    proxy = before.proxy if now.headers is None else now.proxy
    more = {"settings": {**now.settings, **settings}, "proxy": proxy}
    return Answering(**{**known, **more})


def _earlier_proxies(recorded: Identity, now: Identity) -> tuple[str, ...]:
    """Return the proxies of a run before it goes on, but that through which it does."""
    if recorded.answering.headers is None or now.answering.headers is None:
        return recorded.earlier_proxies  # Nothing is known of one, or it is asked at no server
    proxies = {*recorded.earlier_proxies, recorded.answering.proxy or NO_PROXY}
    return tuple(sorted(proxies - {now.answering.proxy or NO_PROXY}))


# --- predictions that are scored ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Predictions:
    """Replies with all that decides their score."""

    model: str
    dataset: AnyDataset
    benchmark: Benchmark
    replies: Sequence[Reply]
    # What the user says of scoring, and what the run recorded where the user says nothing
    settings: Settings
    identity: Identity | None = None  # What the run recorded; None: nothing
    path: Path | None = None  # The prediction file
    forced: tuple[str, ...] = ()  # The contradictions that ``--force`` overruled

    def __str__(self) -> str:
        return str(self.path) if self.path else f"{self.model} on {self.dataset.name}"


def contradictions(
    predictions: Predictions,
    of_benchmark: Sequence[IdentityConflict],
    recorded_variant: DatasetVariant | None,
    installed: Mapping[str, Sequence[str]],
) -> list[Contradiction]:
    """List all that contradicts predictions.

    Args:
        of_benchmark: what :meth:`.Benchmark.identity_conflicts` finds.
        recorded_variant: the variant that the run recorded, if it is not known to be the dataset's.
        installed: the versions of each plug-in that is installed here.

    Raises:
        IdentityError: a reply to a row that the table does not have: nothing can score it.
    """
    _refuse_unknown_rows(predictions)
    conflicts: list[Contradiction] = []
    if predictions.identity is not None:
        conflicts += plugin_conflicts(predictions.identity.plugins, installed)
        conflicts += _run_conflicts(predictions, predictions.identity, recorded_variant)
    conflicts += _column_conflicts(predictions.dataset, predictions.replies)
    conflicts += of_benchmark
    cut = [reply for reply in predictions.replies if reply.is_cut_by_sheet]
    if cut:
        conflicts.append(CutReplies([reply.index for reply in cut], len(cut[0].text)))
    return conflicts


def _refuse_unknown_rows(predictions: Predictions) -> None:
    dataset = predictions.dataset
    for reply in predictions.replies:
        if reply.index not in dataset.queries:
            raise IdentityError(
                f"{predictions}: index {reply.index} is not in {dataset.table} "
                f"({len(dataset.queries)} rows): the predictions are of another table. Name "
                "theirs: --data DATASET"
            )


def overrule(predictions: Predictions, conflicts: Sequence[Contradiction]) -> Predictions:
    """Return predictions that may be scored; ``forced`` says which contradictions they have.

    Raises:
        IdentityError: a contradiction is not forced. A space may be scored separately.
    """
    settings = predictions.settings
    identity = predictions.identity
    spaces = [conflict for conflict in conflicts if conflict.is_space]
    separate = spaces if settings.separately else []
    others = [conflict for conflict in conflicts if conflict not in separate]
    forced = apply_force(others, settings.force, f"{predictions}: {OF_SOMETHING_ELSE}")
    if identity is not None and settings.reads_like is None:
        settings = replace(settings, reads_like=identity.reads_like)
    return replace(predictions, settings=settings, forced=(*forced, *map(str, separate)))


# Why predictions are not scored
OF_SOMETHING_ELSE = "the predictions are not of the run that is scored"


def plugin_conflicts(
    recorded: Mapping[str, str], installed: Mapping[str, Sequence[str]]
) -> list[IdentityConflict]:
    """List the plug-ins of a run that are not installed here, or in another version."""
    conflicts = []
    for name, version in recorded.items():
        remedy = f"--plugin …/{name}" if name.endswith(".py") else f"pip install {name}"
        versions = installed.get(name, [f"not here: {remedy}"])
        if version not in versions:
            now = ", ".join(dict.fromkeys(versions))
            conflicts.append(IdentityConflict(f"{PLUGIN}{name}", version, now))
    return conflicts


def _run_conflicts(
    predictions: Predictions, identity: Identity, recorded_variant: DatasetVariant | None
) -> Iterator[IdentityConflict]:
    dataset = predictions.dataset
    if predictions.model != identity.model:
        yield IdentityConflict("model", identity.model, predictions.model)
    if recorded_variant is not None and recorded_variant != dataset.variant:
        yield IdentityConflict("dataset", identity.dataset, dataset.variant.name)
    if identity.table_sha256 is not None:
        table = file_sha256(dataset.table)
        if table != identity.table_sha256:
            now = f"{table} ({dataset.table})"
            yield IdentityConflict("SHA-256 of the table", identity.table_sha256, now)
    asked = set(identity.rows or dataset.queries)
    foreign = {reply.index for reply in predictions.replies} - asked
    if foreign:
        now = f"also {rows_text(foreign)}"
        yield IdentityConflict("rows", rows_text(identity.rows or ()), now)
    yield from _server_conflicts(predictions.replies, identity)
    reads_like = predictions.settings.reads_like
    if None not in (identity.reads_like, reads_like) and identity.reads_like != reads_like:
        yield IdentityConflict("reads_like", identity.reads_like, reads_like)


def _server_conflicts(replies: Sequence[Reply], identity: Identity) -> Iterator[IdentityConflict]:
    """Yield the servers that answered and are not of the run, unless the run was forced."""
    rows_by_server: dict[str, list[int]] = {}
    for reply in replies:
        server = reply.recorded.call.get("server")
        failed = reply.recorded.call.get("error")
        if not failed and identity.answering.is_elsewhere(server):
            rows_by_server.setdefault(str(server), []).append(reply.index)
    for server, rows in rows_by_server.items():
        if not any(server in note for note in identity.forced):
            what = f"server of {len(rows)} of {len(replies)} answers"
            now = f"{server} (rows {rows_text(rows)})"
            yield IdentityConflict(what, identity.answering.endpoint, now)


def _column_conflicts(dataset: AnyDataset, replies: Sequence[Reply]) -> Iterator[IdentityConflict]:
    """Yield the rows of a prediction file with another label or size than the table."""
    for reply in replies:
        query = dataset.queries[reply.index]
        for name, stated in reply.stated.items():
            true = getattr(query, name)
            if _normalized(stated) != _normalized(true):
                what = f"{name} of row {reply.index}"
                yield IdentityConflict(what, stated, f"{true} ({dataset.table})")


def _normalized(value: object) -> str:
    """Return a label or a size as any format of prediction files writes it."""
    text = " ".join(str(value).split())
    number = text.removesuffix(".0")
    return number if number.isdigit() else text


# --- what becomes of contradictions ---------------------------------------------------------------

_MOST_SHOWN = 5


def force_help() -> str:
    """Say how to go on despite contradictions."""
    theirs = " (FINDIT_FORCE=1 under VLMEvalKit's runner)" if is_under_vlmevalkit() else ""
    return f"--force{theirs} goes on all the same; the result says so."


def apply_force(
    conflicts: Sequence[Contradiction], forced: bool, where: str, advice: str = ""
) -> list[str]:
    """Return what ``--force`` overrules, as results say it.

    ``advice`` says what else the user can do; by default the contradictions say it.

    Raises:
        IdentityError: there are contradictions, not ``forced``; the message begins with ``where``.
    """
    if conflicts and not forced:
        lines = [f"{where}:"]
        lines += [f"  {conflict}" for conflict in conflicts[:_MOST_SHOWN]]
        if len(conflicts) > _MOST_SHOWN:
            lines.append(f"  and {len(conflicts) - _MOST_SHOWN} more")
        advices = [advice] if advice else [conflict.advice for conflict in conflicts]
        lines.append(" ".join([*dict.fromkeys(advices), force_help()]))
        raise IdentityError("\n".join(lines))
    return [str(conflict) for conflict in conflicts]


def refuse_variable(spaces: Sequence[Contradiction], where: str) -> None:
    """Raise IdentityError where a space by a variable contradicts a record, even if forced."""
    if spaces:
        raise IdentityError(
            f"{where}:\n  {spaces[0]} ({SPACE_SETTING.variable})\nAn environment variable does not "
            "override what a run recorded: unset it, or name the space with --space."
        )
