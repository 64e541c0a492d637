"""Folders of adapters: their files alone, and small real ones that ``peft`` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weight_headers import write_weights

LORA = {"peft_type": "LORA", "r": 8, "bias": "none", "use_dora": False, "modules_to_save": None}
TENSOR = "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight"


def write_adapter(folder: Path, base: Path | str | None, *tensors: str, **values: Any) -> Path:
    """Write the settings of an adapter, and weights without numbers; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {**LORA, "base_model_name_or_path": base and str(base), **values}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    write_weights(folder / "adapter_model.safetensors", *(tensors or (TENSOR,)))
    return folder


def write_base(folder: Path, **config: Any) -> Path:
    """Write a checkpoint that has only its config.json; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    values = config or {"architectures": ["Some"], "vision_config": {}}
    (folder / "config.json").write_text(json.dumps(values))
    return folder


def train_adapter(base: Path, folder: Path, seed: int = 1, **settings: Any) -> Path:
    """Save a real adapter of a checkpoint whose random weights change what it answers."""
    import peft
    import torch
    from transformers import AutoModelForImageTextToText

    torch.manual_seed(seed)
    model = AutoModelForImageTextToText.from_pretrained(base, dtype=torch.float32)
    given = {"r": 4, "lora_alpha": 32, "target_modules": r".*language_model.*(q|v|down)_proj"}
    model_with_adapter = peft.get_peft_model(model, peft.LoraConfig(**{**given, **settings}))
    for name, values in model_with_adapter.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(values, std=0.3)
    model_with_adapter.save_pretrained(folder)
    return folder
