"""What a run is: one frozen record, written before its first call, that all who come later ask.

``<stem>_identity.json`` lies beside the predictions.  It says who answers, with which settings,
what was asked over which table and rows, and in which coordinate space the answers are.  It is the
same whoever runs the calls (VLMEvalKit's runner, ``search``, ``sweep``), and going on, scoring,
leaderboard, report and export ask it alone.  What contradicts it is refused with both values, or,
with ``--force``, goes on and is recorded as forced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from .files import write_once

ENDING = "_identity.json"

LEGACY_ENDING = "_asked.json"
"""The record of runs before 0.2: what was asked, and nothing of who answered."""

ENGINES = ("torch", "transformers", "vllm")
"""Packages on whose version the answers of a model on this machine depend."""


class IdentityError(ValueError):
    """Something contradicts what a run recorded; the message has both values and what to do."""


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answers: everything that an answer depends on beside the question.

    ``kind`` is the class of the model, ``row`` its row of the model table, ``checkpoint`` the
    folder or identifier, ``revision`` its commit or a hash of its files, ``endpoint`` the address
    of a service, ``settings`` all else that was set.  ``runs_here``: on this machine, so that the
    versions of :data:`ENGINES` matter; ``hosts_own``: in VLMEvalKit's own code, so that the
    host's version does.  None is not known.
    """

    kind: str | None = None
    row: str | None = None
    checkpoint: str | None = None
    revision: str | None = None
    endpoint: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    runs_here: bool = False
    hosts_own: bool = False


class Described(NamedTuple):
    """Who answers, and the settings of the coordinate space of the replies (None: not known)."""

    answering: Answering
    space: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Identity:
    """One run: a model over a variant.  None is not known, and contradicts nothing.

    ``prompt_hash`` covers every row of the table, so that runs over different rows can be
    compared.  ``rows`` are the indices that are asked, ``left_out`` those without a usable image.
    ``space`` are the settings of the coordinate space of all replies (:func:`.space_from`).
    ``host`` and ``versions`` are those at inference.  ``forced`` says what ``--force`` overrode.
    """

    model: str
    dataset: str
    answering: Answering = field(default_factory=Answering)
    prompts: str | None = None
    prompt_hash: str | None = None
    table: str | None = None
    table_sha256: str | None = None
    rows: tuple[int, ...] | None = None
    left_out: tuple[int, ...] = ()
    space: Mapping[str, Any] | None = None
    reads_like: str | None = None
    host: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    forced: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that two runs share when nothing in them contradicts."""
        text = json.dumps([_compared(self), self.rows], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def made_by(self) -> dict[str, Any]:
        """What an answer of it depends on that is no part of the key of its call."""
        who = self.answering
        found: dict[str, Any] = {"endpoint": who.endpoint} if who.endpoint else {}
        if who.runs_here:
            found |= {name: self.versions[name] for name in ENGINES if name in self.versions}
            found |= {name: who.settings.get(name) for name in ("dtype", "attention", "engine")}
        return found | (dict(self.host) if who.hosts_own else {})


# --- what contradicts -----------------------------------------------------------------------------


SPACE = "coordinate space"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One thing that a run recorded and that is otherwise now."""

    what: str
    recorded: Any
    now: Any

    @property
    def is_space(self) -> bool:
        return self.what.startswith(SPACE)

    def __str__(self) -> str:
        return f"{self.what}: recorded {_shown(self.recorded)}, now {_shown(self.now)}"


def _shown(value: Any) -> str:
    if value is _NOT_SET:
        return "not set"
    return json.dumps(value, ensure_ascii=False, default=str) if _is_nested(value) else str(value)


def _is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


_NOT_SET = object()


def _compared(run: Identity) -> dict[str, Any]:
    """Everything in which two records must agree to be of one run, by its name in messages."""
    who = run.answering
    values: dict[str, Any] = {
        "model": run.model,
        "dataset": run.dataset,
        "class": who.kind,
        "row of the model table": who.row,
        # The same files under another path are the same checkpoint.
        "checkpoint": None if _is_fingerprint(who.revision) else who.checkpoint,
        "revision": who.revision,
        "endpoint": who.endpoint,
        "prompts": run.prompts,
        "hash of the prompts": run.prompt_hash,
        "SHA-256 of the table": run.table_sha256,
        SPACE: dict(run.space) if run.space is not None else None,
        "reads_like": run.reads_like,
    }
    if who.kind is not None:
        values |= {f"setting {name}": value for name, value in who.settings.items()}
    if who.runs_here:
        values |= {f"version of {name}": run.versions.get(name) for name in ENGINES}
    if who.hosts_own:
        values["VLMEvalKit"] = dict(run.host) or None
    return values


def _is_fingerprint(revision: str | None) -> bool:
    return revision is not None and revision.startswith("files-")


def contradictions(recorded: Identity, now: Identity) -> list[Contradiction]:
    """Where a run that starts or goes on now is another than the recorded one.

    More rows than before are none: the same questions, and some more.
    """
    before, after = _compared(recorded), _compared(now)
    known = recorded.answering.kind is not None and now.answering.kind is not None
    found = []
    for what in dict.fromkeys((*before, *after)):
        is_setting = what.startswith("setting ")
        if is_setting and not known:
            continue
        absent = _NOT_SET if is_setting else None
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


# --- the file -------------------------------------------------------------------------------------


def identity_path(predictions: Path) -> Path:
    """Where the identity of a prediction file lies."""
    return predictions.with_name(f"{predictions.stem}{ENDING}")


def write_identity(path: Path, run: Identity) -> None:
    """Write it, whole or not at all; a file that says the same is not touched."""
    text = json.dumps(as_values(run), indent=1, ensure_ascii=False, default=str, allow_nan=False)
    write_once(path, (text + "\n").encode("utf-8", "backslashreplace"))


def as_values(run: Identity) -> dict[str, Any]:
    """A run as plain values; :func:`from_values` reads them back."""
    return asdict(run) | {
        "rows": None if run.rows is None else rows_text(run.rows),
        "left_out": rows_text(run.left_out),
    }


def from_values(values: Mapping[str, Any]) -> Identity:
    """The run that plain values say.

    Raises:
        TypeError, KeyError, ValueError: they say none.
    """
    known = {**values, "answering": Answering(**_typed(values["answering"], _ANSWERING))}
    _typed(known, _IDENTITY)
    for name in ("rows", "left_out"):
        if known[name] is not None:
            known[name] = rows_from(known[name])
    known["forced"] = tuple(map(str, known["forced"]))
    return Identity(**known)


_TEXT = str | None
_ANSWERING: Mapping[str, Any] = {
    **dict.fromkeys(("kind", "row", "checkpoint", "revision", "endpoint"), _TEXT),
    **dict.fromkeys(("runs_here", "hosts_own"), bool),
    "settings": dict,
}
_IDENTITY: Mapping[str, Any] = {
    **dict.fromkeys(("model", "dataset", "left_out"), str),
    **dict.fromkeys(("prompts", "prompt_hash", "table", "table_sha256", "rows"), _TEXT),
    "reads_like": _TEXT,
    "space": dict | None,
    **dict.fromkeys(("host", "versions"), dict),
    "forced": list,
}


def _typed(values: Mapping[str, Any], types: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, kind in types.items():
        if name in values and not isinstance(values[name], kind):
            raise TypeError(f"{name} should not be {values[name]!r:.40}")
    return values


def read_identity(predictions: Path) -> Identity | None:
    """The identity of a prediction file; None for predictions of others.

    VLMEvalKit puts predictions into the model's folder or into a folder of the run below it; the
    record lies beside them or one folder up.

    Raises:
        IdentityError: there is one that cannot be read.
    """
    stem = predictions.stem
    folders = (predictions.parent, predictions.parent.parent)
    for ending in (ENDING, LEGACY_ENDING):
        for folder in folders:
            path = folder / f"{stem}{ending}"
            if path.is_file():
                try:
                    values = json.loads(path.read_text(encoding="utf-8"))
                    return from_values(values) if ending == ENDING else _legacy(values, stem)
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                    raise IdentityError(f"{path}: not the record of a run: {error}") from None
    return None


def _legacy(values: Mapping[str, Any], stem: str) -> Identity:
    """The record of a run before 0.2; the names are those of its file."""
    model, _, variant = stem.partition("_FindIt_")
    return Identity(
        model=model,
        dataset=f"FindIt_{variant}",
        prompts=values["prompts"],
        prompt_hash=values["prompt_hash"],
        table_sha256=values["table_sha256"],
        left_out=tuple(values["left_out"]),
        space=values["space"],
    )


def rows_text(rows: Iterable[int]) -> str:
    """Rows as ranges.

    >>> rows_text([3, 0, 1, 2, 7])
    '0-3, 7'
    """
    ranges: list[list[int]] = []
    for row in sorted(rows):
        if ranges and row == ranges[-1][1] + 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in ranges)


def rows_from(text: str) -> tuple[int, ...]:
    """The rows that a text of ranges says.

    >>> rows_from("0-3, 7")
    (0, 1, 2, 3, 7)

    Raises:
        ValueError: it says none.
    """
    rows: list[int] = []
    for part in filter(None, text.split(", ")):
        first, _, last = part.partition("-")
        rows += range(int(first), int(last or first) + 1)
    return tuple(rows)


# --- now ------------------------------------------------------------------------------------------


def installed(packages: Sequence[str]) -> dict[str, str]:
    """The versions of those packages that are installed, found without importing any."""
    found = {package: _version(package) for package in packages}
    return {package: version for package, version in found.items() if version is not None}


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
