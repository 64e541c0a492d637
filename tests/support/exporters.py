"""One small dataset as real tools export it: supervision, globox, Label Studio, labelformat."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Box = tuple[str, tuple[int, int, int, int]]  # Label, and (x1, y1, x2, y2)

LABELS = ["big pump", "valve"]
IMAGES: dict[str, tuple[tuple[int, int], list[Box]]] = {
    # Odd sizes; a name with a blank, an image without objects, one that EXIF turns
    "top.png": ((203, 121), [("valve", (10, 20, 51, 83)), ("big pump", (60, 1, 203, 121))]),
    "b c.png": ((64, 97), [("valve", (1, 1, 64, 97))]),
    "turned.jpg": ((121, 67), [("big pump", (9, 5, 39, 44)), ("big pump", (50, 21, 90, 61))]),
    "empty.png": ((101, 57), []),
}
IN_FOLDERS = {
    "top.png": "top.png",
    "b c.png": "cam 1/b c.png",
    "turned.jpg": "cam2/turned.jpg",
    "empty.png": "cam2/empty.png",
}


def make_pictures(folder: Path, folders: bool = False) -> list[str]:
    """Write the images; the sizes of :data:`IMAGES` are those that a viewer shows."""
    names = []
    for seed, (name, (size, _)) in enumerate(IMAGES.items()):
        place = IN_FOLDERS[name] if folders else name
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        shape = (size[1], size[0], 3)
        pixels = np.random.default_rng(seed).integers(0, 255, shape, dtype=np.uint8)
        image = Image.fromarray(pixels)
        if name == "turned.jpg":
            exif = Image.Exif()
            exif[0x0112] = 3
            image.transpose(Image.Transpose.ROTATE_180).save(path, exif=exif)
        else:
            image.save(path)
        names.append(place)
    return names


def boxes(place: str) -> list[Box]:
    return IMAGES[Path(place).name][1]


def size(place: str) -> tuple[int, int]:
    return IMAGES[Path(place).name][0]


@dataclass(frozen=True)
class Exported:
    """What an exporter wrote."""

    arguments: list[str]  # Of `data import`
    coco: Path  # What the same tool writes as COCO
    folders: bool = False  # Whether names have their folders
    empty: bool = True  # Whether the image without objects is kept


# --- supervision ----------------------------------------------------------------------------------


def _supervision(folder: Path) -> Any:
    import supervision

    make_pictures(folder / "source")
    annotations = {}
    for name, (_, objects) in IMAGES.items():
        corners = np.array([box for _, box in objects], float).reshape(-1, 4)
        classes = np.array([LABELS.index(label) for label, _ in objects], int)
        path = str(folder / "source" / name)
        annotations[path] = supervision.Detections(xyxy=corners, class_id=classes)
    dataset = supervision.DetectionDataset(LABELS, list(annotations), annotations)
    dataset.as_coco(annotations_path=str(folder / "reference.json"))
    return dataset


def supervision_coco(folder: Path) -> Exported:
    _supervision(folder).as_coco(str(folder / "set/images"), str(folder / "set/own.json"))
    arguments = [str(folder / "set/own.json"), "--image-root", str(folder / "source")]
    return Exported(arguments, folder / "reference.json")


def supervision_yolo(folder: Path) -> Exported:
    out = folder / "set"
    _supervision(folder).as_yolo(None, str(out / "labels"), str(out / "data.yaml"))
    shutil.copytree(folder / "source", out / "images")
    return Exported([str(out)], folder / "reference.json")


def supervision_voc(folder: Path) -> Exported:
    out = folder / "set"
    _supervision(folder).as_pascal_voc(None, str(out / "Annotations"))
    shutil.copytree(folder / "source", out / "JPEGImages")
    return Exported([str(out), "--voc-from", "1"], folder / "reference.json")


def supervision_createml(folder: Path) -> Exported:
    _supervision(folder).as_createml(annotations_path=str(folder / "source/createml.json"))
    return Exported([str(folder / "source/createml.json")], folder / "reference.json")


def supervision_labelme(folder: Path) -> Exported:
    _supervision(folder).as_labelme(annotations_directory_path=str(folder / "source"))
    return Exported([str(folder / "source")], folder / "reference.json")


# --- globox ---------------------------------------------------------------------------------------


def _globox(folder: Path) -> Any:
    import globox

    names = make_pictures(folder / "source", folders=True)
    annotations = globox.AnnotationSet()
    for name in names:
        annotation = globox.Annotation(name, size(name))
        for label, (x1, y1, x2, y2) in boxes(name):
            annotation.add(globox.BoundingBox(label=label, xmin=x1, ymin=y1, xmax=x2, ymax=y2))
        annotations.add(annotation)
    annotations.save_coco(folder / "reference.json", auto_ids=True)
    return annotations


def _make_folders(folder: Path) -> None:
    """Make the folders of the images: globox does not."""
    for place in IN_FOLDERS.values():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)


def globox_coco(folder: Path) -> Exported:
    _globox(folder)
    arguments = [str(folder / "reference.json"), "--image-root", str(folder / "source")]
    return Exported(arguments, folder / "reference.json", folders=True)


def globox_yolo(folder: Path) -> Exported:
    out = folder / "set"
    _make_folders(out / "labels")
    _globox(folder).save_yolo_v5(
        out / "labels", label_to_id={label: at for at, label in enumerate(LABELS)}
    )
    shutil.copytree(folder / "source", out / "images")
    (out / "classes.txt").write_text("\n".join(LABELS))
    return Exported([str(out)], folder / "reference.json", folders=True)


def globox_voc(folder: Path) -> Exported:
    out = folder / "set"
    _make_folders(out / "Annotations")
    _globox(folder).save_pascal_voc(out / "Annotations")
    shutil.copytree(folder / "source", out / "JPEGImages")
    return Exported([str(out)], folder / "reference.json", folders=True)


def globox_openimages(folder: Path) -> Exported:
    _globox(folder).save_openimage(folder / "source/boxes.csv")
    arguments = [str(folder / "source/boxes.csv"), "--units", "fractions"]
    return Exported(arguments, folder / "reference.json", folders=True, empty=False)


def globox_cvat(folder: Path) -> Exported:
    _globox(folder).save_cvat(folder / "source/annotations.xml")
    return Exported([str(folder / "source")], folder / "reference.json", folders=True)


def globox_via(folder: Path) -> Exported:
    annotations = _globox(folder)
    annotations.save_via_json(folder / "source/via.json", image_folder=folder / "source")
    arguments = [str(folder / "source/via.json")]
    return Exported(arguments, folder / "reference.json", folders=True)


# --- Label Studio ---------------------------------------------------------------------------------

_CONFIG = """<View><Image name="image" value="$image"/>
<RectangleLabels name="label" toName="image"><Label value="big pump"/><Label value="valve"/>
</RectangleLabels></View>"""


def _label_studio(folder: Path) -> tuple[Any, Path]:
    """Return the converter, and the export in Label Studio's own format."""
    from label_studio_converter import Converter

    datasets = []
    for number, name in enumerate(make_pictures(folder / "source"), 1):
        width, height = size(name)
        result = [
            {
                "id": f"r{at}",
                "type": "rectanglelabels",
                "from_name": "label",
                "to_name": "image",
                "original_width": width,
                "original_height": height,
                "image_rotation": 0,
                "value": {
                    "x": 100 * x1 / width,
                    "y": 100 * y1 / height,
                    "width": 100 * (x2 - x1) / width,
                    "height": 100 * (y2 - y1) / height,
                    "rotation": 0,
                    "rectanglelabels": [label],
                },
            }
            for at, (label, (x1, y1, x2, y2)) in enumerate(boxes(name))
        ]
        annotation = {"id": number, "result": result, "was_cancelled": False, "completed_by": 1}
        url = f"/data/local-files/?d={name.replace(' ', '%20')}"
        datasets.append({"id": number, "data": {"image": url}, "annotations": [annotation]})
    path = folder / "source" / "export.json"
    path.write_text(json.dumps(datasets))
    converter = Converter(_CONFIG, str(folder), download_resources=False)
    converter.convert_to_coco(str(path), str(folder / "coco"), is_dir=False)
    return converter, path


def label_studio_json(folder: Path) -> Exported:
    _, path = _label_studio(folder)
    return Exported([str(path)], folder / "coco/result.json")


def label_studio_coco(folder: Path) -> Exported:
    _label_studio(folder)
    arguments = [str(folder / "coco/result.json"), "--image-root", str(folder / "source")]
    return Exported(arguments, folder / "coco/result.json")


def label_studio_yolo(folder: Path) -> Exported:
    converter, path = _label_studio(folder)
    out = folder / "set"
    converter.convert_to_yolo(str(path), str(out), is_dir=False)
    shutil.rmtree(out / "images", ignore_errors=True)
    shutil.copytree(folder / "source", out / "images", ignore=shutil.ignore_patterns("*.json"))
    return Exported([str(out)], folder / "coco/result.json")


def label_studio_voc(folder: Path) -> Exported:
    converter, path = _label_studio(folder)
    out = folder / "set"
    converter.convert_to_voc(str(path), str(out), is_dir=False)
    shutil.rmtree(out / "images", ignore_errors=True)
    shutil.copytree(folder / "source", out / "images", ignore=shutil.ignore_patterns("*.json"))
    # Its VOC leaves out images without objects (HumanSignal/label-studio#3959).
    return Exported([str(out)], folder / "coco/result.json", empty=False)


# --- labelformat ----------------------------------------------------------------------------------


def _labelformat(folder: Path) -> Any:
    """Return a reader of the COCO file that supervision wrote, and write labelformat's own."""
    from labelformat.formats import COCOObjectDetectionInput, COCOObjectDetectionOutput

    _supervision(folder)
    source = folder / "reference.json"
    own = COCOObjectDetectionOutput(output_file=folder / "labelformat.json")
    own.save(label_input=COCOObjectDetectionInput(input_file=source))
    return COCOObjectDetectionInput(input_file=source)


def labelformat_kitti(folder: Path) -> Exported:
    from labelformat.formats import KittiObjectDetectionOutput

    out = folder / "set/val"
    writer = KittiObjectDetectionOutput(output_folder=out / "label_2")
    writer.save(label_input=_without_blanks(_labelformat(folder)))
    shutil.copytree(folder / "source", out / "image_2")
    arguments = [str(folder / "set"), "--rename-class", "big_pump=big pump"]
    return Exported(arguments, folder / "labelformat.json")


def _without_blanks(reader: Any) -> Any:
    """Rename the class whose name KITTI's lines cannot hold."""
    from labelformat.model.category import Category

    categories = [
        Category(id=each.id, name=each.name.replace(" ", "_")) for each in reader.get_categories()
    ]
    by_id = {each.id: each for each in categories}
    labels = []
    for label in reader.get_labels():
        objects = [
            type(each)(category=by_id[each.category.id], box=each.box) for each in label.objects
        ]
        labels.append(type(label)(image=label.image, objects=objects))
    reader.get_categories = lambda: categories
    reader.get_labels = lambda: labels
    return reader


def labelformat_yolo(folder: Path) -> Exported:
    from labelformat.formats import YOLOv8ObjectDetectionOutput

    out = folder / "set"
    writer = YOLOv8ObjectDetectionOutput(output_file=out / "data.yaml", output_split="val")
    writer.save(label_input=_labelformat(folder))
    place = out / "images" if (out / "labels").is_dir() else out / "val/images"
    shutil.copytree(folder / "source", place, dirs_exist_ok=True)
    return Exported([str(out)], folder / "labelformat.json")


def labelformat_voc(folder: Path) -> Exported:
    from labelformat.formats import PascalVOCObjectDetectionOutput

    writer = PascalVOCObjectDetectionOutput(output_folder=folder / "source")
    writer.save(label_input=_labelformat(folder))
    return Exported([str(folder / "source")], folder / "labelformat.json")


EXPORTERS: tuple[Callable[[Path], Exported], ...] = (
    supervision_coco,
    supervision_yolo,
    supervision_voc,
    supervision_createml,
    supervision_labelme,
    globox_coco,
    globox_yolo,
    globox_voc,
    globox_openimages,
    globox_cvat,
    globox_via,
    label_studio_json,
    label_studio_coco,
    label_studio_yolo,
    label_studio_voc,
    labelformat_kitti,
    labelformat_yolo,
    labelformat_voc,
)
"""Export the dataset into an empty folder."""
