"""``run_findit.py models``: what is known of models, as a table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..benchmarks.findit.names import parse
from ..core.question import Question
from ..models.table import MODELS, ApiFacts, ModelRow

_GENERAL: Question = parse("FindIt_Pascal_xyxy_json")
_SCENES: Question = parse("FindIt_HRInsDet_easy_xyxy_json")
_VIDEO: Question = parse("FindIt_RoboTools_xyxy_json")


def main(argv: Sequence[str]) -> int:
    """The models whose coordinate space is known, and the names of those that run locally."""
    argparse.ArgumentParser(prog="run_findit.py models", description=__doc__).parse_args(argv)
    for row in MODELS.values():
        print(row.name)
        for what, value in _facts(row):
            print(f"  {what:<9}{value}")
    print("\nLocal models answer from another checkpoint with --model NAME=FOLDER_OR_IDENTIFIER.")
    return 0


def _facts(row: ModelRow) -> list[tuple[str, str]]:
    """Lines of one row: what they are about, and what they say."""
    facts = _by_task("space", lambda question: row.space(question).as_dict())
    if row.api is not None:
        facts.append(("runs", f"--model {row.entry}: {_api_text(row.api)}"))
    if row.local is None:
        return facts
    bounds = row.local.bounds
    facts += _by_task("bounds", lambda question: bounds(question).as_dict())
    facts.append(("class", row.local.class_name))
    if row.local.template:
        facts.append(("template", _settings_text(row.local.template)))
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
