"""The table of published sets: one row each.

A licence is what is published with the set; the owners' pages decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .importer import Counts, Importer, Part

COCO_LICENCE = "annotations CC BY 4.0, photographs under Flickr's terms of use"


def _by(module: str, function: str = "read") -> Callable[[Path], Sequence[Part]]:
    """A reader of this folder, imported when it is used."""

    def read(folder: Path) -> Sequence[Part]:
        reader: Any = import_module(f".{module}", __package__)
        parts: Sequence[Part] = getattr(reader, function)(folder)
        return parts

    return read


