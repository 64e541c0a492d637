"""Which models say that they answered a run, and whether that is the model that was asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core import counted
from ..models import find_model, is_other_model, names_asked
from ..protocol import NO_PROXY, Identity, Reply

_MOST = 4  # Most models that a note names

# What a reply records of its model: items of :attr:`.ReplyRecord.model`
ModelRecord = tuple[tuple[str, str], ...]


class AnsweringModel(NamedTuple):
    """A model that answered, by what its replies say."""

    name: str
    key: str  # Its revision, or else its name: a checkpoint may move
    rows: int | None  # How many answers say so (None: version 1.0 did not count them)

    def __str__(self) -> str:
        return self.name if self.rows is None else f"{counted(self.rows, 'row')} by {self.name}"


def count_models(replies: Iterable[Reply]) -> Counter[ModelRecord]:
    """Count what answers say of their model; a failed call says what was asked."""
    return Counter(
        tuple(reply.recorded.model.items())
        for reply in replies
        if reply.recorded.model and not reply.recorded.call.get("error")
    )


def as_values(models: Mapping[ModelRecord, int]) -> list[dict[str, Any]]:
    """Return counts as provenances have them; :func:`models_in` reads them."""
    return [{**dict(items), "rows": rows} for items, rows in sorted(models.items())]


def models_in(values: Sequence[Mapping[str, Any]]) -> tuple[AnsweringModel, ...]:
    """Return the models of a provenance that have a name, in its order."""
    known: dict[str, AnsweringModel] = {}
    for value in values:
        name = value.get("identifier")
        if not isinstance(name, str) or not name:
            continue
        key = str(value.get("revision") or name)
        rows = value.get("rows")
        before = known.get(key)
        if before is not None:
            name = before.name
            rows = _sum(before.rows, rows)
        known[key] = AnsweringModel(name, key, rows if isinstance(rows, int) else None)
    return tuple(known.values())


def _sum(left: int | None, right: Any) -> int | None:
    return left + right if isinstance(left, int) and isinstance(right, int) else None


def answered_note(models: Sequence[AnsweringModel], run: Identity | None) -> str | None:
    """Say that several models answered, another than was asked, or through several proxies.

    >>> from vlmeval_findit.protocol.identity import Answering
    >>> run = Identity("M", "FindIt_Pascal_xyxy_json", Answering(checkpoint="gpt-x"))
    >>> answered_note(models_in([{"identifier": "gpt-x-2026-01", "rows": 20}]), run)
    >>> answered_note(models_in([{"identifier": "small-3b", "rows": 20}]), run)
    'answered by small-3b; asked was gpt-x'
    """
    notes = [_note_on_models(models, run)]
    if run is not None and run.earlier_proxies:
        proxies = ", ".join((*run.earlier_proxies, run.answering.proxy or NO_PROXY))
        notes.append(f"asked through several proxies: {proxies}")
    return "; ".join(filter(None, notes)) or None


def _note_on_models(models: Sequence[AnsweringModel], run: Identity | None) -> str | None:
    others = [model for model in models if run is not None and _is_other(model.name, run)]
    if len(models) < 2 and not others:
        return None
    asked = run and run.answering.checkpoint
    asked_is = f"; asked was {asked}" if others and asked else ""
    if len(models) == 1:
        return f"answered by {models[0].name}{asked_is}"
    named = ", ".join(map(str, models[:_MOST]))
    more = f" and {len(models) - _MOST} more" if len(models) > _MOST else ""
    return f"answered by {len(models)} models: {named}{more}{asked_is}"


def answered_note_of(replies: Iterable[Reply], run: Identity | None) -> str | None:
    """Say what :func:`answered_note` says, of replies."""
    return answered_note(models_in(as_values(count_models(replies))), run)


def _is_other(name: str, run: Identity) -> bool:
    """Return whether another model was asked; on this machine what was loaded answers."""
    who = run.answering
    if who.runs_here or who.server is not None or who.checkpoint is None:
        return False
    row = find_model(who.row) if who.row is not None else None
    return is_other_model(names_asked(who.checkpoint, run.model, row), name)


def keys_of(models: Iterable[AnsweringModel]) -> frozenset[str]:
    """Return by what models are told apart."""
    return frozenset(model.key for model in models)
