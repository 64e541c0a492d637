"""Skip finished cells: a restarted sweep checks one hash per cell instead of its calls.

While the hashes in a provenance still hold, neither journal nor model is opened. Contents are
compared, not times, except for images, which are large.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ..benchmarks import benchmark_of
from ..core.files import file_sha256, sha256_of, write_text_once
from ..core.plugins import named_files
from ..core.question import Question
from ..core.run_files import RunFiles
from ..core.settings import Settings
from ..core.vlmevalkit import host_version, package_folder
from ..models.entry import ModelEntry
from ..models.revision import known_revision
from ..models.table import find_model
from ..runs import provenance
from ..runs.cell_result import Result
from .calls import Cell
from .outputs import Output

_PACKAGE = Path(__file__).resolve().parent.parent


class FinishedCells:
    """The finished cells of a work dir."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[object, str]] = {}
        self._made_of: dict[Path, str] = {}

    def result(
        self, path: Path, cell: Cell, settings: Settings, answered_by: object
    ) -> Result | None:
        """Return the result of a finished cell, else None.

        ``cell`` may lack settings that only its host knows; ``answered_by`` is the host's.
        """
        made_of = self._made_of[path] = self._hash(cell, settings, answered_by)
        with suppress(OSError, ValueError, KeyError, TypeError):
            values = json.loads(RunFiles(path).provenance.read_text(encoding="utf-8"))
            mark = values[provenance.FINISHED]
            whole = (mark["made_of"], mark["sha256"]) == (made_of, _sha256(values))
            if whole and not settings.force and mark["files"] == _files(path):
                rows, of = values["predictions"]["rows"], len(cell.task.queries)
                sums, coords_doubt = mark["sums"], values["coords_doubt"]
                return Result(
                    cell.model, cell.question, sums, rows, 0, path, of, coords_doubt=coords_doubt
                )
        return None

    def keep(self, output: Output, result: Result) -> None:
        """Mark a cell in its provenance as finished, if all that decides it is known."""
        made_of, path = self._made_of.get(output.path), RunFiles(output.path).provenance
        if made_of is None or result.failed or not _is_known(output):
            return
        values = json.loads(path.read_text(encoding="utf-8"))
        files, sums = _files(output.path), dict(result.sums)
        values[provenance.FINISHED] = mark = {"made_of": made_of, "files": files, "sums": sums}
        mark["sha256"] = _sha256(values)
        write_text_once(path, provenance.as_text(values))

    def _hash(self, cell: Cell, settings: Settings, answered_by: object) -> str:
        """Hash all that decides the files of a cell.

        Messages follow from the code, the rows and the question; the first, the middle and the last
        are hashed as well.
        """
        few = {cell.rows[at] for at in (0, len(cell.rows) // 2, -1)} if cell.rows else set()
        parts = [
            code_sha256(),
            provenance.versions(),
            answered_by,
            cell.model,
            cell.question.name,
            repr(cell.question),
            cell.confidences,
            cell.rows,
            cell.left_out,
            repr(settings),
            benchmark_of(cell.question.name).prompts()[0].name,
            [sha256.hex() for _, sha256, _ in cell.prompts.read(sorted(few))],
            self._rows_of(cell),
        ]
        return sha256_of(json.dumps(parts, sort_keys=True, default=str).encode())

    def _rows_of(self, cell: Cell) -> str:
        queries, folder = cell.task.queries, cell.prompts.folder.path
        sha256 = cell.prompts.images.sha256
        at = id(queries)
        if at not in self._rows:
            parts = [str(folder)]
            for query in queries.values():
                pictures = [sha256(folder / name) for name in _pictures(query)]
                parts.append(f"{query!r} {pictures}")
            # Holding the queries keeps their id() from being reused.
            self._rows[at] = queries, sha256_of("\n".join(parts).encode("utf-8", "replace"))
        return self._rows[at][1]


def _sha256(values: Mapping[str, Any]) -> str:
    """Hash a provenance without its times and this hash."""
    mark = {**values[provenance.FINISHED], "sha256": None}
    said = {**values, provenance.FINISHED: mark, "scored_at": None}
    return sha256_of(json.dumps(said, sort_keys=True).encode())


def _files(predictions: Path) -> Mapping[str, str]:
    files = RunFiles(predictions)
    each = (predictions, files.identity, files.score, files.details)
    return {path.name: file_sha256(path) for path in each}


def _is_known(output: Output) -> bool:
    """Whether rows, question and package code decide a cell completely.

    Not so if prompts come from a clone or a plug-in or depend on the model, if images are drawn
    here, or if an encoder scores.
    """
    cell, identity = output.cell, output.identity
    words = benchmark_of(cell.question.name).prompts()
    if identity.plugins or identity.forced or identity.chosen or cell.task.before is not None:
        return False
    if words[0].name != words[-1].name or identity.prompt_hash is None:
        return False
    if json.loads(RunFiles(output.path).provenance.read_text(encoding="utf-8")).get("scorer"):
        return False
    folder, shown = cell.prompts.folder.path, cell.prompts.images.shown
    return all(
        {*shown[number]}.issubset(folder / name for name in _pictures(cell.task.queries[row]))
        for row, number in zip(cell.rows, cell.asked.images, strict=True)
    )


def _pictures(query: Any) -> Sequence[str]:
    return (*query.support, *query.images)


@cache
def code_sha256() -> str:
    """Hash this package's code, which words prompts, reads replies and scores them."""
    paths = sorted(_PACKAGE.rglob("*.py"))
    return sha256_of(
        *(b"%s\0%s\0" % (str(p.relative_to(_PACKAGE)).encode(), p.read_bytes()) for p in paths)
    )


def answered_here(entry: ModelEntry) -> object:
    """Implement :meth:`.Host.answered_by` for VLMEvalKit's models."""
    revisions = {one: known_revision(one) for one in sorted(_checkpoints(entry))}
    files = [file_sha256(Path(path)) for path in named_files()]
    return [repr(replace(entry, line=0)), host_version(), _package_state(), revisions, files]


def _checkpoints(entry: ModelEntry) -> Iterator[str]:
    row = find_model(entry.like or entry.name)
    local = row.local.checkpoints.values() if row is not None and row.local is not None else ()
    for named in (entry.checkpoint, entry.settings.get("model_path"), *local):
        if isinstance(named, str):
            yield named


@cache
def _package_state() -> str:
    folder = package_folder()
    paths = sorted(folder.rglob("*.py")) if folder is not None else []
    states = ((path, path.stat()) for path in paths)
    return sha256_of(*(f"{path} {s.st_size} {s.st_mtime_ns}\n".encode() for path, s in states))


class LateHost:
    """VLMEvalKit, imported with its first model: it takes 20 s, and a finished sweep asks none."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._made = cache(make)
        self.version = host_version()

    def answered_by(self, entry: ModelEntry, question: Question) -> object:
        return answered_here(entry)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)
