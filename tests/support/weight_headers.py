"""Files of weights that need no torch: mostly their headers only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def write_weights(path: Path, *names: str, dtype: str = "F32") -> None:
    """Write a safetensors file of empty tensors."""
    entry = {"dtype": dtype, "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps(dict.fromkeys(names, entry)).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)


def write_numbers(path: Path, tensors: Mapping[str, bytes]) -> None:
    """Write a safetensors file of flat tensors of bytes."""
    header = {}
    at = 0
    for name, values in tensors.items():
        places = [at, at + len(values)]
        header[name] = {"dtype": "F8_E4M3", "shape": [len(values)], "data_offsets": places}
        at += len(values)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(tensors.values()))


def write_index(folder: Path, *shards: str) -> None:
    """Write an index that lists shards, with one tensor each."""
    listed = {f"{at}.weight": shard for at, shard in enumerate(shards)}
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": listed}))
