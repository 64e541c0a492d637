"""One small truth in every format that can state it: pictures, things in them, and what is said."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

Corners = tuple[float, float, float, float]


@dataclass(frozen=True)
class Thing:
    """An object: its label, its (x1, y1, x2, y2), and flags by their names."""

    label: str
    box: Corners
    flags: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """An entry about an image."""

    name: str
    things: Sequence[Thing]
    stated: tuple[int, int] | None = None  # (width, height)
    keys: Mapping[str, str] = field(default_factory=dict)  # What else is said of it


def draw(folder: Path, name: str, size: tuple[int, int] = (640, 480), orientation: int = 1) -> Path:
    """Write a black image that EXIF turns as the orientation says."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_black(path.suffix.lower(), size, orientation))
    return path


@cache
def _black(suffix: str, size: tuple[int, int], orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = BytesIO()
    kind = Image.registered_extensions()[suffix]
    Image.fromarray(np.zeros((size[1], size[0], 3), np.uint8)).save(file, kind, exif=exif)
    return file.getvalue()


def _json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def _sides(box: Corners) -> list[float]:
    x1, y1, x2, y2 = box
    return [x1, y1, x2 - x1, y2 - y1]


def _size(picture: Picture) -> dict[str, int]:
    return dict(zip(("width", "height"), picture.stated or (), strict=False))


def coco(folder: Path, pictures: Sequence[Picture]) -> Path:
    labels = sorted({thing.label for picture in pictures for thing in picture.things})
    images = [
        {"id": at, "file_name": picture.name, **_size(picture), **picture.keys}
        for at, picture in enumerate(pictures)
    ]
    things = [
        {
            "image_id": at,
            "category_id": labels.index(thing.label),
            "bbox": _sides(thing.box),
            **thing.flags,
        }
        for at, picture in enumerate(pictures)
        for thing in picture.things
    ]
    classes = [{"id": at, "name": label} for at, label in enumerate(labels)]
    return _json(
        folder / "coco.json", {"images": images, "categories": classes, "annotations": things}
    )


def createml(folder: Path, pictures: Sequence[Picture]) -> Path:
    entries = []
    for picture in pictures:
        things = []
        for thing in picture.things:
            x, y, w, h = _sides(thing.box)
            centre = {"x": x + w / 2, "y": y + h / 2, "width": w, "height": h}
            things.append({"label": thing.label, "coordinates": centre, **thing.flags})
        entries.append({"image": picture.name, "annotations": things, **picture.keys})
    return _json(folder / "createml.json", entries)


def bdd100k(folder: Path, pictures: Sequence[Picture]) -> Path:
    frames = []
    for picture in pictures:
        labels = [
            {
                "category": thing.label,
                "box2d": dict(zip(("x1", "y1", "x2", "y2"), thing.box, strict=True)),
                "attributes": dict(thing.flags),
            }
            for thing in picture.things
        ]
        size = {"size": _size(picture)} if picture.stated else {}
        frames.append({"name": picture.name, "labels": labels, **size, **picture.keys})
    return _json(folder / "bdd.json", frames)


def hf_metadata(folder: Path, pictures: Sequence[Picture]) -> Path:
    path = folder / "metadata.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in _rows_of_hub(pictures)))
    return path


def hf_parquet(folder: Path, pictures: Sequence[Picture]) -> Path:
    """Write metadata.parquet, whose images are files."""
    path = folder / "metadata.parquet"
    pq.write_table(pa.Table.from_pylist(list(_rows_of_hub(pictures))), path)
    return path


def _rows_of_hub(pictures: Sequence[Picture]) -> Iterator[dict[str, Any]]:
    for picture in pictures:
        objects = {
            "bbox": [_sides(thing.box) for thing in picture.things],
            "category": [thing.label for thing in picture.things],
        }
        for flag in {flag for thing in picture.things for flag in thing.flags}:
            objects[flag] = [thing.flags.get(flag) for thing in picture.things]
        yield {"file_name": picture.name, "objects": objects, **_size(picture), **picture.keys}


def via(folder: Path, pictures: Sequence[Picture]) -> Path:
    images = {}
    for at, picture in enumerate(pictures):
        regions = []
        for thing in picture.things:
            names = ("x", "y", "width", "height")
            shape = {"name": "rect", **dict(zip(names, _sides(thing.box), strict=True))}
            regions.append(
                {
                    "shape_attributes": shape,
                    "region_attributes": {"label": thing.label, **thing.flags},
                }
            )
        images[f"{picture.name}{at}"] = {
            "filename": picture.name,
            "regions": regions,
            "file_attributes": {**_size(picture), **picture.keys},
        }
    return _json(folder / "via.json", {"_via_img_metadata": images})


def label_studio(folder: Path, pictures: Sequence[Picture]) -> Path:
    """Write tasks; percent of the stated size, or of 640 x 480."""
    tasks = []
    for picture in pictures:
        width, height = picture.stated or (640, 480)
        regions = []
        for thing in picture.things:
            x, y, w, h = _sides(thing.box)
            value = {"x": 100 * x / width, "y": 100 * y / height}
            value |= {"width": 100 * w / width, "height": 100 * h / height}
            regions.append(
                {
                    "type": "rectanglelabels",
                    "value": {**value, "rectanglelabels": [thing.label]},
                    "original_width": width,
                    "original_height": height,
                    **thing.flags,
                }
            )
        data = {"image": f"/data/local-files/?d={picture.name}", **picture.keys}
        tasks.append({"data": data, "annotations": [{"result": regions}]})
    return _json(folder / "studio.json", tasks)


def cvat(folder: Path, pictures: Sequence[Picture]) -> Path:
    """Write CVAT's XML, which always has a size: 640 x 480 where none is stated."""
    text = "<annotations>"
    for at, picture in enumerate(pictures):
        width, height = picture.stated or (640, 480)
        name = escape(picture.name)
        keys = "".join(f' {key}="{value}"' for key, value in picture.keys.items())
        text += f'<image id="{at}" name="{name}" width="{width}" height="{height}"{keys}>'
        for thing in picture.things:
            x1, y1, x2, y2 = thing.box
            flags = "".join(
                f'<attribute name="{flag}">{str(value).lower()}</attribute>'
                for flag, value in thing.flags.items()
            )
            text += f'<box label="{thing.label}" xtl="{x1}" ytl="{y1}" xbr="{x2}" ybr="{y2}">'
            text += f"{flags}</box>"
        text += "</image>"
    path = folder / "cvat.xml"
    path.write_text(f"{text}</annotations>", encoding="utf-8")
    return path


def labelme(folder: Path, pictures: Sequence[Picture]) -> Path:
    for picture in pictures:
        shapes = [
            {
                "label": thing.label,
                "points": [thing.box[:2], thing.box[2:]],
                "shape_type": "rectangle",
                **thing.flags,
            }
            for thing in picture.things
        ]
        width, height = picture.stated or (None, None)
        image = Path(picture.name)
        path = (folder / image).with_suffix(".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        value = {"shapes": shapes, "imagePath": image.name}
        _json(path, value | {"imageWidth": width, "imageHeight": height, **picture.keys})
    return folder


def voc(folder: Path, pictures: Sequence[Picture]) -> Path:
    for picture in pictures:
        objects = ""
        for thing in picture.things:
            sides = zip(("xmin", "ymin", "xmax", "ymax"), thing.box, strict=True)
            box = "".join(f"<{side}>{number}</{side}>" for side, number in sides)
            flags = "".join(f"<{flag}>{value}</{flag}>" for flag, value in thing.flags.items())
            objects += f"<object><name>{thing.label}</name>{flags}<bndbox>{box}</bndbox></object>"
        width, height = picture.stated or (0, 0)
        size = f"<size><width>{width}</width><height>{height}</height></size>"
        path = (folder / picture.name).with_suffix(".xml")
        path.parent.mkdir(parents=True, exist_ok=True)
        name = escape(Path(picture.name).name)
        path.write_text(f"<annotation><filename>{name}</filename>{size}{objects}</annotation>")
    return folder


def csv_file(folder: Path, pictures: Sequence[Picture]) -> Path:
    return _listing(folder, pictures, ("x1", "y1", "x2", "y2"), list, ",")


def spreadsheet(folder: Path, pictures: Sequence[Picture]) -> Path:
    """Write what spreadsheets of Europe save: semicolons and decimal commas; and sides."""

    def cells(box: Corners) -> list[str]:
        return [str(number).replace(".", ",") for number in _sides(box)]

    return _listing(folder, pictures, ("x", "y", "box_width", "box_height"), cells, ";")


def _listing(
    folder: Path,
    pictures: Sequence[Picture],
    names: Sequence[str],
    cells: Callable[[Corners], Sequence[Any]],
    separator: str,
) -> Path:
    flags = sorted({flag for p in pictures for thing in p.things for flag in thing.flags})
    keys = sorted({key for picture in pictures for key in picture.keys})
    path = folder / "boxes.csv"
    with path.open("w", newline="", encoding="utf-8") as f:
        rows = csv.writer(f, delimiter=separator)
        rows.writerow(["image", "label", *names, "img_w", "img_h", *flags, *keys])
        for picture in pictures:
            for thing in picture.things:
                size = picture.stated or ("", "")
                of_flags = [thing.flags.get(flag, "") for flag in flags]
                of_keys = [picture.keys.get(key, "") for key in keys]
                box = cells(thing.box)
                rows.writerow([picture.name, thing.label, *box, *size, *of_flags, *of_keys])
    return path


def json_lines(folder: Path, pictures: Sequence[Picture]) -> Path:
    lines = []
    for picture in pictures:
        for label in dict.fromkeys(thing.label for thing in picture.things):
            boxes = [thing.box for thing in picture.things if thing.label == label]
            lines.append(json.dumps({"image": picture.name, "label": label, "boxes": boxes}))
    path = folder / "lines.jsonl"
    path.write_text("\n".join(lines))
    return path


def swift(folder: Path, pictures: Sequence[Picture]) -> Path:
    lines = []
    for picture in pictures:
        objects = {
            "ref": [thing.label for thing in picture.things],
            "bbox": [thing.box for thing in picture.things],
        }
        line = {"messages": [], "images": [picture.name], "objects": objects, **_size(picture)}
        lines.append(json.dumps(line))
    path = folder / "swift.jsonl"
    path.write_text("\n".join(lines))
    return path


def _write_beside(image: Path, lines: Sequence[str]) -> None:
    """Write the text file of an image."""
    path = image.with_suffix(".txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))


def dota(folder: Path, pictures: Sequence[Picture]) -> Path:
    """Write label files among the images; labels have no blanks, and flags are not written."""
    for picture in pictures:
        lines = ["imagesource:GoogleEarth", "gsd:0.1"]
        for thing in picture.things:
            x1, y1, x2, y2 = thing.box
            lines.append(f"{x1} {y1} {x2} {y1} {x2} {y2} {x1} {y2} {thing.label} 0")
        _write_beside(folder / picture.name, lines)
    return folder


def kitti(folder: Path, pictures: Sequence[Picture]) -> Path:
    """Write label files among the images; labels have no blanks, and flags are not written."""
    for picture in pictures:
        lines = []
        for thing in picture.things:
            corners = " ".join(map(str, thing.box))
            lines.append(f"{thing.label} 0.00 0 0.0 {corners} 1 1 1 0 0 0 0")
        _write_beside(folder / picture.name, lines)
    return folder


def oidv4(folder: Path, pictures: Sequence[Picture]) -> Path:
    """Write label files into Label/ beside the images; flags are not written."""
    for picture in pictures:
        lines = []
        for thing in picture.things:
            lines.append(f"{thing.label} {' '.join(map(str, thing.box))}")
        image = folder / picture.name
        _write_beside(image.parent / "Label" / image.name, lines)
    return folder


def ultralytics(folder: Path, pictures: Sequence[Picture]) -> Path:
    """Write lines with fractions of the stated size, or of 640 x 480; flags are not written."""
    labels = sorted({thing.label for picture in pictures for thing in picture.things})
    names = {str(at): label for at, label in enumerate(labels)}
    lines = [json.dumps({"type": "dataset", "task": "detect", "class_names": names})]
    for picture in pictures:
        width, height = picture.stated or (640, 480)
        rows = []
        for thing in picture.things:
            x, y, w, h = _sides(thing.box)
            parts = [(x + w / 2) / width, (y + h / 2) / height, w / width, h / height]
            rows.append([labels.index(thing.label), *parts])
        line = {"type": "image", "file": picture.name, **_size(picture), **picture.keys}
        lines.append(json.dumps(line | {"annotations": {"boxes": rows}}))
    path = folder / "set.ndjson"
    path.write_text("\n".join(lines))
    return path


def supervisely(folder: Path, pictures: Sequence[Picture]) -> Path:
    """Write a file beside each image; flags and splits are tags."""
    for picture in pictures:
        things = []
        for thing in picture.things:
            tags = [{"name": flag, "value": value} for flag, value in thing.flags.items()]
            points = {"exterior": [thing.box[:2], thing.box[2:]], "interior": []}
            shape = {"geometryType": "rectangle", "points": points}
            things.append({"classTitle": thing.label, "tags": tags, **shape})
        tags = [{"name": value, "value": None} for value in picture.keys.values()]
        path = folder / f"{picture.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        _json(path, {"size": _size(picture), "tags": tags, "objects": things})
    return folder


def yolo(folder: Path, pictures: Sequence[Picture]) -> Path:
    """Write label files among images of 640 x 480, as fractions; flags are not written."""
    labels = sorted({thing.label for picture in pictures for thing in picture.things})
    (folder / "classes.txt").write_text("\n".join(labels))
    for picture in pictures:
        lines = []
        for thing in picture.things:
            x, y, w, h = _sides(thing.box)
            parts = ((x + w / 2) / 640, (y + h / 2) / 480, w / 640, h / 480)
            lines.append(f"{labels.index(thing.label)} {' '.join(map(str, parts))}")
        _write_beside(folder / picture.name, lines)
    return folder


Writer = Callable[[Path, Sequence[Picture]], Path]

# Formats of objects in which an entry names its image
NAMING: tuple[Writer, ...] = (
    coco,
    createml,
    bdd100k,
    hf_metadata,
    hf_parquet,
    via,
    label_studio,
    cvat,
)
# Formats with a file for each image
FILES: tuple[Writer, ...] = (labelme, voc)
OBJECTS: tuple[Writer, ...] = (*NAMING, *FILES, supervisely, csv_file, spreadsheet)
# Formats that state neither names of images, nor sizes, nor flags (but for their own)
BARE: tuple[Writer, ...] = (dota, kitti, oidv4, yolo)
LINES: tuple[Writer, ...] = (json_lines, swift, ultralytics)
STATING_SIZES: tuple[Writer, ...] = tuple(
    writer for writer in (*OBJECTS, swift, ultralytics) if writer is not createml
)
# Label Studio's numbers are percent, Ultralytics' fractions, and are not asked about
IN_PIXELS: tuple[Writer, ...] = tuple(
    writer for writer in (*OBJECTS, *LINES) if writer not in (label_studio, ultralytics)
)
KEYS_OF_SPLITS: tuple[Writer, ...] = (
    coco,
    createml,
    bdd100k,
    hf_metadata,
    hf_parquet,
    via,
    label_studio,
    labelme,
    supervisely,
    ultralytics,
    csv_file,
)
# Formats that can state a fact, as docs/reference/annotation-formats.md has them; the others say
# nothing of it.
# CVAT's key of a split is ``subset``; DOTA's flag is a column, OIDv4's a word of its own.
FACTS: Mapping[str, tuple[Writer, ...]] = {
    "name of the image": tuple(each for each in (*OBJECTS, *LINES) if each is not supervisely),
    "its size": STATING_SIZES,
    "its split": (*KEYS_OF_SPLITS, cvat),
    "flags": (*OBJECTS, dota, oidv4),
}
TITLES: Mapping[str, Writer] = {
    "COCO": coco,
    "CSV": csv_file,
    "Hugging Face's metadata": hf_metadata,
    "Hugging Face's Parquet": hf_parquet,
    "BDD100K": bdd100k,
    "VIA": via,
    "Label Studio": label_studio,
    "CVAT": cvat,
    "labelme": labelme,
    "CreateML": createml,
    "Pascal VOC": voc,
    "ms-swift": swift,
    "JSON lines": json_lines,
    "DOTA": dota,
    "YOLO": yolo,
    "KITTI": kitti,
    "OIDv4 ToolKit": oidv4,
    "Ultralytics' NDJSON": ultralytics,
    "Supervisely": supervisely,
}
