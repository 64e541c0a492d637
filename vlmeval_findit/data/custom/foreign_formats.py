"""Formats of annotations that are not read: how each is recognised, and the shortest way in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..annotated_samples import AnnotationError
from .glimpse import Glimpse


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """A format that other tools write."""

    name: str
    fits: Callable[[Glimpse], bool]
    way: Callable[[Path], str]  # What to do with a file or folder
    is_read_in_folders: bool = False  # A folder of these files is read


def name_foreign(file: Glimpse, asked: Path) -> None:
    """Raise an AnnotationError that names the format of a file and the way, if it is known here.

    ``asked`` is what the user named: the file, or a folder that it lies in.
    """
    for row in FOREIGN_FORMATS:
        is_part = row.is_read_in_folders and asked != file.path
        if row.fits(file) and not is_part:
            raise AnnotationError(
                f"{file.path}: {row.name} cannot be read as it is. {row.way(asked)}"
            )


# --- ways -----------------------------------------------------------------------------------------


def _query_line(what: str, numbers: str = "", flags: str = "") -> Callable[[Path], str]:
    """Return the way by our JSON lines.

    Args:
        what: the key of a query and its value: '"label": "cup"'.
        numbers: what the numbers of the format are, and what to make of them.
        flags: what to type, if they stay as they are.
    """
    example = f'{{"image": "a.jpg", {what}, "boxes": [[10, 10, 50, 50]]}}'
    then = f"data import FILE.jsonl --name NAME {flags}".strip()
    explained = f" ({numbers})" if numbers else ""
    return lambda path: (
        f"Write a JSON line for each query, {example}{explained}, into a file in the folder of the "
        f"images; then: {then}"
    )


_LABEL = '"label": "cup"'
_EXPRESSION = '"expression": "the red cup"'
_json_line = _query_line(_LABEL)
_expression_line = _query_line(
    _EXPRESSION,
    "Qwen3-VL's numbers are thousandths; without the flag they are pixels of the image file; "
    "Qwen2.5-VL's are pixels of the resized image: convert them",
    "--units thousandths",
)


# Folders of annotations; datumaro wants the folder above
_INNER = ("annotations", "Annotations", "gt")


def _datumaro(form: str) -> Callable[[Path], str]:
    def way(path: Path) -> str:
        folder = path if path.is_dir() else path.parent
        inner = (each for each in (folder, *folder.parents[:1]) if each.name in _INNER)
        folder = next((each.parent for each in inner), folder)
        return (
            "Convert it with datumaro (pip install 'datumaro[cli]', in a separate environment): "
            f"datum convert -i {folder} -if {form} -f coco_instances -o coco -- --save-media; "
            "then: data import coco --name NAME"
        )

    return way


def _to_parquet(path: Path) -> str:
    folder = path if path.is_dir() else path.parent
    return (
        'Write it as Parquet, with datasets (pip install datasets): python -c "from datasets '
        f"import load_from_disk; load_from_disk('{folder}').to_parquet('test.parquet')\"; then: "
        "data import test.parquet --name NAME"
    )


def _name_folder(path: Path) -> str:
    """Say to name the folder of a file, or that above a folder of annotations."""
    folder = path if path.is_dir() else path.parent
    folder = folder.parent if folder.name in _INNER and folder.parent.name else folder
    return f"Name the folder: data import {folder} --name NAME"


def _say(text: str) -> Callable[[Path], str]:
    return lambda path: text.replace("PATH", str(path))


_AS_COCO = "Export it as COCO from there, and say: data import FILE.json --name NAME"


# --- signs ----------------------------------------------------------------------------------------


def _keys(*keys: str, is_list: bool | None = None) -> Callable[[Glimpse], bool]:
    """Return whether the object of JSON, or the first of a list, has all these keys."""

    def fits(file: Glimpse) -> bool:
        return file.has(*keys) and is_list in (None, file.is_list)

    return fits


def _suffixes(*suffixes: str) -> Callable[[Glimpse], bool]:
    return lambda file: file.kind in suffixes


def _texts(pattern: str) -> Callable[[Glimpse], bool]:
    """Return whether a line of a text file is of a pattern, as a whole."""
    compiled = re.compile(pattern)

    def fits(file: Glimpse) -> bool:
        return file.kind == ".txt" and any(compiled.fullmatch(line) for line in file.lines)

    return fits


def _xml(pattern: str) -> Callable[[Glimpse], bool]:
    compiled = re.compile(pattern)
    return lambda file: file.kind == ".xml" and bool(compiled.search("".join(file.lines)))


def _columns(*names: str) -> Callable[[Glimpse], bool]:
    def fits(file: Glimpse) -> bool:
        is_listing = file.kind in (".csv", ".tsv") and bool(file.lines)
        return is_listing and all(name in file.lines[0] for name in names)

    return fits


def _is_conversation(file: Glimpse) -> bool:
    return file.has("conversations") or (file.has("messages") and not file.has("objects"))


def _is_coco_panoptic(file: Glimpse) -> bool:
    return "segments_info" in _first(file.json.get("annotations"))


def _is_coco_captions(file: Glimpse) -> bool:
    first = _first(file.json.get("annotations"))
    return "caption" in first and "bbox" not in first


def _first(values: Any) -> dict[str, Any]:
    if isinstance(values, list) and values and isinstance(values[0], dict):
        first: dict[str, Any] = values[0]
        return first
    return {}


def _is_datumaro(file: Glimpse) -> bool:
    return file.has("items", "categories") and isinstance(file.json["categories"], dict)


def _is_labelbox(file: Glimpse) -> bool:
    return file.has("data_row") or file.has("Labeled Data")


def _is_via3(file: Glimpse) -> bool:
    return file.has("project", "metadata", "attribute") or file.has("project", "view", "file")


def _is_per_image_bdd(file: Glimpse) -> bool:
    return not file.is_list and "objects" in _first(file.json.get("frames"))


def _is_tuning(sign: str) -> Callable[[Glimpse], bool]:
    """Return whether lines for a model have such a sign in their answers."""
    return lambda file: file.has("image", "prefix", "suffix") and sign in str(file.json["suffix"])


def _is_gqa(file: Glimpse) -> bool:
    first = next(iter(file.json.values()), None)
    return not file.is_list and isinstance(first, dict) and isinstance(first.get("objects"), dict)


def _mentions(key: str) -> Callable[[Glimpse], bool]:
    """Return whether the first object has a key somewhere inside."""
    return lambda file: f'"{key}"' in json.dumps(file.json)[:_MENTIONED]


_MENTIONED = 100_000


_NUMBER = r"-?\d+(?:\.\d+)?"
_MOT = rf"\d+,-?\d+(?:,\s*{_NUMBER}){{4,8}}"
_YOLO = rf"\d+(?:\s+{_NUMBER}){{4}}"


# Earlier rows come first: VOTT's files have regions, too.
# Formats by the first sign that fits
FOREIGN_FORMATS = (
    ForeignFormat(
        "a COCO results list (predictions: image_id, category_id, bbox, score)",
        _keys("image_id", "category_id", "score", is_list=True),
        _say(
            "Import is for ground truth: name the instances file that these predictions are about"
        ),
    ),
    ForeignFormat(
        "a list of COCO annotations without images and categories",
        _keys("image_id", "category_id", "bbox", is_list=True),
        _say('Put it into {"images": […], "categories": […], "annotations": […]}'),
    ),
    ForeignFormat(
        "Detectron2's list of images (bbox_mode 0: [x1, y1, x2, y2], 1: [x, y, width, height])",
        lambda file: file.is_list and "category_id" in _first(file.json.get("annotations")),
        _query_line(_LABEL, "of all objects of a category_id"),
    ),
    ForeignFormat(
        "FiftyOne's samples.json",
        lambda file: "filepath" in _first(file.json.get("samples")),
        _say(_AS_COCO),
    ),
    ForeignFormat(
        "COCO panoptic",
        _is_coco_panoptic,
        _say("Name instances_*.json of the same images, or convert it with panopticapi"),
    ),
    ForeignFormat(
        "COCO captions, without boxes",
        _is_coco_captions,
        _say("Name instances_*.json of the same images"),
    ),
    ForeignFormat("datumaro's JSON", _is_datumaro, _datumaro("datumaro")),
    ForeignFormat(
        "Supervisely's meta.json",
        lambda file: file.has("classes", "tags") and file.path.name == "meta.json",
        _say("Name its folder, which has data sets with ann/ and img/"),
    ),
    ForeignFormat("a VIA 3 project", _is_via3, _say(_AS_COCO)),
    ForeignFormat(
        "VIA's CSV",
        _columns("region_shape_attributes"),
        _say("Export the annotations from VIA as JSON, and say: data import FILE.json --name NAME"),
    ),
    ForeignFormat(
        "Label Studio's short JSON (JSON_MIN)",
        lambda file: file.has("annotation_id") and file.has("annotator"),
        _say(
            "Export as JSON or COCO from Label Studio, and say: data import FILE.json --name NAME"
        ),
    ),
    ForeignFormat("Labelbox's export", _is_labelbox, _say(_AS_COCO)),
    ForeignFormat("V7 Darwin's JSON", _keys("item", "annotations"), _say(_AS_COCO)),
    ForeignFormat("VoTT's JSON", _keys("asset", "regions"), _say(_AS_COCO)),
    ForeignFormat("BDD100K's JSON of one image", _is_per_image_bdd, _json_line),
    ForeignFormat("a manifest of Amazon SageMaker", _keys("source-ref"), _json_line),
    ForeignFormat(
        "a data set for Florence-2 (<loc_1>: x1, y1, x2, y2 in thousandths)",
        _is_tuning("<loc_"),
        _query_line(_EXPRESSION, "numbers as they stand", "--units thousandths"),
    ),
    ForeignFormat(
        "a data set for PaliGemma (<loc0001>: y1, x1, y2, x2 in 1/1024)",
        _is_tuning(""),
        _query_line(
            _EXPRESSION, "in the order x1, y1, x2, y2, divided by 1024", "--units fractions"
        ),
    ),
    ForeignFormat(
        "regions of Visual Genome",
        lambda file: file.is_list and "phrase" in _first(file.json.get("regions")),
        _query_line(_EXPRESSION, "of each region its phrase, [x, y, width, height]", "--box sides"),
    ),
    ForeignFormat(
        "objects of Visual Genome",
        lambda file: file.is_list and "names" in _first(file.json.get("objects")),
        _query_line(_LABEL, "of all objects of a name, [x, y, w, h]", "--box sides"),
    ),
    ForeignFormat(
        "scene graphs of GQA",
        _is_gqa,
        _query_line(_LABEL, "of all objects of a name, [x, y, w, h]", "--box sides"),
    ),
    ForeignFormat(
        "SA-1B's JSON of one image, whose masks have no labels",
        lambda file: isinstance(file.json.get("image"), dict) and file.has("annotations"),
        _query_line(_EXPRESSION, "[x, y, w, h], of the masks that you describe", "--box sides"),
    ),
    ForeignFormat(
        "tasks of Scale",
        lambda file: file.has("task_id") and (file.has("response") or file.has("params")),
        _query_line(_LABEL, "[left, top, width, height]", "--box sides"),
    ),
    ForeignFormat(
        "Cityscapes' polygons of one image",
        _keys("imgHeight", "imgWidth", "objects"),
        _query_line(_LABEL, "the boxes around the polygons of a label"),
    ),
    ForeignFormat(
        "JSON lines of Vertex AI",
        _keys("imageGcsUri", "boundingBoxAnnotations"),
        _query_line(_LABEL, "[xMin, yMin, xMax, yMax]", "--units fractions"),
    ),
    ForeignFormat(
        "JSON lines of Azure Machine Learning",
        _keys("image_url", "label"),
        _query_line(_LABEL, "[topX, topY, bottomX, bottomY]", "--units fractions"),
    ),
    ForeignFormat(
        "conversations for training (Qwen-VL, LLaMA-Factory, LLaVA, ms-swift without objects)",
        _is_conversation,
        _expression_line,
    ),
    ForeignFormat(
        "boxes as Gemini answers (box_2d: [y1, x1, y2, x2])", _mentions("box_2d"), _json_line
    ),
    ForeignFormat(
        "boxes as Qwen answers (bbox_2d: [x1, y1, x2, y2])",
        _mentions("bbox_2d"),
        _expression_line,
    ),
    ForeignFormat(
        "MOT's list (frame, id, x, y, width, height …)", _texts(_MOT), _datumaro("mot_seq")
    ),
    ForeignFormat("a label file of YOLO", _texts(_YOLO), _name_folder, is_read_in_folders=True),
    ForeignFormat(
        "LabelMe's XML (MIT)", _xml("<polygon>.*<pt>|<imagesize>"), _datumaro("label_me")
    ),
    ForeignFormat("a file of VOC", _xml("<bndbox>"), _name_folder, is_read_in_folders=True),
    ForeignFormat("an archive", _suffixes(".zip", ".tar", ".gz", ".tgz", ".7z"), _say("Unpack it")),
    ForeignFormat("TFRecord", _suffixes(".tfrecord", ".tfrecords", ".record"), _json_line),
    ForeignFormat("Arrow of datasets' save_to_disk", _suffixes(".arrow"), _to_parquet),
)
