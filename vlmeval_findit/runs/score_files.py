"""Files of a score next to its predictions; needs neither torch nor vlmeval.

``<stem>_score.csv`` is the row that goes into a leaderboard, ``<stem>_details.jsonl`` holds every
query (boxes, IoUs, hits, reason), ``<stem>_provenance.json`` what the score rests on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.files import atomic_write
from ..core.formatting import as_csv
from ..core.run_files import RunFiles, marked, run_of
from ..core.scored_row import ScoredRow
from ..core.settings import Settings
from .provenance import UNKNOWN_PROMPTS, provenance_of
from .run_score import RunScore


def write_score(run: RunScore, predictions: Path, details: Iterable[str] | None = None) -> RunFiles:
    """Write score, details and provenance next to a prediction file, each whole or not at all.

    A score in another space than the recorded space is written next to the recorded score.
    ``details`` are the lines of the details file where the run does not hold them any more.
    """
    files = RunFiles(predictions, run.mark)
    with atomic_write(files.score) as f:
        f.write(as_csv([score_row(run)]))
    with atomic_write(files.details) as f:
        f.writelines(map(details_line, run.rows) if details is None else details)
    with atomic_write(files.provenance) as f:
        json.dump(provenance_of(run, predictions), f, indent=1, ensure_ascii=False)
    return files


def score_row(run: RunScore) -> dict[str, Any]:
    """Return the score as one flat row: metrics in percent, counts, and what they rest on."""
    benchmark, sums = run.benchmark, run.sums
    return {
        "model": marked(run.model, run.mark),
        "dataset": run.task.name,
        **run.metric_values,
        benchmark.with_failures.name: benchmark.with_failures.value(sums),
        "rows": len(run.task.queries),
        "scored": len(run.rows),
        "answered": len(run.rows) - run.failed,
        "failed calls": run.failed,
        "left out": len(run.identity.left_out) if run.identity else 0,
        **{name: sums.get(key, 0) for name, key in benchmark.counts.items()},
        "space": "; ".join(sorted({space["kind"] for space in run.spaces})),
        **({"scored by": run.scorer.name} if run.scorer else {}),
        "prompts": (run.identity and run.identity.prompts) or UNKNOWN_PROMPTS,
        "run": run.identity.digest if run.identity else UNKNOWN_PROMPTS,
    }


def details_line(row: ScoredRow) -> str:
    """Write a row as one line; :func:`read_details_line` reads it back."""
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


def read_details_line(line: str) -> ScoredRow:
    """Read the row of a line.

    Raises:
        KeyError: a key is missing.
        ValueError: it is no JSON.
    """
    values: dict[str, Any] = json.loads(line)
    required = {name: values.pop(name) for name in ("index", "source", "failed", "reason", "sums")}
    slices = values.pop("slices", {})
    parts = {(kind, value): sums for kind, value, sums in values.pop("parts", ())}
    return ScoredRow(**required, slices=slices, details=values, parts=parts)


# --- the space of a score -------------------------------------------------------------------------

_NOT_SET = ("recorded by the run", "model table")
"""How the sources of spaces begin that nobody set for the scoring."""


def settings_of_score(predictions: Path, settings: Settings) -> Settings:
    """Complete settings without a space by those of an earlier score."""
    path = RunFiles(predictions).provenance
    if settings.space is not None or not path.is_file():
        return settings
    values = _read(path)
    settings = replace(settings, force=settings.force or bool(values["forced"]))
    sources = [space["source"] for space in values["spaces"]]
    if len(sources) != 1 or sources[0].startswith(_NOT_SET):
        return settings
    return replace(settings, space=_first_space(values), source="setting")


def open_score(path: Path, settings: Settings) -> tuple[Path, Settings]:
    """Return predictions and space of a score in another space, given one of its files.

    Any other path is returned as it is, with the settings.
    """
    files = run_of(path)
    if not files.mark or not files.provenance.is_file():
        return path, settings
    values = _read(files.provenance)
    predictions = files.provenance.with_name(values["predictions"]["file"])
    space = _first_space(values)
    return predictions, replace(settings, space=space, source="setting", separately=True)


def _first_space(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values["spaces"][0].items() if name != "source"}


def _read(provenance: Path) -> Mapping[str, Any]:
    values: Mapping[str, Any] = json.loads(provenance.read_text(encoding="utf-8"))
    return values
