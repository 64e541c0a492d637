"""``run_findit.py models``: what is known of models, and models of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..benchmarks.findit.names import parse
from ..core.places import own_models_file
from ..core.question import Question
from ..models.row import ApiFacts, ModelRow
from ..models.table import MODELS
from .parsing import Parser

_GENERAL: Question = parse("FindIt_Pascal_xyxy_json")
_SCENES: Question = parse("FindIt_HRInsDet_easy_xyxy_json")
_VIDEO: Question = parse("FindIt_RoboTools_xyxy_json")


def main(argv: Sequence[str]) -> int:
    """The models whose coordinate space is known, and the names of those that run locally."""
    parser = Parser(prog="run_findit.py models", description=__doc__)
    parser.add_argument(
        "--add",
        type=Path,
        metavar="FILE.yaml",
        help="keep the models of a file: what probe --save wrote, or a list of rows",
    )
    parser.add_argument("--replace", action="store_true", help="--add describes models anew")
    parser.add_argument("--remove", metavar="NAME", help="forget a model of your own")
    args = parser.parse_args(argv)
    if args.add is not None and args.remove is not None:
        raise ValueError("--add and --remove: one at a time")
    if args.replace and args.add is None:
        raise ValueError("--replace says that --add describes models anew, and there is no --add")
    if args.add is not None:
        return _add(args.add, args.replace)
    if args.remove is not None:
        return _remove(args.remove)
    for row in MODELS.values():
        plugin = MODELS.plugin_of(row.name)
        print(row.name if plugin is None else f"{row.name} [{plugin.name} {plugin.version}]")
        for what, value in _facts(row):
            print(f"  {what:<9}{value}")
    print("\nLocal models answer from another checkpoint with --model NAME=FOLDER_OR_IDENTIFIER.")
    return 0


def _add(path: Path, replaces: bool) -> int:
    from ..models.own_models import add

    for row in add(path, replaces=replaces):
        print(f"{row.name}: known to every command from now on")
    print(f"kept in {own_models_file()}")
    return 0


def _remove(name: str) -> int:
    from ..models.own_models import remove

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
