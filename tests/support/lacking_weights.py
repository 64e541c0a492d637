"""Checkpoints whose weights are not those of their config.json: copies of whole ones, damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

Tensors = dict[str, Any]
Change = Callable[[Tensors], Tensors]


def damaged(whole: Path, folder: Path, change: Change) -> Path:
    """Copy a checkpoint with other tensors; returns the folder."""
    shutil.copytree(whole, folder)
    write_tensors(folder / "model.safetensors", change(load_file(whole / "model.safetensors")))
    return folder


def write_tensors(path: Path, tensors: Mapping[str, Any]) -> None:
    values = {name: value.contiguous().clone() for name, value in tensors.items()}
    save_file(values, path, metadata={"format": "pt"})


def without(part: str) -> Change:
    return lambda tensors: {name: value for name, value in tensors.items() if part not in name}


def renamed(old: str, new: str) -> Change:
    return lambda tensors: {name.replace(old, new): value for name, value in tensors.items()}


def prefixed(prefix: str) -> Change:
    return lambda tensors: {prefix + name: value for name, value in tensors.items()}


def with_more(**more: Any) -> Change:
    return lambda tensors: {**tensors, **{name.replace("__", "."): v for name, v in more.items()}}


def filled(part: str, value: float) -> Change:
    """Fill the tensors of a part with one value."""

    def change(tensors: Tensors) -> Tensors:
        return {
            name: torch.full_like(values, value) if part in name else values
            for name, values in tensors.items()
        }

    return change


def in_shards(whole: Path, folder: Path, listed: int = 2, written: int = 2) -> Path:
    """Copy a checkpoint in two shards, of which so many are listed, and are there."""
    shutil.copytree(whole, folder)
    single = folder / "model.safetensors"
    tensors = load_file(single)
    single.unlink()
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    half = len(tensors) // 2
    where = {name: names[at >= half] for at, name in enumerate(tensors)}
    for shard in names[:written]:
        write_tensors(folder / shard, {n: tensors[n] for n, of in where.items() if of == shard})
    index = {name: shard for name, shard in where.items() if shard in names[:listed]}
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return folder
