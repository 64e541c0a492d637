"""Recognise annotations by what lies there: formats, and the layouts in which tools export them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path, PurePath

from ...core import not_there, suffix_of
from ..annotated_samples import AnnotationError
from ..ledger import Ledger
from .annotation_formats import (
    ANNOTATION_FORMATS,
    COCO,
    CREATEML,
    CSV,
    CVAT,
    HF_METADATA,
    HF_PARQUET,
    KITTI,
    LABELME,
    SUPERVISELY,
    VOC,
    YOLO,
    AnnotationFormat,
    Place,
    format_of,
)
from .annotation_values import IMAGE_SUFFIXES, plain_name
from .foreign_formats import name_foreign
from .found_files import files_below, is_of_systems, is_readme
from .glimpse import glimpse
from .splits import chosen_split, listed_splits, names_a_split
from .yolo_data import FILES_OF_SPLITS

_LISTINGS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")
# Formats with a JSON file for each image
_BY_IMAGE = (LABELME, SUPERVISELY)
# Files of an unknown folder that are looked into, to say what it holds
_LOOKED_INTO = 50
# Suffixes of files about a set: README, LICENSE, and the archive that it was in
_ABOUT = ("", ".md", ".txt", ".rst", ".html", ".pdf", ".zip", ".tar", ".gz", ".tgz", ".7z")
# What folders of annotations are called, as plain_name has it: images may be beside one
OF_ANNOTATIONS = frozenset(("annotation", "annotations", "ann", "anns", "labels"))
# Where XML files of VOC are, in folders of any name: Oxford's pets have annotations/xmls/
_XML = ("*.xml", "*/*.xml", "*/*/*.xml")


@dataclass(frozen=True, slots=True)
class Layout:
    """What lies at a path, and where its parts are."""

    format: AnnotationFormat
    path: Path  # What is read
    images: Path  # The folder that image names are relative to
    seen: str  # In words, for the user
    split_is_chosen: bool = False  # By the path: the reader does not choose


def recognise(path: Path, split: str | None, encoding: str | None = None) -> Layout:
    """Return the layout of a file or a folder.

    Args:
        path: what the user named.
        split: what the user says, for folders with a file for each split.
        encoding: of texts, as the user states it.

    Raises:
        AnnotationError: there is nothing, or it is not clear what it is; the message says what
            would be read.
    """
    if path.is_dir():
        return _recognise_folder(path, split, encoding)
    if not path.exists():
        raise AnnotationError(f"{path}: {not_there(path)}")
    if suffix_of(path) in (".yaml", ".yml"):
        images = path.parent / "images"
        return Layout(YOLO, path, images if images.is_dir() else path.parent, YOLO.name)
    form = format_of(path, path)
    placed = _placed_above(path)
    return placed or Layout(form, path, path.parent, form.name)


def _recognise_folder(folder: Path, split: str | None, encoding: str | None) -> Layout:
    if folder.name in ("Annotations", "labels") and not _holds_annotation_folders(folder):
        # One of two formats in a folder
        of_format = _voc if folder.name == "Annotations" else _yolo
        layout = of_format(folder.absolute().parent)
        if layout is not None:
            return layout
    placed = _placed(folder, split) or _placed_above(folder) or _kitti(folder, split, encoding)
    if placed is not None:
        return placed
    layouts = [layout for layout in (_yolo(folder), _voc(folder)) if layout is not None]
    if len(layouts) > 1:
        raise AnnotationError(
            f"{folder} has labels/ (YOLO) and Annotations/ (VOC): name which is meant, "
            f"{folder / 'labels'} or {folder / 'Annotations'}"
        )
    if layouts:
        return layouts[0]
    layout = (
        _supervisely(folder)
        or _parquet(folder)
        or _layout_of_split_file(folder, split)
        or _layout_among_images(folder)
    )
    if layout is None:
        inner = _only_folder(folder)
        if inner is not None:
            layout = _recognise_folder(inner, split, encoding)
            return replace(layout, seen=f"{layout.seen}, in {inner.name}/")
        _name_what_is_inside(folder)
        there = sorted(entry.name for entry in folder.iterdir())
        inside = f"There is {', '.join(there[:8])}" if there else "The folder is empty"
        raise AnnotationError(
            f"{folder}: no annotations that can be read: neither labels/ (YOLO), Annotations/ or "
            "XML files (VOC), *.coco.json or instances_*.json (COCO) nor a .csv file. "
            f"{inside}. Name a file, or --set NAME for a published set"
        )
    return layout


def _only_folder(folder: Path) -> Path | None:
    """Return the folder that is alone in one, beside texts about it: archives unpack so.

    A split that is alone is no such folder.
    """
    there = [path for path in sorted(folder.iterdir()) if not is_of_systems(path)]
    folders = [path for path in there if path.is_dir()]
    others = [path for path in there if path.is_file() and suffix_of(path) not in _ABOUT]
    if len(folders) != 1 or others or names_a_split(folders[0].name):
        return None
    return folders[0]


def _name_what_is_inside(folder: Path) -> None:
    """Raise an AnnotationError where files below a folder have a format that is not read."""
    below = (
        path for path in files_below(folder, Ledger()) if suffix_of(path) not in IMAGE_SUFFIXES
    )
    for path in islice(below, _LOOKED_INTO):
        name_foreign(glimpse(path), folder)


def _holds_annotation_folders(folder: Path) -> bool:
    return any(folder.glob("*/labels")) or (folder / "Annotations").is_dir()


# --- places of formats as they are published ------------------------------------------------------


def _placed(folder: Path, split: str | None) -> Layout | None:
    """Return the layout of a folder in which a format has its places."""
    for form in ANNOTATION_FORMATS:
        for place in form.places:
            there = {
                _name_of_split(place, path, folder): path
                for path in sorted(folder.glob(place.annotations))
                if _is_of(form, path)
            }
            if there:
                has_splits = "*" in place.annotations
                name = chosen_split(folder, list(there), split) if has_splits else ""
                return _layout_at(form, place, there[name], folder, name)
    return None


def _placed_above(path: Path) -> Layout | None:
    """Return the layout of the annotations of a format, which are in their place in a folder."""
    path = path.absolute()
    for form in ANNOTATION_FORMATS:
        for place in form.places:
            depth = len(PurePath(place.annotations).parts)
            if path.match(place.annotations) and _is_of(form, path):
                folder = path.parents[depth - 1]
                return _layout_at(form, place, path, folder, _name_of_split(place, path, folder))
    return None


def _layout_at(
    form: AnnotationFormat, place: Place, path: Path, folder: Path, split: str
) -> Layout:
    images = (folder / name.replace("{split}", split) for name in place.images)
    there = next(filter(Path.is_dir, images), folder)
    seen = f"{form.name}: {path.relative_to(folder).as_posix()}"
    return Layout(form, path, there, seen, bool(split))


def _name_of_split(place: Place, path: Path, folder: Path) -> str:
    """Return what * stands for in a path; "" where the place has none."""
    before, _, behind = place.annotations.partition("*")
    name = path.relative_to(folder).as_posix()
    return name.removeprefix(before).removesuffix(behind) if "*" in place.annotations else ""


def _is_of(form: AnnotationFormat, path: Path) -> bool:
    return _format_of_texts(path) is form if path.is_dir() else form.fits(glimpse(path))


def _format_of_texts(folder: Path) -> AnnotationFormat | None:
    """Return the format of the first text below a folder that is of one."""
    texts = (path for path in sorted(folder.rglob("*.txt")) if not is_readme(path))
    for path in islice(texts, _LOOKED_INTO):
        file = glimpse(path)
        for form in ANNOTATION_FORMATS:
            if form.fits(file):
                return form
    return None


def _has_no_texts(folder: Path) -> bool:
    """Tell whether a folder has files of annotations, and no texts."""
    suffixes = {suffix_of(path) for path in files_below(folder, Ledger())}
    return ".txt" not in suffixes and not suffixes.isdisjoint((*_LISTINGS, ".xml"))


# --- YOLO, VOC, KITTI -----------------------------------------------------------------------------


def _yolo(folder: Path) -> Layout | None:
    labels = folder / "labels"
    if labels.is_dir():
        images = folder / "images"
        there = images if images.is_dir() else folder
        other = _format_of_texts(labels)
        if other is not None:
            return Layout(other, labels, there, f"{other.name}: labels/ and {there.name}/")
        if _has_no_texts(labels):
            return None
        for path in islice(sorted(labels.rglob("*.txt")), _LOOKED_INTO):
            name_foreign(glimpse(path), folder)
        seen = "YOLO: labels/ and images/"
        return Layout(YOLO, folder, there, seen)
    if any(folder.glob("*/labels")):
        return Layout(YOLO, folder, folder, "YOLO: a folder for each split, as Roboflow exports")
    return None


def _voc(folder: Path) -> Layout | None:
    inner = folder / "Annotations"
    if not inner.is_dir() or (_listings(inner) and not any(inner.rglob("*.[xX][mM][lL]"))):
        return None
    _name_other_xml(folder / "Annotations", folder)
    for name in ("JPEGImages", "images", "Images"):
        if (folder / name).is_dir():
            return Layout(VOC, folder, folder / name, f"VOC: Annotations/ and {name}/")
    return Layout(VOC, folder, folder, "VOC: Annotations/, with the images in its folder")


def _kitti(folder: Path, split: str | None, encoding: str | None) -> Layout | None:
    """Return KITTI's label_2/ and image_2/, of the folder or of one of its splits."""
    places = {path.parent.name: path.parent for path in sorted(folder.glob("*/label_2"))}
    is_split = False
    if (folder / "label_2").is_dir():
        place = folder
    elif len(places) == 1 and _lists_split(folder, next(iter(places.values())), encoding):
        (place,) = places.values()
    elif places:
        place = places[chosen_split(folder, list(places), split)]
        is_split = True
    else:
        return None
    images = place / "image_2"
    seen = f"KITTI: {place.name}/label_2 and image_2"
    return Layout(KITTI, place / "label_2", images, seen, is_split)


def _lists_split(folder: Path, place: Path, encoding: str | None) -> bool:
    """Return whether lists say of which split KITTI's images are: the reader chooses then."""
    stems = [path.stem for path in (place / "label_2").iterdir()]
    return bool(listed_splits([folder, place], stems, encoding))


def _name_other_xml(place: Path, asked: Path) -> None:
    """Raise an AnnotationError where the first XML file is of a format that is not read."""
    for path in islice(sorted(place.rglob("*.xml")), 1):
        name_foreign(glimpse(path), asked)


def _supervisely(folder: Path) -> Layout | None:
    """Return the layout of a project: its data sets have ann/ and img/."""
    for pattern in ("*/ann/*.json", "*/*/*/ann/*.json"):  # The second: data sets in data sets
        first = next(folder.glob(pattern), None)
        if first is not None and SUPERVISELY.fits(glimpse(first)):
            return Layout(SUPERVISELY, folder, folder, "Supervisely: ann/ and img/")
    return None


def _parquet(folder: Path) -> Layout | None:
    """Return the layout of a set of the hub: data/test-….parquet, default/test/0000.parquet."""
    for pattern in ("*.parquet", "*/*.parquet", "*/*/*.parquet"):
        if any(folder.glob(pattern)):
            seen = f"Parquet of Hugging Face's hub: {pattern}"
            return Layout(HF_PARQUET, folder, folder, seen)
    return None


# --- folders with a file for each split -----------------------------------------------------------


def _layout_of_split_file(folder: Path, split: str | None) -> Layout | None:
    """Return the layout of a file of a split: Roboflow's, CVAT's, COCO's."""
    for pattern, form, seen in (
        ("*/_annotations.coco.json", COCO, "COCO, as Roboflow exports"),
        ("*/_annotations.csv", CSV, "CSV, as Roboflow exports"),
        ("*/_annotations.createml.json", CREATEML, "CreateML, as Roboflow exports"),
        ("*/metadata.jsonl", HF_METADATA, "Hugging Face's image folder"),
        ("annotations/*-annotations-bbox.csv", CSV, "CSV, as OpenImages has it"),
        ("annotations/instances_*.json", COCO, "COCO: annotations/instances_….json"),
        ("instances_*.json", COCO, "COCO: instances_….json"),
    ):
        files = {_split_of(path): path for path in sorted(folder.glob(pattern))}
        if files:
            name = chosen_split(folder, list(files), split)
            path = files[name]
            return Layout(form, path, _images_of(folder, path, name), f"{seen}, {name}", True)
    single = _listings(folder)
    if not single:
        return _in_folder_of_annotations(folder, split)
    if len(single) == 1:
        form = format_of(single[0], folder)
        path = folder if form in _BY_IMAGE else single[0]
        return Layout(form, path, folder, f"{form.name}: {single[0].name}")
    by_image = _by_image(single)
    if by_image is not None:
        return Layout(by_image, folder, folder, f"{by_image.name}: a JSON file for each image")
    return _chosen_listing(folder, single, folder, split)


def _listings(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if suffix_of(path) in _LISTINGS]


def _in_folder_of_annotations(folder: Path, split: str | None) -> Layout | None:
    """Return the layout of a file in a folder, with images in another one.

    The folder is called annotations or labels, or is the only one that has such files.
    """
    places = {}
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = _listings(place)
        if files and _by_image(files) is None and not _has_images(place):
            places[place] = files
    called = [place for place in places if plain_name(place.name) in OF_ANNOTATIONS]
    is_clear = len(places) == 1 and _only_folder(folder) is None
    for place in called or (places if is_clear else ()):
        return _chosen_listing(folder, places[place], place, split)
    return None


def _has_images(place: Path) -> bool:
    return any(suffix_of(path) in IMAGE_SUFFIXES for path in place.iterdir())


def _chosen_listing(folder: Path, files: Sequence[Path], place: Path, split: str | None) -> Layout:
    """Return the layout of the only file in a place, or of the one of a split.

    Raises an AnnotationError where others than splits have files.
    """
    path = files[0]
    is_split = len(files) > 1
    if is_split:
        by_split = {file.stem: file for file in files if names_a_split(file.stem)}
        if len(by_split) < len(files):
            listed = ", ".join(file.name for file in files[:8])
            raise AnnotationError(f"{place}: which file is meant? There are {listed}")
        path = by_split[chosen_split(place, list(by_split), split)]
    form = format_of(path, folder)
    seen = f"{form.name}: {path.relative_to(folder).as_posix()}"
    return Layout(form, path, _images_of(folder, path, path.stem), seen, is_split)


def _by_image(files: Sequence[Path]) -> AnnotationFormat | None:
    """Return the format of JSON files about an image each, by the first of them."""
    if not files or any(suffix_of(path) != ".json" for path in files):
        return None
    first = glimpse(files[0])
    return next((form for form in _BY_IMAGE if form.fits(first)), None)


def _split_of(path: Path) -> str:
    """Return the split of a file: its folder's name, or what its name says besides the format."""
    if _is_among_images(path):
        return path.parent.name
    return path.stem.removeprefix("instances_").removesuffix("-annotations-bbox")


def _is_among_images(path: Path) -> bool:
    return path.name.startswith("_annotations") or path.name == "metadata.jsonl"


def _images_of(folder: Path, path: Path, split: str) -> Path:
    """Return the folder of the images of a file of COCO's, CVAT's or OpenImages'."""
    if _is_among_images(path):
        return path.parent
    for place in (folder / split, folder / "images" / split, folder / "images"):
        if place.is_dir():
            return place
    return folder


# --- annotations among images ---------------------------------------------------------------------


def _layout_among_images(folder: Path) -> Layout | None:
    for path in sorted(folder.glob("*.xml")):
        if CVAT.fits(glimpse(path)):
            return _cvat(folder)
    by_image = _by_image(sorted(folder.glob("*/*.json")) or sorted(folder.glob("*/*/*.json")))
    if by_image is not None:
        place = _place_of(folder, ".json") if by_image is LABELME else folder
        return Layout(by_image, place, folder, f"{by_image.name}: a JSON file for each image")
    xml = next(chain.from_iterable(sorted(folder.glob(pattern)) for pattern in _XML), None)
    if xml is not None and not CVAT.fits(glimpse(xml)):
        _name_other_xml(folder, folder)
        place = _place_of(folder, ".xml")
        among = "among images" if place == folder else f"in {place.relative_to(folder)}/"
        return Layout(VOC, place, folder, f"VOC: XML files {among}")
    other = _format_of_texts(folder)
    if other is not None:
        return Layout(other, folder, folder, f"{other.name}: texts below the folder")
    for name in FILES_OF_SPLITS:
        if (folder / name).is_file():
            return Layout(YOLO, folder, folder, f"YOLO: {name}")
    if _has_labels(folder):
        _name_what_is_inside(folder)
        return Layout(YOLO, folder, folder, "YOLO: label files among images")
    return None


def _place_of(folder: Path, suffix: str) -> Path:
    """Return the only folder below one that has files of a suffix, if it has no images; else it."""
    files = files_below(folder, Ledger())
    places = {path.parent for path in files if suffix_of(path) == suffix}
    of_images = {path.parent for path in files if suffix_of(path) in IMAGE_SUFFIXES}
    return places.pop() if len(places) == 1 and not places & of_images else folder


def _cvat(folder: Path) -> Layout:
    files = sorted(folder.glob("*.xml"))
    if len(files) > 1:
        listed = ", ".join(path.name for path in files[:8])
        raise AnnotationError(f"{folder}: which file is meant? There are {listed}")
    images = folder / "images" if (folder / "images").is_dir() else folder
    return Layout(CVAT, files[0], images, f"CVAT for images: {files[0].name}")


def _has_labels(folder: Path) -> bool:
    """Return whether a text lies beside an image that it is called like."""
    files = files_below(folder, Ledger())
    images = {path.with_suffix("") for path in files if suffix_of(path) in IMAGE_SUFFIXES}
    return any(suffix_of(path) == ".txt" and path.with_suffix("") in images for path in files)
