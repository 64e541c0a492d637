"""Find the folder of the images where it is not that of the annotations: beside or above them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...core import RARE_COLLECTIONS, suffix_of, unsafe_name
from ..annotated_samples import AnnotationError, Samples
from ..ledger import Ledger
from .annotation_values import IMAGE_SUFFIXES, plain_name
from .image_names import ImageNames
from .layouts import OF_ANNOTATIONS, Layout
from .reader_options import ReaderOptions
from .splits import kind_of_split, names_a_split

# What folders of images are called, as plain_name has it; those of splits, too
_OF_IMAGES = frozenset(
    ("data", "default", "frames", "image", "images", "img", "imgs", "jpegimages", "jpg", "photos")
)
# Levels below a folder that is called like one of images: images/100k/val
_DEPTH = 2
# Folders that are looked into; where there are more, none is taken
_LOOKED_INTO = 1000


@RARE_COLLECTIONS
def read_layout(layout: Layout, options: ReaderOptions, image_root: Path | None = None) -> Samples:
    """Read annotations, with their images in the folder of the layout or another one.

    Without ``image_root``, where the layout's folder does not have all images, the folders in that
    of the annotations, then those beside it are tried. One that has all is taken, and noted. Else
    the images may lie in the annotations.

    Raises an AnnotationError if several have all, or for what the reader refuses.
    """
    samples = layout.format.read(layout.path, image_root or layout.images, options)
    if image_root is not None or not isinstance(samples.images, Path) or _has_all(samples):
        return samples
    quiet = replace(options, progress=lambda what, count: None)
    for place in _places(layout):
        fits = list(_samples_in(place, layout, samples, quiet))
        if len(fits) > 1:
            flags = " or ".join(f"--image-root {fit.images}" for fit in fits)
            raise AnnotationError(
                f"{layout.path}: several folders have all the images. Which is meant? Type {flags}"
            )
        if fits:
            (fit,) = fits
            names = _names(fit)
            fit.ledger.note(f"images: in {fit.images}", names[0], len(names))
            return fit
    if layout.format.read_inside is not None:
        with suppress(AnnotationError):  # Not all lie in the annotations
            return layout.format.read_inside(layout.path, layout.images, options)
    return samples


def _names(samples: Samples) -> list[str]:
    """Return the names of the images of all queries."""
    names: dict[str, None] = {}
    for query in samples.queries:
        names.update(dict.fromkeys((*query.images, *query.support)))
    return list(names)


def _has_all(samples: Samples) -> bool:
    return all(_is_in(samples.images, name) for name in _names(samples))


def _is_in(folder: object, name: str) -> bool:
    return isinstance(folder, Path) and not unsafe_name(name) and (folder / name).is_file()


def _places(layout: Layout) -> list[Path]:
    """Return the folders in which that of the images may lie, the nearest first."""
    path = layout.path.absolute()
    own = path if path.is_dir() else path.parent
    places = [own, own.parent]
    if plain_name(own.parent.name) in OF_ANNOTATIONS:
        places.append(own.parent.parent)
    return places


def _samples_in(
    place: Path, layout: Layout, missed: Samples, options: ReaderOptions
) -> Iterator[Samples]:
    """Yield what is read with each folder in a place that has all images.

    Two folders that have the same files, one in the other, are one; folders of another split than
    that of the annotations are none.
    """
    seen: set[frozenset[Path]] = set()
    for folder in _of_split(_candidates(place, layout.path), place, layout.path):
        # Large files are not read again for each folder.
        if layout.path.is_file() and not _may_be_in(folder, missed):
            continue
        samples = _read_or_none(layout, folder, options)
        if samples is None or not _has_all(samples):
            continue
        files = frozenset((folder / name).resolve() for name in _names(samples))
        if files not in seen:
            seen.add(files)
            yield samples


def _read_or_none(layout: Layout, folder: Path, options: ReaderOptions) -> Samples | None:
    """Return what is read; None where the images of a folder do not suit the annotations."""
    try:
        return layout.format.read(layout.path, folder, options)
    except AnnotationError:
        return None


def _may_be_in(folder: Path, samples: Samples) -> bool:
    """Tell whether a folder has the first image that is named."""
    names = ImageNames(folder, Ledger())
    first = _names(samples)[:1]
    return all(_is_in(folder, _found_name(names, name)) for name in first)


def _found_name(names: ImageNames, name: str) -> str:
    try:
        return names.find(name, "")
    except AnnotationError:
        return name


def _of_split(folders: Sequence[Path], place: Path, annotations: Path) -> list[Path]:
    """Return the folders that are not called like another split than the annotations."""
    kind = kind_of_split(annotations.stem)
    if kind is None:
        return list(folders)
    kept = []
    for folder in folders:
        kinds = {kind_of_split(part) for part in folder.relative_to(place).parts}
        if not kinds - {None, kind}:
            kept.append(folder)
    return kept


def _candidates(place: Path, annotations: Path) -> list[Path]:
    """Return a place, its folders, and those below the ones that are called like images."""
    folders = [place]
    for folder in _folders_in(place):
        if _is_of_images(folder):
            folders += _below(folder, _DEPTH)
        elif folder not in annotations.absolute().parents and not _has_annotations(folder):
            folders.append(folder)
        if len(folders) > _LOOKED_INTO:
            return []
    return folders


def _below(folder: Path, depth: int) -> list[Path]:
    folders = [folder]
    for inner in _folders_in(folder) if depth else ():
        folders += _below(inner, depth - 1)
        if len(folders) > _LOOKED_INTO:
            break
    return folders


def _folders_in(place: Path) -> list[Path]:
    try:
        there = sorted(place.iterdir())
    except PermissionError:
        return []
    return [path for path in there if not path.name.startswith(".") and path.is_dir()]


def _is_of_images(folder: Path) -> bool:
    return plain_name(folder.name) in _OF_IMAGES or names_a_split(folder.name)


def _has_annotations(folder: Path) -> bool:
    """Tell whether a folder of any name has other files than images: a set of its own."""
    try:
        there = sorted(folder.iterdir())
    except PermissionError:
        return True
    return any(path.is_file() and suffix_of(path) not in IMAGE_SUFFIXES for path in there)
