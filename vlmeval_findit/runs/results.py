"""What a score leaves beside its predictions; needs neither torch nor vlmeval.

``<stem>_score.csv`` is the row that goes into a leaderboard, ``<stem>_details.jsonl`` holds every
query (boxes read, IoUs, hits, reason), ``<stem>_provenance.json`` what the score rests on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.files import atomic_write
from ..core.run_files import RunFiles, marked, run_of
from ..core.settings import Settings
from ..core.spelling import as_csv
from .details import lines_of
from .provenance import as_text, provenance_of, read_provenance
from .score import RunScore


def score_row(run: RunScore) -> dict[str, Any]:
    """The score as one flat row: figures in percent, counts, and what they rest on."""
    benchmark, sums = run.benchmark, run.sums
    return {
        "model": marked(run.model, run.mark),
        "dataset": run.task.name,
        **run.figures,
        benchmark.with_failures.name: benchmark.with_failures.value(sums),
        "rows": len(run.task.queries),
        "scored": len(run.rows),
        "answered": len(run.rows) - run.failed,
        "failed calls": run.failed,
        "left out": len(run.identity.left_out) if run.identity else 0,
        **{name: sums.get(key, 0) for name, key in benchmark.counts.items()},
        "space": "; ".join(sorted({space["kind"] for space in run.spaces})),
        **({"scored by": run.scorer.name} if run.scorer else {}),
        "prompts": (run.identity and run.identity.prompts) or "unknown",
        "run": run.identity.digest if run.identity else "unknown",
    }


def score_text(run: RunScore) -> str:
    """What the file of a score holds."""
    return as_csv([score_row(run)])


def as_scored(predictions: Path, settings: Settings) -> Settings:
    """Settings, with those of the scoring beside a prediction file where they say no space.

    Raises:
        ResultError: the provenance beside it cannot be read.
    """
    path = RunFiles(predictions).provenance
    if settings.space is not None or not path.is_file():
        return settings
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        said = [{k: v for k, v in one.items() if k != "source"} for one in values["spaces"]]
        known = all(one["source"].startswith(_KNOWN) for one in values["spaces"])
        forced = settings.force or bool(values["forced"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultError(f"{path}: not the provenance of a score: {error}") from None
    if len(said) != 1 or known:
        return replace(settings, force=forced)
    return replace(settings, space=said[0], source="setting", force=forced)


def of_other_space(path: Path, settings: Settings) -> tuple[Path, Settings]:
    """Return the predictions and the space of a score in another space, by one of its files.

    Any other path is returned as it is, with the settings.

    Raises:
        ResultError: its provenance cannot be read.
    """
    files = run_of(path)
    if not files.mark or not files.provenance.is_file():
        return path, settings
    try:
        values = read_provenance(files.provenance.read_text(encoding="utf-8"))
        space = {k: v for k, v in values["spaces"][0].items() if k != "source"}
        predictions = files.provenance.with_name(values["predictions"]["file"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ResultError(f"{files.provenance}: not the provenance of a score: {error}") from None
    return predictions, replace(settings, space=space, source="setting", beside=True)


_KNOWN = ("recorded by the run", "model table")
"""How the sources of spaces begin that nobody said when it was scored."""


class ResultError(ValueError):
    """The files of a score cannot be read; the message names the file."""


def write_score(run: RunScore, predictions: Path, details: Iterable[str] | None = None) -> RunFiles:
    """Leave score, details and provenance beside a prediction file, each whole or not at all.

    A score in another space than the recorded one is written beside that, which stays.
    ``details`` are the lines of the details file where the run does not hold them any more.
    """
    files = RunFiles(predictions, run.mark)
    with atomic_write(files.score) as f:
        f.write(score_text(run))
    with atomic_write(files.details) as f:
        f.writelines(lines_of(run.rows) if details is None else details)
    with atomic_write(files.provenance) as f:
        f.write(as_text(provenance_of(run, predictions)))
    return files
