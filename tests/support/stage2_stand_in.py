"""Made-up rows of VP-Bench stage 2, of all six sources, in both layouts that the release has."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from enum import Enum
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 160, 120

SOURCES = ("MIA", "SD-100", "emotic", "mapillary_vistas", "see_click", "SGG")

XYXY = ("emotic", "see_click")  # their boxes are two corners here

A_QUESTION = "What is in the <color> <vp>?"

QUESTIONS = {
    "SD-100": "Is the <color> <vp> the same thing in both pictures?",
    "SGG": "How is the <color> <vp> related to the <color> <vp>?",
}


class Layout(Enum):
    """The two layouts of cells in the release."""

    LISTS = "lists"
    JSON = "json"


def picture(number: int, size: tuple[int, int] = (WIDTH, HEIGHT)) -> str:
    """Return a picture in base64: a rectangle on a ground of another colour."""
    image = Image.new("RGB", size, (200, 220 - number % 40, 180))
    ImageDraw.Draw(image).rectangle((40, 30, 90, 80), fill=(number % 250, 120, 90))
    file = BytesIO()
    image.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def boxes_of(source: str, number: int) -> list[list[float]]:
    """Return the boxes of a row, a box for each region, as (x, y, w, h)."""
    first = [60.0, 40.0, 50.0 + number % 3, 50.0]
    return [first, [100.0, 60.0, 40.0, 30.0]] if source in ("SD-100", "SGG") else [first]


def as_written(source: str, box: Sequence[float]) -> list[float]:
    x, y, w, h = box
    return [x, y, x + w, y + h] if source in XYXY else [x, y, w, h]


def triangle(box: Sequence[float]) -> list[list[float]]:
    """Return an outline as the release has it: point pairs."""
    x, y, w, h = box
    return [[x, y + h], [x + w / 2, y], [x + w, y + h]]


def row(source: str, number: int, layout: Layout, **changed: Any) -> dict[str, Any]:
    """Return a row; every third has no answer."""
    in_json = layout is Layout.JSON
    boxes = boxes_of(source, number)
    written = [as_written(source, box) for box in boxes]
    outlines = [[triangle(box)] for box in boxes] if source == "mapillary_vistas" else None
    count = 2 if source == "SD-100" else 1
    files = [f"{source}/{number}_{at}.jpg" for at in range(count)]
    pictures = [picture(10 * number + at) for at in range(count)]
    options = {"A": "a car", "B": "a bus", "C": "a dog", "D": "" if source == "emotic" else "a hat"}
    columns: dict[str, Any] = {
        "meta_source": source,
        "data_file": json.dumps(files) if count > 1 else files[0],
        "question": QUESTIONS.get(source, A_QUESTION),
        **{k: f"{k}. {text}" if in_json and text else text for k, text in options.items()},
        "answer": None if number % 3 == 2 else "ABC"[number % 3],
        "image": pictures,
        "meta_bbox": written,
        "meta_polygon": outlines,
    }
    if in_json:
        roles = ("subject", "object") if source == "SGG" else ("default",) * len(boxes)

        def by_file(values: list[Any]) -> str:
            cell: dict[str, dict[str, Any]] = {}
            for at, (role, value) in enumerate(zip(roles, values, strict=True)):
                cell.setdefault(files[at % count], {})[role] = value
            return json.dumps(cell)

        columns |= {
            "image": json.dumps(dict(zip(files, pictures, strict=True))),
            "meta_bbox": by_file(written),
            "meta_polygon": outlines and by_file(outlines),
        }
    return {**columns, **changed}


def rows(layout: Layout, each: int = 3) -> list[dict[str, Any]]:
    """Rows of all sources."""
    return [row(source, number, layout) for source in SOURCES for number in range(each)]


_TEXT = pa.string()
_SCHEMAS = {
    Layout.LISTS: {
        "image": pa.list_(_TEXT),
        "meta_bbox": pa.list_(pa.list_(pa.float64())),
        "meta_polygon": pa.list_(pa.list_(pa.list_(pa.list_(pa.float64())))),
    },
    Layout.JSON: dict.fromkeys(("image", "meta_bbox", "meta_polygon"), _TEXT),
}
_TEXTS = ("meta_source", "data_file", "question", "A", "B", "C", "D", "answer")


def write_part(folder: Path, number: int, rows: Sequence[dict[str, Any]], layout: Layout) -> Path:
    """Return a part of the release."""
    schema = pa.schema({**dict.fromkeys(_TEXTS, _TEXT), **_SCHEMAS[layout]})
    path = folder / f"vp_bench_stage_2_meta.part{number:04}.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema), path)
    return path
