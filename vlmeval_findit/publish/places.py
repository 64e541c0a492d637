"""The addresses and paths in a dataset's folder, so that somebody can look before they are public.

They are looked for in the files themselves, after everything that takes something out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from .private import changed, places_in


def places_of(folder: Path, files: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Every address and path in the files of a folder, each with those that have it."""
    found: dict[str, dict[str, None]] = {}
    for name in files:
        for text in _texts(folder / name):
            for place in places_in(text):
                found.setdefault(place, {})[name] = None
    return {place: tuple(names) for place, names in sorted(found.items())}


def _texts(path: Path) -> Iterator[str]:
    for value in _values(path):
        texts: list[str] = []

        def noted(text: str, texts: list[str] = texts) -> str:
            texts.append(text)
            return text

        changed(value, noted)
        yield from texts


def _values(path: Path) -> Iterable[Any]:
    """What a file says, in pieces: JSON and Parquet as values, in which no character is escaped."""
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=1000):
                yield from batch.to_pylist()
        return
    with path.open(encoding="utf-8", newline="") as f:
        if path.suffix == ".json":
            yield json.load(f)
        elif path.suffix == ".jsonl":
            yield from map(json.loads, f)
        else:
            yield from f
