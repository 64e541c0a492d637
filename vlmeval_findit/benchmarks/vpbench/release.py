"""The authors' stage 1 files into a table, with the pictures out of their cells.

Rows are read, written and forgotten one by one.  A picture's file is named by its content, so that
questions about the same picture share it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...core.files import file_sha256, sha256_of, write_once
from ...core.places import image_folder
from ...core.table_facts import meta_path
from ...core.table_files import TableError
from .cells import NoPictureError, items, picture, shapes, suffix, text
from .kinds import is_absent, kind_of
from .metrics import SHAPES
from .query import LETTERS, HintColumn, Kind, VPQuery
from .release_files import OFFICIAL, OFFICIAL_MD5, USED, Row, files_of, rows_of
from .table import Written, write_table
from .tables import STAGE_1, TABLES

_LONGEST_REFERENCE = 64
"""Characters of an image cell that names another row's index: VLMEvalKit's way to store it once."""


class Release:
    """The questions of files, and what was met on the way; read once, from beginning to end.

    Args:
        files: of stage 1.
        folder: where pictures are written to.
    """

    def __init__(self, files: Iterable[Path], folder: Path) -> None:
        self.dropped: Counter[str] = Counter()
        """Rows without a question that can be asked, by reason."""
        self.unknown_shapes: Counter[str] = Counter()
        self.unanswered = 0
        self._files = files
        self._folder = folder
        self._pictures: dict[int, str] = {}

    def queries(self) -> Iterator[VPQuery]:
        """The questions, their pictures written; those that share a later row's picture at the end.

        Raises:
            TableError: naming file, row and column.
        """
        seen: set[int] = set()
        waiting: list[tuple[VPQuery, int]] = []
        for row in (row for path in self._files for row in rows_of(path)):
            query = query_of(row)
            if query.index in seen:
                raise TableError(f"{row.where}: index {query.index} stands twice")
            seen.add(query.index)
            try:
                found = self._picture(query.index, row.cells["image"])
            except NoPictureError:
                self.dropped["damaged image"] += 1
                continue
            if isinstance(found, int):
                waiting.append((query, found))
            elif found is None:
                self.dropped["no image"] += 1
            else:
                yield self._noted(query, found)
        for query, other in waiting:
            if other in self._pictures:
                yield self._noted(query, self._pictures[other])
            else:
                self.dropped["no image"] += 1

    def met(self) -> dict[str, Any]:
        """What was met, for the table's ``.meta.json``."""
        return {
            "dropped": dict(self.dropped),
            "unanswered": self.unanswered,
            "unknown_shapes": dict(self.unknown_shapes),
        }

    def _picture(self, index: int, cell: Any) -> str | int | None:
        """The file of a picture, the index of the row that has it, or None."""
        said = cell if not isinstance(cell, str) or len(cell) > _LONGEST_REFERENCE else text(cell)
        if isinstance(said, str) and said.isdecimal() and len(said) < _LONGEST_REFERENCE:
            return self._pictures.get(int(said), int(said))
        data = picture(cell)
        if data is None:
            return None
        name = f"{sha256_of(data)[:24]}{suffix(data)}"
        write_once(self._folder / name, data)
        self._pictures[index] = name
        return name

    def _noted(self, query: VPQuery, name: str) -> VPQuery:
        self.unknown_shapes.update(shape for shape in query.shapes if shape not in SHAPES)
        self.unanswered += not query.answer
        return replace(query, images=(name,))


def query_of(row: Row) -> VPQuery:
    """A row as a question, without its picture.

    Raises:
        TableError: naming file, row and column.
    """

    def bad(column: str, why: str) -> TableError:
        return TableError(f"{row.where}, column {column}: {why}")

    cells = {name: text(row.cells.get(name)) for name in USED if name not in _OWN_TYPES}
    if not cells["index"].isdecimal():
        raise bad("index", f"{cells['index']!r} is no whole number")
    if not cells["question"]:
        raise bad("question", "is empty")
    options = tuple((letter, cells[letter]) for letter in LETTERS if cells[letter])
    if not options:
        raise bad("A", "there is no option")
    answer = cells["answer"].upper()
    if answer and answer not in dict(options):
        raise bad("answer", f"{answer!r} is no option: {', '.join(dict(options))}")
    right = dict(options).get(answer, "")
    return VPQuery(
        index=int(cells["index"]),
        label=cells["question"],
        images=(),
        hint=cells["hint"] or cells["context"],
        question=cells["question"],
        options=options,
        answer=answer,
        amount=cells["vp_amount"],
        shapes=shapes(row.cells.get("vp_shape")),
        properties=items(row.cells.get("vp_properties")),
        kind=kind_of(cells["question"]),
        absent=is_absent(cells["question"], right),
        source="stage 1",
        hint_column=HintColumn.HINT if cells["hint"] else HintColumn.CONTEXT,
    )


_OWN_TYPES = ("image", "vp_shape", "vp_properties")


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    """The table, and what a user should know of it."""

    table: Written
    notes: tuple[str, ...]


def prepare(path: Path, out: Path) -> Prepared:
    """Write pictures, table and its ``.meta.json``, which says whether it is the authors' TSV.

    Raises:
        FileNotFoundError: there are no such files.
        TableError: naming file, row and column; no table is written then.
    """
    files = files_of(path)
    release = Release(files, image_folder(TABLES[STAGE_1].images).path)
    origin = _origin(files)
    table = write_table(out, STAGE_1, release.queries(), origin, release.met)
    unknown = table.kinds.get(Kind.UNKNOWN, 0)
    notes = [f"{count} rows dropped: {why}" for why, count in sorted(release.dropped.items())]
    if unknown:
        notes.append(f"{unknown} of {table.queries} questions do not say their kind")
    if release.unanswered:
        notes.append(f"{release.unanswered} questions without an answer: asked, not scored")
    if release.unknown_shapes:
        names = ", ".join(f"{name} ({n})" for name, n in release.unknown_shapes.most_common(5))
        notes.append(f"shapes that are none of VP-Bench's, left as they are: {names}")
    if not origin["official"]:
        notes.append(f"not {OFFICIAL} with MD5 {OFFICIAL_MD5}: {meta_path(table.path)}")
    return Prepared(table, tuple(notes))


def _origin(files: Sequence[Path]) -> dict[str, Any]:
    checksums = {path.name: file_sha256(path) for path in files}
    several = sha256_of(*(value.encode() for value in checksums.values()))
    with files[0].open("rb") as f:
        md5 = hashlib.file_digest(f, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    return {
        "source": " and ".join(checksums) if len(files) < 3 else f"{len(files)} files",
        "source_sha256": several if len(files) > 1 else checksums[files[0].name],
        "sources": checksums,
        "official": len(files) == 1 and md5 == OFFICIAL_MD5,
    }
