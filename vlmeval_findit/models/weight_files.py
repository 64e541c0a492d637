"""The files of a checkpoint's weights: which are loaded, and what tells that some are not there.

Nothing here needs torch.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from ..core import (
    agreeing,
    counted,
    error_line,
    first_few,
    open_regular,
    quoted_value,
    read_json,
    suffix_of,
    unsafe_name,
)
from .adapter import CONFIG, OF_ADAPTER, adapter_of
from .safetensors_header import read_header
from .torch_file import StoredTensor, is_object, read_torch_file, tensors_in, wrapped_in

# In the order in which transformers looks for them; the first that is there is loaded.
_OF_MODEL = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
# What reading a file raises that is cut off, deleted meanwhile, or something else
READ_ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError)

_POINTER = b"version https://git-lfs"
_ZIP = b"PK"  # How torch.save begins a file; before torch 1.6, with a pickle
_PICKLE = b"\x80"
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")  # Its number, and that of all


def loaded_file(folder: Path) -> Path | None:
    """Return the file of weights, or the index of their shards, that is loaded from a folder."""
    names = OF_ADAPTER if (folder / CONFIG).is_file() else _OF_MODEL
    return next(filter(Path.is_file, (folder / name for name in names)), None)


def shards_of(index: Path) -> list[Path]:
    """Return the files that an index lists.

    Raises one of :data:`READ_ERRORS` if it is no index.
    """
    names = dict.fromkeys(read_json(index)["weight_map"].values())
    for name in names:
        why = unsafe_name(name)
        if why is not None:
            raise ValueError(f"the shard {quoted_value(name)} {why}")
    return [index.parent / name for name in names]


def fault_of(file: Path) -> str | None:
    """Return why a file of weights is not whole; None if it is.

    Raises one of :data:`READ_ERRORS` if it is not there, or its header is none.
    """
    size = file.stat().st_size
    with open_regular(file) as f:
        begin = f.read(len(_POINTER))
    if begin == _POINTER:
        return "a pointer of Git LFS, not the file (git lfs pull)"
    if suffix_of(file) != ".safetensors":
        return _fault_of_torchs(file, begin)
    header = read_header(file)
    tensors = {name: each for name, each in header.values.items() if name != _METADATA}
    ends = [tensor["data_offsets"][1] for tensor in tensors.values()]
    expected = header.end + max(ends, default=0)
    if size != expected:
        return f"it has {size:,} bytes; its header says {expected:,}"
    return _fault_of_places(tensors)


def _fault_of_places(tensors: Mapping[str, Any]) -> str | None:
    """Return which tensor of a header has not the place that its type and shape need, and why.

    The format has no gaps: each begins where another ends.
    """
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"]):
        begin, next_end = tensor["data_offsets"]
        if begin != end or next_end < begin:
            return f"its header is wrong: {name} has the bytes {begin:,} to {next_end:,}"
        shape = tensor["shape"]
        bits = _BITS.get(tensor["dtype"])
        if min(shape, default=0) < 0:
            return f"its header is wrong: {name} has the shape {shape}"
        if bits is not None and bits * prod(shape) != 8 * (next_end - begin):
            return (
                f"its header is wrong: {name} of {tensor['dtype']} and shape {shape} in "
                f"{next_end - begin:,} bytes"
            )
        end = next_end
    return None


# Types of numbers whose size is known; a newer one is not checked
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64,
}  # fmt: skip


def _fault_of_torchs(file: Path, begin: bytes) -> str | None:
    """Return why a file of ``torch.save`` is not whole, by its first bytes and its end."""
    if not begin:
        return "it is empty"
    if begin.startswith(_ZIP):
        # The list of a zip file's parts is its end.
        return None if zipfile.is_zipfile(file) else "it is cut off"
    return None if begin.startswith(_PICKLE) else "no file that torch.save writes"


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
    except READ_ERRORS:
        return None
    most = max((int(match[2]) for match in numbered), default=0)
    if len(numbered) >= most or index is None:
        return None
    return f"{index.name} lists {len(numbered)} of {most} shards"


def names_of_weights(folder: Path) -> list[str]:
    """Return the names of the tensors that are loaded from a folder, as its files have them.

    Raises:
        ValueError: a shard that the index lists is missing, a file is cut off or broken, holds a
            training's state instead of weights, or integers, and no settings say how they were
            quantized; or weights are there twice.
    """
    where: dict[str, Path] = {}
    quantized = _says_quantized(folder)
    for file in _loaded_files(folder):
        tensors = _tensors_of(file)
        integers = [] if quantized else list(filter(None, map(_integer, tensors.items())))
        if integers:
            raise ValueError(
                f"{file}: {counted(len(integers), 'weight')} of integers ({first_few(integers)}), "
                "and no quantization_config in config.json says what numbers they stand for. Copy "
                "the config.json that was saved with them, or save the model in bfloat16"
            )
        twice = [name for name in tensors if name in where]
        if twice:
            raise ValueError(
                f"{file}: {counted(len(twice), 'weight')} ({first_few(twice)}) in "
                f"{where[twice[0]].name}, too, as where shards of two saves are mixed: which is "
                "loaded would depend on the program. Copy all shards and their index again, or "
                "save the model again"
            )
        where |= dict.fromkeys(tensors, file)
    return [*where]


def weight_bytes(folder: Path) -> int:
    """Return how many bytes the files of weights have that are loaded from a folder."""
    return sum(file.stat().st_size for file in _loaded_files(folder))


def shapes_in(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors that are loaded from a folder, as far as they are known."""
    shapes = {}
    for file in _loaded_files(folder):
        for name, tensor in _tensors_of(file).items():
            shapes[name] = tensor.shape
    return shapes


def _tensors_of(file: Path) -> Mapping[str, StoredTensor]:
    """Return the tensors of a file by name; ValueError if it is not whole, or holds others."""
    is_torchs = suffix_of(file) != ".safetensors"
    tensors: dict[str, StoredTensor] = {}
    try:
        why = fault_of(file)
        if why is None and not is_torchs:
            header = read_header(file).values
            tensors = {name: _stored(each) for name, each in header.items() if name != _METADATA}
    except READ_ERRORS as error:
        why = f"cut off, or no safetensors file ({error_line(error)})"
    if why is not None:
        raise ValueError(f"{file}: {why}. Copy or save it again")
    return _tensors_of_torchs(file) if is_torchs else tensors


_METADATA = "__metadata__"


def _stored(entry: Mapping[str, Any]) -> StoredTensor:
    return StoredTensor(str(entry.get("dtype")), tuple(entry["shape"]))


def _tensors_of_torchs(file: Path) -> Mapping[str, StoredTensor]:
    """Return the tensors of a file of ``torch.save``; none of one that only torch can read."""
    values = read_torch_file(file)
    keys = wrapped_in(values)
    if keys:
        inside = "".join(f"[{key!r}]" for key in keys)
        loaded = "torch.load(f, map_location='cpu', weights_only=True)"
        only = f"f = {str(file)!r}; torch.save({loaded}{inside}, f)"
        raise ValueError(
            f"{file}: its weights are in {inside}, as in the state of a training. Save them alone: "
            f'python -c "import torch; {only}"'
        )
    if is_object(values):
        raise ValueError(
            f"{file}: an object was saved, not its weights. Save the model: "
            "model.save_pretrained(FOLDER)"
        )
    return tensors_in(values)


# Names of weights; a buffer of places, counts or masks may hold integers.
_WEIGHT = re.compile(r"(?:^|[._])(?:weight|proj|token|embed|embeddings?|lora_embedding_[AB])$")
_INTEGER = re.compile(r"[IU]\d+")


def _integer(entry: tuple[str, StoredTensor]) -> str | None:
    """Return the name and type of a weight whose numbers are integers; None of others."""
    name, tensor = entry
    is_one = _WEIGHT.search(name) is not None and _INTEGER.fullmatch(tensor.dtype) is not None
    return f"{name}: {tensor.dtype}" if is_one else None


_QUANTIZATION = ("quantization_config", "compression_config")


def _says_quantized(folder: Path) -> bool:
    """Return whether a folder has settings of a quantization, or a config.json that is unread."""
    if any(folder.glob("*quant*.json")):  # GPTQ's, AWQ's and ModelOpt's own
        return True
    config = folder / "config.json"
    if not config.is_file():
        return False  # An adapter's weights are not quantized
    try:
        return _names_any(read_json(config), _QUANTIZATION)
    except READ_ERRORS:
        return True  # Its own fault is told elsewhere


def _names_any(values: Any, keys: Collection[str]) -> bool:
    """Return whether an object has one of these keys with a value, at any depth."""
    if not isinstance(values, dict):
        return False
    return any(values.get(key) for key in keys) or any(
        _names_any(value, keys) for value in values.values()
    )


# The matrix that makes logits, and the embedding of tokens, as checkpoints call them
_HEAD = re.compile(r"(?:^|\.)lm_head\.weight$")
_EMBEDDING = re.compile(r"(?:^|\.)(?:embed_tokens|wte|word_embeddings)\.weight$")
_TIES = "tie_word_embeddings"


def refuse_untied(folder: Path) -> None:
    """Raise ValueError for a head that is stored unlike the embedding, where the settings tie them.

    Programs disagree on which of both answers: transformers 5 takes both as they are stored,
    earlier ones and some servers drop the head.  Settings that do not say it, or say both, leave it
    to the loading, which is judged.
    """
    if not says_tied(folder):
        return
    places = [place for file in _loaded_files(folder) for place in _places_in(file)]
    heads = [place for place in places if _HEAD.search(place.name)]
    embeddings = [place for place in places if _EMBEDDING.search(place.name)]
    if len(heads) != 1 or len(embeddings) != 1:
        return
    head = heads[0]
    embedding = embeddings[0]
    if not _are_equal(head, embedding):
        raise ValueError(f"{head.file}: {why_untied(head.name, embedding.name)}")


def says_tied(folder: Path) -> bool:
    """Return whether a folder's config.json ties the head, wherever it says anything of it."""
    try:
        return set(_values_of(read_json(folder / "config.json"), _TIES)) == {True}
    except READ_ERRORS:
        return False  # Its own fault is told elsewhere


def why_untied(head: str, embedding: str) -> str:
    """Say what is wrong with a head that is stored unlike the embedding, and what to type."""
    return (
        f"{head} has other values than {embedding}, and config.json ties them: which of both "
        f'answers would depend on the program. If the head was trained apart, write "{_TIES}": '
        "false wherever config.json has it; if not, it is left over: save the model without it"
    )


class _TensorPlace(NamedTuple):
    """Where the numbers of a tensor are in a safetensors file, in bytes."""

    name: str
    kind: tuple[str, tuple[int, ...]]  # Type and shape
    file: Path
    begin: int
    end: int


def _places_in(file: Path) -> list[_TensorPlace]:
    if suffix_of(file) != ".safetensors":
        return []
    header = read_header(file)
    places = []
    for name, entry in header.values.items():
        if name != _METADATA:
            begin, end = (header.end + at for at in entry["data_offsets"])
            places.append(_TensorPlace(name, _stored(entry), file, begin, end))
    return places


def _are_equal(one: _TensorPlace, other: _TensorPlace) -> bool:
    """Return whether two tensors have the same numbers, as far as their bytes can tell."""
    if one.kind != other.kind:
        return True  # Of another type or shape: the loading is judged, too
    ages = tuple(place.file.stat().st_mtime_ns for place in (one, other))
    return _have_equal_bytes(one, other, ages)


_PIECE = 1 << 20


@cache
def _have_equal_bytes(one: _TensorPlace, other: _TensorPlace, ages: tuple[int, ...]) -> bool:
    """Compare the bytes of two tensors; what was compared is remembered while no file changes."""
    with open_regular(one.file) as first, open_regular(other.file) as second:
        first.seek(one.begin)
        second.seek(other.begin)
        for at in range(one.begin, one.end, _PIECE):
            length = min(_PIECE, one.end - at)
            if first.read(length) != second.read(length):
                return False
    return True


def _values_of(values: Any, key: str) -> Iterator[Any]:
    """Yield the values of a key at any depth of an object."""
    if isinstance(values, dict):
        yield from (value for name, value in values.items() if name == key)
        for value in values.values():
            yield from _values_of(value, key)


def refuse_unloadable(checkpoint: str) -> None:
    """Raise ValueError for a folder (or an adapter's base) without weights for transformers.

    Servers find more: vLLM takes shards without an index.
    """
    adapter = adapter_of(checkpoint)
    folder = Path(checkpoint) if adapter is None else adapter.base_folder
    if folder is None or not folder.is_dir() or loaded_file(folder) is not None:
        return
    if _names_its_own(folder / "config.json"):
        return
    others = sorted(path.name for path in folder.glob("*") if suffix_of(path) in _OTHERS)
    shards = [name for name in others if _SHARD.search(name)]
    if shards:
        index = f"{_SHARD.split(shards[0])[0]}{suffix_of(Path(shards[0]))}.index.json"
        raise ValueError(
            f"{folder}: {counted(len(shards), 'shard')} ({first_few(shards)}) without their index: "
            f"copy {index} into the folder, or save the model again"
        )
    there = f"{first_few(others)} is not loaded" if others else "it has only other files"
    raise ValueError(
        f"{folder}: no weights: neither {' nor '.join(_OF_MODEL)}; {there}. Save the model: "
        "model.save_pretrained(FOLDER)"
    )


_OTHERS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack", ".onnx")


def _names_its_own(config: Path) -> bool:
    """Return whether a config.json names the file of its weights, or cannot be read."""
    try:
        return _names_any(read_json(config), ("transformers_weights",))
    except READ_ERRORS:
        return True


def _loaded_files(folder: Path) -> Sequence[Path]:
    """Return the files of weights that are loaded; ValueError if an index lists others."""
    first = loaded_file(folder)
    if first is None:
        return []
    if suffix_of(first) != ".json":
        _refuse_other_shards(first)
        return [first]
    try:
        shards = shards_of(first)
    except READ_ERRORS as error:
        why = f"no index of shards ({error_line(error)})"
        raise ValueError(f"{first}: {why}. Copy or save it again") from None
    missing = [shard.name for shard in shards if not shard.is_file()]
    if missing:
        verb = agreeing(len(missing), "is", "are")
        raise ValueError(
            f"{first}: {len(missing):,} of the {len(shards):,} shards that it lists {verb} missing "
            f"({first_few(missing)}). Copy them into the folder, or save the model again"
        )
    return shards


def _refuse_other_shards(single: Path) -> None:
    """Raise ValueError if shards are beside a single file of weights, with an index of them all."""
    index = single.with_name(f"{single.name}.index.json")
    try:
        shards = shards_of(index)
    except READ_ERRORS:
        return
    if single in shards or not all(map(Path.is_file, shards)):
        return
    raise ValueError(
        f"{single}: {index.name} lists {counted(len(shards), 'other file')} that are there, too: "
        "transformers loads this one, other programs those. Delete what another save left over"
    )
