"""A run's own files as they are published: what somebody needs to hold its number against."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ..core.files import atomic_write, file_sha256
from ..core.folders import image_folder
from ..core.predictions import read_predictions, write_rows
from ..core.run_files import RunFiles, run_of
from ..runs.prediction_names import score_command
from ..runs.scored_run import Run, RunError
from .private import Private


def check_whole(run: Run) -> None:
    """Refuse a run whose number nobody could check.

    Raises:
        RunError: its predictions or its score are gone.
    """
    for path in (run.path, RunFiles(run.path).score):
        if not path.is_file():
            raise RunError(
                f"{path} is gone: without it nobody can check the figures; bring it back, or score "
                f"the predictions again: {score_command(run.path, run.question.name)}"
            )


def private_of(runs: Iterable[Run]) -> Private:
    """Return what takes out the folders that runs use."""
    folders: dict[Path, None] = {}
    for run in runs:
        folders |= dict.fromkeys((run.path.parent, *_checkpoint(run)))
        try:
            folders[image_folder(run.question.images).path] = None
        except (FileNotFoundError, ValueError):
            # The pictures are not at hand; nothing is known of where they were.
            continue
    return Private(folders)


def _checkpoint(run: Run) -> Iterator[Path]:
    """Yield the folder of a checkpoint, which every record of a reply names."""
    identity = run.provenance.identity
    checkpoint = identity.answering.checkpoint if identity else None
    if checkpoint and Path(checkpoint).is_absolute():
        yield Path(checkpoint)


def unique_names(runs: Sequence[Run]) -> list[str]:
    """Name the files of each run, below ``runs/``; runs of one name lie in folders by digest.

    Raises:
        RunError: the same run stands twice.
    """
    stems = [run.path.stem for run in runs]
    names = [
        stem if stems.count(stem) == 1 else f"{run.provenance.digest}/{stem}"
        for stem, run in zip(stems, runs, strict=True)
    ]
    for at, name in enumerate(names):
        if name in names[:at]:
            twice = runs[names.index(name)].path
            raise RunError(f"{twice} and {runs[at].path} are one run twice: name one of them")
    return names


def copy_run(run: Run, folder: Path, private: Private) -> tuple[str, ...]:
    """Copy predictions, identity, score, details and provenance, and no journal.

    Predictions become JSON: a cell of a sheet hides what a search for secrets looks for.  The
    provenance has the checksum of the predictions as they are published.

    Returns:
        The names of those files from which something was taken out that was this machine's own.

    Raises:
        PredictionError: the predictions cannot be read.
        OSError: a file cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source = RunFiles(run.path)
    target = RunFiles(folder / f"{run.path.stem}.json")
    rows = [
        {"index": r.index, "prediction": r.text, "extra_records": r.recorded.as_json()}
        for r in read_predictions(run.path)
    ]
    made = [private.row(row) for row in rows]
    write_rows(target.predictions, lambda: made)
    taken = [target.predictions.name] if made != rows else []

    def copy(name: Path, to: Path, change: Callable[[str], str]) -> None:
        text = name.read_bytes().decode()
        published = change(text)
        with atomic_write(to) as f:
            f.write(published)
        if published != text:
            taken.append(to.name)

    copy(source.score, target.score, private.in_reply)
    copy(source.details, target.details, private.json_lines)
    if source.identity.is_file():
        copy(source.identity, target.identity, private.json_text)
    text = run_of(run.path).provenance.read_text(encoding="utf-8")
    values = json.loads(private.json_text(text))
    if values != json.loads(text):
        taken.append(target.provenance.name)
    file = {"file": target.predictions.name, "sha256": file_sha256(target.predictions)}
    with atomic_write(target.provenance) as f:
        values["predictions"] |= file
        json.dump(values, f, indent=1, ensure_ascii=False)
    return tuple(taken)
