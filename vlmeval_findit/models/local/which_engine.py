"""Which library computes a model on this machine: transformers, or NumPy alone.

It is decided from what is installed and stated, before anything is loaded, and recorded.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...core import install_command, object_or_empty, suggestion
from ...protocol import ENGINE_PACKAGES, NUMPY, TRANSFORMERS
from ..adapter import adapter_of
from ..checkpoint_settings import read_settings
from ..model_row import ModelRow
from .run_settings import RunSettings

WEIGHTS = "model.safetensors"
# What the files of a checkpoint have to say, as :mod:`.arrays` computes nothing else
_COMPUTED: tuple[tuple[str, tuple[str, ...], Any], ...] = (
    ("config.json", ("model_type",), "qwen3_vl"),
    ("config.json", ("text_config", "hidden_act"), "silu"),
    ("config.json", ("text_config", "attention_bias"), False),
    ("config.json", ("text_config", "rope_parameters", "rope_type"), "default"),
    ("config.json", ("text_config", "rope_parameters", "mrope_interleaved"), True),
    ("config.json", ("vision_config", "hidden_act"), "gelu_pytorch_tanh"),
    ("config.json", ("vision_config", "rope_parameters", "rope_type"), "axial"),
    ("processor_config.json", ("image_processor", "image_processor_type"), "Qwen2VLImageProcessor"),
    ("processor_config.json", ("image_processor", "do_resize"), True),
    ("processor_config.json", ("image_processor", "do_rescale"), True),
    ("processor_config.json", ("image_processor", "do_normalize"), True),
    ("processor_config.json", ("image_processor", "resample"), 3),
)


def engine_of(row: ModelRow, checkpoint: str, settings: RunSettings) -> str:
    """Return the engine that computes a checkpoint: the stated one, else transformers.

    NumPy does it where torch or transformers is not installed, and it can.
    """
    if settings.engine is not None:
        return settings.engine
    if all(find_spec(name) for name in ENGINE_PACKAGES[TRANSFORMERS]):
        return TRANSFORMERS
    return TRANSFORMERS if why_not_numpy(row, checkpoint, settings) else NUMPY


def refuse_engine(row: ModelRow, checkpoint: str, settings: RunSettings) -> None:
    """Refuse, with a ValueError, a stated engine that is none or cannot compute a checkpoint."""
    engine = settings.engine
    if engine is None:
        return
    if engine not in ENGINE_PACKAGES:
        raise ValueError(f"unknown engine {engine!r}{suggestion(engine, ENGINE_PACKAGES)}")
    why = why_not_numpy(row, checkpoint, settings) if engine == NUMPY else None
    if why is not None:
        raise ValueError(
            f"engine {NUMPY}: {why}. Leave it out: {TRANSFORMERS} computes it "
            f"({install_command('local')})"
        )


def why_not_numpy(row: ModelRow, checkpoint: str, settings: RunSettings) -> str | None:
    """Return why NumPy cannot compute a checkpoint so; None if it can."""
    if row.local is None or not row.local.by_numpy:
        return f"it computes the small models that ship, and {row.name} is none"
    stated = (
        ("device", settings.device, (None, "cpu")),
        ("dtype", settings.dtype, (None, "float32", "float")),
        ("attention", settings.attention, (None,)),
    )
    for name, value, own in stated:
        if value not in own:
            return f"it computes on a CPU, in float32, and takes no {name} {value}"
    folder = Path(checkpoint)
    if adapter_of(checkpoint) is not None or not (folder / WEIGHTS).is_file():
        return f"{checkpoint} has no {WEIGHTS} of a whole model"
    for file, place, expected in _COMPUTED:
        said: Any = read_settings(folder / file)
        for key in place:
            said = object_or_empty(said).get(key)
        if said != expected:
            return f"{folder / file} says {'.'.join(place)} {said!r}, and it computes {expected!r}"
    return None
