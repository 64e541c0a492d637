"""Read the header of a safetensors file: the names and places of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..core import open_regular, parse_json

_MOST = 100_000_000  # Bytes; the limit of the format


class SafetensorsHeader(NamedTuple):
    """What a file has before its numbers."""

    values: Mapping[str, Any]
    end: int  # Byte at which the numbers begin


def read_header(path: Path) -> SafetensorsHeader:
    """Read the header of a file.

    Raises:
        ValueError: it is none, or longer than the format allows or the file is.
        OSError: the file cannot be read.
    """
    with open_regular(path) as f:
        length = int.from_bytes(f.read(8), "little")
        if length > min(_MOST, path.stat().st_size):
            raise ValueError(f"its header would have {length:,} bytes")
        values = parse_json(f.read(length))
    if not isinstance(values, dict):
        raise ValueError("its header is no JSON object")
    return SafetensorsHeader(values, 8 + length)
