"""What a score leaves beside its predictions; needs neither torch nor vlmeval.

``<stem>_score.csv`` is the row that goes into a leaderboard, ``<stem>_details.jsonl`` holds every
query (boxes read, IoUs, hits, reason), ``<stem>_provenance.json`` what the score rests on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .. import __version__
from ..benchmarks.findit.table_facts import meta_path
from ..core.files import atomic_write, file_sha256
from ..core.identity_file import as_values
from ..core.metric import is_sliced
from ..core.question import Question
from ..core.scored_row import ScoredRow
from ..core.settings import Settings
from ..core.versions import installed
from ..core.visible import as_csv
from .score import RunScore


def score_row(run: RunScore) -> dict[str, Any]:
    """The score as one flat row: figures in percent, counts, and what they rest on."""
    benchmark, sums = run.benchmark, run.sums
    return {
        "model": run.model,
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
        "prompts": (run.identity and run.identity.prompts) or "unknown",
        "run": run.identity.digest if run.identity else "unknown",
    }


def detail(row: ScoredRow) -> dict[str, Any]:
    """All that is known of one query, for the details file."""
    found = {
        "index": row.index,
        "source": row.source,
        "failed": row.failed,
        "reason": row.reason,
        **row.details,
        "sums": row.sums,
    }
    return {**found, "slices": row.slices} if row.slices else found


def provenance(run: RunScore, predictions: Path) -> dict[str, Any]:
    """What a score rests on."""
    meta = meta_path(run.task.table)
    question, benchmark = run.task.question, run.benchmark
    scored = {row.index for row in run.rows}
    figures = (*benchmark.metrics, benchmark.with_failures)
    return {
        "model": run.model,
        "dataset": run.task.name,
        "benchmark": benchmark.name,
        "variant": {"name": question.name, **_fields(question)},
        "identity": as_values(run.identity) if run.identity else None,
        "digest": run.identity.digest if run.identity else None,
        "forced": [*(run.identity.forced if run.identity else ()), *run.forced],
        "spaces": [dict(space) for space in run.spaces],
        "sizes_recorded": run.replies.with_sizes,
        "answered_by": [dict(items) for items in sorted(run.replies.answered_by)],
        "table": {
            "file": run.task.table.name,
            "sha256": file_sha256(run.task.table),
            "meta": json.loads(meta.read_text(encoding="utf-8")) if meta.is_file() else None,
        },
        "predictions": {
            "file": predictions.name,
            "sha256": file_sha256(predictions),
            "rows": len(run.rows),
            "rows_missing": sorted(set(run.task.queries) - scored),
            "cut_by_xlsx": run.replies.long if predictions.suffix == ".xlsx" else 0,
        },
        "totals": {name: value for name, value in run.sums.items() if not is_sliced(name)},
        "figures": {metric.key or metric.name: metric.value(run.sums) for metric in figures},
        "reasons": dict(run.reasons),
        "scored_with": versions(),
        "scored_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _fields(question: Question) -> dict[str, Any]:
    """The fields of a question, where it is a record."""
    return asdict(question) if is_dataclass(question) else {}


def as_scored(predictions: Path, settings: Settings) -> Settings:
    """Settings, with those of the scoring beside a prediction file where they say no space.

    Raises:
        ResultError: the provenance beside it cannot be read.
    """
    path = provenance_path(predictions)
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


_KNOWN = ("recorded by the run", "model table")
"""How the sources of spaces begin that nobody said when it was scored."""


class ResultError(ValueError):
    """The files of a score cannot be read; the message names the file."""


def provenance_path(predictions: Path) -> Path:
    """Where the provenance of a prediction file's score lies."""
    return predictions.with_name(f"{predictions.stem}_provenance.json")


def versions() -> dict[str, str]:
    """Versions of what a score depends on; those of inference are in the run's identity."""
    ours = {"vlmeval_findit": __version__, "python": sys.version.split()[0]}
    return {**ours, **installed(("numpy", "scipy"))}


@dataclass(frozen=True, slots=True)
class Written:
    """The files of one score."""

    score: Path
    details: Path
    provenance: Path


def detail_lines(run: RunScore) -> Iterator[str]:
    """The lines of the details file."""
    for row in run.rows:
        yield json.dumps(detail(row), ensure_ascii=False) + "\n"


def write_score(run: RunScore, predictions: Path, details: Iterable[str] | None = None) -> Written:
    """Leave score, details and provenance beside a prediction file, each whole or not at all.

    ``details`` are the lines of the details file where the run does not hold them any more.
    """

    def beside(ending: str) -> Path:
        return predictions.with_name(f"{predictions.stem}_{ending}")

    files = Written(beside("score.csv"), beside("details.jsonl"), beside("provenance.json"))
    with atomic_write(files.score) as f:
        f.write(as_csv([score_row(run)]))
    with atomic_write(files.details) as f:
        f.writelines(detail_lines(run) if details is None else details)
    with atomic_write(files.provenance) as f:
        json.dump(provenance(run, predictions), f, indent=1, ensure_ascii=False)
    return files
