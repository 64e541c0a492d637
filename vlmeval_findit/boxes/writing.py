"""From boxes to a reply: what a model says that keeps to the prompt.

The inverse of :mod:`.reading`, used by the baselines and by the tests that hold the two together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from .reply_format import CLASS_KEY, PLURAL_KEYS, ReplyFormat
from .representation import Corners


class Said(NamedTuple):
    """A box to say: (x1, y1, x2, y2) in the units of the reply; frames count from 0."""

    box: Corners
    label: str = ""
    frame: int = 0


def write(boxes: Sequence[Said], how: ReplyFormat, digits: int = 1) -> str:
    """A reply that says these boxes in the requested format.

    Args:
        boxes: what to say, in order.
        how: the format.
        digits: digits after the decimal point; 0 says whole numbers.
    """
    # round(n, 0) is a float still, and JSON would say 120.0.
    places = digits or None
    rows = [
        (said, [round(n, places) for n in how.numbers.from_corners(said.box)]) for said in boxes
    ]
    return _json(rows, how) if how.output == "json" else _text(rows, how, digits)


Rows = Sequence[tuple[Said, list[float]]]


def _text(rows: Rows, how: ReplyFormat, digits: int) -> str:
    if not rows:
        return "[]"
    lines = []
    for said, numbers in rows:
        frame = f"{said.frame + 1}: " if how.frames > 1 else ""
        label = f"{said.label}: " if how.multilabel else ""
        lines.append(f"{frame}{label}[{', '.join(f'{n:.{digits}f}' for n in numbers)}]")
    return "\n".join(lines)


def _json(rows: Rows, how: ReplyFormat) -> str:
    nested = how.structure == "nested"
    key = PLURAL_KEYS.get(how.key, how.key) if nested else how.key
    entries: list[dict[str, object]] = []
    groups: dict[tuple[int, str], list[list[float]]] = {}
    for said, numbers in rows:
        entry: dict[str, object] = {"frame_idx": said.frame + 1} if how.frames > 1 else {}
        if how.multilabel and how.key != CLASS_KEY:
            entry["label"] = said.label
        if how.structure == "decomposed":
            entry |= dict(zip(how.numbers.keys, numbers, strict=True))
            entries.append(entry)
            continue
        name = said.label if how.key == CLASS_KEY else key
        if not nested:
            entries.append({**entry, name: numbers})
            continue
        group = (said.frame, said.label)
        if group not in groups:
            groups[group] = []
            entries.append({**entry, name: groups[group]})
        groups[group].append(numbers)
    return json.dumps(entries, ensure_ascii=False)
