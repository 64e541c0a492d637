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
    rounded: list[_RoundedBox] = []
    for item in boxes:
        numbers = [round(n, places) for n in fmt.numbers.from_corners(item.box)]
        rounded.append(_RoundedBox(numbers, item.label, item.frame))
    return _json(rounded, fmt) if fmt.output == "json" else _text(rounded, fmt, digits)


class _RoundedBox(NamedTuple):
    numbers: list[float]  # In the order of the format
    label: str
    frame: int


def _text(boxes: Sequence[_RoundedBox], fmt: ReplyFormat, digits: int) -> str:
    if not boxes:
        return "[]"
    lines = []
    for box in boxes:
        frame = f"{box.frame + 1}: " if fmt.frames > 1 else ""
        label = f"{box.label}: " if fmt.multilabel else ""
        numbers = ", ".join(f"{n:.{digits}f}" for n in box.numbers)
        lines.append(f"{frame}{label}[{numbers}]")
    return "\n".join(lines)


def _json(boxes: Sequence[_RoundedBox], fmt: ReplyFormat) -> str:
    is_nested = fmt.structure == "nested"
    key = PLURAL_KEYS.get(fmt.key, fmt.key) if is_nested else fmt.key
    entries: list[dict[str, object]] = []
    groups: dict[tuple[int, str], list[list[float]]] = {}
    for box in boxes:
        group = groups.get((box.frame, box.label))
        if is_nested and group is not None:
            group.append(box.numbers)
            continue
        entry: dict[str, object] = {}
        if fmt.frames > 1:
            entry["frame_idx"] = box.frame + 1
        if fmt.multilabel and fmt.key != CLASS_KEY:
            entry["label"] = box.label
        name = box.label if fmt.key == CLASS_KEY else key
        if fmt.structure == "decomposed":
            entry.update(zip(fmt.numbers.keys, box.numbers, strict=True))
        elif is_nested:
            group = [box.numbers]
            groups[box.frame, box.label] = group
            entry[name] = group
        else:
            entry[name] = box.numbers
        entries.append(entry)
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
    is_nested = fmt.structure == "nested"
    value = {"type": "array", "items": box} if is_nested else box
    if fmt.key == CLASS_KEY:
        count = len(fields) + 1
        more = {"additionalProperties": value, "minProperties": count, "maxProperties": count}
        return _object(fields) | more
    key = PLURAL_KEYS[fmt.key] if is_nested else fmt.key
    return _object({**fields, key: value})


def _object(fields: Mapping[str, Schema]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }
