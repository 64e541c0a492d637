"""Files of weights without numbers: only their headers."""

from __future__ import annotations

import json
from pathlib import Path


def write_weights(path: Path, *names: str, dtype: str = "F32") -> None:
    """Write a safetensors file of empty tensors."""
    entry = {"dtype": dtype, "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps(dict.fromkeys(names, entry)).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)


def write_index(folder: Path, *shards: str) -> None:
    """Write an index that lists shards, with one tensor each."""
    listed = {f"{at}.weight": shard for at, shard in enumerate(shards)}
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": listed}))
