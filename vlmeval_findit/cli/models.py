"""``run_findit.py models``: the model table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from ..benchmarks import baselines
from ..benchmarks.findit import parse
from ..core import as_called
from ..models import (
    ENCODERS,
    MODELS,
    KnownWords,
    ModelRow,
    find_model,
    known_words,
    meant_model,
    words_of_model,
)
from ..protocol import DatasetVariant
from .command_base import Command, complete_models, say
from .printing import print_columns, print_folded

_GENERAL: DatasetVariant = parse("FindIt_Pascal_xyxy_json")
_SCENES: DatasetVariant = parse("FindIt_HRInsDet_easy_xyxy_json")
_VIDEO: DatasetVariant = parse("FindIt_RoboTools_xyxy_json")


@click.command(
    cls=Command, examples=["python run_findit.py models", "python run_findit.py models Qwen3-VL"]
)
@click.argument("names", metavar="[NAME...]", nargs=-1, shell_complete=complete_models)
def command(names: tuple[str, ...]) -> int:
    """List the models whose coordinate space is known, or describe some.

    With NAME: checkpoints, coordinate spaces by kind of query, and how many pixels images may
    have. A part of names lists all that have it.
    """
    if names == ("list",):  # As behind "data"
        names = ()
    for name in names:
        _print_named(name)
    if not names:
        _print_list(MODELS.values())
        say(as_called("\ncheckpoints, bounds, spaces: python run_findit.py models NAME"))
        say("a local model from another checkpoint: --model NAME=FOLDER_OR_IDENTIFIER")
    return 0


def _print_named(name: str) -> None:
    """Describe the model of a name, or list those that have it as a part."""
    matches = [] if find_model(name) else [row for row in MODELS.values() if _has(row, name)]
    if len(matches) > 1:
        _print_list(matches)
        return
    row = matches[0] if matches else find_model(name)
    if row is None and name in ENCODERS:
        say(f"{name}\n  runs     a dual encoder, which scores captions: score --encoder {name}")
        _print_words(known_words(ENCODERS[name]))
        return
    if row is None:
        raise ValueError(f"unknown model {name!r}{meant_model(name)}")
    say(_title(row))
    for what, value in _facts(row):
        say(f"  {what:<9}{value}")
    _print_words(words_of_model(row.name, None))


def _print_words(known: KnownWords | None) -> None:
    """Name the words of a small model: of what has none of them, its score says nothing."""
    if known is not None:
        print_folded(f"  knows    {len(known.words)} words: {', '.join(known.words)}")


def _print_list(rows: Iterable[ModelRow]) -> None:
    print_columns(map(_columns, rows), "model", "space", "runs")


def _has(row: ModelRow, part: str) -> bool:
    """Return whether a part is in a name, checkpoint or identifier of a model."""
    names = [row.name]
    if row.api is not None:
        names += [row.entry, row.api.identifier]
    if row.local is not None:
        names += [*row.local.checkpoints, *row.local.checkpoints.values()]
    return any(part.casefold() in name.casefold() for name in names)


def _columns(row: ModelRow) -> tuple[str, str, str]:
    places = []
    if row.local is not None:
        first, *others = row.local.checkpoints
        places.append(f"here: {first}{f' and {len(others)} more' if others else ''}")
    if row.api is not None:
        places.append("OpenRouter")
    if row.name in baselines():
        places.append("here, without a checkpoint")
    return _title(row), str(row.space(_GENERAL).as_dict()["kind"]), ", ".join(places)


def _title(row: ModelRow) -> str:
    plugin = MODELS.plugin_of(row.name)
    return row.name if plugin is None else f"{row.name} [{plugin.name} {plugin.version}]"


def _facts(row: ModelRow) -> list[tuple[str, str]]:
    """Return lines about a model: subjects and facts."""
    facts = _by_dataset("space", lambda variant: row.space(variant).as_dict())
    if row.api is not None:
        api = row.api
        reasoning = "the provider's default reasoning" if api.reasoning is None else "reasoning off"
        limit = f", {api.max_tokens:,} output tokens" if api.max_tokens else ""
        through = f"{api.identifier} through OpenRouter, {reasoning}{limit}"
        facts.append(("runs", f"--model {row.entry}: {through}"))
    if row.local is None:
        return facts
    bounds = row.local.bounds
    facts += _by_dataset("bounds", lambda variant: bounds(variant).as_dict())
    if row.local.template:
        facts.append(("template", _settings_text(row.local.template)))
    facts += [("runs", f"--model {n}: {where}") for n, where in row.local.checkpoints.items()]
    return facts


def _by_dataset(
    what: str, rule: Callable[[DatasetVariant], Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """Return a line, or two where instance detection (or only its 8192x6144 scenes) differs."""
    lines = [(what, _settings_text(rule(_GENERAL)) or "the processor's")]
    if rule(_SCENES) != rule(_GENERAL):
        where = "instance detection" if rule(_VIDEO) == rule(_SCENES) else "HRInsDet"
        lines.append(("", f"{_settings_text(rule(_SCENES))} ({where})"))
    return lines


def _settings_text(settings: Mapping[str, Any]) -> str:
    kind = [str(settings["kind"])] if "kind" in settings else []
    return " ".join([*kind, *(f"{k}={v}" for k, v in settings.items() if k != "kind")])
