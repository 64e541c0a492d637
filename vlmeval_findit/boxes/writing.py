"""Write boxes as a reply that keeps to the prompt, and its JSON schema (inverse of reading)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .representation import CLASS_KEY, PLURAL_KEYS, Corners, ReplyFormat


class BoxToWrite(NamedTuple):
    """A box to write: (x1, y1, x2, y2) in the units of the reply; frames count from 0."""

    box: Corners
    label: str = ""
    frame: int = 0


def write(boxes: Sequence[BoxToWrite], fmt: ReplyFormat, digits: int = 1) -> str:
    """Write boxes, in order, in the requested format; 0 ``digits`` gives whole numbers."""
    # round(n, 0) stays a float, which JSON writes as 120.0.
    places = digits or None
    rows = [
        (box_, [round(n, places) for n in fmt.numbers.from_corners(box_.box)]) for box_ in boxes
    ]
    return _json(rows, fmt) if fmt.output == "json" else _text(rows, fmt, digits)


Rows = Sequence[tuple[BoxToWrite, list[float]]]


def _text(rows: Rows, fmt: ReplyFormat, digits: int) -> str:
    if not rows:
        return "[]"
    lines = []
    for box_, numbers in rows:
        frame = f"{box_.frame + 1}: " if fmt.frames > 1 else ""
        label = f"{box_.label}: " if fmt.multilabel else ""
        lines.append(f"{frame}{label}[{', '.join(f'{n:.{digits}f}' for n in numbers)}]")
    return "\n".join(lines)


def _json(rows: Rows, fmt: ReplyFormat) -> str:
    nested = fmt.structure == "nested"
    key = PLURAL_KEYS.get(fmt.key, fmt.key) if nested else fmt.key
    entries: list[dict[str, object]] = []
    groups: dict[tuple[int, str], list[list[float]]] = {}
    for box_, numbers in rows:
        entry: dict[str, object] = {"frame_idx": box_.frame + 1} if fmt.frames > 1 else {}
        if fmt.multilabel and fmt.key != CLASS_KEY:
            entry["label"] = box_.label
        name = box_.label if fmt.key == CLASS_KEY else key
        group = (box_.frame, box_.label)
        if fmt.structure == "decomposed":
            entries.append({**entry, **dict(zip(fmt.numbers.keys, numbers, strict=True))})
        elif not nested:
            entries.append({**entry, name: numbers})
        elif group in groups:
            groups[group].append(numbers)
        else:
            groups[group] = [numbers]
            entries.append({**entry, name: groups[group]})
    return json.dumps(entries, ensure_ascii=False)


# --- JSON schema for constrained decoding ---------------------------------------------------------

Schema = Mapping[str, Any]

_NUMBER: Schema = {"type": "number"}


def schema_of(fmt: ReplyFormat) -> dict[str, Any]:
    """Return the JSON schema of replies that adhere to a format.

    Raises:
        ValueError: the format is a text format.

    >>> schema_of(ReplyFormat("json", "xyxy", "bbox_2d"))["items"]["required"]
    ['bbox_2d']
    """
    if fmt.output != "json":
        raise ValueError(f"replies in {fmt.output} have no grammar")
    return {"type": "array", "items": _entry(fmt)}


def _entry(fmt: ReplyFormat) -> dict[str, Any]:
    width = fmt.numbers.width
    box = {"type": "array", "items": _NUMBER, "minItems": width, "maxItems": width}
    fields: dict[str, Schema] = {}
    if fmt.frames > 1:
        fields["frame_idx"] = {"type": "integer", "minimum": 0, "maximum": fmt.frames}
    if fmt.multilabel and fmt.key != CLASS_KEY:
        fields["label"] = {"type": "string"}
    if fmt.structure == "decomposed":
        fields |= dict.fromkeys(fmt.numbers.keys, _NUMBER)
        return _object(fields)
    nested = fmt.structure == "nested"
    value = {"type": "array", "items": box} if nested else box
    if fmt.key == CLASS_KEY:
        count = len(fields) + 1
        more = {"additionalProperties": value, "minProperties": count, "maxProperties": count}
        return _object(fields) | more
    return _object({**fields, PLURAL_KEYS[fmt.key] if nested else fmt.key: value})


def _object(fields: Mapping[str, Schema]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }
