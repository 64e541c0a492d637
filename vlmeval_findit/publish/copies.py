"""A run's own files as they are published: what somebody needs to hold its number against."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.files import atomic_write, file_sha256, replacing
from ..core.places import image_folder
from ..core.predictions import read_predictions, write_rows
from ..core.run_files import RunFiles, run_of
from ..runs.prediction_names import how_to_score
from ..runs.provenance import FINISHED
from ..runs.scored_run import Run, RunError
from .private import Private


@dataclass(frozen=True, slots=True)
class Copied:
    """The files of one run in a folder: ``changed`` are those from which something was taken out
    that was this machine's own."""

    files: RunFiles
    changed: tuple[str, ...]


def check_whole(run: Run) -> None:
    """Refuse a run whose number nobody could check.

    Raises:
        RunError: its predictions or its score are gone.
    """
    for path in (run.path, RunFiles(run.path).score):
        if not path.is_file():
            raise RunError(
                f"{path} is gone: without it nobody can check the figures; bring it back, or score "
                f"the predictions again: {how_to_score(run.path, run.question.name)}"
            )


def private_of(runs: Iterable[Run]) -> Private:
    """What knows the folders that runs use."""
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
    """The folder of a checkpoint, which every record of a reply names."""
    identity = run.basis.identity
    checkpoint = identity.answering.checkpoint if identity else None
    if checkpoint and Path(checkpoint).is_absolute():
        yield Path(checkpoint)


def names_of(runs: Sequence[Run]) -> list[str]:
    """Where the files of each run go, below ``runs/``; runs of one name in folders by digest.

    Raises:
        RunError: the same run stands twice.
    """
    stems = [run.path.stem for run in runs]
    names = [
        stem if stems.count(stem) == 1 else f"{run.basis.digest}/{stem}"
        for stem, run in zip(stems, runs, strict=True)
    ]
    for at, name in enumerate(names):
        if name in names[:at]:
            twice = runs[names.index(name)].path
            raise RunError(f"{twice} and {runs[at].path} are one run twice: name one of them")
    return names


def copy_run(run: Run, folder: Path, private: Private) -> Copied:
    """Copy predictions, identity, score, details and provenance, and no journal.

    A sheet becomes JSON: a cell hides what a search for secrets looks for.  The provenance has the
    checksum of the predictions as they are published.

    Raises:
        PredictionError: the predictions cannot be read.
        OSError: a file cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source = RunFiles(run.path)
    target = RunFiles(folder / (run.path.stem + _suffix(run.path)))
    taken = []
    if _copy_predictions(source.predictions, target.predictions, private):
        taken.append(target.predictions.name)
    if _copy_lines(source.score, target.score, private.said):
        taken.append(target.score.name)
    if _copy_lines(source.details, target.details, lambda s: private.json_line(s, private.said)):
        taken.append(target.details.name)
    if source.identity.is_file() and _copy_text(source.identity, target.identity, private):
        taken.append(target.identity.name)
    text = run_of(run.path).provenance.read_text(encoding="utf-8")
    values = json.loads(private.json_text(text, private.ours))
    published = {"file": target.predictions.name, "sha256": file_sha256(target.predictions)}
    if values != json.loads(text):
        taken.append(target.provenance.name)
    values.pop(FINISHED, None)  # it is of the files as they lie here
    _write(target.provenance, {**values, "predictions": {**values["predictions"], **published}})
    return Copied(target, tuple(taken))


def _suffix(predictions: Path) -> str:
    return ".json" if predictions.suffix == ".xlsx" else predictions.suffix


def _copy_predictions(source: Path, target: Path, private: Private) -> bool:
    rows = _prediction_rows(source)
    made = [private.row(row) for row in rows]
    if made == rows and source.suffix == target.suffix:
        with replacing(target) as temporary:
            shutil.copyfile(source, temporary)
    else:
        write_rows(target, lambda: made)
    return made != rows


def _prediction_rows(path: Path) -> list[Mapping[str, Any]]:
    """The rows of predictions, with all that stands in them but in a sheet."""
    if path.suffix == ".xlsx":
        return [
            {
                "index": reply.index,
                "prediction": reply.text,
                "extra_records": _extra(reply.recorded),
            }
            for reply in read_predictions(path)
        ]
    with path.open(encoding="utf-8-sig", newline="") as f:
        if path.suffix == ".json":
            rows: list[Mapping[str, Any]] = json.load(f)
            return rows
        csv.field_size_limit(2**31 - 1)
        return list(csv.DictReader(f, delimiter="\t", strict=True))


def _extra(recorded: Any) -> str:
    text: str = recorded.as_json()
    return text


def _copy_lines(source: Path, target: Path, change: Any) -> bool:
    other = False
    with source.open(encoding="utf-8", newline="") as lines, atomic_write(target) as f:
        for line in lines:
            made = change(line)
            other |= made != line
            f.write(made)
    return other


def _copy_text(source: Path, target: Path, private: Private) -> bool:
    text = source.read_text(encoding="utf-8")
    made = private.json_text(text, private.ours)
    with atomic_write(target) as f:
        f.write(made)
    return made != text


def _write(path: Path, values: Mapping[str, Any]) -> None:
    with atomic_write(path) as f:
        json.dump(values, f, indent=1, ensure_ascii=False)
