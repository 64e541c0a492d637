"""Stand-ins of the lists of wrong expressions by Ref-L4's authors (``…_reviewed.json``)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from vlmeval_findit.benchmarks.findit import FindItQuery


def entry_of(query: FindItQuery, quality: int, number: int = 0) -> dict[str, Any]:
    """Return the entry of a row: one expression, one box as x, y, width, height."""
    x1, y1, x2, y2 = query.truth.boxes[0]
    image = re.findall(r"\d+", query.images[0])[-1]
    return {
        "id": number,
        "caption": query.label,
        "image_id": int(image),
        "bbox": [x1, y1, x2 - x1, y2 - y1],
        "caption_quality": quality,
    }


def entries_of(queries: Mapping[int, Any], errors: Collection[int]) -> list[dict[str, Any]]:
    """Return an entry a row; those of ``errors`` are wrong."""
    return [
        entry_of(query, int(index not in errors), 90_000 + index)
        for index, query in queries.items()
    ]


def write_list(path: Path, entries: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text(json.dumps({"annotation": entries}), encoding="utf-8")
    return path
