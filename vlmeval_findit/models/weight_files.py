"""The files of a checkpoint's weights: which are loaded, and what tells that some are not there.

Nothing here needs torch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..core import open_regular, read_json, some, suffix_of
from ..protocol import error_line
from .adapter import CONFIG, OF_ADAPTER
from .safetensors_header import read_header

# In the order in which transformers looks for them; the first that is there is loaded.
_OF_MODEL = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
# What reading a file raises that is cut off, deleted meanwhile, or something else
UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)

_POINTER = b"version https://git-lfs"
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")  # Its number, and that of all


def loaded_file(folder: Path) -> Path | None:
    """Return the file of weights, or the index of their shards, that is loaded from a folder."""
    names = OF_ADAPTER if (folder / CONFIG).is_file() else _OF_MODEL
    return next(filter(Path.is_file, (folder / name for name in names)), None)


def shards_of(index: Path) -> list[Path]:
    """Return the files that an index lists.

    Raises one of :data:`UNREADABLE` if it is no index.
    """
    names = dict.fromkeys(read_json(index)["weight_map"].values())
    return [index.parent / name for name in names]


def fault_of(file: Path) -> str | None:
    """Return why a file of weights is not whole; None if it is.

    Raises one of :data:`UNREADABLE` if it is not there, or its header is none.
    """
    size = file.stat().st_size
    with open_regular(file) as f:
        if f.read(len(_POINTER)) == _POINTER:
            return "a pointer of Git LFS, not the file (git lfs pull)"
    if suffix_of(file) != ".safetensors":
        return None if size else "it is empty"
    header = read_header(file)
    tensors = (tensor for name, tensor in header.values.items() if name != "__metadata__")
    expected = header.end + max((tensor["data_offsets"][1] for tensor in tensors), default=0)
    return None if size == expected else f"it has {size:,} bytes; its header says {expected:,}"


def is_one_of_many(file: Path) -> bool:
    """Return whether a file is named as one of several shards."""
    match = _SHARD.search(file.name)
    return match is not None and int(match[2]) > 1


def lacking_shards(folder: Path) -> str | None:
    """Return which shards the loaded index leaves out, by the names of those that it lists."""
    try:
        index = loaded_file(folder)
        listed = shards_of(index) if index is not None and suffix_of(index) == ".json" else []
        numbered = [match for match in (_SHARD.search(each.name) for each in listed) if match]
    except UNREADABLE:
        return None
    most = max((int(match[2]) for match in numbered), default=0)
    if len(numbered) >= most or index is None:
        return None
    return f"{index.name} lists {len(numbered)} of {most} shards"


def names_of_weights(folder: Path) -> list[str]:
    """Return the names of the tensors that are loaded from a folder, as its files have them.

    They are not known (empty) of files other than safetensors.

    Raises:
        ValueError: a shard that the index lists is missing, or a file is cut off or broken.
    """
    names: list[str] = []
    for file in _loaded_files(folder):
        try:
            why = fault_of(file)
            header = read_header(file).values if suffix_of(file) == ".safetensors" else {}
        except UNREADABLE as error:
            why = f"cut off, or no safetensors file ({error_line(error)})"
        if why is not None:
            raise ValueError(f"{file}: {why}. Copy or save it again")
        names += [name for name in header if name != "__metadata__"]
    return names


def _loaded_files(folder: Path) -> Sequence[Path]:
    """Return the files of weights that are loaded; ValueError if an index lists others."""
    first = loaded_file(folder)
    if first is None:
        return []
    if suffix_of(first) != ".json":
        return [first]
    try:
        shards = shards_of(first)
    except UNREADABLE as error:
        why = f"no index of shards ({error_line(error)})"
        raise ValueError(f"{first}: {why}. Copy or save it again") from None
    missing = [shard.name for shard in shards if not shard.is_file()]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ValueError(
            f"{first}: {len(missing):,} of the {len(shards):,} shards that it lists {verb} missing "
            f"({some(missing)}). Copy them into the folder, or save the model again"
        )
    return shards
