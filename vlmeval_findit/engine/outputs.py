"""Where a cell's results go, and its run's identity: contradictions are refused."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..benchmarks import benchmark_of
from ..boxes import SpaceError, space_from
from ..models import find_model, settings_of_model, space_source
from ..protocol import (
    ANOTHER_NAME,
    HEADER,
    HEADERS_KEY,
    IMAGES_KEY,
    MADE_WITH,
    NO_PROXY,
    NOT_SET,
    PROXY_KEY,
    SETTING,
    SPACE_KEY,
    SPACE_SETTING,
    Answering,
    Described,
    Identity,
    IdentityConflict,
    Settings,
    apply_force,
    identity_conflicts,
    merge_for_resume,
    refuse_variable,
    stating_flag,
    under_another_name,
)
from ..scoring import run_identity
from ..storage import (
    PREDICTION_FORMATS,
    PredictionError,
    RunFiles,
    read_identity,
    read_predictions,
    write_identity,
)
from .calls import Cell
from .journal.view import JournalError, JournalView

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Output:
    """Where a cell's results go, its run's identity, and how it is scored."""

    path: Path
    cell: Cell
    settings: Settings
    identity: Identity


def prepare_output(
    path: Path,
    cell: Cell,
    settings: Settings,
    described: Described,
    host: Mapping[str, str],
    *,
    space_later: bool = False,
) -> Output:
    """Return a cell's output after checking that it can be scored and replaces nothing.

    Args:
        settings: of scoring; a space overrides that of the model's row.
        host: the program that runs the model, with its version.
        space_later: the coordinate space may be stated when the run is scored.

    Raises:
        SpaceError: the model's coordinate space is not known.
        ValueError: the benchmark cannot score with the settings.
        IdentityError: the existing predictions are of another run.
    """
    settings, space = _in_force(cell, settings, described, space_later)
    # Where messages depend on the model, the hash is of those of the shared dataset.
    known = cell.prompt_hash if cell.rows and cell.dataset.base_dataset is None else None
    words = cell.prompts.words
    custom = cell.prompts.custom
    who = cell.dataset, cell.model, described.answering
    identity = run_identity(*who, cell.rows, space, known, words)
    identity = replace(
        identity,
        left_out=cell.left_out,
        space_source=space_source(cell.model, settings, described) if space is not None else None,
        reads_like=settings.reads_like,
        host=host,
        custom_prompt=asdict(custom) if custom else {},
    )
    recorded = binding_identity(path, identity)
    if recorded is not None:
        conflicts = [c for c in identity_conflicts(recorded, identity) if c.is_space]
        if identity.space_source == SPACE_SETTING.variable:
            refuse_variable(conflicts, f"{path}")
    return Output(path, cell, settings, merge_for_resume(recorded, identity, settings.force, path))


def binding_identity(path: Path, now: Identity) -> Identity | None:
    """Return what was recorded of a run, which binds the next; None where nothing is recorded.

    A record that contradicts ``now`` binds nothing if no call of its run was answered: there is
    nothing that could be mixed up.

    Raises:
        IdentityError: the record cannot be read.
    """
    recorded = read_identity(path)
    if recorded is None or not identity_conflicts(recorded, now):
        return recorded
    return recorded if _may_have_answers(path) else None


def _may_have_answers(path: Path) -> bool:
    """Tell whether a run has answers, may get some of a batch, or may have some elsewhere."""
    written = [*filter(Path.is_file, map(path.with_suffix, PREDICTION_FORMATS))]
    calls = RunFiles(path).calls
    if calls.is_file():
        try:
            with JournalView(calls) as journal:
                keys = {record["key"] for record in journal.records()}
                if any(key in journal for key in keys) or any(journal.events()):
                    return True
        except (JournalError, OSError):
            return True
    elif not written:
        return True  # They may be in the journal of a sweep
    try:
        return any(not reply.failed for each in written for reply in read_predictions(each))
    except PredictionError:
        return True


def check_output(
    path: Path, cell: Cell, settings: Settings, described: Described, host: Mapping[str, str]
) -> None:
    """Refuse and say what :func:`prepare_output` does.

    No message is built where no run is recorded.
    """
    if read_identity(path) is None:
        settings, _ = _in_force(cell, settings, described)
        space_source(cell.model, settings, described)  # says what is stated in place of a known one
    else:
        prepare_output(path, cell, settings, described, host)


def _in_force(
    cell: Cell, settings: Settings, described: Described, space_later: bool = False
) -> tuple[Settings, Mapping[str, Any] | None]:
    """Return the settings and the space in force for a cell, after checking them."""
    benchmark = benchmark_of(cell.variant)
    settings = _for_model(settings, cell.model, described.answering.row)
    benchmark.check(cell.variant, settings)
    try:
        return settings, benchmark.space(cell.model, cell.variant, settings, described)
    except SpaceError:
        if not space_later or settings.space is not None:
            raise
        return settings, None


def _for_model(settings: Settings, model: str, row: str | None) -> Settings:
    """Return the settings in force for a model; ``row`` is that of the model table."""
    return settings_of_model(settings, model, find_model(row or model))


def begin_output(
    output: Output,
    answering: Answering | None,
    keys: Iterable[str],
    journal: JournalView,
    paths: Iterable[Path],
) -> Output:
    """Write the run's identity before its first call.

    Args:
        answering: the model, with what only this machine knows of it; None if no call is made.
        keys: of calls that the journal may have.
        journal: its answers must be of this run, or of an equal one.
        paths: the prediction files that get it as a neighbour.

    Raises:
        IdentityError: it contradicts what was recorded, or the journal has answers of another run.
    """
    identity = output.identity
    now = identity if answering is None else replace(identity, answering=answering)
    recorded = binding_identity(output.path, now)
    force = output.settings.force
    if answering is not None:
        identity = merge_for_resume(recorded, now, force, output.path)
    elif recorded is not None:  # Nothing is asked, through whatever proxy
        proxy = recorded.answering.proxy
        who = replace(identity.answering, proxy=proxy)
        identity = replace(identity, answering=who, earlier_proxies=recorded.earlier_proxies)
    known = list(keys)
    notes = notes_on_answers(replace(output, identity=identity), known, journal)
    identity = replace(identity, forced=(*identity.forced, *notes))
    if answering is not None:
        _tell_proxies(output, answering, known, journal)
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_identity(RunFiles(path).identity, identity)
    return replace(output, identity=identity)


def notes_on_answers(output: Output, keys: Iterable[str], journal: JournalView) -> Sequence[str]:
    """Return what is forced of answers of another run; an IdentityError if nothing is."""
    others = _other_answers(output.identity, keys, journal)
    whose = next((each.recorded for each in others if each.what == _OF_IMAGES), None)
    of_what = f"for images {whose}" if whose else "of another run"
    what = f"{output.path}: the journal {journal.path} has answers {of_what}"
    is_of_run = journal.path == RunFiles(output.path).calls
    elsewhere = under_another_name(output.identity) if is_of_run else "Use another --journal."
    if others and all(each.is_space for each in others):
        flag = stating_flag(SPACE_SETTING, output.identity.space)
        elsewhere += f" To score what is answered in this space: findit score RUN {flag}."
    return apply_force(others, output.settings.force, what, elsewhere)


def _tell_proxies(
    output: Output, answering: Answering, keys: Iterable[str], journal: JournalView
) -> None:
    """Say where answers came through other proxies than the calls that are left."""
    proxies = {made_by[PROXY_KEY] for made_by in journal.makers(keys) if PROXY_KEY in made_by}
    now = answering.proxy or NO_PROXY
    others = sorted(proxies - {now})
    if others and answering.headers is not None:
        log.warning(
            "%s: answers came through other proxies (%s) than calls do now (%s). One that forwards "
            "changes nothing; is one a gateway that chooses models, ask under another name: "
            f"{ANOTHER_NAME}",
            output.path,
            ", ".join(others),
            now,
        )


_OF_ANSWERS = " of answers"
_OF_IMAGES = f"{IMAGES_KEY}{_OF_ANSWERS}"


def _other_answers(
    run: Identity, keys: Iterable[str], journal: JournalView
) -> list[IdentityConflict]:
    """Return what made answers of the journal and does not make this run's, each once.

    What an earlier ``--force`` went over is part of the run.
    """
    ours = {**run.made_by, SPACE_KEY: run.space}
    conflicts: dict[str, IdentityConflict] = {}
    for made_by in journal.makers(keys):
        for field, before, now in _compared(made_by, ours):
            if before != now:
                conflict = IdentityConflict(f"{field}{_OF_ANSWERS}", before, now)
                conflicts.setdefault(str(conflict), conflict)
    return [conflict for conflict in conflicts.values() if not _was_forced(conflict, run)]


# What is compared name by name, and how messages begin about one of its names
_NAMED_VALUES = {MADE_WITH: SETTING, HEADERS_KEY: HEADER}


def _compared(
    made_by: Mapping[str, Any], ours: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield what both say; records of earlier versions say less."""
    for field in (made_by.keys() & ours.keys()) - {PROXY_KEY}:
        before = made_by[field]
        now = ours[field]
        if field in _NAMED_VALUES:
            for name in dict.fromkeys((*before, *now)):
                what = f"{_NAMED_VALUES[field]}{name}"
                yield what, before.get(name, NOT_SET), now.get(name, NOT_SET)
        elif None in (before, now):
            continue
        elif field == SPACE_KEY:
            yield field, space_from(before).as_dict(), space_from(now).as_dict()
        else:
            yield field, before, now


def _was_forced(conflict: IdentityConflict, run: Identity) -> bool:
    values = str(conflict).removeprefix(conflict.what)
    return any(note.endswith(values) for note in run.forced)
