"""The settings of a checkpoint, as files that anybody may have written.

Programs that load them believe them: a number of layers is a loop, and none has a bound.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core import TextError, object_or_empty, read_json
from .weight_files import READ_ERRORS, names_of_weights, weight_bytes

_MOST_BYTES = 16 << 20  # Of a file of settings; that of a large tokenizer has one
_MOST_OF_TOKENIZER = 128 << 20  # Bytes; those with the most tokens have some 35 MB
_MOST_PIXELS = 1 << 28  # To which an image may be enlarged
_FILES = (
    "config.json",
    "generation_config.json",
    "processor_config.json",
    "preprocessor_config.json",
    "tokenizer_config.json",
    "chat_template.json",
)
_LAYERS = ("num_hidden_layers", "depth", "num_layers", "n_layer", "n_layers")
_SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_position_embeddings")
_MEND = "Copy the file that was saved with the weights"


def read_settings(path: Path) -> Mapping[str, Any]:
    """Return the object of a file of settings.

    Raises:
        ValueError: it is none, or too long; the message names the file and says what to do.
        OSError: it cannot be read.
    """
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise ValueError(
            f"{path}: {size:,} bytes, and settings have {_MOST_BYTES:,} at most. {_MEND}"
        )
    try:
        values = read_json(path)
    except TextError as error:
        raise ValueError(f"{error.message_for(path)}. {_MEND}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: its JSON is no object. {_MEND}")
    return values


def _refuse_size(path: Path, most: int) -> None:
    size = path.stat().st_size
    if size > most:
        raise ValueError(
            f"{path}: it has {size:,} bytes, and should have at most {most:,}. {_MEND}"
        )


def refuse_settings_files(folder: Path) -> None:
    """Raise ValueError or OSError for settings in a folder that are none, or out of all bounds."""
    tokenizer = folder / "tokenizer.json"
    if os.path.lexists(tokenizer):
        _refuse_size(tokenizer, _MOST_OF_TOKENIZER)
    for name in _FILES:
        path = folder / name
        # A link that leads nowhere is no missing file.
        if os.path.lexists(path):
            values = read_settings(path)
            if name == "config.json":
                _refuse_endless(path, values)
            _refuse_huge_images(path, values)


def _refuse_huge_images(path: Path, values: Mapping[str, Any]) -> None:
    """Raise ValueError for a processor that makes every image larger than memory."""
    processor = object_or_empty(values.get("image_processor")) or values
    size = object_or_empty(processor.get("size"))
    for key, least in (
        ("min_pixels", processor.get("min_pixels")),
        ("size.shortest_edge", size.get("shortest_edge")),
    ):
        if isinstance(least, int) and least > _MOST_PIXELS:
            raise ValueError(f"{path}: {key} is {least:,}: no image is as large. {_MEND}")


def _refuse_endless(config: Path, values: Mapping[str, Any]) -> None:
    """Raise ValueError for more layers than there are weights, or more numbers than bytes.

    Each would be made.
    """
    try:
        layers = len(names_of_weights(config.parent))
        numbers = weight_bytes(config.parent)
    except READ_ERRORS:
        return  # Their own fault is told elsewhere
    for key, count in _counts(values):
        most = layers if key in _LAYERS else numbers
        if most and count > most:
            what = "weights" if key in _LAYERS else "bytes of weights"
            raise ValueError(
                f"{config}: {key} is {count:,}, and the files have {most:,} {what}: it is the "
                f"config.json of another model. {_MEND}"
            )


def _counts(values: Any) -> Iterator[tuple[str, int]]:
    """Yield the numbers of layers and the sizes that an object states, at any depth."""
    if isinstance(values, dict):
        for key, value in values.items():
            if isinstance(value, int) and key in (*_LAYERS, *_SIZES):
                yield key, value
            yield from _counts(value)
