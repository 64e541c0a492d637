"""Write boxes as a reply that keeps to the prompt, and its JSON schema (inverse of reading)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .representation import CLASS_KEY, PLURAL_KEYS, Corners, ReplyFormat


class Said(NamedTuple):
    """A box to write: (x1, y1, x2, y2) in the units of the reply; frames count from 0."""

    box: Corners
    label: str = ""
    frame: int = 0


def write(boxes: Sequence[Said], how: ReplyFormat, digits: int = 1) -> str:
    """Write boxes, in order, in the requested format; 0 ``digits`` gives whole numbers."""
    # round(n, 0) stays a float, which JSON writes as 120.0.
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


# --- JSON schema for constrained decoding ---------------------------------------------------------

Schema = Mapping[str, Any]

_NUMBER: Schema = {"type": "number"}


def schema_of(how: ReplyFormat) -> dict[str, Any]:
    """Return the JSON schema of replies that adhere to a format.

    Raises:
        ValueError: the format is a text format.

    >>> schema_of(ReplyFormat("json", "xyxy", "bbox_2d"))["items"]["required"]
    ['bbox_2d']
    """
    if how.output != "json":
        raise ValueError(f"replies in {how.output} have no grammar")
    return {"type": "array", "items": _entry(how)}


def _entry(how: ReplyFormat) -> dict[str, Any]:
    box = _numbers(how.numbers.width)
    fields: dict[str, Schema] = {}
    if how.frames > 1:
        fields["frame_idx"] = {"type": "integer", "minimum": 0, "maximum": how.frames}
    if how.multilabel and how.key != CLASS_KEY:
        fields["label"] = {"type": "string"}
    if how.structure == "decomposed":
        fields |= dict.fromkeys(how.numbers.keys, _NUMBER)
        return _object(fields)
    nested = how.structure == "nested"
    value = {"type": "array", "items": box} if nested else box
    if how.key == CLASS_KEY:
        return _keyed_by_label(fields, value)
    return _object({**fields, PLURAL_KEYS[how.key] if nested else how.key: value})


def _numbers(width: int) -> dict[str, Any]:
    return {"type": "array", "items": _NUMBER, "minItems": width, "maxItems": width}


def _object(fields: Mapping[str, Schema]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def _keyed_by_label(fields: Mapping[str, Schema], value: Schema) -> dict[str, Any]:
    count = len(fields) + 1
    closed = _object(fields)
    return {
        **closed,
        "additionalProperties": value,
        "minProperties": count,
        "maxProperties": count,
    }
