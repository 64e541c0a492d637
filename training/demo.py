"""Makes the tables of the demonstration of hand-made annotations: python -m training.demo

Everything follows from ``demo.yaml``; two builds give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from vlmeval_findit.benchmarks.findit.annotation_tables import write_table
from vlmeval_findit.benchmarks.findit.release_subsets import query_from_row
from vlmeval_findit.boxes.representation import Corners
from vlmeval_findit.core.table_files import meta_path
from vlmeval_findit.data.demo.photos import PARTS, SHIPPED, Photo, demo_tables, photos

Box = tuple[float, float, float, float]
"""x1, y1, x2, y2 in pixels; the origin is the image's top left corner."""

SubsetRow = dict[str, Any]
"""One row of a dataset: column name -> value."""

ANNOTATIONS = Path(__file__).with_name("demo.yaml")

Part = tuple[str, tuple[int, int, int, int], tuple[int, int]]
"""A photograph's name, corners in its pixels, and the (width, height) of the image made of it."""


@dataclass(frozen=True)
class Window:
    """The part [x, x + width) x [y, y + height) of a photograph, in its pixels."""

    x: int
    y: int
    width: int
    height: int


def load_annotations(path: Path = ANNOTATIONS) -> dict[str, Any]:
    """Parse the annotation file; the keys are its sections."""
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def as_box(raw: Sequence[float], photo: Photo) -> Box:
    """Check an annotated [x1, y1, x2, y2] against its photograph and return it as floats.

    Raises:
        ValueError: the box is empty or leaves the photograph.
    """
    x1, y1, x2, y2 = (float(value) for value in raw)
    if not (0 <= x1 < x2 <= photo.width and 0 <= y1 < y2 <= photo.height):
        raise ValueError(
            f"box {list(raw)} does not lie inside photo {photo.name!r} "
            f"of {photo.width} x {photo.height} pixels"
        )
    return x1, y1, x2, y2


def visible_part(box: Box, window: Window, least: float) -> Box | None:
    """The part of a box that a window shows, in pixels from the window's corner.

    None when less than the fraction ``least`` of the box's area is inside the window.
    """
    x1, y1 = max(box[0], float(window.x)), max(box[1], float(window.y))
    x2 = min(box[2], float(window.x + window.width))
    y2 = min(box[3], float(window.y + window.height))
    if x2 <= x1 or y2 <= y1:
        return None
    area = (box[2] - box[0]) * (box[3] - box[1])
    if (x2 - x1) * (y2 - y1) < least * area:
        return None
    return x1 - window.x, y1 - window.y, x2 - window.x, y2 - window.y


def window_path(
    size: Sequence[int], start: Sequence[int], end: Sequence[int], frames: int
) -> list[Window]:
    """The windows of a video: corners from ``start`` to ``end`` in equal steps, whole pixels.

    ``size`` is (width, height), ``start`` and ``end`` are (x, y). At least two frames.
    """
    steps = [frame / (frames - 1) for frame in range(frames)]
    return [
        Window(
            x=round(start[0] + step * (end[0] - start[0])),
            y=round(start[1] + step * (end[1] - start[1])),
            width=size[0],
            height=size[1],
        )
        for step in steps
    ]


def slug(text: str) -> str:
    """A label as part of a file name: 'rear wheel' -> 'rear-wheel'."""
    return "-".join(text.lower().split())


class DemoBuilder:
    """Makes rows, and notes what the images are that they name."""

    def __init__(self, annotations: Mapping[str, Any]) -> None:
        self._annotations = annotations
        self._photos = photos()
        self.parts: dict[str, Part] = {}

    def detection(self) -> list[SubsetRow]:
        """One label and all of its boxes per row."""
        return [
            self._image_row(entry["photo"], entry["label"], entry["boxes"])
            for entry in self._annotations["detection"]
        ]

    def referring(self) -> list[SubsetRow]:
        """One expression and its only box per row."""
        return [
            self._image_row(entry["photo"], entry["expression"], [entry["box"]])
            for entry in self._annotations["referring"]
        ]

    def described(self) -> list[SubsetRow]:
        """One expression and its boxes, possibly none, per row."""
        return [
            self._image_row(entry["photo"], entry["expression"], entry["boxes"])
            for entry in self._annotations["described"]
        ]

    def detection_multilabel(self) -> list[SubsetRow]:
        """Several labels per row; each box comes with its label."""
        rows = []
        for entry in self._annotations["detection_multilabel"]:
            labels = sorted(entry["boxes"])
            row = self._image_row(entry["photo"], ", ".join(labels), [])
            row["bboxes"] = [
                {"label": label, "bbox": box}
                for label in labels
                for box in self._boxes(entry["photo"], entry["boxes"][label])
            ]
            rows.append(row)
        return rows

    def instance(self) -> list[SubsetRow]:
        """A scene, the box of one object in it, and images of that object per row."""
        rows = []
        for index, entry in enumerate(self._annotations["instance"]):
            row = self._image_row(entry["photo"], entry["label"], [entry["box"]])
            stem = f"supports/{index:02d}-{slug(entry['label'])}"
            row["support_shots"] = [
                self._write_support(f"{stem}-{shot}.png", support)
                for shot, support in enumerate(entry["supports"])
            ]
            row["sightings"] = [self._sighting(support) for support in entry["supports"]]
            rows.append(row)
        return rows

    def video(self) -> list[SubsetRow]:
        """The frames of a gliding window and one list of boxes per frame, per row."""
        return [
            self._video_row(index, entry) for index, entry in enumerate(self._annotations["video"])
        ]

    def _video_row(self, index: int, entry: Mapping[str, Any]) -> SubsetRow:
        windows = window_path(entry["size"], entry["start"], entry["end"], entry["frames"])
        stem = f"videos/{index:02d}-{entry['photo']}-{slug(entry['label'])}"
        frame_paths = [f"{stem}/{frame:03d}.png" for frame in range(len(windows))]
        for path, view in zip(frame_paths, windows, strict=True):
            corners = (view.x, view.y, view.x + view.width, view.y + view.height)
            self.parts[path] = (entry["photo"], corners, (view.width, view.height))
        boxes = [as_box(raw, self._photos[entry["photo"]]) for raw in entry["boxes"]]
        parts = [[visible_part(box, view, entry["visible"]) for box in boxes] for view in windows]
        return {
            "filename": stem,
            "label": entry["label"],
            "bboxes": [[list(part) for part in frame if part is not None] for frame in parts],
            "height": entry["size"][1],
            "width": entry["size"][0],
            "frame_paths": frame_paths,
            "frame_indices": list(range(len(windows))),
        }

    def _image_row(self, name: str, label: str, boxes: Sequence[Sequence[float]]) -> SubsetRow:
        photo = self._photos[name]
        return {
            "filename": f"photos/{name}.png",
            "label": label,
            "bboxes": self._boxes(name, boxes),
            "height": photo.height,
            "width": photo.width,
        }

    def _boxes(self, name: str, raw: Sequence[Sequence[float]]) -> list[list[float]]:
        return [list(as_box(box, self._photos[name])) for box in raw]

    def _sighting(self, support: Mapping[str, Any]) -> tuple[str, Corners]:
        """The photograph that a support was cut out of, and where."""
        name = support["photo"]
        return f"photos/{name}.png", as_box(support["box"], self._photos[name])

    def _write_support(self, relative: str, support: Mapping[str, Any]) -> str:
        box = as_box(support["box"], self._photos[support["photo"]])
        x1, y1, x2, y2 = (round(value) for value in box)
        size = (round((x2 - x1) * support["scale"]), round((y2 - y1) * support["scale"]))
        self.parts[relative] = (support["photo"], (x1, y1, x2, y2), size)
        return relative


def build_demo() -> tuple[dict[str, list[SubsetRow]], dict[str, Part]]:
    """The demonstration's rows by table, in the layout of the benchmark's release, and the parts of
    photographs that their images are.

    Rows have ``filename`` (for a video the folder of its frames), ``label``, ``height`` and
    ``width`` in pixels, and ``bboxes``: [x1, y1, x2, y2] in pixels; with a label each for several;
    a list a frame for videos.

    Raises:
        ValueError: a box is invalid.
    """
    builder = DemoBuilder(load_annotations())
    rows = {
        "Demo": builder.detection(),
        "Demo_multilabel": builder.detection_multilabel(),
        "Demo_refexp": builder.referring(),
        "Demo_described": builder.described(),
        "Demo_insdet": builder.instance(),
        "Demo_video": builder.video(),
    }
    return rows, builder.parts


def ship(folder: Path) -> None:
    """Write the tables and the list of parts into a folder."""
    rows, parts = build_demo()
    for dataset, multilabel in demo_tables():
        name = dataset.table_name(multilabel)
        queries = [
            query_from_row(i, row, dataset, multilabel, name) for i, row in enumerate(rows[name])
        ]
        meta_path(write_table(folder, name, queries, {}).path).unlink()
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(part)}" for name, part in parts.items())
    (folder / PARTS.name).write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    ship(SHIPPED)
