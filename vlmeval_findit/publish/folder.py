"""A folder that the Hugging Face hub and ``datasets.load_dataset`` take as a dataset.

::

    README.md              the card
    checksums.json         SHA-256 of every file; by it a folder is known to be ours
    data/queries.parquet   one row a query
    data/runs.parquet      one row a run
    runs/                  the runs' own files, as commands of this package read them
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ..core.files import atomic_write, file_sha256
from ..runs.scored_run import Run
from .card import TABLES, make_card
from .copies import check_whole, copy_run, names_of, private_of
from .tables import run_rows, write_queries, write_runs

CHECKSUMS = "checksums.json"
_WRITTEN_BY = "vlmeval_findit push"


class FolderError(ValueError):
    """A folder that must not be written to; the message says why."""


@dataclass(frozen=True, slots=True)
class Written:
    """A dataset's folder: its files, relative to it, and those from which something was hidden."""

    folder: Path
    files: tuple[str, ...]
    hidden: tuple[str, ...]


def write_dataset(runs: Sequence[Run], out: Path, licence: str | None = None) -> Written:
    """Write runs as a dataset; the same runs are the same bytes.

    Args:
        runs: what is published.
        out: the folder: a new one, an empty one, or one that this wrote.
        licence: the hub's name of the licence (None: the card says that nobody said one).

    Raises:
        RunError: a run is not whole, or stands twice; nothing is written.
        PredictionError: predictions cannot be read; nothing is written.
        FolderError: the folder is somebody else's, or its files were changed; nothing is written.
    """
    for run in runs:
        check_whole(run)
    names = names_of(runs)
    before = _checksums(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as made:
        folder = Path(made) / "dataset"
        hidden = _make(runs, names, folder, licence)
        sums = {name: file_sha256(folder / name) for name in _files(folder)}
        with atomic_write(folder / CHECKSUMS) as f:
            json.dump({"written by": _WRITTEN_BY, "sha256": sums}, f, indent=1, ensure_ascii=False)
        _check_unchanged(out, before, sums)
        _put(folder, out, before, sums)
    return Written(out, (*sums, CHECKSUMS), hidden)


def _make(
    runs: Sequence[Run], names: Sequence[str], folder: Path, licence: str | None
) -> tuple[str, ...]:
    """Write all but the checksums; gives the files from which something was hidden."""
    private = private_of(runs)
    hidden: list[str] = []
    for run, name in zip(runs, names, strict=True):
        below = Path("runs", name).parent
        copied = copy_run(run, folder / below, private)
        hidden += [(below / one).as_posix() for one in copied.changed]
    write_queries(runs, names, folder / TABLES["queries"], private)
    rows = run_rows(runs, names)
    write_runs(rows, folder / TABLES["runs"], private)
    with atomic_write(folder / "README.md") as f:
        f.write(private.ours(make_card(runs, rows, licence, hidden)))
    return tuple(hidden)


def _files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def written_names(checksums: Path) -> tuple[str, ...]:
    """The files that a ``checksums.json`` of ours lists, and itself.

    Raises:
        FolderError: push did not write it.
    """
    return (*_listed(checksums), CHECKSUMS)


def _checksums(out: Path) -> Mapping[str, str]:
    """What an earlier push wrote into a folder; nothing where it is empty or not there."""
    if not out.exists():
        return {}
    if not out.is_dir():
        raise FolderError(f"{out} is no folder")
    if not any(out.iterdir()):
        return {}
    return _listed(out / CHECKSUMS)


def _listed(checksums: Path) -> Mapping[str, str]:
    """The checksums of the files that an earlier push wrote."""
    try:
        values = json.loads(checksums.read_text(encoding="utf-8"))
        if values["written by"] == _WRITTEN_BY:
            return {str(name): str(checksum) for name, checksum in values["sha256"].items()}
    except (AttributeError, FileNotFoundError, KeyError, TypeError, ValueError):
        pass
    raise FolderError(
        f"{checksums.parent} holds what findit push did not write: name a new folder with --out"
    )


def _check_unchanged(out: Path, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse to write over what somebody changed by hand."""
    for name in (*before, *(name for name in now if name not in before)):
        path = out / name
        if path.is_file() and file_sha256(path) not in (before.get(name), now.get(name)):
            raise FolderError(
                f"{path} was changed after findit push wrote it: move it away, or name a new "
                "folder with --out"
            )


def _put(made: Path, out: Path, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Bring a dataset into place: a new folder at once, an old one file by file."""
    if not out.exists():
        made.replace(out)
        return
    for name in (*now, CHECKSUMS):
        if name in now and (out / name).is_file() and file_sha256(out / name) == now[name]:
            continue
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).replace(out / name)
    for name in before:
        # A name from a file that anybody may have written leads nowhere else.
        if name not in now and (out / name).resolve().is_relative_to(out.resolve()):
            (out / name).unlink(missing_ok=True)
