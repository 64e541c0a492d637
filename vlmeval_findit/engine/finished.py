"""What a work dir remembers of its finished cells: a sweep that is started again looks at each cell
and not at each call.

``<work_dir>/.sweep.finished`` holds for each finished cell a hash of all that decides its files,
the hashes of those files and the figures that come out; and the hash of the journal that has the
answers.  Where all of them are what they were, going through every call would find nothing to ask
and nothing to write.  Where anything is not, or the file is not there, every call is gone through:
nothing is refused or found out here.  Contents are compared, not times, but of pictures, which are
large (:mod:`.picture_hashes`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..benchmarks import benchmark_of
from ..core.file_hashes import Seen
from ..core.files import file_sha256, remove_left_behind, sha256_of, write_once
from ..core.identity_file import identity_bytes
from ..core.run_files import RunFiles
from ..core.settings import Settings
from ..runs import provenance
from ..runs.cell_result import Result
from .calls import Cell
from .config import Sweep
from .journal.errors import JournalError
from .journal.shards import shards_of
from .outputs import Output
from .picture_hashes import PictureHashes

NAME = ".sweep.finished"

_FORM = 1
"""Of the file: another one is not read."""

_PACKAGE = Path(__file__).resolve().parent.parent


class Remembered(NamedTuple):
    """A finished cell.

    ``made_of`` is a hash of all that decides its files, ``files`` are the hashes of these by their
    names.  The rest is what comes out of it, as in :class:`.Result`.
    """

    made_of: str
    files: Mapping[str, str]
    prompt_hash: str
    sums: Mapping[str, float]
    rows: int
    doctor: str | None

    def fits(self, made_of: str, folder: Path) -> bool:
        """Whether the cell is decided by the same things now, and its files are the same."""
        if self.made_of != made_of:
            return False
        try:
            return all(file_sha256(folder / name) == was for name, was in self.files.items())
        except OSError:
            return False

    def is_of(self, output: Output) -> bool:
        """Whether the identity that lies beside it is that of a run of now."""
        name = RunFiles(output.path).identity.name
        return self.files.get(name) == sha256_of(identity_bytes(output.identity))

    def result(self, output: Output) -> Result:
        cell = output.cell
        of = len(cell.task.queries)
        return Result(
            cell.model, cell.question, self.sums, self.rows, 0, output.path, of, doctor=self.doctor
        )


class Memory:
    """The finished cells of a work dir.

    ``hashes`` are those of pictures.

    Args:
        sweep: which sweep; one of another journal, or of one that changed, remembers no cells.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._path = sweep.work_dir / NAME
        remove_left_behind(self._path)
        self._sweep = sweep
        self._rows: dict[int, tuple[object, str]] = {}
        self._code = code_sha256()
        self._seen: set[str] = set()
        values = _read(self._path)
        self.hashes = PictureHashes(
            {path: Seen(*one) for path, one in values.get("pictures", {}).items()}
        )
        cells = values["cells"] if values and _is_journal(sweep.journal, values) else {}
        self._cells = {name: Remembered(**one) for name, one in cells.items()}
        self._journal_size = content_size(sweep.journal)

    def of(self, path: Path, cell: Cell, settings: Settings) -> Remembered | None:
        """A cell that is finished, by its prediction file; None where that has to be found out.

        Its identity is still to be compared: :meth:`Remembered.is_of`.
        """
        self._seen.add(self._name(path))
        known = self._cells.get(self._name(path))
        if known is None or settings.force:
            return None
        return known if known.fits(self._made_of(cell, settings), path.parent) else None

    def keep(self, output: Output, result: Result) -> None:
        """Remember a cell whose files were just written, where it is finished and all that decides
        it is known.
        """
        name = self._name(output.path)
        self._seen.add(name)
        self._cells.pop(name, None)
        if result.failed or not _is_known(output):
            return
        try:
            files = {path.name: file_sha256(path) for path in _files(output.path)}
        except OSError:
            return
        made_of = self._made_of(output.cell, output.settings)
        prompt_hash = output.identity.prompt_hash or ""
        sums, rows, doctor = dict(result.sums), result.rows, result.doctor
        kept = Remembered(made_of, files, prompt_hash, sums, rows, doctor)
        if kept.is_of(output):
            self._cells[name] = kept

    def is_at_work(self) -> None:
        """From now on nobody else writes the journal; if somebody did since, nothing holds."""
        if content_size(self._sweep.journal) != self._journal_size:
            self._cells.clear()

    def write(self, error: BaseException | None) -> None:
        """Leave it in the work dir, before the journal is closed.

        Not where a run ended at once or its journal is no longer its own.  What cannot be written
        is not there: then the next run goes through every call.
        """
        if error is not None and (not isinstance(error, Exception) or _spoilt(error)):
            return
        if self._sweep.confidences:
            # Cells of others that share its calls have other answers from now on.
            self._cells = {name: one for name, one in self._cells.items() if name in self._seen}
        with suppress(OSError):
            self._write()

    def _write(self) -> None:
        journal = self._sweep.journal
        body = json.dumps(
            {
                "form": _FORM,
                "journal": str(journal.resolve()),
                "journal_sha256": content_sha256(journal),
                "pictures": self.hashes.seen,
                "cells": {name: one._asdict() for name, one in sorted(self._cells.items())},
            }
        ).encode()
        write_once(self._path, b"%s\n%s\n" % (sha256_of(body).encode(), body))

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._sweep.work_dir))

    def _made_of(self, cell: Cell, settings: Settings) -> str:
        """A hash of all that decides the files of a cell beside its identity.

        The words of all messages follow from the code, the rows and the question.  A few messages
        are made all the same: the first, the last, the one in the middle.
        """
        few = {cell.rows[at] for at in (0, len(cell.rows) // 2, -1)} if cell.rows else set()
        parts = [
            self._code,
            provenance.versions(),
            cell.model,
            cell.question.name,
            repr(cell.question),
            cell.settings,
            cell.confidences,
            cell.rows,
            cell.left_out,
            repr(settings),
            benchmark_of(cell.question.name).prompts()[0].name,
            [cell.prompts.prompt(row).sha256 for row in sorted(few)],
            self._rows_of(cell),
        ]
        return sha256_of(json.dumps(parts, sort_keys=True, default=str).encode())

    def _rows_of(self, cell: Cell) -> str:
        """A hash of the rows of a table, what is right included, and of the pictures in them."""
        queries, folder = cell.task.queries, cell.prompts.folder.path
        at = id(queries)
        if at not in self._rows:
            parts = [str(folder)]
            for query in queries.values():
                pictures = [self.hashes(folder / name) for name in _pictures(query)]
                parts.append(f"{query!r} {pictures}")
            # With the queries, so that no others come to have their place in memory.
            self._rows[at] = queries, sha256_of("\n".join(parts).encode("utf-8", "replace"))
        return self._rows[at][1]


def _spoilt(error: Exception) -> bool:
    return isinstance(error, JournalError | OSError)


def _is_known(output: Output) -> bool:
    """Whether all that decides a cell is in its rows, its question and the code of this package.

    It is not where the words come from a clone or a plug-in, where what is asked depends on who is
    asked, where we draw the pictures, or an encoder scores.
    """
    cell, identity = output.cell, output.identity
    words = benchmark_of(cell.question.name).prompts()
    if identity.plugins or identity.forced or identity.chosen or cell.task.before is not None:
        return False
    if words[0].name != words[-1].name or identity.prompt_hash is None:
        return False
    if json.loads(RunFiles(output.path).provenance.read_text(encoding="utf-8")).get("scorer"):
        return False
    queries = cell.task.queries
    return all({*cell.prompts.names(row)}.issubset(_pictures(queries[row])) for row in cell.rows)


def _pictures(query: Any) -> Sequence[str]:
    return (*query.support, *query.images)


def _files(predictions: Path) -> Sequence[Path]:
    files = RunFiles(predictions)
    return predictions, files.identity, files.score, files.details, files.provenance


def _read(path: Path) -> Mapping[str, Any]:
    """What a file of ours says; nothing where it is not there or damaged."""
    try:
        said, _, body = path.read_bytes().partition(b"\n")
        if said.decode() == sha256_of(body.removesuffix(b"\n")):
            values: Mapping[str, Any] = json.loads(body)
            return values if values["form"] == _FORM else {}
    except (OSError, ValueError, TypeError, KeyError):
        pass
    return {}


def _is_journal(journal: Path, values: Mapping[str, Any]) -> bool:
    """Whether a journal is the one that was there, byte for byte."""
    try:
        return (
            values["journal"] == str(journal.resolve())
            and is_whole(journal)
            and values["journal_sha256"] == content_sha256(journal)
        )
    except OSError:
        return False


def content_sha256(journal: Path) -> str:
    """A hash of a journal."""
    return file_sha256(journal)


def content_size(journal: Path) -> int:
    """Bytes of a journal."""
    return journal.stat().st_size if journal.is_file() else 0


def is_whole(journal: Path) -> bool:
    """Whether nothing of it is torn or kept beside it."""
    with journal.open("rb") as f:
        f.seek(-1, 2)
        return f.read() == b"\n" and not shards_of(journal)


@cache
def code_sha256() -> str:
    """A hash of the code of this package, which words prompts, reads replies and scores them."""
    paths = sorted(_PACKAGE.rglob("*.py"))
    return sha256_of(
        *(b"%s\0%s\0" % (str(p.relative_to(_PACKAGE)).encode(), p.read_bytes()) for p in paths)
    )
