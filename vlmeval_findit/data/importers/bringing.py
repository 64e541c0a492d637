"""Datasets made of a published set: read, held against what is known of it, built."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path

from ...core.lock import Lock
from ...core.places import lmu_data_root
from ...core.spelling import nearest
from ..own.annotations import AnnotationError
from ..own.build import Built, build_asked
from ..own.checks import check_name
from ..own.exif import Drawn
from .importer import Content, Importer, Part, unlike
from .shards import Embedded
from .table import IMPORTERS


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be made of a set.

    ``name`` is what it is to be called (None: as its row), ``only`` the parts that are asked for
    (None: all that there are), ``partial`` whether it may be other than published, ``replace``
    whether datasets of one's own of these names may be replaced.  ``drawn`` says on which pictures
    boxes were drawn, where a viewer turns them.
    """

    folder: Path
    name: str | None = None
    only: Sequence[str] | None = None
    partial: bool = False
    replace: bool = False
    drawn: Drawn | None = None


@dataclass(frozen=True, slots=True)
class Brought:
    """A dataset that was made; ``unlike`` says how it is not as published, ``without_query`` how
    many of its pictures no query shows.
    """

    dataset: str
    built: Built
    images: Path
    unlike: tuple[str, ...]
    without_query: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A dataset that could not be made."""

    dataset: str
    why: str


def bring(row: Importer, wanted: Wanted) -> Iterator[Brought | Refused]:
    """Make the datasets of a set, one after the other.

    Of a set with many parts, one that cannot be used keeps none of the others from being made.

    Raises:
        AnnotationError: the folder does not hold the set, or not all of its parts, or a part is
            asked for that there is not; or it has one part only, and that cannot be used.
    """
    for part in _parts(row, wanted):
        name = row.dataset(part.name, wanted.name)
        try:
            yield _bring(row, part, name, wanted)
        except AnnotationError as error:
            if row.datasets == 1:
                raise
            yield Refused(name, str(error))


def _parts(row: Importer, wanted: Wanted) -> Sequence[Part]:
    """The parts that are asked for, all of which are there."""
    try:
        if not wanted.folder.is_dir():
            raise AnnotationError(f"{wanted.folder}: no such folder")
        parts = {part.name: part for part in row.read(wanted.folder)}
    except AnnotationError as error:
        raise AnnotationError(f"{error}; the folder should hold {row.holds}") from None
    if wanted.only is not None:
        if row.datasets == 1:
            raise AnnotationError(f"{row.name} is one dataset: there is nothing to choose")
        for name in wanted.only:
            if name not in parts:
                raise AnnotationError(f"{wanted.folder}: no subset {name!r}{nearest(name, parts)}")
        return [parts[name] for name in wanted.only]
    missing = [name for name in row.parts if name not in parts]
    if len(parts) != row.datasets and not wanted.partial:
        named = f" (missing: {', '.join(missing)})" if missing else ""
        raise AnnotationError(
            f"{wanted.folder}: {len(parts)} subsets, published are {row.datasets}{named}; name "
            "those that you want with --only, or take those that are there with --partial"
        )
    return list(parts.values())


def _bring(row: Importer, part: Part, name: str, wanted: Wanted) -> Brought:
    check_name(name, wanted.replace)
    content = part.read()
    differences = _differences(row, part, content, wanted)
    origin = {"set": row.name, "published at": row.source, "licence": row.licence}
    plugin = IMPORTERS.plugin_of(row.name)
    if plugin is not None:
        origin["plug-in"] = str(plugin)
    if differences:
        origin["unlike published"] = "; ".join(differences)
    with _images(name, content) as (now, settle):
        built = build_asked(
            name,
            content.asked,
            now,
            wanted.replace,
            drawn=wanted.drawn,
            origin=origin,
            settle=settle,
        )
    shown = {picture for query in content.asked.queries for picture in query.images}
    unshown = (content.found.images or 0) - len(shown)
    return Brought(name, built, Path(built.row.folder), differences, unshown)


def _differences(row: Importer, part: Part, content: Content, wanted: Wanted) -> tuple[str, ...]:
    """How the set is not as published, which is refused unless it is expected."""
    found = (*content.missing, *unlike(content.found, row.counts_of(part.name)))
    if found and not wanted.partial:
        raise AnnotationError(
            f"{content.asked.source}: {'; '.join(found)}; to take it as it is, say --partial, and "
            "its .meta.json will say so"
        )
    return found


@contextmanager
def _images(name: str, content: Content) -> Iterator[tuple[Path, Callable[[], Path]]]:
    """The folder of the pictures, and what brings them to where they stay.

    Packed ones are unpacked beside where they will lie in LMUData; what a kill left there is
    removed.
    """
    images = content.images
    if not isinstance(images, Embedded):
        yield images, lambda: images
        return
    folder = lmu_data_root() / "images" / name
    now = folder.with_name(f".{name}.unpacked")
    with Lock(folder.with_name(f".{name}.lock"), "another import is at work there"):
        shutil.rmtree(now, ignore_errors=True)
        try:
            images.unpack(now)
            yield now, lambda: _move(now, folder)
        finally:
            shutil.rmtree(now, ignore_errors=True)


def _move(now: Path, folder: Path) -> Path:
    """Bring files into a folder; one that is there already is not touched."""
    for path in sorted(path for path in now.rglob("*") if path.is_file()):
        target = folder / path.relative_to(now)
        if not (target.is_file() and cmp(path, target, shallow=False)):
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
    return folder
