"""What contradicts the record of a run, and going on all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from .identity import PLUGIN, SPACE, Answering, Identity, IdentityError
from .row_ranges import rows_text


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One thing that a run recorded and that is otherwise now."""

    what: str
    recorded: Any
    now: Any

    @property
    def is_space(self) -> bool:
        return self.what.startswith(SPACE)

    @property
    def of_two_runs(self) -> str:
        """What differs between a run and another one, with both values."""
        return f"{self.what} (here {_shown(self.recorded)}, there {_shown(self.now)})"

    def __str__(self) -> str:
        return f"{self.what}: recorded {_shown(self.recorded)}, now {_shown(self.now)}"


def _shown(value: Any) -> str:
    if value is _NOT_SET:
        return "not set"
    return json.dumps(value, ensure_ascii=False, default=str) if _is_nested(value) else str(value)


def _is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


_NOT_SET = object()


def contradictions(recorded: Identity, now: Identity) -> list[Contradiction]:
    """Where a run that starts or goes on now is another than the recorded one.

    More rows than before are none: the same questions, and some more.
    """
    before, after = recorded.compared(), now.compared()
    known = recorded.answering.kind is not None and now.answering.kind is not None
    found = []
    for what in dict.fromkeys((*before, *after)):
        is_setting = what.startswith("setting ")
        if is_setting and not known:
            continue
        absent = _NOT_SET if is_setting or what.startswith(PLUGIN) else None
        old, new = before.get(what, absent), after.get(what, absent)
        if what == "checkpoint" and None not in (recorded.answering.revision, after["revision"]):
            continue  # the revision says more, and is compared itself
        if None not in (old, new) and _plain(old) != _plain(new):
            found.append(Contradiction(what, old, new))
    lost = sorted(set(recorded.rows or ()) - set(now.rows or recorded.rows or ()))
    if lost:
        rows = (rows_text(recorded.rows or ()), rows_text(now.rows or ()))
        found.append(Contradiction("rows", *rows))
    return found


def _plain(value: Any) -> Any:
    """A value as it is after a journey through JSON."""
    return value if value is _NOT_SET else json.loads(json.dumps(value, default=str))


def overruled(against: Sequence[Contradiction], forced: bool, where: str, else_: str) -> list[str]:
    """What ``--force`` overrules, as a result says it.

    Args:
        against: what contradicts.
        forced: whether it was given.
        where: what the message begins with.
        else_: what else the user can do.

    Raises:
        IdentityError: something contradicts, and it was not given.
    """
    if against and not forced:
        shown = [f"  {one}" for one in against[:_SHOWN]]
        shown += [f"  and {len(against) - _SHOWN} more"] * (len(against) > _SHOWN)
        raise IdentityError("\n".join([f"{where}:", *shown, f"{else_} {FORCE_HELP}"]))
    return [str(one) for one in against]


_SHOWN = 5


def continued(recorded: Identity | None, now: Identity, forced: bool, where: Path) -> Identity:
    """The identity of a run that goes on, or of one that begins.

    Args:
        recorded: what lies there; None where nothing does.
        now: what the run is by its command line, settings and files of now.
        forced: whether ``--force`` was given.
        where: the predictions, for the message.

    Raises:
        IdentityError: they contradict, and it was not forced.
    """
    if recorded is None:
        return now
    against = contradictions(recorded, now)
    elsewhere = "Use another --work-dir, or another name for the model."
    notes = overruled(against, forced, f"{where} is of another run", elsewhere)
    if notes:
        return replace(now, forced=(*recorded.forced, *(f"went on: {note}" for note in notes)))
    return replace(
        now,
        answering=_filled(recorded.answering, now.answering),
        host=recorded.host or now.host,
        versions=recorded.versions or now.versions,
        forced=recorded.forced,
        asked_at=recorded.asked_at,
    )


def _filled(before: Answering, now: Answering) -> Answering:
    """What was recorded, and where nothing was, what is known now."""
    known = {f.name: getattr(before, f.name) or getattr(now, f.name) for f in fields(Answering)}
    said = {name: value for name, value in before.settings.items() if value is not None}
    return Answering(**{**known, "settings": {**now.settings, **said}})


FORCE_HELP = (
    "--force (FINDIT_FORCE=1 under VLMEvalKit's own runner) goes on all the same; "
    "the result says so."
)
