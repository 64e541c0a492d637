"""``run_findit.py models``: the models whose coordinate space is known."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from ..datasets import DATASETS
from ..models.table import MODELS, ApiFacts


def main(argv: Sequence[str]) -> int:
    """The models whose coordinate space is known."""
    argparse.ArgumentParser(prog="run_findit.py models", description=__doc__).parse_args(argv)
    for row in MODELS.values():
        general = row.space(DATASETS["Pascal"]).as_dict()
        scenes = row.space(DATASETS["HRInsDet_easy"]).as_dict()
        print(f"{row.name:<20}{_settings_text(general)}")
        if scenes != general:
            print(f"{'':<20}{_settings_text(scenes)} on HRInsDet")
        if row.api is not None:
            print(f"{'':<20}--model {row.entry}: {_api_text(row.api)}")
    return 0


def _api_text(facts: ApiFacts) -> str:
    reasoning = "the provider's default reasoning" if facts.reasoning is None else "reasoning off"
    limit = f", {facts.max_tokens:,} output tokens" if facts.max_tokens else ""
    return f"{facts.identifier} through OpenRouter, {reasoning}{limit}"


def _settings_text(settings: Mapping[str, Any]) -> str:
    rest = " ".join(f"{key}={value}" for key, value in settings.items() if key != "kind")
    return f"{settings['kind']} {rest}".strip()
