"""Write the files of a score next to its predictions; needs neither torch nor vlmeval.

``<stem>_score.csv`` is the row that goes into a leaderboard, ``<stem>_details.jsonl`` holds every
query (boxes, IoUs, hits, reason), ``<stem>_provenance.json`` what the score rests on. Of boxes,
``<stem>_sums.msgpack`` has the sums of the details for boards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ..core import as_csv, atomic_write, clear_leftovers, file_sha256
from ..protocol import (
    READS_LIKE,
    SPACE_SETTING,
    THOUGHT_MARKS,
    LastScore,
    ScoredRow,
    Settings,
    in_words,
    is_stated,
    say_once,
    stating_flag,
    thought_marks,
)
from ..storage import RunFiles, model_with_mark, run_of, space_mark
from .provenance import (
    UNKNOWN_PROMPTS,
    Provenance,
    provenance_of,
    provenance_values,
    read_provenance,
)
from .row_scoring import RunScore
from .score_reading import ScoreFileError
from .score_seal import SEAL, ScoreBasis, seal_of
from .stored_sums import write_sums


def write_score(
    run: RunScore,
    predictions: Path,
    details: Iterable[str] | None = None,
    basis: ScoreBasis | None = None,
    failed: int = 0,
) -> RunFiles:
    """Write the files of a score next to a prediction file, each whole or not at all.

    A score in another space than the recorded space, or with reviews, is written next to the
    recorded score.

    Args:
        details: the lines of the details file where the run does not hold them any more.
        basis: what the score rests on; None: that is not known, so the score is not sealed.
        failed: how many of its calls are to be made again.
    """
    files = RunFiles(predictions, run.mark)
    clear_leftovers(files.score)
    with atomic_write(files.score) as f:
        f.write(as_csv([score_row(run)]))
    with atomic_write(files.details) as f:
        f.writelines(map(details_line, run.rows) if details is None else details)
    if run.reviews is None and run.benchmark.errors.in_sums:
        write_sums(files)
    values = provenance_values(provenance_of(run, predictions))
    if basis is not None and _is_known_by_hashes(run, values):
        values[SEAL] = seal_of(values, run, files, basis, failed)
    with atomic_write(files.provenance) as f:
        json.dump(values, f, indent=1, ensure_ascii=False)
    return files


def _is_known_by_hashes(run: RunScore, values: Mapping[str, Any]) -> bool:
    """Return whether nothing decided a score that may change in silence.

    An encoder and a plug-in can change under one version; what was forced is never settled.
    """
    return not (run.scorer or run.mark or values["forced"] or "plugins" in values)


def score_row(run: RunScore) -> dict[str, Any]:
    """Return the score as one flat row: metrics in percent, counts, and what they rest on."""
    benchmark = run.benchmark
    headline = benchmark.headline_counting_failures
    identity = run.identity
    prompts = identity.prompts if identity is not None else None
    counts = {name: run.sums.get(key, 0) for name, key in benchmark.counts.items()}
    scorer = {"scored by": run.scorer.name} if run.scorer else {}
    metrics = run.values((*benchmark.metrics, headline))
    if run.reviews:
        metrics = {f"{name} {run.reviews.column}": value for name, value in metrics.items()}
        counts |= {
            "reviewed": run.reviews.reviewed,
            "changed": run.reviews.changed,
            "excluded": run.reviews.excluded,
            "random": run.reviews.random,
        }
    return {
        "model": model_with_mark(run.model, run.mark),
        "dataset": run.dataset.name,
        **metrics,
        "rows": len(run.dataset.queries),
        "scored": len(run.rows),
        "answered": len(run.rows) - run.failed,
        "failed calls": run.failed,
        "left out": len(identity.left_out) if identity is not None else 0,
        **counts,
        "space": "; ".join(sorted({space["kind"] for space in run.spaces})),
        **scorer,
        "prompts": prompts or UNKNOWN_PROMPTS,
        "run": identity.digest if identity is not None else UNKNOWN_PROMPTS,
    }


def details_line(row: ScoredRow) -> str:
    """Write a row as one line; :func:`.read_details_line` reads it back."""
    values = {
        "index": row.index,
        "source": row.source,
        "failed": row.failed,
        "reason": row.reason,
        **row.details,
        "sums": row.sums,
    }
    if row.slices:
        values["slices"] = row.slices
    if row.parts:
        values["parts"] = [[*part, sums] for part, sums in row.parts.items()]
    return json.dumps(values, ensure_ascii=False) + "\n"


# --- the settings of a score ---------------------------------------------------------------------


def settings_of_score(predictions: Path, settings: Settings) -> Settings:
    """Force again what an earlier score forced; what else it was told, :func:`last_score` knows."""
    path = RunFiles(predictions).provenance
    if settings.space is not None or not path.is_file():
        return settings
    stored = _earlier(path)
    if not stored.forced:
        return settings
    return replace(settings, force=True, space=_told(stored, settings).space)


def last_score(predictions: Path, settings: Settings) -> LastScore:
    """Return what the last score of a prediction file was told and the settings do not say again.

    Nothing is taken where the file changed since, or its provenance is damaged; that is said.
    """
    provenance = RunFiles(predictions).provenance
    if not provenance.is_file():
        return LastScore()
    try:
        stored = read_provenance(provenance)
    except ScoreFileError as error:
        say_once(f"{error}: what this score was told is not known. State it again")
        return LastScore()
    told = _told(stored, settings)
    values = {
        SPACE_SETTING: told.space,
        THOUGHT_MARKS: told.thought_marks,
        READS_LIKE: told.reads_like,
    }
    stated = {setting: value for setting, value in values.items() if value is not None}
    if not stated or file_sha256(predictions) == stored.predictions.sha256:
        return told
    words = [f"{setting.noun} {in_words(value)}" for setting, value in stated.items()]
    flags = [stating_flag(setting, value) for setting, value in stated.items()]
    say_once(
        f"{predictions}: its last score was told {', '.join(words)}. The file changed since, so "
        f"that is not taken. Where it still holds type {' '.join(flags)}"
    )
    return LastScore()


def _told(stored: Provenance, settings: Settings) -> LastScore:
    """Return what a score was told and the settings do not say."""
    spaces = [space for space in stored.spaces if is_stated(space["source"])]
    marks = stored.thought_marks
    told = LastScore(
        space=_plain(spaces[0]) if len(spaces) == 1 else None,
        reads_like=stored.reads_like,
        thought_marks=thought_marks(marks) if marks is not None else None,
    )
    again = {name: None for name in _OF_LAST if getattr(settings, name) is not None}
    return replace(told, **again)


_OF_LAST = tuple(each.name for each in fields(LastScore))


def open_score(path: Path, settings: Settings) -> tuple[Path, Settings]:
    """Return the predictions of a score, given one of its files, and how it was scored.

    Of a score in another space these are its space, its marks of thoughts and the model like which
    replies were read, unless the settings name them. Any other path is returned as it is, with the
    settings.
    """
    files = run_of(path)
    if files.predictions == path or not files.provenance.is_file():
        return path, settings
    stored = _earlier(files.provenance)
    predictions = files.provenance.with_name(stored.predictions.file)
    if not space_mark(files.mark):
        return predictions, settings
    settings = _as_it_was_read(settings, stored)
    space = settings.space if settings.space is not None else _first_space(stored)
    return predictions, replace(settings, space=space, separately=True)


def _as_it_was_read(settings: Settings, stored: Provenance) -> Settings:
    """Complete settings by the thought marks and the reading that a score was told."""
    if settings.thought_marks is None and stored.thought_marks is not None:
        settings = replace(settings, thought_marks=thought_marks(stored.thought_marks))
    if settings.reads_like is None:
        settings = replace(settings, reads_like=stored.reads_like)
    return settings


def _first_space(stored: Provenance) -> dict[str, Any]:
    return _plain(stored.spaces[0])


def _plain(space: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in space.items() if name != "source"}


def _earlier(provenance: Path) -> Provenance:
    try:
        return read_provenance(provenance)
    except ScoreFileError as error:
        raise ScoreFileError(f"{error}; delete it to score without it") from None
