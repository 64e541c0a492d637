"""Check before the first call that a dataset's images exist and are those of its table."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from .image_files import ImageFileError, Size, header, misfit
from .places import Folder
from .question import Query


class ImageError(ValueError):
    """Images are missing, or not those of the table; the message says what to set."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """A row whose images cannot be sent."""

    index: int
    path: Path
    why: str


def unusable(queries: Collection[Query], folder: Path) -> list[Unusable]:
    """List the rows with an image that is missing, unreadable, too large, or of another size."""
    # Only headers are read. In an image of another size, boxes would be in wrong pixels.
    stated = [_stated(query) for query in queries]
    # Rows may state several sizes for one image: each is checked.
    wanted = list(dict.fromkeys(chain.from_iterable(stated)))
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda one: _problem(folder / one[0], one[1]), wanted)
        problems = dict(zip(wanted, found, strict=True))

    def first(query: Query, images: Sequence[_Stated]) -> Iterator[Unusable]:
        for name, size in images:
            why = problems[name, size]
            if why:
                yield Unusable(query.index, folder / name, why)

    rows = zip(queries, stated, strict=True)
    return [bad for row in rows if (bad := next(first(*row), None)) is not None]


_Stated = tuple[str, Size | None]  # An image and the size that a row states of it


def _stated(query: Query) -> list[_Stated]:
    size = (query.width, query.height) if query.width and query.height else None
    return [*((name, None) for name in query.support), *((name, size) for name in query.images)]


def rows_to_leave_out(queries: Collection[Query], folder: Folder, skip: bool) -> frozenset[int]:
    """Return the rows that a run leaves out because their images cannot be sent.

    Raises:
        ImageError: there are such rows and not ``skip``, or there are no others.
    """
    bad = unusable(queries, folder.path)
    if bad and (not skip or len(bad) == len(queries)):
        raise refusal(bad, len(queries), folder)
    return frozenset(row.index for row in bad)


def skips_missing() -> bool:
    """Return whether the environment says to leave out rows without a usable image."""
    return os.environ.get("FINDIT_SKIP_MISSING", "0") not in ("", "0")


def _problem(path: Path, size: Size | None) -> str | None:
    try:
        state = path.stat()
    except OSError:
        return _known.__wrapped__(path, size, ())
    return _known(path, size, (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns))


@lru_cache(maxsize=1 << 17)
def _known(path: Path, size: Size | None, state: tuple[int, ...]) -> str | None:
    """Cache what is wrong with a file in this state: a run checks its images repeatedly."""
    try:
        return misfit(header(path), size)
    except ImageFileError as error:
        return error.why


def refusal(bad: list[Unusable], rows: int, folder: Folder) -> ImageError:
    """Make the error for rows whose images cannot be sent."""
    first = bad[0]
    return ImageError(
        f"{len(bad)} of {rows} rows have no usable image; the first is row {first.index}: "
        f"{first.path} {first.why}.\n"
        f"The folder comes from {folder.source}. Set images.{folder.key} in configs/datasets.yaml, "
        f"or run_findit.py --images {folder.key}=DIR, or FINDIT_IMAGES={folder.key}=DIR.\n"
        "To leave these rows out (the result says so): --skip-missing-images, or "
        "FINDIT_SKIP_MISSING=1."
    )
