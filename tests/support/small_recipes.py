"""Recipes of the shipped models for a training of seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from training.recipe import RECIPES

NANO = "findit_nano"
NANO_PX = "findit_nano_px"
SIGLIP = "findit_nano_siglip"

_TOWER = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2}
_SHORT = {"warmup": 2, "save_every": 2, "evaluate_every": 1000}
_CHANGES: dict[str, dict[str, Any]] = {
    NANO: {
        "corpus": 30,
        "vocabulary": 500,
        "text": {"width": 64, "depth": 2, "heads": 2},
        "vision": {"width": 32, "depth": 2, "heads": 1},
    },
    NANO_PX: {},
    SIGLIP: {
        "corpus": 20,
        "vocabulary": 300,
        "side": 24,
        "text": {**_TOWER, "num_hidden_layers": 1},
        "vision": {**_TOWER, "num_hidden_layers": 1, "image_size": 24, "patch_size": 12},
        "pairs": 3,
        "validation": 4,
    },
}


def small_recipe(name: str, folder: Path, **changes: Any) -> Path:
    """Write a recipe's file, with small towers, few samples and four steps of its last stage."""
    values = yaml.safe_load((RECIPES / f"{name}.yaml").read_text(encoding="utf-8"))
    stage = {**values["stages"][-1], "until": 4}
    if "kinds" in stage:
        stage |= {"rows": 2, "kinds": {"scenes": 1}}
    path = folder / f"{name}.yaml"
    values_of_recipe = {**values, **_SHORT, **_CHANGES[name], "stages": [stage], **changes}
    path.write_text(yaml.safe_dump(values_of_recipe, sort_keys=False), encoding="utf-8")
    return path
