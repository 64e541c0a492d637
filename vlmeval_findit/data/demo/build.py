"""Builds the demonstration data: image files on disk and rows in the benchmark's layout.

Everything follows from ``annotations.yaml`` and the photographs of installed packages, so two
builds give the same bytes. The packages are located without being imported (importing
scikit-image only to read one of its PNG files would cost seconds).
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml
from PIL import Image

from ...boxes.representation import Corners
from ...core.files import write_once
from ...core.image_files import from_bytes

Pixels = npt.NDArray[np.uint8]
"""An image: height x width x 3, RGB."""

Box = tuple[float, float, float, float]
"""x1, y1, x2, y2 in pixels; the origin is the image's top left corner."""

SubsetRow = dict[str, Any]
"""One row of a dataset: column name -> value."""

ANNOTATIONS = Path(__file__).with_name("annotations.yaml")


@dataclass(frozen=True)
class Photo:
    """A photograph inside an installed package.

    ``package`` is the import name, ``pip`` the name under which pip installs it, ``path`` the
    file's path inside the package, ``width`` and ``height`` are in pixels.
    """

    name: str
    package: str
    path: str
    pip: str
    width: int
    height: int
    sha256: str
    licence: str
    credit: str


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


def load_photos(annotations: Mapping[str, Any]) -> dict[str, Photo]:
    """The ``photos`` section of the annotations: name -> photograph."""
    return {name: Photo(name=name, **entry) for name, entry in annotations["photos"].items()}


def locate_photo(photo: Photo) -> Path:
    """Find the photograph's file without importing its package.

    Raises:
        FileNotFoundError: the package is not installed, or ships no such file.
    """
    spec = importlib.util.find_spec(photo.package)
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    for folder in folders:
        path = Path(folder) / photo.path
        if path.is_file():
            return path
    found = "has no such file" if folders else "is not installed"
    raise FileNotFoundError(
        f"photo {photo.name!r} is {photo.path} of the package {photo.package!r}, which {found}; "
        f"run: pip install {photo.pip}"
    )


def read_photo(photo: Photo) -> Pixels:
    """Read a photograph: height x width x 3, uint8, RGB (grey ones have three equal channels).

    Raises:
        FileNotFoundError: the package or the file is missing.
        ValueError: the file is not the one that was annotated (its SHA-256 differs).
    """
    data = locate_photo(photo).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != photo.sha256:
        raise ValueError(
            f"photo {photo.name!r}: {photo.path} of the package {photo.package!r} has the sha256 "
            f"{digest}, but {photo.sha256} was annotated; try: pip install --upgrade {photo.pip}"
        )
    return np.asarray(from_bytes(data))


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


def encode_png(pixels: Pixels) -> bytes:
    """Encode height x width x 3 uint8 RGB pixels as PNG, without anything that varies."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


def slug(text: str) -> str:
    """A label as part of a file name: 'rear wheel' -> 'rear-wheel'."""
    return "-".join(text.lower().split())


class DemoBuilder:
    """Writes the images of one demonstration folder and makes the rows that point to them."""

    def __init__(self, folder: Path, annotations: Mapping[str, Any]) -> None:
        self._folder = folder
        self._annotations = annotations
        self._photos = load_photos(annotations)
        self._pixels: dict[str, Pixels] = {}
        self._written: set[str] = set()

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
        """A scene, the box of one object in it, and pictures of that object per row."""
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
        pixels = self._photo_pixels(entry["photo"])
        windows = window_path(entry["size"], entry["start"], entry["end"], entry["frames"])
        stem = f"videos/{index:02d}-{entry['photo']}-{slug(entry['label'])}"
        frame_paths = [
            self._write(
                f"{stem}/{frame:03d}.png",
                pixels[view.y : view.y + view.height, view.x : view.x + view.width],
            )
            for frame, view in enumerate(windows)
        ]
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
            "filename": self._write(f"photos/{name}.png", self._photo_pixels(name)),
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
        path = self._write(f"photos/{name}.png", self._photo_pixels(name))
        return path, as_box(support["box"], self._photos[name])

    def _write_support(self, relative: str, support: Mapping[str, Any]) -> str:
        box = as_box(support["box"], self._photos[support["photo"]])
        x1, y1, x2, y2 = (round(value) for value in box)
        crop = Image.fromarray(self._photo_pixels(support["photo"])[y1:y2, x1:x2])
        size = (round(crop.width * support["scale"]), round(crop.height * support["scale"]))
        return self._write(relative, np.asarray(crop.resize(size, Image.Resampling.BICUBIC)))

    def _photo_pixels(self, name: str) -> Pixels:
        if name not in self._pixels:
            self._pixels[name] = read_photo(self._photos[name])
        return self._pixels[name]

    def _write(self, relative: str, pixels: Pixels) -> str:
        path = self._folder / PurePosixPath(relative)
        # Many rows share one photograph: it is encoded once per builder.
        if relative not in self._written:
            write_once(path, encode_png(pixels))
            self._written.add(relative)
        return relative


def build_demo(folder: Path) -> dict[str, list[SubsetRow]]:
    """Write the demonstration's images below ``folder`` and return its rows.

    The result has the keys "Demo" (detection of one label), "Demo_multilabel", "Demo_refexp"
    (expressions that mean one object), "Demo_described" (expressions that mean any number of
    objects, also none), "Demo_insdet" (find the object of the support crops) and "Demo_video".

    Every row has ``filename`` (relative to ``folder``; for a video the folder of its frames),
    ``label``, ``height`` and ``width`` in pixels (for a video those of a frame), and ``bboxes``:
    a list of [x1, y1, x2, y2] in pixels; for "Demo_multilabel" a list of
    ``{"label": ..., "bbox": [x1, y1, x2, y2]}``; for "Demo_video" one list of boxes per frame.
    "Demo_insdet" adds ``support_shots`` (relative paths), "Demo_video" adds ``frame_paths``
    (relative paths) and ``frame_indices``.

    Building again is cheap and changes nothing; several processes may build at once.

    Raises:
        FileNotFoundError: a package that ships a photograph is not installed.
        ValueError: a package ships another version of a photograph, or a box is invalid.
    """
    builder = DemoBuilder(folder, load_annotations())
    return {
        "Demo": builder.detection(),
        "Demo_multilabel": builder.detection_multilabel(),
        "Demo_refexp": builder.referring(),
        "Demo_described": builder.described(),
        "Demo_insdet": builder.instance(),
        "Demo_video": builder.video(),
    }
