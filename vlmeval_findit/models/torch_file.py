"""What a file of ``torch.save`` holds: the names, types and shapes of its tensors, without torch.

Such a file is a pickle, which may name any function to be called.  Here none is: every class and
function is a stand-in, and the numbers of the tensors are not read.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ..core import open_regular

_MOST_PICKLED = 64 << 20  # Bytes of a pickle without the numbers; a large model's has some 5 MB
_BEFORE = 3  # Pickles before the values in the form of torch before 1.6


class StoredTensor(NamedTuple):
    """A tensor of a file; ``dtype`` as safetensors spells it, empty if not known."""

    dtype: str = ""
    shape: tuple[int, ...] = ()


class _Object(dict[Any, Any]):
    """Stands for an object of any class: it takes what a pickle gives it, and does nothing."""

    def __new__(cls, *args: Any, **named: Any) -> _Object:
        return super().__new__(cls)

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__()

    def __call__(self, *args: Any, **named: Any) -> _Object:
        return _Object()

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __setstate__(self, state: Any) -> None: ...

    def append(self, item: Any) -> None: ...

    def extend(self, items: Any) -> None: ...

    def add(self, item: Any) -> None: ...


class _Dict(dict[Any, Any]):
    """Stands for an OrderedDict, which may have attributes (as a state dict has its metadata)."""

    def __setstate__(self, state: Any) -> None: ...


class _Type(NamedTuple):
    """Stands for a type of numbers, or of a storage of them."""

    dtype: str


_TYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "bool": "BOOL",
    "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8",
    "DoubleStorage": "F64", "FloatStorage": "F32", "HalfStorage": "F16", "BFloat16Storage": "BF16",
    "LongStorage": "I64", "IntStorage": "I32", "ShortStorage": "I16", "CharStorage": "I8",
    "ByteStorage": "U8", "BoolStorage": "BOOL",
}  # fmt: skip


def _tensor(storage: Any, offset: Any, size: Any, *rest: Any) -> StoredTensor:
    """Stand for the functions that make a tensor of a storage; newer ones name its type."""
    types = [each for each in (storage, *rest) if isinstance(each, _Type)]
    shape = tuple(size) if isinstance(size, (tuple, list)) else ()
    return StoredTensor(types[-1].dtype if types else "", shape)


def _first(value: Any, *rest: Any) -> Any:
    """Stand for what makes a parameter of a tensor."""
    return value


def _any_tensor(*args: Any) -> StoredTensor:
    return StoredTensor()


class _PickleReader(pickle._Unpickler):
    """Reads a pickle without importing anything.

    The reader in Python keeps a pickle's memory in a dictionary: that in C makes room for as many
    places as a number in the file says.
    """

    def find_class(self, module: str, name: str) -> Any:
        if name == "OrderedDict":
            return _Dict
        if module == "torch" and name in _TYPES:
            return _Type(_TYPES[name])
        if module == "torch._utils" and name.startswith("_rebuild_tensor"):
            return _tensor
        if module == "torch._utils" and name.startswith("_rebuild_parameter"):
            return _first
        if module == "torch._utils" and name.startswith("_rebuild"):
            return _any_tensor  # Sparse, quantized, elsewhere
        return _Object

    def persistent_load(self, pid: Any) -> Any:
        """Return the type of a storage, or a class: ``("storage", type, key, place, …)``."""
        return pid[1]


def read_torch_file(path: Path) -> Any:
    """Return the values of a file with a :class:`StoredTensor` for each tensor; None if unreadable.

    Objects are empty, of a class of this module.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as parts:
                (name,) = (each for each in parts.namelist() if each.endswith("data.pkl"))
                if parts.getinfo(name).file_size > _MOST_PICKLED:
                    return None
                with parts.open(name) as part:
                    return _PickleReader(BytesIO(part.read(_MOST_PICKLED))).load()
        with open_regular(path) as f:
            return _before_zip(f)
    except Exception:  # A pickle may raise anything; who loads the file says what is wrong
        return None


def _before_zip(f: BinaryIO) -> Any:
    for _ in range(_BEFORE):
        _PickleReader(f).load()
    return _PickleReader(f).load()


def tensors_in(values: Any) -> dict[str, StoredTensor]:
    """Return the tensors of a mapping by their names."""
    if not isinstance(values, Mapping):
        return {}
    return {str(name): each for name, each in values.items() if isinstance(each, StoredTensor)}


def wrapped_in(values: Any) -> tuple[str, ...]:
    """Return the keys that lead to the tensors of a file, if most are not at its top.

    >>> wrapped_in({"epoch": 3, "state_dict": {"a.weight": StoredTensor()}})
    ('state_dict',)
    >>> wrapped_in({"a.weight": StoredTensor()})
    ()
    """
    found = [((), len(tensors_in(values))), *_mappings(values, set())]
    keys, _ = max(found, key=lambda each: each[1])  # The first of equally many
    return keys


def _mappings(
    values: Any, seen: set[int], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the keys to each mapping of tensors, and how many it has; each once."""
    if not isinstance(values, dict) or len(above) == 3 or id(values) in seen:
        return
    seen.add(id(values))  # A pickle may name one object a thousand times, in itself too
    for name, each in values.items():
        if count := len(tensors_in(each)):
            yield (*above, str(name)), count
        yield from _mappings(each, seen, (*above, str(name)))


def is_object(values: Any) -> bool:
    """Return whether an object was saved, as a whole model, and not its tensors."""
    return isinstance(values, _Object)
