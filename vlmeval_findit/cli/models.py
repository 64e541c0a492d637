"""``run_findit.py models``: what is known of models, and models of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from ..benchmarks import baselines
from ..benchmarks.findit.dataset_names import parse
from ..core.command import as_called
from ..core.places import custom_models_file
from ..core.question import Question
from ..models.model_row import ApiFacts, ModelRow
from ..models.model_table import MODELS, known_model
from .options import PATH, Command, complete_models
from .printing import console

_GENERAL: Question = parse("FindIt_Pascal_xyxy_json")
_SCENES: Question = parse("FindIt_HRInsDet_easy_xyxy_json")
_VIDEO: Question = parse("FindIt_RoboTools_xyxy_json")


@click.command(
    cls=Command,
    examples=["python run_findit.py models", "python run_findit.py models Qwen3-VL"],
)
@click.argument("names", metavar="[NAME...]", nargs=-1, shell_complete=complete_models)
@click.option(
    "--add",
    type=PATH,
    metavar="FILE.yaml",
    help="Keep the models of a file: what probe --save wrote, or a list of rows.",
)
@click.option("--replace", is_flag=True, help="--add replaces models of the same names.")
@click.option("--remove", metavar="NAME", help="Delete a custom model.")
def command(names: tuple[str, ...], add: Path | None, replace: bool, remove: str | None) -> int:
    """List the models whose coordinate space is known, or describe some; keep or forget your own.

    With NAME: checkpoints, coordinate spaces by task, and how many pixels images may have.
    """
    if sum(map(bool, (names, add, remove))) > 1:
        raise ValueError("NAME, --add and --remove: one at a time")
    if replace and add is None:
        raise ValueError("--replace says what --add does, and there is no --add: add it")
    if add is not None:
        return _add(add, replace)
    if remove is not None:
        return _remove(remove)
    if names:
        for name in names:
            _describe(known_model(name, "NAME"))
    else:
        _list()
    return 0


def _list() -> None:
    """Print a line a model: its name, the space of most tasks, and where it runs."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("model", "space", "runs"):
        table.add_column(column, overflow="fold")
    for row in MODELS.values():
        space = str(row.space(_GENERAL).as_dict()["kind"])
        table.add_row(*map(Text, (_title(row), space, ", ".join(_places(row)))))
    console().print(table)
    print(as_called("\ncheckpoints, bounds, spaces by task: python run_findit.py models NAME"))
    print("a local model from another checkpoint: --model NAME=FOLDER_OR_IDENTIFIER")


def _places(row: ModelRow) -> Iterator[str]:
    if row.local is not None:
        first, *others = row.local.checkpoints
        yield f"here: {first}{f' and {len(others)} more' if others else ''}"
    if row.api is not None:
        yield "OpenRouter"
    if row.name in baselines():
        yield "here, without a checkpoint"
    if row.served is not None:
        yield f"served as {row.served}"


def _title(row: ModelRow) -> str:
    plugin = MODELS.plugin_of(row.name)
    return row.name if plugin is None else f"{row.name} [{plugin.name} {plugin.version}]"


def _describe(row: ModelRow) -> None:
    print(_title(row))
    for what, value in _facts(row):
        print(f"  {what:<9}{value}")


def _add(path: Path, replaces: bool) -> int:
    from ..models.custom_models import add

    for row in add(path, replaces=replaces):
        print(f"{row.name}: known to every command from now on")
    print(f"kept in {custom_models_file()}")
    return 0


def _remove(name: str) -> int:
    from ..models.custom_models import remove

    remove(name)
    print(f"{name}: forgotten; its runs stay; to score them again it must be back, or --force")
    return 0


def _facts(row: ModelRow) -> list[tuple[str, str]]:
    """Lines of one row: what they are about, and what they say."""
    facts = _by_task("space", lambda question: row.space(question).as_dict())
    if row.api is not None:
        facts.append(("runs", f"--model {row.entry}: {_api_text(row.api)}"))
    if row.served is not None:
        facts.append(("served", row.served))
    if row.local is None:
        return facts
    bounds = row.local.bounds
    facts += _by_task("bounds", lambda question: bounds(question).as_dict())
    if row.local.template:
        facts.append(("template", _settings_text(row.local.template)))
    if row.settings:
        facts.append(("settings", _settings_text(row.settings)))
    facts += [("runs", f"--model {n}: {where}") for n, where in row.local.checkpoints.items()]
    return facts


def _by_task(what: str, rule: Callable[[Question], Mapping[str, Any]]) -> list[tuple[str, str]]:
    """One line, or two where instance detection (or only its 8192x6144 scenes) differs."""
    lines = [(what, _settings_text(rule(_GENERAL)) or "the processor's own")]
    if rule(_SCENES) != rule(_GENERAL):
        where = "instance detection" if rule(_VIDEO) == rule(_SCENES) else "HRInsDet"
        lines.append(("", f"{_settings_text(rule(_SCENES))} ({where})"))
    return lines


def _api_text(facts: ApiFacts) -> str:
    reasoning = "the provider's default reasoning" if facts.reasoning is None else "reasoning off"
    limit = f", {facts.max_tokens:,} output tokens" if facts.max_tokens else ""
    return f"{facts.identifier} through OpenRouter, {reasoning}{limit}"


def _settings_text(settings: Mapping[str, Any]) -> str:
    kind = [str(settings["kind"])] if "kind" in settings else []
    return " ".join([*kind, *(f"{k}={v}" for k, v in settings.items() if k != "kind")])
