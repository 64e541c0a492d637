"""The authors' pairs: ``dataset.json``, an object of {uid: {"left": path, "right": path}}."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.files import file_sha256
from ...core.table_files import TableError, image_path
from . import PREFIX
from .pairs import Pair, Side, write_table

PAIRS = 247  # how many pairs were published: uids 0 to 246, every one of 494 pictures once


@dataclass(frozen=True, slots=True)
class Release:
    """The pairs of a file, and how they differ from those that were published."""

    file: Path
    pairs: tuple[Pair, ...]
    unlike: tuple[str, ...]


def read_release(path: Path) -> Release:
    """Read the authors' file.

    Raises:
        FileNotFoundError: it is not there.
        TableError: it is damaged; the message names file, uid and key.
    """
    try:
        values = json.loads(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path}: {error}") from None
    pairs = pairs_from(values, str(path))
    return Release(path, pairs, tuple(_unlike(pairs)))


def _once(items: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [key for key, count in Counter(key for key, _ in items).items() if count > 1]
    if twice:
        raise ValueError(f"key {twice[0]!r} stands twice in one object")
    return dict(items)


def pairs_from(values: object, where: str) -> tuple[Pair, ...]:
    """Convert the values of such a file to pairs, numbered in its order.

    Raises:
        TableError: they are none; the message names uid and key.
    """
    if not isinstance(values, Mapping) or not values:
        raise TableError(f"{where}: is no object of {{uid: {{left, right}}}}")
    return tuple(
        Pair(index, uid, (_path(where, uid, row, Side.LEFT), _path(where, uid, row, Side.RIGHT)))
        for index, (uid, row) in enumerate(values.items())
    )


def _path(where: str, uid: str, row: object, side: Side) -> str:
    here = f"{where}, uid {uid!r}"
    if not isinstance(row, Mapping):
        raise TableError(f"{here}: {row!r:.40} is no object with the keys left and right")
    if side.value not in row:
        raise TableError(f"{here}: no key {side.value!r}")
    said = row[side.value]
    try:
        if not isinstance(said, str):
            raise ValueError(f"{said!r:.40} is no path")
        image_path(said)
    except ValueError as error:
        raise TableError(f"{here}, key {side.value!r}: {error}") from None
    return said


def _unlike(pairs: tuple[Pair, ...]) -> list[str]:
    found = []
    if len(pairs) != PAIRS:
        found.append(f"{len(pairs)} pairs, published are {PAIRS}")
    elif {pair.uid for pair in pairs} != {str(number) for number in range(PAIRS)}:
        found.append(f"uids are not 0 to {PAIRS - 1}")
    often = [name for name, count in _pictures(pairs).items() if count > 1]
    if often:
        found.append(f"{often[0]} stands in more than one place")
    return found


def _pictures(pairs: tuple[Pair, ...]) -> Counter[str]:
    return Counter(name for pair in pairs for name in pair.images)


def refuse_unlike(release: Release) -> None:
    """Refuse other pairs than were published.

    Raises:
        TableError: the file holds others.
    """
    if release.unlike:
        raise TableError(
            f"{release.file}: {'; '.join(release.unlike)}. Scores on other pairs are not those of "
            "D3 self-retrieval; to make the table all the same: prepare --force"
        )


def prepare(release: Release, out: Path) -> Path:
    """Write the table; its ``.meta.json`` notes differences from the release."""
    origin = {
        "source": release.file.name,
        "source_sha256": file_sha256(release.file),
        "unlike_release": release.unlike,
    }
    return write_table(out, PREFIX, release.pairs, origin)
