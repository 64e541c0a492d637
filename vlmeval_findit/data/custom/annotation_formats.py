"""The formats of annotations that are read: one row a format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..annotated_samples import AnnotationError, Samples
from .coco import read_coco
from .crowdhuman import read_crowdhuman
from .csv_boxes import read_csv
from .cvat_xml import read_cvat
from .dota import is_dota, read_dota
from .foreign_formats import name_foreign
from .glimpse import Glimpse, glimpse
from .hf_metadata import read_hf_metadata
from .hf_parquet import read_hf_parquet
from .json_lists import read_bdd100k, read_createml
from .jsonl import read_jsonl
from .kitti import is_kitti, read_kitti
from .label_studio import read_label_studio
from .labelme import read_labelme, read_labelme_inside
from .oidv4 import is_oidv4, read_oidv4
from .reader_options import ReaderOptions
from .supervisely import read_supervisely
from .swift_lines import read_swift
from .ultralytics_ndjson import read_ultralytics_ndjson
from .via import read_via
from .visdrone import is_visdrone, read_visdrone
from .voc import read_voc
from .wider_face import is_wider, read_wider
from .yolo import read_yolo

# Flags of every format of objects: classes, and what their numbers and splits are
_CLASSES = ("ignore_class", "drop_class", "rename_class")
_OBJECTS = ("units", "split", "encoding", "all_classes", *_CLASSES)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the annotations and images of a format lie in a folder, as it is published."""

    annotations: str  # A file, or a folder with one an image; * is the name of a split
    images: tuple[str, ...]  # The first that is there; {split} is that name


@dataclass(frozen=True, slots=True)
class AnnotationFormat:
    """A format of annotations; images stay where they are."""

    name: str  # In messages
    files: str  # In the help, as its meaning
    means: str
    read: Callable[[Path, Path, ReaderOptions], Samples]  # Of a path and the folder of images
    flags: tuple[str, ...]  # Those that it takes of all that are for some formats only
    fits: Callable[[Glimpse], bool]  # Whether a file is of it, by its suffix and what is in it
    # The same as read, with images that lie in the annotations: where no folder has them
    read_inside: Callable[[Path, Path, ReaderOptions], Samples] | None = None
    places: tuple[Place, ...] = ()  # In folders


def _suffix(*suffixes: str) -> Callable[[Glimpse], bool]:
    return lambda file: file.kind in suffixes


def _lines(is_of: Callable[[str], bool]) -> Callable[[Glimpse], bool]:
    """Return whether the first line of a text is of a format."""
    return lambda file: file.kind == ".txt" and any(map(is_of, file.lines[:1]))


def _never(file: Glimpse) -> bool:
    """Say that a format is one of folders."""
    return False


def _is_via(file: Glimpse) -> bool:
    values = file.json.get("_via_img_metadata", file.json)
    first = next(iter(values.values()), None) if isinstance(values, dict) else None
    is_image = isinstance(first, dict) and "filename" in first and "regions" in first
    return is_image or (file.has("_via_img_metadata") and not file.is_list)


def _is_createml(file: Glimpse) -> bool:
    is_image = file.has("image") or file.has("imagefilename")
    return file.is_list and is_image and isinstance(file.json.get("annotations"), list)


def _is_bdd100k(file: Glimpse) -> bool:
    first = file.json
    if not file.is_list:
        frames = file.json.get("frames")
        elements = frames if isinstance(frames, list) else []
        first = next((frame for frame in elements[:1] if isinstance(frame, dict)), {})
    labels = first.get("labels")
    is_frame = "name" in first and "objects" not in first and "labels" in first
    return is_frame and (labels is None or isinstance(labels, list))


def _is_label_studio(file: Glimpse) -> bool:
    is_task = isinstance(file.json.get("data"), dict)
    return file.is_list and is_task and (file.has("annotations") or file.has("completions"))


def _is_swift(file: Glimpse) -> bool:
    """Tell by the first line that has objects: lines of a chat may come first."""
    lines = [file.json] if file.is_list else file.json_lines
    return any("images" in line and isinstance(line.get("objects"), dict | str) for line in lines)


COCO = AnnotationFormat(
    name="COCO",
    files="FILE.json",
    means="COCO: instances with boxes",
    read=read_coco,
    flags=("box", "no_masks", *_OBJECTS),
    fits=_suffix(".json"),
)
JSON_LINES = AnnotationFormat(
    name="JSON lines",
    files="FILE.jsonl",
    means='JSON lines, a query each: {"image": "a.jpg", "expression": "the grey cat", "boxes": '
    "[[1, 2, 30, 40]]}; label, labels, references, images, caption and tags are in "
    "docs/reference/json-lines.md",
    read=read_jsonl,
    flags=("units", "box", "split", "frames", "encoding"),
    fits=_suffix(".jsonl"),
)
CSV = AnnotationFormat(
    name="CSV",
    files="FILE.csv, .tsv",
    means="columns image,label,x1,y1,x2,y2 and, if known, width,height; a box each line; also as "
    "other tools name and order them, with sides, and as spreadsheets save them",
    read=read_csv,
    flags=("box", *_OBJECTS),
    fits=_suffix(".csv", ".tsv"),
)
YOLO = AnnotationFormat(
    name="YOLO",
    files="DIR with labels",
    means="YOLO, with data.yaml or classes.txt; also as Roboflow and labelImg lay it out",
    read=read_yolo,
    flags=_OBJECTS,
    fits=_never,
)
VOC = AnnotationFormat(
    name="VOC",
    files="DIR with XML",
    means="VOC: Annotations/ and JPEGImages/, or XML files among images",
    read=read_voc,
    flags=("voc_from", *_OBJECTS),
    fits=_never,
)
LABELME = AnnotationFormat(
    name="labelme",
    files="DIR with JSON",
    means="labelme: a JSON file for each image",
    read=read_labelme,
    read_inside=read_labelme_inside,
    flags=("no_masks", *_OBJECTS),
    fits=lambda file: not file.is_list and file.has("shapes", "imagePath"),
)
LABEL_STUDIO = AnnotationFormat(
    name="Label Studio's JSON",
    files="FILE.json",
    means="Label Studio: tasks with rectangles, ellipses or polygons",
    read=read_label_studio,
    flags=_OBJECTS,
    fits=_is_label_studio,
)
VIA = AnnotationFormat(
    name="VIA's JSON",
    files="FILE.json",
    means="VGG Image Annotator, version 1 or 2",
    read=read_via,
    flags=_OBJECTS,
    fits=_is_via,
)
CVAT = AnnotationFormat(
    name="CVAT's XML",
    files="FILE.xml",
    means="CVAT for images 1.1",
    read=read_cvat,
    flags=_OBJECTS,
    fits=lambda file: file.kind == ".xml" and "<annotations" in "".join(file.lines),
)
KITTI = AnnotationFormat(
    name="KITTI",
    files="DIR with label_2",
    means="KITTI: label_2/ and image_2/",
    read=read_kitti,
    flags=_OBJECTS,
    fits=_lines(is_kitti),
)
CREATEML = AnnotationFormat(
    name="CreateML",
    files="FILE.json",
    means="CreateML",
    read=read_createml,
    flags=_OBJECTS,
    fits=_is_createml,
)
BDD100K = AnnotationFormat(
    name="BDD100K",
    files="FILE.json",
    means="BDD100K and Scalabel: a list of frames with box2d",
    read=read_bdd100k,
    flags=_OBJECTS,
    fits=_is_bdd100k,
)
HF_METADATA = AnnotationFormat(
    name="Hugging Face's metadata",
    files="metadata.jsonl",
    means="Hugging Face's image folder, with objects",
    read=read_hf_metadata,
    flags=("box", *_OBJECTS),
    fits=lambda file: file.has("file_name", "objects"),
)
HF_PARQUET = AnnotationFormat(
    name="Parquet of Hugging Face's hub",
    files="DIR, FILE.parquet",
    means="a detection set of the hub: Parquet with image and objects",
    read=read_hf_parquet,
    flags=("box", *(flag for flag in _OBJECTS if flag != "encoding")),
    fits=_suffix(".parquet"),
)
SWIFT = AnnotationFormat(
    name="ms-swift",
    files="FILE.jsonl, .json",
    means="ms-swift's grounding lines, with objects: ref and bbox",
    read=read_swift,
    flags=("units", "box", "split", "encoding"),
    fits=_is_swift,
)
VISDRONE = AnnotationFormat(
    name="VisDrone",
    files="DIR with annotations",
    means="VisDrone's images: annotations/ and images/",
    read=read_visdrone,
    flags=_OBJECTS,
    fits=_lines(is_visdrone),
    places=(Place("annotations", ("images",)), Place("*/annotations", ("{split}/images",))),
)
WIDER_FACE = AnnotationFormat(
    name="WIDER FACE",
    files="DIR, FILE.txt",
    means="WIDER FACE: wider_face_split/ and WIDER_val/",
    read=read_wider,
    flags=_OBJECTS,
    fits=lambda file: file.kind == ".txt" and is_wider(file.lines),
    places=(
        Place(
            "wider_face_split/wider_face_*_bbx_gt.txt", ("WIDER_{split}/images", "WIDER_{split}")
        ),
    ),
)
CROWDHUMAN = AnnotationFormat(
    name="CrowdHuman",
    files="FILE.odgt",
    means="CrowdHuman: annotation_val.odgt and Images/, boxes of whole bodies",
    read=read_crowdhuman,
    flags=_OBJECTS,
    fits=lambda file: file.has("ID", "gtboxes"),
    places=(Place("annotation_*.odgt", ("Images", "images", "CrowdHuman_{split}/Images")),),
)
DOTA = AnnotationFormat(
    name="DOTA",
    files="DIR with labelTxt",
    means="DOTA: labelTxt/ and images/",
    read=read_dota,
    flags=_OBJECTS,
    fits=_lines(is_dota),
    places=(
        Place("labelTxt", ("images",)),
        Place("*/labelTxt", ("{split}/images",)),
        Place("*/labelTxt-v1.0/labelTxt", ("{split}/images",)),
    ),
)
OIDV4 = AnnotationFormat(
    name="OIDv4 ToolKit",
    files="DIR with Label",
    means="OIDv4 ToolKit: Label/ in a folder for each class; other texts of class and corners",
    read=read_oidv4,
    flags=("box", *_OBJECTS),
    fits=_lines(is_oidv4),
)
ULTRALYTICS_NDJSON = AnnotationFormat(
    name="Ultralytics' NDJSON",
    files="FILE.ndjson",
    means="Ultralytics' platform: a line an image",
    read=read_ultralytics_ndjson,
    flags=_OBJECTS,
    fits=lambda file: file.json.get("type") == "dataset" and file.has("class_names"),
)
SUPERVISELY = AnnotationFormat(
    name="Supervisely",
    files="DIR with ann",
    means="Supervisely: data sets with ann/ and img/",
    read=read_supervisely,
    flags=("no_masks", *_OBJECTS),
    fits=lambda file: not file.is_list and file.has("size", "objects"),
)
# First those that are told by what is in a file.
ANNOTATION_FORMATS = (
    LABELME,
    LABEL_STUDIO,
    VIA,
    CVAT,
    KITTI,
    VISDRONE,
    WIDER_FACE,
    CROWDHUMAN,
    DOTA,
    OIDV4,
    ULTRALYTICS_NDJSON,
    SUPERVISELY,
    CREATEML,
    BDD100K,
    HF_METADATA,
    HF_PARQUET,
    SWIFT,
    COCO,
    JSON_LINES,
    CSV,
    YOLO,
    VOC,
)


def format_of(path: Path, asked: Path) -> AnnotationFormat:
    """Return the format of a file.

    Raises:
        AnnotationError: it is not read; the message names the format, where it is known, and the
            way. ``asked`` is what the user named: the file, or its folder.
        OSError: it cannot be opened, or is no regular file.
    """
    file = glimpse(path)
    for form in ANNOTATION_FORMATS:
        if form.fits(file):
            # A suffix alone says less than the signs of another format.
            if form in (COCO, JSON_LINES, CSV):
                name_foreign(file, asked)
            return form
    name_foreign(file, asked)
    raise AnnotationError(
        f"{path}: annotations should be .json, .jsonl, .csv, .tsv or .xml (data import "
        "--help lists the formats)"
    )
