"""Flags that are said of all models of a command, where some models say otherwise.

Over several models such a flag is refused: each may have its own value in a sweep's file. Over one
it goes first, and what it overrides is printed at the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..boxes import SpaceError, space_from
from ..core import flag_name, without_credentials
from ..models import ANY_QUESTION, ModelEntry, ModelOptions, ModelRow, extra_fields, find_model
from ..protocol import IN_PLACE_OF, in_words, thought_marks
from ..serving import ServeOptions
from .command_base import print_note

_ENTRY = "its entry"
_FILE = "its file"


class Overridden(NamedTuple):
    """A value that a flag overrides for a model."""

    flag: str
    value: str
    model: str
    known: str
    source: str
    key: str  # of a model in a sweep's file
    asked: str = ""  # how and where the model is asked then, if flag and file both decide it

    def __str__(self) -> str:
        line = f"{self.model}: {self.flag} {self.value}{IN_PLACE_OF}{self.known} ({self.source})"
        return f"{line}: {self.asked}" if self.asked else line


def check_overridden(
    options: ModelOptions,
    judged: Mapping[str, Any],
    entries: Sequence[ModelEntry],
    serving: ServeOptions | None = None,
) -> None:
    """Refuse flags over several models that some know otherwise; say what is overridden of one.

    Args:
        options: of the command line.
        judged: its settings of scoring, as ``--judge-args`` has them, with ``--space``.
        entries: the models as they are without the options.
        serving: how their file says that this machine serves them (None: it does not).
    """
    found: list[Overridden] = []
    for entry in entries:
        found += _another_answers(options, entry, serving)
        found += _overridden(options, judged, entry)
    if found and len(entries) > 1:
        first = found[0]
        raise ValueError(
            f"{first.flag} {first.value} is said of {len(entries)} models, but {first.model} has "
            f"{first.known} ({first.source}). Run {first.model} in a command without {first.flag}, "
            f"or write `{first.key}` of each model in a sweep's file: findit sweep FILE.yaml"
        )
    for each in found:
        if each.key != "space":  # said where its run begins, with the bounds in force
            print_note(str(each))


def _another_answers(
    options: ModelOptions, entry: ModelEntry, serving: ServeOptions | None
) -> Iterator[Overridden]:
    """Yield the flags that say who answers for a model, where its file says another."""
    url = options.base_url
    provider = options.provider
    address = None if url is None else without_credentials(url)
    asked = _asked(options, entry)
    known = entry.base_url or (entry.provider and f"{entry.provider}'s usual address")
    if address is not None and known and url != known:
        known = without_credentials(known)
        yield Overridden("--base-url", address, entry.name, known, _ENTRY, "base_url", asked)
    if provider is not None and entry.base_url is not None and entry.provider is None:
        known = "a server's protocol and key"
        yield Overridden("--provider", provider, entry.name, known, _ENTRY, "provider", asked)
    if serving is None or entry.base_url is not None or entry.provider is not None:
        return
    known = f"serve: {serving.program}"
    if provider is not None:
        yield Overridden("--provider", provider, entry.name, known, _FILE, "provider", asked)
    elif address is not None:
        yield Overridden("--base-url", address, entry.name, known, _FILE, "base_url")
    elif options.serve not in (None, serving.program):
        yield Overridden("--serve", str(options.serve), entry.name, known, _FILE, "serve")


def _asked(options: ModelOptions, entry: ModelEntry) -> str:
    """Say whose protocol and key a model is asked with, and where; "" without a provider."""
    provider = options.provider or entry.provider
    url = options.base_url or entry.base_url
    if provider is None:
        return ""
    how = f"{provider}'s protocol and {'key' if options.key is None else '--key'}"
    return how if url is None else f"{how}, at {without_credentials(url)}"


def _overridden(
    options: ModelOptions, judged: Mapping[str, Any], entry: ModelEntry
) -> Iterator[Overridden]:
    """Yield what the flags of a command override for a model."""
    row = find_model(options.like or entry.like or entry.name)
    table = f"model table: {row.name}" if row is not None else ""
    yield from _like(options, entry)
    for key in ("system", "prompt_template"):
        value = getattr(options, key)
        known = getattr(entry, key)
        if None not in (value, known) and value != known:
            words = without_credentials(value), without_credentials(known)
            yield Overridden(flag_name(key), words[0], entry.name, words[1], _ENTRY, key)
    for place in ("settings", "resources"):
        for name, value in options.going_to(place).items():
            yield from _setting(flag_name(name), entry, name, value, place)
    provider = options.provider or entry.provider
    for key, value in extra_fields(options.extra_body, provider).items():
        if value is None:  # another value contradicts, and is refused
            yield from _setting("--extra-body", entry, key, value)
    if judged.get("space"):
        flag = "--space" if options.space is not None else "--judge-args space"
        yield from _space(flag, judged["space"], entry, row, table)
    if row is not None:
        yield from _reading(judged, entry.name, row)


def _reading(judged: Mapping[str, Any], model: str, row: ModelRow) -> Iterator[Overridden]:
    """Yield what ``--judge-args`` overrides of how a row's replies are read."""
    table = f"model table: {row.name}"
    flag = "--judge-args"
    if judged.get("reads_like"):
        like = find_model(judged["reads_like"])
        if like is not None and like.name != row.name:
            yield Overridden(f"{flag} reads_like", like.name, model, row.name, table, "reads_like")
    marks = row.named_marks
    if judged.get("thought_marks") and marks is not None:
        given = thought_marks(judged["thought_marks"])
        if given != marks:
            words = in_words(given), in_words(marks)
            key = "thought_marks"
            yield Overridden(f"{flag} {key}", words[0], model, words[1], table, key)


def _setting(
    flag: str, entry: ModelEntry, key: str, value: Any, place: str = "settings"
) -> Iterator[Overridden]:
    """Yield a setting or a resource that a sweep's file has for a model, if it differs."""
    stated = getattr(entry, place)
    known = stated.get(key)
    if key in stated and value != known:
        yield Overridden(flag, f"{key}={value}", entry.name, f"{key}={known}", _ENTRY, place)


def _like(options: ModelOptions, entry: ModelEntry) -> Iterator[Overridden]:
    if options.like is None:
        return
    like = find_model(options.like)
    own = find_model(entry.like or entry.name)
    if like is not None and own is not None and like.name != own.name:
        source = _ENTRY if entry.like else "model table"
        yield Overridden("--like", options.like, entry.name, own.name, source, "like")


def _space(
    flag: str, value: Any, entry: ModelEntry, row: ModelRow | None, table: str
) -> Iterator[Overridden]:
    """Yield the known space of a model, if it differs; bounds of a resize are often a server's."""
    stated = space_from(value)
    try:
        if entry.space is not None:
            known = space_from(entry.space)
            source = _ENTRY
        elif row is not None:
            known = row.space(ANY_QUESTION)
            source = table
        else:
            return
    except SpaceError:  # a row without a space of its own
        return
    is_resize = stated.kind == known.kind == "smart_resize" and source != _ENTRY
    if stated != known and not is_resize:
        words = in_words(stated.as_dict()), in_words(known.as_dict())
        yield Overridden(flag, words[0], entry.name, words[1], source, "space")
