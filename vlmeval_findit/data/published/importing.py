"""Datasets made of a published set: read, held against what is known of it, built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.spelling import nearest
from ..custom.build import Built, build
from ..custom.checks import check_name
from ..custom.images import Drawn
from ..samples import AnnotationError
from ..sources import SOURCES, DataSource, PublishedPart


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What is to be made of a set."""

    folder: Path
    name: str | None = None  # What it is to be called (None: as its row)
    only: Sequence[str] | None = None  # The parts that are asked for (None: all that there are)
    partial: bool = False  # Whether it may be other than published
    replace: bool = False  # Whether custom datasets of these names may be replaced
    drawn: Drawn | None = None  # On which images boxes were drawn, where a viewer turns them


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A dataset that was made."""

    built: Built
    unlike: Sequence[str]  # How it is not as published
    without_query: int  # Images that no query shows


@dataclass(frozen=True, slots=True)
class Refused:
    """A dataset that could not be made."""

    dataset: str
    why: str


def run_import(row: DataSource, options: ImportOptions) -> Iterator[ImportResult | Refused]:
    """Make the datasets of a set, one after the other.

    Of a set with many parts, one that cannot be used keeps none of the others from being made.

    Raises:
        AnnotationError: the folder does not hold the set, or not all of its parts, or a part is
            asked for that there is not; or it has one part only, and that cannot be used.
    """
    for part in _parts(row, options):
        name = row.dataset(part.name, options.name)
        try:
            yield _import(row, part, name, options)
        except AnnotationError as error:
            if row.datasets == 1:
                raise
            yield Refused(name, str(error))


def _parts(row: DataSource, options: ImportOptions) -> Sequence[PublishedPart]:
    """The parts that are asked for, all of which are there."""
    folder = options.folder
    try:
        if not folder.is_dir():
            raise AnnotationError(f"{folder}: no such folder")
        parts = {part.name: part for part in row.parts_in(folder)}
    except AnnotationError as error:
        raise AnnotationError(f"{error}; the folder should hold {row.holds}") from None
    if options.only is not None:
        if row.datasets == 1:
            raise AnnotationError(f"{row.name} is one dataset: there is nothing to choose")
        for name in options.only:
            if name not in parts:
                raise AnnotationError(f"{folder}: no subset {name!r}{nearest(name, parts)}")
        return [parts[name] for name in options.only]
    missing = [name for name in row.parts if name not in parts]
    if len(parts) != row.datasets and not options.partial:
        named = f" (missing: {', '.join(missing)})" if missing else ""
        raise AnnotationError(
            f"{folder}: {len(parts)} subsets, published are {row.datasets}{named}; name "
            "those that you want with --only, or take those that are there with --partial"
        )
    return list(parts.values())


def _import(
    row: DataSource, part: PublishedPart, name: str, options: ImportOptions
) -> ImportResult:
    check_name(name, options.replace)
    samples = part.read()
    unlike = row.unlike(part.name, samples)
    if unlike and not options.partial:
        raise AnnotationError(
            f"{samples.source}: {'; '.join(unlike)}; to take it as it is, say --partial "
            "(data get: --force), and its .meta.json will say so"
        )
    origin = {"set": row.name, "published at": row.address, "licence": row.licence}
    plugin = SOURCES.plugin_of(row.name)
    if plugin is not None:
        origin["plug-in"] = str(plugin)
    if unlike:
        origin["unlike published"] = "; ".join(unlike)
    built = build(name, samples, options.replace, options.drawn, origin)
    shown = {image for query in samples.queries for image in query.images}
    return ImportResult(built, unlike, (samples.counts.images or 0) - len(shown))
