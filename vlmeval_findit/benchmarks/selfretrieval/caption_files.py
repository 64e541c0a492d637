"""Captions that others wrote: a file of {uid: {"left": text, "right": text}}.

The keys may be those of a reply too.  Nothing in such a file is an exception: a caption that is not
there or is no text is missing, and a uid of no pair is counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .captions import Captions, Why, captions_of, nothing, read_unrecorded
from .pairs import Side


class CaptionFileError(ValueError):
    """A file that holds no captions; the message names it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The captions of pairs, by uid in the pairs' order, and the uids that are of none of them."""

    captions: Mapping[str, Captions]
    unknown: tuple[str, ...]

    @property
    def missing(self) -> tuple[tuple[str, Side], ...]:
        """The captions that are not there, by uid and picture."""
        return tuple(
            (uid, side)
            for uid, both in self.captions.items()
            for side in Side
            if both.of(side).caption is None
        )


def found_in(values: Mapping[str, Any], uids: Iterable[str]) -> Found:
    """The captions that values of a file have for pairs.

    >>> found = found_in({"1": {"left": "a dog"}, "9": {}}, ["1"])
    >>> found.missing, found.unknown
    ((('1', <Side.RIGHT: 'right'>),), ('9',))
    """
    asked = list(map(str, uids))
    captions = {uid: _captions(values[uid]) if uid in values else _NONE for uid in asked}
    return Found(captions, tuple(uid for uid in values if uid not in captions))


_NONE = nothing(Why.MISSING_KEY)


def _captions(value: object) -> Captions:
    """What stands under a uid: an object of captions, or a reply as a model gave it."""
    if isinstance(value, Mapping):
        return captions_of(value.items())
    return read_unrecorded(value) if isinstance(value, str) else nothing(Why.NOT_TEXT)


def read_values(path: Path) -> dict[str, Any]:
    """The values of a caption file.

    Raises:
        FileNotFoundError: it is not there.
        CaptionFileError: it is no JSON object.
    """
    try:
        values = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise CaptionFileError(f"{path}: no JSON: {error}") from None
    if not isinstance(values, dict):
        raise CaptionFileError(
            f"{path}: is no object of {{uid: {{left, right}}}}. Predictions of a run are scored "
            "without --protocol"
        )
    return values


def refuse_foreign(path: Path, values: Mapping[str, Any], found: Found) -> None:
    """Refuse captions of other pairs altogether.

    Raises:
        CaptionFileError: there are uids, and none is of a pair.
    """
    if values and len(found.unknown) == len(values):
        asked = next(iter(found.captions), None)
        raise CaptionFileError(
            f"{path}: none of its {len(values)} uids is of a pair: "
            f"{found.unknown[0]!r} is not like {asked!r}"
        )
