"""A folder that an export rewrites: completely or not at all, and without other programs' files.

``checksums.json`` has the SHA-256 of every file; it marks a folder of this package. The files of a
run that are needed to check its values are copied into it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core import atomic_write, file_sha256, new_file_set, parse_json, read_json, read_text
from ..scoring import Run, RunError, score_command
from ..storage import (
    CHECKSUMS,
    WRITTEN_BY,
    RunFiles,
    image_folder,
    prediction_row,
    read_predictions,
    run_of,
    write_rows,
)
from .private import Private
from .targets import NotExportableError


@contextmanager
def rewrite_folder(out: Path, target: str) -> Iterator[Path]:
    """Yield an empty folder, whose files are those of ``out`` at the end of the block.

    Files that an earlier export wrote are replaced or deleted; others, as a clone's ``.git``, stay.

    Raises:
        NotExportableError: ``out`` was not written by an export, or its files were changed.
    """
    # The folder may be named "." or lie behind a link.
    root = Path(os.path.abspath(out))
    root.parent.mkdir(parents=True, exist_ok=True)
    with new_file_set(root, root) as files:
        before = _checksums(out, target)
        new = files.folder
        yield new
        written = sorted(path for path in new.rglob("*") if path.is_file())
        now = {path.relative_to(new).as_posix(): file_sha256(path) for path in written}
        files.check()  # First, as what another command wrote was changed by nobody
        for name in {**before, **now}:
            path = out / name
            if path.is_file() and file_sha256(path) not in (before.get(name), now.get(name)):
                raise NotExportableError(
                    f"{path} was changed after findit export wrote it: move it away, or name a new "
                    "folder with --out"
                )
        _write_checksums(new, target, now)
        for name in {*before} - {*now}:
            files.delete(root / name)
        files.commit()


def make_store(out: Path, target: str) -> None:
    """Make the folder of a tracker's store, which other programs may write to."""
    out.mkdir(parents=True, exist_ok=True)
    if not (out / CHECKSUMS).exists():
        _write_checksums(out, target, {})


def _write_checksums(folder: Path, target: str, files: Mapping[str, str]) -> None:
    values = {"written by": f"{WRITTEN_BY} --to {target}", "sha256": files}
    with atomic_write(folder / CHECKSUMS) as f:
        json.dump(values, f, indent=1, ensure_ascii=False)


def _checksums(out: Path, target: str) -> Mapping[str, str]:
    """Return the checksums of an earlier export into a folder; empty if it is empty or new."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return {}
    try:
        values = read_json(out / CHECKSUMS)
        if values["written by"] == f"{WRITTEN_BY} --to {target}":
            return {str(name): str(checksum) for name, checksum in values["sha256"].items()}
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        pass
    raise NotExportableError(
        f"{out} has files that findit export --to {target} did not write: name a new folder with "
        "--out"
    )


# --- files of runs --------------------------------------------------------------------------------


def check_whole(run: Run) -> None:
    """Refuse a run whose values could not be checked.

    Raises:
        RunError: its predictions or its score do not exist.
    """
    for path in (run.path, RunFiles(run.path).score):
        if not path.is_file():
            raise RunError(
                f"{path} does not exist: the values cannot be checked; restore it, or score "
                f"the predictions again: {score_command(run.path, run.variant.name)}"
            )


def private_of(runs: Iterable[Run]) -> Private:
    """Return the filter that removes the folders of runs."""
    folders: set[Path] = set()
    for run in runs:
        folders.add(run.path.parent)
        identity = run.provenance.identity
        # Every record of a reply names the checkpoint.
        checkpoint = Path(identity.answering.checkpoint or "") if identity else Path()
        if checkpoint.is_absolute():
            folders.add(checkpoint)
        # Without the images their folder is not known.
        with suppress(FileNotFoundError, ValueError):
            folders.add(image_folder(run.variant.images).path)
    return Private(folders)


def unique_names(runs: Sequence[Run]) -> list[str]:
    """Return the name of each run's files below ``runs/``; equal names get a folder by digest.

    Raises:
        RunError: a run occurs twice.
    """
    counts = Counter(run.path.stem for run in runs)
    names: dict[str, Run] = {}
    for run in runs:
        stem = run.path.stem
        name = stem if counts[stem] == 1 else f"{run.provenance.digest}/{stem}"
        if name in names:
            raise RunError(f"{names[name].path} and {run.path} are the same run: name only one")
        names[name] = run
    return list(names)


def copy_run(run: Run, folder: Path, private: Private) -> tuple[str, ...]:
    """Copy predictions, identity, score, details and provenance, and no journal.

    Predictions become JSON: a search for secrets cannot read a cell of a sheet. The provenance gets
    the checksum of the published predictions.

    Returns:
        The names of the files from which private parts were removed.

    Raises:
        PredictionError: the predictions cannot be read.
        OSError: a file cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source = RunFiles(run.path)
    target = RunFiles(folder / f"{run.path.stem}.json")
    replies = read_predictions(run.path)
    cleaned = [*map(private.reply, replies)]
    # Without escapes: whoever looks for names of this machine finds them.
    rows = [prediction_row(reply, escapes=False) for reply in cleaned]
    write_rows(target.predictions, lambda: rows)
    changed = [target.predictions.name] if cleaned != replies else []

    def copy(name: Path, to: Path, change: Callable[[str], str]) -> None:
        text = read_text(name)
        published = change(text)
        with atomic_write(to) as f:
            f.write(published)
        if published != text:
            changed.append(to.name)

    copy(source.score, target.score, private.in_reply)
    copy(source.details, target.details, private.json_lines)
    if source.identity.is_file():
        copy(source.identity, target.identity, private.json_text)
    text = read_text(run_of(run.path).provenance)
    values = parse_json(private.json_text(text))
    if values != parse_json(text):
        changed.append(target.provenance.name)
    file = {"file": target.predictions.name, "sha256": file_sha256(target.predictions)}
    with atomic_write(target.provenance) as f:
        values["predictions"] |= file
        json.dump(values, f, indent=1, ensure_ascii=False)
    return tuple(changed)
